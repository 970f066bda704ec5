//! One server, as long as it is there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use mcp_types::jsonrpc::EncodedMessage;
use mcp_types::{Era, LoggingLevel, RawObject, RequestId, Revision};

use super::config::ClientConfig;
use super::detect::DetectedRevision;
use super::event::{Event, Transmit};
use super::outbox::Outbox;
use super::server_requests::OpenRequest;
use crate::CallId;
use crate::calls::Calls;
use crate::deadlines::{Deadline, Deadlines};
use crate::errors::CommandError;
use crate::queue::pop;

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
    /// The subscriptions that are open, and whether the server acknowledged them.
    pub(super) listening: BTreeMap<CallId, bool>,
    /// The requests of the server that are open, and the size of their parameters.
    pub(super) requests: BTreeMap<RequestId, OpenRequest>,
    pub(super) request_bytes: usize,
    pub(super) generation: u64,
    pub(super) outbox: Outbox,
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
}
