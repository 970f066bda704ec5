//! How to reach a server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_client::{Clock, Closed, CredentialSource, Transport, TransportHandle, TransportKind};
use reqwest::{ClientBuilder, Url};

use super::authorizer::{Authorizer, Credential, Fixed, InvalidCredential};
use super::driver::Driver;
use super::fingerprint::{AuthorizerFingerprint, Fingerprinter};
use super::request::headers::is_reserved;
use super::request::sender::{RequestSender, describe, own_client};
use crate::clock::now;

/// Reaches a server over HTTP: one of any revision, at one address.
///
/// What is sent and how answers come depends on what the server is, which the client finds out: modern servers know
/// nothing but requests, legacy ones may have a session and a stream of their own, and the oldest ones (HTTP+SSE) are
/// found by their stream.
///
/// ```no_run
/// use mcp_client::Client;
/// use mcp_transport_http::HttpTransport;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let transport = HttpTransport::new("http://127.0.0.1:8000/mcp")?;
/// let client = Client::connect(transport).await?;
/// for tool in client.tools().all().await? {
///     println!("{}", tool.name);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Panics
///
/// A client that uses it panics outside of a tokio runtime with I/O and time enabled.
#[must_use = "a transport does nothing before a client connects with it"]
pub struct HttpTransport {
    url: Url,
    client: ClientSource,
    headers: HeaderMap,
    authorizer: Option<Arc<dyn Authorizer>>,
    pub(crate) options: Options,
    fingerprints: Fingerprinter,
}

/// Who sends requests.
enum ClientSource {
    /// A client of our own, which the application may have set up further.
    Own(Option<Setup>),
    Given(reqwest::Client),
}

type Setup = Box<dyn FnOnce(ClientBuilder) -> ClientBuilder + Send>;

/// What a transport was told, apart from what it needs for each request.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) end_session_on_close: bool,
    pub(crate) standalone_stream: bool,
    pub(crate) legacy_sse_fallback: bool,
    pub(crate) max_reconnects: u32,
    pub(crate) reconnect_interval: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) body_limit: usize,
    pub(crate) event_limit: usize,
    /// Takes the place of the network.
    #[cfg(feature = "internals")]
    pub(crate) script: Option<super::internals::Script>,
}

/// How many bytes an answer, or one event of a stream, may have unless told.
const DEFAULT_LIMIT: usize = 16 << 20;

impl HttpTransport {
    /// Reaches the server at an address, which is used as it is. A name and a password in it are shown to the server,
    /// unless an [`authorizer`](Self::authorizer) has something else to show.
    ///
    /// # Errors
    ///
    /// Fails if the address is not one of HTTP.
    pub fn new(url: impl AsRef<str>) -> Result<Self, InvalidUrl> {
        let url = Url::parse(url.as_ref()).map_err(|fault| InvalidUrl(fault.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(InvalidUrl(format!("`{}` is not http or https", url.scheme())));
        }
        Ok(Self {
            url,
            client: ClientSource::Own(None),
            headers: HeaderMap::new(),
            authorizer: None,
            options: Options {
                end_session_on_close: true,
                standalone_stream: true,
                legacy_sse_fallback: true,
                max_reconnects: 5,
                reconnect_interval: Duration::from_secs(1),
                connect_timeout: Duration::from_secs(30),
                body_limit: DEFAULT_LIMIT,
                event_limit: DEFAULT_LIMIT,
                #[cfg(feature = "internals")]
                script: None,
            },
            fingerprints: Fingerprinter::new(),
        })
    }

    /// Sends requests with a client that is set up elsewhere, so that connections are shared.
    ///
    /// It should not have a timeout for whole requests, because streams are long, and should not follow redirects: what
    /// comes from another origin in the end is refused, but was sent there. Default: a client of our own, which follows
    /// 307 and 308 within the origin alone.
    pub fn http_client(mut self, client: reqwest::Client) -> Self {
        self.client = ClientSource::Given(client);
        self
    }

    /// Sets up the client of our own further: proxies, certificates, a name of the application.
    pub fn configure_http_client(
        mut self,
        setup: impl FnOnce(ClientBuilder) -> ClientBuilder + Send + 'static,
    ) -> Self {
        self.client = ClientSource::Own(Some(Box::new(setup)));
        self
    }

    /// Adds a header to every request. Headers of the protocol are its own: they are left out.
    // S4.61
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        if !is_reserved(&name) {
            self.headers.append(name, value);
        }
        self
    }

    /// Shows a token with every request.
    ///
    /// # Errors
    ///
    /// Fails if the token has characters that no header can have.
    pub fn bearer(self, token: &str) -> Result<Self, InvalidCredential> {
        Ok(self.authorizer(Fixed(Credential::bearer(token)?)))
    }

    /// Asks for what to show to the server before each request, and again if the server refuses.
    pub fn authorizer(mut self, authorizer: impl Authorizer) -> Self {
        self.authorizer = Some(Arc::new(authorizer));
        self
    }

    /// Whether a legacy session ends with the client. Default: yes. Without, it can be gone on with by
    /// [`ClientBuilder::resume`](mcp_client::ClientBuilder::resume).
    // S4.59
    pub fn end_session_on_close(mut self, owns: bool) -> Self {
        self.options.end_session_on_close = owns;
        self
    }

    /// Whether to open the stream on which a legacy server tells what belongs to no call: changes, and questions that
    /// come by themselves. It costs one connection. Default: yes.
    // S4.62
    pub fn standalone_stream(mut self, open: bool) -> Self {
        self.options.standalone_stream = open;
        self
    }

    /// Whether to look for a server of 2024-11-05, with two addresses, where there is no other. Default: yes.
    // DU-38
    pub fn legacy_sse_fallback(mut self, look: bool) -> Self {
        self.options.legacy_sse_fallback = look;
        self
    }

    /// How often in a row to try to come back to a stream of a legacy server. Default: 5.
    // S4.56
    pub fn max_reconnects(mut self, most: u32) -> Self {
        self.options.max_reconnects = most;
        self
    }

    /// How long to wait before coming back to a stream, if the server does not say: twice as long after each attempt
    /// that failed, up to 30 s, and a little more by chance. Default: 1 s.
    // S4.56
    pub fn reconnect_interval(mut self, interval: Duration) -> Self {
        self.options.reconnect_interval = interval;
        self
    }

    /// How long it may take to connect; a client that is set up elsewhere has a limit of its own. Default: 30 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.options.connect_timeout = timeout;
        self
    }

    /// How many bytes an answer may have. Default: 16 MiB.
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.options.body_limit = bytes;
        self
    }

    /// How many bytes one event of a stream may have, and with it each line. Default: 16 MiB.
    pub fn event_limit(mut self, bytes: usize) -> Self {
        self.options.event_limit = bytes;
        self
    }
}

impl Transport for HttpTransport {
    fn kind(&self) -> TransportKind {
        TransportKind::RequestPerCall
    }

    fn clock(&self) -> Clock {
        Arc::new(now)
    }

    fn credentials(&self) -> Option<Arc<dyn CredentialSource>> {
        let authorizer = Arc::clone(self.authorizer.as_ref()?);
        Some(Arc::new(AuthorizerFingerprint { authorizer, fingerprints: self.fingerprints }))
    }

    fn start(self, handle: TransportHandle) {
        let Self { url, client, mut headers, authorizer, options, fingerprints } = self;
        let client = match client {
            ClientSource::Given(client) => Ok(client),
            ClientSource::Own(setup) => {
                own_client(options.connect_timeout, setup.unwrap_or_else(|| Box::new(|own| own)))
            }
        };
        // A name and a password in the address become a header, which is left out where there is one already.
        let request = client.and_then(|client| match client.get(url).build() {
            Ok(request) => Ok((client, request)),
            Err(fault) => Err(describe(&fault)),
        });
        match request {
            Ok((client, mut request)) => {
                if let Some(password) = request.headers_mut().remove(AUTHORIZATION) {
                    headers.entry(AUTHORIZATION).or_insert(password);
                }
                let url = request.url().clone();
                let sender = RequestSender::new(client, url, headers, authorizer, options, fingerprints);
                drop(tokio::spawn(Driver::run(sender, handle)));
            }
            Err(why) => handle.close(Closed::Disconnected(format!("cannot create an HTTP client: {why}"))),
        }
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What else is in an address, or in headers, may be secret.
        f.debug_struct("HttpTransport")
            .field("origin", &self.url.origin().ascii_serialization())
            .field("path", &self.url.path())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// An address that no server can have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidUrl(String);

impl fmt::Display for InvalidUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the address of the server is invalid: {}", self.0)
    }
}

impl std::error::Error for InvalidUrl {}
