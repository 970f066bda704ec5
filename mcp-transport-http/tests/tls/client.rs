//! The client's TLS: what it trusts, and what it says of what it does not.

use std::sync::{Arc, Mutex};

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use mcp_client::types::Revision;
use mcp_client::{CloseReason, DetectedRevision, Error, Mode};
use mcp_server::Server;
use mcp_transport_http::{HttpOptions, HttpService, HttpTransport, SessionMode};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

use super::certificates::{Authority, Identity, self_signed};
use super::{builder, within};

/// The protocols that clients have negotiated.
type Protocols = Arc<Mutex<Vec<Option<Vec<u8>>>>>;

/// Serves with a certificate on a port of this machine; returns its number.
async fn start(identity: &Identity, protocols: &[&str]) -> (u16, Protocols) {
    let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("a key");
    let mut config =
        ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key).expect("a pair");
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let (acceptor, negotiated) = (TlsAcceptor::from(Arc::new(config)), Protocols::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let options = HttpOptions::default().sessions(SessionMode::Stateful);
    let service = HttpService::with_options(Server::builder("tls", "1.0").build().expect("a server"), options);
    let log = Arc::clone(&negotiated);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, service, log) = (acceptor.clone(), service.clone(), Arc::clone(&log));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let protocol = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
                let is_http2 = protocol.as_deref() == Some(b"h2");
                log.lock().expect("no panic").push(protocol);
                let serve = service_fn(move |request| service.clone().call(request));
                let _ = if is_http2 {
                    let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    builder.serve_connection(TokioIo::new(stream), serve).await
                } else {
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), serve).await
                };
            });
        }
    });
    (port, negotiated)
}

/// A transport that trusts an authority.
fn transport(port: u16, authority: &Authority) -> HttpTransport {
    let root = reqwest::Certificate::from_pem(authority.pem().as_bytes()).expect("a certificate");
    HttpTransport::new(format!("https://localhost:{port}/mcp"))
        .expect("a URL")
        .configure_http_client(move |builder| builder.tls_certs_only([root]))
}

/// A server with a certificate of a private authority is used once that is trusted, over HTTP/2 if it can be, in both
/// eras.
#[tokio::test]
async fn a_trusted_server_is_used() {
    let authority = Authority::new();
    let identity = authority.issue("localhost");
    for (offered, expected) in
        [(&["h2", "http/1.1"][..], Some(&b"h2"[..])), (&["http/1.1"], Some(b"http/1.1")), (&[], None)]
    {
        for (mode, revision) in [(Mode::Auto, Revision::V2026_07_28), (Mode::Legacy, Revision::LATEST_LEGACY)] {
            let (port, protocols) = start(&identity, offered).await;
            let client = within(builder().mode(mode).connect(transport(port, &authority))).await.unwrap();
            assert_eq!(client.revision(), Some(revision));
            within(client.close()).await;
            let protocols = protocols.lock().expect("no panic").clone();
            assert!(protocols.iter().all(|protocol| protocol.as_deref() == expected), "{protocols:?}");
        }
    }
}

/// What is wrong with a certificate is said, and that nothing was sent.
#[tokio::test]
async fn an_invalid_certificate_is_described() {
    let (authority, other, impostor) = (Authority::new(), Authority::named("another one"), Authority::new());
    for (identity, expected) in [
        (authority.issue("other.example"), "it is not for `localhost`, but for DnsName(\"other.example\")"),
        (authority.issue_expired("localhost"), "it has expired"),
        (authority.issue_early("localhost"), "it is not valid yet"),
        (other.issue("localhost"), "its issuer is not trusted"),
        (impostor.issue("localhost"), "its issuer has not signed it"),
        (self_signed("localhost"), "its issuer is not trusted"),
    ] {
        for mode in [Mode::Auto, Mode::Legacy] {
            let (port, protocols) = start(&identity, &["h2", "http/1.1"]).await;
            let error = within(builder().mode(mode).connect(transport(port, &authority))).await.unwrap_err();
            let Error::Closed(CloseReason::InvalidCertificate(why)) = &error else { panic!("{error:?}") };
            assert!(why.starts_with(expected), "{why}");
            let text = error.to_string();
            assert_eq!(text, format!("the certificate of the server is not valid: {why}"));
            assert!(!text.contains("/mcp"), "the URL may have secrets: {text}");
            assert_eq!(protocols.lock().expect("no panic").len(), 0);
        }
    }
}

/// A call to a server whose revision is known finds out about its certificate by itself.
#[tokio::test]
async fn a_call_is_not_sent_to_a_server_with_an_invalid_certificate() {
    let authority = Authority::new();
    let (port, _) = start(&authority.issue_expired("localhost"), &["h2"]).await;
    let builder = builder().detected_revision(DetectedRevision::new(Revision::V2026_07_28));
    let client = within(builder.connect(transport(port, &authority))).await.unwrap();
    let error = within(client.call_tool("t")).await.unwrap_err();
    assert!(matches!(&error, Error::InvalidCertificate(what) if what == "it has expired"), "{error:?}");
}

/// By default, the authorities of the system are trusted, and no other one.
#[tokio::test]
async fn a_private_authority_is_not_trusted_by_default() {
    let authority = Authority::new();
    let (port, _) = start(&authority.issue("localhost"), &["h2"]).await;
    let transport = HttpTransport::new(format!("https://localhost:{port}/mcp")).unwrap();
    let error = within(builder().connect(transport)).await.unwrap_err();
    assert!(error.to_string().contains("its issuer is not trusted"), "{error}");
}

/// A server without TLS is named as such.
#[tokio::test]
async fn a_server_without_tls_is_described() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let reply = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, reply).await;
        }
    });
    let error = within(builder().connect(transport(port, &Authority::new()))).await.unwrap_err();
    assert!(error.to_string().contains("the server does not use TLS at this address"), "{error}");
}
