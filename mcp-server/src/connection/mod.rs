//! The connection to one client: the kernel's state machine, and the handlers that run for it.

pub(crate) mod broadcast;
pub(crate) mod caller;
pub(crate) mod catch_panic;
mod events;
pub(crate) mod handle;
pub(crate) mod handshake;
pub(crate) mod listen_streams;
pub(crate) mod oneshot;
pub(crate) mod port;
pub(crate) mod request_origin;
pub(crate) mod running;
pub(crate) mod scratch;
pub(crate) mod session;
pub(crate) mod shared;
pub(crate) mod teardown;
pub(crate) mod waiters;

use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_kernel::observe::Network;
use mcp_kernel::server::{
    Connection as Kernel, Principal, RequestClaims, Responder, Route, SecondHandshake, SessionState, Transmit,
};
use mcp_kernel::{Deadline, Fifo, RequestKey, Time};
use mcp_types::jsonrpc::{EnvelopeSummary, Incoming};
use mcp_types::{ErrorObject, RawObject, Revision};
use tracing::Span;

use crate::connection::caller::Caller;
use crate::connection::events::Fed;
use crate::connection::handle::ConnectionHandle;
use crate::connection::handshake::{ChosenServer, PendingHandshake};
use crate::connection::port::ConnectionPort;
use crate::connection::request_origin::RequestOrigin;
use crate::connection::running::{RunningHandler, RunningHandlers};
use crate::connection::session::SessionTask;
use crate::connection::shared::{RouteWaker, Shared, State};
use crate::connection::teardown::run_teardown;
use crate::serve::context::RequestContext;
use crate::serve::end::Outcome;
use crate::serve::endpoint::BoxFuture;
use crate::serve::telemetry;
use crate::server::Server;

/// The connection to one client, for a transport to drive.
///
/// It performs no I/O and reads no clock. A transport feeds it incoming messages ([`feed`](Self::feed)), polls it
/// ([`poll`](Self::poll)), which runs the handlers, and sends the outgoing messages
/// ([`poll_transmit`](Self::poll_transmit)):
///
/// 1. while [`wants_input`](Self::wants_input), feed what was read; while [`has_pending_handshake`](Self::has_pending_handshake),
///    feed nothing, but notice the end of the input;
/// 2. poll, whenever something was fed or the task was woken;
/// 3. send all transmits;
/// 4. call [`handle_timeout`](Self::handle_timeout) at [`poll_timeout`](Self::poll_timeout).
///
/// Handlers run inside `poll`, in the task of the transport: a handler that is ready at once costs no task and no channel.
/// Handlers that compute for long should use a thread of their own.
pub struct Connection {
    server: Server,
    shared: Arc<Shared>,
    /// Requests whose handlers were not called yet.
    queued: Fifo<QueuedRequest>,
    /// Pending handlers.
    running: RunningHandlers,
    /// The server that the handshake chose, if the application chooses.
    chosen: Option<ChosenServer>,
    /// The decision about the handshake, while it is pending.
    handshake: Option<Box<PendingHandshake>>,
    /// What [`ServerBuilder::on_session`](crate::ServerBuilder::on_session) returned.
    session: Option<SessionTask>,
}

struct QueuedRequest {
    ctx: RequestContext,
    responder: Responder,
    span: Span,
}

impl Connection {
    /// Creates a connection for any number of requests: a stdio process, a socket, or a session.
    #[must_use]
    pub fn long_lived(server: &Server) -> Self {
        let connection = Self::new(server, Kernel::long_lived(Arc::clone(server.config()))).with_choice();
        telemetry::session_started(server, &connection.shared);
        server.join(&connection.shared);
        connection
    }

    /// Sets how a second `initialize` is handled. Defaults to an error.
    #[must_use]
    pub fn second_handshake(self, second: SecondHandshake) -> Self {
        self.shared.lock().kernel.set_second_handshake(second);
        self
    }

    /// Returns whether a message is a second `initialize` for which the transport has to replace this connection by a new one:
    /// several clients share it ([`SecondHandshake::Restart`]), and no request is in flight.
    #[must_use]
    pub fn is_restart(&self, incoming: &Incoming<'_>) -> bool {
        self.shared.lock().kernel.is_restart(incoming)
    }

    /// Creates a connection that resumes a session that another process started with these `initialize` parameters.
    ///
    /// The application is notified of the subscriptions in `state`. A transport whose application may still refuse the
    /// session passes a state without subscriptions, and [replaces](Self::refresh) it after the decision.
    ///
    /// # Errors
    ///
    /// Returns an error if `initialize` does not have valid parameters.
    pub fn resume(server: &Server, initialize: RawObject, state: SessionState) -> Result<Self, serde_json::Error> {
        let connection = Self::new(server, Kernel::resume(Arc::clone(server.config()), initialize, state)?);
        telemetry::session_started(server, &connection.shared);
        server.join(&connection.shared);
        Ok(connection)
    }

    /// Sets the user of the session, for a transport that knows it before the client sends a message, as for a session that
    /// is resumed. Predicates of notifications see it ([`Viewer::principal`](crate::Viewer::principal)).
    #[must_use]
    pub fn principal(mut self, principal: Option<Principal>) -> Self {
        self.shared.lock().principal = principal;
        // The application is notified of the subscriptions of the session now that its user is known.
        self.handle_events(Fed::default());
        self
    }

    /// Sets how messages travel, for metrics and spans. Defaults to within the process.
    #[must_use]
    pub fn network(self, network: Network) -> Self {
        self.shared.set_network(network);
        self
    }

    /// Sets why the connection ends, for metrics and spans, if it does not end as intended: a short name such as `io`. The
    /// first one counts. Without an observer it has no effect.
    pub fn set_error(&mut self, error: &'static str) {
        self.shared.set_end_error(error);
    }

    /// Returns the state of a legacy session, after the handshake.
    #[must_use]
    pub fn session_state(&self) -> Option<SessionState> {
        self.shared.lock().kernel.session_state()
    }

    /// Replaces the state of the session by that of another process.
    pub fn refresh(&mut self, state: SessionState) {
        self.input(|kernel| kernel.refresh(state));
        self.shared.wake_handshake_waiters();
    }

    /// Creates a connection for one modern request.
    #[must_use]
    pub fn modern_request(server: &Server) -> Self {
        Self::new(server, Kernel::modern_request(Arc::clone(server.config())))
    }

    /// Creates a connection for one legacy request without a session, in the revision that the transport determined.
    #[must_use]
    pub fn legacy_request(server: &Server, revision: Revision) -> Self {
        Self::new(server, Kernel::legacy_request(Arc::clone(server.config()), revision)).with_choice()
    }

    #[inline(always)]
    fn new(server: &Server, kernel: Kernel) -> Self {
        Self {
            server: server.clone(),
            shared: Arc::new(Shared::new(kernel)),
            queued: Fifo::default(),
            running: RunningHandlers::default(),
            chosen: None,
            handshake: None,
            session: None,
        }
    }

    /// Handles one line or one HTTP body; returns the key of its response, if there will be one.
    pub fn feed(&mut self, now: Time, bytes: &[u8], caller: &Caller) -> Option<RequestKey> {
        self.feed_with(caller, |kernel| kernel.handle_bytes(now, bytes, caller.principal.as_ref()))
    }

    /// Handles a message that the transport has parsed already, and compares it with what the transport claims about it;
    /// otherwise the same as [`feed`](Self::feed).
    pub fn feed_parsed(
        &mut self,
        now: Time,
        incoming: Incoming<'_>,
        caller: &Caller,
        claims: Option<&dyn RequestClaims>,
    ) -> Option<RequestKey> {
        self.feed_with(caller, |kernel| kernel.handle_incoming(now, incoming, caller.principal.as_ref(), claims))
    }

    fn feed_with(
        &mut self,
        caller: &Caller,
        feed: impl FnOnce(&mut Kernel) -> Option<RequestKey>,
    ) -> Option<RequestKey> {
        let received = telemetry::stopwatch(&self.server);
        let mut state = self.shared.lock();
        let State { kernel, origins, .. } = &mut *state;
        let (key, closed) = origins.feed(kernel, self.server.config().observed, feed);
        state.note_caller(key, caller, &self.shared.has_joined);
        drop(state);
        drop(closed);
        let request = key.map(|key| (key, &caller.extensions));
        let has_begun = self.handle_events(Fed { request, received });
        if let Some(key) = key.filter(|key| !has_begun && self.is_open(*key)) {
            let origin = RequestOrigin { extensions: caller.extensions.clone(), received };
            self.shared.lock().origins.insert(key, origin);
        }
        key
    }

    /// Runs handlers; ready when there is a message to send, or when the connection is closed.
    ///
    /// The task is woken when a handler can continue or has sent something, and when a change is published.
    pub fn poll(&mut self, cx: &mut Context<'_>, now: Time) -> Poll<()> {
        self.shared.driver.register(cx.waker());
        // Messages that were fed through a port.
        self.handle_events(Fed::default());
        if self.poll_handshake(cx) {
            // The transport may create its session first, or take the code of the session.
            self.shared.wake(None);
        } else {
            self.poll_session(cx);
        }
        for (task, outcome) in self.running.poll(cx) {
            self.finish(&task.handler.span(), &task.ctx, task.responder, outcome);
        }
        // Responses may have made room for requests that waited.
        self.start_queued(cx);
        self.send_server_requests(now);
        let mut state = self.shared.lock();
        if state.kernel.has_event() {
            drop(state);
            // Handlers may have caused events, too, which must not wait for the next message of the client.
            self.handle_events(Fed::default());
            state = self.shared.lock();
        }
        if state.kernel.has_transmit() || state.kernel.is_closed() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Returns the next message to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        let transmit = self.shared.lock().kernel.poll_transmit();
        self.wake_for_queued();
        transmit
    }

    /// Appends the messages to send as lines, up to about `most` bytes, for transports with a single stream.
    pub fn take_lines(&mut self, out: &mut Vec<u8>, most: usize) {
        let mut state = self.shared.lock();
        while out.len() < most
            && let Some(transmit) = state.kernel.poll_transmit()
        {
            out.extend_from_slice(&transmit.message);
            out.push(b'\n');
        }
        drop(state);
        self.wake_for_queued();
    }

    /// Returns whether more messages may be fed: not while too much is queued to be sent, nor while a
    /// [handshake is pending](Self::has_pending_handshake).
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.shared.lock().kernel.wants_input()
    }

    /// Returns whether [`ServerBuilder::on_initialize`](crate::ServerBuilder::on_initialize) has yet to decide about the
    /// handshake. No message is wanted meanwhile, but the transport still has to notice that the client disconnects, and to
    /// report it with [`handle_disconnect`](Self::handle_disconnect), which drops the decision.
    #[must_use]
    pub fn has_pending_handshake(&self) -> bool {
        self.shared.lock().kernel.has_pending_handshake()
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.shared.lock().kernel.poll_timeout()
    }

    /// Handles the deadlines that have passed; early calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        self.input(|kernel| kernel.handle_timeout(now));
    }

    /// Handles a message that exceeded the transport's size limit, with what could be read of its envelope.
    pub fn handle_oversized(&mut self, limit: usize, summary: &EnvelopeSummary) {
        self.input(|kernel| kernel.handle_oversized(limit, summary));
    }

    /// Handles the end of the stream of a request, which cancels a modern request.
    pub fn handle_stream_closed(&mut self, request: RequestKey) {
        self.input(|kernel| kernel.handle_stream_closed(request));
    }

    /// Drops the handler of a request whose client will not resume its stream.
    pub fn abandon(&mut self, request: RequestKey) {
        self.input(|kernel| kernel.abandon(request));
    }

    /// Handles the disconnect of the client: handlers are dropped, and nothing more is sent.
    pub fn handle_disconnect(&mut self) {
        self.input(Kernel::handle_disconnect);
    }

    /// Holds back messages of a route, because its stream is not read.
    pub fn block(&mut self, route: Route) {
        self.input(|kernel| kernel.block(route));
    }

    /// Releases the messages of a route.
    pub fn unblock(&mut self, route: Route) {
        self.input(|kernel| kernel.unblock(route));
    }

    /// Begins a graceful shutdown: ends subscriptions and server-to-client requests, and lets handlers finish. The
    /// transport feeds no further messages.
    pub fn drain(&mut self) {
        self.input(Kernel::drain);
    }

    /// Drops all handlers, and responds to their requests with an error.
    pub fn abort_requests(&mut self, error: &ErrorObject) {
        self.handle_events(Fed::default());
        self.refuse_handshake(error);
        // Requests that waited for room take the place of those that were aborted.
        while self.is_busy() {
            for RunningHandler { handler, responder, ctx } in self.running.take_all() {
                let span = handler.span();
                ctx.end(Outcome::Cancelled);
                drop(handler);
                self.finish(&span, &ctx, responder, Err(error.clone()));
            }
            while let Some(QueuedRequest { ctx, responder, span }) = self.queued.pop() {
                ctx.end(Outcome::Cancelled);
                self.finish(&span, &ctx, responder, Err(error.clone()));
            }
        }
    }

    /// Closes the connection on behalf of the server: sends the results of subscriptions, and drops everything else.
    pub fn close(&mut self) {
        self.input(Kernel::close);
    }

    /// Returns whether handlers are pending or have yet to be called, or whether
    /// [`ServerBuilder::on_initialize`](crate::ServerBuilder::on_initialize) has yet to decide about the handshake.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !self.queued.is_empty() || self.running.len() > 0 || self.handshake.is_some()
    }

    /// Returns what a task has to do that has polled the connection before, and that will be woken.
    #[must_use]
    pub fn next_step(&self) -> NextStep {
        if self.is_busy() || self.session.is_some() {
            return NextStep::Poll;
        }
        let state = self.shared.lock();
        let has_request = state.server_requests.as_ref().is_some_and(|requests| !requests.queued.is_empty());
        if has_request || !state.kernel.wants_input() || state.kernel.has_event() {
            NextStep::Poll
        } else if state.kernel.has_transmit() {
            NextStep::Send
        } else {
            NextStep::Wait
        }
    }

    /// Returns whether the response to a request, or to any of a batch, is still due.
    #[must_use]
    pub fn is_open(&self, request: RequestKey) -> bool {
        self.shared.lock().kernel.is_open(request)
    }

    /// Returns whether there are no requests, messages to send, or deadlines.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.is_busy() && self.shared.lock().kernel.is_idle()
    }

    /// Returns whether the connection is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.lock().kernel.is_closed()
    }

    /// Returns the revision that was negotiated by the handshake, if there was one.
    #[must_use]
    pub fn negotiated(&self) -> Option<Revision> {
        self.shared.lock().kernel.negotiated()
    }

    /// Returns the handle that handlers get.
    #[must_use]
    pub fn handle(&self) -> ConnectionHandle {
        ConnectionHandle(Arc::clone(&self.shared))
    }

    /// Sets what is called instead of waking the task that polled the connection, for transports where several tasks drive
    /// it. It gets the route that needs a poll, or `None` for any, and may be called while the connection is polled.
    #[must_use]
    pub fn route_waker(self, waker: Arc<dyn RouteWaker>) -> Self {
        // It was not set before, as this takes the new connection by value.
        let _ = self.shared.route_waker.set(waker);
        self
    }

    /// Sets the session id that [`ConnectionHandle::session_id`] returns.
    #[must_use]
    pub fn session_id(self, id: Arc<dyn std::fmt::Display + Send + Sync>) -> Self {
        // It was not set before, as this takes the new connection by value.
        let _ = self.shared.session_id.set(id);
        self
    }

    /// Returns a port: the incoming and outgoing messages, for other tasks than the one that runs the handlers.
    #[must_use]
    pub fn port(&self) -> ConnectionPort {
        ConnectionPort::new(self.server.clone(), self.chosen.clone(), Arc::clone(&self.shared))
    }

    /// Returns the server, which [`ServerBuilder::on_initialize`](crate::ServerBuilder::on_initialize) may have chosen.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Ends the future of [`ServerBuilder::on_session`](crate::ServerBuilder::on_session), and then runs the callbacks of
    /// [`ConnectionHandle::on_close`]: last in, first out. Callbacks that panic or take too long are
    /// dropped, with a warning.
    ///
    /// `bound` creates a future that is ready when the time for one callback is over.
    // S1.16, S1.17
    pub async fn teardown<B: Future<Output = ()>>(&mut self, bound: impl FnMut() -> B) {
        self.handle_disconnect();
        run_teardown(&self.shared, bound).await;
    }

    /// Returns the future of [`teardown`](Self::teardown) for a connection that is about to be dropped, or `None` if there
    /// are no callbacks.
    pub fn take_teardown<B>(&mut self, bound: impl FnMut() -> B + Send + 'static) -> Option<BoxFuture<()>>
    where
        B: Future<Output = ()> + Send + 'static,
    {
        self.session = None;
        if !self.shared.has_teardown() {
            return None;
        }
        self.handle_disconnect();
        let shared = Arc::clone(&self.shared);
        Some(Box::pin(async move { run_teardown(&shared, bound).await }))
    }

    fn input<R>(&mut self, input: impl FnOnce(&mut Kernel) -> R) -> R {
        let outcome = input(&mut self.shared.lock().kernel);
        self.handle_events(Fed::default());
        outcome
    }
}

/// What a task that drives a [`Connection`] has to do next ([`Connection::next_step`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a transport must know what to do with each")]
pub enum NextStep {
    /// Nothing has happened.
    Wait,
    /// There are [messages](Connection::poll_transmit) to send, but there is no code of the application to run.
    Send,
    /// The connection has to be [polled](Connection::poll).
    Poll,
}

impl Drop for Connection {
    /// Tasks that handlers spawned have to learn that their requests have ended.
    fn drop(&mut self) {
        // Usually nothing else holds the connection. Those with subscriptions are known to the broadcast, and the application
        // is notified of their end.
        let is_shared = Arc::strong_count(&self.shared) > 1 || Arc::weak_count(&self.shared) > 0;
        if is_shared || (self.server.observer().is_some() && self.is_busy()) {
            self.handle_disconnect();
        }
        telemetry::session_ended(&self.shared);
        self.server.broadcast().leave(&self.shared);
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("kernel", &self.shared.lock().kernel)
            .field("running", &self.running.len())
            .finish_non_exhaustive()
    }
}
