//! Callbacks at the end of a connection.

use std::panic::AssertUnwindSafe;
use std::task::Poll;

use crate::connection::shared::Shared;

/// Runs the callbacks: last in, first out, each until the future that `bound` creates is ready.
pub(crate) async fn run_teardown<B: Future<Output = ()>>(shared: &Shared, mut bound: impl FnMut() -> B) {
    while let Some(teardown) = shared.pop_teardown() {
        let mut teardown = std::panic::catch_unwind(AssertUnwindSafe(teardown)).map_err(drop);
        let mut bound = std::pin::pin!(bound());
        let outcome = std::future::poll_fn(|cx| {
            let Ok(running) = &mut teardown else { return Poll::Ready(Err(Teardown::Panicked)) };
            match std::panic::catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx))) {
                Ok(Poll::Ready(())) => Poll::Ready(Ok(())),
                Ok(Poll::Pending) => bound.as_mut().poll(cx).map(|()| Err(Teardown::TooLong)),
                Err(_) => Poll::Ready(Err(Teardown::Panicked)),
            }
        });
        match outcome.await {
            Ok(()) => {}
            Err(Teardown::Panicked) => tracing::warn!(target: "mcp", "a teardown callback panicked"),
            Err(Teardown::TooLong) => {
                tracing::warn!(target: "mcp", "a teardown callback took too long and was dropped");
            }
        }
    }
}

/// How a teardown callback failed.
enum Teardown {
    Panicked,
    TooLong,
}
