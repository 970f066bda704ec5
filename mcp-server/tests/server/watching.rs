//! What operators see: spans and events.

use mcp_server::types::{ErrorObject, InputRequiredResult, Revision};
use mcp_server::{Connection, NoArguments, RequestContext, Server, prompt, text_resource, tool};
pub(crate) use mcp_testkit::TraceFields as Fields;
use mcp_testkit::{Gate, ScriptedClient, TraceRecorder, Traces};
use serde_json::{Value, json};
use tracing::Level;

use crate::servers::{LEGACY, MODERN, fails, server};

/// Runs something and returns what there was to see.
pub(crate) fn watch(run: impl FnOnce()) -> Traces {
    TraceRecorder::record(run)
}

fn watched() -> Server {
    server(|server| {
        server
            .tool(tool("add", async |_, _: NoArguments| {
                tracing::info!(target: "mcp", "at work");
                "done"
            }))
            .tool(tool("fail", async |_, _: NoArguments| Err::<(), _>("no")))
            .tool(tool("panic", async |_, _: NoArguments| fails()))
            .prompt(prompt("greet", async |_, _: NoArguments| "hello"))
            .resource(text_resource("a:b", "text", "text"))
    })
}

/// The span of one request, which must be the only one.
fn span_of(revision: Revision, method: &str, params: Value) -> Fields {
    let mut client = ScriptedClient::new(&watched(), revision);
    let spans = watch(|| drop(client.call(method, params))).spans;
    assert_eq!(spans.len(), 1, "{spans:?}");
    spans.into_iter().next().expect("a span")
}

/// The span of a request has the names of the conventions, in every revision.
// covers: S4.102, S4.103, S4.106
#[test]
fn requests_have_spans() {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for revision in Revision::ALL {
        let params = json!({ "name": "add", "_meta": { "traceparent": trace } });
        let mut span = span_of(revision, "tools/call", params);
        // It is another one for each connection.
        let session = span.remove("mcp.session.id");
        assert!(session.is_some_and(|token| !token.is_empty()));
        let expected = [
            ("gen_ai.tool.name", "add"),
            ("jsonrpc.request.id", "1"),
            ("mcp.method.name", "tools/call"),
            ("mcp.protocol.version", revision.as_str()),
            ("otel.kind", "server"),
            ("otel.name", "tools/call add"),
            ("span", "mcp.request"),
            ("traceparent", trace),
        ];
        assert_eq!(span, expected.map(|(name, value)| (name, value.to_owned())).into(), "{revision}");
    }
}

/// What is asked for has a field of its own.
// covers: S4.106
#[test]
fn spans_name_their_subject() {
    let greet = span_of(MODERN, "prompts/get", json!({ "name": "greet" }));
    assert_eq!((&*greet["gen_ai.prompt.name"], &*greet["otel.name"]), ("greet", "prompts/get greet"));
    let read = span_of(MODERN, "resources/read", json!({ "uri": "a:b" }));
    assert_eq!((&*read["mcp.resource.uri"], &*read["otel.name"]), ("a:b", "resources/read a:b"));
    let listed = span_of(MODERN, "tools/list", json!({}));
    assert_eq!(listed["otel.name"], "tools/list");
}

/// What a client sends does not become the name of a span unless it is registered, and all of it is cut off.
// covers: SEC-12
#[test]
fn sec_12_spans_do_not_grow_with_the_text_of_clients() {
    for size in [200, 100_000] {
        let text = "\u{e9}".repeat(size);
        for (method, member, field) in [
            ("tools/call", "name", "gen_ai.tool.name"),
            ("prompts/get", "name", "gen_ai.prompt.name"),
            ("resources/read", "uri", "mcp.resource.uri"),
        ] {
            let uri = format!("a:{text}");
            // Later versions of the header may append fields of any length.
            let trace = format!("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-{}", "x".repeat(200));
            let params = json!({ member: uri, "_meta": { "traceparent": trace } });
            let span = span_of(MODERN, method, params);
            assert_eq!(span["otel.name"], method);
            assert!(span[field].starts_with("a:\u{e9}"), "{span:?}");
            for (field, value) in &span {
                assert!(value.chars().count() <= 128, "{method} {field}: {value}");
            }
        }
    }
    let waits = tool("wait", async |_, _: NoArguments| std::future::pending::<&str>().await);
    let mut client = ScriptedClient::new(&server(|server| server.tool(waits)), LEGACY[3]);
    let (id, reason) = ("i".repeat(1_000), "r".repeat(100_000));
    let Traces { spans, events, .. } = watch(|| {
        client.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "x".repeat(100_000) }));
        client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "wait" } }));
        client.run();
        client.notify("notifications/cancelled", json!({ "requestId": id, "reason": reason }));
    });
    assert!(spans.iter().any(|span| span["jsonrpc.request.id"].starts_with("\"i")), "{spans:?}");
    assert!(events.iter().any(|(_, event)| event.get("reason").is_some_and(|reason| reason.starts_with('r'))));
    for shown in spans.into_iter().chain(events.into_iter().map(|(_, event)| event)) {
        assert!(shown.values().all(|value| value.chars().count() <= 200), "{shown:?}");
    }
    // An unknown name is not repeated in the name of its span even if it is short.
    assert_eq!(span_of(MODERN, "tools/call", json!({ "name": "nobody" }))["otel.name"], "tools/call");
}

/// A span tells how its request failed.
// covers: S4.106
#[test]
fn spans_tell_of_failures() {
    for revision in [LEGACY[3], MODERN] {
        let unknown = span_of(revision, "tools/call", json!({ "name": "nobody" }));
        assert_eq!((&*unknown["error.type"], &*unknown["rpc.response.status_code"]), ("-32602", "-32602"));
        let panicked = span_of(revision, "tools/call", json!({ "name": "panic" }));
        assert_eq!(panicked["error.type"], "-32603");
        let failed = span_of(revision, "tools/call", json!({ "name": "fail" }));
        assert_eq!(failed["error.type"], "tool_error");
        assert_eq!(failed.get("rpc.response.status_code"), None);
    }
}

/// A handler runs inside its span, also after it waited, and next to others.
// covers: S4.102
#[test]
fn handlers_run_in_their_spans() {
    let gate = Gate::default();
    let waiting = gate.clone();
    let wait = tool("wait", move |ctx: RequestContext, _: NoArguments| {
        let gate = waiting.clone();
        tracing::info!(target: "mcp", id = %ctx.id(), "before");
        async move {
            gate.wait().await;
            tracing::info!(target: "mcp", id = %ctx.id(), "after");
            if ctx.id().to_string() == "2" { Err("no") } else { Ok("done") }
        }
    });
    let mut client = ScriptedClient::new(&server(|server| server.tool(wait)), MODERN);
    let Traces { spans, events, .. } = watch(|| {
        client.start_tool("wait");
        client.start_tool("wait");
        gate.open();
        client.run();
    });
    assert_eq!((spans[0].get("error.type"), &*spans[1]["error.type"]), (None, "tool_error"));
    let said: Vec<_> = events.into_iter().filter(|(_, event)| event.contains_key("id")).collect();
    assert_eq!(said.len(), 4);
    for (span, event) in said {
        assert_eq!(event["id"], span.expect("a span").to_string());
    }
}

/// What goes wrong is told to the operator, by its weight.
// covers: S1.17, S4.83
#[test]
fn operators_hear_of_what_goes_wrong() {
    let seen = watch(|| {
        let mut client = ScriptedClient::new(&watched(), LEGACY[3]);
        client.error("tools/call", json!({ "name": "panic" }), -32603);
        client.send_text("no message");
        client.connection.handle().on_close(async || fails());
        client.connection.handle().on_close(std::future::pending);
        let torn = client.connection.teardown(|| std::future::ready(()));
        futures_util::FutureExt::now_or_never(torn).expect("an end");
    });
    let told: Vec<_> = seen.events.iter().map(|(_, event)| (&*event["level"], &*event["message"])).collect();
    let expected = [
        ("ERROR", "a handler panicked"),
        ("DEBUG", "handler ended"),
        ("DEBUG", "the client violated the protocol"),
        ("WARN", "a teardown callback took too long and was dropped"),
        ("WARN", "a teardown callback panicked"),
    ];
    assert_eq!(told, expected);
}

/// A request that ends well is nothing to tell of but its end, also where each has a connection of its own.
// covers: S4.86, RB-26
#[test]
fn ordinary_requests_are_quiet() {
    let server = watched();
    let seen = watch(|| {
        for connection in [Connection::long_lived(&server), Connection::modern_request(&server)] {
            ScriptedClient::on_connection(connection, MODERN, json!({})).result("prompts/list", json!({}));
        }
        let connection = Connection::legacy_request(&server, LEGACY[3]);
        ScriptedClient::on_connection(connection, LEGACY[3], json!({}))
            .result("prompts/get", json!({ "name": "greet" }));
    });
    assert_eq!(
        ends(&seen),
        [("prompts/list", "completed"), ("prompts/list", "completed"), ("prompts/get", "completed")]
    );
    let is_quiet = |event: &Fields| event["level"] == "TRACE" || event.contains_key("outcome");
    assert!(seen.events.iter().all(|(_, event)| is_quiet(event)), "{:?}", seen.events);
}

/// What was told about the ends of handlers: methods and outcomes.
fn ends(seen: &Traces) -> Vec<(&str, &str)> {
    let ended = seen.events.iter().filter(|(_, fields)| fields.get("message").is_some_and(|it| it.contains("ended")));
    ended
        .map(|(span, fields)| {
            assert!(span.is_some(), "it belongs to its request");
            assert!(fields["duration"].parse::<f64>().is_ok_and(|seconds| seconds >= 0.0), "{fields:?}");
            (fields["method"].as_str(), fields["outcome"].as_str())
        })
        .collect()
}

/// Operators choose the level of what is told about the end of each handler.
#[test]
fn the_level_of_ends_is_chosen() {
    for (level, expected) in [(Level::INFO, "INFO"), (Level::TRACE, "TRACE"), (Level::ERROR, "DEBUG")] {
        let tool = tool("add", async |_, _: NoArguments| "done");
        let mut client = ScriptedClient::new(&server(|server| server.tool(tool).request_log_level(level)), MODERN);
        let seen = watch(|| drop(client.call("tools/call", json!({ "name": "add" }))));
        assert_eq!(ends(&seen), [("tools/call", "completed")]);
        assert!(seen.events.iter().any(|(_, event)| event["level"] == expected), "{:?}", seen.events);
    }
}

/// However a handler ends, operators learn of it once, and how long it took.
// covers: MIS-14
#[test]
fn mis_14_the_end_of_every_handler_is_told() {
    let gate = Gate::default();
    let waiting = gate.clone();
    let server = server(|server| {
        server
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
    });
    let call = "tools/call";
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        for (tool, outcome) in [("add", "completed"), ("fail", "failed"), ("panic", "failed"), ("none", "failed")] {
            let seen = watch(|| drop(client.call(call, json!({ "name": tool }))));
            assert_eq!(ends(&seen), [(call, outcome)], "{tool}");
        }
        let seen = watch(|| {
            let id = client.start_tool("wait");
            client.cancel(id);
        });
        assert_eq!(ends(&seen), [(call, "cancelled")], "by the client");
        let seen = watch(|| {
            client.start_tool("wait");
            client.connection.abort_requests(&ErrorObject::internal_error("it ends"));
            client.run();
        });
        assert_eq!(ends(&seen), [(call, "cancelled")], "by the server");
        let seen = watch(|| {
            client.start_tool("wait");
            drop(client);
        });
        assert_eq!(ends(&seen), [(call, "cancelled")], "with its connection");
    }
    let seen = watch(|| drop(ScriptedClient::new(&server, MODERN).call(call, json!({ "name": "ask" }))));
    assert_eq!(ends(&seen), [(call, "input_required")]);
    gate.open();
    let seen = watch(|| drop(ScriptedClient::new(&server, MODERN).call(call, json!({ "name": "wait" }))));
    assert_eq!(ends(&seen), [(call, "completed")]);
}
