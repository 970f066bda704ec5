//! Serves one connection.

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::byte_stream::ByteStream;
use super::client_stream::{ClientStream, HttpVersion};
#[cfg(feature = "http2")]
use super::http2::serve_http2;
use super::idle_timeout::IdleTimeout;
use super::quiet_waker::QuietWaker;
use super::routes::{ConnectionService, Routes};
use super::stall_detector::StallDetector;
#[cfg(feature = "serve-tls")]
use super::tls::TlsHandshakes;
use crate::server::unsent::UnsentFrames;

/// How long a client may take to send the headers of a request, and how long a connection may be idle.
pub(super) const HEADER_TIMEOUT: Duration = Duration::from_secs(60);

/// The maximum size of a request's headers in bytes.
pub(super) const HEADER_BYTES: usize = 64 << 10;

/// Why a connection was closed.
pub(super) type Reason = Box<dyn Error + Send + Sync>;

const NO_REQUEST: &str = "header timeout: the client sends no request";

/// The client did not read in time.
#[derive(Debug, thiserror::Error)]
#[error("stall timeout: the client does not read")]
pub(super) struct Stalled;

/// How connections are accepted.
#[derive(Clone)]
pub(super) struct ConnectionOptions {
    pub(super) stall_timeout: Duration,
    #[cfg(feature = "serve-tls")]
    pub(super) tls: Option<TlsHandshakes>,
}

impl ConnectionOptions {
    /// Completes the TLS handshake, if there is one, and detects the HTTP version.
    #[cfg_attr(not(feature = "serve-tls"), expect(unused_variables, reason = "only TLS has a timeout of its own"))]
    async fn accept(&self, stream: TcpStream, since: Instant) -> io::Result<(HttpVersion, ClientStream)> {
        #[cfg(feature = "serve-tls")]
        if let Some(tls) = &self.tls {
            // Boxed, so that it takes no room in connections without TLS.
            let stream = Box::pin(tls.accept(stream, since)).await?;
            return ClientStream::accept(ByteStream::Tls(Box::new(stream)), self.stall_timeout).await;
        }
        ClientStream::accept(ByteStream::Plain(stream), self.stall_timeout).await
    }
}

/// Serves the requests of a connection until it is closed. `ending` changes when no further requests are served.
pub(crate) async fn serve_connection(
    stream: TcpStream,
    routes: Arc<Routes>,
    mut ending: watch::Receiver<bool>,
    options: ConnectionOptions,
) {
    // Small messages are sent without delay.
    let _ = stream.set_nodelay(true);
    let since = Instant::now();
    let accepted = tokio::select! {
        accepted = options.accept(stream, since) => accepted,
        _ = ending.changed() => return,
        () = sleep_until(since + HEADER_TIMEOUT) => Err(io::Error::new(io::ErrorKind::TimedOut, NO_REQUEST)),
    };
    let (stall_timeout, service) = (options.stall_timeout, routes.service().clone());
    let served = match accepted {
        Ok((HttpVersion::Http1, stream)) => serve_http1(stream, routes, ending, since, stall_timeout).await,
        // Boxed, as it is larger and rarer.
        #[cfg(feature = "http2")]
        Ok((HttpVersion::Http2, stream)) => Box::pin(serve_http2(stream, routes, ending, stall_timeout)).await,
        Err(error) => Err(error.into()),
    };
    if let Err(error) = served {
        if is_stall(&*error) {
            service.0.observe_slow_reader();
        }
        tracing::debug!(target: "mcp", error, "connection closed");
    }
}

/// Returns whether a connection was closed because the client did not read: by us, or by hyper, whose write failed.
fn is_stall(error: &(dyn Error + 'static)) -> bool {
    let of_io = |error: &io::Error| error.get_ref().is_some_and(|inner| inner.is::<Stalled>());
    error.is::<Stalled>()
        || error.downcast_ref::<io::Error>().is_some_and(of_io)
        || error.source().is_some_and(is_stall)
}

async fn serve_http1(
    stream: ClientStream,
    routes: Arc<Routes>,
    mut ending: watch::Receiver<bool>,
    since: Instant,
    stall_timeout: Duration,
) -> Result<(), Reason> {
    let unsent = Arc::new(UnsentFrames::default());
    let service = ConnectionService { routes, connection: Some(Arc::clone(&unsent)) };
    // Instead of hyper's timeout, which sets and cancels a timer for each request.
    let mut idle = IdleTimeout::new(Arc::clone(&unsent), since, HEADER_TIMEOUT);
    let mut builder = http1::Builder::new();
    builder.header_read_timeout(None).max_header_size(HEADER_BYTES).max_buf_size(HEADER_BYTES);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut stall = StallDetector::new(unsent, stall_timeout);
    let signal = ending.clone();
    let mut changed = pin!(async move { ending.changed().await.is_ok() });
    let (mut is_watched, mut is_ending) = (false, false);
    let task = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
    let quiet = QuietWaker::wrap(&task);
    poll_fn(|cx| {
        // The waker of a task stays the same, so it is enough to register it once.
        debug_assert!(task.will_wake(cx.waker()));
        let cx = &mut Context::from_waker(&quiet);
        if !is_ending && (!is_watched || signal.has_changed().unwrap_or(true)) {
            is_watched = true;
            if changed.as_mut().poll(cx).is_ready() {
                is_ending = true;
                connection.as_mut().graceful_shutdown();
            }
        }
        if let Poll::Ready(served) = connection.as_mut().poll(cx) {
            return Poll::Ready(served.map_err(Reason::from));
        }
        if stall.poll(cx).is_ready() {
            return Poll::Ready(Err(Stalled.into()));
        }
        idle.poll(cx).map(|()| Err(NO_REQUEST.into()))
    })
    .await
}
