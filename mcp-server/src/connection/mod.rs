//! One client of a server: the kernel's machine with the handlers that answer for it.

pub(crate) mod broadcast;
pub(crate) mod catch_panic;
pub(crate) mod handle;
pub(crate) mod oneshot;
pub(crate) mod port;
pub(crate) mod request_origin;
pub(crate) mod running;
pub(crate) mod shared;
pub(crate) mod teardown;

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

use mcp_kernel::server::{
    Connection as Kernel, Event, Principal, RequestScope, Responder, SecondHandshake, SessionState,
};
use mcp_kernel::{CallId, Deadline, Fifo, RequestKey, Route, Time, Transmit};
use mcp_types::jsonrpc::{EnvelopeSummary, Incoming, PayloadBuf};
use mcp_types::{Era, ErrorObject, Method, ProgressNotificationParams, RawObject, Revision};
use tracing::{Instrument, Span};

use crate::asking::client_requests::AskError;
use crate::asking::legacy_rounds;
use crate::asking::options::AskOptions;
use crate::connection::catch_panic::{CatchPanic, panicked};
use crate::connection::handle::ConnectionHandle;
use crate::connection::port::ConnectionPort;
use crate::connection::running::{RunningHandler, RunningHandlers};
use crate::connection::shared::{Inbox, PendingClientRequest, QueuedClientRequest, RouteWaker, Shared, State};
use crate::connection::teardown::run_teardown;
use crate::extensions::Extensions;
use crate::handlers::notification::Notification;
use crate::serve::context::RequestContext;
use crate::serve::endpoint::{BoxFuture, Dispatched, Request, ResponseFuture};
use crate::serve::response::{self, Response};
use crate::serve::telemetry;
use crate::server::Server;

/// One client of a server, for a transport to drive.
///
/// It performs no I/O and reads no clock. A transport feeds it what comes ([`feed`](Self::feed)), polls it
/// ([`poll`](Self::poll)), which runs the handlers, and sends what there is to send
/// ([`poll_transmit`](Self::poll_transmit)):
///
/// 1. while [`wants_input`](Self::wants_input), feed what was read;
/// 2. poll, whenever something was fed or the task was woken;
/// 3. send all transmits;
/// 4. call [`handle_timeout`](Self::handle_timeout) at [`poll_timeout`](Self::poll_timeout).
///
/// Handlers run inside `poll`, in the task of the transport: a request that is answered without waiting costs no task,
/// no channel and no second look. A handler that computes for long should do so on a thread of its own.
pub struct Connection {
    server: Server,
    shared: Arc<Shared>,
    /// Requests that no handler has seen yet.
    queued: Fifo<QueuedRequest>,
    /// Handlers that wait for something.
    running: RunningHandlers,
}

struct QueuedRequest {
    ctx: RequestContext,
    responder: Responder,
    span: Span,
}

/// Who sent something, as the transport knows.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Caller {
    /// Who is behind it, if the transport made sure.
    pub principal: Option<Principal>,
    /// What else handlers may want to know.
    pub extensions: Extensions,
}

impl Connection {
    /// A connection that lasts: a stdio process, a socket, or a session.
    #[must_use]
    pub fn long_lived(server: &Server) -> Self {
        let connection = Self::new(server, Kernel::for_loop(Arc::clone(server.config())));
        server.broadcast().join(&connection.shared);
        connection
    }

    /// Sets what becomes of a second `initialize`. Defaults to a refusal.
    #[must_use]
    pub fn second_handshake(self, second: SecondHandshake) -> Self {
        self.shared.lock().kernel.set_second_handshake(second);
        self
    }

    /// Whether a message is a second handshake for which the transport is to begin a new connection in place of this one:
    /// clients share it ([`SecondHandshake::Restart`]), and nothing is in flight.
    #[must_use]
    pub fn is_restart(&self, incoming: &Incoming<'_>) -> bool {
        self.shared.lock().kernel.begins_anew(incoming)
    }

    /// A connection that goes on with a session which began elsewhere, with the parameters of its `initialize`.
    ///
    /// # Errors
    ///
    /// Returns an error if `initialize` is not what its client can have sent.
    pub fn resume(server: &Server, initialize: RawObject, state: SessionState) -> Result<Self, serde_json::Error> {
        let connection = Self::new(server, Kernel::resume(Arc::clone(server.config()), initialize, state)?);
        server.broadcast().join(&connection.shared);
        Ok(connection)
    }

    /// What a legacy client has settled, after its handshake.
    #[must_use]
    pub fn session_state(&self) -> Option<SessionState> {
        self.shared.lock().kernel.session_state()
    }

    /// Takes over what was settled elsewhere.
    pub fn refresh(&mut self, state: SessionState) {
        self.input(|kernel| kernel.refresh(state));
    }

    /// A connection for one modern request.
    #[must_use]
    pub fn modern_request(server: &Server) -> Self {
        Self::new(server, Kernel::from_envelope(Arc::clone(server.config())))
    }

    /// A connection for one legacy request without a session, in a revision that the transport knows of.
    #[must_use]
    pub fn legacy_request(server: &Server, revision: Revision) -> Self {
        Self::new(server, Kernel::from_version(Arc::clone(server.config()), revision))
    }

    fn new(server: &Server, kernel: Kernel) -> Self {
        Self {
            server: server.clone(),
            shared: Arc::new(Shared::new(kernel)),
            queued: Fifo::default(),
            running: RunningHandlers::default(),
        }
    }

    /// Takes what one line or one body holds; returns the handle under which it is answered, if it is.
    pub fn feed(&mut self, now: Time, bytes: &[u8], caller: &Caller) -> Option<RequestKey> {
        self.feed_with(caller, |kernel| kernel.handle_bytes(now, bytes, caller.principal.as_ref()))
    }

    /// Takes a message that the transport has parsed, because it had to look into it; returns what
    /// [`feed`](Self::feed) does.
    pub fn feed_parsed(&mut self, now: Time, incoming: Incoming<'_>, caller: &Caller) -> Option<RequestKey> {
        self.feed_with(caller, |kernel| kernel.handle_incoming(now, incoming, caller.principal.as_ref()))
    }

    fn feed_with(
        &mut self,
        caller: &Caller,
        feed: impl FnOnce(&mut Kernel) -> Option<RequestKey>,
    ) -> Option<RequestKey> {
        let mut state = self.shared.lock();
        let State { kernel, origins, .. } = &mut *state;
        let key = feed(kernel);
        let closed = origins.take_closed(|key| kernel.is_open(key));
        drop(state);
        drop(closed);
        let has_begun = self.handle_events(key.map(|key| (key, &caller.extensions)));
        if let Some(key) = key.filter(|key| !has_begun && self.is_open(*key)) {
            self.shared.lock().origins.note(key, &caller.extensions);
        }
        key
    }

    /// Runs handlers; ready when there is something to send, or when the connection is over.
    ///
    /// The task is woken when a handler can go on, has something to say, or when something is published.
    pub fn poll(&mut self, cx: &mut Context<'_>, now: Time) -> Poll<()> {
        self.shared.driver.register(cx.waker());
        // What came in by a port.
        self.handle_events(None);
        for (task, outcome) in self.running.poll(cx) {
            self.finish(&task.handler.span(), &task.ctx, task.responder, outcome);
        }
        // Answering may have let requests in that waited.
        self.start_queued(cx);
        #[cfg(feature = "mrtr")]
        self.end_rounds();
        self.send_client_requests(now);
        // What handlers did is news, too, and must not wait until the client says something.
        self.input(|_| ());
        let state = self.shared.lock();
        if state.kernel.has_transmit() || state.kernel.is_closed() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// The next message to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        let transmit = self.shared.lock().kernel.poll_transmit();
        self.wake_for_queued();
        transmit
    }

    /// Appends what there is to send as lines, up to about `most` bytes; for transports with a single stream.
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

    /// Whether more may be fed: not while too much waits to be sent.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.shared.lock().kernel.wants_input()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.shared.lock().kernel.poll_timeout()
    }

    /// Takes note of the time; early calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        self.input(|kernel| kernel.handle_timeout(now));
    }

    /// Takes note of a text that was longer than the transport reads, with what it could tell of it.
    pub fn handle_oversized(&mut self, limit: usize, summary: &EnvelopeSummary) {
        self.input(|kernel| kernel.handle_oversized(limit, summary));
    }

    /// Takes note that the stream of a request is gone: that cancels a modern one.
    pub fn handle_stream_closed(&mut self, request: RequestKey) {
        self.input(|kernel| kernel.handle_stream_closed(request));
    }

    /// Takes note that nobody will come back for the answer to a request: its handler is dropped.
    pub fn abandon(&mut self, request: RequestKey) {
        self.input(|kernel| kernel.abandon(request));
    }

    /// Takes note that the client is gone: handlers are dropped, and nothing more is sent.
    pub fn handle_disconnect(&mut self) {
        self.input(Kernel::handle_disconnect);
    }

    /// Keeps messages of a route back, because its reader does not read.
    pub fn block(&mut self, route: Route) {
        self.input(|kernel| kernel.block(route));
    }

    /// Lets messages of a route go on.
    pub fn unblock(&mut self, route: Route) {
        self.input(|kernel| kernel.unblock(route));
    }

    /// Prepares for the end: nothing more will be read. Subscriptions end, questions to the client are given up, and
    /// handlers may finish.
    pub fn drain(&mut self) {
        self.input(Kernel::drain);
    }

    /// Gives up what is at work: handlers are dropped where they wait, and their clients are told why.
    pub fn abort_requests(&mut self, why: &ErrorObject) {
        self.handle_events(None);
        // Whoever waits for room would take the place of those that are given up.
        while self.is_busy() {
            for RunningHandler { handler, responder, ctx } in self.running.take_all() {
                let span = handler.span();
                ctx.cancel();
                drop(handler);
                self.finish(&span, &ctx, responder, Err(why.clone()));
            }
            while let Some(QueuedRequest { ctx, responder, span }) = self.queued.pop() {
                ctx.cancel();
                self.finish(&span, &ctx, responder, Err(why.clone()));
            }
        }
    }

    /// Ends the connection from this side: subscriptions end with their result, everything else is given up.
    pub fn close(&mut self) {
        self.input(Kernel::close);
    }

    /// Whether handlers are at work, or have yet to begin.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !self.queued.is_empty() || self.running.len() > 0
    }

    /// Whether a request is still to be answered, or any of a batch.
    #[must_use]
    pub fn is_open(&self, request: RequestKey) -> bool {
        self.shared.lock().kernel.is_open(request)
    }

    /// Whether nothing is open, queued or due.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.is_busy() && self.shared.lock().kernel.is_idle()
    }

    /// Whether the connection is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.lock().kernel.is_closed()
    }

    /// The revision that the handshake settled on, if there was one.
    #[must_use]
    pub fn negotiated(&self) -> Option<Revision> {
        self.shared.lock().kernel.negotiated()
    }

    /// The connection as handlers see it.
    #[must_use]
    pub fn handle(&self) -> ConnectionHandle {
        ConnectionHandle(Arc::clone(&self.shared))
    }

    /// Sets who is woken when there is something to do, in place of the task that polls the connection: for transports
    /// where one of several tasks does. It is called with the route that has something to do or to say, or with `None` if
    /// it can be any, and may be called while the connection is polled.
    #[must_use]
    pub fn route_waker(self, wake: RouteWaker) -> Self {
        // Nobody can have set another one.
        let _ = self.shared.route_waker.set(wake);
        self
    }

    /// The connection's messages, in and out, for tasks other than the one that runs its handlers.
    #[must_use]
    pub fn port(&self) -> ConnectionPort {
        ConnectionPort::new(self.server.clone(), Arc::clone(&self.shared))
    }

    /// The server that it is a connection to.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Runs what handlers left to be done at the end: last in, first out, each within the time that `bound` gives it.
    /// What panics or takes too long is given up, with a warning.
    ///
    /// `bound` makes a future that is ready when the time is over, which is the transport's to know.
    // S1.16, S1.17
    pub async fn teardown<B: Future<Output = ()>>(&mut self, bound: impl FnMut() -> B) {
        self.handle_disconnect();
        run_teardown(&self.shared, bound).await;
    }

    /// The same for a connection that is about to be dropped, if there is anything to do.
    pub fn take_teardown<B>(&mut self, bound: impl FnMut() -> B + Send + 'static) -> Option<BoxFuture<()>>
    where
        B: Future<Output = ()> + Send + 'static,
    {
        if self.shared.teardown.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return None;
        }
        self.handle_disconnect();
        let shared = Arc::clone(&self.shared);
        Some(Box::pin(async move { run_teardown(&shared, bound).await }))
    }

    fn input<R>(&mut self, input: impl FnOnce(&mut Kernel) -> R) -> R {
        let outcome = input(&mut self.shared.lock().kernel);
        self.handle_events(None);
        outcome
    }

    fn finish(
        &mut self,
        span: &Span,
        ctx: &RequestContext,
        responder: Responder,
        outcome: Result<Response, ErrorObject>,
    ) {
        #[cfg(feature = "mrtr")]
        let outcome = crate::asking::rounds::reject_mixed_styles(ctx, outcome);
        match outcome {
            // A legacy client is asked by real requests, and the handler goes on when it has answered.
            Ok(Response::InputRequired(input)) if ctx.era() == Era::Legacy => {
                let again: ResponseFuture = Box::pin(legacy_rounds::answer(ctx.clone(), *input));
                let handler = CatchPanic::new(again.instrument(span.clone()));
                self.run(RunningHandler { handler, responder, ctx: ctx.clone() });
            }
            outcome => {
                telemetry::end(span, ctx, &outcome);
                self.respond(responder, outcome);
                // What the handler gave away elsewhere learns that nobody waits for it any more.
                ctx.cancel();
            }
        }
    }

    /// Ends the rounds of requests that asked something: their handlers are dropped, and run again with the answers.
    #[cfg(feature = "mrtr")]
    fn end_rounds(&mut self) {
        loop {
            let suspended = std::mem::take(&mut self.shared.lock().suspended);
            if suspended.is_empty() {
                return;
            }
            for key in suspended {
                if let Some(task) = self.running.take(key) {
                    let RunningHandler { handler, responder, ctx } = task;
                    let outcome = crate::asking::rounds::finish(&ctx);
                    self.finish(&handler.span(), &ctx, responder, outcome);
                }
            }
        }
    }

    fn respond(&mut self, responder: Responder, outcome: Result<Response, ErrorObject>) {
        self.input(|kernel| response::send(kernel, responder, outcome));
    }

    /// Acts on the news of the kernel. `fed` is what was fed just now, and who sent it; returns whether its handler may
    /// begin.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most of what the kernel tells is for operators alone")]
    fn handle_events(&mut self, fed: Option<(RequestKey, &Extensions)>) -> bool {
        let mut has_begun = false;
        while let Some(event) = self.next_event() {
            telemetry::note(&event);
            match event {
                Event::Request { scope, params, responder } => {
                    let key = scope.key();
                    has_begun |= fed.is_some_and(|(fed, _)| fed == key);
                    // Handles grow: what is younger than what was fed came with it.
                    let extensions = match fed {
                        Some((fed, extensions)) if fed <= key => extensions.clone(),
                        Some(_) | None => self.shared.lock().origins.take(key),
                    };
                    self.admit(scope, params, responder, extensions);
                }
                Event::Cancelled { request, .. } => self.cancel(request),
                Event::CallFinished { call, outcome } => {
                    let mut state = self.shared.lock();
                    let open = state.open.iter().position(|open| open.call == call);
                    let open = open.map(|index| state.open.swap_remove(index));
                    drop(state);
                    if let Some(open) = open {
                        open.reply.send(outcome.map_err(AskError::NoResponse));
                    }
                }
                Event::CallProgress { call, progress } => self.report_progress(call, *progress),
                Event::Listening { .. } => self.server.broadcast().join(&self.shared),
                Event::Notification { method, params } => self.handle_notification(method, params),
                // S1.13: who waits for the handshake hears that it is complete.
                Event::Initialized => {
                    self.handle_notification(Method::NOTIFICATIONS_INITIALIZED, PayloadBuf::default())
                }
                Event::Closed => {
                    self.queued.clear();
                    self.running.cancel_all();
                    let mut state = self.shared.lock();
                    let left = (std::mem::take(&mut state.client_requests), std::mem::take(&mut state.open));
                    drop(state);
                    // Whoever waits for them is woken, and may look here.
                    drop(left);
                }
                _ => {}
            }
        }
        has_begun
    }

    fn next_event(&self) -> Option<Event> {
        let mut state = self.shared.lock();
        let event = state.kernel.poll_event();
        if event.is_none() {
            state.inbox = Inbox::default();
        }
        event
    }

    /// Tells whoever asked of the progress; the question may be over by the time that they have heard of it.
    fn report_progress(&self, call: CallId, progress: ProgressNotificationParams) {
        let find = |open: &&mut PendingClientRequest| open.call == call;
        let watcher = self.shared.lock().open.iter_mut().find(find).and_then(|open| open.watcher.take());
        let Some(mut watcher) = watcher else { return };
        if std::panic::catch_unwind(AssertUnwindSafe(|| watcher(progress))).is_err() {
            return tracing::error!(target: "mcp", "a listener for progress panicked");
        }
        if let Some(open) = self.shared.lock().open.iter_mut().find(find) {
            open.watcher = Some(watcher);
        }
    }

    fn handle_notification(&self, method: Method, params: PayloadBuf) {
        let Some(listener) = self.server.on_notification() else { return };
        let notification = Notification { method, params, connection: self.handle() };
        if std::panic::catch_unwind(AssertUnwindSafe(|| listener(notification))).is_err() {
            tracing::error!(target: "mcp", "a listener for notifications panicked");
        }
    }

    fn admit(&mut self, scope: Arc<RequestScope>, params: PayloadBuf, responder: Responder, extensions: Extensions) {
        let span = telemetry::span(&scope, &params, &self.shared, &self.server);
        let (shared, server) = (Arc::clone(&self.shared), self.server.clone());
        let ctx = RequestContext::new(scope, params, shared, server, extensions);
        self.queued.push(QueuedRequest { ctx, responder, span });
    }

    fn cancel(&mut self, request: RequestKey) {
        if !self.running.cancel(request) {
            self.queued.retain(|queued| queued.responder.key() != request);
        }
    }

    /// Has the transport poll again if there is room now for requests that had to wait for it.
    fn wake_for_queued(&self) {
        if !self.queued.is_empty() {
            self.shared.wake(None);
        }
    }

    /// Has handlers begin, but not while too much waits to be sent: their answers would only add to it.
    fn start_queued(&mut self, cx: &mut Context<'_>) {
        while self.wants_input()
            && let Some(queued) = self.queued.pop()
        {
            self.start(queued, cx);
        }
    }

    /// Has a handler begin; most are done at once.
    fn start(&mut self, queued: QueuedRequest, cx: &mut Context<'_>) {
        let QueuedRequest { ctx, responder, span } = queued;
        let request = Request::new(ctx.clone());
        let served = {
            let _entered = span.enter();
            // A panic is the handler's own affair: everything else goes on.
            std::panic::catch_unwind(AssertUnwindSafe(|| self.server.endpoint().serve(request)))
        };
        let later = match served {
            Ok(Dispatched::Ready(outcome)) => return self.finish(&span, &ctx, responder, outcome),
            Ok(Dispatched::Pending(later)) => later,
            Err(_) => return self.finish(&span, &ctx, responder, Err(panicked())),
        };
        let mut handler = CatchPanic::new(later.instrument(span));
        match Pin::new(&mut handler).poll(cx) {
            Poll::Ready(outcome) => {
                let span = handler.span();
                self.finish(&span, &ctx, responder, outcome);
            }
            Poll::Pending => self.run(RunningHandler { handler, responder, ctx }),
        }
    }

    /// Has a handler go on as soon as it can; it is looked at once more, now that somebody watches it.
    fn run(&mut self, task: RunningHandler) {
        // It is polled once more, now that somebody watches it; pushing it wakes whoever does so.
        self.running.push(task, self.shared.route_waker.get());
        if self.shared.route_waker.get().is_none() {
            self.shared.driver.wake();
        }
    }

    /// Asks the client what handlers want to know.
    fn send_client_requests(&self, now: Time) {
        let mut refused = Vec::new();
        let mut state = self.shared.lock();
        while let Some(request) = state.client_requests.pop_front() {
            let QueuedClientRequest { number, related, method, params, options, reply } = request;
            let AskOptions { time, watcher } = options;
            match state.kernel.call(now, related, method, &params, time) {
                Ok(call) => state.open.push(PendingClientRequest { number, call, watcher, reply }),
                Err(misuse) => refused.push((reply, misuse, watcher)),
            }
        }
        drop(state);
        // Whoever waits for them is woken, and may look here; so may a watcher that is dropped.
        for (reply, misuse, _watcher) in refused {
            reply.send(Err(misuse.into()));
        }
    }
}

impl Drop for Connection {
    /// What still runs elsewhere has to know that nobody waits for it, and that nobody answers any more.
    fn drop(&mut self) {
        // Mostly nothing runs any more, and there is nobody left to tell.
        if Arc::strong_count(&self.shared) > 1 {
            self.handle_disconnect();
        }
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
