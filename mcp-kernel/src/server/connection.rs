//! The connection of a server to one client.

use std::sync::Arc;

use mcp_types::jsonrpc::{EncodedMessage, UnknownId};
use mcp_types::{ErrorCode, ErrorObject, LoggingLevel, RequestId, Revision};

use super::config::ServerConfig;
use super::event::Event;
use super::handshake::HeldInitialize;
use super::in_flight::InFlight;
use super::lifecycle::{Agreed, Lifecycle, SecondHandshake};
use super::listen_streams::ListenStreams;
use super::outbox::{Outbox, Priority};
use super::rare::LazyRare;
use super::transmit::{Failure, Route, Transmit};
use crate::RequestKey;
use crate::deadlines::Deadline;
use crate::errors::PeerMisbehaved;
use crate::queue::{Fifo, pop};

/// The state of a server's connection to one client.
///
/// It performs no I/O and reads no clock: a driver feeds it and empties it, as described on the [crate
/// page](crate#drivers).
///
/// | group | methods | called by |
/// |---|---|---|
/// | commands | [`respond`](Self::respond), [`respond_raw`](Self::respond_raw), [`respond_builtin`](Self::respond_builtin), [`progress`](Self::progress), [`log`](Self::log), [`log_message`](Self::log_message), [`notify`](Self::notify), [`publish`](Self::publish), [`call`](Self::call), [`cancel`](Self::cancel), [`end_listening`](Self::end_listening), [`accept_handshake`](Self::accept_handshake), [`refuse_handshake`](Self::refuse_handshake), [`drain`](Self::drain), [`close`](Self::close) | application |
/// | inputs | [`handle_bytes`](Self::handle_bytes), [`handle_incoming`](Self::handle_incoming), [`handle_oversized`](Self::handle_oversized), [`handle_stream_closed`](Self::handle_stream_closed), [`abandon`](Self::abandon), [`handle_disconnect`](Self::handle_disconnect), [`handle_timeout`](Self::handle_timeout), [`block`](Self::block), [`unblock`](Self::unblock) | driver |
/// | outputs | [`poll_transmit`](Self::poll_transmit), [`poll_event`](Self::poll_event), [`poll_timeout`](Self::poll_timeout), [`wants_input`](Self::wants_input) | driver |
///
/// A driver with several streams [`block`](Self::block)s the route of one that is not read, so that the others are not
/// delayed.
///
/// Requests of both eras can be in flight at the same time: one with a version in its `_meta` is served in that
/// version, any other in the version of the handshake.
///
/// # Examples
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
/// let Some(Event::Request { responder, .. }) = connection.poll_event() else { panic!("no request") };
/// connection.respond(responder, Ok(CallToolResult::text("hello")));
/// let response = connection.poll_transmit().expect("a response");
/// assert!(String::from_utf8(response.message.into_bytes())?.contains(r#""resultType":"complete""#));
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
pub struct Connection {
    pub(super) config: Arc<ServerConfig>,
    pub(super) lifecycle: Lifecycle,
    pub(super) in_flight: InFlight,
    pub(super) rare: LazyRare,
    pub(super) log_level: LoggingLevel,
    /// Allocated for the first stream, because few connections have any.
    pub(super) listen_streams: Option<Box<ListenStreams<RequestKey>>>,
    pub(super) has_back_channel: bool,
    pub(super) second_handshake: SecondHandshake,
    /// The `initialize` that the application decides about.
    pub(super) handshake: Option<Box<HeldInitialize>>,
    /// Whether input was accepted while the outbox was full, and nothing was sent since.
    pub(super) overfed: bool,
    /// Whether no more input will be read, so that new listen streams end at once.
    pub(super) draining: bool,
    pub(super) closed: bool,
    pub(super) outbox: Outbox,
    pub(super) events: Fifo<Event>,
}

/// The responses to a batch, which are sent together.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) expected: usize,
    pub(super) responses: Vec<EncodedMessage>,
}

impl Connection {
    /// Creates a connection for any number of requests: a stdio process, a socket, or a session.
    ///
    /// Legacy requests need a handshake, modern ones do not.
    // S1.22
    #[must_use]
    pub fn long_lived(config: Arc<ServerConfig>) -> Self {
        Self::new(config, Lifecycle::Fresh, true)
    }

    /// Creates a connection for one modern request.
    // S1.18
    #[must_use]
    #[inline]
    pub fn modern_request(config: Arc<ServerConfig>) -> Self {
        Self::new(config, Lifecycle::ModernOnly, false)
    }

    /// Creates a connection for one legacy request without a session, in the revision that the transport determined.
    // S0.8
    #[must_use]
    #[inline]
    pub fn legacy_request(config: Arc<ServerConfig>, revision: Revision) -> Self {
        Self::new(config, Lifecycle::Stateless(Agreed::unknown(revision)), false)
    }

    /// Returns whether the connection was created for one request: by [`modern_request`](Self::modern_request) or
    /// [`legacy_request`](Self::legacy_request).
    #[must_use]
    pub fn is_for_one_request(&self) -> bool {
        matches!(self.lifecycle, Lifecycle::ModernOnly | Lifecycle::Stateless(_))
    }

    /// Sets the response to a second `initialize`. Defaults to [`SecondHandshake::Refuse`].
    pub fn set_second_handshake(&mut self, second: SecondHandshake) {
        self.second_handshake = second;
    }

    #[inline(always)]
    fn new(config: Arc<ServerConfig>, lifecycle: Lifecycle, has_back_channel: bool) -> Self {
        Self {
            config,
            lifecycle,
            in_flight: InFlight::default(),
            rare: LazyRare::default(),
            log_level: LoggingLevel::Info,
            listen_streams: None,
            has_back_channel,
            second_handshake: SecondHandshake::Refuse,
            handshake: None,
            overfed: false,
            draining: false,
            closed: false,
            outbox: Outbox::default(),
            events: Fifo::default(),
        }
    }

    /// Returns the next message to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.overfed = false;
        self.outbox.pop()
    }

    /// Returns whether there is a message to send.
    #[must_use]
    pub fn has_transmit(&self) -> bool {
        self.outbox.has_open()
    }

    /// Returns whether the connection is closed. It ignores all further input.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns whether there is an event for the application.
    #[must_use]
    pub fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    /// Returns the next event for the application.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Returns the earliest deadline, at which the driver has to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.rare.deadlines.next()
    }

    /// Returns whether the driver may pass in more bytes. Returns `false` if the connection is closed, and while too many
    /// messages are queued because the client does not read them; further input then closes the connection. Also returns
    /// `false` while the application decides about the handshake; further input is then too early.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.closed && self.handshake.is_none() && !self.outbox.is_saturated(&self.config.limits)
    }

    /// Returns whether the application has yet to decide about the handshake
    /// ([`ServerConfig::intercept_initialize`]). The driver passes in nothing meanwhile, but still has to notice that the
    /// client disconnects.
    #[must_use]
    pub fn has_pending_handshake(&self) -> bool {
        self.handshake.is_some()
    }

    /// Returns the revision of the handshake, if there was one.
    #[must_use]
    pub fn negotiated(&self) -> Option<Revision> {
        self.lifecycle.agreed().map(|agreed| agreed.revision)
    }

    /// Returns whether there is a channel for messages that belong to no request. That does not mean that requests may be
    /// sent on it: the client has to complete the handshake first, and modern clients never get any.
    // S1.25
    #[must_use]
    pub fn has_standalone_channel(&self) -> bool {
        self.has_back_channel && !self.closed
    }

    /// Returns whether there is no handshake to wait for: the client has sent `notifications/initialized`, or the
    /// connection is for one request.
    // S1.13, S1.14
    #[must_use]
    pub fn is_initialized(&self) -> bool {
        !matches!(self.lifecycle, Lifecycle::Fresh | Lifecycle::Negotiated(_))
    }

    /// Returns whether a request, or any request of a batch, is running, queued, or an open listen stream.
    #[must_use]
    pub fn is_open(&self, request: RequestKey) -> bool {
        self.in_flight.has(request)
            || self.rare.batches.contains_key(&request)
            || self.handshake.as_ref().is_some_and(|handshake| handshake.key == request)
    }

    /// Returns whether there are no requests, calls, messages, events or deadlines.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
            && self.rare.queued.is_empty()
            && self.rare.batches.is_empty()
            && self.handshake.is_none()
            && self.rare.calls.len() == 0
            && self.rare.deadlines.next().is_none()
            && self.listen_streams.is_none()
            && self.outbox.is_empty()
            && self.events.is_empty()
    }

    /// Queues a message, and reports the messages that were dropped for it.
    pub(super) fn send(&mut self, route: Route, message: EncodedMessage, priority: Priority) {
        self.transmit(Transmit { route, message, failure: None }, priority);
    }

    fn transmit(&mut self, transmit: Transmit, priority: Priority) {
        let route = transmit.route;
        let count = self.outbox.push(&self.config.limits, transmit, priority);
        self.dropped(route, count);
    }

    /// Reports messages that were dropped. A listen stream ends then, because its client has to learn that it missed a
    /// change.
    pub(super) fn dropped(&mut self, route: Route, count: usize) {
        self.note_dropped(route, count);
        if let Route::Listen(key) = route
            && count > 0
        {
            let _ = self.end_listening(key);
        }
    }

    /// Emits an event for dropped messages, or counts them in the last event: a flood of messages must not become a
    /// flood of events.
    pub(super) fn note_dropped(&mut self, route: Route, count: usize) {
        match self.events.last_mut() {
            _ if count == 0 => {}
            Some(Event::Dropped { route: last, count: before }) if *last == route => *before += count,
            _ => self.emit(Event::Dropped { route, count }),
        }
    }

    /// Queues the response to a request, or adds it to the responses of its batch.
    pub(super) fn queue_response(
        &mut self,
        key: RequestKey,
        batch: Option<RequestKey>,
        message: EncodedMessage,
        failure: Option<Failure>,
    ) {
        let Some(batch_key) = batch else {
            return self.transmit(Transmit { route: Route::Reply(key), message, failure }, Priority::Required);
        };
        if let Some(batch) = self.batch_mut(batch_key) {
            batch.responses.push(message);
        }
        self.finish_batch(batch_key);
    }

    /// Removes a request from its batch, because it gets no response.
    pub(super) fn skip_in_batch(&mut self, batch_key: RequestKey) {
        if let Some(batch) = self.batch_mut(batch_key) {
            batch.expected -= 1;
        }
        self.finish_batch(batch_key);
    }

    pub(super) fn batch_mut(&mut self, key: RequestKey) -> Option<&mut Batch> {
        self.rare.get_mut()?.batches.get_mut(&key)
    }

    pub(super) fn finish_batch(&mut self, key: RequestKey) {
        let is_finished = |batch: &&mut Batch| batch.responses.len() >= batch.expected;
        if self.batch_mut(key).filter(is_finished).is_none() {
            return;
        }
        let batch = self.rare.get_mut().and_then(|rare| rare.batches.remove(&key)).unwrap_or_default();
        if let Some(message) = EncodedMessage::batch(&batch.responses) {
            self.send(Route::Reply(key), message, Priority::Required);
        }
    }

    /// Queues an error response, in the form that the revision has for unknown ids.
    // AMB-15
    pub(super) fn queue_error(
        &mut self,
        key: RequestKey,
        batch: Option<RequestKey>,
        id: Option<&RequestId>,
        revision: Revision,
        error: &ErrorObject,
        failure: fn(ErrorCode) -> Failure,
    ) {
        // Errors are plain data, which can always be serialized.
        if let Ok(message) = EncodedMessage::error(id, error, UnknownId::for_revision(revision)) {
            self.queue_response(key, batch, message, Some(failure(error.code)));
        }
    }

    pub(super) fn misbehaved(&mut self, what: PeerMisbehaved) {
        self.emit(Event::PeerMisbehaved(what));
    }

    pub(super) fn emit(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Starts queued requests, up to the limit of concurrent ones.
    pub(super) fn start_queued(&mut self) {
        while self.in_flight.running() - self.rare.queued.len() < self.config.limits.max_in_flight {
            let Some(event) = self.rare.get_mut().and_then(|rare| pop(&mut rare.queued)) else { return };
            self.emit(event);
            self.report_queue();
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("negotiated", &self.negotiated())
            .field("running", &self.in_flight.running())
            .field("listening", &self.in_flight.listening())
            .field("calls", &self.rare.calls.len())
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There is one for each session, of which most are idle, and for each request without a session, which moves it.
    #[cfg(target_pointer_width = "64")]
    #[test]
    fn connections_are_small() {
        assert!(size_of::<Connection>() <= 320, "{}", size_of::<Connection>());
    }
}
