//! One server, as long as it is there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use mcp_types::gate::{self, Direction};
use mcp_types::jsonrpc::{UnknownId, write_error, write_notification, write_request, write_result};
use mcp_types::{
    CancelledNotificationParams, DiscoverResult, Era, ErrorObject, InitializeRequestParams, InitializeResult, Method,
    NotificationParams, ProgressToken, ProtocolVersion, RawObject, RequestId, RequestMeta, RequestParams, Revision,
    SubscriptionFilter, SubscriptionsListenRequestParams, restrict_to,
};
use serde::Serialize;

use super::config::{CancelStyle, ClientConfig, Mode};
use super::detect::{ConnectError, Next, Verdict, judge, legacy};
use super::event::{Event, Responder, ServerFacts, Transmit};
use crate::CallId;
use crate::calls::{CallOptions, Calls};
use crate::deadlines::{Deadline, Deadlines};
use crate::errors::{CallError, Misuse};
use crate::queue::{pop, push};

/// The one home of what a client knows about one server.
///
/// Like the server's [`Connection`](crate::server::Connection) it performs no I/O and knows no time, and its methods
/// fall into three groups.
///
/// | group | methods | who calls |
/// |---|---|---|
/// | commands | [`start`](Self::start), [`call`](Self::call), [`listen`](Self::listen), [`notify`](Self::notify), [`cancel`](Self::cancel), [`respond`](Self::respond), [`close`](Self::close) | the application |
/// | inputs | [`handle_bytes`](Self::handle_bytes), [`handle_status`](Self::handle_status), [`handle_stream_closed`](Self::handle_stream_closed), [`handle_disconnect`](Self::handle_disconnect), [`handle_timeout`](Self::handle_timeout) | the driver |
/// | outputs | [`poll_transmit`](Self::poll_transmit), [`poll_event`](Self::poll_event), [`poll_timeout`](Self::poll_timeout), [`wants_input`](Self::wants_input) | the driver |
///
/// After any command or input, the driver empties the outputs: transmits, events, and last the next deadline.
///
/// [`start`](Self::start) finds out by itself which era the server belongs to; [`Event::Ready`] says when calls can be
/// made. The verdict can be kept, and given to [`start`](Self::start) the next time.
pub struct Connection {
    pub(super) config: Arc<ClientConfig>,
    pub(super) stage: Stage,
    pub(super) calls: Calls,
    pub(super) deadlines: Deadlines,
    /// The subscriptions that are open, and whether the server acknowledged them.
    pub(super) listening: BTreeMap<CallId, bool>,
    /// The requests of the server that are open.
    pub(super) requests: BTreeMap<RequestId, u64>,
    pub(super) generation: u64,
    pub(super) outbox: VecDeque<Transmit>,
    /// What the messages in `outbox` hold.
    pub(super) outbox_bytes: usize,
    pub(super) events: VecDeque<Event>,
}

/// How far the client has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    New,
    Probing { call: CallId, probed: Revision, is_second: bool },
    Handshaking { call: CallId },
    Ready(Revision),
    Over,
}

impl Connection {
    /// Starts out with a server of which nothing is known.
    #[must_use]
    pub fn new(config: Arc<ClientConfig>) -> Self {
        Self {
            config,
            stage: Stage::New,
            calls: Calls::default(),
            deadlines: Deadlines::default(),
            listening: BTreeMap::new(),
            requests: BTreeMap::new(),
            generation: 0,
            outbox: VecDeque::new(),
            outbox_bytes: 0,
            events: VecDeque::new(),
        }
    }

    /// Finds out how to talk to the server, or goes by what was found out before (V-10, V-11).
    ///
    /// A modern verdict makes the connection ready at once; a legacy one skips the probe.
    pub fn start(&mut self, now: Instant, verdict: Option<Verdict>) {
        if self.stage != Stage::New {
            return;
        }
        // A verdict that does not fit the settings any more is not gone by.
        let verdict = verdict.filter(|verdict| self.config.allows(verdict.revision));
        let newest_modern = self.config.newest(Era::Modern);
        match (verdict.map(|verdict| verdict.revision), self.config.mode, newest_modern) {
            (Some(revision), _, _) if revision.era() == Era::Modern => self.ready(revision, ServerFacts::default()),
            (Some(revision), _, _) => self.proceed(now, Next::Handshake(revision)),
            (None, Mode::Auto | Mode::Modern, Some(revision)) => self.probe(now, revision, false),
            (None, Mode::Auto | Mode::Modern | Mode::Legacy, _) => {
                let next = legacy(&self.config);
                self.proceed(now, next);
            }
        }
    }

    /// What was found out about the server.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        match self.stage {
            Stage::Ready(revision) => Some(Verdict::new(revision)),
            Stage::New | Stage::Probing { .. } | Stage::Handshaking { .. } | Stage::Over => None,
        }
    }

    /// Calls a method of the server; the outcome comes as [`Event::CallFinished`], exactly once.
    ///
    /// # Errors
    ///
    /// Fails, and sends nothing, before [`Event::Ready`], or if the server's revision does not have the method.
    pub fn call(
        &mut self,
        now: Instant,
        method: &Method,
        params: &RawObject,
        options: CallOptions,
    ) -> Result<CallId, Misuse> {
        if *method == Method::SUBSCRIPTIONS_LISTEN {
            return Err(Misuse::Reserved(method.clone()));
        }
        self.start_call(now, method, params, options)
    }

    fn start_call(
        &mut self,
        now: Instant,
        method: &Method,
        params: &RawObject,
        options: CallOptions,
    ) -> Result<CallId, Misuse> {
        let revision = self.revision()?;
        self.check(method, revision)?;
        let limit = self.config.limits.calls;
        if self.calls.len() >= limit {
            return Err(Misuse::TooManyCalls { limit });
        }
        if !self.wants_input() {
            return Err(Misuse::NotReading);
        }
        let params: RequestParams = params.decode().map_err(|_| Misuse::NotAnObject)?;
        Ok(self.send_request(now, method, params, revision, options))
    }

    /// Asks to be told of changes (L-2); they come as [`Event::Changed`], after [`Event::Listening`].
    ///
    /// # Errors
    ///
    /// Fails in the legacy era, where changes come unasked or by `resources/subscribe`.
    pub fn listen(&mut self, now: Instant, filter: SubscriptionFilter) -> Result<CallId, Misuse> {
        let params = RawObject::new(&SubscriptionsListenRequestParams::new(filter)).map_err(|_| Misuse::NotAnObject)?;
        // K-15: the answer comes at the end, so nothing is late.
        let options = CallOptions::default().with_idle(None).with_limit(None);
        let call = self.start_call(now, &Method::SUBSCRIPTIONS_LISTEN, &params, options)?;
        self.listening.insert(call, false);
        Ok(call)
    }

    /// Tells the server something.
    ///
    /// # Errors
    ///
    /// Fails if the server's revision does not have the notification.
    pub fn notify(&mut self, method: &Method, params: &impl Serialize) -> Result<(), Misuse> {
        let revision = self.revision()?;
        self.check(method, revision)?;
        if !self.wants_input() {
            return Err(Misuse::NotReading);
        }
        self.send_notification(method, params).map_err(|_| Misuse::NotAnObject)
    }

    /// Gives a call up, in the way of the transport (K-1, K-2); the outcome is [`CallError::Cancelled`].
    ///
    /// # Errors
    ///
    /// Fails if the call has ended, or must not be cancelled.
    pub fn cancel(&mut self, call: CallId) -> Result<(), Misuse> {
        let is_own = matches!(self.stage, Stage::Ready(_));
        if is_own && self.give_up(call, CallError::Cancelled) { Ok(()) } else { Err(Misuse::Unknown) }
    }

    /// Answers a request of the server.
    ///
    /// Returns whether the answer is on its way: one to a request that the server cancelled is left out.
    pub fn respond(&mut self, responder: Responder, outcome: Result<&RawObject, ErrorObject>) -> bool {
        let Responder { id, generation } = responder;
        // After a cancellation the server may use the id again; the generation tells the two apart.
        if self.requests.get(&id) != Some(&generation) {
            return false;
        }
        self.requests.remove(&id);
        let mut message = Vec::new();
        let written = match outcome {
            Ok(result) => write_result(&mut message, &id, result),
            Err(error) => write_error(&mut message, Some(&id), &error, UnknownId::Omit),
        };
        if written.is_ok() {
            self.send(Transmit::Send { call: None, message });
        }
        written.is_ok()
    }

    /// Ends the connection from this side: every call ends.
    pub fn close(&mut self) {
        if self.stage != Stage::Over {
            self.over();
        }
    }

    /// The next thing for the transport to do.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        let transmit = pop(&mut self.outbox)?;
        self.outbox_bytes -= transmit.size();
        Some(transmit)
    }

    /// The next thing for the application to know.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        pop(&mut self.events)
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.deadlines.next()
    }

    /// Whether a driver may feed more: not while as much waits to be sent as the limits allow. What is fed beyond that
    /// ends the connection, because the server asks without reading the answers.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        let limits = &self.config.limits;
        let is_over = self.stage == Stage::Over;
        !is_over && self.outbox.len() < limits.outbox_messages && self.outbox_bytes < limits.outbox_bytes
    }

    /// Whether nothing is open, queued or due.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.calls.len() == 0
            && self.deadlines.next().is_none()
            && self.listening.is_empty()
            && self.requests.is_empty()
            && self.outbox.is_empty()
            && self.events.is_empty()
    }

    pub(super) fn send(&mut self, transmit: Transmit) {
        self.outbox_bytes += transmit.size();
        push(&mut self.outbox, transmit);
    }

    pub(super) fn revision(&self) -> Result<Revision, Misuse> {
        match self.stage {
            Stage::Ready(revision) => Ok(revision),
            Stage::New | Stage::Probing { .. } | Stage::Handshaking { .. } => Err(Misuse::NotInitialized),
            Stage::Over => Err(Misuse::Closed),
        }
    }

    /// Methods that nobody knows may be tried: the server says what it makes of them.
    fn check(&self, method: &Method, revision: Revision) -> Result<(), Misuse> {
        if OWN.contains(method) {
            return Err(Misuse::Reserved(method.clone()));
        }
        let Some(facts) = gate::method(method) else { return Ok(()) };
        let extended =
            facts.extension.is_some_and(|extension| extension.may_travel(Direction::ClientToServer, revision));
        if extended || facts.may_travel(Direction::ClientToServer, revision) {
            Ok(())
        } else {
            Err(Misuse::NotInRevision { method: method.clone(), revision })
        }
    }

    pub(super) fn send_request(
        &mut self,
        now: Instant,
        method: &Method,
        mut params: RequestParams,
        revision: Revision,
        options: CallOptions,
    ) -> CallId {
        let (call, id) = self.calls.start(now, options, &mut self.deadlines);
        let meta = params.meta.get_or_insert_default();
        if options.idle.is_some() || meta.progress_token.is_some() {
            // The id serves as token, so that progress finds its way back and tokens are unique (P-2). A token of the
            // caller's own is put in its place again when progress arrives.
            let own = meta.progress_token.replace(ProgressToken::from(&id));
            if let Some(open) = self.calls.get_mut(call) {
                open.token = own;
            }
        }
        if revision.era() == Era::Modern {
            self.fill_envelope(meta, revision);
        }
        params.meta.take_if(|meta| *meta == RequestMeta::default());
        let mut message = Vec::new();
        // Parameters were an object when they were read, and still are.
        if write_request(&mut message, &id, method, Some(&params)).is_ok() {
            self.send(Transmit::Send { call: Some(call), message });
        }
        call
    }

    /// What every modern request says about itself (X-7..X-10).
    fn fill_envelope(&self, meta: &mut RequestMeta, revision: Revision) {
        meta.protocol_version = Some(ProtocolVersion::from(revision));
        meta.client_capabilities.get_or_insert_with(|| self.config.capabilities.clone());
        meta.client_info.get_or_insert_with(|| self.config.info.clone());
        meta.log_level = meta.log_level.or(self.config.log_level);
    }

    fn send_notification(&mut self, method: &Method, params: &impl Serialize) -> Result<(), serde_json::Error> {
        let mut message = Vec::new();
        write_notification(&mut message, method, Some(params))?;
        self.send(Transmit::Send { call: None, message });
        Ok(())
    }

    /// Ends a call from this side and tells the server.
    pub(super) fn give_up(&mut self, call: CallId, why: CallError) -> bool {
        let Some(ended) = self.calls.end(call, &mut self.deadlines) else { return false };
        self.listening.remove(&call);
        let modern = matches!(self.stage, Stage::Ready(revision) if revision.era() == Era::Modern);
        if modern && self.config.cancel_style == CancelStyle::CloseStream {
            self.send(Transmit::Abort { call });
        } else {
            let params = CancelledNotificationParams::default().request_id(ended.id);
            let _ = self.send_notification(&Method::NOTIFICATIONS_CANCELLED, &params);
        }
        self.events.push_back(Event::CallFinished { call, outcome: Err(why) });
        true
    }

    fn probe(&mut self, now: Instant, revision: Revision, is_second: bool) {
        // K-13: nothing that the server says makes this longer.
        let options = CallOptions::default().with_idle(None).with_limit(Some(self.config.probe_timeout));
        let call = self.send_request(now, &Method::SERVER_DISCOVER, RequestParams::default(), revision, options);
        self.stage = Stage::Probing { call, probed: revision, is_second };
    }

    /// Goes on after the probe came back, or did not.
    pub(super) fn probed(
        &mut self,
        now: Instant,
        probed: Revision,
        is_second: bool,
        outcome: Result<DiscoverResult, CallError>,
    ) {
        match judge(&self.config, probed, is_second, outcome.as_ref()) {
            Next::Modern(revision) => {
                let facts = outcome.map(|found| ServerFacts {
                    capabilities: Some(found.capabilities),
                    info: found.meta.and_then(|meta| meta.server_info),
                    instructions: found.instructions,
                });
                self.ready(revision, facts.unwrap_or_default());
            }
            next @ (Next::ProbeAgain(_) | Next::Handshake(_) | Next::Fail(_)) => self.proceed(now, next),
        }
    }

    pub(super) fn proceed(&mut self, now: Instant, next: Next) {
        match next {
            Next::Modern(revision) => self.ready(revision, ServerFacts::default()),
            Next::ProbeAgain(revision) => self.probe(now, revision, true),
            Next::Fail(why) => self.fail(why),
            Next::Handshake(revision) => {
                let (capabilities, info) = (self.config.capabilities.clone(), self.config.info.clone());
                let mut params = InitializeRequestParams::new(ProtocolVersion::from(revision), capabilities, info);
                // DU-44: nothing that the offered revision does not have.
                let _ = restrict_to(&mut params, revision);
                let params = RawObject::new(&params).ok().and_then(|params| params.decode().ok()).unwrap_or_default();
                let options = CallOptions::default().with_idle(None).with_limit(Some(self.config.handshake_timeout));
                let call = self.send_request(now, &Method::INITIALIZE, params, revision, options);
                self.stage = Stage::Handshaking { call };
            }
        }
    }

    /// Completes the handshake (B-1, B-2, DU-43).
    pub(super) fn shake_hands(&mut self, outcome: Result<InitializeResult, ConnectError>) {
        let result = match outcome {
            Ok(result) => result,
            Err(why) => return self.fail(why),
        };
        let revision = result.protocol_version.revision().filter(|revision| revision.era() == Era::Legacy);
        let Some(revision) = revision.filter(|revision| self.config.revisions.contains(revision)) else {
            return self.fail(ConnectError::NoCommonVersion { offered: vec![result.protocol_version] });
        };
        let _ = self.send_notification(&Method::NOTIFICATIONS_INITIALIZED, &NotificationParams::default());
        let facts = ServerFacts {
            capabilities: Some(result.capabilities),
            info: Some(result.server_info),
            instructions: result.instructions,
        };
        self.ready(revision, facts);
    }

    fn ready(&mut self, revision: Revision, facts: ServerFacts) {
        self.stage = Stage::Ready(revision);
        self.events.push_back(Event::Ready { revision, server: Box::new(facts) });
    }

    pub(super) fn fail(&mut self, why: ConnectError) {
        self.events.push_back(Event::Failed(why));
        self.over();
    }

    pub(super) fn over(&mut self) {
        for call in self.calls.all() {
            let is_own = !matches!(self.stage, Stage::Probing { .. } | Stage::Handshaking { .. });
            let _ = self.calls.end(call, &mut self.deadlines);
            if is_own {
                self.events.push_back(Event::CallFinished { call, outcome: Err(CallError::Disconnected) });
            }
        }
        self.listening.clear();
        self.requests.clear();
        self.stage = Stage::Over;
        self.events.push_back(Event::Closed);
    }
}

/// What the connection says by itself.
const OWN: [Method; 3] = [Method::INITIALIZE, Method::NOTIFICATIONS_INITIALIZED, Method::NOTIFICATIONS_CANCELLED];

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("stage", &self.stage)
            .field("calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}
