//! The state that the handles of a client share with its transport.

mod events;
pub(crate) mod inbox;
pub(crate) mod memory_size;
pub(crate) mod own_calls;
pub(crate) mod pauses;
pub(crate) mod timers;
pub(crate) mod waiters;

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Duration;

use mcp_kernel::client::{ConnectError, Connection, DetectedRevision, Event, HandledMessage, ServerFacts, Transmit};
use mcp_kernel::observe::OperationOutcome;
use mcp_kernel::{CallId, CallOptions, CommandError, Time};
use mcp_types::{Era, LoggingLevel, Method, ObjectRef, ProtocolVersion, RequestMeta, Revision, SubscriptionFilter};
use tracing::Span;

use crate::AuthorizationError;
use crate::cache::{Cache, Owner};
use crate::call::headers::{HeadersOf, ToolHeaders};
use crate::call::pending_call::PendingCall;
use crate::call::telemetry;
use crate::call::tool_refresh::ToolRefresh;
use crate::close_reason::CloseReason;
use crate::context::{CallContext, CallExtensions};
use crate::listen::legacy::LegacySubscriptions;
use crate::observed::{self, EndedSession};
use crate::session::{Restart, RestartCause, SessionLoss, SessionLossReason};
use crate::settings::Settings;
use crate::tasks::followed::FollowedTasks;
use crate::tasks::support::ToolTasks;
use crate::transport::CredentialFingerprint;
use crate::transport::{OutgoingMessage, TransportCommand, TransportKind};

use self::inbox::Inbox;
use self::own_calls::OwnCalls;
use self::pauses::Pauses;
use self::timers::Timers;
use self::waiters::Waiters;

/// A client: its settings, and its state.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    /// A unique name of the client in spans.
    token: OnceLock<Box<str>>,
    /// The span of the connection, until its end.
    session_span: Mutex<Option<Span>>,
    core: Mutex<Core>,
}

/// The state of a client, behind one lock that is never held while code of the application or the runtime runs.
pub(crate) struct Core {
    pub(crate) kernel: Connection,
    /// Whether each call has a request, and a stream, of its own.
    pub(crate) has_streams: bool,
    pub(crate) phase: Phase,
    /// The capabilities, name and instructions of the server.
    pub(crate) server: ServerFacts,
    /// Whether this client has requested them, instead of an earlier one.
    pub(crate) has_current_facts: bool,
    /// The detected revision to start the next connection with.
    pub(crate) detected: Option<DetectedRevision>,
    /// Whether the current server exited when it was probed.
    pub(crate) exited_on_probe: bool,
    /// Whether a server of this client ever did.
    exits_on_probe: bool,
    /// A revision that was just detected, to be put into the cache, and whether the server was probed again for it.
    newly_detected: Option<(DetectedRevision, bool)>,
    /// Why the latest connection broke.
    pub(crate) disconnect_reason: Option<String>,
    /// Why the transport did not send the handshake, if there is more to say than that the stream ended.
    pub(crate) connect_error: Option<CloseReason>,
    pub(crate) session_id: Option<String>,
    /// The last loss of a session.
    last_session_loss: Option<SessionLoss>,
    /// Why the connection is being replaced, and what was lost with it.
    restart: Option<Restart>,
    /// The log level that the application set, which a new session of a legacy server does not have.
    pub(crate) log_level: Option<LoggingLevel>,
    /// The credentials that the session was initialized with.
    pub(crate) session_owner: Option<CredentialFingerprint>,
    pub(crate) pending_calls: BTreeMap<CallId, PendingCall>,
    pub(crate) timers: Timers,
    pub(crate) pauses: Pauses,
    pub(crate) cache: Cache,
    pub(crate) tool_headers: ToolHeaders,
    pub(crate) tool_refresh: ToolRefresh,
    pub(crate) tool_tasks: ToolTasks,
    pub(crate) followed_tasks: FollowedTasks,
    pub(crate) legacy_subscriptions: LegacySubscriptions,
    pub(crate) inbox: Inbox,
    commands: VecDeque<TransportCommand>,
    /// Tasks that wait for the connection to be ready, or for a call to complete.
    pub(crate) ready_waiters: Waiters,
    /// Tasks that wait for a new connection, or for the client to be closed.
    pub(crate) state_waiters: Waiters,
    /// Number of connections so far.
    pub(crate) epoch: u64,
    /// Wakes the transport, if it waits for a command.
    pub(crate) transport_waker: Option<Waker>,
    /// Wakers to wake after the lock is released.
    to_wake: Vec<Waker>,
    /// The calls whose values are dropped after the lock is released.
    to_drop: Vec<PendingCall>,
    /// When the client began to connect.
    start: Time,
    /// The end of the connection, to be reported after the lock is released.
    ended: Option<EndedSession>,
    /// The last revision in use.
    last_revision: Option<Revision>,
    pub(crate) own_calls: OwnCalls,
    /// Messages of the server that the kernel handled, to be reported after the lock is released.
    handled: Vec<HandledMessage>,
}

/// The phase of a client.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// There is no connection yet, or it is being restored.
    Connecting,
    /// Calls can be sent.
    Ready(Revision),
    /// The client is closing, and waits for its transport.
    Closing,
    /// The transport has ended.
    Closed(CloseReason),
}

/// The outcome of starting a call.
pub(crate) enum CallStart {
    /// The call is queued, in this revision.
    Call(CallId, Revision),
    /// There is no connection at the moment, or too many calls are in flight.
    Wait,
    /// The call cannot be sent.
    Failed(CommandError),
    /// The client is closed.
    Closed(CloseReason),
}

impl Shared {
    pub(crate) fn new(settings: Settings, kernel: Connection) -> Self {
        let cache = Cache::new(settings.max_cached_results);
        let core = Core {
            kernel,
            has_streams: settings.kind == TransportKind::RequestPerCall,
            phase: Phase::Connecting,
            server: ServerFacts::default(),
            has_current_facts: false,
            detected: None,
            exited_on_probe: false,
            exits_on_probe: false,
            newly_detected: None,
            disconnect_reason: None,
            connect_error: None,
            session_id: None,
            session_owner: None,
            last_session_loss: None,
            restart: None,
            log_level: None,
            pending_calls: BTreeMap::new(),
            timers: Timers::default(),
            pauses: Pauses::default(),
            cache,
            tool_headers: ToolHeaders::default(),
            tool_refresh: ToolRefresh::default(),
            tool_tasks: ToolTasks::default(),
            followed_tasks: FollowedTasks::default(),
            legacy_subscriptions: LegacySubscriptions::default(),
            inbox: Inbox::default(),
            commands: VecDeque::new(),
            ready_waiters: Waiters::default(),
            state_waiters: Waiters::default(),
            epoch: 0,
            transport_waker: None,
            to_wake: Vec::new(),
            to_drop: Vec::new(),
            start: (settings.clock)(),
            ended: None,
            last_revision: None,
            own_calls: OwnCalls::default(),
            handled: Vec::new(),
        };
        Self { settings, token: OnceLock::new(), session_span: Mutex::new(None), core: Mutex::new(core) }
    }

    /// A unique name of the client, which is not the session id of the transport.
    // S4.103
    pub(crate) fn token(&self) -> &str {
        static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().build_hasher().finish());
        static CLIENTS: AtomicU64 = AtomicU64::new(0);
        self.token.get_or_init(|| format!("{:016x}-{:x}", *PROCESS, CLIENTS.fetch_add(1, Ordering::Relaxed)).into())
    }

    /// Begins the span of the connection, and reports it.
    pub(crate) fn start_session(&self) {
        let span = telemetry::session_span(self);
        *self.session_span.lock().unwrap_or_else(PoisonError::into_inner) = Some(span);
        observed::session_started(self);
    }

    fn end_session(&self, ended: &EndedSession, now: Time) {
        let span = self.session_span.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(span) = span {
            span.record("mcp.protocol.version", ended.revision.map(Revision::as_str));
            span.record("error.type", ended.error);
        }
        observed::session_ended(self, ended, now);
    }

    /// Returns the span of the connection, until its end.
    pub(crate) fn session_span(&self) -> Span {
        self.session_span.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_else(Span::none)
    }

    /// Traces and reports a message of the server that the kernel handled.
    fn report_handled(&self, message: &HandledMessage) {
        let HandledMessage { method, id, revision, trace_context, error, .. } = message;
        let span = telemetry::received_span(self, method, (id.as_ref(), *revision), trace_context);
        if let Some(code) = error {
            telemetry::end(&span, OperationOutcome::Error(*code));
        }
        span.in_scope(|| tracing::trace!(target: "mcp", "handled without a handler"));
        observed::handled(self, message);
    }

    pub(crate) fn now(&self) -> Time {
        (self.settings.clock)()
    }

    /// Returns the time without the pauses so far, to measure durations.
    pub(crate) fn unpaused_time(&self) -> Time {
        self.with(|core, now| core.pauses.unpaused(now))
    }

    /// Changes the state, processes the events that result, and wakes the tasks that wait for them.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Core, Time) -> R) -> R {
        let now = self.now();
        let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        let result = work(&mut core, now);
        core.process_events(now);
        if let Some((detected, was_probed_again)) = core.newly_detected.take()
            && let Some((cache, target)) = &self.settings.revision_cache
        {
            cache.insert(target, detected, core.exits_on_probe, now);
            if core.has_current_facts {
                let is_shared = self.settings.kind == TransportKind::Pipe || core.server.is_public;
                cache.set_server(target, is_shared.then_some(&core.server));
            }
            if was_probed_again {
                cache.confirm(target, now);
            }
        }
        // Usually there is at most one waker; then the vector keeps its memory.
        let last = core.to_wake.pop();
        let others = (!core.to_wake.is_empty()).then(|| std::mem::take(&mut core.to_wake));
        let ended = core.ended.take();
        let (own_calls, handled) = (core.own_calls.take_ended(), std::mem::take(&mut core.handled));
        let dropped = (!core.to_drop.is_empty()).then(|| std::mem::take(&mut core.to_drop));
        drop(core);
        drop(dropped);
        for message in &handled {
            self.report_handled(message);
        }
        self.report_own_calls(own_calls, now);
        if let Some(ended) = ended {
            self.end_session(&ended, now);
        }
        others.into_iter().flatten().for_each(Waker::wake);
        if let Some(last) = last {
            last.wake();
        }
        result
    }

    /// Returns the credentials that a call with these values would be sent with now.
    pub(crate) async fn owner_of(&self, extensions: &CallExtensions) -> Result<Owner, AuthorizationError> {
        Ok(match &self.settings.credentials {
            Some(source) => Owner::Known(source.fingerprint(extensions).await?),
            None => Owner::Fixed,
        })
    }

    /// Reads the state.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&Core) -> R) -> R {
        read(&self.core.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Core {
    /// Returns the revision in use, or the last one.
    pub(crate) fn revision(&self) -> Option<Revision> {
        if let Phase::Ready(revision) = self.phase { Some(revision) } else { self.last_revision }
    }

    /// Starts a call. Over a transport with headers, parameters are repeated in them if the revision defines that, and if a
    /// list of tools for `headers_of` asks for it; `None` is a transport without headers.
    pub(crate) fn start_call(
        &mut self,
        now: Time,
        method: &Method,
        params: ObjectRef<'_>,
        options: CallOptions,
        headers_of: Option<HeadersOf>,
        context: &CallContext,
    ) -> CallStart {
        self.start(context, |core, revision| match headers_of {
            Some(headers_of) if revision.era() == Era::Modern => {
                let owner = headers_of.owner.unwrap_or_else(|| core.cache.client());
                let headers = core.tool_headers.get(owner, method, params, headers_of.tool);
                core.kernel.call_with_headers(now, method, params, options, headers)
            }
            Some(_) | None => core.kernel.call(now, method, params, options),
        })
    }

    /// Starts a `subscriptions/listen` call.
    pub(crate) fn start_listening(
        &mut self,
        now: Time,
        filter: &SubscriptionFilter,
        meta: Option<&RequestMeta>,
        extensions: &CallExtensions,
        timeout: Option<Duration>,
    ) -> CallStart {
        let context = CallContext { extensions: extensions.clone(), on_input: None };
        self.start(&context, |core, _| core.kernel.listen_with_meta(now, filter.clone(), meta.cloned(), timeout))
    }

    fn start(
        &mut self,
        context: &CallContext,
        make: impl FnOnce(&mut Self, Revision) -> Result<CallId, CommandError>,
    ) -> CallStart {
        let revision = match &self.phase {
            Phase::Closed(why) => return CallStart::Closed(why.clone()),
            Phase::Closing => return CallStart::Closed(CloseReason::ByClient),
            Phase::Connecting => return CallStart::Wait,
            Phase::Ready(revision) => *revision,
        };
        match make(self, revision) {
            Ok(call) => {
                self.pending_calls.insert(call, PendingCall::new(context.clone()));
                self.wake_transport();
                CallStart::Call(call, revision)
            }
            Err(error) if error.is_temporary() => CallStart::Wait,
            Err(error) => CallStart::Failed(error),
        }
    }

    /// Switches to another protocol version that both sides support; returns whether there is one.
    pub(crate) fn switch_version(&mut self, now: Time, offered: &[ProtocolVersion]) -> bool {
        let is_switched = self.kernel.switch_version(now, offered);
        self.wake_transport();
        is_switched
    }

    /// Probes the server again, if its revision was not confirmed yet.
    pub(crate) fn probe_again(&mut self, now: Time) {
        if self.kernel.reconsider(now) {
            self.wake_transport();
        }
    }

    /// Keeps what is attached to a call until its end, though its outcome is not needed.
    pub(crate) fn forget_outcome(&mut self, call: CallId, context: &CallContext) {
        let mut pending = PendingCall::new(context.clone());
        pending.is_forgotten = true;
        self.pending_calls.insert(call, pending);
    }

    /// Cancels a call whose future was dropped.
    pub(crate) fn cancel_call(&mut self, call: CallId) {
        if self.pending_calls.remove(&call).is_some() && self.kernel.cancel(call).is_ok() {
            self.wake_transport();
        }
    }

    /// Closes the client, which makes the transport disconnect.
    pub(crate) fn close(&mut self) {
        if let Phase::Connecting | Phase::Ready(_) = self.phase {
            self.phase = Phase::Closing;
            self.kernel.close();
            self.wake_all();
        }
    }

    pub(crate) fn set_closed(&mut self, why: CloseReason) {
        if let Phase::Closed(_) = self.phase {
            return;
        }
        let why = if let Phase::Closing = self.phase { CloseReason::ByClient } else { why };
        self.ended =
            Some(EndedSession { start: self.start, revision: self.last_revision, error: observed::error_of(&why) });
        self.phase = Phase::Closed(why);
        self.kernel.close();
        self.wake_all();
    }

    /// Wakes all waiting tasks, because the client is closed.
    fn wake_all(&mut self) {
        self.to_wake.extend(self.ready_waiters.all());
        self.to_wake.extend(self.state_waiters.all());
        self.to_wake.extend(self.timers.all());
        self.to_wake.extend(self.pauses.timeouts.all());
        self.wake_transport();
    }

    /// Fails all calls, because the server was lost.
    pub(crate) fn handle_disconnect(&mut self, now: Time, why: &CloseReason, may_have_read: bool) {
        self.disconnect_reason = Some(why.to_string());
        let is_failed = |pending: &&PendingCall| {
            pending.outcome.is_none() && pending.acknowledged.is_none() && !pending.is_forgotten
        };
        let failed_calls = self.pending_calls.values().filter(is_failed).count();
        self.restarting(RestartCause::ServerLost(why.clone()), failed_calls);
        if may_have_read {
            self.kernel.handle_disconnect();
        } else {
            self.kernel.handle_disconnect_unread();
        }
        while let Some(event) = self.kernel.poll_event() {
            if let Event::Failed(ConnectError::Disconnected) | Event::Closed = event {
                continue;
            }
            self.handle_event(now, event);
        }
        // A server that was ready before can be restarted, and so can one that exited when it was probed. In any other
        // case the client is closed, with the reason of the transport.
        if self.epoch == 0 && !self.exited_on_probe {
            self.set_closed(why.clone());
        }
    }

    /// Sets the credentials of the client, and drops what is cached for those before.
    pub(crate) fn set_credentials(&mut self, fingerprint: CredentialFingerprint) {
        if let Some(before) = self.cache.set_client(fingerprint) {
            self.tool_headers.remove(before);
        }
    }

    /// Sets the description of the server, which was just requested.
    pub(crate) fn set_facts(&mut self, facts: ServerFacts) {
        (self.server, self.has_current_facts) = (facts, true);
        if let Phase::Ready(_) = self.phase {
            self.newly_detected = self.detected.map(|detected| (detected, false));
        }
    }

    /// Records the loss of a session; returns it if the session was in use.
    pub(crate) fn session_loss(&mut self, is_latest: bool, reason: SessionLossReason) -> Option<SessionLoss> {
        let is_in_use = matches!(self.phase, Phase::Ready(revision) if revision.era() == Era::Legacy);
        if !is_latest {
            return None;
        }
        let session_id = self.session_id.take();
        let loss = is_in_use.then_some(SessionLoss { session_id, reason })?;
        self.last_session_loss = Some(loss.clone());
        Some(loss)
    }

    /// Records that the connection was lost, which counts as a restart once there is a new one.
    pub(crate) fn restarting(&mut self, cause: RestartCause, failed_calls: usize) {
        if self.epoch > 0 {
            let before = self.restart.take().map_or(0, |restart| restart.failed_calls);
            self.restart = Some(Restart { cause, failed_calls: before + failed_calls });
        }
    }

    /// Reports everything that legacy subscriptions cover as changed.
    pub(crate) fn missed_changes(&mut self) {
        let wakes = self.legacy_subscriptions.assume_all_changed();
        self.to_wake.extend(wakes);
    }

    pub(crate) fn wake_transport(&mut self) {
        self.to_wake.extend(self.transport_waker.take());
    }

    pub(crate) fn wake_each(&mut self, wakers: impl Iterator<Item = Waker>) {
        self.to_wake.extend(wakers);
    }

    pub(crate) fn wake(&mut self, waker: Option<Waker>) {
        self.to_wake.extend(waker);
    }

    /// Returns the next command for the transport, and whether it is a message that the client sends by itself. Messages come
    /// first.
    pub(crate) fn next_command(&mut self) -> Option<(TransportCommand, bool)> {
        if let Some(transmit) = self.kernel.poll_transmit() {
            // Another call can be queued now.
            self.to_wake.extend(self.ready_waiters.all());
            return Some(match transmit {
                Transmit::Abort { call } => (TransportCommand::Abort { call }, false),
                Transmit::Send { call, method, revision, headers, message } => {
                    let pending = call.and_then(|call| self.pending_calls.get(&call));
                    let is_own = match call {
                        // A call whose future was dropped is not in flight any more.
                        Some(call) => pending.is_none() && self.kernel.request_id(call).is_some(),
                        None => method.as_ref().is_some_and(|method| OWN_NOTIFICATIONS.contains(method)),
                    };
                    let extensions = pending.map(|pending| pending.context.extensions.clone()).unwrap_or_default();
                    let message = OutgoingMessage { call, method, revision, headers, extensions, message };
                    (TransportCommand::Send(message), is_own)
                }
            });
        }
        self.commands.pop_front().map(|command| (command, false))
    }

    /// Returns the next deadline.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let kernel = self.kernel.poll_timeout().map(|deadline| deadline.at);
        kernel.into_iter().chain(self.timers.next()).min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.kernel.handle_timeout(now);
        let due = self.timers.due(now);
        self.to_wake.extend(due);
    }
}

/// The notifications that only the kernel sends.
const OWN_NOTIFICATIONS: [Method; 2] = [Method::NOTIFICATIONS_INITIALIZED, Method::NOTIFICATIONS_CANCELLED];
