//! A server of its own, on hyper.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use http::{Method as Verb, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use mcp_server::Server;
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tower_service::Service;

use super::discard::{Discards, RequestBody};
use super::stall_detector::{StallDetector, StreamExecutor, StuckStreams};
use super::stall_timeout::StallTimeout;
use crate::server::body::ResponseBody;
use crate::server::exchange::after;
use crate::server::legacy_sse::{LegacySseFuture, LegacySseService, method_not_allowed};
use crate::server::options::HttpOptions;
use crate::server::refusal::Refusal;
use crate::server::service::{HttpService, ResponseFuture};
use crate::server::shutdown::Drained;

/// Serves at `http://ADDRESS/mcp` until the process is told to end, by Ctrl-C or SIGTERM; then what is at work may
/// finish within 30 s, unless the process is told once more.
///
/// Clients on this machine are answered. [`HttpOptions`] lets in others, and [`HttpServer`] says
/// more about what happens.
///
/// # Errors
///
/// Returns an error if the address cannot be listened at, or if the server
/// [requires sessions](mcp_server::ServerBuilder::requires_sessions): legacy clients have none here. Use [`HttpServer`] and
/// [`HttpOptions::sessions`](HttpOptions::sessions) for such a server.
pub async fn serve(server: Server, address: impl ToSocketAddrs) -> io::Result<()> {
    let service = HttpService::try_with_options(server, HttpOptions::default())?;
    let listener = HttpServer::bind(address).await?;
    let told_again = async {
        shutdown_signal().await;
        shutdown_signal().await;
    };
    tokio::select! {
        _ = listener.serve(service, shutdown_signal()) => {}
        // Somebody does not want to wait.
        () = told_again => {}
    }
    Ok(())
}

/// Ready when the process is told to end, by Ctrl-C or SIGTERM.
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

/// A socket that speaks HTTP/1.1 and HTTP/2, for a [`HttpService`].
///
/// A request that is refused before its body was read gets its response at once. Up to 64 MiB of the body are then read and
/// discarded for up to 10 s, of 256 requests at the same time: most clients send a whole request before they read the
/// response, and would find the connection reset instead.
///
/// ```no_run
/// use mcp_server::Server;
/// use mcp_transport_http::{HttpOptions, HttpServer, HttpService};
///
/// # async fn run(server: Server) -> std::io::Result<()> {
/// let options = HttpOptions::default().allow_host("mcp.example.com");
/// let listener = HttpServer::bind("0.0.0.0:8000").await?;
/// println!("{}", listener.url());
/// let ended = listener.serve(HttpService::with_options(server, options), std::future::pending()).await;
/// println!("{} requests were cut off", ended.aborted);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    path: String,
    sse: Option<LegacySseService>,
    max_connections: usize,
    drain_timeout: Duration,
    stall_timeout: Duration,
}

/// Where the stream of HTTP+SSE is.
const SSE_PATH: &str = "/sse";

/// How long a client may take to send the headers of a request, or to send another request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);

/// How many bytes the headers of a request may have.
const HEADER_BYTES: usize = 64 << 10;

/// How many requests one connection may have at work, which only HTTP/2 allows.
const MAX_STREAMS: u32 = 100;

/// How long clients may take to read what is left for them.
const FINAL_READ_TIMEOUT: Duration = Duration::from_secs(5);

impl HttpServer {
    /// Listens at an address. `127.0.0.1:8000` is for this machine alone; `0.0.0.0:8000` is for all that can reach it,
    /// and needs [`HttpOptions::allow_host`](HttpOptions::allow_host); with port 0 the system chooses one.
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be listened at.
    pub async fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        Self::new(TcpListener::bind(address).await?)
    }

    /// Takes a socket that listens already.
    ///
    /// # Errors
    ///
    /// Fails if the socket does not know its address.
    pub fn new(listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        Ok(Self {
            listener,
            address,
            path: "/mcp".to_owned(),
            sse: None,
            max_connections: 10_000,
            drain_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(60),
        })
    }

    /// The path at which the service is; `/mcp` unless told.
    #[must_use]
    pub fn path(mut self, path: &str) -> Self {
        self.path = format!("/{}", path.trim_start_matches('/'));
        self
    }

    /// Serves clients of 2024-11-05, too, which know nothing but HTTP+SSE: their streams are at `/sse`, and their messages
    /// go to `/message`, unless [`LegacySseService::message_path`] says otherwise. They are not served unless told.
    ///
    /// ```no_run
    /// use mcp_server::Server;
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
    #[must_use]
    pub fn legacy_sse(mut self, sse: LegacySseService) -> Self {
        self.sse = Some(sse);
        self
    }

    /// How many connections are kept at the same time, 10,000 unless told; others wait until one is closed.
    #[must_use]
    pub fn max_connections(mut self, count: usize) -> Self {
        self.max_connections = count;
        self
    }

    /// How long what is at work may take at the end, 30 s unless told.
    #[must_use]
    pub fn drain_timeout(mut self, time: Duration) -> Self {
        self.drain_timeout = time;
        self
    }

    /// Sets how long a client may read nothing of a response that is there for it. Defaults to 60 s.
    ///
    /// A request counts as [in flight](HttpOptions::max_in_flight) until its response is sent, so clients that do not
    /// read take room from others until then. A client of HTTP/1.1 loses its connection; one of HTTP/2 loses the stream
    /// that it does not read, even if it answers pings and reads others, and its connection if the window of the stream
    /// is too small for as much as 16 KiB. As progress counts every 64 KiB that are sent, or the rest of a response.
    #[must_use]
    pub fn stall_timeout(mut self, timeout: Duration) -> Self {
        self.stall_timeout = timeout;
        self
    }

    /// Where the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What clients on this machine are given.
    #[must_use]
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            // That is where everybody is heard, and nobody can be reached.
            address.set_ip(if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
        }
        format!("http://{address}{}", self.path)
    }

    /// Serves until `stop` is ready, and then until what is at work is done, as far as there is time for it.
    pub async fn serve(self, service: HttpService, stop: impl Future<Output = ()>) -> Drained {
        let mut stop = pin!(stop);
        let places = Arc::new(Semaphore::new(self.max_connections.min(Semaphore::MAX_PERMITS)));
        let other = self.sse.as_ref().map(LegacySseService::http).filter(|http| !Arc::ptr_eq(&http.0, &service.0));
        let sse = self.sse.map(|sse| (sse.message_path_beside(SSE_PATH), sse));
        let routes = Arc::new(Routes { path: self.path, service: service.clone(), sse, discards: Discards::default() });
        let (ending, _) = watch::channel(false);
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = accept(&self.listener, &places) => accepted,
                // Those that are over are let go.
                Some(_) = connections.join_next() => continue,
            };
            let (stream, place) = accepted;
            let (routes, ending) = (Arc::clone(&routes), ending.subscribe());
            connections.spawn(async move {
                serve_connection(stream, routes, ending, self.stall_timeout).await;
                drop(place);
            });
        }
        drop(self.listener);
        // Whoever has nothing at work is let go at once; the others when it is done.
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
        // Answers that are there may not have been read yet.
        let gone = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout_at(end, gone).await.is_err() {
            drained.aborted += connections.len();
        }
        connections.shutdown().await;
        drained
    }
}

/// Waits for a connection, and for a place for it.
async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    loop {
        // The semaphore is never closed.
        let place = Arc::clone(places).acquire_owned().await.ok();
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) => {
                tracing::warn!(target: "mcp", %error, "a connection was not accepted");
                // Most often there are too many open files, which takes a moment to get better.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// What is where.
struct Routes {
    path: String,
    service: HttpService,
    /// With the path of its messages.
    sse: Option<(String, LegacySseService)>,
    discards: Discards,
}

impl Routes {
    fn call(&self, request: Request<RequestBody>) -> Routed {
        let path = request.uri().path();
        if path == self.path {
            return Routed::Service(self.service.clone().call(request));
        }
        let Some((messages, sse)) = &self.sse else { return Routed::NotFound };
        let (verb, allowed) = match path {
            SSE_PATH => (Verb::GET, "GET"),
            path if path == messages => (Verb::POST, "POST"),
            _ => return Routed::NotFound,
        };
        if *request.method() != verb {
            return Routed::MethodNotAllowed(allowed);
        }
        Routed::Sse(Box::pin(sse.clone().call(request)))
    }

    async fn respond(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<ResponseBody>, Infallible> {
        let refusal = match self.call(self.discards.wrap(request)) {
            Routed::Service(response) => return response.await,
            Routed::Sse(response) => return response.await,
            Routed::MethodNotAllowed(allowed) => method_not_allowed(allowed),
            Routed::NotFound => Refusal::new(StatusCode::NOT_FOUND, "there is nothing at this path"),
        };
        Ok(self.service.0.finish(Err(refusal)))
    }
}

/// Who answers a request.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all requests are of this kind, and are not to cost more for others"
)]
enum Routed {
    Service(ResponseFuture<RequestBody>),
    Sse(Pin<Box<LegacySseFuture<RequestBody>>>),
    /// Clients that look for Streamable HTTP first learn that it is not here.
    MethodNotAllowed(&'static str),
    NotFound,
}

async fn serve_connection(
    stream: TcpStream,
    routes: Arc<Routes>,
    mut ending: watch::Receiver<bool>,
    stall_timeout: Duration,
) {
    // Small messages are not kept back to be sent with others.
    let _ = stream.set_nodelay(true);
    let stuck = Arc::new(StuckStreams::default());
    let mut builder = Builder::new(StreamExecutor { timeout: stall_timeout, stuck: Arc::clone(&stuck) });
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(HEADER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(HEADER_BYTES as u32)
        .keep_alive_interval(HEADER_TIMEOUT);
    let service = service_fn(move |request: Request<Incoming>| Arc::clone(&routes).respond(request));
    let stream = StallTimeout::new(stream, HEADER_TIMEOUT, stall_timeout);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut stall = StallDetector::new(Arc::default(), stall_timeout);
    let mut ending = pin!(async move { ending.wait_for(|is_ending| *is_ending).await.is_ok() });
    let mut stuck_stream = pin!(stuck.wait());
    let mut is_ending = false;
    let served = poll_fn(|cx| {
        if !is_ending && ending.as_mut().poll(cx).is_ready() {
            is_ending = true;
            connection.as_mut().graceful_shutdown();
        }
        if let Poll::Ready(served) = stall.during(|| connection.as_mut().poll(cx)) {
            return Poll::Ready(served);
        }
        if stall.poll(cx).is_pending() {
            if !stuck.has_streams() {
                return Poll::Pending;
            }
            ready!(stuck_stream.as_mut().poll(cx));
        }
        Poll::Ready(Err("the client does not read".into()))
    });
    if let Err(error) = served.await {
        tracing::debug!(target: "mcp", error, "a connection ended");
    }
}
