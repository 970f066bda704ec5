//! Attacks by the servers that are requested.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Request;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::address::UnsafeAddress;

/// Serves each connection with a function, and counts them.
async fn serve<F, W>(respond: F) -> (SocketAddr, Arc<AtomicUsize>)
where
    F: Fn(String, TcpStream) -> W + Send + Sync + 'static,
    W: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    let respond = Arc::new(respond);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let respond = Arc::clone(&respond);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(socket.read_u8().await?);
                }
                respond(String::from_utf8_lossy(&head).into_owned(), socket).await
            });
        }
    });
    (address, connections)
}

fn fetcher() -> Fetcher {
    Fetcher::builder(AddressPolicy::Any).timeout(Duration::from_secs(5)).body_limit(1000).build().unwrap()
}

async fn write(mut socket: TcpStream, response: String) -> io::Result<()> {
    socket.write_all(response.as_bytes()).await?;
    socket.shutdown().await
}

#[tokio::test]
async fn a_response_is_read_with_its_status_and_headers() {
    let (address, _) = serve(|head, socket| async move {
        assert!(head.starts_with("GET /metadata?a=1 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("accept: application/json\r\n"), "{head}");
        write(socket, "HTTP/1.1 404 Not Found\r\nx-a: b\r\ncontent-length: 2\r\n\r\n{}".to_owned()).await
    })
    .await;
    let response = fetcher().get(&format!("http://{address}/metadata?a=1")).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["x-a"], &**response.body()),
        (404, &"b".parse().unwrap(), &b"{}"[..])
    );
}

#[tokio::test]
async fn a_public_server_gets_no_request_sent_inwards() {
    let (address, connections) =
        serve(|_, socket| write(socket, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned())).await;
    let port = address.port();
    let public = Fetcher::builder(AddressPolicy::Public).build().unwrap();
    let inwards = [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://2130706433:{port}/"),
    ];
    for url in inwards {
        let error = public.get(&url).await.unwrap_err();
        assert!(matches!(error, FetchError::Refused { reason: UnsafeAddress::Private, .. }), "{url}: {error}");
        assert!(!error.is_transient());
    }
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

/// A lookup that returns the same addresses for every name.
fn resolves_to(addresses: &[&str]) -> resolver::Lookup {
    let addresses: Vec<_> = addresses.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), 0)).collect();
    Arc::new(move |_| {
        let addresses = addresses.clone();
        Box::pin(async move { Ok(addresses) })
    })
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn a_name_that_resolves_inwards_is_refused_after_resolution() {
    let (address, connections) =
        serve(|_, socket| write(socket, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned())).await;
    for inside in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1", "169.254.169.254", "fd00::1", "64:ff9b::7f00:1"]
    {
        let fetcher = Fetcher::builder(AddressPolicy::Public).lookup(resolves_to(&[inside])).build().unwrap();
        let error = fetcher.get(&format!("https://rebound.example.com:{}/", address.port())).await.unwrap_err();
        assert!(matches!(error, FetchError::Refused { reason: UnsafeAddress::Private, .. }), "{inside}: {error:?}");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn plain_http_to_a_name_of_this_machine_stays_on_this_machine() {
    let fetcher = Fetcher::builder(AddressPolicy::Any).lookup(resolves_to(&["192.0.2.1"])).build().unwrap();
    let error = fetcher.get("http://localhost:1/").await.unwrap_err();
    assert!(matches!(error, FetchError::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn redirects_are_followed_within_the_origin() {
    let (address, connections) = serve(|head, socket| async move {
        let response = match head.split(' ').nth(1) {
            Some("/1") => "HTTP/1.1 302 Found\r\nlocation: /2#part\r\ncontent-length: 0\r\n\r\n",
            Some("/2") => "HTTP/1.1 307 Temporary Redirect\r\nlocation: 3?x=y\r\ncontent-length: 0\r\n\r\n",
            Some("/3?x=y") => "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhere",
            _ => "HTTP/1.1 302 Found\r\nlocation: /loop\r\ncontent-length: 0\r\n\r\n",
        };
        write(socket, response.to_owned()).await
    })
    .await;
    let response = fetcher().get(&format!("http://{address}/1")).await.unwrap();
    assert_eq!(response.body(), b"here");
    assert_eq!(connections.load(Ordering::SeqCst), 3);

    let error = fetcher().get(&format!("http://{address}/loop")).await.unwrap_err();
    assert!(matches!(error, FetchError::Redirected { .. }), "{error:?}");
    assert_eq!(connections.load(Ordering::SeqCst), 3 + 4, "a loop ends");
}

#[tokio::test]
async fn redirects_to_another_origin_are_not_followed() {
    let (inside, reached) =
        serve(|_, socket| write(socket, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned())).await;
    let elsewhere = [
        format!("http://{inside}/"),
        format!("http://localhost:{}/", inside.port()),
        format!("//{inside}/"),
        "https://example.com/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "http://[".to_owned(),
    ];
    for location in elsewhere {
        let response = format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let (address, _) = serve(move |_, socket| write(socket, response.clone())).await;
        let error = fetcher().get(&format!("http://{address}/")).await.unwrap_err();
        assert_eq!(error, FetchError::Redirected { address: format!("http://{address}/") }, "{location}");
    }
    assert_eq!(reached.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_redirected_post_is_not_repeated() {
    let (address, connections) = serve(|_, socket| {
        write(socket, "HTTP/1.1 307 Temporary Redirect\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n".to_owned())
    })
    .await;
    let request = Request::post(format!("http://{address}/token")).body(b"code=secret".to_vec()).unwrap();
    let error = fetcher().send(request).await.unwrap_err();
    assert!(matches!(error, FetchError::Redirected { .. }), "{error:?}");
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn huge_bodies_are_refused_by_their_length_or_when_the_limit_is_reached() {
    let (declared, _) =
        serve(|_, socket| write(socket, "HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n".to_owned())).await;
    let (endless, _) = serve(|_, mut socket| async move {
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
        loop {
            socket.write_all(&[b' '; 512]).await?;
        }
    })
    .await;
    for address in [declared, endless] {
        let error = fetcher().get(&format!("http://{address}/")).await.unwrap_err();
        assert_eq!(error, FetchError::TooLarge { address: format!("http://{address}/"), limit: 1000 });
    }
    let (fitting, _) = serve(|_, socket| {
        write(socket, format!("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{}", "x".repeat(1000)))
    })
    .await;
    assert_eq!(fetcher().get(&format!("http://{fitting}/")).await.unwrap().body().len(), 1000);
}

#[tokio::test]
async fn slow_responses_end_in_time() {
    let (silent, _) = serve(|_, socket| async move {
        std::future::pending::<()>().await;
        drop(socket);
        Ok(())
    })
    .await;
    let (trickling, _) = serve(|_, mut socket| async move {
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
        loop {
            socket.write_all(b" ").await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let timeout = Duration::from_millis(200);
    let fetcher = Fetcher::builder(AddressPolicy::Any).timeout(timeout).build().unwrap();
    for address in [silent, trickling] {
        let error = fetcher.get(&format!("http://{address}/")).await.unwrap_err();
        assert_eq!(error, FetchError::Timeout { address: format!("http://{address}/"), timeout });
        assert!(error.is_transient());
    }
}

// covers: AU-14
#[tokio::test]
async fn errors_have_nothing_of_the_query_the_headers_and_the_body() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let request = Request::post(format!("http://{address}/token?key=hunter2"))
        .header("authorization", "Basic hunter2")
        .body(b"refresh_token=hunter2".to_vec());
    let error = fetcher().send(request.unwrap()).await.unwrap_err();
    assert!(error.is_transient());
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    assert!(error.to_string().contains(&format!("http://{address}/token")), "{error}");
}
