//! Anything that can happen to a server's connection, in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mcp_kernel::server::{Connection, Delivery, Event, Responder, Route, ServerConfig};
use mcp_kernel::{CallId, CallOptions, Change, Limits, RequestKey, Time};
use mcp_types::jsonrpc::{self, Incoming};
use mcp_types::{
    CallToolResult, ErrorObject, Implementation, LoggingLevel, Method, PromptsCapability, RawJson, RawObject,
    ResourcesCapability, Revision, ServerCapabilities, ToolsCapability,
};

/// Whatever happens to a connection, it keeps its limits, says of each request and call how it ended, and has nothing
/// left when it is over.
///
/// Each line is one thing that happens. A line is a message of the client, unless it begins with one of these:
///
/// | line | what happens |
/// |---|---|
/// | `@e`, `@v`, `@s`, first line only | the connection is one for an envelope, for a version, or a strict one |
/// | `a`, `A`, `e` | the oldest request is answered, the newest one is, the oldest one is with an error |
/// | `r{...}` | the oldest request is answered with this object |
/// | `k` | a request that was cancelled is answered all the same |
/// | `g`, `l` | the oldest request, or the connection, reports progress, or logs |
/// | `pt`, `pp`, `pr`, `pURI` | a change is published |
/// | `qs`, `qr`, `qe`, `qp` | the client is asked something, for the oldest request if the letter is repeated |
/// | `c` | the oldest call to the client is cancelled |
/// | `t` | as many seconds pass as the line has bytes |
/// | `b`, `B`, `n`, `u` | the newest stream, the connection's own, or that of a listener is blocked; all go on |
/// | `s`, `S` | the stream of the oldest request, or of a listener, is closed |
/// | `E` | a subscription is ended |
/// | `-` | the driver stops taking messages, or takes them again |
/// | `x`, `d` | the connection is closed, or lost |
///
/// # Panics
///
/// Panics if one of these promises does not hold.
pub fn sequence(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n').peekable();
    let start = lines.next_if(|line| line.first() == Some(&b'@')).unwrap_or_default();
    let mut driver = Driver::new(start.get(1).copied());
    for line in lines {
        driver.happen(line);
        driver.take();
    }
    driver.finish();
}

/// The limits are low, so that a short input reaches them.
fn limits() -> Limits {
    let mut limits = Limits::default();
    (limits.max_in_flight, limits.max_queued, limits.max_calls) = (3, 2, 2);
    (limits.max_listen_streams, limits.max_uris_per_listen_stream, limits.max_subscriptions) = (2, 2, 2);
    (limits.max_meta_bytes, limits.max_request_state_bytes) = (400, 40);
    (limits.max_route_messages, limits.max_route_bytes) = (4, 512);
    limits
}

/// A driver with its application, which knows what the connection may still say.
struct Driver {
    connection: Connection,
    now: Time,
    limits: Limits,
    /// What the application works on.
    open: BTreeMap<RequestKey, Responder>,
    /// What the application would still answer, though nobody waits for it.
    stale: Vec<Responder>,
    /// Requests that were seen, whatever became of them.
    seen: BTreeSet<RequestKey>,
    listening: BTreeSet<RequestKey>,
    calls: BTreeSet<CallId>,
    /// Streams on which the last word was said, or to which nobody listens any more.
    silent: BTreeSet<RequestKey>,
    /// Whether subscriptions that end do so with a result.
    is_graceful: bool,
    blocked: Vec<Route>,
    is_lazy: bool,
    is_over: bool,
    /// How many more events and messages may come, by what happened so far.
    events_left: usize,
    messages_left: usize,
    progress: u32,
}

impl Driver {
    fn new(start: Option<u8>) -> Self {
        let capabilities = ServerCapabilities::default()
            .tools(ToolsCapability::default().list_changed(true))
            .prompts(PromptsCapability::default().list_changed(true))
            .resources(ResourcesCapability::default().list_changed(true).subscribe(true))
            .logging(RawObject::empty());
        let mut config = ServerConfig::new(Implementation::new("server", "1.0"), capabilities);
        config.limits = limits();
        config.require_initialized = start == Some(b's');
        let config = Arc::new(config);
        let connection = match start {
            Some(b'e') => Connection::modern_request(config),
            Some(b'v') => Connection::legacy_request(config, Revision::V2025_03_26),
            _ => Connection::long_lived(config),
        };
        let now = Time::EPOCH;
        Self {
            connection,
            now,
            limits: limits(),
            open: BTreeMap::new(),
            stale: Vec::new(),
            seen: BTreeSet::new(),
            listening: BTreeSet::new(),
            calls: BTreeSet::new(),
            silent: BTreeSet::new(),
            is_graceful: false,
            blocked: Vec::new(),
            is_lazy: false,
            is_over: false,
            events_left: 0,
            messages_left: 0,
            progress: 0,
        }
    }

    /// Lets the connection say what so many things give it to say.
    ///
    /// A request comes to the application and may be cancelled, a subscription begins and ends, a call ends; messages
    /// may be dropped for each message that any of these sends.
    fn allow(&mut self, things: usize) {
        self.events_left += 4 * things;
        self.messages_left += 2 * things;
    }

    fn happen(&mut self, line: &[u8]) {
        let (first, rest) = line.split_first().map_or((b' ', line), |(first, rest)| (*first, rest));
        self.allow(1);
        self.is_graceful = matches!(first, b'E' | b'x');
        match first {
            b'a' | b'A' | b'e' | b'r' => self.answer(first, rest),
            b'k' => {
                if let Some(responder) = self.stale.pop() {
                    let delivery = self.connection.respond(responder, Ok(CallToolResult::text("late")));
                    assert_eq!(delivery, Delivery::NotSent, "nobody waits for the answer of a cancelled request");
                }
            }
            b'g' => {
                self.progress += 1;
                let oldest = self.oldest();
                oldest.map(|key| self.connection.progress(key, self.progress, None, None));
            }
            b'l' => {
                let _ = self.connection.log(self.oldest(), LoggingLevel::Error, RawJson::null(), None);
            }
            b'p' => self.publish(rest),
            b'q' => self.call(rest),
            b'c' => {
                if let Some(call) = self.calls.first() {
                    assert_eq!(self.connection.cancel(*call), Ok(()), "an open call can be cancelled");
                }
            }
            b't' => {
                self.now += Duration::from_secs(line.len() as u64);
                self.connection.handle_timeout(self.now);
            }
            b'b' => self.block(self.open.keys().next_back().map(|key| Route::Related(*key))),
            b'B' => self.block(Some(Route::Standalone)),
            b'n' => self.block(self.listening.first().map(|key| Route::Listen(*key))),
            b'u' => self.blocked.drain(..).for_each(|route| self.connection.unblock(route)),
            b's' => self.oldest().into_iter().for_each(|key| self.connection.handle_stream_closed(key)),
            b'S' => self.listening.first().into_iter().for_each(|key| self.connection.handle_stream_closed(*key)),
            b'E' => {
                if let Some(key) = self.listening.first() {
                    assert_eq!(self.connection.end_listening(*key), Ok(()), "an open subscription can be ended");
                }
            }
            b'-' => self.is_lazy = !self.is_lazy,
            b'x' => self.connection.close(),
            b'd' => self.connection.handle_disconnect(),
            _ => {
                if let Ok(Incoming::Batch(messages)) = jsonrpc::parse(line, &self.limits.message) {
                    self.allow(messages.len());
                }
                self.connection.handle_bytes(self.now, line, None);
            }
        }
    }

    fn oldest(&self) -> Option<RequestKey> {
        self.open.keys().next().copied()
    }

    fn answer(&mut self, how: u8, text: &[u8]) {
        let next = if how == b'A' { self.open.pop_last() } else { self.open.pop_first() };
        let Some((_, responder)) = next else { return };
        let object = std::str::from_utf8(text).ok().and_then(|text| RawObject::parse(text).ok());
        let delivery = match (how, object) {
            (b'e', _) => self.connection.respond::<CallToolResult>(responder, Err(ErrorObject::internal_error("no"))),
            (b'r', Some(object)) => self.connection.respond_raw(responder, &object),
            _ => self.connection.respond(responder, Ok(CallToolResult::text("done"))),
        };
        assert_eq!(delivery, Delivery::Queued, "an open request can be answered");
    }

    fn publish(&mut self, what: &[u8]) {
        let change = match what {
            b"t" => Change::Tools,
            b"p" => Change::Prompts,
            b"r" => Change::Resources,
            uri => Change::Resource(String::from_utf8_lossy(uri).into_owned()),
        };
        self.allow(self.listening.len());
        self.connection.publish(&change);
    }

    fn call(&mut self, what: &[u8]) {
        let method = match what.first() {
            Some(b's') => Method::SAMPLING_CREATE_MESSAGE,
            Some(b'r') => Method::ROOTS_LIST,
            Some(b'e') => Method::ELICITATION_CREATE,
            _ => Method::PING,
        };
        let related = self.oldest().filter(|_| what.len() > 1);
        let options = CallOptions::default().idle_timeout(Some(Duration::from_secs(5)));
        let call = self.connection.call(self.now, related, method, &RawObject::empty(), options);
        if let Ok(call) = call {
            assert!(self.calls.insert(call), "a call has a handle of its own");
        }
        assert!(self.calls.len() <= self.limits.max_calls, "calls are limited");
    }

    fn block(&mut self, route: Option<Route>) {
        if let Some(route) = route.filter(|_| self.blocked.len() < 8) {
            self.connection.block(route);
            self.blocked.push(route);
        }
    }

    /// Takes what there is to tell, and to send unless the driver is lazy.
    fn take(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            assert!(self.events_left > 0, "more happens than was asked for: {event:?}");
            self.events_left -= 1;
            assert!(!self.is_over, "nothing happens after the end: {event:?}");
            self.hear(event);
        }
        assert!(self.open.len() <= self.limits.max_in_flight, "requests are limited");
        assert!(self.listening.len() <= self.limits.max_listen_streams, "subscriptions are limited");
        while !self.is_lazy
            && let Some(transmit) = self.connection.poll_transmit()
        {
            assert!(self.messages_left > 0, "more is said than was asked for: {transmit:?}");
            self.messages_left -= 1;
            let message = &transmit.message;
            assert!(!message.contains(&b'\n'), "a message is one line");
            assert!(jsonrpc::parse(message, &self.limits.message).is_ok(), "what is sent is a message: {transmit:?}");
            match transmit.route {
                Route::Reply(key) => assert!(self.silent.insert(key), "a request is answered once: {transmit:?}"),
                Route::Related(key) | Route::Listen(key) => {
                    assert!(!self.silent.contains(&key), "the answer is the last word: {transmit:?}");
                }
                Route::Standalone => {}
            }
        }
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Request { scope, responder, .. } => {
                assert_eq!(scope.key(), responder.key(), "a request is answered by its own responder");
                assert!(self.seen.insert(scope.key()), "a request has a handle of its own");
                self.open.insert(scope.key(), responder);
            }
            Event::Cancelled { request, .. } => {
                let responder = self.open.remove(&request).expect("only an open request is cancelled");
                self.stale.push(responder);
                self.silent.insert(request);
            }
            Event::Listening { scope, .. } => {
                assert!(self.seen.insert(scope.key()), "a request has a handle of its own");
                self.listening.insert(scope.key());
            }
            Event::ListeningEnded(key) => {
                assert!(self.listening.remove(&key), "only an open subscription ends");
                if !self.is_graceful {
                    self.silent.insert(key);
                }
            }
            Event::CallFinished { call, .. } => assert!(self.calls.remove(&call), "a call ends once"),
            Event::CallProgress { call, .. } => assert!(self.calls.contains(&call), "only an open call has progress"),
            Event::Closed => self.is_over = true,
            Event::Notification { .. }
            | Event::Initialized
            | Event::LogLevel(_)
            | Event::Subscription { .. }
            | Event::PeerMisbehaved(_)
            | Event::Stripped { .. }
            | Event::NotExpressible { .. }
            | Event::Dropped { .. }
            | _ => {}
        }
    }

    /// Ends the connection, and looks for what is left of it.
    fn finish(mut self) {
        self.allow(1);
        self.is_lazy = false;
        self.connection.handle_disconnect();
        assert!(self.connection.poll_transmit().is_none(), "nobody is there to send to");
        self.take();
        assert!(self.is_over, "the application hears of the end");
        assert!(self.open.is_empty() && self.listening.is_empty() && self.calls.is_empty(), "everything has an end");
        assert!(self.connection.is_idle(), "something is left: {:?}", self.connection);
        assert_eq!(self.connection.poll_timeout(), None, "nothing is due any more");
        self.connection.handle_bytes(self.now, br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, None);
        self.connection.publish(&Change::Tools);
        assert!(self.connection.is_idle(), "nothing happens after the end: {:?}", self.connection);
    }
}
