//! Lets one task at a time run the handlers of a session.

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
/// A task that finds it running does not wait: it sets a flag, and the task that runs the connection does the work before
/// it gives the connection back. So a handler that blocks its thread blocks no other task.
pub(crate) struct Runner {
    /// Has the state above, as wakers of the session change it, too.
    readers: Arc<Readers>,
    /// The connection, unless a task runs it. Boxed, because it moves for every message.
    connection: Mutex<Option<Box<Connection>>>,
    /// Tasks that wait for the connection.
    waiting: Mutex<Vec<Waker>>,
}

impl Runner {
    pub(crate) fn new(connection: Connection, readers: &Arc<Readers>) -> Self {
        let connection = connection.route_waker(Arc::clone(readers) as _);
        Self {
            readers: Arc::clone(readers),
            connection: Mutex::new(Some(Box::new(connection))),
            waiting: Mutex::default(),
        }
    }

    /// Takes the connection. If another task has it, that task runs it once more.
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
        // It may have been given back before the waker was registered.
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

/// The connection, for the task that runs it. Dropping it gives it back unconditionally: the session has to be run after
/// that.
pub(crate) struct Held<'a> {
    runner: &'a Runner,
    connection: Option<Box<Connection>>,
}

impl Held<'_> {
    /// Calls a function with the connection.
    pub(crate) fn with<R>(&mut self, work: impl FnOnce(&mut Connection) -> R) -> Option<R> {
        self.connection.as_deref_mut().map(work)
    }

    /// Gives the connection back. Returns `false` if another task has requested another run since the last call.
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
    use mcp_session::SessionId;

    use super::*;

    /// What other tasks and handlers want while a task runs the session is done by that task before it leaves.
    // covers: SEC-6, SEC-12
    #[test]
    fn sec_6_what_is_wanted_meanwhile_is_done() {
        let server = Server::builder("test", "1").build().expect("a server");
        let readers = Arc::new(Readers::of(SessionId::random().expect("randomness")));
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
