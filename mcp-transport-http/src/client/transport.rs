//! The client transport and its settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, HOST};
use http::{HeaderMap, HeaderName, HeaderValue};
use mcp_client::{Clock, CloseReason, CredentialSource, Transport, TransportHandle, TransportKind};
use reqwest::{ClientBuilder, Url};

use super::authorizer::{Authorizer, Credential, Fixed, InvalidCredential};
use super::driver;
use super::fingerprint::{AuthorizerFingerprint, Fingerprinter};
use super::request::headers::is_reserved;
use super::request::sender::{RequestSender, describe, own_client};
use crate::clock::now;

/// A client transport for Streamable HTTP servers of any revision.
///
/// The client detects the revision of the server: modern servers get independent requests, legacy servers may start a
/// session and a GET stream, and HTTP+SSE servers (2024-11-05) are found by their event stream.
///
/// # Examples
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
/// Connecting panics outside of a tokio runtime with I/O and time enabled.
#[must_use = "a transport does nothing before a client connects with it"]
pub struct HttpTransport {
    url: Url,
    client: ClientSource,
    headers: HeaderMap,
    authorizer: Option<Arc<dyn Authorizer>>,
    pub(crate) options: Options,
    fingerprints: Fingerprinter,
}

/// The HTTP client that sends requests.
enum ClientSource {
    /// Created by the transport, and possibly configured by the application.
    Own(Option<Setup>),
    Given(reqwest::Client),
}

type Setup = Box<dyn FnOnce(ClientBuilder) -> ClientBuilder + Send>;

/// The settings of a transport, without those that are part of each request.
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
    /// Replaces the network, for fuzz targets.
    #[cfg(feature = "internals")]
    pub(crate) script: Option<super::internals::Script>,
}

/// The default maximum size of a response body and of an event in bytes.
const DEFAULT_LIMIT: usize = 16 << 20;

impl HttpTransport {
    /// Creates a transport to the endpoint at `url`, which is used unchanged. A user name and password in the URL are sent
    /// as basic authentication, unless an [`authorizer`](Self::authorizer) provides a credential.
    ///
    /// # Errors
    ///
    /// Returns an error if `url` is not a valid `http` or `https` URL.
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

    /// Sends requests with an existing [`reqwest::Client`], to share its connections.
    ///
    /// It should have no total request timeout, because event streams are long-lived, and should not follow redirects: a
    /// response from another origin is refused, but the request was sent there. Defaults to a client that follows 307 and
    /// 308 within the origin only.
    pub fn http_client(mut self, client: reqwest::Client) -> Self {
        self.client = ClientSource::Given(client);
        self
    }

    /// Configures the HTTP client that the transport creates, for example its proxy, certificates or user agent.
    pub fn configure_http_client(
        mut self,
        setup: impl FnOnce(ClientBuilder) -> ClientBuilder + Send + 'static,
    ) -> Self {
        self.client = ClientSource::Own(Some(Box::new(setup)));
        self
    }

    /// Adds a header to every request. Headers that the protocol itself sets are ignored.
    // S4.61
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        if !is_reserved(&name) {
            self.headers.append(name, value);
        }
        self
    }

    /// Sends a bearer token with every request.
    ///
    /// # Errors
    ///
    /// Returns an error if the token has characters that are not allowed in a header.
    pub fn bearer(self, token: &str) -> Result<Self, InvalidCredential> {
        Ok(self.authorizer(Fixed(Credential::bearer(token)?)))
    }

    /// Sets the source of credentials, which is called before each request, and again if the server responds with 401 or
    /// 403.
    pub fn authorizer(mut self, authorizer: impl Authorizer) -> Self {
        self.authorizer = Some(Arc::new(authorizer));
        self
    }

    /// Sets whether closing the client deletes its legacy session. Defaults to `true`. Otherwise the session can be
    /// continued with [`ClientBuilder::resume_session`](mcp_client::ClientBuilder::resume_session).
    // S4.59
    pub fn end_session_on_close(mut self, end: bool) -> Self {
        self.options.end_session_on_close = end;
        self
    }

    /// Sets whether to open a GET stream in legacy sessions, for notifications and requests of the server that belong to no
    /// call. It uses one connection. Defaults to `true`.
    // S4.62
    pub fn standalone_stream(mut self, open: bool) -> Self {
        self.options.standalone_stream = open;
        self
    }

    /// Sets whether to fall back to HTTP+SSE (2024-11-05) if the server does not support Streamable HTTP. Defaults to
    /// `true`.
    // DU-38
    pub fn legacy_sse_fallback(mut self, enabled: bool) -> Self {
        self.options.legacy_sse_fallback = enabled;
        self
    }

    /// Sets how many times in a row the transport tries to resume a stream of a legacy server. Defaults to 5.
    // S4.56
    pub fn max_reconnects(mut self, max: u32) -> Self {
        self.options.max_reconnects = max;
        self
    }

    /// Sets how long to wait before a stream is resumed, if the server sent no `retry` field. The delay doubles after each
    /// failed attempt, up to 30 seconds, with some jitter. Defaults to 1 second.
    // S4.56
    pub fn reconnect_interval(mut self, interval: Duration) -> Self {
        self.options.reconnect_interval = interval;
        self
    }

    /// Sets the connect timeout. No effect on a client passed to [`http_client`](Self::http_client). Defaults to 30 seconds.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.options.connect_timeout = timeout;
        self
    }

    /// Sets the maximum size of a response body in bytes. Defaults to 16 MiB.
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.options.body_limit = bytes;
        self
    }

    /// Sets the maximum size of an event, and of each of its lines, in bytes. Defaults to 16 MiB.
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
        // Such a client uses HTTP/1.1, and follows redirects to the same host only.
        let is_plain = url.scheme() == "http" && matches!(client, ClientSource::Own(None));
        if is_plain && let Some(host) = host(&url) {
            headers.entry(HOST).or_insert(host);
        }
        let client = match client {
            ClientSource::Given(client) => Ok(client),
            ClientSource::Own(Some(setup)) => own_client(options.connect_timeout, setup),
            // Only requests over HTTP/2 are ever repeated, and all requests would be copied for it.
            ClientSource::Own(None) if is_plain => {
                own_client(options.connect_timeout, |own| own.retry(reqwest::retry::never().max_retries_per_request(0)))
            }
            ClientSource::Own(None) => own_client(options.connect_timeout, |own| own),
        };
        // Credentials in the URL become a header, unless the application set one.
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
                let responses = handle.responses();
                let sender = RequestSender::new(client, url, headers, authorizer, options, fingerprints, responses);
                drop(tokio::spawn(driver::run(sender, handle)));
            }
            Err(why) => handle.close(CloseReason::Disconnected(format!("cannot create an HTTP client: {why}"))),
        }
    }
}

/// Returns the `Host` header for a URL, which the HTTP client would create for each request.
fn host(url: &Url) -> Option<HeaderValue> {
    let host = url.host_str()?;
    match url.port() {
        Some(port) => HeaderValue::try_from(format!("{host}:{port}")).ok(),
        None => HeaderValue::from_str(host).ok(),
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The query and the headers may contain secrets.
        f.debug_struct("HttpTransport")
            .field("origin", &self.url.origin().ascii_serialization())
            .field("path", &self.url.path())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The error of a URL that is not a valid `http` or `https` URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid server URL: {0}")]
#[non_exhaustive]
pub struct InvalidUrl(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_that_of_the_url() {
        for (url, expected) in [
            ("http://example.com/mcp", "example.com"),
            ("http://example.com:80/", "example.com"),
            ("http://user:secret@EXAMPLE.com:8080/mcp?a=b", "example.com:8080"),
            ("http://127.0.0.1:1/", "127.0.0.1:1"),
            ("http://[::1]:8080/", "[::1]:8080"),
        ] {
            assert_eq!(host(&Url::parse(url).unwrap()).unwrap(), expected, "{url}");
        }
    }
}
