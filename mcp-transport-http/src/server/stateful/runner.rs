//! The right to run the handlers of a session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_server::Connection;

use super::readers::Readers;

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
pub(crate) struct Runner {
    /// Which of these it is, for those who wake the session as well.
    readers: Arc<Readers>,
    /// The connection, unless a task runs it: nobody else locks this. Boxed, because it moves for every message.
    connection: Mutex<Option<Box<Connection>>>,
    /// Tasks that need the connection for themselves.
    waiting: Mutex<Vec<Waker>>,
}

impl Runner {
    pub(crate) fn new(connection: Connection, readers: &Arc<Readers>) -> Self {
        let waking = Arc::clone(readers);
        let connection = connection.route_waker(Arc::new(move |route| waking.wake_route(route)));
        Self {
            readers: Arc::clone(readers),
            connection: Mutex::new(Some(Box::new(connection))),
            waiting: Mutex::default(),
        }
    }

    /// Takes the connection; whoever has it runs it once more if another task does.
    pub(crate) fn take(&self) -> Option<Held<'_>> {
        self.readers.try_run().then(|| Held { runner: self, connection: lock(&self.connection).take() })
    }

    /// Waits for the connection.
    pub(crate) fn poll_take(&self, cx: &Context<'_>) -> Poll<Held<'_>> {
        if let Some(held) = self.take() {
            return Poll::Ready(held);
        }
        let waker = cx.waker().clone();
        let mut waiting = lock(&self.waiting);
        if !waiting.iter().any(|other| other.will_wake(&waker)) {
            waiting.push(waker);
        }
        drop(waiting);
        // It may have been given back before there was somebody to wake.
        self.take().map_or(Poll::Pending, Poll::Ready)
    }

    fn wake_waiting(&self) {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        waiting.into_iter().for_each(Waker::wake);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connection, for the task that runs it. Dropping it gives it back whoever wants it: the session has to be run
/// after that.
pub(crate) struct Held<'a> {
    runner: &'a Runner,
    connection: Option<Box<Connection>>,
}

impl Held<'_> {
    /// Does something with the connection.
    pub(crate) fn with<R>(&mut self, work: impl FnOnce(&mut Connection) -> R) -> Option<R> {
        self.connection.as_deref_mut().map(work)
    }

    /// Gives the connection back, unless another task has wanted it since this was asked last; returns whether it did.
    pub(crate) fn give_back(&mut self) -> bool {
        *lock(&self.runner.connection) = self.connection.take();
        if !self.runner.readers.try_stop() {
            self.connection = lock(&self.runner.connection).take();
            return false;
        }
        self.runner.wake_waiting();
        true
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        *lock(&self.runner.connection) = Some(connection);
        self.runner.readers.stop();
        self.runner.wake_waiting();
    }
}

#[cfg(test)]
mod tests {
    use mcp_server::Server;

    use super::*;

    /// What other tasks and handlers want while a task runs the session is done by that task before it leaves.
    // covers: SEC-6, SEC-12
    #[test]
    fn sec_6_what_is_wanted_meanwhile_is_done() {
        let server = Server::builder("test", "1").build().expect("a server");
        let readers = Arc::default();
        let runner = Runner::new(Connection::long_lived(&server), &readers);
        let mut held = runner.take().expect("no task runs it");
        assert!(runner.take().is_none());
        assert!(!held.give_back(), "another task wants it to run");
        readers.wake_route(None);
        assert!(!held.give_back(), "a handler can go on");
        assert!(held.with(|_| ()).is_some() && held.give_back());
        assert!(runner.take().is_some_and(|mut held| held.with(|_| ()).is_some()), "it is free again");
    }
}
