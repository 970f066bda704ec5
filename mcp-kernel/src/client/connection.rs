//! The connection of a client to one server.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use mcp_types::jsonrpc::EncodedMessage;
use mcp_types::{Era, LoggingLevel, Method, RawObject, RequestId, Revision};

use super::config::{CancelStyle, ClientConfig};
use super::detect::DetectedRevision;
use super::event::{CallHeaders, Event, Transmit};
use super::outbox::Outbox;
use super::server_requests::OpenRequest;
use crate::CallId;
use crate::calls::Calls;
use crate::deadlines::{Deadline, Deadlines};
use crate::errors::CommandError;
use crate::queue::pop;

/// The state of a client's connection to one server.
///
/// It performs no I/O and reads no clock: a driver feeds it and empties it, as described on the [crate
/// page](crate#drivers).
///
/// | group | methods | called by |
/// |---|---|---|
/// | commands | [`start`](Self::start), [`resume`](Self::resume), [`restart`](Self::restart), [`reconsider`](Self::reconsider), [`switch_version`](Self::switch_version), [`set_log_level`](Self::set_log_level), [`call`](Self::call), [`listen`](Self::listen), [`notify`](Self::notify), [`cancel`](Self::cancel), [`respond`](Self::respond), [`close`](Self::close) | application |
/// | inputs | [`handle_bytes`](Self::handle_bytes), [`handle_reply`](Self::handle_reply), [`handle_oversized`](Self::handle_oversized), [`handle_status`](Self::handle_status), [`handle_stream_closed`](Self::handle_stream_closed), [`handle_session_lost`](Self::handle_session_lost), [`handle_disconnect`](Self::handle_disconnect), [`handle_timeout`](Self::handle_timeout) | driver |
/// | outputs | [`poll_transmit`](Self::poll_transmit), [`poll_event`](Self::poll_event), [`poll_timeout`](Self::poll_timeout), [`wants_input`](Self::wants_input) | driver |
///
/// [`start`](Self::start) detects the era of the server. Calls can be made after [`Event::Ready`]. The [detected
/// revision](Self::detected_revision) can be stored and given to [`start`](Self::start) the next time.
///
/// # Related calls
///
/// Requests, log messages and other notifications of the server may belong to a call. Where each call has a stream of its
/// own, as over HTTP, the stream is that of the call. On a pipe the messages do not say so, and a call is named only if no
/// other can be meant:
///
/// - an elicitation or sampling request of a legacy server, and a log message of a modern one, belong to the call in flight
///   if it is the only one, and if no earlier call of the connection was cancelled or timed out: the server may still
///   be working on that;
/// - anything else of a pipe, such as log messages of a legacy server, may have nothing to do with the call in flight, and
///   belongs to none.
pub struct Connection {
    pub(super) config: Arc<ClientConfig>,
    pub(super) stage: Stage,
    pub(super) calls: Calls,
    pub(super) deadlines: Deadlines,
    /// Whether no response has confirmed the revision that [`start`](Self::start) was given or that silence suggested.
    pub(super) is_unconfirmed: bool,
    /// The probe that had no response in time, with its revision. A modern server that starts slowly responds to it before
    /// `initialize`.
    pub(super) late_probe: Option<(CallId, Revision)>,
    /// Whether a probe had no response in time.
    pub(super) was_silent: bool,
    /// Whether the session replaced a lost one, and has had no response yet.
    pub(super) is_renewed: bool,
    /// The minimum level of log messages of modern requests.
    pub(super) log_level: Option<LoggingLevel>,
    /// The `_meta` of modern requests, serialized on first use.
    pub(super) envelope: Option<RawObject>,
    /// The open listen streams, and whether the server acknowledged them.
    pub(super) listening: BTreeMap<CallId, bool>,
    /// The server's requests in flight, and the size of their parameters.
    pub(super) requests: BTreeMap<RequestId, OpenRequest>,
    pub(super) request_bytes: usize,
    pub(super) generation: u64,
    /// Whether a call ended before the server responded to it, so that the server may still be working on it.
    pub(super) has_abandoned: bool,
    pub(super) outbox: Outbox,
    pub(super) events: VecDeque<Event>,
}

/// The state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    New,
    Probing { call: CallId, probed: Revision, is_second: bool },
    Handshaking { call: CallId },
    Ready(Revision),
    Over,
}

impl Connection {
    /// Creates a connection. Nothing is sent before [`start`](Self::start).
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
            listening: BTreeMap::new(),
            requests: BTreeMap::new(),
            request_bytes: 0,
            generation: 0,
            has_abandoned: false,
            outbox: Outbox::default(),
            events: VecDeque::new(),
        }
    }

    /// Sets the minimum level of log messages of modern requests, or `None` for no log messages.
    //
    pub fn set_log_level(&mut self, level: Option<LoggingLevel>) {
        self.log_level = level;
        self.envelope = None;
    }

    /// Returns the id that a call in flight has on the wire, for traces.
    #[must_use]
    pub fn request_id(&self, call: CallId) -> Option<&RequestId> {
        self.calls.id_of(call)
    }

    /// Returns the revision of the server, once the connection is ready.
    #[must_use]
    pub fn detected_revision(&self) -> Option<DetectedRevision> {
        match self.stage {
            Stage::Ready(revision) => Some(DetectedRevision::new(revision)),
            Stage::New | Stage::Probing { .. } | Stage::Handshaking { .. } | Stage::Over => None,
        }
    }

    /// Closes the connection. All calls end.
    pub fn close(&mut self) {
        if self.stage != Stage::Over {
            self.over();
        }
    }

    /// Returns the next action for the transport.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbox.pop()
    }

    /// Returns the next event for the application.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        pop(&mut self.events)
    }

    /// Returns the earliest deadline, at which the driver has to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.deadlines.next()
    }

    /// Returns whether the driver may pass in more bytes. Returns `false` if the connection is closed, and while too many
    /// responses are queued because the server does not read them; further input then closes the connection.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.stage != Stage::Over && !self.outbox.is_full_of_responses(&self.config.limits)
    }

    /// Returns whether there are no requests, calls, messages, events or deadlines.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.calls.len() == 0
            && self.deadlines.next().is_none()
            && self.listening.is_empty()
            && self.requests.is_empty()
            && self.outbox.is_empty()
            && self.events.is_empty()
    }

    pub(super) fn send_response(&mut self, message: EncodedMessage) {
        self.send_one_way(None, message);
    }

    /// Sends a notification or a response.
    pub(super) fn send_one_way(&mut self, method: Option<Method>, message: EncodedMessage) {
        let (revision, headers) = (self.revision().ok(), CallHeaders::default());
        self.send(Transmit::Send { call: None, method, revision, headers, message });
    }

    pub(super) fn send(&mut self, transmit: Transmit) {
        self.outbox.push(transmit);
    }

    /// Returns whether a call is the probe or the handshake.
    pub(super) fn is_internal(&self, call: CallId) -> bool {
        let is_staged = match self.stage {
            Stage::Probing { call: own, .. } | Stage::Handshaking { call: own } => own == call,
            Stage::New | Stage::Ready(_) | Stage::Over => false,
        };
        is_staged || self.late_probe.is_some_and(|(probe, _)| probe == call)
    }

    /// Returns the call that a message belongs to, which arrived on the stream of a call or on a pipe.
    pub(super) fn related(&self, stream: Option<CallId>, method: &Method) -> Option<CallId> {
        let call = match stream {
            Some(stream) => self.calls.is_open(stream).then_some(stream),
            None if self.config.cancel_style == CancelStyle::CloseStream || self.has_abandoned => None,
            None => {
                let belongs_to_a_call = if self.is_modern() {
                    *method == Method::NOTIFICATIONS_MESSAGE
                } else {
                    [Method::ELICITATION_CREATE, Method::SAMPLING_CREATE_MESSAGE].contains(method)
                };
                if belongs_to_a_call { self.calls.only() } else { None }
            }
        };
        call.filter(|call| !self.is_internal(*call))
    }

    /// Returns whether the calls in flight are modern. During a second probe they are those of a server that was taken
    /// for modern.
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
}
