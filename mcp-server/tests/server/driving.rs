//! What a transport relies on when it drives a connection.

use std::future::pending;
use std::sync::{Arc, Mutex};

use mcp_kernel::server::Route;
use mcp_server::types::jsonrpc::{EnvelopeSummary, parse};
use mcp_server::types::meta::key::LOG_LEVEL;
use mcp_server::types::{RawObject, Revision};
use mcp_server::{
    Caller, CompletionInput, Connection, Extensions, InboxFull, Limits, NoArguments, RequestContext, Server, prompt,
    resource, template, tool,
};
use mcp_testkit::{Notes, ScriptedClient};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::servers::{LEGACY, MODERN, server};

/// One stream is all that a transport needs; it takes lines, as many as it has room for.
// covers: S1.4, S4.48, S4.75, T-3
#[test]
fn one_stream_is_enough() {
    let server = server(|server| server.tool(tool("a", async |_, _: NoArguments| "a\nb")));
    let mut client = ScriptedClient::new(&server, MODERN);
    for _ in 0..3 {
        let request = client.build_request("tools/call", json!({ "name": "a" }));
        client.send(&request);
    }
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(client.connection.poll(&mut cx, client.now()).is_ready());
    let mut lines = Vec::new();
    client.connection.take_lines(&mut lines, 1);
    assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), 1);
    client.connection.take_lines(&mut lines, usize::MAX);
    let lines = String::from_utf8(lines).unwrap();
    let answers: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.iter().map(|answer| answer["id"].clone()).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(client.connection.poll(&mut cx, client.now()).is_pending() && client.connection.is_idle());
}

/// A client that asks without reading is not read from; a text that is too long is refused.
// covers: S4.75
#[test]
fn transports_know_when_to_stop_reading() {
    let mut limits = Limits::default();
    limits.max_outbox_messages = 2;
    let server = server(|server| server.offers_tools().limits(limits));
    let mut client = ScriptedClient::new(&server, MODERN);
    for _ in 0..2 {
        assert!(client.connection.wants_input());
        let ping = client.build_request("tools/list", json!({}));
        client.send(&ping);
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(client.connection.poll(&mut cx, client.now()).is_ready());
    }
    assert!(!client.connection.wants_input());
    client.run();
    assert!(client.connection.wants_input());
    client.connection.handle_oversized(10, &EnvelopeSummary::default());
    client.run();
    let refused = client.response_to(Value::Null);
    assert_eq!(refused["error"]["code"], -32600);
}

/// What belongs to a request goes out on its route, and a slow reader of one does not hold up another.
// covers: S1.4
#[test]
fn routes_are_kept_apart() {
    let log = tool("log", async |ctx: RequestContext, _: NoArguments| {
        ctx.log(mcp_server::types::LoggingLevel::Error, "first");
    });
    let server = server(|server| server.tool(log));
    let mut client = ScriptedClient::new(&server, MODERN);
    let params = json!({ "name": "log", "_meta": { LOG_LEVEL: "debug" } });
    let slow = client.build_request("tools/call", params.clone());
    let key = client.send(&slow).unwrap();
    client.connection.block(Route::Reply(key));
    client.start("tools/call", params);
    let (route, _) = client.next_routed();
    assert!(matches!(route, Route::Related(other) if other != key), "{route:?}");
    assert!(matches!(client.next_routed().0, Route::Reply(other) if other != key));
    client.assert_quiet();
    client.connection.unblock(Route::Reply(key));
    assert_eq!(client.next_routed().0, Route::Related(key));
    assert_eq!(client.next_routed().0, Route::Reply(key));
    client.assert_quiet();
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its shape matters")]
struct Named {
    name: String,
}

/// A server all of whose handlers wait for good.
fn patient(notes: &Notes, contexts: &Arc<Mutex<Vec<RequestContext>>>) -> Server {
    let (notes, contexts) = (notes.clone(), Arc::clone(contexts));
    let wait = move |ctx: RequestContext| {
        let dropped = notes.on_drop("dropped");
        contexts.lock().expect("no panic").push(ctx);
        async move {
            let _dropped = dropped;
            pending::<()>().await;
        }
    };
    let waits = [(); 6].map(|()| wait.clone());
    let [called, got, read, matched, completed, asked] = waits;
    server(|server| {
        server
            .tool(tool("a", move |ctx, _: NoArguments| called(ctx)))
            .prompt(
                prompt("a", move |ctx, _: Named| {
                    let waiting = got(ctx);
                    async move {
                        waiting.await;
                        "never"
                    }
                })
                .complete("name", move |ctx: RequestContext, _: CompletionInput| {
                    let waiting = completed(ctx);
                    async move {
                        waiting.await;
                        Vec::new()
                    }
                }),
            )
            .resource(resource("a:b", "a", move |ctx| {
                let waiting = read(ctx);
                async move {
                    waiting.await;
                    "never"
                }
            }))
            .template(template("b:{c}", "b", move |ctx, _| {
                let waiting = matched(ctx);
                async move {
                    waiting.await;
                    "never"
                }
            }))
            .method("x.y/z", "z/wait", move |ctx, params: RawObject| {
                let waiting = asked(ctx);
                async move {
                    waiting.await;
                    Ok(params)
                }
            })
    })
}

/// Handlers of every kind have a token, and end where they wait.
// covers: S4.73, S4.76, S4.81
#[test]
fn handlers_of_every_kind_are_cancelled() {
    let requests = [
        ("tools/call", json!({ "name": "a" })),
        ("prompts/get", json!({ "name": "a", "arguments": { "name": "b" } })),
        ("resources/read", json!({ "uri": "a:b" })),
        ("resources/read", json!({ "uri": "b:c" })),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "a" }, "argument": { "name": "name", "value": "" } }),
        ),
        ("z/wait", json!({})),
    ];
    for revision in Revision::ALL {
        let (notes, contexts) = Default::default();
        let declared = json!({ "extensions": { "x.y/z": {} } });
        let mut client = ScriptedClient::with_capabilities(&patient(&notes, &contexts), revision, declared);
        for (method, params) in requests.clone() {
            let id = client.start(method, params);
            let ctx = contexts.lock().unwrap().pop().unwrap();
            assert!(client.connection.is_busy() && !ctx.is_cancelled(), "{method}");
            client.cancel(id);
            assert!(ctx.is_cancelled() && client.connection.is_idle(), "{method}");
            assert_eq!(notes.take(), ["dropped"], "{method}");
        }
        client.assert_quiet();
    }
}

/// What is said from elsewhere has the connection woken.
// covers: S2.3
#[test]
fn the_driver_is_woken_from_elsewhere() {
    let (notes, contexts) = Default::default();
    let server = patient(&notes, &contexts);
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        client.start("tools/call", json!({ "name": "a", "_meta": { "progressToken": 1 } }));
        let ctx = contexts.lock().unwrap().pop().unwrap();
        assert!(!client.is_woken());
        ctx.progress(1);
        assert!(client.is_woken());
        client.expect_message("notifications/progress");
    }
}

/// The requests of a batch keep their caller too, whenever their turn comes, and answer together.
// covers: S2.4
#[test]
fn batches_keep_their_caller() {
    let who =
        tool("who", async |ctx: RequestContext, _: NoArguments| ctx.extension::<&str>().map_or("nobody", |who| *who));
    let mut limits = Limits::default();
    limits.max_in_flight = 1;
    let server = server(|server| server.tool(who).limits(limits));
    let mut client = ScriptedClient::new(&server, Revision::V2025_03_26);
    let mut extensions = Extensions::new();
    extensions.insert("ann");
    client.caller.extensions = extensions;
    let batch: Vec<_> = (0..3).map(|_| client.build_request("tools/call", json!({ "name": "who" }))).collect();
    client.send(&json!(batch));
    client.caller.extensions = Extensions::new();
    let (_, answers) = client.next_routed();
    let answers: Vec<_> = answers.as_array().unwrap().iter().map(|one| &one["result"]["content"][0]["text"]).collect();
    assert_eq!(answers, ["ann"; 3]);
    client.assert_quiet();
}

/// A strict server waits for the end of the handshake, and there is one handshake.
// covers: S0.14, S0.15, S0.17, S1.22
#[test]
fn a_strict_server_waits_for_the_handshake() {
    for revision in LEGACY {
        for is_strict in [false, true] {
            let server = server(|server| {
                let server = server.offers_tools();
                if is_strict { server.require_initialized() } else { server }
            });
            let mut client = ScriptedClient::on_connection(Connection::long_lived(&server), revision, json!({}));
            client.error("tools/list", json!({}), -32600);
            client.result("ping", json!({}));
            client.initialize();
            assert_eq!(client.initialize()["error"]["code"], -32600);
            assert_eq!(client.call("tools/list", json!({})).get("error").is_some(), is_strict);
            client.notify("notifications/initialized", json!({}));
            client.result("tools/list", json!({}));
        }
    }
}

/// A port takes messages for a connection that others poll, as many as the limits allow; handlers know who sent them.
// covers: SEC-6
#[test]
fn sec_6_ports_hand_messages_over() {
    let mut limits = Limits::default();
    limits.max_outbox_messages = 3;
    let server = server(|server| {
        server.limits(limits).tool(tool("who", async |ctx: RequestContext, _: NoArguments| {
            ctx.extension::<u64>().map_or_else(String::new, |sender| sender.to_string())
        }))
    });
    for revision in LEGACY {
        let mut client = ScriptedClient::new(&server, revision);
        let port = client.connection.port();
        let mut said = Vec::new();
        for sender in 1..=4_u64 {
            let caller = Caller::default().extension(sender);
            let text = client.build_request("tools/call", json!({ "name": "who" })).to_string();
            let incoming = parse(text.as_bytes(), &Limits::default().message).unwrap();
            said.push(port.feed_parsed(client.now(), incoming, caller).map(|key| key.is_some()));
        }
        assert_eq!(said, [Ok(true), Ok(true), Ok(true), Err(InboxFull)], "nothing is taken beyond the limit");
        assert!(port.poll_transmit().is_none(), "no handler runs where a message is handed over");
        client.run();
        for id in 1..=3 {
            assert_eq!(client.response_to(id)["result"]["content"][0]["text"], id.to_string());
        }
        let ping = client.build_request("ping", json!({})).to_string();
        let incoming = parse(ping.as_bytes(), &Limits::default().message).unwrap();
        assert!(port.feed_parsed(client.now(), incoming, Caller::default()).is_ok(), "there is room again");
        assert!(port.poll_transmit().is_some(), "what needs no handler does not wait for one");
    }
}
