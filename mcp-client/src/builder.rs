//! Describes a client.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_kernel::client::{CancelStyle, ClientConfig, Connection, DetectedRevision, Mode, ServerFacts};
use mcp_kernel::{CallOptions, Limits};
use mcp_mrtr::RetryLimits;
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::meta::TraceContext;
use mcp_types::{
    ClientCapabilities, CreateMessageRequestParams, CreateMessageResult, ElicitRequestFormParams,
    ElicitRequestUrlParams, ElicitResult, Implementation, ListRootsResult, LoggingLevel,
    LoggingMessageNotificationParams, Method, RawObject, Revision, Root,
};

use crate::client::Client;
use crate::error::Error;
use crate::list::ListLimits;
use crate::request_handlers::{Answers, IntoAnswer, answer};
use crate::revision_cache::RevisionCache;
use crate::session::SavedSession;
use crate::session::{ClientEvent, DecideSessionLost, EventListener, SessionLost};
use crate::settings::Settings;
use crate::state::Shared;
use crate::transport::Link;
use crate::transport::{Transport, TransportKind};

/// Describes a client: made by [`Client::builder`], and good for one connection.
///
/// What a server may ask is what there are functions for; it is declared to the server and to nobody else:
///
/// ```
/// use mcp_client::Client;
/// use mcp_client::types::{ElicitAction, ElicitResult};
///
/// let client = Client::builder("example", "1.0")
///     .on_form(async |form| {
///         // Show `form.message` and the fields of `form.requested_schema`.
///         ElicitResult::new(ElicitAction::Decline)
///     });
/// ```
///
/// The same functions answer legacy servers, which ask while a call is open, and modern ones, which end a round of the
/// call with their questions.
#[must_use = "a client is there when it is connected"]
pub struct ClientBuilder {
    info: Implementation,
    capabilities: ClientCapabilities,
    answers: Answers,
    roots: Option<Arc<Mutex<Vec<Root>>>>,
    mode: Mode,
    revisions: Vec<Revision>,
    detected: Option<DetectedRevision>,
    revision_cache: Option<(RevisionCache, String)>,
    resume: Option<SavedSession>,
    limits: Limits,
    calls: CallOptions,
    rounds: RetryLimits,
    lists: ListLimits,
    cache: usize,
    probe_timeout: Option<Duration>,
    handshake_timeout: Duration,
    log_level: Option<LoggingLevel>,
    trace: Option<Arc<dyn Fn() -> Option<TraceContext> + Send + Sync>>,
    on_session_lost: Arc<dyn DecideSessionLost>,
    on_event: Option<EventListener>,
    on_log: Option<Arc<dyn Fn(LoggingMessageNotificationParams) + Send + Sync>>,
    on_notification: Option<Arc<dyn Fn(Method, PayloadBuf) + Send + Sync>>,
}

/// How many calls may be open before further ones wait.
const MOST_CALLS: usize = 1024;

/// How many answers are kept for as long as the server says.
const MOST_KEPT: usize = 256;

/// How long a server behind a pipe may take to say whether it is modern before the handshake is tried as well.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

impl ClientBuilder {
    pub(crate) fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let mut limits = Limits::default();
        limits.calls = MOST_CALLS;
        Self {
            info: Implementation::new(name, version),
            capabilities: ClientCapabilities::default(),
            answers: Answers::default(),
            roots: None,
            mode: Mode::Auto,
            revisions: Revision::ALL.to_vec(),
            detected: None,
            revision_cache: None,
            resume: None,
            limits,
            calls: CallOptions::default(),
            rounds: RetryLimits::default(),
            lists: ListLimits::default(),
            cache: MOST_KEPT,
            probe_timeout: None,
            handshake_timeout: Duration::from_secs(60),
            log_level: None,
            trace: None,
            on_session_lost: Arc::new(SessionLost::default()),
            on_event: None,
            on_log: None,
            on_notification: None,
        }
    }

    /// Says more about the client: a title, a website, icons.
    pub fn info(mut self, info: Implementation) -> Self {
        self.info = info;
        self
    }

    /// Answers forms: questions of the server to the person in front of the client. Fields that the answer leaves out
    /// are filled in with their defaults, and an answer that does not fit the form is not sent.
    pub fn on_form<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(ElicitRequestFormParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<ElicitResult>> + Send + 'static,
    {
        self.answers.form = answer(function);
        self
    }

    /// Sends the person in front of the client to a page. Show the full address and ask first; never fetch it.
    pub fn on_url<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(ElicitRequestUrlParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<ElicitResult>> + Send + 'static,
    {
        self.answers.url = answer(function);
        self
    }

    /// Lets the server use the client's model; requests with tools are refused.
    pub fn on_sampling<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(CreateMessageRequestParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<CreateMessageResult>> + Send + 'static,
    {
        self.answers.sampling = answer(function);
        self
    }

    /// Like [`on_sampling`](Self::on_sampling), with a model that can use the tools that the server sends along.
    pub fn on_sampling_with_tools<F, Fut>(mut self, function: F) -> Self
    where
        F: Fn(CreateMessageRequestParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<CreateMessageResult>> + Send + 'static,
    {
        self.answers.with_tools = true;
        self.on_sampling(function)
    }

    /// Tells the server where it may work. [`Client::set_roots`] changes it.
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        let roots = Arc::new(Mutex::new(roots.into_iter().collect::<Vec<_>>()));
        self.roots = Some(Arc::clone(&roots));
        self.answers.roots = answer(move |()| {
            let roots = roots.lock().unwrap_or_else(PoisonError::into_inner).clone();
            async move { ListRootsResult::new(roots) }
        });
        self
    }

    /// Declares an extension of the protocol, with its settings.
    pub fn extension(mut self, name: impl Into<String>, settings: RawObject) -> Self {
        self.capabilities.extensions.get_or_insert_default().insert(name, settings);
        self
    }

    /// Hears of the server's log messages. It must not block.
    pub fn on_log(mut self, listener: impl Fn(LoggingMessageNotificationParams) + Send + Sync + 'static) -> Self {
        self.on_log = Some(Arc::new(listener));
        self
    }

    /// Hears of notifications that the protocol does not know, or only extensions do. It must not block.
    pub fn on_notification(mut self, listener: impl Fn(Method, PayloadBuf) + Send + Sync + 'static) -> Self {
        self.on_notification = Some(Arc::new(listener));
        self
    }

    /// Sets what happens when a legacy server over HTTP does not know the session of the client any more, or the session
    /// was begun with other credentials: a [`SessionLost`], or a function that is given what is known. Defaults to
    /// [`SessionLost::Renew`].
    ///
    /// ```
    /// use mcp_client::{Client, SessionLost};
    ///
    /// let client = Client::builder("example", "1.0").on_session_lost(SessionLost::Fail);
    /// ```
    pub fn on_session_lost(mut self, decide: impl DecideSessionLost) -> Self {
        self.on_session_lost = Arc::new(decide);
        self
    }

    /// Hears of what happens to the client while it goes on: a session that was lost, a server that was started again. It
    /// must not block.
    pub fn on_event(mut self, listener: impl Fn(ClientEvent) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(listener));
        self
    }

    /// From which severity on log messages are wanted of modern servers. Default: none are.
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Which eras are tried. Default: both, the modern one first.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The revisions to speak, which the server must share one of. Default: all.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.revisions = revisions.into_iter().collect();
        self
    }

    /// Skips era detection by reusing the revision that an earlier connection detected ([`Client::detected_revision`]). If
    /// it proves wrong, the client probes again. Discard legacy revisions after a day: a server that has become modern may
    /// still accept the legacy handshake, so that the client would not notice.
    // DU-41
    pub fn detected_revision(mut self, detected: DetectedRevision) -> Self {
        self.detected = Some(detected);
        self
    }

    /// Shares the detected revision of the server with other clients through `cache`. `target` identifies the server, such
    /// as its command line or its address. [`detected_revision`](Self::detected_revision) takes precedence.
    pub fn revision_cache(mut self, cache: &RevisionCache, target: impl Into<String>) -> Self {
        self.revision_cache = Some((cache.clone(), target.into()));
        self
    }

    /// Goes on with a session that was begun before, without a handshake.
    // S4.57
    pub fn resume(mut self, session: SavedSession) -> Self {
        self.resume = Some(session);
        self
    }

    /// How long a server may be silent during a call, and how long a call may take: for calls that say nothing else.
    pub fn call_options(mut self, options: CallOptions) -> Self {
        self.calls = options;
        self
    }

    /// How often a modern server may ask something before it completes a call.
    pub fn rounds(mut self, limits: RetryLimits) -> Self {
        self.rounds = limits;
        self
    }

    /// Sets the limits of lists: how many pages, items and bytes one may have. A list beyond them ends with
    /// [`Error::ListTooLong`]. Defaults to [`ListLimits::default`].
    pub fn list_limits(mut self, limits: ListLimits) -> Self {
        self.lists = limits;
        self
    }

    /// What a server may make us keep.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How many answers may be kept for as long as the server says. Default: 256. With 0, none are.
    pub fn cache(mut self, most: usize) -> Self {
        self.cache = most;
        self
    }

    /// Sets how long a server behind a pipe may take to say whether it is modern before the handshake is tried as well: one
    /// that is slow to start may still say so until it has answered the handshake. Defaults to 1 second, or to the time of
    /// the handshake for a client that speaks to modern servers alone.
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.probe_timeout = Some(timeout);
        self
    }

    /// How long a server may take for the handshake. Default: 60 s.
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// Tells where each call comes from, so that traces go on in the server. It is called in the span of the call,
    /// `mcp.request`, whose parent is the span in which the call was awaited: with `tracing-opentelemetry`, the context
    /// of [`tracing::Span::current`] is the one to give.
    // X-15
    pub fn trace_context(mut self, trace: impl Fn() -> Option<TraceContext> + Send + Sync + 'static) -> Self {
        self.trace = Some(Arc::new(trace));
        self
    }

    /// Connects to a server: finds out which era it belongs to, and shakes hands with it if it is legacy.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, or shares no revision with us.
    pub async fn connect(mut self, transport: impl Transport) -> Result<Client, Error> {
        let kind = transport.kind();
        self.answers.declare(&mut self.capabilities);
        let mut config = ClientConfig::new(self.info, self.capabilities);
        config.revisions = self.revisions;
        config.mode = self.mode;
        // Silence over HTTP says nothing about the era, so there is no reason to be short about it (DU-27).
        // Where silence does not mean that there is something else to try, there is more time.
        config.probe_timeout = match kind {
            TransportKind::Pipe if self.mode != Mode::Modern => self.probe_timeout.unwrap_or(PROBE_TIMEOUT),
            TransportKind::Pipe => self.probe_timeout.unwrap_or(self.handshake_timeout),
            TransportKind::Requests => self.handshake_timeout,
        };
        config.handshake_timeout = self.handshake_timeout;
        config.log_level = self.log_level;
        config.limits = self.limits;
        config.silence_means_legacy = kind == TransportKind::Pipe;
        config.cancel_style = match kind {
            TransportKind::Pipe => CancelStyle::Notify,
            TransportKind::Requests => CancelStyle::CloseStream,
        };
        let settings = Settings {
            kind,
            credentials: transport.credentials(),
            clock: transport.clock(),
            answers: Arc::new(self.answers),
            roots: self.roots,
            calls: self.calls,
            rounds: self.rounds,
            lists: self.lists,
            cache: self.cache,
            trace: self.trace,
            revision_cache: self.revision_cache,
            on_session_lost: self.on_session_lost,
            on_event: self.on_event,
            on_log: self.on_log,
            on_notification: self.on_notification,
        };
        let shared = Arc::new(Shared::new(settings, Connection::new(Arc::new(config))));
        let (detected, resume) = (self.detected, self.resume);
        shared.with(|core, now| {
            let cached = || shared.settings.revision_cache.as_ref().and_then(|(cache, target)| cache.get(target, now));
            let detected = detected.or_else(cached);
            core.detected = detected;
            match resume {
                Some(session) => {
                    let mut facts = ServerFacts::default();
                    facts.capabilities = session.capabilities;
                    facts.info = session.info;
                    facts.instructions = session.instructions;
                    (core.session_id, core.session_owner) = (Some(session.id), session.owner);
                    core.kernel.resume(session.revision, facts);
                }
                None => core.kernel.start(now, detected),
            }
        });
        let client = Client::new(Arc::clone(&shared));
        transport.start(Link::new(shared));
        client.ready().await?;
        Ok(client)
    }
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder").field("info", &self.info).field("mode", &self.mode).finish_non_exhaustive()
    }
}
