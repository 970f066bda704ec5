//! What a connection does between its inputs and its outputs: it handles the events of the kernel, and runs the handlers.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_kernel::server::{Event, RequestScope, Responder};
use mcp_kernel::{CallId, PeerMisbehaved, RequestKey, Time};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{Era, ErrorObject, Method, ProgressNotificationParams, SubscriptionFilter};
use tracing::{Instrument, Span};

use crate::asking::error::AskError;
use crate::asking::legacy_rounds;
use crate::asking::options::AskOptions;
use crate::connection::catch_panic::{CatchPanic, panicked};
use crate::connection::request_origin::RequestOrigin;
use crate::connection::running::RunningHandler;
use crate::connection::shared::{Inbox, PendingServerRequest, QueuedServerRequest, State};
use crate::connection::{Connection, QueuedRequest};
use crate::extensions::Extensions;
use crate::handlers::notification::Notification;
use crate::handlers::subscription::SubscriptionEvent;
use crate::serve::context::RequestContext;
use crate::serve::end::Outcome;
use crate::serve::endpoint::{Dispatched, ResponseFuture};
use crate::serve::observed;
use crate::serve::response::{self, Response};
use crate::serve::telemetry::{self, Stopwatch};
use crate::visibility::viewer::Viewer;

/// What was fed just now.
#[derive(Clone, Copy, Default)]
pub(super) struct Fed<'a> {
    /// The key and the extensions, if there will be a response.
    pub(super) request: Option<(RequestKey, &'a Extensions)>,
    /// Measures the time since it was received, if that is reported.
    pub(super) received: Option<Stopwatch>,
}

impl Connection {
    pub(super) fn finish(
        &mut self,
        span: &Span,
        ctx: &RequestContext,
        responder: Responder,
        #[cfg_attr(not(feature = "mrtr"), expect(unused_mut, reason = "nothing else changes it"))] mut served: Result<
            Response,
            ErrorObject,
        >,
    ) {
        #[cfg(feature = "mrtr")]
        crate::asking::rounds::reject_mixed_styles(ctx, &mut served);
        match served {
            // A legacy client gets requests, and the handler runs again with its responses.
            Ok(Response::InputRequired(input)) if ctx.era() == Era::Legacy => {
                let again: ResponseFuture = Box::pin(legacy_rounds::run(ctx.clone(), *input));
                let handler = CatchPanic::new(again.instrument(span.clone()));
                self.run(RunningHandler { handler, responder, ctx: ctx.clone() });
            }
            served => {
                // A request that was aborted has its outcome already.
                let outcome = ctx.outcome().unwrap_or_else(|| Outcome::of(&served));
                telemetry::end(span, ctx, outcome, &served);
                self.respond(span, ctx, responder, served);
                ctx.end(outcome);
            }
        }
    }

    fn respond(
        &mut self,
        span: &Span,
        ctx: &RequestContext,
        responder: Responder,
        outcome: Result<Response, ErrorObject>,
    ) {
        let key = responder.key();
        let mut state = self.shared.lock();
        response::send(&mut state.kernel, responder, outcome);
        // With layers, listen streams open here.
        state.note_listener(Some(key), || ctx.share_extensions());
        if let Some(listener) = state.listen_streams.get(key) {
            let _ = listener.span.set(span.clone());
        }
        let has_events = state.kernel.has_event();
        drop(state);
        if has_events {
            self.handle_events(Fed::default());
        }
    }

    /// Handles the events of the kernel; returns whether what was fed just now was admitted.
    #[inline]
    pub(super) fn handle_events(&mut self, fed: Fed<'_>) -> bool {
        // Mostly there are none.
        self.has_event() && self.handle_all_events(fed)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other events are only traced")]
    fn handle_all_events(&mut self, Fed { request: fed, received }: Fed<'_>) -> bool {
        let mut has_begun = false;
        while let Some(event) = self.next_event() {
            telemetry::trace_event(&event);
            match event {
                Event::Request { scope, params, responder } => {
                    let key = scope.key();
                    has_begun |= fed.is_some_and(|(fed, _)| fed == key);
                    // Keys increase: requests with greater keys were fed in the same batch.
                    let origin = match fed {
                        Some((fed, extensions)) if fed <= key => {
                            RequestOrigin { extensions: extensions.clone(), received }
                        }
                        Some(_) | None => self.shared.lock().origins.take(key),
                    };
                    self.admit(scope, params, responder, origin);
                }
                Event::CancelledInQueue { scope, params } => self.report_unqueued(scope, params),
                Event::Handshake(request) => {
                    let key = request.key;
                    has_begun |= fed.is_some_and(|(fed, _)| fed == key);
                    let origin = match fed {
                        Some((fed, extensions)) if fed == key => {
                            RequestOrigin { extensions: extensions.clone(), received }
                        }
                        Some(_) | None => self.shared.lock().origins.take(key),
                    };
                    self.begin_handshake(*request, origin);
                }
                Event::Cancelled { request, .. } => self.cancel(request),
                Event::CallFinished { call, outcome } => {
                    let mut state = self.shared.lock();
                    let open =
                        state.server_requests.as_mut().and_then(|requests| requests.close(|open| open.call == call));
                    drop(state);
                    if let Some(open) = open {
                        open.reply.send(outcome.map_err(AskError::NoResponse));
                    }
                }
                Event::CallProgress { call, progress } => self.report_progress(call, *progress),
                Event::Listening { scope, filter } => {
                    self.server.join(&self.shared);
                    self.handle_listening(scope.key(), filter);
                }
                Event::ListeningEnded(stream) => self.handle_listening_ended(stream),
                Event::Subscription { uri, active } => self.handle_subscription(uri, active),
                Event::Notification { method, params } => self.handle_notification(method, params),
                // S1.13: the application learns that the handshake is complete.
                Event::Initialized => {
                    self.shared.wake_handshake_waiters();
                    self.handle_notification(Method::NOTIFICATIONS_INITIALIZED, PayloadBuf::default());
                }
                Event::Handled(message) => {
                    let received = received.or_else(|| self.shared.received());
                    telemetry::handled(&self.server, &self.shared, &message, received);
                }
                Event::QueueLength(length) => observed::queued(&self.server, &self.shared, length),
                Event::PeerMisbehaved(PeerMisbehaved::NotReading) => self.shared.set_end_error("not_reading"),
                Event::Dropped { count, .. } => observed::dropped(&self.server, count),
                Event::Closed => {
                    self.drop_queued(|_| true);
                    self.running.cancel_all();
                    (self.handshake, self.session) = (None, None);
                    let left = self.shared.lock().server_requests.take();
                    // Dropped without the lock, as that wakes the receivers.
                    drop(left);
                    self.shared.wake_handshake_waiters();
                }
                _ => {}
            }
        }
        has_begun
    }

    #[inline]
    fn has_event(&self) -> bool {
        let mut state = self.shared.lock();
        let has_event = state.kernel.has_event();
        if !has_event {
            state.inbox = Inbox::default();
        }
        has_event
    }

    fn next_event(&self) -> Option<Event> {
        let mut state = self.shared.lock();
        let event = state.kernel.poll_event();
        if event.is_none() {
            state.inbox = Inbox::default();
        }
        event
    }

    /// Calls the progress handler of a server-to-client request, without the lock; the request may end meanwhile.
    fn report_progress(&self, call: CallId, progress: ProgressNotificationParams) {
        let watcher = self.shared.lock().pending_request(call).and_then(|pending| pending.watcher.take());
        let Some(mut watcher) = watcher else { return };
        if std::panic::catch_unwind(AssertUnwindSafe(|| watcher(progress))).is_err() {
            return tracing::error!(target: "mcp", "the progress handler of a server-to-client request panicked");
        }
        if let Some(pending) = self.shared.lock().pending_request(call) {
            pending.watcher = Some(watcher);
        }
    }

    /// Notifies the application of a listen stream, unless it has ended at once.
    fn handle_listening(&self, stream: RequestKey, filter: SubscriptionFilter) {
        let Some(listener) = self.shared.lock().listen_streams.get(stream) else { return };
        listener.span.get_or_init(|| telemetry::listen_span(&listener.scope, &self.shared, &self.server));
        observed::listening(&self.server, &self.shared, &listener);
        let filter = listener.filter.get_or_init(|| filter);
        let connection = self.handle();
        #[cfg(feature = "mrtr")]
        crate::tasks::listener::started(&self.server, &connection, stream, filter);
        self.notify_subscription(&Viewer::of_listen_stream(&self.server, &connection, &listener), filter, true);
    }

    fn handle_listening_ended(&self, stream: RequestKey) {
        let listener = self.shared.lock().listen_streams.remove(stream);
        if let Some(listener) = &listener {
            observed::listening_ended(&self.shared, listener);
        }
        if let Some((listener, filter)) =
            listener.as_ref().and_then(|listener| Some((listener, listener.filter.get()?)))
        {
            let connection = self.handle();
            #[cfg(feature = "mrtr")]
            crate::tasks::listener::ended(&self.server, &connection, stream, filter);
            self.notify_subscription(&Viewer::of_listen_stream(&self.server, &connection, listener), filter, false);
        }
    }

    /// Notifies the application of a subscription of a legacy client.
    fn handle_subscription(&self, uri: String, is_active: bool) {
        if self.server.on_subscription().is_none() {
            return;
        }
        let connection = self.handle();
        let (principal, auth) = {
            let state = self.shared.lock();
            (state.principal.clone(), state.auth.clone())
        };
        let viewer = Viewer::of_connection(&self.server, &connection, principal.as_ref(), auth.as_ref());
        self.notify_subscription(&viewer, &SubscriptionFilter::default().resource_subscriptions(vec![uri]), is_active);
    }

    fn notify_subscription(&self, viewer: &Viewer<'_>, filter: &SubscriptionFilter, is_active: bool) {
        let Some(handler) = self.server.on_subscription() else { return };
        let event = SubscriptionEvent { viewer, filter, is_active };
        if std::panic::catch_unwind(AssertUnwindSafe(|| handler(&event))).is_err() {
            tracing::error!(target: "mcp", "the handler of subscriptions panicked");
        }
    }

    fn handle_notification(&self, method: Method, params: PayloadBuf) {
        let Some(handler) = self.server.on_notification() else { return };
        let notification = Notification { method, params, connection: self.handle() };
        if std::panic::catch_unwind(AssertUnwindSafe(|| handler(notification))).is_err() {
            tracing::error!(target: "mcp", "the notification handler panicked");
        }
    }

    fn admit(&mut self, scope: Arc<RequestScope>, params: PayloadBuf, responder: Responder, origin: RequestOrigin) {
        let span = telemetry::span(&scope, &params, &self.shared, &self.server);
        let (shared, server) = (Arc::clone(&self.shared), self.server.clone());
        let ctx = RequestContext::new(scope, params, shared, server, origin);
        observed::started(&ctx);
        self.queued.push(QueuedRequest { ctx, responder, span });
    }

    /// Reports a request that ended before it was admitted.
    fn report_unqueued(&self, scope: Arc<RequestScope>, params: PayloadBuf) {
        let span = telemetry::span(&scope, &params, &self.shared, &self.server);
        let origin = self.shared.lock().origins.take(scope.key());
        let ctx = RequestContext::new(scope, params, Arc::clone(&self.shared), self.server.clone(), origin);
        observed::started(&ctx);
        telemetry::record_cancelled(&span);
        observed::ended(&ctx, Outcome::Cancelled, None);
    }

    fn cancel(&mut self, request: RequestKey) {
        if !self.running.cancel(request) {
            self.drop_queued(|key| key == request);
        }
    }

    /// Drops requests whose handlers were not called.
    fn drop_queued(&mut self, is_dropped: impl Fn(RequestKey) -> bool) {
        self.queued.retain(|queued| {
            let is_kept = !is_dropped(queued.responder.key());
            if !is_kept {
                observed::ended(&queued.ctx, Outcome::Cancelled, None);
            }
            is_kept
        });
    }

    /// Wakes the transport if there is room now for requests that waited.
    pub(super) fn wake_for_queued(&self) {
        if !self.queued.is_empty() {
            self.shared.wake(None);
        }
    }

    /// Calls the handlers of queued requests, but not while too much is queued to be sent.
    pub(super) fn start_queued(&mut self, cx: &mut Context<'_>) {
        while !self.queued.is_empty() && self.wants_input() {
            if let Some(queued) = self.queued.pop() {
                self.start(queued, cx);
            }
        }
    }

    /// Calls a handler; most are ready at once.
    fn start(&mut self, queued: QueuedRequest, cx: &mut Context<'_>) {
        let QueuedRequest { ctx, responder, span } = queued;
        let served = {
            let _entered = span.enter();
            // A panic of a handler ends its own request only.
            std::panic::catch_unwind(AssertUnwindSafe(|| self.server.endpoint().serve(ctx.clone())))
        };
        let later = match served {
            Ok(Dispatched::Ready(outcome)) => return self.finish(&span, &ctx, responder, outcome),
            Ok(Dispatched::Pending(later)) => later,
            Err(_) => return self.finish(&span, &ctx, responder, Err(panicked())),
        };
        let mut task = RunningHandler { handler: CatchPanic::new(later.instrument(span)), responder, ctx };
        match task.poll(cx) {
            Poll::Ready(served) => self.finish(&task.handler.span(), &task.ctx, task.responder, served),
            Poll::Pending => self.run(task),
        }
    }

    /// Adds a pending handler.
    fn run(&mut self, task: RunningHandler) {
        // It is polled once more with its own waker, for which this wakes the driver.
        self.running.push(task, self.shared.route_waker.get());
        if self.shared.route_waker.get().is_none() {
            self.shared.driver.wake();
        }
    }

    /// Sends the server-to-client requests of handlers.
    pub(super) fn send_server_requests(&self, now: Time) {
        let (mut refused, mut sent) = (Vec::new(), Vec::new());
        let mut state = self.shared.lock();
        let State { kernel, server_requests, .. } = &mut *state;
        let Some(requests) = server_requests else { return };
        while let Some(request) = requests.queued.pop_front() {
            let QueuedServerRequest { number, related, method, params, options, reply, span } = request;
            let AskOptions { time, watcher, .. } = options;
            match kernel.call(now, related, method, &params, time) {
                Ok(call) => {
                    if !span.is_disabled() {
                        sent.push((span, kernel.request_id(call).cloned()));
                    }
                    requests.open.push(PendingServerRequest { number, call, watcher, reply });
                }
                Err(error) => refused.push((reply, error, watcher)),
            }
        }
        drop(state);
        // Without the lock, as this wakes handlers, drops values of the application and records in its spans.
        for (span, id) in sent {
            telemetry::record_id(&span, id.as_ref());
        }
        for (reply, error, _watcher) in refused {
            reply.send(Err(error.into()));
        }
    }
}
