//! Handlers that panic, and requests that nobody wants any more.

use std::future::pending;
use std::sync::{Arc, Mutex};

use mcp_server::types::Revision;
use mcp_server::{Connection, NoArguments, RequestContext, Server, ServerBuilder, prompt, resource, tool};
use mcp_testkit::{Gate, Notes, ScriptedClient};
use serde_json::{Value, json};

use crate::servers::{LEGACY, MODERN, fails, server};

/// A server with handlers that panic in all ways, and one that waits.
fn fragile(gate: &Gate) -> Server {
    let (waiting, late) = (gate.clone(), gate.clone());
    server(|server| {
        server
            .tool(tool("at once", |_, _: NoArguments| {
                fails();
                std::future::ready("never")
            }))
            .tool(tool("in the future", async |_, _: NoArguments| fails()))
            .tool(tool("later", move |_, _: NoArguments| {
                let gate = late.clone();
                async move {
                    gate.wait().await;
                    fails();
                }
            }))
            .tool(tool("patient", move |_, _: NoArguments| {
                let gate = waiting.clone();
                async move {
                    gate.wait().await;
                    "done"
                }
            }))
            .prompt(prompt("prompt", async |_, _: NoArguments| {
                fails();
                "never"
            }))
            .resource(resource("a:b", "resource", async |_| {
                fails();
                "never"
            }))
    })
}

/// A handler that panics answers with an internal error, and everything else goes on.
// covers: S4.76
#[test]
fn panics_are_answered() {
    for revision in Revision::ALL {
        let gate = Gate::default();
        let mut client = ScriptedClient::new(&fragile(&gate), revision);
        let patient = client.start_tool("patient");
        for (method, params) in [
            ("tools/call", json!({ "name": "at once" })),
            ("tools/call", json!({ "name": "in the future" })),
            ("prompts/get", json!({ "name": "prompt" })),
            ("resources/read", json!({ "uri": "a:b" })),
        ] {
            let error = client.error(method, params, -32603);
            assert_eq!(error["message"], "the handler failed");
        }
        let later = client.start_tool("later");
        client.assert_quiet();
        gate.open();
        client.run();
        assert_eq!(client.response_to(later)["error"]["code"], -32603);
        assert_eq!(client.response_to(patient)["result"]["content"][0]["text"], "done");
        assert!(client.connection.is_idle());
    }
}

/// Panics when it is dropped.
struct Fuse;

impl Drop for Fuse {
    fn drop(&mut self) {
        fails();
    }
}

/// A handler that panics when it is dropped, done or not, takes nobody with it.
// covers: S4.76
#[test]
fn handlers_may_panic_at_their_end() {
    let gate = Gate::default();
    let waiting = gate.clone();
    let server = server(|server| {
        server
            .tool(tool("wait", |_, _: NoArguments| {
                let fuse = Fuse;
                async move {
                    let _fuse = fuse;
                    pending::<()>().await;
                }
            }))
            .tool(tool("patient", move |_, _: NoArguments| {
                let gate = waiting.clone();
                async move {
                    gate.wait().await;
                    "done"
                }
            }))
    });
    let mut client = ScriptedClient::new(&server, MODERN);
    let id = client.start_tool("wait");
    let patient = client.start_tool("patient");
    client.cancel(id);
    gate.open();
    client.run();
    assert_eq!(client.response_to(patient)["result"]["content"][0]["text"], "done");
    client.start_tool("wait");
    client.connection.handle_disconnect();
    assert!(client.connection.is_idle());
    let mut client = ScriptedClient::new(&server, MODERN);
    client.start_tool("wait");
}

/// So does a function that hears of notifications.
// covers: S4.76
#[test]
fn listeners_may_panic() {
    let server = server(|server| server.on_notification(|_| fails()).offers_tools());
    let mut client = ScriptedClient::new(&server, Revision::V2025_11_25);
    client.notify("notifications/roots/list_changed", json!({}));
    client.result("tools/list", json!({}));
}

/// A server with a tool that waits for good, and leaves notes about its end.
fn endless(
    notes: &Notes,
    contexts: &Arc<Mutex<Vec<RequestContext>>>,
    build: fn(ServerBuilder) -> ServerBuilder,
) -> Server {
    let (notes, contexts) = (notes.clone(), Arc::clone(contexts));
    let wait = tool("wait", move |ctx: RequestContext, _: NoArguments| {
        let dropped = notes.on_drop("dropped");
        contexts.lock().expect("no panic").push(ctx.clone());
        async move {
            let _dropped = dropped;
            pending::<()>().await;
            ctx.progress(1);
        }
    });
    server(|server| build(server).tool(wait))
}

/// A cancelled handler is dropped where it waits, its token is set, nothing is said.
// covers: S0.12, S2.9..S2.11, S4.73, S4.76, S4.80, S4.81, S4.91
#[test]
fn a_cancellation_ends_the_handler() {
    for revision in Revision::ALL {
        let (notes, contexts) = Default::default();
        let server = endless(&notes, &contexts, |server| server);
        let mut client = ScriptedClient::new(&server, revision);
        let id = client.start_tool("wait");
        let other = client.start_tool("wait");
        let ctx = contexts.lock().unwrap()[0].clone();
        assert!(!ctx.is_cancelled() && client.connection.is_busy());
        client.cancel(99);
        assert!(!ctx.is_cancelled());
        client.cancel(id);
        assert!(ctx.is_cancelled());
        assert!(futures_util::FutureExt::now_or_never(ctx.cancelled()).is_some());
        assert_eq!(notes.take(), ["dropped"]);
        // Whoever goes on elsewhere speaks to nobody.
        ctx.progress(1);
        ctx.log(mcp_server::types::LoggingLevel::Emergency, "too late");
        client.assert_quiet();
        assert!(!contexts.lock().unwrap()[1].is_cancelled());
        client.cancel(other);
        assert!(client.connection.is_idle());
    }
}

/// A cancellation reaches nobody else's request of the same id.
// covers: S0.13
#[test]
fn cancellations_stay_with_their_client() {
    let (notes, contexts) = Default::default();
    let server = endless(&notes, &contexts, |server| server);
    let mut first = ScriptedClient::new(&server, MODERN);
    let mut second = ScriptedClient::new(&server, MODERN);
    assert_eq!(first.start_tool("wait"), second.start_tool("wait"));
    first.cancel(1);
    let contexts = contexts.lock().unwrap();
    assert!(contexts[0].is_cancelled() && !contexts[1].is_cancelled());
    assert!(!first.connection.is_busy() && second.connection.is_busy());
}

/// An answer that comes too late is not sent, not even one that was ready already.
// covers: S2.10
#[test]
fn late_answers_are_suppressed() {
    for revision in Revision::ALL {
        let gate = Gate::default();
        let mut client = ScriptedClient::new(&fragile(&gate), revision);
        let id = client.start_tool("patient");
        gate.open();
        // The handler could go on now, but the cancellation is there first.
        client.cancel(id);
        client.assert_quiet();
        assert!(client.connection.is_idle());
        // Neither is one that nobody has begun with yet.
        let request = client.build_request("tools/call", json!({ "name": "patient" }));
        client.send(&request);
        client.cancel(request["id"].as_i64().unwrap());
        client.assert_quiet();
    }
}

/// The end of the connection cancels what runs, in whatever way it comes.
// covers: S4.77, S4.78, S4.80
#[test]
fn the_end_of_a_connection_cancels() {
    let ends: [fn(ScriptedClient); 4] = [
        |mut client| {
            client.connection.handle_disconnect();
            assert!(client.connection.is_closed() && client.connection.is_idle());
        },
        |mut client| client.connection.close(),
        |mut client| {
            let torn = client.connection.teardown(pending);
            assert!(futures_util::FutureExt::now_or_never(torn).is_some());
        },
        drop,
    ];
    for revision in Revision::ALL {
        for end in ends {
            let (notes, contexts) = Default::default();
            let server = endless(&notes, &contexts, |server| server);
            let mut client = ScriptedClient::new(&server, revision);
            client.start_tool("wait");
            end(client);
            assert!(contexts.lock().unwrap()[0].is_cancelled());
            assert_eq!(notes.take(), ["dropped"]);
        }
    }
}

/// The end of a stream cancels a modern request; a legacy one goes on, as its client may come back.
// covers: S4.77, S4.78
#[test]
fn the_end_of_a_stream_cancels_by_era() {
    let (notes, contexts) = Default::default();
    let server = endless(&notes, &contexts, |server| server);
    for revision in [MODERN, LEGACY[3]] {
        contexts.lock().unwrap().clear();
        let mut client = ScriptedClient::new(&server, revision);
        let request = client.build_request("tools/call", json!({ "name": "wait" }));
        let key = client.send(&request).unwrap();
        client.run();
        client.connection.handle_stream_closed(key);
        client.assert_quiet();
        assert_eq!(contexts.lock().unwrap()[0].is_cancelled(), revision == MODERN);
    }
}

/// When nothing more is read, handlers may still finish.
// covers: S4.83..S4.85
#[test]
fn a_drain_lets_handlers_finish() {
    let gate = Gate::default();
    let mut client = ScriptedClient::new(&fragile(&gate), MODERN);
    let id = client.start_tool("patient");
    client.connection.drain();
    client.assert_quiet();
    gate.open();
    client.run();
    assert_eq!(client.response_to(id)["result"]["content"][0]["text"], "done");
    assert!(client.connection.is_idle() && !client.connection.is_closed());
}

/// No more run at once than the limits allow; the next ones wait, and too many are refused.
// covers: S0.12
#[test]
fn requests_wait_for_their_turn() {
    for revision in Revision::ALL {
        let (notes, contexts) = Default::default();
        let server = endless(&notes, &contexts, |server| {
            let mut limits = mcp_server::Limits::default();
            (limits.max_in_flight, limits.max_queued) = (2, 2);
            server.limits(limits)
        });
        let mut client = ScriptedClient::new(&server, revision);
        let ids: Vec<_> = (0..4).map(|_| client.start_tool("wait")).collect();
        assert_eq!(contexts.lock().unwrap().len(), 2);
        client.error("tools/call", json!({ "name": "wait" }), -32603);
        client.cancel(ids[3]);
        client.cancel(ids[0]);
        assert_eq!(contexts.lock().unwrap().len(), 3);
        client.cancel(ids[1]);
        client.cancel(ids[2]);
        assert!(client.connection.is_idle());
        assert_eq!(contexts.lock().unwrap().len(), 3);
        // `ping` and lists do not wait behind handlers that take their time.
        let id = client.start_tool("wait");
        client.result("tools/list", json!({}));
        client.cancel(id);
    }
}

/// A connection for one request serves it, and is idle after it.
// covers: S0.6, S0.7, S1.2, S1.14, S1.18, S2.11, S3.3
#[test]
fn single_requests_are_served() {
    let gate = Gate::default();
    gate.open();
    let server = fragile(&gate);
    let mut modern = ScriptedClient::on_connection(Connection::modern_request(&server), MODERN, json!({}));
    assert_eq!(modern.call_tool_text("patient", json!({})), "done");
    assert!(modern.connection.is_idle());
    for revision in LEGACY {
        let mut legacy =
            ScriptedClient::on_connection(Connection::legacy_request(&server, revision), revision, json!({}));
        assert_eq!(legacy.call_tool_text("patient", json!({})), "done");
        assert_eq!(legacy.result("ping", Value::Object(Default::default())), json!({}));
        assert!(legacy.connection.is_idle());
    }
}

/// What a handler gave away learns that nobody waits for it, however the request ended.
// covers: S2.9
#[test]
fn whoever_outlives_a_request_hears_of_its_end() {
    let contexts: Arc<Mutex<Vec<RequestContext>>> = Arc::default();
    let keep = Arc::clone(&contexts);
    let server = server(|server| {
        server.tool(tool("keep", move |ctx: RequestContext, _: NoArguments| {
            keep.lock().unwrap().push(ctx);
            std::future::ready("done")
        }))
    });
    for revision in [MODERN, Revision::V2025_11_25] {
        ScriptedClient::new(&server, revision).call_tool("keep", json!({}));
        let ctx = contexts.lock().unwrap().pop().expect("a context");
        assert!(ctx.is_cancelled());
    }
}
