//! The scripted client.

use std::sync::Arc;
use std::time::Duration;

use mcp_kernel::server::{Connection, Delivery, Event, Responder, Route, ServerConfig};
use mcp_kernel::{PeerMisbehaved, RequestKey, Time};
use mcp_testkit::envelope::{initialize, initialized};
use mcp_types::{CallToolResult, Implementation, Revision, ServerCapabilities};
use serde_json::{Value, json};

/// A client that says what a test tells it to say, and what came back.
pub(crate) struct Script {
    pub(crate) connection: Connection,
    now: Time,
}

/// A request that the application was asked to answer.
pub(crate) struct OpenRequest {
    pub(crate) scope: Arc<mcp_kernel::server::RequestScope>,
    pub(crate) params: Value,
    pub(crate) responder: Responder,
}

impl OpenRequest {
    pub(crate) fn key(&self) -> RequestKey {
        self.scope.key()
    }
}

/// A server that offers everything.
pub(crate) fn config() -> ServerConfig {
    offering(json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "completions": {},
        "logging": {},
    }))
}

pub(crate) fn offering(capabilities: Value) -> ServerConfig {
    let capabilities: ServerCapabilities = serde_json::from_value(capabilities).expect("capabilities");
    ServerConfig::new(Implementation::new("demo", "1.0"), capabilities)
}

impl Script {
    /// A lasting connection to a server that offers everything.
    pub(crate) fn new() -> Self {
        Self::with(config())
    }

    pub(crate) fn with(config: ServerConfig) -> Self {
        Self::over(Connection::long_lived(Arc::new(config)))
    }

    pub(crate) fn modern_request() -> Self {
        Self::over(Connection::modern_request(Arc::new(config())))
    }

    pub(crate) fn legacy_request(revision: Revision) -> Self {
        Self::over(Connection::legacy_request(Arc::new(config()), revision))
    }

    /// A connection that was made in a way of the test's choice.
    pub(crate) fn over(connection: Connection) -> Self {
        let now = Time::EPOCH;
        Self { connection, now }
    }

    /// A lasting connection after the handshake, with nothing declared by the client.
    pub(crate) fn initialized(version: &str) -> Self {
        Self::initialized_with(config(), version, json!({}))
    }

    pub(crate) fn initialized_with(config: ServerConfig, version: &str, capabilities: Value) -> Self {
        let mut script = Self::with(config);
        script.send(initialize("init", version, capabilities));
        assert_eq!(script.reply()["result"]["protocolVersion"], version);
        while !matches!(script.connection.poll_event(), None | Some(Event::Initialized)) {}
        script.send(initialized());
        assert!(matches!(script.event(), Event::Initialized));
        script
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Says something.
    pub(crate) fn send(&mut self, message: Value) {
        self.send_text(&message.to_string());
    }

    pub(crate) fn send_text(&mut self, text: &str) {
        self.connection.handle_bytes(self.now, text.as_bytes(), None);
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, time: Duration) {
        self.now += time;
        self.connection.handle_timeout(self.now);
    }

    /// The next message of the server, which there must be.
    pub(crate) fn next(&mut self) -> (Route, Value) {
        let transmit = self.connection.poll_transmit().expect("a message of the server");
        assert!(!transmit.message.contains(&b'\n'), "a message is one line");
        (transmit.route, serde_json::from_slice(&transmit.message).expect("JSON"))
    }

    /// The next message of the server, which must be an answer.
    pub(crate) fn reply(&mut self) -> Value {
        let (route, message) = self.next();
        assert!(matches!(route, Route::Reply(_)), "{route:?}: {message}");
        message
    }

    /// The next message of the server, which must be an error for a request.
    pub(crate) fn refusal(&mut self, id: impl Into<Value>, code: i64) -> Value {
        let reply = self.reply();
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&id.into(), &json!(code)), "{reply}");
        reply["error"].clone()
    }

    /// The server says nothing.
    pub(crate) fn silence(&mut self) {
        let next =
            self.connection.poll_transmit().map(|transmit| String::from_utf8_lossy(&transmit.message).into_owned());
        assert_eq!(next, None);
    }

    /// The next event, which there must be.
    pub(crate) fn event(&mut self) -> Event {
        self.connection.poll_event().expect("an event")
    }

    pub(crate) fn no_event(&mut self) {
        let event = self.connection.poll_event();
        assert!(event.is_none(), "{event:?}");
    }

    /// The next event, which must be a request.
    pub(crate) fn asked(&mut self) -> OpenRequest {
        let event = self.event();
        let Event::Request { scope, params, responder } = event else { panic!("no request: {event:?}") };
        let params = serde_json::from_str(params.as_str()).expect("JSON");
        OpenRequest { scope, params, responder }
    }

    /// The next event, which must be a complaint.
    pub(crate) fn complaint(&mut self) -> PeerMisbehaved {
        let event = self.event();
        let Event::PeerMisbehaved(what) = event else { panic!("no complaint: {event:?}") };
        what
    }

    /// The next event, which must be the end of a request that nobody wants any more.
    pub(crate) fn given_up(&mut self) -> RequestKey {
        let event = self.event();
        let Event::Cancelled { request, .. } = event else { panic!("not cancelled: {event:?}") };
        request
    }

    /// Sends a request and expects it to be refused.
    pub(crate) fn refused(&mut self, message: Value, code: i64) -> Value {
        let id = message["id"].clone();
        self.send(message);
        let error = self.refusal(id, code);
        self.complaint();
        error
    }

    /// Sends a request, which the application gets.
    pub(crate) fn served(&mut self, message: Value) -> OpenRequest {
        self.send(message);
        self.asked()
    }

    /// Answers a call of a tool, and returns what the client sees.
    pub(crate) fn done(&mut self, responder: Responder) -> Value {
        assert_eq!(self.connection.respond(responder, Ok(CallToolResult::text("done"))), Delivery::Queued);
        self.reply()
    }

    /// Nothing is open, queued or due.
    pub(crate) fn assert_nothing_left(mut self) {
        self.silence();
        self.no_event();
        assert_eq!(self.connection.poll_timeout(), None);
        assert!(self.connection.is_idle(), "{:?}", self.connection);
    }
}
