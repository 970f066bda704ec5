//! TLS for the server, with a certificate and a key from files.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A certificate and its key, from PEM files that are read again when they change.
///
/// The file of the certificate has the certificate of the server first, and then those of the intermediate authorities. If
/// the files cannot be used after a change, the previous certificate stays in use and a warning is logged. Clients
/// negotiate HTTP/2 (feature `http2`) or HTTP/1.1, and TLS 1.3 or 1.2.
///
/// # Examples
///
/// ```no_run
/// use mcp_server::Server;
/// use mcp_transport_http::{HttpOptions, HttpServer, HttpService, ServerTls};
///
/// # async fn run(server: Server) -> std::io::Result<()> {
/// let tls = ServerTls::from_files("/etc/mcp/certificate.pem", "/etc/mcp/key.pem")?;
/// let service = HttpService::with_options(server, HttpOptions::default().allow_host("mcp.example.com"));
/// let listener = HttpServer::bind("0.0.0.0:443").await?.tls(tls);
/// listener.serve(service, std::future::pending()).await;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct ServerTls {
    files: Files,
    /// What the files had when they were last read.
    state: FileState,
    certificate: Arc<CurrentCertificate>,
    config: Arc<ServerConfig>,
    reload_interval: Duration,
    handshake_timeout: Duration,
}

/// The maximum size of each file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The protocols that clients may negotiate, the preferred one first.
const PROTOCOLS: &[&[u8]] = &[
    #[cfg(feature = "http2")]
    b"h2",
    b"http/1.1",
];

impl ServerTls {
    /// Reads a certificate chain and the key of its first certificate.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read or is larger than 1 MiB, or if the key does not belong to the certificate.
    pub fn from_files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> io::Result<Self> {
        let files = Files { certificate: certificate.into(), key: key.into() };
        let provider = Arc::new(aws_lc_rs::default_provider());
        // The state comes first, so that a change while the files are read is noticed.
        let state = files.state()?;
        let certificate = Arc::new(CurrentCertificate(RwLock::new(Arc::new(files.read(&provider)?))));
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let resolver = Arc::clone(&certificate) as Arc<dyn ResolvesServerCert>;
        let mut config = builder.map_err(io::Error::other)?.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = PROTOCOLS.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Self {
            files,
            state,
            certificate,
            config: Arc::new(config),
            reload_interval: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
        })
    }

    /// Sets how often to check whether the files have changed, by their size and time of modification. Defaults to 10
    /// seconds.
    pub fn reload_interval(mut self, interval: Duration) -> Self {
        self.reload_interval = interval;
        self
    }

    /// Sets how long a client may take for the TLS handshake. Defaults to 10 seconds.
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// Returns what connections need to accept clients.
    pub(super) fn handshakes(&self) -> TlsHandshakes {
        TlsHandshakes { acceptor: TlsAcceptor::from(Arc::clone(&self.config)), timeout: self.handshake_timeout }
    }

    /// Reads the files again whenever they have changed. Never completes.
    pub(super) async fn reload(mut self) {
        let provider = Arc::clone(self.config.crypto_provider());
        let mut last_error = None;
        loop {
            tokio::time::sleep(self.reload_interval).await;
            let (files, before, provider) = (self.files.clone(), self.state, Arc::clone(&provider));
            // Reading files blocks.
            let reading = tokio::task::spawn_blocking(move || {
                let state = files.state()?;
                let read = (state != before).then(|| files.read(&provider)).transpose();
                Ok::<_, io::Error>((state, read))
            });
            let Ok(read) = reading.await else { continue };
            match read {
                Ok((_, Ok(None))) => last_error = None,
                Ok((state, Ok(Some(certificate)))) => {
                    (self.state, last_error) = (state, None);
                    self.certificate.replace(certificate);
                    tracing::info!(target: "mcp", "the TLS certificate was replaced");
                }
                // Files that are being replaced may not belong together yet, so they are tried again.
                Ok((_, Err(error))) | Err(error) => {
                    let error = error.to_string();
                    if last_error.as_ref() != Some(&error) {
                        tracing::warn!(target: "mcp", error, "the new TLS certificate cannot be used: the old one stays");
                    }
                    last_error = Some(error);
                }
            }
        }
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").field("files", &self.files).finish_non_exhaustive()
    }
}

/// Accepts clients with TLS.
#[derive(Clone)]
pub(super) struct TlsHandshakes {
    acceptor: TlsAcceptor,
    timeout: Duration,
}

impl TlsHandshakes {
    /// Completes the handshake of a connection that was accepted at a time.
    pub(super) async fn accept(&self, stream: TcpStream, since: Instant) -> io::Result<TlsStream<TcpStream>> {
        let expired =
            |_| io::Error::new(io::ErrorKind::TimedOut, "handshake timeout: the client does not complete TLS");
        timeout_at(since + self.timeout, self.acceptor.accept(stream)).await.map_err(expired)?
    }
}

/// The certificate for new connections.
#[derive(Debug)]
struct CurrentCertificate(RwLock<Arc<CertifiedKey>>);

impl CurrentCertificate {
    fn replace(&self, certificate: CertifiedKey) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(certificate);
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// The files of a certificate.
#[derive(Clone, Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// The size and the time of modification of both files.
type FileState = [(u64, Option<SystemTime>); 2];

impl Files {
    fn state(&self) -> io::Result<FileState> {
        let of = |path: &Path| {
            let metadata = fs::metadata(path).map_err(|error| named(path, error))?;
            Ok::<_, io::Error>((metadata.len(), metadata.modified().ok()))
        };
        Ok([of(&self.certificate)?, of(&self.key)?])
    }

    fn read(&self, provider: &CryptoProvider) -> io::Result<CertifiedKey> {
        let chain = CertificateDer::pem_slice_iter(&read_file(&self.certificate)?).collect::<Result<Vec<_>, _>>();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| invalid(&self.certificate, "it has no valid certificates in PEM format"))?;
        // The errors of the parser may quote a line of the file.
        let key = PrivateKeyDer::from_pem_slice(&read_file(&self.key)?);
        let key = key.map_err(|_| invalid(&self.key, "it has no valid private key in PEM format"))?;
        CertifiedKey::from_der(chain, key, provider).map_err(|error| invalid(&self.key, &error.to_string()))
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| named(path, error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(invalid(path, &format!("it has more than {MAX_FILE_BYTES} bytes")));
    }
    Ok(bytes)
}

fn invalid(path: &Path, what: &str) -> io::Error {
    named(path, io::Error::new(io::ErrorKind::InvalidData, what))
}

/// Adds the name of the file to an error.
fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
