//! When the client wants to be woken.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use mcp_client::{Link, Order};
use mcp_kernel::Time;
use tokio::time::{Sleep, sleep};

/// The time that the latest [`Order::WakeAt`] named. It outlives the server, whom others wait for.
#[derive(Default)]
pub(super) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    pub(super) fn set(&mut self, link: &Link, at: Time) {
        self.0 = Some(Box::pin(sleep(at.duration_since(link.now()))));
    }

    /// Wakes the client when it is time; returns whether it was.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, link: &mut Link) -> bool {
        let is_due = self.0.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready());
        if is_due {
            self.0 = None;
            link.timeout();
        }
        is_due
    }

    /// Does what can be done while nothing can be sent; ready when the client is closed.
    pub(super) fn poll_blocked(&mut self, cx: &mut Context<'_>, link: &mut Link) -> Poll<()> {
        loop {
            while let Poll::Ready(order) = link.poll_blocked(cx) {
                match order {
                    Some(Order::WakeAt(at)) => self.set(link, at),
                    Some(_) => {}
                    None => return Poll::Ready(()),
                }
            }
            if !self.poll(cx, link) {
                return Poll::Pending;
            }
        }
    }

    /// Waits for something while there is no server; `None` if the client is closed first.
    pub(super) async fn meanwhile<T>(&mut self, link: &mut Link, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        poll_fn(|cx| match self.poll_blocked(cx, link) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => future.as_mut().poll(cx).map(Some),
        })
        .await
    }
}
