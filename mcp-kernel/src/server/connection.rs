//! One client, as long as it is there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use mcp_types::jsonrpc::{EncodedMessage, UnknownId};
use mcp_types::{ErrorObject, LoggingLevel, RequestId, Revision};

use super::config::ServerConfig;
use super::event::Event;
use super::in_flight::InFlight;
use super::lifecycle::{Agreed, Lifecycle, SecondHandshake};
use super::listen_streams::ListenStreams;
use super::outbox::{Outbox, Priority};
use super::transmit::{Failure, Route, Transmit};
use crate::RequestKey;
use crate::calls::Calls;
use crate::deadlines::{Deadline, Deadlines};
use crate::errors::PeerMisbehaved;
use crate::queue::{Fifo, pop};

/// The one home of what a server knows about one client.
///
/// It performs no I/O and knows no time: a driver feeds it and empties it. There are three groups of methods, told
/// apart by their names.
///
/// | group | methods | who calls |
/// |---|---|---|
/// | commands | [`respond`](Self::respond), [`respond_raw`](Self::respond_raw), [`respond_builtin`](Self::respond_builtin), [`progress`](Self::progress), [`log`](Self::log), [`notify`](Self::notify), [`publish`](Self::publish), [`call`](Self::call), [`cancel`](Self::cancel), [`end_listening`](Self::end_listening), [`close`](Self::close) | the application |
/// | inputs | [`handle_bytes`](Self::handle_bytes), [`handle_stream_closed`](Self::handle_stream_closed), [`handle_disconnect`](Self::handle_disconnect), [`handle_timeout`](Self::handle_timeout), [`block`](Self::block), [`unblock`](Self::unblock) | the driver |
/// | outputs | [`poll_transmit`](Self::poll_transmit), [`poll_event`](Self::poll_event), [`poll_timeout`](Self::poll_timeout), [`wants_input`](Self::wants_input) | the driver |
///
/// Commands queue and never block; inputs never fail: what is wrong with them becomes an event and, where the protocol
/// wants one, an answer. After any command or input, the driver
///
/// 1. pops [`poll_transmit`](Self::poll_transmit) until it is empty and sends what it gets,
/// 2. pops [`poll_event`](Self::poll_event) until it is empty and tells the application,
/// 3. asks [`poll_timeout`](Self::poll_timeout) when to call [`handle_timeout`](Self::handle_timeout).
///
/// A driver with several streams [`block`](Self::block)s the routes of one whose reader is slow, so that the others go
/// on. One that cannot send at all stops at [`wants_input`](Self::wants_input): a driver that feeds on ends the
/// connection, because the peer asks without reading the answers.
///
/// Both eras may use one connection at the same time: a request with the modern envelope is served by what it says
/// itself, any other by what the handshake settled.
///
/// ```
/// use std::sync::Arc;
///
/// use mcp_kernel::Time;
/// use mcp_kernel::server::{Connection, Event, ServerConfig};
/// use mcp_types::{CallToolResult, Implementation, ServerCapabilities, ToolsCapability};
///
/// let capabilities = ServerCapabilities::default().tools(ToolsCapability::default());
/// let config = ServerConfig::new(Implementation::new("demo", "1.0"), capabilities);
/// let mut connection = Connection::long_lived(Arc::new(config));
///
/// let request = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hi","_meta":{
///     "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
/// connection.handle_bytes(Time::EPOCH, request, None);
/// let Some(Event::Request { responder, .. }) = connection.poll_event() else { panic!("a request") };
/// connection.respond(responder, Ok(CallToolResult::text("hello")));
/// let answer = connection.poll_transmit().expect("an answer");
/// assert!(String::from_utf8(answer.message.into_bytes())?.contains(r#""resultType":"complete""#));
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
pub struct Connection {
    pub(super) config: Arc<ServerConfig>,
    pub(super) lifecycle: Lifecycle,
    pub(super) in_flight: InFlight,
    /// Requests that wait until one that runs ends.
    pub(super) waiting: VecDeque<Event>,
    pub(super) batches: BTreeMap<RequestKey, Batch>,
    pub(super) calls: Calls,
    pub(super) deadlines: Deadlines,
    pub(super) log_level: LoggingLevel,
    pub(super) subscriptions: BTreeSet<String>,
    /// Few connections have any, so the index is made for the first.
    pub(super) listen_streams: Option<Box<ListenStreams<RequestKey>>>,
    pub(super) has_back_channel: bool,
    pub(super) second_handshake: SecondHandshake,
    /// Something was fed although too much waits to be sent, and nothing has been sent since.
    pub(super) overfed: bool,
    /// Nothing more will be read: subscriptions that still come about end at once.
    pub(super) draining: bool,
    pub(super) closed: bool,
    pub(super) outbox: Outbox,
    pub(super) events: Fifo<Event>,
}

/// The answers to a batch, which travel together.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) expected: usize,
    pub(super) answers: Vec<EncodedMessage>,
}

impl Connection {
    /// A connection that lasts: a stdio process, or an HTTP session.
    ///
    /// It waits for a handshake, and serves modern requests without one.
    // S1.22
    #[must_use]
    pub fn long_lived(config: Arc<ServerConfig>) -> Self {
        Self::new(config, Lifecycle::Fresh, true)
    }

    /// A connection for one modern request: what the client is, the request says itself.
    // S1.18
    #[must_use]
    pub fn modern_request(config: Arc<ServerConfig>) -> Self {
        Self::new(config, Lifecycle::ModernOnly, false)
    }

    /// A connection for one legacy request without a session, in a revision that its transport knows of.
    // S0.8
    #[must_use]
    pub fn legacy_request(config: Arc<ServerConfig>, revision: Revision) -> Self {
        Self::new(config, Lifecycle::Stateless(Agreed::unknown(revision)), false)
    }

    /// Sets what becomes of a second `initialize`. Defaults to [`SecondHandshake::Refuse`].
    pub fn set_second_handshake(&mut self, second: SecondHandshake) {
        self.second_handshake = second;
    }

    fn new(config: Arc<ServerConfig>, lifecycle: Lifecycle, has_back_channel: bool) -> Self {
        Self {
            config,
            lifecycle,
            in_flight: InFlight::default(),
            waiting: VecDeque::new(),
            batches: BTreeMap::new(),
            calls: Calls::default(),
            deadlines: Deadlines::default(),
            log_level: LoggingLevel::Info,
            subscriptions: BTreeSet::new(),
            listen_streams: None,
            has_back_channel,
            second_handshake: SecondHandshake::Refuse,
            overfed: false,
            draining: false,
            closed: false,
            outbox: Outbox::default(),
            events: Fifo::default(),
        }
    }

    /// The next message to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.overfed = false;
        self.outbox.pop()
    }

    /// Whether there is something to send.
    #[must_use]
    pub fn has_transmit(&self) -> bool {
        self.outbox.has_open()
    }

    /// Whether the connection is over: nothing is taken in any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The next thing for the application to know.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.deadlines.next()
    }

    /// Whether a driver may feed more: not while as much waits to be sent as the limits allow.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.closed && !self.outbox.is_saturated(&self.config.limits)
    }

    /// The revision that the handshake settled on, if there was one.
    #[must_use]
    pub fn negotiated(&self) -> Option<Revision> {
        self.lifecycle.agreed().map(|agreed| agreed.revision)
    }

    /// Whether a request is still to be answered, or any of a batch: it runs, waits for its turn, or listens.
    #[must_use]
    pub fn is_open(&self, request: RequestKey) -> bool {
        self.in_flight.has(request) || self.batches.contains_key(&request)
    }

    /// Whether nothing is open, queued or due: a connection that was used and left must come back to this.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
            && self.waiting.is_empty()
            && self.batches.is_empty()
            && self.calls.len() == 0
            && self.deadlines.next().is_none()
            && self.listen_streams.is_none()
            && self.outbox.is_empty()
            && self.events.is_empty()
    }

    /// Queues a message, and notes what was dropped for it.
    pub(super) fn send(&mut self, route: Route, message: EncodedMessage, priority: Priority) {
        self.transmit(Transmit { route, message, failure: None }, priority);
    }

    fn transmit(&mut self, transmit: Transmit, priority: Priority) {
        let route = transmit.route;
        let count = self.outbox.push(&self.config.limits, transmit, priority);
        self.dropped(route, count);
    }

    /// Takes note of what a stream could not hold. One for changes ends then: who missed some has to look anew, and can
    /// only know that if it is told.
    pub(super) fn dropped(&mut self, route: Route, count: usize) {
        self.note_dropped(route, count);
        if let Route::Listen(key) = route
            && count > 0
        {
            let _ = self.end_listening(key);
        }
    }

    /// Tells how much was dropped. What a flood drops is one piece of news, or else the news would be the next flood.
    pub(super) fn note_dropped(&mut self, route: Route, count: usize) {
        match self.events.last_mut() {
            _ if count == 0 => {}
            Some(Event::Dropped { route: last, count: before }) if *last == route => *before += count,
            _ => self.emit(Event::Dropped { route, count }),
        }
    }

    /// Queues the answer to a request, or puts it with the other answers of its batch.
    pub(super) fn answer(&mut self, key: RequestKey, batch: Option<RequestKey>, message: EncodedMessage) {
        self.answer_with(key, batch, message, None);
    }

    fn answer_with(
        &mut self,
        key: RequestKey,
        batch: Option<RequestKey>,
        message: EncodedMessage,
        failure: Option<Failure>,
    ) {
        let Some(batch_key) = batch else {
            return self.transmit(Transmit { route: Route::Reply(key), message, failure }, Priority::Required);
        };
        if let Some(batch) = self.batches.get_mut(&batch_key) {
            batch.answers.push(message);
        }
        self.finish_batch(batch_key);
    }

    /// Takes a request out of its batch that will not be answered.
    pub(super) fn skip_in_batch(&mut self, batch_key: RequestKey) {
        if let Some(batch) = self.batches.get_mut(&batch_key) {
            batch.expected -= 1;
        }
        self.finish_batch(batch_key);
    }

    pub(super) fn finish_batch(&mut self, key: RequestKey) {
        if self.batches.get(&key).is_none_or(|batch| batch.answers.len() < batch.expected) {
            return;
        }
        let batch = self.batches.remove(&key).unwrap_or_default();
        if let Some(message) = EncodedMessage::batch(&batch.answers) {
            self.send(Route::Reply(key), message, Priority::Required);
        }
    }

    /// Refuses what breaks a rule.
    pub(super) fn refuse(
        &mut self,
        key: RequestKey,
        batch: Option<RequestKey>,
        id: Option<&RequestId>,
        revision: Revision,
        error: &ErrorObject,
    ) {
        self.answer_error(key, batch, id, revision, error, Failure::Refused(error.code));
    }

    /// Answers with an error, by the rules of a revision for ids that are not known.
    // AMB-15
    pub(super) fn answer_error(
        &mut self,
        key: RequestKey,
        batch: Option<RequestKey>,
        id: Option<&RequestId>,
        revision: Revision,
        error: &ErrorObject,
        failure: Failure,
    ) {
        // Errors are plain data, which can always be written.
        if let Ok(message) = EncodedMessage::error(id, error, UnknownId::of(revision)) {
            self.answer_with(key, batch, message, Some(failure));
        }
    }

    pub(super) fn misbehaved(&mut self, what: PeerMisbehaved) {
        self.emit(Event::PeerMisbehaved(what));
    }

    pub(super) fn emit(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Lets requests that wait run, as far as the limit allows.
    pub(super) fn admit_waiting(&mut self) {
        while self.in_flight.running() - self.waiting.len() < self.config.limits.max_in_flight {
            let Some(event) = pop(&mut self.waiting) else { return };
            self.emit(event);
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("negotiated", &self.negotiated())
            .field("running", &self.in_flight.running())
            .field("listening", &self.in_flight.listening())
            .field("calls", &self.calls.len())
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}
