//! What a flood makes a server's connection keep: no more than its limits say, and nothing once it is over.

use std::alloc::System;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cap::Cap;
use mcp_kernel::server::{Connection, Event, Responder, Route, ServerConfig};
use mcp_kernel::{Limits, RequestKey, Time};
use mcp_types::{CallToolResult, Implementation, RawObject, ResourcesCapability, ServerCapabilities, ToolsCapability};

/// Knows how many bytes are allocated.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The bytes are those of the whole process, so one test runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// What may be allocated besides: by the harness, and by queues that keep some room.
const SLACK: usize = 64 * 1024;

/// What the kernel may keep for a request besides what the client sent.
const ENTRY: usize = 2 * 1024;

const ENVELOPE: &str =
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

const MEGABYTE: usize = 1024 * 1024;

/// A client that floods, and an application that keeps no more than the right to answer.
struct Flood {
    connection: Connection,
    now: Time,
    /// How many bytes are allocated since the beginning; what the test itself allocates between is not counted.
    kept: isize,
    peak: isize,
    open: Vec<Responder>,
    listening: Vec<RequestKey>,
    refused: usize,
    _alone: MutexGuard<'static, ()>,
}

impl Flood {
    fn new(limits: Limits) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let capabilities = ServerCapabilities::default()
            .tools(ToolsCapability::default().list_changed(true))
            .resources(ResourcesCapability::default().list_changed(true).subscribe(true))
            .logging(RawObject::empty());
        let mut config = ServerConfig::new(Implementation::new("server", "1.0"), capabilities);
        config.limits = limits;
        let config = Arc::new(config);
        let now = Time::EPOCH;
        Self {
            connection: Connection::long_lived(config),
            now,
            kept: 0,
            peak: 0,
            open: Vec::new(),
            listening: Vec::new(),
            refused: 0,
            _alone: alone,
        }
    }

    /// A connection after the legacy handshake.
    fn initialized(limits: Limits) -> Self {
        let mut flood = Self::new(limits);
        flood.send(
            r#"{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#,
        );
        flood.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        flood
    }

    fn send(&mut self, message: &str) {
        self.count(|flood| {
            flood.connection.handle_bytes(flood.now, message.as_bytes(), None);
            flood.take();
        });
    }

    /// Does something, and counts what stays allocated after it.
    fn count(&mut self, act: impl FnOnce(&mut Self)) {
        let before = ALLOCATOR.allocated();
        act(self);
        self.kept += ALLOCATOR.allocated().cast_signed() - before.cast_signed();
        self.peak = self.peak.max(self.kept);
    }

    /// Takes all that there is to send and to tell.
    fn take(&mut self) {
        while self.connection.poll_transmit().is_some() {}
        while let Some(event) = self.connection.poll_event() {
            if let Event::Request { responder, .. } = event {
                self.open.push(responder);
            } else if let Event::Listening { scope, .. } = event {
                self.listening.push(scope.key());
            } else if let Event::PeerMisbehaved(_) = event {
                self.refused += 1;
            }
        }
    }

    #[track_caller]
    fn assert_kept_at_most(&self, bytes: usize) {
        assert!(self.peak <= (bytes + SLACK).cast_signed(), "{} bytes were kept, not {bytes}", self.peak);
    }

    #[track_caller]
    fn assert_nothing_left(&self) {
        assert!(self.connection.is_idle(), "{:?}", self.connection);
        assert!(self.kept <= SLACK.cast_signed(), "{} bytes are kept for nothing", self.kept);
    }

    /// Answers and ends everything; the connection lives on with next to nothing.
    #[track_caller]
    fn calm_down(&mut self) {
        while !self.open.is_empty() || !self.listening.is_empty() {
            self.count(|flood| {
                for responder in std::mem::take(&mut flood.open) {
                    let _ = flood.connection.respond(responder, Ok(CallToolResult::text("done")));
                }
                for key in std::mem::take(&mut flood.listening) {
                    flood.connection.end_listening(key).expect("a subscription that is open");
                }
                flood.take();
            });
        }
        self.assert_nothing_left();
    }

    /// Loses the connection, of which nothing is left.
    #[track_caller]
    fn disconnect(mut self) {
        self.count(|flood| {
            flood.connection.handle_disconnect();
            flood.take();
        });
        self.assert_nothing_left();
    }
}

/// A modern request.
fn modern(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"_meta":{{{ENVELOPE}}},{params}}}}}"#)
}

#[test]
fn requests_over_the_limit() {
    let limits = Limits::default();
    let most = limits.max_in_flight + limits.max_queued;
    let mut flood = Flood::new(limits);
    let arguments = format!(r#""name":"a","arguments":{{"text":"{}"}}"#, "x".repeat(1000));
    for id in 0..most + 10_000 {
        flood.send(&modern(&id.to_string(), "tools/call", &arguments));
    }
    assert_eq!((flood.open.len(), flood.refused), (Limits::default().max_in_flight, 10_000));
    flood.assert_kept_at_most(most * (arguments.len() + ENTRY));
    flood.calm_down();
    flood.disconnect();
}

#[test]
fn requests_that_are_cancelled_at_once() {
    let mut flood = Flood::new(Limits::default());
    for _ in 0..10_000 {
        flood.send(&modern("1", "tools/call", r#""name":"a""#));
        flood.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
        flood.open.clear();
    }
    flood.assert_kept_at_most(0);
    flood.calm_down();
    flood.disconnect();
}

#[test]
fn subscriptions_over_the_limit() {
    let limits = Limits::default();
    let most = limits.max_listen_streams;
    let mut flood = Flood::new(limits);
    let filter = r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///a","file:///b"]}"#;
    for id in 0..10_000 + most {
        flood.send(&modern(&format!("\"listen {id}\""), "subscriptions/listen", filter));
    }
    assert_eq!((flood.listening.len(), flood.refused), (most, 10_000));
    flood.assert_kept_at_most(most * ENTRY);
    flood.calm_down();
    flood.disconnect();
}

#[test]
fn addresses_over_the_limit() {
    let limits = Limits::default();
    let most = limits.max_subscriptions;
    let mut flood = Flood::initialized(limits);
    for id in 0..10_000 + most {
        let subscribe = r#""method":"resources/subscribe","params":{"uri":"file:///"#;
        flood.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},{subscribe}{id}"}}}}"#));
    }
    assert_eq!(flood.refused, 10_000);
    flood.assert_kept_at_most(most * 100);
    flood.disconnect();
}

#[test]
fn huge_metadata() {
    let mut flood = Flood::new(Limits::default());
    let huge = "x".repeat(MEGABYTE);
    for id in 0..20 {
        let meta = format!(r#""_meta":{{"a":"{huge}",{ENVELOPE}}}"#);
        flood.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{meta}}}}}"#));
    }
    assert_eq!((flood.open.len(), flood.refused), (0, 20));
    flood.assert_kept_at_most(0);
    flood.calm_down();
    flood.disconnect();
}

#[test]
fn cancellations_of_nothing() {
    let mut flood = Flood::new(Limits::default());
    for id in 0..100_000 {
        flood.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"why not"}}}}"#
        ));
    }
    assert_eq!(flood.refused, 0);
    flood.assert_kept_at_most(0);
    flood.calm_down();
    flood.disconnect();
}

/// A long text is kept only where something is open, so what is kept grows with the limits and not with the flood.
#[test]
fn long_texts() {
    let mut limits = Limits::default();
    (limits.max_in_flight, limits.max_queued, limits.max_listen_streams, limits.max_subscriptions) = (2, 2, 2, 2);
    let mut flood = Flood::initialized(limits);
    let long = "x".repeat(MEGABYTE);
    for round in 0..10 {
        let id = format!("\"{round}{long}\"");
        flood.send(&modern(&id, "tools/call", r#""name":"a""#));
        flood.send(&modern(&id, "subscriptions/listen", r#""notifications":{"toolsListChanged":true}"#));
        flood.send(&modern("1", &long, r#""name":"a""#));
        flood.send(&modern("2", "tools/call", &format!(r#""name":"{round}{long}""#)));
        let uris = format!(r#""notifications":{{"resourceSubscriptions":["{round}{long}"]}}"#);
        flood.send(&modern("3", "subscriptions/listen", &uris));
        let uri = format!(r#"{{"uri":"{round}{long}"}}"#);
        flood.send(&format!(r#"{{"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{uri}}}"#));
        let cancelled = format!(r#"{{"requestId":5,"reason":"{long}"}}"#);
        flood.send(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{cancelled}}}"#));
        flood.send(&format!(r#"{{"jsonrpc":"2.0","method":"{long}"}}"#));
        flood.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        flood.send(&long);
    }
    // Eight things are open or subscribed to, each with at most two copies of its text.
    flood.assert_kept_at_most(8 * 2 * MEGABYTE);
    flood.disconnect();
}

#[test]
fn a_reader_that_stopped() {
    progress_without_a_reader(true);
}

/// The driver should have blocked the stream, or taken what is there; the limits hold all the same.
#[test]
fn a_driver_that_takes_nothing() {
    progress_without_a_reader(false);
}

/// Nobody reads the answers, and the driver feeds on.
#[test]
fn questions_without_reading_the_answers() {
    let limits = Limits::default();
    let most = limits.max_outbox_messages * 1024 + limits.max_outbox_bytes;
    let mut flood = Flood::initialized(limits);
    for id in 0..100_000 {
        flood.count(|flood| {
            let ping = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            flood.connection.handle_bytes(flood.now, ping.as_bytes(), None);
            while flood.connection.poll_event().is_some() {}
        });
    }
    flood.assert_kept_at_most(most);
    flood.disconnect();
}

fn progress_without_a_reader(is_blocked: bool) {
    let limits = Limits::default();
    let (messages, bytes) = (limits.max_route_messages, limits.max_route_bytes);
    let mut flood = Flood::initialized(limits);
    let meta = r#""_meta":{"progressToken":1}"#;
    flood.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a",{meta}}}}}"#));
    let key = flood.open[0].key();
    if is_blocked {
        flood.connection.block(Route::Related(key));
    }
    let mut dropped = 0;
    for step in 0..2_000 {
        flood.count(|flood| {
            let _ = flood.connection.progress(key, step, None, Some("x".repeat(50_000)));
            while let Some(event) = flood.connection.poll_event() {
                if let Event::Dropped { count, .. } = event {
                    dropped += count;
                }
            }
        });
    }
    assert!(dropped >= 2_000 - messages.min(bytes / 50_000), "only {dropped} were dropped");
    // A message is written to a buffer that grows, so it may take twice its length.
    flood.assert_kept_at_most(2 * bytes);
    flood.count(|flood| {
        flood.connection.unblock(Route::Related(key));
        flood.take();
    });
    flood.calm_down();
    flood.disconnect();
}
