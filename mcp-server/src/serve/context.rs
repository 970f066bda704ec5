//! The context of a request, which handlers get.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};

use mcp_kernel::server::{Delivery, Principal, RequestScope};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::meta::TraceContext;
use mcp_types::{
    ClientCapabilities, ClientCapability, Era, Implementation, InputResponses, LoggingLevel,
    LoggingMessageNotificationParams, Method, ProgressToken, RawJson, RequestId, Revision,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::auth::info::AuthInfo;
use crate::connection::handle::ConnectionHandle;
use crate::connection::request_origin::RequestOrigin;
use crate::connection::shared::Shared;
use crate::extensions::Extensions;
use crate::serve::end::{EndSignal, Outcome};
use crate::serve::progress::Progress;
use crate::serve::sent_notification::SentNotification;
use crate::serve::telemetry::Stopwatch;
use crate::server::Server;
#[cfg(feature = "mrtr")]
use crate::tasks::port::{TaskPort, TaskSlot};
use crate::visibility::viewer::Viewer;

/// The context of a request: its metadata, and the means to send notifications and requests to its client.
///
/// Clones are cheap, and can be moved into tasks that outlive the request; messages that they send after its end are
/// dropped.
///
/// When a client cancels a request, its handler is dropped at its current `await`. Tasks that the handler spawned continue:
/// give them a clone of the context and let them await [`cancelled`](Self::cancelled). [`on_end`](Self::on_end) adds a
/// callback for the end of the request, whatever its cause. The end of a session, by `DELETE` or
/// by expiry, cancels its requests in the same way, and then runs the callbacks of [`ConnectionHandle::on_close`]. A server
/// that shuts down lets handlers finish for the drain timeout of its transport. The end of each handler is traced, with its
/// outcome and duration ([`request_log_level`](crate::ServerBuilder::request_log_level)).
#[derive(Clone)]
pub struct RequestContext(Arc<Inner>);

struct Inner {
    input_source: InputSource,
    /// The round of a multi round-trip request; absent until the handler sends its first server-to-client request.
    #[cfg(feature = "mrtr")]
    round: crate::asking::round_slot::RoundSlot,
    connection: ConnectionHandle,
    server: Server,
    extensions: Mutex<Extensions>,
    end: EndSignal,
    stopwatch: Option<Stopwatch>,
    /// Whether the end of the request was reported to the observer.
    is_reported: AtomicBool,
    /// The name of the target, if it had to be decoded.
    decoded_target: OnceLock<Option<Box<str>>>,
}

/// Where the input responses of a round come from.
enum InputSource {
    /// The request came from the client, with its input responses and state.
    Client { scope: Arc<RequestScope>, params: PayloadBuf },
    /// The server sent the requests of a round itself, to a legacy client, and calls the handler again.
    Round { request: RequestContext, responses: InputResponses, state: Option<String> },
    /// The request is a task, or may become one.
    #[cfg(feature = "mrtr")]
    Task { request: RequestContext, slot: Arc<TaskSlot> },
}

impl RequestContext {
    pub(crate) fn new(
        scope: Arc<RequestScope>,
        params: PayloadBuf,
        shared: Arc<Shared>,
        server: Server,
        origin: RequestOrigin,
    ) -> Self {
        let RequestOrigin { extensions, received: stopwatch } = origin;
        Self(Arc::new(Inner {
            input_source: InputSource::Client { scope, params },
            #[cfg(feature = "mrtr")]
            round: crate::asking::round_slot::RoundSlot::default(),
            connection: ConnectionHandle(shared),
            server,
            extensions: Mutex::new(extensions),
            end: EndSignal::default(),
            stopwatch,
            is_reported: AtomicBool::new(false),
            decoded_target: OnceLock::new(),
        }))
    }

    /// Measures the time since the request was received, if it is reported.
    pub(crate) fn stopwatch(&self) -> Option<Stopwatch> {
        self.0.stopwatch
    }

    /// Returns whether the end of the request was not reported before.
    pub(crate) fn report_once(&self) -> bool {
        !self.original().0.is_reported.swap(true, Ordering::Relaxed)
    }

    /// The same request for the next round, with the responses that the server collected from a legacy client.
    pub(crate) fn next_round(&self, responses: InputResponses, state: Option<String>) -> Self {
        Self(Arc::new(Inner {
            input_source: InputSource::Round { request: self.clone(), responses, state },
            #[cfg(feature = "mrtr")]
            round: crate::asking::round_slot::RoundSlot::default(),
            connection: self.0.connection.clone(),
            server: self.0.server.clone(),
            extensions: Mutex::new(self.extensions().clone()),
            end: EndSignal::default(),
            stopwatch: self.0.stopwatch,
            is_reported: AtomicBool::new(false),
            decoded_target: OnceLock::new(),
        }))
    }

    /// The same request with an end of its own, which uses the port in a slot as soon as there is one.
    #[cfg(feature = "mrtr")]
    pub(crate) fn in_task(&self, slot: Arc<TaskSlot>) -> Self {
        Self(Arc::new(Inner {
            input_source: InputSource::Task { request: self.clone(), slot },
            round: crate::asking::round_slot::RoundSlot::default(),
            connection: self.0.connection.clone(),
            server: self.0.server.clone(),
            extensions: Mutex::new(self.extensions().clone()),
            end: EndSignal::default(),
            stopwatch: self.0.stopwatch,
            is_reported: AtomicBool::new(true),
            decoded_target: OnceLock::new(),
        }))
    }

    /// Returns whether the handler runs in a [`TaskCall`](crate::tasks::TaskRun).
    #[cfg(feature = "mrtr")]
    pub(crate) fn is_task_run(&self) -> bool {
        match &self.0.input_source {
            InputSource::Client { .. } => false,
            InputSource::Round { request, .. } => request.is_task_run(),
            InputSource::Task { .. } => true,
        }
    }

    /// Returns what takes the place of the client, if the request is a task.
    #[cfg(feature = "mrtr")]
    pub(crate) fn task_port(&self) -> Option<&Arc<dyn TaskPort>> {
        match &self.0.input_source {
            InputSource::Client { .. } => None,
            InputSource::Round { request, .. } => request.task_port(),
            InputSource::Task { slot, .. } => slot.port(),
        }
    }

    /// Returns whether the handler of this request runs in a task, whose result the client fetches later.
    #[cfg(feature = "mrtr")]
    #[must_use]
    pub fn is_task(&self) -> bool {
        self.task_port().is_some()
    }

    #[cfg(feature = "mrtr")]
    pub(crate) fn round(&self) -> &crate::asking::round_slot::RoundSlot {
        &self.0.round
    }

    pub(crate) fn scope(&self) -> &RequestScope {
        match &self.0.input_source {
            InputSource::Client { scope, .. } => scope,
            InputSource::Round { request, .. } => request.scope(),
            #[cfg(feature = "mrtr")]
            InputSource::Task { request, .. } => request.scope(),
        }
    }

    /// The request of the client or the task, which is the one that can be cancelled.
    fn original(&self) -> &Self {
        match &self.0.input_source {
            InputSource::Client { .. } => self,
            #[cfg(feature = "mrtr")]
            InputSource::Task { .. } => self,
            InputSource::Round { request, .. } => request.original(),
        }
    }

    /// Ends the request: its tasks and callbacks learn the outcome, unless it has ended before.
    pub(crate) fn end(&self, outcome: Outcome) {
        self.original().0.end.set(outcome);
    }

    /// How the request ended, if it has.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.original().0.end.outcome()
    }

    pub(crate) fn poll_end(&self, cx: &Context<'_>) -> Poll<()> {
        self.original().0.end.poll(cx)
    }

    /// Returns the protocol revision of the request.
    // S2.7
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.scope().revision()
    }

    /// Returns the era of the revision: modern since 2026-07-28, legacy before.
    #[must_use]
    pub fn era(&self) -> Era {
        self.scope().era()
    }

    /// Returns whether the request has no session, so that a legacy client cannot receive requests from the server.
    // S2.22
    #[must_use]
    pub fn is_stateless(&self) -> bool {
        self.scope().is_stateless()
    }

    /// Returns the JSON-RPC id of the request.
    #[must_use]
    pub fn id(&self) -> &RequestId {
        self.scope().id()
    }

    /// Returns the method of the request.
    #[must_use]
    pub fn method(&self) -> &Method {
        self.scope().method()
    }

    /// Returns the parameters of the request, undecoded.
    #[must_use]
    pub fn params(&self) -> &PayloadBuf {
        match &self.0.input_source {
            InputSource::Client { params, .. } => params,
            InputSource::Round { request, .. } => request.params(),
            #[cfg(feature = "mrtr")]
            InputSource::Task { request, .. } => request.params(),
        }
    }

    /// Returns whether the request was cancelled or has ended.
    // S2.9
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.outcome().is_some()
    }

    /// Waits until the request is cancelled or has ended.
    pub async fn cancelled(&self) {
        poll_fn(|cx| self.poll_end(cx)).await;
    }

    /// Calls a function when the request ends, exactly once, whatever the cause: a result, an error, a panic, input requests,
    /// cancellation, a disconnect, or the shutdown of the server.
    ///
    /// Code after an `await` does not run if the request is cancelled, because handlers and middleware are dropped then. Use
    /// this for what must not be missed, such as gauges and audit logs. If the request has ended already, the function is
    /// called at once. It must not block. A panic is logged.
    ///
    /// For a legacy client, whose request waits for all input that a handler needs, the function is called after the last
    /// round. A modern client retries with a new request, so it is called for each round. `subscriptions/listen` ends with its
    /// acknowledgement.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mcp_server::{Outcome, RequestContext};
    /// # fn example(ctx: RequestContext) {
    /// let id = ctx.id().clone();
    /// ctx.on_end(move |outcome| {
    ///     if outcome == Outcome::Cancelled {
    ///         println!("request {id} was cancelled");
    ///     }
    /// });
    /// # }
    /// ```
    pub fn on_end(&self, callback: impl FnOnce(Outcome) + Send + 'static) {
        self.original().0.end.on_end(Box::new(callback));
    }

    /// Sends a progress notification, if the client sent a progress token with the request.
    ///
    /// Each value must be greater than the one before. The total is optional.
    ///
    /// # Examples
    ///
    /// ```
    /// # use mcp_server::{Progress, RequestContext};
    /// # fn example(ctx: RequestContext) {
    /// ctx.progress(0.5);
    /// ctx.progress((3, 10));
    /// ctx.progress(Progress::new(4).total(10).message("copying"));
    /// # }
    /// ```
    ///
    /// In a task it becomes the status message, whatever the client sent.
    // S2.12, TK-33
    pub fn progress(&self, progress: impl Into<Progress>) {
        #[cfg(feature = "mrtr")]
        if let Some(port) = self.task_port() {
            return port.progress(progress.into());
        }
        if !self.scope().may_report_progress() {
            return;
        }
        let Progress { progress, total, message } = progress.into();
        let (key, sent) = (self.scope().key(), self.sent_notification(&Method::NOTIFICATIONS_PROGRESS));
        let meta = sent.as_ref().and_then(SentNotification::meta);
        let _ = self
            .shared()
            .run_command(Some(key), |kernel| kernel.progress_with_meta(key, progress, (total, message), meta));
    }

    /// Returns the progress token of the request.
    #[must_use]
    pub fn progress_token(&self) -> Option<&ProgressToken> {
        self.scope().progress_token()
    }

    /// Sends a log message to the client, with any serializable data. Messages below the client's log level are dropped, and
    /// those of tasks.
    // S2.15
    pub fn log<T: Serialize + ?Sized>(&self, level: LoggingLevel, data: &T) {
        self.log_from(None, level, data);
    }

    /// Sends a log message with the name of a logger.
    pub fn log_as<T: Serialize + ?Sized>(&self, logger: &str, level: LoggingLevel, data: &T) {
        self.log_from(Some(logger), level, data);
    }

    fn log_from<T: Serialize + ?Sized>(&self, logger: Option<&str>, level: LoggingLevel, data: &T) {
        #[cfg(feature = "mrtr")]
        if self.is_task() {
            return;
        }
        let key = self.scope().key();
        let may_log = match self.era() {
            Era::Modern => self.scope().may_log(level),
            // It may change its level while the request runs.
            Era::Legacy => self.shared().lock().kernel.may_log(Some(key), level),
        };
        if !may_log {
            return;
        }
        if let Ok(data) = RawJson::new(data) {
            let sent = self.sent_notification(&Method::NOTIFICATIONS_MESSAGE);
            let mut params = LoggingMessageNotificationParams::new(level, data);
            (params.logger, params.meta) = (logger.map(str::to_owned), sent.as_ref().and_then(SentNotification::meta));
            let _ = self.shared().run_command(Some(key), |kernel| kernel.log_message(Some(key), &params));
        }
    }

    fn sent_notification(&self, method: &Method) -> Option<SentNotification> {
        SentNotification::start(self.server(), self.shared(), method, Some(self.revision()))
    }

    /// Sends a notification that belongs to this request, for example one that an extension defines.
    ///
    /// Returns whether it was queued. Notifications for which there is a method here, such as progress, are refused.
    pub fn notify(&self, method: &Method, params: &impl Serialize) -> bool {
        #[cfg(feature = "mrtr")]
        if self.is_task() {
            return false;
        }
        let Ok(mut params) = mcp_types::RawObject::new(params) else { return false };
        let (key, sent) = (self.scope().key(), self.sent_notification(method));
        if let Some(traced) = sent.as_ref().and_then(|sent| sent.add_trace_to(&params)) {
            params = traced;
        }
        matches!(
            self.shared().run_command(Some(key), |kernel| kernel.notify(Some(key), method, &params)),
            Ok(Delivery::Queued)
        )
    }

    /// Returns the capabilities that the client declared for this request.
    #[must_use]
    pub fn capabilities(&self) -> &ClientCapabilities {
        self.scope().capabilities()
    }

    /// Returns whether the client declared a capability.
    // S2.21
    #[must_use]
    pub fn supports(&self, capability: ClientCapability) -> bool {
        self.scope().supports(capability)
    }

    /// Returns the name and version that the client claims. They are not verified: use them for display and logs only.
    #[must_use]
    pub fn client_info(&self) -> Option<&Implementation> {
        self.scope().client_info()
    }

    /// Returns the authenticated user of the request, as the transport reported it; `None` on stdio.
    // S2.27
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.scope().principal()
    }

    /// Returns what the access token of the request says, if the transport or a layer attached it; `None` on stdio.
    #[must_use]
    pub fn auth_info(&self) -> Option<AuthInfo> {
        self.extensions().get().cloned()
    }

    /// Returns the trace context (`traceparent`, `tracestate`, `baggage`) of the request.
    #[must_use]
    pub fn trace_context(&self) -> &TraceContext {
        self.scope().trace_context()
    }

    /// Returns the input responses that a modern client sent with its retry, undecoded.
    // S2.24
    #[must_use]
    pub fn input_responses(&self) -> &InputResponses {
        match &self.0.input_source {
            InputSource::Client { scope, .. } => scope.input_responses(),
            InputSource::Round { responses, .. } => responses,
            #[cfg(feature = "mrtr")]
            InputSource::Task { request, .. } => request.input_responses(),
        }
    }

    /// Returns whether there is an input response with this key.
    // S2.38
    #[must_use]
    pub fn has_input_response(&self, key: &str) -> bool {
        self.input_responses().contains(key)
    }

    /// Decodes the input response with this key, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the response is not a `T`.
    // S2.35
    pub fn input_response_as<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, serde_json::Error> {
        self.input_responses().get(key).map(|response| response.decode()).transpose()
    }

    /// Returns the `requestState` of the request. It comes from the client and is not verified; see `sealed_state` for states
    /// that are.
    // S2.26
    #[must_use]
    pub fn request_state(&self) -> Option<&str> {
        match &self.0.input_source {
            InputSource::Client { scope, .. } => scope.request_state(),
            InputSource::Round { state, .. } => state.as_deref(),
            #[cfg(feature = "mrtr")]
            InputSource::Task { request, .. } => request.request_state(),
        }
    }

    /// Decodes the `requestState` of the request as JSON. It comes from the client and is not verified.
    ///
    /// # Errors
    ///
    /// Returns an error if the state is not a `T`.
    // S2.36
    pub fn request_state_as<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        // The message was validated; the JSON inside of this string was not.
        self.request_state().map(|state| RawJson::parse(state)?.decode()).transpose()
    }

    /// Returns whether the request is a retry: it has input responses or a `requestState`.
    // S2.39
    #[must_use]
    pub fn is_retry(&self) -> bool {
        !self.input_responses().is_empty() || self.request_state().is_some()
    }

    /// Returns the connection of the request.
    #[must_use]
    pub fn connection(&self) -> &ConnectionHandle {
        &self.0.connection
    }

    /// Returns the server.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.0.server
    }

    /// Returns a value that was added with [`ServerBuilder::state`](crate::ServerBuilder::state), by its type.
    #[must_use]
    pub fn state<T: std::any::Any + Send + Sync>(&self) -> Option<&T> {
        self.server().state()
    }

    /// Returns a value that the transport or a layer attached to the request, by its type.
    #[must_use]
    pub fn extension<T: std::any::Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.extensions().share()
    }

    /// Attaches a value to the request, which handlers get by its type with [`extension`](Self::extension).
    pub fn insert_extension<T: std::any::Any + Send + Sync>(&self, value: T) {
        let value = Arc::new(value);
        let old = self.extensions().insert_shared(value);
        // Dropped without the lock, as it runs code of the application.
        drop(old);
    }

    /// Returns the client of this request as predicates of visibility see it.
    #[must_use]
    pub fn viewer(&self) -> Viewer<'_> {
        Viewer::of_request(self)
    }

    pub(crate) fn share_extensions(&self) -> Extensions {
        self.extensions().clone()
    }

    fn extensions(&self) -> MutexGuard<'_, Extensions> {
        self.0.extensions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn decoded_target(&self, decode: impl FnOnce() -> Option<Box<str>>) -> Option<&str> {
        self.0.decoded_target.get_or_init(decode).as_deref()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.connection.0
    }
}

impl std::fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestContext").field("scope", self.scope()).finish_non_exhaustive()
    }
}
