//! What operators see of a server, on the address of its status.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mcp_testkit::envelope::tool_text;
use mcp_transport_http::StatusServer;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::demo::Demo;
use crate::raw_http::Post;
use crate::sockets::{Client, Running};

/// The limit of every wait.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The maximum number of connections to the status.
const MAX_CONNECTIONS: usize = 64;

async fn bind() -> StatusServer {
    StatusServer::bind("127.0.0.1:0").await.expect("a port")
}

/// Sends text to the status of a server.
async fn send(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(text.as_bytes()).await.expect("sent");
    stream
}

/// Sends a GET to the status of a server; returns the response as text.
async fn get(address: SocketAddr, path: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let (mut stream, mut text) = (send(address, &head).await, String::new());
    timeout(TIMEOUT, stream.read_to_string(&mut text)).await.expect("an end").expect("a response");
    text
}

/// Waits until the status says that the server is not ready.
async fn until_unready(operators: SocketAddr) {
    let unready = async {
        while get(operators, "/readyz").await.starts_with("HTTP/1.1 200") {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(TIMEOUT, unready).await.expect("a status");
    assert!(get(operators, "/readyz").await.starts_with("HTTP/1.1 503"));
}

/// The status of a server is served apart from it, and says that the server drains.
#[tokio::test]
async fn the_status_tells_of_a_drain() {
    let demo = Demo::default();
    let status = bind().await.metrics(|| "demo_up 1\n".to_owned());
    let operators = status.address();
    let running = Running::with(&demo, |server| server.status(status)).await;
    let metrics = get(operators, "/metrics").await;
    assert!(metrics.starts_with("HTTP/1.1 200") && metrics.ends_with("demo_up 1\n"), "{metrics}");
    assert!(metrics.contains("content-type: text/plain; version=0.0.4"), "{metrics}");
    assert!(get(operators, "/readyz").await.starts_with("HTTP/1.1 200"));
    assert!(get(running.address, "/metrics").await.starts_with("HTTP/1.1 404"), "they have an address of their own");
    let mut client = running.client().await;
    client.send(Post::tool("wait", json!({}))).await;
    while demo.notes.take().is_empty() {
        sleep(Duration::from_millis(1)).await;
    }
    running.stop.send(()).expect("a server");
    until_unready(operators).await;
    assert!(get(operators, "/healthz").await.starts_with("HTTP/1.1 200"));
    demo.gate.open();
    let drained = timeout(TIMEOUT, running.ended).await.expect("an end").expect("no panic");
    assert_eq!(drained.aborted, 0);
    assert!(TcpStream::connect(operators).await.is_err(), "it ends with the server");
}

/// A load balancer learns that a server stops while the server still serves it.
#[tokio::test]
async fn a_server_is_unready_before_it_stops_accepting() {
    const DELAY: Duration = Duration::from_secs(3600);
    let demo = Demo::default();
    let status = bind().await;
    let operators = status.address();
    let running = Running::with(&demo, |server| server.status(status).drain_delay(DELAY)).await;
    let mut earlier = running.client().await;
    earlier.send(Post::tool("hello", json!({}))).await;
    assert_eq!(tool_text(&earlier.response().await.1), "hello");
    let Running { address, stop, ended } = running;
    stop.send(()).expect("a server");
    until_unready(operators).await;
    let mut later = Client::connect(address).await;
    for client in [&mut earlier, &mut later] {
        client.send(Post::tool("hello", json!({}))).await;
        assert_eq!(tool_text(&client.response().await.1), "hello");
    }
    assert!(!ended.is_finished());
    // From here on the clock is advanced whenever all tasks wait.
    tokio::time::pause();
    let drained = timeout(DELAY * 2, ended).await.expect("an end").expect("no panic");
    assert_eq!(drained.aborted, 0);
    assert!(TcpStream::connect(address).await.is_err(), "it ends with the delay");
}

/// The last connection waits for one of those before it, which are closed if they do not send their requests.
#[tokio::test]
async fn connections_to_the_status_are_limited() {
    let demo = Demo::default();
    let status = bind().await;
    let operators = status.address();
    let _running = Running::with(&demo, |server| server.status(status)).await;
    let mut slow = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        slow.push(send(operators, "GET /healthz HTTP/1.1\r\nhost: local").await);
    }
    assert!(get(operators, "/healthz").await.starts_with("HTTP/1.1 200"));
    let is_closed = |stream: &&TcpStream| matches!(stream.try_read(&mut [0; 256]), Ok(0));
    assert!(slow.iter().any(|stream| is_closed(&stream)), "the last connection was accepted beside all others");
    for mut stream in slow {
        let read = timeout(TIMEOUT, stream.read_to_end(&mut Vec::new())).await.expect("it is closed");
        assert!(matches!(read, Ok(0)), "{read:?}");
    }
}

/// A connection whose client does not read is closed.
#[tokio::test]
async fn slow_readers_of_the_status_are_cut() {
    /// More than the buffers of two sockets hold.
    const SIZE: usize = 32 << 20;
    let demo = Demo::default();
    let asked = Arc::new(Notify::new());
    let status = bind().await.metrics({
        let asked = Arc::clone(&asked);
        move || {
            asked.notify_one();
            "x".repeat(SIZE)
        }
    });
    let operators = status.address();
    let _running = Running::with(&demo, |server| server.status(status)).await;
    let mut stream = send(operators, "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    timeout(TIMEOUT, asked.notified()).await.expect("a request");
    // The response is on its way, and only timers can change anything: the clock is advanced at once.
    tokio::time::pause();
    sleep(Duration::from_secs(11)).await;
    let mut read = Vec::new();
    let _ = stream.read_to_end(&mut read).await;
    assert!(!read.is_empty() && read.len() < SIZE, "{} bytes", read.len());
}
