//! Keys and introspection responses that come over the network.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_auth::Secret;
use mcp_auth::server::{
    HttpIntrospection, HttpKeys, IntrospectionVerifier, JwtVerifier, ProtectedResource, TokenError, TokenVerifier as _,
};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::issuer::{Key, RESOURCE, claims, claims_with, jwks, now};

/// The requests that a server got, with their bodies.
type Requests = Arc<Mutex<Vec<String>>>;

/// Serves each request with a function from its address and path to the body; `None` is a 404.
async fn serve(respond: impl Fn(SocketAddr, &str) -> Option<String> + Send + Sync + 'static) -> (SocketAddr, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a valid value");
    let address = listener.local_addr().expect("a valid value");
    let requests = Requests::default();
    let (respond, seen) = (Arc::new(respond), Arc::clone(&requests));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (respond, seen) = (Arc::clone(&respond), Arc::clone(&seen));
            tokio::spawn(async move { serve_one(socket, address, &*respond, &seen).await });
        }
    });
    (address, requests)
}

async fn serve_one(
    mut socket: TcpStream,
    address: SocketAddr,
    respond: &(impl Fn(SocketAddr, &str) -> Option<String> + Send + Sync),
    seen: &Requests,
) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(socket.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&request).into_owned();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await?;
    seen.lock().expect("a valid value").push(format!("{head}{}", String::from_utf8_lossy(&body)));
    let path = head.split(' ').nth(1).unwrap_or_default();
    if path == "/endless" {
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n{\"keys\":[").await?;
        loop {
            socket.write_all(&[b' '; 4096]).await?;
        }
    }
    let response = match respond(address, path) {
        // A status and a body.
        Some(body) if body.starts_with("HTTP/1.1 ") => body,
        Some(body) => format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()),
        None => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
    };
    socket.write_all(response.as_bytes()).await?;
    socket.shutdown().await
}

#[tokio::test]
async fn keys_are_found_by_the_metadata_of_the_issuer() {
    for (well_known, issuer_path) in [
        ("/.well-known/oauth-authorization-server", ""),
        ("/.well-known/openid-configuration", ""),
        ("/tenant/.well-known/openid-configuration", "/tenant"),
    ] {
        let key = Key::es256("a");
        let published = jwks([&key]);
        let (address, requests) = serve(move |address, path| match path {
            "/keys" => Some(published.clone()),
            path if path == well_known => {
                let issuer = format!("http://{address}{issuer_path}");
                Some(json!({ "issuer": issuer, "jwks_uri": format!("http://{address}/keys") }).to_string())
            }
            _ => None,
        })
        .await;
        let issuer = format!("http://{address}{issuer_path}");
        let verifier = JwtVerifier::discover(&*issuer);
        let token = key.sign(&claims_with(json!({ "iss": issuer })));
        assert_eq!(verifier.verify(&token).await.unwrap().subject(), "alice", "{well_known}");
        assert!(requests.lock().unwrap().last().unwrap().starts_with("GET /keys "));
    }
}

/// Metadata of another issuer must not decide whose keys are used.
#[tokio::test]
async fn metadata_of_another_issuer_is_not_used() {
    let key = Key::es256("a");
    let published = jwks([&key]);
    let (address, requests) = serve(move |address, path| match path {
        "/keys" => Some(published.clone()),
        _ => {
            Some(json!({ "issuer": "https://evil.example", "jwks_uri": format!("http://{address}/keys") }).to_string())
        }
    })
    .await;
    let issuer = format!("http://{address}");
    let verifier = JwtVerifier::discover(&*issuer);
    let token = key.sign(&claims_with(json!({ "iss": issuer })));
    assert!(matches!(verifier.verify(&token).await, Err(TokenError::Unavailable(_))));
    assert!(!requests.lock().unwrap().iter().any(|request| request.starts_with("GET /keys ")));
}

#[tokio::test]
async fn endless_huge_and_missing_keys_are_given_up() {
    let key = Key::es256("a");
    let (address, _) = serve(|_, path| (path == "/huge").then(|| " ".repeat(1 << 20))).await;
    for path in ["endless", "huge", "missing"] {
        let verifier = JwtVerifier::new(crate::issuer::ISSUER, HttpKeys::at(format!("http://{address}/{path}")));
        let verified = tokio::time::timeout(Duration::from_secs(5), verifier.verify(&key.sign(&claims()))).await;
        assert!(matches!(verified, Ok(Err(TokenError::Unavailable(_)))), "{path}");
    }
}

#[tokio::test]
async fn tokens_are_introspected_with_the_credentials_of_the_server() {
    let (address, requests) = serve(|_, path| {
        let active = json!({ "active": true, "sub": "alice", "aud": RESOURCE, "exp": now() + 60 });
        (path == "/introspect").then(|| active.to_string())
    })
    .await;
    let introspection = |path: &str| {
        let endpoint = HttpIntrospection::new(format!("http://{address}{path}"), "a:b", &Secret::new("p w+"));
        assert!(!format!("{endpoint:?}").contains("p w") && !format!("{endpoint:?}").contains("Basic"));
        IntrospectionVerifier::new(format!("http://{address}"), endpoint)
    };
    assert_eq!(introspection("/introspect").verify("to+ken").await.unwrap().subject(), "alice");
    let request = requests.lock().unwrap().remove(0);
    assert!(request.starts_with("POST /introspect HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: Basic YSUzQWI6cCUyMHclMkI=\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\ntoken=to%2Bken&token_type_hint=access_token"), "{request}");
    assert!(matches!(introspection("/missing").verify("token").await, Err(TokenError::Unavailable(_))));
}

/// A response with a status other than 200.
fn with_status(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// Statuses that say something about the token do not look like an endpoint that fails.
#[tokio::test]
async fn statuses_tell_tokens_from_failures() {
    for (status, is_invalid) in [
        ("400 Bad Request", true),
        ("413 Content Too Large", true),
        ("414 URI Too Long", true),
        ("422 Unprocessable Content", true),
        ("431 Request Header Fields Too Large", true),
        ("401 Unauthorized", false),
        ("403 Forbidden", false),
        ("429 Too Many Requests", false),
        ("500 Internal Server Error", false),
    ] {
        let (address, _) = serve(move |_, _| Some(with_status(status, ""))).await;
        let endpoint = HttpIntrospection::new(format!("http://{address}/"), "a", &Secret::new("b"));
        let refused = IntrospectionVerifier::new("https://a.example", endpoint).verify("token").await.unwrap_err();
        assert_eq!(matches!(refused, TokenError::Invalid(_)), is_invalid, "{status}: {refused}");
    }
}

/// After the secret of the server was changed, users need not log in again.
#[tokio::test]
async fn errors_of_the_client_are_no_fault_of_the_token() {
    for (error, is_invalid) in [
        ("invalid_client", false),
        ("unauthorized_client", false),
        ("invalid_request", true),
        ("unsupported_token_type", true),
    ] {
        let body = json!({ "error": error }).to_string();
        let (address, _) = serve(move |_, _| Some(with_status("400 Bad Request", &body))).await;
        let endpoint = HttpIntrospection::new(format!("http://{address}/"), "a", &Secret::new("b"));
        let refused = IntrospectionVerifier::new("https://a.example", endpoint).verify("token").await.unwrap_err();
        assert_eq!(matches!(refused, TokenError::Invalid(_)), is_invalid, "{error}: {refused}");
    }
}

/// The tokens of both issuers are accepted, each with its own keys.
#[tokio::test]
async fn there_can_be_several_issuers() {
    let mut resource = ProtectedResource::new(RESOURCE);
    let mut tokens = Vec::new();
    let keys = [Key::es256("a"), Key::es256("a")];
    for (index, key) in keys.iter().enumerate() {
        let published = jwks([key]);
        let (address, _) = serve(move |address, path| match path {
            "/keys" => Some(published.clone()),
            _ => {
                let issuer = format!("http://{address}");
                Some(json!({ "issuer": issuer, "jwks_uri": format!("http://{address}/keys") }).to_string())
            }
        })
        .await;
        let issuer = format!("http://{address}");
        resource = resource.issuer(&*issuer);
        tokens.push((key.sign(&claims_with(json!({ "iss": issuer }))), true));
        tokens.push((keys[1 - index].sign(&claims_with(json!({ "iss": issuer }))), false));
    }
    let server = crate::protected::Server::new(resource);
    for (token, is_accepted) in tokens {
        assert_eq!(server.accepts(&token).await, is_accepted);
    }
}
