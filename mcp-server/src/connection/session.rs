//! Sessions of legacy clients, and code of the application that runs for as long as they last.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_types::Era;

use crate::asking::error::DeveloperHint;
use crate::connection::Connection;
use crate::connection::caller::{Caller, caller_accessors};
use crate::connection::handle::ConnectionHandle;
use crate::connection::scratch::Scratch;
use crate::serve::context::RequestContext;
use crate::serve::endpoint::BoxFuture;

/// Starts the code that runs for as long as a session.
pub(crate) type SessionHandler = Arc<dyn Fn(SessionContext) -> BoxFuture<()> + Send + Sync>;

/// The session of a legacy client: after the handshake on stdio, and an HTTP session. Modern clients have none, and neither do
/// legacy clients of a server without sessions.
///
/// Functions of [`tool_fn`](crate::tool_fn) take it as a parameter, and get the session of their request. If there is none,
/// the request fails with [`NoSession`], and the function is not called; an `Option<Session>` is `None`. Use
/// [`Session::of_request`] in other handlers.
///
/// # Examples
///
/// ```
/// use std::sync::Mutex;
///
/// use mcp_server::extract::Session;
/// use mcp_server::tool_fn;
///
/// #[derive(Default)]
/// struct Visited(Mutex<Vec<String>>);
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Visit { page: String }
///
/// async fn visit(session: Session, Visit { page }: Visit) -> String {
///     let visited = session.scratch().get_or_insert_with(Visited::default);
///     let mut pages = visited.0.lock().expect("no panic while the list is locked");
///     pages.push(page);
///     format!("{} pages in this session", pages.len())
/// }
///
/// let visit = tool_fn("visit", visit);
/// ```
#[derive(Clone, Debug)]
pub struct Session(ConnectionHandle);

impl Session {
    /// Returns the session of a request.
    ///
    /// # Errors
    ///
    /// Returns an error if the request has no session.
    pub fn of_request(ctx: &RequestContext) -> Result<Self, NoSession> {
        let connection = ctx.connection();
        // On stdio, requests of both eras share a connection.
        let has_session = ctx.era() == Era::Legacy && connection.0.is_lasting();
        has_session.then(|| Self(connection.clone())).ok_or_else(NoSession::new)
    }

    /// Returns the session id, over HTTP; `None` on stdio, where the connection is the session. It gives access to the session, so
    /// keep it out of logs.
    #[must_use]
    pub fn id(&self) -> Option<String> {
        self.0.session_id()
    }

    /// Returns the values that handlers keep for as long as the session lasts.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        self.0.scratch().expect("the connection of a session lasts")
    }

    /// Returns the connection.
    #[must_use]
    pub fn connection(&self) -> &ConnectionHandle {
        &self.0
    }
}

/// The error of a request that needs a session and has none.
///
/// Its text is for clients. Its [`source`](std::error::Error::source), which is logged, says what the developer of the server
/// can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this request needs a session, and the client has none")]
pub struct NoSession(#[source] DeveloperHint);

impl NoSession {
    fn new() -> Self {
        Self(DeveloperHint::from(
            "modern clients have no sessions: keep the state between calls by handles (`Handles`), which work with all clients, \
             or take an `Option<Session>`; legacy clients have sessions on stdio, and over HTTP with `SessionMode::Stateful`",
        ))
    }
}

/// A session of a legacy client, for [`ServerBuilder::on_session`](crate::ServerBuilder::on_session): its connection, the
/// request that began it, and its user.
#[derive(Clone, Debug)]
pub struct SessionContext {
    session: Session,
    caller: Caller,
    is_resumed: bool,
}

impl SessionContext {
    /// Returns the session, as handlers get it.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the connection.
    #[must_use]
    pub fn connection(&self) -> &ConnectionHandle {
        self.session.connection()
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
            let session = SessionContext { session: Session(self.handle()), caller, is_resumed };
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
