//! The timer of a client.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use mcp_client::{TransportCommand, TransportHandle};
use mcp_kernel::Time;
use tokio::time::{Sleep, sleep};

/// The timer of the latest [`TransportCommand::WakeAt`]. It outlives a server process, so that timeouts fire during a restart.
#[derive(Default)]
pub(super) struct WakeTimer(Option<Pin<Box<Sleep>>>);

impl WakeTimer {
    pub(super) fn set(&mut self, handle: &TransportHandle, at: Time) {
        self.0 = Some(Box::pin(sleep(at.duration_since(handle.now()))));
    }

    /// Polls the timer; returns whether it has fired.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, handle: &mut TransportHandle) -> bool {
        let is_due = self.0.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready());
        if is_due {
            self.0 = None;
            handle.handle_timeout();
        }
        is_due
    }

    /// Drives the client while nothing can be sent; ready when the client is closed.
    pub(super) fn poll_blocked(&mut self, cx: &mut Context<'_>, handle: &mut TransportHandle) -> Poll<()> {
        loop {
            while let Poll::Ready(command) = handle.poll_blocked(cx) {
                match command {
                    Some(TransportCommand::WakeAt(at)) => self.set(handle, at),
                    Some(_) => {}
                    None => return Poll::Ready(()),
                }
            }
            if !self.poll(cx, handle) {
                return Poll::Pending;
            }
        }
    }

    /// Drives the client while it runs a future without a server; `None` if the client is closed first.
    pub(super) async fn run_while<T>(
        &mut self,
        handle: &mut TransportHandle,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let mut future = pin!(future);
        poll_fn(|cx| match self.poll_blocked(cx, handle) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => future.as_mut().poll(cx).map(Some),
        })
        .await
    }
}
