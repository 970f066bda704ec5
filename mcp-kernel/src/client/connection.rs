//! One server, as long as it is there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use mcp_types::gate::{self, Direction};
use mcp_types::jsonrpc::{EncodedMessage, UnknownId};
use mcp_types::{
    CancelledNotificationParams, Era, ErrorObject, LoggingLevel, Method, ProgressToken, ProtocolVersion, RawObject,
    RequestId, RequestMeta, RequestParams, Revision, SubscriptionFilter, SubscriptionsListenRequestParams, restrict_to,
};
use serde::Serialize;

use super::config::{CancelStyle, ClientConfig};
use super::detect::DetectedRevision;
use super::event::{Event, Responder, Transmit};
use super::outbox::Outbox;
use crate::calls::{CallOptions, Calls};
use crate::deadlines::{Deadline, Deadlines};
use crate::errors::{CallError, CommandError};
use crate::queue::pop;
use crate::{CallId, Time};

/// The one home of what a client knows about one server.
///
/// Like the server's [`Connection`](crate::server::Connection) it performs no I/O and knows no time, and its methods
/// fall into three groups.
///
/// | group | methods | who calls |
/// |---|---|---|
/// | commands | [`start`](Self::start), [`resume`](Self::resume), [`restart`](Self::restart), [`reconsider`](Self::reconsider), [`switch_version`](Self::switch_version), [`set_log_level`](Self::set_log_level), [`call`](Self::call), [`listen`](Self::listen), [`notify`](Self::notify), [`cancel`](Self::cancel), [`respond`](Self::respond), [`close`](Self::close) | the application |
/// | inputs | [`handle_bytes`](Self::handle_bytes), [`handle_reply`](Self::handle_reply), [`handle_status`](Self::handle_status), [`handle_stream_closed`](Self::handle_stream_closed), [`handle_session_lost`](Self::handle_session_lost), [`handle_disconnect`](Self::handle_disconnect), [`handle_timeout`](Self::handle_timeout) | the driver |
/// | outputs | [`poll_transmit`](Self::poll_transmit), [`poll_event`](Self::poll_event), [`poll_timeout`](Self::poll_timeout), [`wants_input`](Self::wants_input) | the driver |
///
/// After any command or input, the driver empties the outputs: transmits, events, and last the next deadline.
///
/// [`start`](Self::start) finds out by itself which era the server belongs to; [`Event::Ready`] says when calls can be
/// made. The detected revision can be stored, and given to [`start`](Self::start) the next time.
pub struct Connection {
    pub(super) config: Arc<ClientConfig>,
    pub(super) stage: Stage,
    pub(super) calls: Calls,
    pub(super) deadlines: Deadlines,
    /// Whether nothing that the server said bears out yet what [`start`](Self::start) was given.
    pub(super) is_unconfirmed: bool,
    /// The probe that was not answered in time, with its revision: the server may be slow to start, and answer it before it
    /// answers the handshake.
    pub(super) late_probe: Option<(CallId, Revision)>,
    /// Whether the server was silent when it was probed.
    pub(super) was_silent: bool,
    /// Whether the session is a new one, in which nothing was answered yet.
    pub(super) is_renewed: bool,
    /// From which severity on modern requests ask for log messages.
    pub(super) log_level: Option<LoggingLevel>,
    /// What modern requests say about themselves, made when it is needed.
    pub(super) envelope: Option<RawObject>,
    /// Whether the server returned the id of a request as text.
    pub(super) returns_text_ids: bool,
    /// The subscriptions that are open, and whether the server acknowledged them.
    pub(super) listening: BTreeMap<CallId, bool>,
    /// The requests of the server that are open, and the size of their parameters.
    pub(super) requests: BTreeMap<RequestId, OpenRequest>,
    pub(super) request_bytes: usize,
    pub(super) generation: u64,
    pub(super) outbox: Outbox,
    pub(super) events: VecDeque<Event>,
}

/// A request of the server that is not answered yet.
pub(super) struct OpenRequest {
    /// What tells it from an earlier one with the same id.
    pub(super) generation: u64,
    /// The size of its parameters.
    pub(super) bytes: usize,
    /// The call on whose stream it came.
    pub(super) stream: Option<CallId>,
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
            log_level: config.log_level,
            config,
            stage: Stage::New,
            calls: Calls::default(),
            deadlines: Deadlines::default(),
            is_unconfirmed: false,
            late_probe: None,
            was_silent: false,
            is_renewed: false,
            envelope: None,
            returns_text_ids: false,
            listening: BTreeMap::new(),
            requests: BTreeMap::new(),
            request_bytes: 0,
            generation: 0,
            outbox: Outbox::default(),
            events: VecDeque::new(),
        }
    }

    /// Says from which severity on modern requests ask for log messages; none are asked for without one.
    //
    pub fn set_log_level(&mut self, level: Option<LoggingLevel>) {
        self.log_level = level;
        self.envelope = None;
    }

    /// What was found out about the server.
    #[must_use]
    pub fn detected_revision(&self) -> Option<DetectedRevision> {
        match self.stage {
            Stage::Ready(revision) => Some(DetectedRevision::new(revision)),
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
        now: Time,
        method: &Method,
        params: &RawObject,
        options: CallOptions,
    ) -> Result<CallId, CommandError> {
        if *method == Method::SUBSCRIPTIONS_LISTEN {
            return Err(CommandError::Reserved(method.clone()));
        }
        self.start_call(now, method, params, options)
    }

    fn start_call(
        &mut self,
        now: Time,
        method: &Method,
        params: &RawObject,
        options: CallOptions,
    ) -> Result<CallId, CommandError> {
        let revision = self.revision()?;
        self.check(method, revision)?;
        let limit = self.config.limits.max_calls;
        if self.calls.len() >= limit {
            return Err(CommandError::TooManyCalls { limit });
        }
        if self.outbox.is_full(&self.config.limits) {
            return Err(CommandError::OutboxFull);
        }
        let text = params.as_str();
        // What may hold metadata of its own goes the long way.
        if text.contains("_meta") || text.contains("\\u00") {
            let params: RequestParams = params.decode().map_err(|_| CommandError::NotAnObject)?;
            return Ok(self.send_request(now, method, params, revision, options));
        }
        let (call, id) = self.calls.start(now, options, &mut self.deadlines);
        let token = options.idle_timeout.is_some().then(|| ProgressToken::from(&id));
        let envelope = if revision.era() == Era::Modern { Some(self.envelope(revision)) } else { None };
        // Ids and tokens are numbers here, which can always be written.
        if let Ok(message) = EncodedMessage::request_with_meta(&id, method, params, token.as_ref(), envelope) {
            self.send_call(call, method, Some(revision), message);
        }
        Ok(call)
    }

    /// Asks to be told of changes; they come as [`Event::Changed`], after [`Event::Listening`].
    ///
    /// # Errors
    ///
    /// Fails in the legacy era, where changes come unasked or by `resources/subscribe`.
    // L-2
    pub fn listen(&mut self, now: Time, filter: SubscriptionFilter) -> Result<CallId, CommandError> {
        let params =
            RawObject::new(&SubscriptionsListenRequestParams::new(filter)).map_err(|_| CommandError::NotAnObject)?;
        // K-15: the answer comes at the end, so nothing is late.
        let options = CallOptions::default().idle_timeout(None).total_timeout(None);
        let call = self.start_call(now, &Method::SUBSCRIPTIONS_LISTEN, &params, options)?;
        self.listening.insert(call, false);
        Ok(call)
    }

    /// Tells the server something.
    ///
    /// # Errors
    ///
    /// Fails if the server's revision does not have the notification.
    pub fn notify(&mut self, method: &Method, params: &impl Serialize) -> Result<(), CommandError> {
        let revision = self.revision()?;
        self.check(method, revision)?;
        if self.outbox.is_full(&self.config.limits) {
            return Err(CommandError::OutboxFull);
        }
        self.send_notification(method, params).map_err(|_| CommandError::NotAnObject)
    }

    /// Gives a call up, in the way of the transport; the outcome is [`CallError::Cancelled`].
    ///
    /// # Errors
    ///
    /// Fails if the call has ended, or must not be cancelled.
    // K-1, K-2
    pub fn cancel(&mut self, call: CallId) -> Result<(), CommandError> {
        if !self.is_internal(call) && self.give_up(call, CallError::Cancelled) {
            Ok(())
        } else {
            Err(CommandError::Ended)
        }
    }

    /// Answers a request of the server.
    ///
    /// Returns whether the answer is on its way: one to a request that the server cancelled is left out.
    pub fn respond(&mut self, now: Time, responder: Responder, outcome: Result<&RawObject, ErrorObject>) -> bool {
        let Responder { id, generation } = responder;
        // After a cancellation the server may use the id again; the generation tells the two apart.
        if self.requests.get(&id).is_none_or(|open| open.generation != generation) {
            return false;
        }
        self.close_request(now, &id);
        let written = match outcome {
            Ok(result) => EncodedMessage::result(&id, result),
            Err(error) => EncodedMessage::error(Some(&id), &error, UnknownId::Omit),
        };
        let is_written = written.is_ok();
        if let Ok(message) = written {
            self.send_answer(message);
        }
        is_written
    }

    /// Forgets a request of the server; returns whether it was open.
    pub(super) fn close_request(&mut self, now: Time, id: &RequestId) -> bool {
        let Some(closed) = self.requests.remove(id) else { return false };
        self.request_bytes -= closed.bytes;
        self.calls.close_peer_request(now, closed.stream, &mut self.deadlines);
        true
    }

    /// Ends the connection from this side: every call ends.
    pub fn close(&mut self) {
        if self.stage != Stage::Over {
            self.over();
        }
    }

    /// The next thing for the transport to do.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbox.pop()
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

    /// Whether a driver may feed more: not while as many answers wait to be sent as the limits allow. What is fed beyond
    /// that ends the connection, because the server asks without reading the answers.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.stage != Stage::Over && !self.outbox.is_full_of_answers(&self.config.limits)
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

    pub(super) fn send_answer(&mut self, message: EncodedMessage) {
        self.send(Transmit::Send { call: None, method: None, revision: self.revision().ok(), message });
    }

    pub(super) fn send(&mut self, transmit: Transmit) {
        self.outbox.push(transmit);
    }

    /// Whether a call is the connection's own: the probe, or the handshake.
    pub(super) fn is_internal(&self, call: CallId) -> bool {
        let is_staged = match self.stage {
            Stage::Probing { call: own, .. } | Stage::Handshaking { call: own } => own == call,
            Stage::New | Stage::Ready(_) | Stage::Over => false,
        };
        is_staged || self.late_probe.is_some_and(|(probe, _)| probe == call)
    }

    /// Whether the calls that are open are modern: during a probe they are those of a server that was taken for it.
    pub(super) fn is_modern(&self) -> bool {
        match self.stage {
            Stage::Ready(revision) => revision.era() == Era::Modern,
            Stage::Probing { .. } => true,
            Stage::New | Stage::Handshaking { .. } | Stage::Over => false,
        }
    }

    pub(super) fn revision(&self) -> Result<Revision, CommandError> {
        match self.stage {
            Stage::Ready(revision) => Ok(revision),
            Stage::New | Stage::Probing { .. } | Stage::Handshaking { .. } => Err(CommandError::NotReady),
            Stage::Over => Err(CommandError::Closed),
        }
    }

    /// Methods that nobody knows may be tried: the server says what it makes of them.
    fn check(&self, method: &Method, revision: Revision) -> Result<(), CommandError> {
        if RESERVED_METHODS.contains(method) {
            return Err(CommandError::Reserved(method.clone()));
        }
        let Some(facts) = gate::method(method) else { return Ok(()) };
        let extended =
            facts.extension.is_some_and(|extension| extension.may_travel(Direction::ClientToServer, revision));
        if extended || facts.may_travel(Direction::ClientToServer, revision) {
            Ok(())
        } else {
            Err(CommandError::NotInRevision { method: method.clone(), revision })
        }
    }

    /// What every modern request says about itself, written once.
    fn envelope(&mut self, revision: Revision) -> &RawObject {
        if self.envelope.is_none() {
            let mut meta = RequestMeta::default();
            self.fill_envelope(&mut meta, revision);
            self.envelope = RawObject::new(&meta).ok();
        }
        self.envelope.get_or_insert_default()
    }

    fn send_call(&mut self, call: CallId, method: &Method, revision: Option<Revision>, message: EncodedMessage) {
        self.send(Transmit::Send { call: Some(call), method: Some(method.clone()), revision, message });
    }

    pub(super) fn send_request(
        &mut self,
        now: Time,
        method: &Method,
        mut params: RequestParams,
        revision: Revision,
        options: CallOptions,
    ) -> CallId {
        let (call, id) = self.calls.start(now, options, &mut self.deadlines);
        let meta = params.meta.get_or_insert_default();
        if options.idle_timeout.is_some() || meta.progress_token.is_some() {
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
        // Parameters were an object when they were read, and still are.
        if let Ok(message) = EncodedMessage::request(&id, method, Some(&params)) {
            let revision = (*method != Method::INITIALIZE).then_some(revision);
            self.send_call(call, method, revision, message);
        }
        call
    }

    /// What every modern request says about itself.
    // X-7..X-10
    fn fill_envelope(&self, meta: &mut RequestMeta, revision: Revision) {
        meta.protocol_version = Some(ProtocolVersion::from(revision));
        meta.client_capabilities.get_or_insert_with(|| {
            let mut capabilities = self.config.capabilities.clone();
            // RO-1: nothing that the revision does not have.
            let _ = restrict_to(&mut capabilities, revision);
            capabilities
        });
        meta.client_info.get_or_insert_with(|| self.config.info.clone());
        meta.log_level = meta.log_level.or(self.log_level);
    }

    pub(super) fn send_notification(
        &mut self,
        method: &Method,
        params: &impl Serialize,
    ) -> Result<(), serde_json::Error> {
        let message = EncodedMessage::notification(method, Some(params))?;
        self.send(Transmit::Send { call: None, method: Some(method.clone()), revision: self.revision().ok(), message });
        Ok(())
    }

    /// Ends a call from this side and tells the server.
    pub(super) fn give_up(&mut self, call: CallId, why: CallError) -> bool {
        let Some(ended) = self.calls.end(call, &mut self.deadlines) else { return false };
        self.listening.remove(&call);
        let has_stream = self.config.cancel_style == CancelStyle::CloseStream;
        if !self.is_modern() || !has_stream {
            let params = CancelledNotificationParams::default().request_id(ended.id);
            let _ = self.send_notification(&Method::NOTIFICATIONS_CANCELLED, &params);
        }
        // To a legacy server this says nothing, but a stream that nobody reads must not stay open.
        if has_stream {
            self.send(Transmit::Abort { call });
        }
        self.events.push_back(Event::CallFinished { call, outcome: Err(why) });
        true
    }
}

/// What the connection says by itself.
const RESERVED_METHODS: [Method; 3] =
    [Method::INITIALIZE, Method::NOTIFICATIONS_INITIALIZED, Method::NOTIFICATIONS_CANCELLED];

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("stage", &self.stage)
            .field("calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}
