//! The messages that arrived and are not delivered yet.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The queue between the connection, which never waits, and the task that delivers.
pub(crate) struct Inbox {
    state: Mutex<Arrived>,
    wake: Notify,
    max_messages: usize,
    max_bytes: usize,
}

/// What has arrived.
#[derive(Default)]
pub(crate) struct Arrived {
    /// The number of the connection.
    connection: u64,
    pub(crate) messages: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Whether messages were dropped, all of them before those that are here.
    pub(crate) has_lost: bool,
    /// Whether the connection broke.
    pub(crate) is_disconnected: bool,
    pub(crate) is_closed: bool,
}

impl Inbox {
    pub(crate) fn new(max_messages: usize, max_bytes: usize) -> Self {
        Self { state: Mutex::default(), wake: Notify::new(), max_messages, max_bytes }
    }

    /// Removes everything of the connection before, for a new one, whose number this returns.
    pub(crate) fn begin(&self) -> u64 {
        let mut state = self.lock();
        let (connection, is_closed) = (state.connection + 1, state.is_closed);
        *state = Arrived { connection, is_closed, ..Arrived::default() };
        connection
    }

    /// Adds a message of a connection, unless there is a newer one.
    pub(crate) fn push(&self, connection: u64, message: Vec<u8>) {
        let mut state = self.lock();
        if state.connection != connection {
            return;
        }
        state.bytes = state.bytes.saturating_add(message.len());
        state.messages.push_back(message);
        if state.messages.len() > self.max_messages || state.bytes > self.max_bytes {
            (state.messages, state.bytes, state.has_lost) = (VecDeque::new(), 0, true);
        }
        drop(state);
        self.wake.notify_one();
    }

    pub(crate) fn disconnect(&self, connection: u64) {
        let mut state = self.lock();
        if state.connection == connection {
            state.is_disconnected = true;
            drop(state);
            self.wake.notify_one();
        }
    }

    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Waits for something to arrive, and takes it.
    pub(crate) async fn next(&self) -> Arrived {
        loop {
            let arrived = self.take();
            if arrived.has_lost || arrived.is_disconnected || arrived.is_closed || !arrived.messages.is_empty() {
                return arrived;
            }
            self.wake.notified().await;
        }
    }

    /// Takes what has arrived.
    pub(crate) fn take(&self) -> Arrived {
        let mut state = self.lock();
        let (connection, is_closed) = (state.connection, state.is_closed);
        std::mem::replace(&mut *state, Arrived { connection, is_closed, ..Arrived::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Arrived> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those who are too slow learn that they have missed something.
    #[tokio::test]
    async fn losses_are_known() {
        for inbox in [Inbox::new(2, 1000), Inbox::new(10, 2)] {
            let (old, new) = (inbox.begin(), inbox.begin());
            for text in ["a", "b"] {
                inbox.push(new, text.into());
            }
            inbox.push(old, b"old".to_vec());
            inbox.disconnect(old);
            assert!(!inbox.lock().has_lost && !inbox.lock().is_disconnected);
            inbox.push(new, b"c".to_vec());
            inbox.push(new, b"d".to_vec());
            let arrived = inbox.next().await;
            assert_eq!((arrived.has_lost, arrived.messages), (true, [b"d".to_vec()].into()));
            inbox.close();
            let arrived = inbox.next().await;
            assert!(arrived.is_closed && !arrived.has_lost && inbox.is_closed());
        }
    }
}
