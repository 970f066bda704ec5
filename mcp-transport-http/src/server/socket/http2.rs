//! Serves one connection over HTTP/2.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Notify, watch};

use super::client_stream::ClientStream;
use super::connection::{HEADER_BYTES, HEADER_TIMEOUT, Reason, Stalled};
use super::routes::{ConnectionService, Routes};
use super::stall_detector::StallDetector;
use crate::server::service::HttpService;
use crate::server::unsent::UnsentFrames;

/// The maximum number of concurrent requests per connection.
const MAX_STREAMS: u32 = 100;

pub(super) async fn serve_http2(
    stream: ClientStream,
    routes: Arc<Routes>,
    mut ending: watch::Receiver<bool>,
    stall_timeout: Duration,
) -> Result<(), Reason> {
    let slow_reader = Arc::new(SlowReader { is_stuck: Notify::new(), service: routes.service().clone() });
    let service = ConnectionService { routes, connection: None };
    let executor = StreamExecutor { timeout: stall_timeout, slow_reader: Arc::clone(&slow_reader) };
    let mut builder = http2::Builder::new(executor);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(HEADER_BYTES as u32)
        .keep_alive_interval(HEADER_TIMEOUT);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    loop {
        tokio::select! {
            served = connection.as_mut() => return served.map_err(Reason::from),
            Ok(()) = ending.changed() => connection.as_mut().graceful_shutdown(),
            () = slow_reader.is_stuck.notified() => return Err(Stalled.into()),
        }
    }
}

/// Spawns a task for each stream of a connection, and resets streams whose client does not read.
#[derive(Clone)]
struct StreamExecutor {
    timeout: Duration,
    slow_reader: Arc<SlowReader>,
}

/// What happens to a client that does not read.
struct SlowReader {
    /// Signals that a response is stalled after its stream has ended, so that only its connection can be closed.
    is_stuck: Notify,
    /// Reports the streams that were reset.
    service: HttpService,
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let Self { timeout, slow_reader } = self.clone();
        tokio::spawn(async move {
            let unsent = Arc::new(UnsentFrames::of_stream());
            let mut stall = StallDetector::new(Arc::clone(&unsent), timeout);
            let is_done = {
                let mut stream = pin!(stream);
                let run = |cx: &mut Context<'_>| {
                    if unsent.count_during(|| stream.as_mut().poll(cx)).is_ready() {
                        return Poll::Ready(true);
                    }
                    stall.poll(cx).map(|()| false)
                };
                // Dropping the future drops its response, which resets the stream.
                poll_fn(run).await
            };
            if !is_done {
                slow_reader.service.0.observe_slow_reader();
                tracing::debug!(target: "mcp", "stream reset: the client does not read");
                return;
            }
            let is_sent = poll_fn(|cx| match unsent.poll_empty(cx) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending => stall.poll(cx).map(|()| false),
            });
            if !is_sent.await {
                slow_reader.is_stuck.notify_one();
            }
        });
    }
}
