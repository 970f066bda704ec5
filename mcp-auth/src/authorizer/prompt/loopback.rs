//! A listener that a browser on the same machine is sent back to (RFC 8252).

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use super::RedirectCheck;

const PATH: &str = "/callback";
/// The longest head of a request. Authorization codes and states are shorter by far.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// How many connections are read from at the same time. Browsers open some in advance.
const MAX_CONNECTIONS: usize = 16;
/// How long a connection may take for its request.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

const DONE: &str = "<!doctype html><meta charset=\"utf-8\"><title>Done</title>\
    <p>Done. You can close this window and return to the application.</p>\n";
const REFUSED: &str = "<!doctype html><meta charset=\"utf-8\"><title>Not this login</title>\
    <p>This address does not belong to the login that the application waits for.</p>\n";
const NOT_FOUND: &str =
    "<!doctype html><meta charset=\"utf-8\"><title>Not found</title><p>There is nothing here.</p>\n";

/// A listener on a loopback port that waits for the redirect of one login.
///
/// Hosts that open the browser in their own way use it to implement [`LoginPrompt`](super::LoginPrompt).
#[derive(Debug)]
pub struct LoopbackListener {
    listener: TcpListener,
    redirect_uri: String,
}

impl LoopbackListener {
    /// Listens on the port of an earlier redirect URI if it is free, so that the client need not be registered again, or else on a
    /// port of the system's choice.
    ///
    /// # Errors
    ///
    /// Returns an error if no port is free.
    pub async fn bind(earlier: Option<&str>) -> io::Result<Self> {
        if let Some(port) = earlier.and_then(own_port)
            && let Ok(listener) = Self::listen(port).await
        {
            return Ok(listener);
        }
        Self::listen(0).await
    }

    async fn listen(port: u16) -> io::Result<Self> {
        // An address, not `localhost`, which may resolve to something else (RFC 8252, section 8.3).
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        let redirect_uri = format!("http://{}{PATH}", listener.local_addr()?);
        Ok(Self { listener, redirect_uri })
    }

    /// Returns the redirect URI.
    #[must_use]
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Waits for the browser to be sent back, and shows a page that says to close the window. Other requests get 404, and
    /// those that `check` refuses 400.
    ///
    /// # Errors
    ///
    /// Returns an error if no connections can be accepted.
    pub async fn wait(&mut self, check: RedirectCheck<'_>) -> io::Result<()> {
        let mut reading = FuturesUnordered::new();
        loop {
            let request = tokio::select! {
                accepted = self.listener.accept(), if reading.len() < MAX_CONNECTIONS => {
                    match accepted {
                        Ok((socket, _)) => reading.push(tokio::time::timeout(READ_TIMEOUT, read_target(socket))),
                        // The client of a connection can abort it before it is accepted.
                        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                        Err(error) => return Err(error),
                    }
                    continue;
                }
                Some(request) = reading.next(), if !reading.is_empty() => request,
            };
            // A connection without a complete request in time is closed.
            let Ok(Ok((socket, target))) = request else { continue };
            if !is_callback(target.as_deref()) {
                respond(socket, "404 Not Found", NOT_FOUND).await;
                continue;
            }
            match check(target.as_deref().unwrap_or_default()) {
                Ok(()) => {
                    respond(socket, "200 OK", DONE).await;
                    return Ok(());
                }
                Err(_) => respond(socket, "400 Bad Request", REFUSED).await,
            }
        }
    }
}

/// Returns the port of a redirect URI that a listener like this one had.
fn own_port(redirect_uri: &str) -> Option<u16> {
    let url = Url::parse(redirect_uri).ok()?;
    let is_own = url.scheme() == "http" && url.host_str() == Some("127.0.0.1") && url.path() == PATH;
    url.port().filter(|_| is_own)
}

fn is_callback(target: Option<&str>) -> bool {
    target.is_some_and(|target| target == PATH || target.strip_prefix(PATH).is_some_and(|rest| rest.starts_with('?')))
}

/// Reads the head of a request, and returns the target of a GET.
async fn read_target(mut socket: TcpStream) -> io::Result<(TcpStream, Option<String>)> {
    let mut head = Vec::with_capacity(1024);
    let mut searched = 0;
    loop {
        if socket.read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if head[searched..].windows(4).any(|end| end == b"\r\n\r\n") {
            break;
        }
        if head.len() > MAX_HEAD_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        searched = head.len().saturating_sub(3);
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let target = std::str::from_utf8(line).ok().and_then(|line| {
        let mut words = line.split(' ');
        let is_get = words.next() == Some("GET");
        words.next().filter(|_| is_get).map(str::to_owned)
    });
    Ok((socket, target))
}

/// Sends a page. If the browser does not take it, nothing is lost.
async fn respond(mut socket: TcpStream, status: &str, page: &str) {
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         content-security-policy: default-src 'none'\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{page}",
        page.len()
    );
    let send = async {
        socket.write_all(response.as_bytes()).await?;
        socket.shutdown().await
    };
    let _ = tokio::time::timeout(Duration::from_secs(5), send).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::RedirectError;

    async fn request(listener: &str, request: &str) -> String {
        let address = listener.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        let _ = socket.read_to_string(&mut response).await;
        response
    }

    #[tokio::test]
    async fn one_redirect_is_taken_and_other_requests_get_404() {
        let mut listener = LoopbackListener::bind(None).await.unwrap();
        let uri = listener.redirect_uri().to_owned();
        assert!(uri.starts_with("http://127.0.0.1:") && uri.ends_with("/callback"), "{uri}");
        let waiting = tokio::spawn(async move {
            let mut seen = Vec::new();
            let mut check = |redirect: &str| {
                seen.push(redirect.to_owned());
                if redirect.contains("state=right") { Ok(()) } else { Err(RedirectError::OtherState) }
            };
            listener.wait(&mut check).await.unwrap();
            seen
        });
        // Connections that are opened in advance and stay silent do not get in the way.
        let address = uri.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
        let _silent = (TcpStream::connect(&address).await.unwrap(), TcpStream::connect(&address).await.unwrap());
        for other in
            ["GET /favicon.ico", "GET /", "POST /callback?state=right", "GET /callbacks?state=right", "nonsense"]
        {
            let response = request(&uri, &format!("{other} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
            assert!(response.starts_with("HTTP/1.1 404"), "{other}: {response}");
        }
        let response = request(&uri, "GET /callback?state=wrong&code=1 HTTP/1.1\r\n\r\n").await;
        assert!(response.starts_with("HTTP/1.1 400"), "{response}");
        let response = request(&uri, "GET /callback?state=right&code=2 HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(response.starts_with("HTTP/1.1 200") && response.contains("close this window"), "{response}");
        assert!(!response.contains("code"), "the page has nothing of the request");
        assert_eq!(waiting.await.unwrap(), ["/callback?state=wrong&code=1", "/callback?state=right&code=2"]);
        assert!(TcpStream::connect(&address).await.is_err(), "the port is closed after the login");
    }

    #[tokio::test]
    async fn a_request_without_end_is_dropped() {
        let mut listener = LoopbackListener::bind(None).await.unwrap();
        let uri = listener.redirect_uri().to_owned();
        let waiting = tokio::spawn(async move { listener.wait(&mut |_| Ok(())).await });
        let response = request(&uri, &format!("GET /callback?{} HTTP/1.1\r\n", "x".repeat(MAX_HEAD_BYTES * 2))).await;
        assert_eq!(response, "");
        request(&uri, "GET /callback?code=1 HTTP/1.1\r\n\r\n").await;
        waiting.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn the_port_of_an_earlier_login_is_used_again_if_it_is_free() {
        let first = LoopbackListener::bind(None).await.unwrap();
        let uri = first.redirect_uri().to_owned();
        let other = LoopbackListener::bind(Some(&uri)).await.unwrap();
        assert_ne!(other.redirect_uri(), uri, "the port is not free");
        drop(first);
        assert_eq!(LoopbackListener::bind(Some(&uri)).await.unwrap().redirect_uri(), uri);
        for foreign in ["https://example.com/callback", "http://127.0.0.1:80/other", "http://10.0.0.1:80/callback", "x"]
        {
            assert_eq!(own_port(foreign), None, "{foreign}");
        }
    }
}
