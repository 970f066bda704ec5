//! A channel for one value, from the driver to a handler.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

/// Creates both ends.
pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let slot = Arc::new(Mutex::new(Slot { value: None, is_sent: false, waiting: None }));
    (Sender(Arc::clone(&slot)), Receiver(slot))
}

struct Slot<T> {
    value: Option<T>,
    /// Whether the sender was dropped, with or without having sent a value.
    is_sent: bool,
    waiting: Option<Waker>,
}

/// The sending end; dropping it wakes the receiver.
pub(crate) struct Sender<T>(Arc<Mutex<Slot<T>>>);

/// The receiving end.
pub(crate) struct Receiver<T>(Arc<Mutex<Slot<T>>>);

impl<T> Sender<T> {
    pub(crate) fn send(self, value: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).value = Some(value);
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let waiting = {
            let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            slot.is_sent = true;
            slot.waiting.take()
        };
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

impl<T> Receiver<T> {
    /// Waits for the value; returns `None` if the sender was dropped without sending one.
    pub(crate) async fn wait(self) -> Option<T> {
        poll_fn(|cx| {
            // Wakers are cloned and dropped without the lock.
            let mut waiting = Some(cx.waker().clone());
            let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if slot.is_sent {
                return Poll::Ready(slot.value.take());
            }
            std::mem::swap(&mut slot.waiting, &mut waiting);
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_arrives_or_none() {
        let (sender, receiver) = channel();
        let mut waiting: std::pin::Pin<Box<dyn Future<Output = Option<i32>>>> = Box::pin(receiver.wait());
        let mut cx = std::task::Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        sender.send(7);
        assert_eq!(waiting.as_mut().poll(&mut cx), Poll::Ready(Some(7)));
        let (sender, receiver) = channel::<i32>();
        drop(sender);
        assert_eq!(std::pin::pin!(receiver.wait()).poll(&mut cx), Poll::Ready(None));
    }
}
