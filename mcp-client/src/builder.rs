//! The builder of a client.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_kernel::client::{CancelStyle, ClientConfig, Connection, Mode, ServerFacts};
use mcp_kernel::observe::Observer;
use mcp_kernel::{CallOptions, CommandError, Limits};
use mcp_mrtr::RetryLimits;
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::meta::TraceContext;
use mcp_types::{
    ClientCapabilities, CreateMessageRequestParams, CreateMessageResult, ElicitRequestFormParams,
    ElicitRequestUrlParams, ElicitResult, Implementation, ListRootsResult, LoggingLevel,
    LoggingMessageNotificationParams, Method, OrderedMap, RawObject, Revision, Root, tasks,
};
use tracing::Span;

use crate::capabilities::merge;
use crate::client::Client;
use crate::context::MessageContext;
use crate::detected_revision::DetectedRevision;
use crate::error::Error;
use crate::list::ListLimits;
use crate::request_handlers::{IntoClientResult, RequestHandlers, handler};
use crate::revision_cache::RevisionCache;
use crate::session::SavedSession;
use crate::session::{ClientEvent, EventHandler, Restart, RestartHandler, SessionLossAction, SessionLossPolicy};
use crate::settings::{LogHandler, NotificationHandler, Settings, TraceContextSource, TraceParent};
use crate::state::Shared;
use crate::tasks::FollowLimits;
use crate::transport::TransportHandle;
use crate::transport::{Transport, TransportKind};

/// Configures a client; created by [`Client::builder`].
///
/// The client declares the capabilities that it has handlers for:
///
/// # Examples
///
/// ```
/// use mcp_client::Client;
/// use mcp_client::types::{ElicitAction, ElicitResult};
///
/// let client = Client::builder("example", "1.0")
///     .on_form_elicitation(async |_, form| {
///         // Show `form.message` and the fields of `form.requested_schema`.
///         ElicitResult::new(ElicitAction::Decline)
///     });
/// ```
///
/// The same handlers serve legacy servers, which send requests while a call is in flight, and modern servers, which respond
/// to a call with input requests. Their [`MessageContext`] says which call a request belongs to, and
/// [`Call::on_input`](crate::Call::on_input) handles the requests of a single call.
#[must_use = "a builder does nothing until `connect` is called"]
pub struct ClientBuilder {
    info: Implementation,
    capabilities: ClientCapabilities,
    extensions: OrderedMap<RawObject>,
    request_handlers: RequestHandlers,
    roots: Option<Arc<Mutex<Vec<Root>>>>,
    mode: Mode,
    revisions: Vec<Revision>,
    detected: Option<DetectedRevision>,
    revision_cache: Option<(RevisionCache, String)>,
    resume: Option<SavedSession>,
    limits: Limits,
    call_options: CallOptions,
    retry_limits: RetryLimits,
    list_limits: ListLimits,
    follow_limits: Option<FollowLimits>,
    max_cached_results: usize,
    probe_timeout: Option<Duration>,
    handshake_timeout: Duration,
    log_level: Option<LoggingLevel>,
    trace_context: Option<TraceContextSource>,
    trace_parent: Option<TraceParent>,
    observer: Option<Arc<dyn Observer>>,
    on_session_lost: Arc<dyn SessionLossPolicy>,
    on_event: Option<EventHandler>,
    on_restart: Option<RestartHandler>,
    on_log: Option<LogHandler>,
    on_notification: Option<NotificationHandler>,
}

/// Default maximum number of calls in flight; further ones wait.
const MAX_CALLS: usize = 1024;

/// Default maximum number of cached results.
const MAX_CACHED_RESULTS: usize = 256;

/// Maximum number of streams on which servers report the changes of tasks. Each is a call in flight; tasks beyond are polled
/// more often.
const MAX_TASK_STREAMS: usize = 64;

/// Default time after which the legacy handshake is sent to a server behind a pipe that did not respond to the probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// The requests of a server that the client handles itself, or with functions of their own.
const OWN_METHODS: [Method; 4] =
    [Method::PING, Method::ELICITATION_CREATE, Method::SAMPLING_CREATE_MESSAGE, Method::ROOTS_LIST];

impl ClientBuilder {
    pub(crate) fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let mut limits = Limits::default();
        limits.max_calls = MAX_CALLS;
        Self {
            info: Implementation::new(name, version),
            capabilities: ClientCapabilities::default(),
            extensions: OrderedMap::new(),
            request_handlers: RequestHandlers::default(),
            roots: None,
            mode: Mode::Auto,
            revisions: Revision::ALL.to_vec(),
            detected: None,
            revision_cache: None,
            resume: None,
            limits,
            call_options: CallOptions::default(),
            retry_limits: RetryLimits::default(),
            list_limits: ListLimits::default(),
            follow_limits: Some(FollowLimits::default()),
            max_cached_results: MAX_CACHED_RESULTS,
            probe_timeout: None,
            handshake_timeout: Duration::from_secs(60),
            log_level: None,
            trace_context: None,
            trace_parent: None,
            observer: None,
            on_session_lost: Arc::new(SessionLossAction::default()),
            on_event: None,
            on_restart: None,
            on_log: None,
            on_notification: None,
        }
    }

    /// Sets the implementation info of the client, which may include a title, a website and icons.
    pub fn info(mut self, info: Implementation) -> Self {
        self.info = info;
        self
    }

    /// Handles form mode elicitation, and declares that capability. Fields that the handler leaves out get their default
    /// values; content that violates the requested schema is not sent, and the server gets an error.
    pub fn on_form_elicitation<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(MessageContext, ElicitRequestFormParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoClientResult<ElicitResult>> + Send + 'static,
    {
        self.request_handlers.form = Some(handler(function));
        self
    }

    /// Handles URL mode elicitation, and declares that capability. Show the full URL to the user and ask for consent before
    /// opening it; never fetch it automatically.
    pub fn on_url_elicitation<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(MessageContext, ElicitRequestUrlParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoClientResult<ElicitResult>> + Send + 'static,
    {
        self.request_handlers.url = Some(handler(function));
        self
    }

    /// Handles sampling requests, and declares that capability. Requests with tools are rejected.
    pub fn on_sampling<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(MessageContext, CreateMessageRequestParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoClientResult<CreateMessageResult>> + Send + 'static,
    {
        self.request_handlers.sampling = Some(handler(function));
        self
    }

    /// Handles sampling requests including those with tools, and declares both capabilities.
    pub fn on_sampling_with_tools<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(MessageContext, CreateMessageRequestParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoClientResult<CreateMessageResult>> + Send + 'static,
    {
        self.request_handlers.sampling_tools = true;
        self.on_sampling(function)
    }

    /// Sets the roots of the client, and declares that capability. [`Client::set_roots`] replaces them later.
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        let roots = Arc::new(Mutex::new(roots.into_iter().collect::<Vec<_>>()));
        self.roots = Some(Arc::clone(&roots));
        self.request_handlers.roots = Some(handler(move |_, ()| {
            let roots = roots.lock().unwrap_or_else(PoisonError::into_inner).clone();
            async move { ListRootsResult::new(roots) }
        }));
        self
    }

    /// Handles roots requests, and declares that capability: for roots that depend on the call or have to be looked up.
    /// [`roots`](Self::roots) sets a fixed list instead; the later of the two calls counts.
    ///
    /// When the roots change, notify a legacy server with [`Client::notify`] and
    /// [`Method::NOTIFICATIONS_ROOTS_LIST_CHANGED`].
    pub fn on_roots<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(MessageContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoClientResult<ListRootsResult>> + Send + 'static,
    {
        self.roots = None;
        self.request_handlers.roots = Some(handler(move |context, ()| function(context)));
        self
    }

    /// Handles requests of a legacy server with any other method, such as those of an extension. Requests without a handler
    /// get the error "method not found".
    ///
    /// Some methods need a capability, which [`capabilities`](Self::capabilities) or [`extension`](Self::extension)
    /// declares. [`connect`](Self::connect) fails for a method that the client handles itself or that has a function of its
    /// own, such as `elicitation/create`.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_client::Client;
    /// use mcp_client::types::RawObject;
    ///
    /// let client = Client::builder("example", "1.0").on_request("example/now", async |_, _params| {
    ///     RawObject::new(&serde_json::json!({ "seconds": 0 })).map_err(|error| {
    ///         mcp_client::types::ErrorObject::internal_error(error.to_string())
    ///     })
    /// });
    /// ```
    pub fn on_request<F, Fut>(mut self, method: impl Into<Method>, function: F) -> Self
    where
        F: Fn(MessageContext, PayloadBuf) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoClientResult<RawObject>> + Send + 'static,
    {
        let method = method.into();
        self.request_handlers.others.retain(|(other, _)| *other != method);
        self.request_handlers.others.push((method, handler(function)));
        self
    }

    /// Declares capabilities as a whole, such as those of the client of a gateway, with `experimental`, `tasks` and unknown
    /// ones. Those of the client's handlers are added.
    ///
    /// A capability without a handler of the client is for calls with their own
    /// ([`Call::on_input`](crate::Call::on_input)). [`connect`](Self::connect) returns [`Error::InvalidCapabilities`] if the
    /// capabilities contradict the handlers.
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Declares support for a protocol extension, with its settings.
    pub fn extension(mut self, name: impl Into<String>, settings: RawObject) -> Self {
        self.extensions.insert(name, settings);
        self
    }

    /// Calls a function with each log message of the server. It must not block.
    pub fn on_log(
        mut self,
        handler: impl Fn(MessageContext, LoggingMessageNotificationParams) + Send + Sync + 'static,
    ) -> Self {
        self.on_log = Some(Arc::new(handler));
        self
    }

    /// Calls a function with each notification that the client does not handle itself, such as those of extensions. It must
    /// not block.
    pub fn on_notification(
        mut self,
        handler: impl Fn(MessageContext, Method, PayloadBuf) + Send + Sync + 'static,
    ) -> Self {
        self.on_notification = Some(Arc::new(handler));
        self
    }

    /// Sets what to do when the session with a legacy server over HTTP is lost: a [`SessionLossAction`], or a function from
    /// a [`SessionLoss`](crate::SessionLoss) to one. Defaults to [`SessionLossAction::Renew`].
    ///
    /// ```
    /// use mcp_client::{Client, SessionLossAction};
    ///
    /// let client = Client::builder("example", "1.0").on_session_lost(SessionLossAction::Fail);
    /// ```
    pub fn on_session_lost(mut self, decide: impl SessionLossPolicy) -> Self {
        self.on_session_lost = Arc::new(decide);
        self
    }

    /// Calls a function with each [`ClientEvent`], such as the loss of a session, as soon as it happens. It must not block.
    pub fn on_event(mut self, handler: impl Fn(ClientEvent) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(handler));
        self
    }

    /// Calls a function when a connection has taken the place of one that was lost, because the server was restarted or the
    /// session was renewed, and calls can be sent again. It must not block; to restore the state of the server, spawn a
    /// task.
    ///
    /// ```
    /// use mcp_client::Client;
    ///
    /// let client = Client::builder("example", "1.0")
    ///     .on_restart(|restart| eprintln!("{:?}: {} calls failed", restart.cause, restart.failed_calls));
    /// ```
    pub fn on_restart(mut self, handler: impl Fn(Restart) + Send + Sync + 'static) -> Self {
        self.on_restart = Some(Arc::new(handler));
        self
    }

    /// Sets the minimum severity of log messages of modern servers. Defaults to no log messages.
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Sets which eras are tried. Defaults to both, the modern era first.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the supported protocol revisions. Defaults to all.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.revisions = revisions.into_iter().collect();
        self
    }

    /// Skips era detection by reusing the revision that an earlier connection detected ([`Client::detected_revision`]), and
    /// the description of the server. If the revision proves wrong, the client probes again. Discard legacy revisions after
    /// a day: a server that has become modern may still accept the legacy handshake, so that the client would not notice.
    // DU-41
    pub fn detected_revision(mut self, detected: DetectedRevision) -> Self {
        self.detected = Some(detected);
        self
    }

    /// Shares the detected revision of the server with other clients through `cache`. `target` identifies the server, such
    /// as its command line or its address. [`detected_revision`](Self::detected_revision) takes precedence.
    ///
    /// The [description](Client::server) of the server is shared with it. Over HTTP, where each client can have other
    /// credentials, it is shared only if the server declares it public; use
    /// [`detected_revision`](Self::detected_revision) to reuse the one of a user.
    pub fn revision_cache(mut self, cache: &RevisionCache, target: impl Into<String>) -> Self {
        self.revision_cache = Some((cache.clone(), target.into()));
        self
    }

    /// Resumes a session with a legacy server over HTTP, without a handshake.
    // S4.57
    pub fn resume_session(mut self, session: SavedSession) -> Self {
        self.resume = Some(session);
        self
    }

    /// Sets the default timeouts of calls, which [`Call::idle_timeout`](crate::Call::idle_timeout) and
    /// [`Call::total_timeout`](crate::Call::total_timeout) override.
    pub fn call_options(mut self, options: CallOptions) -> Self {
        self.call_options = options;
        self
    }

    /// Limits the input requests of a modern server: how many, and how often in one call.
    pub fn retry_limits(mut self, limits: RetryLimits) -> Self {
        self.retry_limits = limits;
        self
    }

    /// Sets the limits of lists. A list that exceeds one of them fails with [`Error::ListTooLong`]. Defaults to
    /// [`ListLimits::default`].
    pub fn list_limits(mut self, limits: ListLimits) -> Self {
        self.list_limits = limits;
        self
    }

    /// Sets the limits of the tasks that the client follows. Defaults to [`FollowLimits::default`].
    pub fn follow_limits(mut self, limits: FollowLimits) -> Self {
        self.follow_limits = Some(limits);
        self
    }

    /// Does not follow tasks, and does not declare the extension `io.modelcontextprotocol/tasks`: calls return their results,
    /// and tools that run only as a task fail. An application that declares the [extension](Self::extension) itself gets the
    /// `CreateTaskResult` of a call, and does the rest with [`Client::request`].
    ///
    /// By default the client declares the extension with each request, and [`Client::call_tool`] follows tasks.
    pub fn without_tasks(mut self) -> Self {
        self.follow_limits = None;
        self
    }

    /// Sets the limits of the connection, such as the size of messages and the number of calls in flight.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the maximum number of cached results; 0 disables the cache. Defaults to 256.
    pub fn max_cached_results(mut self, max: usize) -> Self {
        self.max_cached_results = max;
        self
    }

    /// Sets how long a server behind a pipe may take to respond to the probe before the legacy handshake is sent as well.
    /// The response that arrives first decides. Defaults to 1 second, or with [`Mode::Modern`] to the
    /// [`handshake_timeout`](Self::handshake_timeout).
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.probe_timeout = Some(timeout);
        self
    }

    /// Sets how long a server may take for the handshake. The time that a user needs to log in is not counted. Defaults to 60
    /// seconds.
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// Sets a function that returns the W3C trace context of each request and notification, which is sent to the server. It is
    /// called in the span of the message, `mcp.request`: with `tracing-opentelemetry`, return the context of
    /// [`tracing::Span::current`]. The crate `mcp-telemetry` has one for OpenTelemetry.
    ///
    /// With such a function, with [`trace_parent`](Self::trace_parent) or with an [`observer`](Self::observer), there are also
    /// spans for messages that the client sends or handles by itself, such as `initialize` and `ping`.
    // X-15
    pub fn trace_context(mut self, source: impl Fn() -> Option<TraceContext> + Send + Sync + 'static) -> Self {
        self.trace_context = Some(Arc::new(source));
        self
    }

    /// Sets a function that makes the span of each request and notification of the server a child of the server's span, which
    /// the trace context of the message names. It is called before the span is entered. The crate `mcp-telemetry` has one for
    /// OpenTelemetry. By default the `traceparent` is only a field of the span.
    pub fn trace_parent(mut self, set: impl Fn(&Span, &TraceContext) + Send + Sync + 'static) -> Self {
        self.trace_parent = Some(Arc::new(set));
        self
    }

    /// Sets what receives the metrics of the client and of its transport, such as that of the crate `mcp-telemetry`. By
    /// default nothing is measured.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Connects to a server: detects its era, and performs the handshake if it is legacy.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Closed`] if the server cannot be reached, or if there is no common revision,
    /// [`Error::InvalidCapabilities`] if the [capabilities](Self::capabilities) contradict the handlers, and
    /// [`Error::Command`] if [`on_request`](Self::on_request) has a method of another function.
    pub async fn connect(mut self, transport: impl Transport) -> Result<Client, Error> {
        let kind = transport.kind();
        let handlers = &mut self.request_handlers;
        if let Some((method, _)) = handlers.others.iter().find(|(method, _)| OWN_METHODS.contains(method)) {
            return Err(CommandError::Reserved(method.clone()).into());
        }
        handlers.declared = merge(self.capabilities, self.extensions, handlers, self.roots.is_some())?;
        if self.follow_limits.is_some() {
            // TK-1
            let declared = handlers.declared.extensions.get_or_insert_default();
            if !declared.contains(tasks::EXTENSION) {
                declared.insert(tasks::EXTENSION, RawObject::empty());
            }
        }
        let mut config = ClientConfig::new(self.info, handlers.declared.clone());
        config.revisions = self.revisions;
        config.mode = self.mode;
        // DU-27: over HTTP a server that does not respond may be of either era, so there is nothing else to try and no
        // reason for a short timeout.
        config.probe_timeout = match kind {
            TransportKind::Pipe if self.mode != Mode::Modern => self.probe_timeout.unwrap_or(PROBE_TIMEOUT),
            TransportKind::Pipe => self.probe_timeout.unwrap_or(self.handshake_timeout),
            TransportKind::RequestPerCall => self.handshake_timeout,
        };
        config.handshake_timeout = self.handshake_timeout;
        config.log_level = self.log_level;
        config.limits = self.limits.clone();
        config.silence_means_legacy = kind == TransportKind::Pipe;
        config.cancel_style = match kind {
            TransportKind::Pipe => CancelStyle::Notify,
            TransportKind::RequestPerCall => CancelStyle::CloseStream,
        };
        let settings = Settings {
            kind,
            network: transport.network(),
            observer: self.observer,
            credentials: transport.credentials(),
            clock: transport.clock(),
            request_handlers: Arc::new(self.request_handlers),
            roots: self.roots,
            call_options: self.call_options,
            retry_limits: self.retry_limits,
            list_limits: self.list_limits,
            follow_limits: self.follow_limits,
            max_task_streams: (self.limits.max_calls / 4).min(MAX_TASK_STREAMS),
            message_limits: self.limits.message,
            max_cached_results: self.max_cached_results,
            trace_context: self.trace_context,
            trace_parent: self.trace_parent,
            revision_cache: self.revision_cache,
            on_session_lost: self.on_session_lost,
            on_event: self.on_event,
            on_restart: self.on_restart,
            on_log: self.on_log,
            on_notification: self.on_notification,
        };
        config.observed = settings.is_observed();
        let shared = Arc::new(Shared::new(settings, Connection::new(Arc::new(config))));
        shared.start_session();
        let (detected, resume) = (self.detected, self.resume);
        shared.with(|core, now| {
            let cached = || shared.settings.revision_cache.as_ref().and_then(|(cache, target)| cache.get(target, now));
            let detected = detected.or_else(cached);
            core.detected = detected.as_ref().map(DetectedRevision::to_kernel);
            core.server = detected.map(|detected| detected.server).unwrap_or_default();
            match resume {
                Some(session) => {
                    let mut facts = ServerFacts::default();
                    facts.capabilities = session.capabilities;
                    facts.info = session.info;
                    facts.instructions = session.instructions;
                    (core.session_id, core.session_owner) = (Some(session.id), session.owner);
                    core.kernel.resume(session.revision, facts);
                }
                None => core.kernel.start(now, core.detected),
            }
        });
        let client = Client::new(Arc::clone(&shared));
        transport.start(TransportHandle::new(shared));
        client.ready().await?;
        Ok(client)
    }
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder").field("info", &self.info).field("mode", &self.mode).finish_non_exhaustive()
    }
}
