//! Requests and responses as text.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The limit of every wait.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Sends a request to `HOST:PORT`, and returns the status and the body of the response. It is HTTP/1.0, whose bodies end
/// with the connection.
pub(crate) async fn exchange(address: &str, start: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let mut request = format!("{start} HTTP/1.0\r\nHost: {address}\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("\r\n{body}");
    let mut text = String::new();
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        stream.read_to_string(&mut text).await
    };
    timeout(TIMEOUT, exchange).await.expect("a response in time").expect("a response");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response to {start}: {text}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, body.to_owned())
}
