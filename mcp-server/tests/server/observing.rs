//! What an observer learns of a server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_kernel::observe::{Observation, Observer, OperationOutcome};
use mcp_server::middleware::{self, Next};
use mcp_server::types::{InputRequiredResult, Revision};
use mcp_server::{Connection, Handshake, Limits, NoArguments, Server, prompt, tool};
use mcp_testkit::envelope::{initialize, initialized, modern_request, request};
use mcp_testkit::{Gate, Recorder, ScriptedClient};
use serde_json::json;

use crate::servers::{LEGACY, MODERN, fails, server};
use crate::watching::watch;

struct Observed {
    recorder: Recorder,
    server: Server,
    gate: Gate,
}

fn observed() -> Observed {
    let (recorder, gate) = (Recorder::default(), Gate::default());
    let waiting = gate.clone();
    let server = server(|server| {
        let mut limits = Limits::default();
        limits.max_in_flight = 2;
        server
            .observer(recorder.observer())
            .limits(limits)
            .tool(tool("add", async |_, _: NoArguments| "done"))
            .tool(tool("fail", async |_, _: NoArguments| Err::<(), _>("no")))
            .tool(tool("panic", async |_, _: NoArguments| fails()))
            .tool(tool("ask", async |_, _: NoArguments| InputRequiredResult::default().request_state("1")))
            .tool(tool("wait", move |_, _: NoArguments| {
                let gate = waiting.clone();
                async move {
                    gate.wait().await;
                    "waited"
                }
            }))
            .prompt(prompt("greet", async |_, _: NoArguments| "hello"))
    });
    Observed { recorder, server, gate }
}

impl Observed {
    fn client(&self, revision: Revision) -> ScriptedClient {
        let client = ScriptedClient::new(&self.server, revision);
        let _ = self.recorder.take();
        client
    }

    /// The ends of operations and sessions since the last call.
    #[track_caller]
    fn ends(&self) -> Vec<String> {
        let ends =
            self.recorder.take().into_iter().filter_map(|text| Some(text.strip_prefix("server end ")?.to_owned()));
        ends.collect()
    }
}

/// Each request is reported at its start and at its end, with its target if that is registered, and with its outcome.
// covers: S4.107
#[test]
fn requests_are_reported() {
    for revision in Revision::ALL {
        let observed = observed();
        let mut client = observed.client(revision);
        client.call_tool("add", json!({}));
        assert_eq!(observed.recorder.take(), ["server start tools/call", "server end tools/call add: Completed"]);
        client.call("prompts/get", json!({ "name": "greet" }));
        client.call("tools/call", json!({ "name": "fail" }));
        client.call("tools/call", json!({ "name": "panic" }));
        client.call("tools/call", json!({ "name": "nobody" }));
        client.call("tools/list", json!({}));
        let expected = [
            "prompts/get greet: Completed",
            "tools/call fail: ToolError",
            "tools/call panic: Error(ErrorCode(-32603 INTERNAL_ERROR))",
            "tools/call: Error(ErrorCode(-32602 INVALID_PARAMS))",
            "tools/list: Completed",
        ];
        assert_eq!(observed.ends(), expected, "{revision}");
        assert_eq!(observed.recorder.operations(), 0);
    }
    let observed = observed();
    observed.client(MODERN).call("tools/call", json!({ "name": "ask" }));
    assert_eq!(observed.ends(), ["tools/call ask: InputRequired", "session: Completed"]);
}

/// What the kernel responds to is reported, too, and what it refuses.
// covers: S4.102, S4.107
#[test]
fn requests_without_a_handler_are_reported() {
    let observed = observed();
    let mut client = observed.client(LEGACY[3]);
    client.call("ping", json!({}));
    client.call("no/such", json!({}));
    client.notify("notifications/roots/list_changed", json!({}));
    client.send(&modern_request(90, "server/discover", json!({})));
    let ends = observed.ends();
    assert_eq!(ends[0], "ping: Completed");
    assert_eq!(ends[1], "no/such: Error(ErrorCode(-32601 METHOD_NOT_FOUND))");
    assert_eq!(ends[2..], ["notifications/roots/list_changed: Completed", "server/discover: Completed"]);
    assert_eq!(observed.recorder.operations(), 0);
}

/// However a request ends, it is reported once: cancelled while it runs or waits, with its connection, or at the end of a
/// server that stops.
#[test]
fn every_request_ends_once() {
    let observed = observed();
    let mut client = observed.client(LEGACY[3]);
    let running: Vec<_> = (0..2).map(|_| client.start_tool("wait")).collect();
    let queued: Vec<_> = (0..2).map(|_| client.start_tool("wait")).collect();
    assert_eq!((observed.recorder.operations(), observed.recorder.queued()), (2, 2));
    client.cancel(queued[0]);
    client.run();
    assert_eq!(observed.recorder.queued(), 1);
    client.cancel(running[0]);
    client.run();
    assert_eq!((observed.recorder.operations(), observed.recorder.queued()), (2, 0));
    assert_eq!(
        observed.ends(),
        [
            "tools/call wait: Cancelled",
            "notifications/cancelled: Completed",
            "tools/call wait: Cancelled",
            "notifications/cancelled: Completed",
        ]
    );
    observed.gate.open();
    client.run();
    assert_eq!(observed.ends(), ["tools/call wait: Completed"; 2]);
    drop(client);
    assert_eq!(observed.ends(), ["session: Completed"]);

    let observed = self::observed();
    let mut client = observed.client(LEGACY[3]);
    client.start_tool("wait");
    drop(client);
    assert_eq!(observed.ends(), ["tools/call wait: Cancelled", "session: Completed"]);
    let mut client = observed.client(MODERN);
    client.start_tool("wait");
    client.connection.close();
    drop(client);
    assert_eq!(observed.ends(), ["tools/call wait: Cancelled", "session: Completed"]);
    assert_eq!((observed.recorder.operations(), observed.recorder.sessions()), (0, 0));
}

/// Records how long operations took.
#[derive(Default)]
struct Durations(Mutex<Vec<(String, OperationOutcome, Duration)>>);

impl Observer for Durations {
    fn observe(&self, observation: &Observation<'_>) {
        if let Observation::OperationEnded(operation, end) = observation {
            let method = operation.method.as_str().to_owned();
            let mut ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            ended.push((method, end.outcome, end.duration.expect("a clock")));
        }
    }
}

/// The least that a duration has which begins before a pause.
const PAUSE: Duration = Duration::from_millis(2);

#[expect(clippy::disallowed_methods, reason = "durations are measured with the real clock")]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// The duration of a request begins when it is received: the time in the queue is part of it, and that of a decision about
/// the handshake.
// covers: S4.107
#[test]
fn durations_begin_with_the_receipt() {
    let durations = Arc::new(Durations::default());
    let taken = |durations: &Durations| std::mem::take(&mut *durations.0.lock().unwrap());
    let (gate, decision) = (Gate::default(), Gate::default());
    let (waiting, deciding) = (gate.clone(), decision.clone());
    let server = server(|server| {
        let mut limits = Limits::default();
        limits.max_in_flight = 1;
        let wait = tool("wait", move |_, _: NoArguments| {
            let gate = waiting.clone();
            async move {
                gate.wait().await;
                "waited"
            }
        });
        server.observer(durations.clone()).limits(limits).tool(wait).on_initialize(move |handshake: Handshake| {
            let gate = deciding.clone();
            async move {
                gate.wait().await;
                Ok(handshake.server().clone())
            }
        })
    });
    let connection = Connection::long_lived(&server);
    let mut client = ScriptedClient::on_connection(connection, LEGACY[3], json!({}));
    client.send(&initialize(90, LEGACY[3].as_str(), json!({})));
    client.run();
    pause();
    decision.open();
    client.run();
    let ended = taken(&durations);
    assert!(matches!(&ended[..], [(method, _, taken)] if method == "initialize" && *taken >= PAUSE), "{ended:?}");
    client.send(&initialized());
    client.send(&request(91, "ping", json!({})));
    let ended = taken(&durations);
    assert!(ended.len() == 2 && ended.iter().all(|(_, _, taken)| *taken > Duration::ZERO), "{ended:?}");

    let _running = client.start_tool("wait");
    let (cancelled, _queued) = (client.start_tool("wait"), client.start_tool("wait"));
    pause();
    client.cancel(cancelled);
    client.run();
    let ended = taken(&durations);
    assert_eq!((&*ended[0].0, ended[0].1), ("tools/call", OperationOutcome::Cancelled));
    assert!(ended[0].2 >= PAUSE, "{ended:?}");
    gate.open();
    client.run();
    let ended = taken(&durations);
    assert!(ended.len() == 2 && ended.iter().all(|(_, _, taken)| *taken >= PAUSE), "{ended:?}");
}

/// A connection that a handshake moves to another server takes its queue along: the observer of either counts what waits
/// for it, and neither keeps a request that was served.
#[test]
fn the_queue_moves_with_the_connection() {
    for is_observed in [true, false] {
        let (first, second) = (Recorder::default(), Recorder::default());
        let gate = Gate::default();
        let build = |recorder: Option<&Recorder>| {
            let waiting = gate.clone();
            let wait = tool("wait", move |_, _: NoArguments| {
                let gate = waiting.clone();
                async move {
                    gate.wait().await;
                    "waited"
                }
            });
            let mut limits = Limits::default();
            limits.max_in_flight = 1;
            let builder = Server::builder("demo", "1.0").limits(limits).tool(wait);
            match recorder {
                Some(recorder) => builder.observer(recorder.observer()),
                None => builder,
            }
        };
        let other = build(is_observed.then_some(&second)).build().unwrap();
        let choosing = build(Some(&first)).on_initialize(move |_| std::future::ready(Ok(other.clone())));
        let connection = Connection::long_lived(&choosing.build().unwrap());
        let mut client = ScriptedClient::on_connection(connection, LEGACY[3], json!({}));
        for id in 80..83 {
            client.send(&modern_request(id, "tools/call", json!({ "name": "wait" })));
        }
        client.run();
        assert_eq!((first.queued(), second.queued()), (2, 0));
        client.send(&initialize(90, LEGACY[3].as_str(), json!({})));
        client.run();
        assert_eq!((first.queued(), second.queued()), (0, if is_observed { 2 } else { 0 }));
        gate.open();
        client.run();
        assert_eq!((first.queued(), second.queued()), (0, 0));
        assert_eq!((first.operations(), second.operations()), (0, 0));
    }
}

/// A listen stream is an operation that lasts.
#[test]
fn listen_streams_are_reported() {
    for is_layered in [false, true] {
        let recorder = Recorder::default();
        let server = server(|server| {
            let server = server.observer(recorder.observer()).tool(tool("add", async |_, _: NoArguments| "done"));
            if is_layered { server.layer(middleware::from_fn(|ctx, next: Next| next.run(ctx))) } else { server }
        });
        let mut client = ScriptedClient::new(&server, MODERN);
        let _ = recorder.take();
        let id = client.start("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
        client.run();
        assert_eq!(recorder.take(), ["server start subscriptions/listen"], "{is_layered}");
        client.cancel(id);
        client.run();
        let ends = recorder.take();
        assert!(ends.contains(&"server end subscriptions/listen: Completed".to_owned()), "{ends:?}");
        assert_eq!(recorder.operations(), 0);
        drop(client);
        assert_eq!(recorder.sessions(), 0);
    }
}

/// A connection for one request is a session of its own, whose duration is that of the request.
// covers: S4.108
#[test]
fn single_requests_are_sessions() {
    let observed = observed();
    let connection = Connection::modern_request(&observed.server);
    ScriptedClient::on_connection(connection, MODERN, json!({})).call("tools/call", json!({ "name": "add" }));
    let connection = Connection::modern_request(&observed.server);
    ScriptedClient::on_connection(connection, MODERN, json!({})).call("server/discover", json!({}));
    assert_eq!(
        observed.recorder.take(),
        [
            "server start single request",
            "server start tools/call",
            "server end tools/call add: Completed",
            "server end single request: Completed",
            "server start single request",
            "server start server/discover",
            "server end server/discover: Completed",
            "server end single request: Completed",
        ]
    );
}

/// Middleware can add the session id of the transport to the span of a request.
// covers: S4.104
#[test]
fn middleware_adds_the_session_id_of_the_transport() {
    let server = server(|server| {
        server.tool(tool("add", async |_, _: NoArguments| "done")).layer(middleware::from_fn(|ctx, next: Next| {
            if let Some(id) = ctx.connection().session_id() {
                tracing::Span::current().record("mcp.transport.session.id", id);
            }
            next.run(ctx)
        }))
    });
    let seen = watch(|| {
        let connection = Connection::long_lived(&server).session_id(Arc::new("the-session"));
        let mut client = ScriptedClient::on_connection(connection, LEGACY[3], json!({}));
        client.initialize();
        client.call("tools/call", json!({ "name": "add" }));
    });
    let span = seen.spans.iter().find(|span| span["otel.name"] == "tools/call add").expect("a span");
    assert_eq!(span["mcp.transport.session.id"], "the-session");
    assert_ne!(span["mcp.session.id"], "the-session");
}

/// Requests without a handler have spans of their own, and all spans get their parents from the application.
// covers: S4.102, MIS-3
#[test]
fn mis_3_all_requests_have_spans_with_parents() {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let parents = mcp_testkit::Notes::default();
    let noted = parents.clone();
    let server = server(|server| {
        server.tool(tool("add", async |_, _: NoArguments| "done")).trace_parent(move |_, trace| {
            noted.add(trace.traceparent().unwrap_or("none"));
        })
    });
    let seen = watch(|| {
        let mut client = ScriptedClient::new(&server, LEGACY[3]);
        client.call("ping", json!({ "_meta": { "traceparent": trace } }));
        client.call("tools/call", json!({ "name": "add", "_meta": { "traceparent": trace } }));
        client.call("made/up", json!({}));
    });
    let names: Vec<_> =
        seen.spans[1..].iter().map(|span| (&*span["otel.name"], span.get("error.type").map(|it| &**it))).collect();
    assert_eq!((&*seen.spans[0]["span"], &*seen.spans[0]["mcp.protocol.version"]), ("mcp.session", "2025-11-25"));
    let expected = [
        ("initialize", None),
        ("notifications/initialized", None),
        ("ping", None),
        ("tools/call add", None),
        ("_OTHER", Some("-32601")),
    ];
    assert_eq!(names, expected);
    assert_eq!(parents.take(), ["none", "none", trace, trace, "none"]);
}
