//! The right to run the handlers of a session.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_server::Connection;

/// The connection of a session, which at most one task runs at a time, and without a lock.
///
/// ```text
///            take                          give back
///   free ------------> running (a task) ------------> free
///                        ^    |
///                        +----+ wanted by another task meanwhile: it runs once more
/// ```
///
/// A task that finds it running does not wait: it leaves its wish, and whoever runs the connection does what there is to
/// do before it gives it back. So a handler that blocks its thread blocks no other.
pub(crate) struct Runner(Mutex<Slot>);

struct Slot {
    /// The connection, unless a task runs it.
    connection: Option<Connection>,
    is_wanted: bool,
    /// Tasks that need the connection for themselves.
    waiting: Vec<Waker>,
}

impl Runner {
    pub(crate) fn new(connection: Connection) -> Self {
        Self(Mutex::new(Slot { connection: Some(connection), is_wanted: false, waiting: Vec::new() }))
    }

    /// Takes the connection; whoever has it runs it once more if there is none.
    pub(crate) fn take(&self) -> Option<Held<'_>> {
        let mut slot = self.lock();
        let connection = slot.connection.take();
        slot.is_wanted = connection.is_none();
        drop(slot);
        connection.map(|connection| Held { runner: self, connection: Some(connection) })
    }

    /// Waits for the connection.
    pub(crate) fn poll_take(&self, cx: &Context<'_>) -> Poll<Held<'_>> {
        let waker = cx.waker().clone();
        let mut slot = self.lock();
        if let Some(connection) = slot.connection.take() {
            drop(slot);
            return Poll::Ready(Held { runner: self, connection: Some(connection) });
        }
        if !slot.waiting.iter().any(|waiting| waiting.will_wake(&waker)) {
            slot.waiting.push(waker);
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connection, for the task that runs it. Dropping it gives it back whoever wants it: the session has to be run
/// after that.
pub(crate) struct Held<'a> {
    runner: &'a Runner,
    connection: Option<Connection>,
}

impl Held<'_> {
    /// Does something with the connection.
    pub(crate) fn with<R>(&mut self, work: impl FnOnce(&mut Connection) -> R) -> Option<R> {
        self.connection.as_mut().map(work)
    }

    /// Gives the connection back, unless another task has wanted it since this was asked last; returns whether it did.
    pub(crate) fn give_back(&mut self) -> bool {
        self.put_back(false)
    }

    fn put_back(&mut self, even_if_wanted: bool) -> bool {
        let mut slot = self.runner.lock();
        if std::mem::take(&mut slot.is_wanted) && !even_if_wanted {
            return false;
        }
        slot.connection = self.connection.take();
        let waiting = std::mem::take(&mut slot.waiting);
        drop(slot);
        waiting.into_iter().for_each(Waker::wake);
        true
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.connection.is_some() {
            self.put_back(true);
        }
    }
}
