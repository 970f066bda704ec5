//! The HTTP server: accepts connections and routes their requests.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_server::Server;
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use super::connection::{ConnectionOptions, serve_connection};
use super::layered::AddLayer;
use super::routes::Routes;
use super::status::StatusServer;
#[cfg(feature = "serve-tls")]
use super::tls::ServerTls;
use crate::server::legacy_sse::LegacySseService;
use crate::server::options::HttpOptions;
use crate::server::pacer::after;
use crate::server::service::HttpService;
use crate::server::shutdown::Drained;

/// Serves at `http://ADDRESS/mcp` with the default [`HttpOptions`], for clients on this machine, until Ctrl-C or SIGTERM.
///
/// Requests in flight then have 30 seconds to finish; a second signal aborts them. Use [`HttpServer`] to change the
/// options, the path or the shutdown.
///
/// # Errors
///
/// Returns an error if the address cannot be bound, or if the server
/// [requires sessions](mcp_server::ServerBuilder::requires_sessions), which the default options do not enable. Use
/// [`HttpServer`] and [`HttpOptions::sessions`] for such a server.
pub async fn serve(server: Server, address: impl ToSocketAddrs) -> io::Result<()> {
    let service = HttpService::try_with_options(server, HttpOptions::default())?;
    let listener = HttpServer::bind(address).await?;
    let second_signal = async {
        shutdown_signal().await;
        shutdown_signal().await;
    };
    tokio::select! {
        _ = listener.serve(service, shutdown_signal()) => {}
        // The second signal skips the graceful shutdown.
        () = second_signal => {}
    }
    Ok(())
}

/// Completes when the process receives Ctrl-C or SIGTERM.
pub async fn shutdown_signal() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        if let Ok(mut terminated) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            tokio::select! {
                _ = interrupted => {}
                _ = terminated.recv() => {}
            }
            return;
        }
    }
    let _ = interrupted.await;
}

/// A TCP listener that serves an [`HttpService`] over HTTP/1.1 and HTTP/2.
///
/// A request that is refused before its body was read gets its response at once. The rest of the body is then read and
/// discarded (up to 64 MiB, for up to 10 seconds, of at most 256 requests at the same time): most clients read the
/// response only after they sent the whole request, and would see a connection reset instead.
///
/// ```no_run
/// use mcp_server::{BoxFuture, Server};
/// use mcp_transport_http::{HttpOptions, HttpServer, HttpService};
///
/// # async fn run(server: Server) -> std::io::Result<()> {
/// let options = HttpOptions::default().allow_host("mcp.example.com");
/// let listener = HttpServer::bind("0.0.0.0:8000").await?;
/// println!("{}", listener.url());
/// let drained = listener.serve(HttpService::with_options(server, options), std::future::pending()).await;
/// println!("{} requests were aborted", drained.aborted);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    path: String,
    sse: Option<LegacySseService>,
    max_connections: usize,
    drain_delay: Duration,
    drain_timeout: Duration,
    stall_timeout: Duration,
    #[cfg(feature = "serve-tls")]
    tls: Option<ServerTls>,
    pub(super) layers: Vec<AddLayer>,
    status: Option<StatusServer>,
}

impl std::fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpServer").field("address", &self.address).field("path", &self.path).finish_non_exhaustive()
    }
}

/// How long clients may take to read their responses after the drain.
const FINAL_READ_TIMEOUT: Duration = Duration::from_secs(5);

impl HttpServer {
    /// Binds an address. `127.0.0.1:8000` accepts connections from this machine only; `0.0.0.0:8000` accepts all, and
    /// needs [`HttpOptions::allow_host`]. With port 0 the operating system selects one.
    ///
    /// # Errors
    ///
    /// Returns an error if the address cannot be bound.
    pub async fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        Self::new(TcpListener::bind(address).await?)
    }

    /// Uses a listener that is already bound.
    ///
    /// # Errors
    ///
    /// Returns an error if the listener's address cannot be read.
    pub fn new(listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        Ok(Self {
            listener,
            address,
            path: "/mcp".to_owned(),
            sse: None,
            max_connections: 10_000,
            drain_delay: Duration::ZERO,
            drain_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(60),
            #[cfg(feature = "serve-tls")]
            tls: None,
            layers: Vec::new(),
            status: None,
        })
    }

    /// Sets the path of the service. Defaults to `/mcp`.
    pub fn path(mut self, path: &str) -> Self {
        self.path = format!("/{}", path.trim_start_matches('/'));
        self
    }

    /// Serves HTTP+SSE in addition, for clients of 2024-11-05: event streams at `/sse`, messages at `/message` or the
    /// [`message_path`](LegacySseService::message_path). Off by default.
    ///
    /// ```no_run
    /// use mcp_server::{BoxFuture, Server};
    /// use mcp_transport_http::{HttpOptions, HttpServer, HttpService, SessionMode};
    ///
    /// # async fn run(server: Server) -> Result<(), Box<dyn std::error::Error>> {
    /// let options = HttpOptions::default().sessions(SessionMode::Stateful);
    /// let service = HttpService::with_options(server, options);
    /// let listener = HttpServer::bind("127.0.0.1:8000").await?.legacy_sse(service.legacy_sse()?);
    /// listener.serve(service, std::future::pending()).await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn legacy_sse(mut self, sse: LegacySseService) -> Self {
        self.sse = Some(sse);
        self
    }

    /// Sets the maximum number of connections; further ones are accepted when one is closed. Defaults to 10,000.
    pub fn max_connections(mut self, count: usize) -> Self {
        self.max_connections = count;
        self
    }

    /// Sets how long the server goes on serving as before when shutdown begins, with `/readyz` of its
    /// [status](Self::status) already at 503. Defaults to zero.
    ///
    /// A load balancer sends requests to an instance until it has noticed that the instance is not ready. Without a delay,
    /// the connections that it opens meanwhile are refused. Set it to a little more than the load balancer takes: in
    /// Kubernetes some 5 seconds until all nodes know that a pod terminates, elsewhere the interval of its health checks
    /// multiplied by the number of failures that it waits for. The shutdown takes the delay, the
    /// [`drain_timeout`](Self::drain_timeout) and 5 seconds at most.
    pub fn drain_delay(mut self, delay: Duration) -> Self {
        self.drain_delay = delay;
        self
    }

    /// Sets how long requests in flight may take to finish during shutdown. Defaults to 30 seconds.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// Sets how long a client may read nothing of a response. Defaults to 60 seconds.
    ///
    /// A request counts as [in flight](HttpOptions::max_in_flight) until its response is sent, so a client that does not
    /// read uses up the limit. An HTTP/1.1 connection is closed. Of an HTTP/2 connection the stream is reset, even if the
    /// client responds to pings and reads other streams; the connection is closed if the stream's window is smaller than
    /// 16 KiB. Progress is every 64 KiB sent, or the rest of a response.
    pub fn stall_timeout(mut self, timeout: Duration) -> Self {
        self.stall_timeout = timeout;
        self
    }

    /// Serves `/healthz`, `/readyz` and `/metrics` in addition, on an address of their own, until the drain has ended. Off by
    /// default.
    pub fn status(mut self, status: StatusServer) -> Self {
        self.status = Some(status);
        self
    }

    /// Serves with TLS. All limits of connections apply; the handshake has a timeout of its own.
    #[cfg(feature = "serve-tls")]
    pub fn tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Returns the address that the server is bound to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of the service, for clients on this machine.
    #[must_use]
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            // `0.0.0.0` accepts connections, but is not an address to connect to.
            address.set_ip(if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
        }
        format!("{}://{address}{}", self.scheme(), self.path)
    }

    #[cfg(feature = "serve-tls")]
    fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    #[cfg(not(feature = "serve-tls"))]
    fn scheme(&self) -> &'static str {
        "http"
    }

    /// Serves until `stop` completes and the [`drain_delay`](Self::drain_delay) is over, then drains for up to
    /// [`drain_timeout`](Self::drain_timeout).
    pub async fn serve(self, service: HttpService, stop: impl Future<Output = ()>) -> Drained {
        let is_stopping = Arc::new(AtomicBool::new(false));
        // Dropped at the end, which aborts it.
        let mut status = JoinSet::new();
        if let Some(server) = self.status {
            status.spawn(server.serve(service.clone(), Arc::clone(&is_stopping)));
        }
        let mut stop = pin!(async {
            stop.await;
            is_stopping.store(true, Ordering::Relaxed);
            if !self.drain_delay.is_zero() {
                tokio::time::sleep_until(after(self.drain_delay)).await;
            }
        });
        let places = Arc::new(Semaphore::new(self.max_connections.min(Semaphore::MAX_PERMITS)));
        let other = self.sse.as_ref().map(LegacySseService::http).filter(|http| !Arc::ptr_eq(&http.0, &service.0));
        let routes = Routes::new(self.path, service.clone(), self.sse);
        let routes = Arc::new(self.layers.into_iter().fold(routes, Routes::layer));
        let (ending, _) = watch::channel(false);
        let mut connections = JoinSet::new();
        let options = ConnectionOptions {
            stall_timeout: self.stall_timeout,
            #[cfg(feature = "serve-tls")]
            tls: self.tls.as_ref().map(ServerTls::handshakes),
        };
        #[cfg(feature = "serve-tls")]
        let mut reload = pin!(async {
            match self.tls {
                Some(tls) => tls.reload().await,
                None => std::future::pending().await,
            }
        });
        #[cfg(not(feature = "serve-tls"))]
        let mut reload = std::future::pending::<()>();
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = accept(&self.listener, &places) => accepted,
                // Reaps closed connections.
                Some(_) = connections.join_next() => continue,
                () = &mut reload => continue,
            };
            let (stream, place) = accepted;
            let (routes, ending, options) = (Arc::clone(&routes), ending.subscribe(), options.clone());
            connections.spawn(async move {
                serve_connection(stream, routes, ending, options).await;
                drop(place);
            });
        }
        drop(self.listener);
        // Idle connections are closed at once, others after their requests.
        let _ = ending.send(true);
        let end = after(self.drain_timeout.saturating_add(FINAL_READ_TIMEOUT));
        let drain_other = async {
            match other {
                Some(other) => other.drain(self.drain_timeout).await,
                None => Drained::default(),
            }
        };
        let (mut drained, others) = tokio::join!(service.drain(self.drain_timeout), drain_other);
        drained.finished += others.finished;
        drained.aborted += others.aborted;
        // Clients may not have read their responses yet.
        let closed = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout_at(end, closed).await.is_err() {
            drained.aborted += connections.len();
        }
        connections.shutdown().await;
        drained
    }
}

/// Accepts a connection once there are fewer than the maximum.
async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    loop {
        // The semaphore is never closed.
        let place = Arc::clone(places).acquire_owned().await.ok();
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) => {
                tracing::warn!(target: "mcp", %error, "failed to accept a connection");
                // Usually there are too many open files; accepting again at once would spin.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
