//! What operators ask a server: whether it lives, whether it is ready, and its metrics.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method as Verb, Request, Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::task::JoinSet;

use crate::server::body::ResponseBody;
use crate::server::service::HttpService;
use crate::server::shutdown::Stage;

/// Serves `/healthz`, `/readyz` and `/metrics` on an address of its own, beside an [`HttpServer`](crate::HttpServer): see
/// [`HttpServer::status`](crate::HttpServer::status).
///
/// | path | response |
/// |---|---|
/// | `/healthz` | 200 as long as the process serves |
/// | `/readyz` | 200 while the server wants new requests, 503 as soon as its shutdown begins: see [`HttpServer::drain_delay`](crate::HttpServer::drain_delay) |
/// | `/metrics` | what the function of [`metrics`](Self::metrics) returns, in the text format of Prometheus; 404 without one |
///
/// Requests are not authenticated, so bind an address that only operators can reach. The host of a request has to be an IP
/// address, `localhost`, or one that [`allow_host`](Self::allow_host) allows, so that web pages cannot read the metrics.
///
/// # Examples
///
/// ```no_run
/// use mcp_server::Server;
/// use mcp_transport_http::{HttpServer, HttpService, StatusServer};
///
/// # async fn run(server: Server) -> std::io::Result<()> {
/// let status = StatusServer::bind("127.0.0.1:9464").await?;
/// let listener = HttpServer::bind("127.0.0.1:8000").await?.status(status);
/// listener.serve(HttpService::new(server), mcp_transport_http::shutdown_signal()).await;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct StatusServer {
    listener: TcpListener,
    address: SocketAddr,
    pages: Pages,
}

/// What is responded with.
#[derive(Clone, Default)]
struct Pages {
    metrics: Option<Arc<dyn Fn() -> String + Send + Sync>>,
    hosts: Arc<Vec<String>>,
}

/// The maximum number of connections. Further ones wait.
const MAX_CONNECTIONS: usize = 64;

/// How long a client may take to send its request, so that those who send none do not keep others waiting.
const HEADER_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a connection may take. Each has one request.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// The content type of the text format of Prometheus.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

impl StatusServer {
    /// Binds an address.
    ///
    /// # Errors
    ///
    /// Returns an error if the address cannot be bound.
    pub async fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, pages: Pages::default() })
    }

    /// Sets the function that returns the metrics in the text format of Prometheus, such as that of the crate
    /// `mcp-telemetry`. It must not block for long.
    pub fn metrics(mut self, metrics: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.pages.metrics = Some(Arc::new(metrics));
        self
    }

    /// Allows a host name in requests, without its port.
    pub fn allow_host(mut self, host: &str) -> Self {
        Arc::make_mut(&mut self.pages.hosts).push(host.to_ascii_lowercase());
        self
    }

    /// Returns the address that the server is bound to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is dropped.
    pub(super) async fn serve(self, service: HttpService, is_stopping: Arc<AtomicBool>) {
        let readiness = Readiness { service, is_stopping };
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(serve_connection(stream, self.pages.clone(), readiness.clone()));
                    }
                    Err(error) => {
                        tracing::warn!(target: "mcp", %error, "failed to accept a connection for the status");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

impl std::fmt::Debug for StatusServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StatusServer").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Whether the server wants new requests.
#[derive(Clone)]
struct Readiness {
    service: HttpService,
    /// Set when the shutdown begins, which may be before the service drains.
    is_stopping: Arc<AtomicBool>,
}

impl Readiness {
    fn is_ready(&self) -> bool {
        !self.is_stopping.load(Ordering::Relaxed) && self.service.0.shutdown.stage() == Stage::Serving
    }
}

async fn serve_connection(stream: TcpStream, pages: Pages, readiness: Readiness) {
    let respond = service_fn(move |request: Request<hyper::body::Incoming>| {
        let response = pages.respond(&request, readiness.is_ready());
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).keep_alive(false).max_buf_size(16 << 10);
    // Whatever the client does, the connection ends.
    let _ = tokio::time::timeout(CONNECTION_TIMEOUT, builder.serve_connection(TokioIo::new(stream), respond)).await;
}

impl Pages {
    fn respond<B>(&self, request: &Request<B>, is_ready: bool) -> Response<ResponseBody> {
        if !self.allows_host(request.headers()) {
            return text(StatusCode::FORBIDDEN, "this host is not allowed; see StatusServer::allow_host\n");
        }
        if !matches!(*request.method(), Verb::GET | Verb::HEAD) {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "send a GET\n");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match (request.uri().path(), &self.metrics) {
            ("/healthz", _) => text(StatusCode::OK, "ok\n"),
            ("/readyz", _) if is_ready => text(StatusCode::OK, "ready\n"),
            ("/readyz", _) => text(StatusCode::SERVICE_UNAVAILABLE, "shutting down\n"),
            ("/metrics", Some(metrics)) => {
                let mut response = text(StatusCode::OK, metrics());
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(METRICS_TYPE));
                response
            }
            _ => text(StatusCode::NOT_FOUND, "there are /healthz, /readyz and, if they are set, /metrics\n"),
        }
    }

    /// A web page can make its own host name resolve to this machine, and would then read what is served here.
    fn allows_host(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) else { return false };
        if host.parse::<SocketAddr>().is_ok() || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
            return true;
        }
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name).to_ascii_lowercase();
        name == "localhost" || self.hosts.contains(&name)
    }
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(text.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(pages: &Pages, host: &str, verb: Verb, path: &str, is_ready: bool) -> u16 {
        let request = Request::builder().method(verb).uri(path).header(HOST, host).body(()).unwrap();
        pages.respond(&request, is_ready).status().as_u16()
    }

    #[test]
    fn pages_depend_on_readiness() {
        let mut pages = Pages::default();
        let get = |pages: &Pages, path, is_ready| status(pages, "127.0.0.1:9464", Verb::GET, path, is_ready);
        assert_eq!(get(&pages, "/healthz", true), 200);
        assert_eq!(get(&pages, "/healthz", false), 200);
        assert_eq!(get(&pages, "/readyz", true), 200);
        assert_eq!(get(&pages, "/readyz", false), 503);
        assert_eq!(get(&pages, "/metrics", true), 404);
        assert_eq!(get(&pages, "/", true), 404);
        pages.metrics = Some(Arc::new(|| "up 1\n".to_owned()));
        assert_eq!(get(&pages, "/metrics", false), 200);
        assert_eq!(status(&pages, "127.0.0.1", Verb::POST, "/metrics", true), 405);
    }

    /// A web page whose name resolves to this machine reads nothing.
    #[test]
    fn foreign_hosts_are_refused() {
        let mut pages = Pages::default();
        let get = |pages: &Pages, host| status(pages, host, Verb::GET, "/healthz", true);
        for host in ["127.0.0.1", "10.0.0.1:80", "[::1]:9464", "[::1]", "localhost", "LOCALHOST:1"] {
            assert_eq!(get(&pages, host), 200, "{host}");
        }
        for host in ["evil.example", "evil.example:9464", "", "localhost.evil.example"] {
            assert_eq!(get(&pages, host), 403, "{host}");
        }
        Arc::make_mut(&mut pages.hosts).push("metrics.internal".to_owned());
        assert_eq!(get(&pages, "Metrics.internal:9464"), 200);
    }
}
