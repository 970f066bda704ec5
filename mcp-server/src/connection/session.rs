//! Code of the application that runs for as long as a session of a legacy client.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::connection::Connection;
use crate::connection::caller::{Caller, caller_accessors};
use crate::connection::handle::ConnectionHandle;
use crate::serve::endpoint::BoxFuture;

/// Starts the code that runs for as long as a session.
pub(crate) type SessionHandler = Arc<dyn Fn(SessionContext) -> BoxFuture<()> + Send + Sync>;

/// A session of a legacy client, for [`ServerBuilder::on_session`](crate::ServerBuilder::on_session): its connection, the
/// request that began it, and its user.
#[derive(Clone, Debug)]
pub struct SessionContext {
    connection: ConnectionHandle,
    caller: Caller,
    is_resumed: bool,
}

impl SessionContext {
    /// Returns the connection.
    #[must_use]
    pub fn connection(&self) -> &ConnectionHandle {
        &self.connection
    }

    /// Returns whether the session began in another process or before a restart, and this process resumes it. The request
    /// is then the first one of the session in this process.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }
}

caller_accessors!(SessionContext, " that began the session", " that began the session");

/// The future of a session. A panic ends it, and is logged.
pub(crate) struct SessionTask(Option<BoxFuture<()>>);

impl SessionTask {
    /// Returns a future that calls the function when it is polled first, as the transport may refuse the session before.
    fn new(run: &SessionHandler, session: SessionContext) -> Self {
        let run = Arc::clone(run);
        Self(Some(Box::pin(async move { run(session).await })))
    }
}

impl Future for SessionTask {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(future) = &mut self.0 else { return Poll::Ready(()) };
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => Poll::Ready(()),
            Err(_) => {
                panicked();
                Poll::Ready(())
            }
        }
    }
}

impl Drop for SessionTask {
    fn drop(&mut self) {
        let future = self.0.take();
        if catch_unwind(AssertUnwindSafe(|| drop(future))).is_err() {
            panicked();
        }
    }
}

fn panicked() {
    tracing::error!(target: "mcp", "the function of `ServerBuilder::on_session` panicked");
}

impl Connection {
    /// Calls [`ServerBuilder::on_session`](crate::ServerBuilder::on_session) for a session that was
    /// [resumed](Self::resume), with the caller of the request that resumes it.
    pub fn resume_session(&mut self, caller: Caller) {
        self.start_session(caller, true);
    }

    /// Takes the future of [`ServerBuilder::on_session`](crate::ServerBuilder::on_session), if there is one.
    ///
    /// For transports that do not poll the connection all the time: [`poll`](Self::poll) does not run the future then. They
    /// have to take it before they poll the connection again after the handshake, to poll it as long as the session lasts,
    /// and to drop it before the [teardown](Self::teardown). The function is called when the future is polled first.
    #[must_use]
    pub fn take_session_future(&mut self) -> Option<BoxFuture<()>> {
        self.session.take().map(|task| -> BoxFuture<()> { Box::pin(task) })
    }

    /// Prepares the code that runs for as long as the session, if the connection has one.
    pub(super) fn start_session(&mut self, caller: Caller, is_resumed: bool) {
        let Some(run) = &self.server.hooks().on_session else { return };
        if self.session_state().is_some() {
            let session = SessionContext { connection: self.handle(), caller, is_resumed };
            self.session = Some(SessionTask::new(run, session));
        }
    }

    /// Runs the code of the session.
    pub(super) fn poll_session(&mut self, cx: &mut Context<'_>) {
        if let Some(task) = &mut self.session
            && std::pin::Pin::new(task).poll(cx).is_ready()
        {
            self.session = None;
        }
    }
}
