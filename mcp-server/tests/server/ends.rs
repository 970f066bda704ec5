//! Middleware sees the end of each request, whatever its cause.

use std::error::Error as _;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use mcp_server::middleware::{self, Middleware};
use mcp_server::types::{ErrorObject, InputRequiredResult, ListRootsRequest, Revision};
use mcp_server::{
    Connection, HandlerError, NoArguments, Outcome, RequestContext, Response, RoundResult, Server, ServerBuilder, tool,
};
use mcp_testkit::{Gate, Notes, ScriptedClient};
use serde_json::{Value, json};

use crate::servers::{MODERN, fails, server};

const LEGACY: Revision = Revision::V2025_11_25;

/// What a test observes: three gauges that count requests in different ways, and the outcomes.
#[derive(Clone, Default)]
struct Observed {
    /// Decremented after `next.run`, so not if the request is cancelled.
    after: Arc<AtomicI32>,
    dropped: Arc<AtomicI32>,
    ended: Arc<AtomicI32>,
    outcomes: Arc<Mutex<Vec<Outcome>>>,
    responses: Notes,
}

struct OnDrop(Arc<AtomicI32>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Observed {
    fn layer(&self) -> impl Middleware + use<> {
        let observed = self.clone();
        middleware::from_fn(move |ctx, next| {
            let observed = observed.clone();
            async move {
                for gauge in [&observed.after, &observed.dropped, &observed.ended] {
                    gauge.fetch_add(1, Ordering::Relaxed);
                }
                let _guard = OnDrop(Arc::clone(&observed.dropped));
                let (ended, outcomes) = (Arc::clone(&observed.ended), Arc::clone(&observed.outcomes));
                ctx.on_end(move |outcome| {
                    ended.fetch_sub(1, Ordering::Relaxed);
                    outcomes.lock().expect("no panic").push(outcome);
                });
                let response = next.run(ctx).await;
                observed.after.fetch_sub(1, Ordering::Relaxed);
                observed.responses.add(Outcome::of(&response).as_str());
                response
            }
        })
    }

    fn running(&self) -> [i32; 3] {
        [&self.after, &self.dropped, &self.ended].map(|gauge| gauge.load(Ordering::Relaxed))
    }

    /// The outcomes since the last call; nothing may be running.
    #[track_caller]
    fn take(&self) -> (Vec<Outcome>, Vec<String>) {
        assert_eq!(self.running(), [0; 3], "gauges return to zero");
        (std::mem::take(&mut self.outcomes.lock().expect("no panic")), self.responses.take())
    }

    /// The outcomes of requests whose middleware was dropped.
    #[track_caller]
    fn take_cancelled(&self) -> Vec<Outcome> {
        assert_eq!(self.running(), [1, 0, 0], "only code after the `await` does not run");
        self.after.store(0, Ordering::Relaxed);
        std::mem::take(&mut self.outcomes.lock().expect("no panic"))
    }
}

fn everything() -> Value {
    json!({ "elicitation": {}, "sampling": {}, "roots": {} })
}

fn tools(server: ServerBuilder, gate: &Gate) -> ServerBuilder {
    let gate = gate.clone();
    server
        .tool(tool("done", async |_, _: NoArguments| "done"))
        .tool(tool("fail", async |_, _: NoArguments| Err::<(), _>(HandlerError::new("no"))))
        .tool(tool("refuse", async |_, _: NoArguments| Err::<(), _>(ErrorObject::invalid_params("no"))))
        .tool(tool("panic", async |_, _: NoArguments| fails()))
        .tool(tool("wait", move |_, _: NoArguments| gate.wait()))
        .tool(tool("ask", async |ctx: RequestContext, _: NoArguments| {
            Ok::<_, HandlerError>(ctx.list_roots("roots").await?.len().to_string())
        }))
        .tool(tool("ask_by_hand", async |ctx: RequestContext, _: NoArguments| {
            if ctx.has_input_response("roots") {
                return RoundResult::Complete("done");
            }
            InputRequiredResult::default().input_requests([("roots", ListRootsRequest::default())]).into()
        }))
}

fn observed() -> (Observed, Gate, Server) {
    let (observed, gate) = (Observed::default(), Gate::default());
    let server = server(|server| tools(server, &gate).layer(observed.layer()));
    (observed, gate, server)
}

/// Results, errors and panics.
// covers: AUT-2
#[test]
fn aut_2_layers_see_results_errors_and_panics() {
    let (observed, _, server) = observed();
    for revision in [MODERN, LEGACY] {
        let mut client = ScriptedClient::with_capabilities(&server, revision, everything());
        client.call("tools/call", json!({ "name": "done" }));
        assert_eq!(observed.take(), (vec![Outcome::Completed], vec!["completed".into()]));
        for failing in ["fail", "refuse", "unknown"] {
            client.call("tools/call", json!({ "name": failing }));
            assert_eq!(observed.take(), (vec![Outcome::Failed], vec!["failed".into()]), "{failing}");
        }
        // The panic unwinds through the layer.
        client.error("tools/call", json!({ "name": "panic" }), -32603);
        assert_eq!(observed.take_cancelled(), [Outcome::Failed]);
        client.result("tools/list", json!({}));
        assert_eq!(observed.take().0, [Outcome::Completed]);
    }
}

/// A round that asks is over for the layers, too: they see the input requests as the response.
// covers: AUT-2
#[test]
fn aut_2_layers_see_the_end_of_a_round() {
    let (observed, _, server) = observed();
    let mut client = ScriptedClient::with_capabilities(&server, MODERN, everything());
    for name in ["ask", "ask_by_hand"] {
        let params = json!({ "name": name });
        let asked = client.result("tools/call", params.clone());
        assert_eq!(asked["resultType"], "input_required");
        assert_eq!(observed.take(), (vec![Outcome::InputRequired], vec!["input_required".into()]), "{name}");
        let mut retry = params;
        retry["inputResponses"] = json!({ "roots": { "roots": [] } });
        if let Some(state) = asked.get("requestState") {
            retry["requestState"] = state.clone();
        }
        client.result("tools/call", retry);
        assert_eq!(observed.take(), (vec![Outcome::Completed], vec!["completed".into()]), "{name}");
    }

    let mut client = ScriptedClient::with_capabilities(&server, LEGACY, everything());
    let id = client.start_tool("ask");
    let question = client.expect_message("roots/list");
    assert_eq!(observed.running(), [1; 3], "a legacy request waits for the response");
    client.respond(&question, json!({ "roots": [] }));
    client.response_to(id);
    assert_eq!(observed.take(), (vec![Outcome::Completed], vec!["completed".into()]));
    // Layers see both rounds, and the request has one end.
    let id = client.start_tool("ask_by_hand");
    let question = client.expect_message("roots/list");
    assert_eq!(observed.running(), [0, 0, 1]);
    client.respond(&question, json!({ "roots": [] }));
    client.response_to(id);
    assert_eq!(observed.take(), (vec![Outcome::Completed; 2], vec!["input_required".into(), "completed".into()]));
}

/// The callback sees the end of a request whose middleware was dropped.
// covers: AUT-2
#[test]
fn aut_2_cancelled_requests_have_an_end() {
    for revision in [MODERN, LEGACY] {
        let (observed, _, server) = observed();
        let client = || ScriptedClient::with_capabilities(&server, revision, everything());
        let mut cancelled = client();
        let id = cancelled.start_tool("wait");
        assert_eq!(observed.running(), [1; 3]);
        cancelled.cancel(id);
        assert_eq!(observed.take_cancelled(), [Outcome::Cancelled], "cancelled by the client");

        let mut disconnected = client();
        disconnected.start_tool("wait");
        disconnected.connection.handle_disconnect();
        assert_eq!(observed.take_cancelled(), [Outcome::Cancelled], "disconnected");

        let mut dropped = client();
        dropped.start_tool("wait");
        drop(dropped);
        assert_eq!(observed.take_cancelled(), [Outcome::Cancelled], "dropped");

        let mut closed = client();
        closed.start_tool("wait");
        closed.connection.close();
        assert_eq!(observed.take_cancelled(), [Outcome::Cancelled], "closed by the server");

        let mut aborted = client();
        let id = aborted.start_tool("wait");
        aborted.connection.abort_requests(&ErrorObject::internal_error("shutting down"));
        aborted.run();
        assert_eq!(aborted.response_to(id)["error"]["message"], "shutting down");
        assert_eq!(observed.take_cancelled(), [Outcome::Cancelled], "aborted");
    }
}

/// A drain lets handlers finish; the stream of a modern request that closes cancels it.
// covers: AUT-2
#[test]
fn aut_2_drained_and_closed_streams_have_an_end() {
    for revision in [MODERN, LEGACY] {
        let (observed, gate, server) = observed();
        let mut client = ScriptedClient::with_capabilities(&server, revision, everything());
        let id = client.start_tool("wait");
        client.connection.drain();
        client.run();
        assert_eq!(observed.running(), [1; 3]);
        gate.open();
        client.run();
        client.response_to(id);
        assert_eq!(observed.take(), (vec![Outcome::Completed], vec!["completed".into()]));
    }
    let (observed, _, server) = observed();
    let mut client = ScriptedClient::on_connection(Connection::modern_request(&server), MODERN, everything());
    let request = client.build_request("tools/call", json!({ "name": "wait" }));
    let key = client.send(&request).expect("a key");
    client.run();
    client.connection.handle_stream_closed(key);
    assert_eq!(observed.take_cancelled(), [Outcome::Cancelled]);
}

/// Middleware that asks ends its own round, and the layers around it see the end.
// covers: AUT-2
#[test]
fn aut_2_middleware_may_ask() {
    let (outer, inner) = (Observed::default(), Observed::default());
    let asks = middleware::from_fn(async |ctx, next| {
        let roots = ctx.list_roots("allowed").await?;
        if roots.is_empty() {
            return Err(ErrorObject::invalid_request("there are no roots"));
        }
        next.run(ctx).await
    });
    let server = server(|server| tools(server, &Gate::default()).layer(inner.layer()).layer(asks).layer(outer.layer()));
    let mut client = ScriptedClient::with_capabilities(&server, MODERN, everything());
    let asked = client.result("tools/call", json!({ "name": "ask" }));
    assert_eq!(asked["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["allowed"]);
    assert_eq!(outer.take(), (vec![Outcome::InputRequired], vec!["input_required".into()]));
    assert_eq!(inner.take().0, []);
    let answered = |asked: &Value, responses: Value| json!({ "name": "ask", "inputResponses": responses, "requestState": asked["requestState"] });
    let roots = json!({ "roots": [{ "uri": "file:///a" }] });
    let asked = client.result("tools/call", answered(&asked, json!({ "allowed": roots })));
    assert_eq!(asked["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["roots"]);
    assert_eq!((outer.take(), inner.take()).1.0, [Outcome::InputRequired]);
    let done = client.result("tools/call", answered(&asked, json!({ "roots": roots })));
    assert_eq!(done["content"][0]["text"], "1");
    assert_eq!(inner.take(), (vec![Outcome::Completed], vec!["completed".into()]));

    let mut client = ScriptedClient::with_capabilities(&server, LEGACY, everything());
    let id = client.start_tool("done");
    let question = client.expect_message("roots/list");
    client.respond(&question, json!({ "roots": [] }));
    assert_eq!(client.response_to(id)["error"]["message"], "there are no roots");
}

/// After the round has ended, middleware goes on; it cannot ask any more.
// covers: AUT-2
#[test]
fn aut_2_middleware_goes_on_after_a_round() {
    let gate = Gate::default();
    let (waiting, notes) = (gate.clone(), Notes::default());
    let noted = notes.clone();
    let slow = middleware::from_fn(move |ctx, next| {
        let (waiting, notes) = (waiting.clone(), noted.clone());
        async move {
            let response = next.run(ctx.clone()).await;
            assert!(matches!(response, Ok(Response::InputRequired(_))));
            waiting.wait().await;
            let refused = ctx.list_roots("more").await.expect_err("an error");
            notes.add(format!("{refused}: {}", refused.source().expect("a reason")));
            response
        }
    });
    let server = server(|server| tools(server, &Gate::default()).layer(slow));
    let mut client = ScriptedClient::with_capabilities(&server, MODERN, everything());
    let id = client.start_tool("ask");
    client.assert_quiet();
    gate.open();
    client.run();
    assert_eq!(client.response_to(id)["result"]["resultType"], "input_required");
    assert_eq!(notes.take(), ["no request can be sent to the client: the round has ended"]);
}

/// What a task asks ends the round as well, although nothing polls the handler then.
// covers: AUT-2
#[test]
#[expect(clippy::disallowed_methods, reason = "a task that the handler spawned, as the connection sees it")]
fn aut_2_tasks_end_the_round() {
    let observed = Observed::default();
    let server = server(|server| {
        server
            .tool(tool("hang", {
                move |ctx: RequestContext, _: NoArguments| {
                    std::thread::spawn(move || {
                        let asked = std::pin::pin!(ctx.list_roots("roots"));
                        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
                        assert!(asked.poll(&mut cx).is_pending());
                    });
                    std::future::pending::<()>()
                }
            }))
            .layer(observed.layer())
    });
    let mut client = ScriptedClient::with_capabilities(&server, MODERN, everything());
    let id = client.start_tool("hang");
    while client.unread() == 0 {
        std::thread::yield_now();
        client.run();
    }
    assert_eq!(client.response_to(id)["result"]["resultType"], "input_required");
    assert_eq!(observed.take(), (vec![Outcome::InputRequired], vec!["input_required".into()]));
}
