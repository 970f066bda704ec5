//! The state that the handles of a client share with its transport.

pub(crate) mod memory_size;
pub(crate) mod timers;
pub(crate) mod waiters;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;

use mcp_kernel::client::{ConnectError, Connection, DetectedRevision, Event, Responder, ServerFacts, Transmit};
use mcp_kernel::{CallId, CallOptions, CommandError, PeerMisbehaved, Time};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{
    Era, LoggingMessageNotificationParams, Method, ProtocolVersion, RawObject, RequestId, Revision, SubscriptionFilter,
};

use crate::cache::Cache;
use crate::call::headers::ToolHeaders;
use crate::call::pending_call::PendingCall;
use crate::call::tool_refresh::ToolRefresh;
use crate::closed::Closed;
use crate::listen::legacy::LegacySubscriptions;
use crate::session::{SessionLoss, SessionLossReason};
use crate::settings::Settings;
use crate::transport::CredentialFingerprint;
use crate::transport::{OutgoingMessage, TransportCommand};

use self::timers::Timers;
use self::waiters::Waiters;

/// A client: its settings, and its state.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    core: Mutex<Core>,
}

/// The state of a client, behind one lock that is never held while code of the application or the runtime runs.
pub(crate) struct Core {
    pub(crate) kernel: Connection,
    pub(crate) phase: Phase,
    /// The capabilities, name and instructions of the server.
    pub(crate) server: ServerFacts,
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
    pub(crate) session_id: Option<String>,
    /// The last loss of a session.
    last_session_loss: Option<SessionLoss>,
    /// The credentials that the session was initialized with.
    pub(crate) session_owner: Option<CredentialFingerprint>,
    pub(crate) pending_calls: BTreeMap<CallId, PendingCall>,
    pub(crate) timers: Timers,
    pub(crate) cache: Cache,
    pub(crate) tool_headers: ToolHeaders,
    pub(crate) tool_refresh: ToolRefresh,
    pub(crate) legacy_subscriptions: LegacySubscriptions,
    /// Messages of the server that do not belong to a call.
    pub(crate) inbox: VecDeque<Inbound>,
    /// The size of the log messages and notifications in `inbox`.
    inbox_bytes: usize,
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
}

/// Maximum number and size of queued log messages and notifications.
const MAX_INBOUND: usize = 1024;
const MAX_INBOUND_BYTES: usize = 4 * 1024 * 1024;

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
    Closed(Closed),
}

/// A message of the server that does not belong to a call.
pub(crate) enum Inbound {
    Request { method: Method, params: PayloadBuf, responder: Responder },
    Cancelled { id: RequestId },
    Log(LoggingMessageNotificationParams),
    Notification { method: Method, params: PayloadBuf },
}

/// The outcome of starting a call.
pub(crate) enum Started {
    /// The call is queued, in this revision.
    Call(CallId, Revision),
    /// There is no connection at the moment, or too many calls are in flight.
    Wait,
    /// The call cannot be sent.
    Failed(CommandError),
    /// The client is closed.
    Closed(Closed),
}

impl Shared {
    pub(crate) fn new(settings: Settings, kernel: Connection) -> Self {
        let cache = Cache::new(settings.max_cached_results);
        let core = Core {
            kernel,
            phase: Phase::Connecting,
            server: ServerFacts::default(),
            detected: None,
            exited_on_probe: false,
            exits_on_probe: false,
            newly_detected: None,
            disconnect_reason: None,
            session_id: None,
            session_owner: None,
            last_session_loss: None,
            pending_calls: BTreeMap::new(),
            timers: Timers::default(),
            cache,
            tool_headers: ToolHeaders::default(),
            tool_refresh: ToolRefresh::default(),
            legacy_subscriptions: LegacySubscriptions::default(),
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            commands: VecDeque::new(),
            ready_waiters: Waiters::default(),
            state_waiters: Waiters::default(),
            epoch: 0,
            transport_waker: None,
            to_wake: Vec::new(),
        };
        Self { settings, core: Mutex::new(core) }
    }

    pub(crate) fn now(&self) -> Time {
        (self.settings.clock)()
    }

    /// Changes the state, processes the events that result, and wakes the tasks that wait for them.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Core, Time) -> R) -> R {
        let now = self.now();
        let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        let result = work(&mut core, now);
        core.process_events();
        if let Some((detected, was_probed_again)) = core.newly_detected.take()
            && let Some((cache, target)) = &self.settings.revision_cache
        {
            cache.put(target, detected, core.exits_on_probe, now);
            if was_probed_again {
                cache.confirm(target, now);
            }
        }
        // Usually there is at most one waker; then the vector keeps its memory.
        let last = core.to_wake.pop();
        let others = (!core.to_wake.is_empty()).then(|| std::mem::take(&mut core.to_wake));
        drop(core);
        others.into_iter().flatten().for_each(Waker::wake);
        if let Some(last) = last {
            last.wake();
        }
        result
    }

    /// Reads the state.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&Core) -> R) -> R {
        read(&self.core.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Core {
    /// Starts a call. With `has_headers`, parameters are repeated in headers if the revision defines them.
    pub(crate) fn start_call(
        &mut self,
        now: Time,
        method: &Method,
        params: &RawObject,
        options: CallOptions,
        has_headers: bool,
    ) -> Started {
        self.start(|core, revision| {
            if !has_headers || revision.era() == Era::Legacy {
                return core.kernel.call(now, method, params, options);
            }
            let headers = core.tool_headers.get(method, params);
            core.kernel.call_with_headers(now, method, params, options, headers)
        })
    }

    /// Starts a `subscriptions/listen` call.
    pub(crate) fn start_listening(&mut self, now: Time, filter: &SubscriptionFilter) -> Started {
        self.start(|core, _| core.kernel.listen(now, filter.clone()))
    }

    fn start(&mut self, make: impl FnOnce(&mut Self, Revision) -> Result<CallId, CommandError>) -> Started {
        let revision = match &self.phase {
            Phase::Closed(why) => return Started::Closed(why.clone()),
            Phase::Closing => return Started::Closed(Closed::ByClient),
            Phase::Connecting => return Started::Wait,
            Phase::Ready(revision) => *revision,
        };
        match make(self, revision) {
            Ok(call) => {
                self.pending_calls.insert(call, PendingCall::default());
                self.wake_transport();
                Started::Call(call, revision)
            }
            Err(error) if error.is_temporary() => Started::Wait,
            Err(error) => Started::Failed(error),
        }
    }

    /// Switches to another protocol version that both sides support; returns whether there is one.
    pub(crate) fn switch_version(&mut self, now: Time, offered: &[ProtocolVersion]) -> bool {
        let is_switched = self.kernel.switch_version(now, offered);
        self.wake_transport();
        is_switched
    }

    /// Probes the server again, if its revision was not confirmed yet.
    pub(crate) fn reconsider(&mut self, now: Time) {
        if self.kernel.reconsider(now) {
            self.wake_transport();
        }
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

    pub(crate) fn set_closed(&mut self, why: Closed) {
        if let Phase::Closed(_) = self.phase {
            return;
        }
        self.phase = Phase::Closed(if let Phase::Closing = self.phase { Closed::ByClient } else { why });
        self.kernel.close();
        self.wake_all();
    }

    /// Wakes all waiting tasks, because the client is closed.
    fn wake_all(&mut self) {
        self.to_wake.extend(self.ready_waiters.all());
        self.to_wake.extend(self.state_waiters.all());
        self.to_wake.extend(self.timers.all());
        self.wake_transport();
    }

    /// Fails all calls, because the server was lost.
    pub(crate) fn handle_disconnect(&mut self, why: &Closed, may_have_read: bool) {
        self.disconnect_reason = Some(why.to_string());
        if may_have_read {
            self.kernel.handle_disconnect();
        } else {
            self.kernel.handle_disconnect_unread();
        }
        while let Some(event) = self.kernel.poll_event() {
            if let Event::Failed(ConnectError::Disconnected) | Event::Closed = event {
                continue;
            }
            self.handle_event(event);
        }
        // A server that was ready before can be restarted, and so can one that exited when it was probed. In any other
        // case the client is closed, with the reason of the transport.
        if self.epoch == 0 && !self.exited_on_probe {
            self.set_closed(why.clone());
        }
    }

    /// Sets the current credentials, and drops what is cached for others.
    pub(crate) fn set_credentials(&mut self, fingerprint: CredentialFingerprint) {
        if self.cache.set_owner(fingerprint) {
            self.tool_headers.clear();
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

    /// Reports everything that legacy subscriptions cover as changed.
    pub(crate) fn missed_changes(&mut self) {
        let wakes = self.legacy_subscriptions.assume_all_changed();
        self.to_wake.extend(wakes);
    }

    /// Takes the queued messages of the server.
    pub(crate) fn take_inbox(&mut self) -> VecDeque<Inbound> {
        self.inbox_bytes = 0;
        std::mem::take(&mut self.inbox)
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

    /// Returns the next command for the transport; messages come first.
    pub(crate) fn next_command(&mut self) -> Option<TransportCommand> {
        if let Some(transmit) = self.kernel.poll_transmit() {
            // Another call can be queued now.
            self.to_wake.extend(self.ready_waiters.all());
            return Some(match transmit {
                Transmit::Abort { call } => TransportCommand::Abort { call },
                Transmit::Send { call, method, revision, headers, message } => {
                    TransportCommand::Send(OutgoingMessage { call, method, revision, headers, message })
                }
            });
        }
        self.commands.pop_front()
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

    /// Processes the events of the kernel.
    fn process_events(&mut self) {
        while let Some(event) = self.kernel.poll_event() {
            self.handle_event(event);
        }
        match (&self.phase, self.kernel.detected_revision()) {
            // The kernel repeats the handshake, or has switched to another version.
            (Phase::Ready(_), None) => self.phase = Phase::Connecting,
            (Phase::Ready(known), Some(detected)) if *known != detected.revision => {
                self.phase = Phase::Ready(detected.revision);
            }
            (Phase::Ready(_) | Phase::Connecting | Phase::Closing | Phase::Closed(_), _) => {}
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Ready { revision, server } => self.ready(revision, *server),
            Event::RestartNeeded { detected } => {
                (self.detected, self.exited_on_probe, self.exits_on_probe) = (Some(detected), true, true);
            }
            Event::Failed(why) => {
                // The reasons of the transport and of the lost session say more than those of the kernel.
                let lost = if why == ConnectError::Disconnected {
                    self.disconnect_reason.take().map(Closed::Disconnected)
                } else {
                    self.last_session_loss.take().filter(|_| why == ConnectError::SessionLost).map(Closed::SessionLost)
                };
                self.set_closed(lost.unwrap_or_else(|| why.into()));
            }
            Event::CallFinished { call, outcome } => {
                self.to_wake.extend(self.ready_waiters.all());
                if let Some(pending) = self.pending_calls.get_mut(&call) {
                    pending.outcome = Some(outcome);
                    let waker = pending.waker.take();
                    self.wake(waker);
                }
            }
            Event::CallProgress { call, progress } => {
                let waker = self.pending_calls.get_mut(&call).and_then(|pending| pending.push_progress(progress));
                self.wake(waker);
            }
            Event::Listening { call, filter } => {
                let waker = self.pending_calls.get_mut(&call).and_then(|pending| pending.acknowledge(filter));
                self.wake(waker);
            }
            Event::Changed { call, change } => {
                self.cache.invalidate(&change);
                let waker = match call {
                    Some(call) => self.pending_calls.get_mut(&call).and_then(|pending| pending.push_change(change)),
                    None => {
                        let wakes = self.legacy_subscriptions.push_change(&change);
                        self.to_wake.extend(wakes);
                        None
                    }
                };
                self.wake(waker);
            }
            Event::Request { method, params, responder } => {
                self.push_inbound(Inbound::Request { method, params, responder });
            }
            Event::RequestCancelled { id } => self.push_inbound(Inbound::Cancelled { id }),
            Event::Log(log) => self.push_inbound(Inbound::Log(log)),
            Event::Notification { method, params } => self.push_inbound(Inbound::Notification { method, params }),
            Event::PeerMisbehaved(what @ PeerMisbehaved::IdAsText(_)) => {
                tracing::warn!(target: "mcp", %what, "the server returns ids as strings, which is tolerated");
            }
            Event::PeerMisbehaved(what) => tracing::debug!(target: "mcp", %what, "the server violated the protocol"),
            // The kernel closed the connection, because the server sends requests without reading the responses.
            Event::Closed => {
                if let Phase::Connecting | Phase::Ready(_) = self.phase {
                    self.set_closed(Closed::Disconnected(
                        "the server does not read the responses to its requests".to_owned(),
                    ));
                }
            }
            _ => {}
        }
    }

    fn ready(&mut self, revision: Revision, server: ServerFacts) {
        if let Phase::Closing | Phase::Closed(_) = self.phase {
            return;
        }
        self.phase = Phase::Ready(revision);
        let was_probed_again = self.detected.is_some_and(|detected| detected.probe_again);
        self.detected = self.kernel.detected_revision();
        self.newly_detected = self.detected.map(|detected| (detected, was_probed_again));
        // Without a new handshake or probe the facts are still those of the connection before.
        if server.capabilities.is_some() {
            self.server = server;
        }
        self.epoch += 1;
        self.commands.push_back(TransportCommand::Ready { revision });
        self.to_wake.extend(self.ready_waiters.all());
        self.to_wake.extend(self.state_waiters.all());
        self.wake_transport();
    }

    fn push_inbound(&mut self, inbound: Inbound) {
        // The kernel bounds requests. The rest is dropped if the application does not keep up.
        let size = match &inbound {
            Inbound::Request { .. } | Inbound::Cancelled { .. } => 0,
            Inbound::Log(log) => memory_size::of_log(log),
            Inbound::Notification { method, params } => method.as_str().len() + params.as_str().len(),
        };
        let is_droppable = matches!(inbound, Inbound::Log(_) | Inbound::Notification { .. });
        let is_full =
            self.inbox.len() >= MAX_INBOUND || (!self.inbox.is_empty() && self.inbox_bytes + size > MAX_INBOUND_BYTES);
        if is_droppable && is_full {
            return;
        }
        self.inbox_bytes += size;
        self.inbox.push_back(inbound);
        self.wake_transport();
    }
}
