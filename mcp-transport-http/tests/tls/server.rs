//! The server's TLS, with certificates from files.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_client::types::Revision;
use mcp_client::{Client, Error, Mode};
use mcp_server::{NoArguments, RequestContext, Server, Tool, tool};
use mcp_testkit::envelope;
use mcp_transport_http::{HttpOptions, HttpServer, HttpService, HttpTransport, ServerTls, SessionMode};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::client::TlsStream;

use super::certificates::{Authority, Identity, self_signed};
use super::{builder, within};

/// The files of a certificate, which are deleted at the end.
struct Files(PathBuf);

impl Files {
    fn new(identity: &Identity) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("mcp-tls-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
        let files = Self(std::env::temp_dir().join(name));
        std::fs::create_dir_all(&files.0).expect("a directory");
        files.write(identity);
        files
    }

    fn certificate(&self) -> PathBuf {
        self.0.join("certificate.pem")
    }

    fn key(&self) -> PathBuf {
        self.0.join("key.pem")
    }

    fn write(&self, identity: &Identity) {
        std::fs::write(self.certificate(), &identity.certificate).expect("a file");
        std::fs::write(self.key(), &identity.key).expect("a file");
    }

    fn tls(&self) -> std::io::Result<ServerTls> {
        ServerTls::from_files(self.certificate(), self.key())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A tool with a result that does not fit into the buffers of a connection.
fn long() -> Tool {
    tool("long", async |_: RequestContext, _: NoArguments| "x".repeat(32 << 20))
}

/// Serves with TLS; returns the port, and what stops it.
async fn start(
    tls: ServerTls,
    change: impl FnOnce(HttpServer) -> HttpServer,
) -> (u16, tokio::sync::oneshot::Sender<()>, tokio::task::JoinHandle<mcp_transport_http::Drained>) {
    let listener = change(HttpServer::bind("127.0.0.1:0").await.expect("a port").tls(tls));
    assert!(listener.url().starts_with("https://127.0.0.1:"), "{}", listener.url());
    let port = listener.address().port();
    let options = HttpOptions::default().sessions(SessionMode::Stateful);
    let service =
        HttpService::with_options(Server::builder("tls", "1.0").tool(long()).build().expect("a server"), options);
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let served = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        listener.serve(service, stopped).await
    });
    (port, stop, served)
}

async fn connect(port: u16, authority: &Authority, mode: Mode) -> Result<Client, Error> {
    let root = reqwest::Certificate::from_pem(authority.pem().as_bytes()).expect("a certificate");
    let transport = HttpTransport::new(format!("https://localhost:{port}/mcp"))
        .expect("a URL")
        .configure_http_client(move |builder| builder.tls_certs_only([root]));
    within(builder().mode(mode).connect(transport)).await
}

/// Connects a client that knows these protocols.
async fn handshake(port: u16, authority: &Authority, protocols: &[&[u8]]) -> std::io::Result<TlsStream<TcpStream>> {
    use rustls::pki_types::pem::PemObject as _;
    let mut roots = rustls::RootCertStore::empty();
    let root = rustls::pki_types::CertificateDer::from_pem_slice(authority.pem().as_bytes()).expect("a certificate");
    roots.add(root).expect("a root");
    let mut config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let name = rustls::pki_types::ServerName::try_from("localhost").expect("a name");
    connector.connect(name, TcpStream::connect(("127.0.0.1", port)).await?).await
}

/// Returns the protocol that a client gets.
async fn negotiate(port: u16, authority: &Authority, protocols: &[&[u8]]) -> std::io::Result<Option<Vec<u8>>> {
    let stream = handshake(port, authority, protocols).await?;
    Ok(stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec))
}

/// Clients of both eras are served over TLS, and a drain ends as it does without.
#[tokio::test]
async fn clients_are_served_over_tls() {
    let authority = Authority::new();
    let files = Files::new(&authority.issue("localhost"));
    let (port, stop, served) = start(files.tls().unwrap(), |server| server).await;
    for (mode, revision) in [(Mode::Auto, Revision::V2026_07_28), (Mode::Legacy, Revision::LATEST_LEGACY)] {
        let client = connect(port, &authority, mode).await.unwrap();
        assert_eq!(client.revision(), Some(revision));
        within(client.close()).await;
    }
    stop.send(()).unwrap();
    assert_eq!(within(served).await.unwrap().aborted, 0);
}

/// HTTP/2 is preferred, HTTP/1.1 is possible, and a client that knows neither is refused.
#[tokio::test]
async fn protocols_are_negotiated() {
    let authority = Authority::new();
    let files = Files::new(&authority.issue("localhost"));
    let (port, _stop, _served) = start(files.tls().unwrap(), |server| server).await;
    let negotiated = async |protocols: &[&[u8]]| within(negotiate(port, &authority, protocols)).await;
    assert_eq!(negotiated(&[b"http/1.1", b"h2"]).await.unwrap().as_deref(), Some(&b"h2"[..]));
    assert_eq!(negotiated(&[b"http/1.1"]).await.unwrap().as_deref(), Some(&b"http/1.1"[..]));
    assert_eq!(negotiated(&[]).await.unwrap(), None);
    assert!(negotiated(&[b"spdy/3"]).await.is_err());
}

/// New connections get a certificate that has replaced the old one; files that do not belong together change nothing.
#[tokio::test]
async fn certificates_are_read_again() {
    let (old, new) = (Authority::named("old"), Authority::named("new"));
    let files = Files::new(&old.issue("localhost"));
    let tls = files.tls().unwrap().reload_interval(Duration::from_millis(20));
    let (port, _stop, _served) = start(tls, |server| server).await;
    connect(port, &old, Mode::Auto).await.unwrap();
    let next = new.issue("localhost");
    std::fs::write(files.certificate(), &next.certificate).unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    connect(port, &old, Mode::Auto).await.unwrap();
    std::fs::write(files.key(), &next.key).unwrap();
    within(async {
        while connect(port, &new, Mode::Auto).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert!(matches!(connect(port, &old, Mode::Auto).await, Err(Error::Closed(_))));
    // Without files it goes on.
    std::fs::remove_file(files.key()).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    connect(port, &new, Mode::Auto).await.unwrap();
}

/// A client that does not complete the handshake is disconnected, and does not keep others out for longer.
#[tokio::test]
async fn the_handshake_has_a_timeout() {
    let authority = Authority::new();
    let files = Files::new(&authority.issue("localhost"));
    let tls = files.tls().unwrap().handshake_timeout(Duration::from_millis(300));
    let (port, _stop, _served) = start(tls, |server| server.max_connections(1)).await;
    let started = Instant::now();
    let mut silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    silent.write_all(&[0x16, 0x03]).await.unwrap();
    assert_eq!(within(silent.read(&mut [0; 64])).await.unwrap_or(0), 0);
    assert!(started.elapsed() >= Duration::from_millis(250), "{:?}", started.elapsed());
    connect(port, &authority, Mode::Auto).await.unwrap();
}

/// A client that does not read its response is disconnected, as it is without TLS.
#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let authority = Authority::new();
    let files = Files::new(&authority.issue("localhost"));
    let limit = |server: HttpServer| server.max_connections(1).stall_timeout(Duration::from_millis(300));
    let (port, _stop, _served) = start(files.tls().unwrap(), limit).await;
    let mut stream = handshake(port, &authority, &[b"http/1.1"]).await.unwrap();
    let message = envelope::modern_request(1, "tools/call", json!({ "name": "long", "arguments": {} }));
    let mut request = "POST /mcp HTTP/1.1\r\n".to_owned();
    for (name, value) in envelope::http_headers(&message) {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    let body = message.to_string();
    request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    // There is only room for another one once it is gone.
    connect(port, &authority, Mode::Auto).await.unwrap();
    let mut rest = Vec::new();
    assert!(within(stream.read_to_end(&mut rest)).await.is_err(), "{} bytes", rest.len());
}

/// Without TLS there is no service.
#[tokio::test]
async fn plain_requests_are_refused() {
    let authority = Authority::new();
    let files = Files::new(&authority.issue("localhost"));
    let (port, _stop, _served) = start(files.tls().unwrap(), |server| server).await;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(b"GET /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut response = Vec::new();
    let _ = within(stream.read_to_end(&mut response)).await;
    assert!(!response.starts_with(b"HTTP"), "{response:?}");
}

/// Files that cannot be used are an error at the start, which names the file and never its content.
#[test]
fn invalid_files_are_named() {
    let (one, other) = (self_signed("localhost"), self_signed("localhost"));
    let one_line = one.key.replace('\n', "");
    let long = "x".repeat(2 << 20);
    for (certificate, key, name, what) in [
        (&one.certificate, &other.key, "key.pem", "keys"),
        (&one.certificate, &String::new(), "key.pem", "no valid private key"),
        (&one.certificate, &one_line, "key.pem", "no valid private key"),
        (&one.certificate, &long, "key.pem", "more than 1048576 bytes"),
        (&String::new(), &one.key, "certificate.pem", "no valid certificates"),
        (&one.key, &one.key, "certificate.pem", "no valid certificates"),
    ] {
        let files = Files::new(&Identity { certificate: certificate.clone(), key: key.clone() });
        let text = files.tls().unwrap_err().to_string();
        assert!(text.contains(name) && text.contains(what), "{text}");
        assert!(!text.contains(&one.key[40..60]), "{text}");
    }
    let files = Files::new(&one);
    std::fs::remove_file(files.key()).unwrap();
    assert!(files.tls().unwrap_err().to_string().contains("key.pem"));
}
