//! What the handles of a client share with its transport.

pub(crate) mod memory_size;
pub(crate) mod timers;
pub(crate) mod waiters;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;

use mcp_kernel::client::{ConnectError, Connection, DetectedRevision, Event, Responder, ServerFacts, Transmit};
use mcp_kernel::{CallId, CallOptions, Misuse, PeerMisbehaved, Time};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{
    Era, LoggingMessageNotificationParams, Method, ProtocolVersion, RawObject, RequestId, Revision, SubscriptionFilter,
};

use crate::cache::Cache;
use crate::call::headers::{Headers, Tools};
use crate::call::pending_call::Slot;
use crate::call::tool_refresh::Relisting;
use crate::closed::Closed;
use crate::listen::changes::LegacyListeners;
use crate::session::{SessionLoss, SessionLossReason};
use crate::settings::Settings;
use crate::transport::CredentialFingerprint;
use crate::transport::{Order, Outgoing};

use self::timers::Timers;
use self::waiters::Waiters;

/// One client: its settings, and everything that changes.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    core: Mutex<Core>,
}

/// Everything that changes, behind one lock that is never held while foreign code runs.
pub(crate) struct Core {
    pub(crate) kernel: Connection,
    pub(crate) phase: Phase,
    /// What the server said about itself.
    pub(crate) server: ServerFacts,
    /// What to start the next connection with.
    pub(crate) detected: Option<DetectedRevision>,
    /// Whether the server died when it was asked which era it belongs to.
    pub(crate) died_of_probe: bool,
    /// Whether it ever did.
    dies_of_probe: bool,
    /// What was just found out, and whether there were doubts about it.
    found: Option<(DetectedRevision, bool)>,
    /// Why the latest connection broke.
    pub(crate) lost: Option<String>,
    pub(crate) session_id: Option<String>,
    /// How the session before was lost.
    latest_loss: Option<SessionLoss>,
    /// The credentials that the session was begun with.
    pub(crate) session_owner: Option<CredentialFingerprint>,
    pub(crate) slots: BTreeMap<CallId, Slot>,
    pub(crate) timers: Timers,
    pub(crate) cache: Cache,
    pub(crate) tools: Tools,
    pub(crate) relisting: Relisting,
    pub(crate) legacy_listeners: LegacyListeners,
    /// What the server sent that is not for one of the calls.
    pub(crate) inbox: VecDeque<Inbound>,
    /// What log messages and notifications in it weigh.
    inbox_bytes: usize,
    /// What headers are to say about calls that wait to be sent.
    headers: BTreeMap<CallId, Headers>,
    orders: VecDeque<Order>,
    /// Those who wait for a connection, or for room in it.
    pub(crate) waiting: Waiters,
    /// Those who want to know when a connection begins, or when there will be none any more.
    pub(crate) watching: Waiters,
    /// How often a connection began.
    pub(crate) epoch: u64,
    /// The transport, if it waits for something to do.
    pub(crate) driver: Option<Waker>,
    /// Those to be woken when the lock is free.
    wakes: Vec<Waker>,
}

/// How many messages that nobody asked for wait to be handed on, and how many bytes they may have.
const MOST_INBOUND: usize = 1024;
const MOST_INBOUND_BYTES: usize = 4 * 1024 * 1024;

/// How far the client has come.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// There is no connection yet, or none at the moment.
    Connecting,
    /// Calls can be made.
    Ready(Revision),
    /// The client is to be closed, and the transport is about to end.
    Closing,
    /// The transport has ended.
    Over(Closed),
}

/// What a server sends that is not for one of the calls.
pub(crate) enum Inbound {
    Request { method: Method, params: PayloadBuf, responder: Responder },
    Cancelled { id: RequestId },
    Log(LoggingMessageNotificationParams),
    Notification { method: Method, params: PayloadBuf },
}

/// What came of the attempt to make a call.
pub(crate) enum Started {
    /// It is on its way, in this revision.
    Call(CallId, Revision),
    /// There is no connection at the moment, or no room in it.
    Wait,
    /// It cannot be made.
    Misuse(Misuse),
    /// There will be no connection any more.
    Closed(Closed),
}

impl Shared {
    pub(crate) fn new(settings: Settings, kernel: Connection) -> Self {
        let cache = Cache::new(settings.cache);
        let core = Core {
            kernel,
            phase: Phase::Connecting,
            server: ServerFacts::default(),
            detected: None,
            died_of_probe: false,
            dies_of_probe: false,
            found: None,
            lost: None,
            session_id: None,
            session_owner: None,
            latest_loss: None,
            slots: BTreeMap::new(),
            timers: Timers::default(),
            cache,
            tools: Tools::default(),
            relisting: Relisting::default(),
            legacy_listeners: LegacyListeners::default(),
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            headers: BTreeMap::new(),
            orders: VecDeque::new(),
            waiting: Waiters::default(),
            watching: Waiters::default(),
            epoch: 0,
            driver: None,
            wakes: Vec::new(),
        };
        Self { settings, core: Mutex::new(core) }
    }

    pub(crate) fn now(&self) -> Time {
        (self.settings.clock)()
    }

    /// Does something with what changes, and lets everybody know what came of it.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Core, Time) -> R) -> R {
        let now = self.now();
        let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        let result = work(&mut core, now);
        core.settle();
        if let Some((detected, was_probed_again)) = core.found.take()
            && let Some((cache, target)) = &self.settings.revision_cache
        {
            cache.put(target, detected, core.dies_of_probe, now);
            if was_probed_again {
                cache.confirm(target, now);
            }
        }
        // Mostly it is one or none, and the memory is kept.
        let last = core.wakes.pop();
        let others = (!core.wakes.is_empty()).then(|| std::mem::take(&mut core.wakes));
        drop(core);
        others.into_iter().flatten().for_each(Waker::wake);
        if let Some(last) = last {
            last.wake();
        }
        result
    }

    /// Looks at what changes, which changes nothing.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Core) -> R) -> R {
        look(&self.core.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Core {
    /// Makes a call, if there is a connection that has room for it.
    pub(crate) fn start_call(
        &mut self,
        now: Time,
        method: &Method,
        params: &RawObject,
        options: CallOptions,
        headers: Headers,
    ) -> Started {
        let started = self.start(|kernel| kernel.call(now, method, params, options));
        if let Started::Call(call, _) = started
            && !headers.is_empty()
        {
            self.headers.insert(call, headers);
        }
        started
    }

    /// Asks to be told of changes, if there is a connection that has room for it.
    pub(crate) fn start_listening(&mut self, now: Time, filter: &SubscriptionFilter) -> Started {
        self.start(|kernel| kernel.listen(now, filter.clone()))
    }

    fn start(&mut self, make: impl FnOnce(&mut Connection) -> Result<CallId, Misuse>) -> Started {
        let revision = match &self.phase {
            Phase::Over(why) => return Started::Closed(why.clone()),
            Phase::Closing => return Started::Closed(Closed::ByClient),
            Phase::Connecting => return Started::Wait,
            Phase::Ready(revision) => *revision,
        };
        match make(&mut self.kernel) {
            Ok(call) => {
                self.slots.insert(call, Slot::default());
                self.wake_driver();
                Started::Call(call, revision)
            }
            Err(Misuse::TooManyCalls { .. } | Misuse::NotReading | Misuse::NotInitialized) => Started::Wait,
            Err(misuse) => Started::Misuse(misuse),
        }
    }

    /// Uses another version, if there is a common one.
    pub(crate) fn switch_version(&mut self, now: Time, offered: &[ProtocolVersion]) -> bool {
        let is_mended = self.kernel.switch_version(now, offered);
        self.wake_driver();
        is_mended
    }

    /// Asks the server which era it belongs to, if nobody did yet.
    pub(crate) fn reconsider(&mut self, now: Time) {
        if self.kernel.reconsider(now) {
            self.wake_driver();
        }
    }

    /// Gives a call up, because nobody waits for it any more.
    pub(crate) fn abandon(&mut self, call: CallId) {
        if self.slots.remove(&call).is_some() && self.kernel.cancel(call).is_ok() {
            self.wake_driver();
        }
    }

    /// Ends the client: the transport is to end, too.
    pub(crate) fn close(&mut self) {
        if let Phase::Connecting | Phase::Ready(_) = self.phase {
            self.phase = Phase::Closing;
            self.kernel.close();
            self.wake_all();
        }
    }

    pub(crate) fn over(&mut self, why: Closed) {
        if let Phase::Over(_) = self.phase {
            return;
        }
        self.phase = Phase::Over(if let Phase::Closing = self.phase { Closed::ByClient } else { why });
        self.kernel.close();
        self.wake_all();
    }

    /// Wakes everybody: there is nothing to wait for any more.
    fn wake_all(&mut self) {
        self.wakes.extend(self.waiting.all());
        self.wakes.extend(self.watching.all());
        self.wakes.extend(self.timers.all());
        self.wake_driver();
    }

    /// Ends everything that the server knows of.
    pub(crate) fn disconnected(&mut self, why: &Closed, may_have_read: bool) {
        self.lost = Some(why.to_string());
        if may_have_read {
            self.kernel.handle_disconnect();
        } else {
            self.kernel.handle_disconnect_unread();
        }
        while let Some(event) = self.kernel.poll_event() {
            if let Event::Failed(ConnectError::Disconnected) | Event::Closed = event {
                continue;
            }
            self.take(event);
        }
        // A server that was there once may be so again, and one that died of the probe, too. Of any other, how it ended
        // says the most.
        if self.epoch == 0 && !self.died_of_probe {
            self.over(why.clone());
        }
    }

    /// Forgets what was kept for other credentials than these.
    pub(crate) fn set_credentials(&mut self, fingerprint: CredentialFingerprint) {
        if self.cache.set_owner(fingerprint) {
            self.tools.clear();
        }
    }

    /// Takes note that the session is lost; returns what is known about it, if it is the one in use.
    pub(crate) fn session_loss(&mut self, is_latest: bool, reason: SessionLossReason) -> Option<SessionLoss> {
        let is_in_use = matches!(self.phase, Phase::Ready(revision) if revision.era() == Era::Legacy);
        if !is_latest {
            return None;
        }
        let session_id = self.session_id.take();
        let loss = is_in_use.then_some(SessionLoss { session_id, reason })?;
        self.latest_loss = Some(loss.clone());
        Some(loss)
    }

    /// Nobody knows what a legacy server told in the meantime.
    pub(crate) fn missed_changes(&mut self) {
        let wakes = self.legacy_listeners.assume_all();
        self.wakes.extend(wakes);
    }

    /// Takes what is to be handed on.
    pub(crate) fn take_inbox(&mut self) -> VecDeque<Inbound> {
        self.inbox_bytes = 0;
        std::mem::take(&mut self.inbox)
    }

    pub(crate) fn wake_driver(&mut self) {
        self.wakes.extend(self.driver.take());
    }

    pub(crate) fn wake_each(&mut self, wakers: impl Iterator<Item = Waker>) {
        self.wakes.extend(wakers);
    }

    pub(crate) fn wake(&mut self, waker: Option<Waker>) {
        self.wakes.extend(waker);
    }

    /// The next thing for the transport to do; messages come before the rest.
    pub(crate) fn next_order(&mut self) -> Option<Order> {
        if let Some(transmit) = self.kernel.poll_transmit() {
            // There is room again.
            self.wakes.extend(self.waiting.all());
            return Some(match transmit {
                Transmit::Abort { call } => Order::Abort { call },
                Transmit::Send { call, method, revision, message } => {
                    let headers = call.and_then(|call| self.headers.remove(&call)).unwrap_or_default();
                    Order::Send(Outgoing { call, method, revision, headers, message })
                }
            });
        }
        self.orders.pop_front()
    }

    /// When something is to be done even if nothing happens.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let kernel = self.kernel.poll_timeout().map(|deadline| deadline.at);
        kernel.into_iter().chain(self.timers.next()).min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.kernel.handle_timeout(now);
        let due = self.timers.due(now);
        self.wakes.extend(due);
    }

    /// Hands on what the kernel has to say.
    fn settle(&mut self) {
        while let Some(event) = self.kernel.poll_event() {
            self.take(event);
        }
        match (&self.phase, self.kernel.detected_revision()) {
            // The kernel shakes hands again, or went over to another version.
            (Phase::Ready(_), None) => self.phase = Phase::Connecting,
            (Phase::Ready(known), Some(detected)) if *known != detected.revision => {
                self.phase = Phase::Ready(detected.revision);
            }
            (Phase::Ready(_) | Phase::Connecting | Phase::Closing | Phase::Over(_), _) => {}
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Ready { revision, server } => self.ready(revision, *server),
            Event::RestartNeeded { detected } => {
                (self.detected, self.died_of_probe, self.dies_of_probe) = (Some(detected), true, true);
            }
            Event::Failed(why) => {
                // Why the way is cut says more than that it is, and how the session was lost more than that it was.
                let lost = if why == ConnectError::Disconnected {
                    self.lost.take().map(Closed::Lost)
                } else {
                    self.latest_loss.take().filter(|_| why == ConnectError::SessionLost).map(Closed::SessionLost)
                };
                self.over(lost.unwrap_or_else(|| why.into()));
            }
            Event::CallFinished { call, outcome } => {
                self.headers.remove(&call);
                self.wakes.extend(self.waiting.all());
                if let Some(slot) = self.slots.get_mut(&call) {
                    slot.outcome = Some(outcome);
                    let waker = slot.waker.take();
                    self.wake(waker);
                }
            }
            Event::CallProgress { call, progress } => {
                let waker = self.slots.get_mut(&call).and_then(|slot| slot.progressed(progress));
                self.wake(waker);
            }
            Event::Listening { call, filter } => {
                let waker = self.slots.get_mut(&call).and_then(|slot| slot.acknowledged(filter));
                self.wake(waker);
            }
            Event::Changed { call, change } => {
                self.cache.invalidate(&change);
                let waker = match call {
                    Some(call) => self.slots.get_mut(&call).and_then(|slot| slot.changed(change)),
                    None => {
                        let wakes = self.legacy_listeners.changed(&change);
                        self.wakes.extend(wakes);
                        None
                    }
                };
                self.wake(waker);
            }
            Event::Request { method, params, responder } => {
                self.deliver(Inbound::Request { method, params, responder });
            }
            Event::RequestCancelled { id } => self.deliver(Inbound::Cancelled { id }),
            Event::Log(log) => self.deliver(Inbound::Log(log)),
            Event::Notification { method, params } => self.deliver(Inbound::Notification { method, params }),
            Event::PeerMisbehaved(what @ PeerMisbehaved::IdAsText(_)) => {
                tracing::warn!(target: "mcp", %what, "the server changes ids, which is tolerated");
            }
            Event::PeerMisbehaved(what) => tracing::debug!(target: "mcp", %what, "the server broke a rule"),
            // Nobody told that it is lost: the kernel gave it up, because the server asks without reading the answers.
            Event::Closed => {
                if let Phase::Connecting | Phase::Ready(_) = self.phase {
                    self.over(Closed::Lost("the server does not read what is sent to it".to_owned()));
                }
            }
            _ => {}
        }
    }

    fn ready(&mut self, revision: Revision, server: ServerFacts) {
        if let Phase::Closing | Phase::Over(_) = self.phase {
            return;
        }
        self.phase = Phase::Ready(revision);
        let was_probed_again = self.detected.is_some_and(|detected| detected.probe_again);
        self.detected = self.kernel.detected_revision();
        self.found = self.detected.map(|detected| (detected, was_probed_again));
        // A server that did not have to be asked again is who it was.
        if server.capabilities.is_some() {
            self.server = server;
        }
        self.epoch += 1;
        self.orders.push_back(Order::Ready { revision });
        self.wakes.extend(self.waiting.all());
        self.wakes.extend(self.watching.all());
        self.wake_driver();
    }

    fn deliver(&mut self, inbound: Inbound) {
        // Requests are bounded by the kernel; the rest is worth less than the memory of somebody who cannot keep up.
        let weight = match &inbound {
            Inbound::Request { .. } | Inbound::Cancelled { .. } => 0,
            Inbound::Log(log) => memory_size::of_log(log),
            Inbound::Notification { method, params } => method.as_str().len() + params.as_str().len(),
        };
        let is_dispensable = matches!(inbound, Inbound::Log(_) | Inbound::Notification { .. });
        let is_full = self.inbox.len() >= MOST_INBOUND
            || (!self.inbox.is_empty() && self.inbox_bytes + weight > MOST_INBOUND_BYTES);
        if is_dispensable && is_full {
            return;
        }
        self.inbox_bytes += weight;
        self.inbox.push_back(inbound);
        self.wake_driver();
    }
}
