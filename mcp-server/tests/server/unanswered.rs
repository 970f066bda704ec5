//! Questions that get no answer, or one that is no use.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use mcp_server::types::{Method, RawObject, Revision};
use mcp_server::{ConnectionHandle, HandlerError, NoArguments, RequestContext, tool};
use mcp_testkit::{Gate, ScriptedClient};
use serde_json::{Value, json};

use crate::asking::asking;
use crate::servers::{LEGACY, server};

const ROOTS: Revision = Revision::V2025_11_25;

fn roots() -> Value {
    json!({ "roots": {} })
}

/// A refusal of the client, and an answer of another shape, are told apart.
// covers: S1.29, S1.32
#[test]
fn answers_may_be_no_use() {
    let server =
        asking(async |ctx: RequestContext| Ok(format!("{:?}", ctx.list_roots("roots").await.expect_err("an error"))));
    for revision in LEGACY {
        let mut client = ScriptedClient::with_capabilities(&server, revision, roots());
        let mut told = |answer: Value| {
            let id = client.start_tool("ask");
            let question = client.expect_message("roots/list");
            let mut message = answer;
            (message["jsonrpc"], message["id"]) = (json!("2.0"), question["id"].clone());
            client.send(&message);
            client.run();
            client.response_to(id)["result"]["content"][0]["text"].as_str().unwrap().to_owned()
        };
        let refused = told(json!({ "error": { "code": -1, "message": "go away" } }));
        assert!(refused.starts_with("NoResponse(Rejected(") && refused.contains("go away"), "{refused}");
        let other = told(json!({ "result": { "roots": 1 } }));
        assert!(other.starts_with("InvalidResponse(") && other.contains("roots"), "{other}");
        assert_eq!(told(json!({ "result": 1 })), "NoResponse(InvalidResponse)");
    }
}

/// A question that the handler gives up is taken back at the client; its answer is no offence.
// covers: S2.10
#[test]
fn a_dropped_question_is_taken_back() {
    let gate = Gate::default();
    let waiting = gate.clone();
    let server = asking(move |ctx: RequestContext| {
        let enough = waiting.wait();
        async move {
            let asked = std::pin::pin!(ctx.list_roots("roots"));
            match select(asked, enough).await {
                Either::Left(_) => Ok("answered".to_owned()),
                Either::Right(_) => Ok("given up".to_owned()),
            }
        }
    });
    let mut client = ScriptedClient::with_capabilities(&server, ROOTS, roots());
    let id = client.start_tool("ask");
    let question = client.expect_message("roots/list");
    gate.open();
    assert_eq!(client.expect_message("notifications/cancelled")["params"]["requestId"], question["id"]);
    assert_eq!(client.response_to(id)["result"]["content"][0]["text"], "given up");
    client.respond(&question, json!({ "roots": [] }));
    client.assert_quiet();
    assert!(client.connection.is_idle());
    // A question that was given up before it was asked never reaches the client.
    client.start_tool("ask");
    assert_eq!(client.methods(), ["response"]);
}

/// From the end of the handshake on, a client can be asked outside of any request.
// covers: S1.13
#[test]
fn a_client_is_asked_when_it_is_ready() {
    let handles: Arc<Mutex<Vec<ConnectionHandle>>> = Arc::default();
    let keep = Arc::clone(&handles);
    let server = server(|server| {
        server.on_notification(move |notification| {
            assert_eq!(notification.method, Method::NOTIFICATIONS_INITIALIZED);
            keep.lock().unwrap().push(notification.connection);
        })
    });
    for revision in LEGACY {
        let mut client = ScriptedClient::with_capabilities(&server, revision, roots());
        let handle = handles.lock().unwrap().pop().unwrap();
        let params = RawObject::empty();
        let mut asked = Box::pin(handle.request::<Value>(Method::ROOTS_LIST, &params));
        assert!((&mut asked).now_or_never().is_none() && client.is_woken());
        let question = client.expect_message("roots/list");
        client.respond(&question, json!({ "roots": [] }));
        assert_eq!(asked.now_or_never().unwrap().unwrap(), json!({ "roots": [] }));
    }
}

/// Whoever asks after the answer was given hears that the request is over.
// covers: S1.8
#[test]
fn a_question_needs_its_request() {
    let contexts: Arc<Mutex<Vec<RequestContext>>> = Arc::default();
    let keep = Arc::clone(&contexts);
    let server = asking(move |ctx: RequestContext| {
        keep.lock().unwrap().push(ctx);
        std::future::ready(Ok(String::new()))
    });
    let mut client = ScriptedClient::with_capabilities(&server, ROOTS, roots());
    client.call_tool("ask", json!({}));
    let ctx = contexts.lock().unwrap().pop().unwrap();
    let mut asked = Box::pin(ctx.list_roots("roots"));
    assert!((&mut asked).now_or_never().is_none());
    client.assert_quiet();
    let error = HandlerError::from(asked.now_or_never().unwrap().unwrap_err());
    let causes: Vec<_> = error.chain().map(ToString::to_string).collect();
    assert_eq!(causes, ["the request to the client cannot be sent", "the request has ended"]);
}

/// So is one whose request is cancelled.
// covers: S2.10
#[test]
fn a_cancelled_request_takes_its_questions_back() {
    let server = asking(async |ctx: RequestContext| Ok(format!("{:?}", ctx.list_roots("roots").await)));
    let mut client = ScriptedClient::with_capabilities(&server, ROOTS, roots());
    let id = client.start_tool("ask");
    let question = client.expect_message("roots/list");
    client.cancel(id);
    assert_eq!(client.expect_message("notifications/cancelled")["params"]["requestId"], question["id"]);
    client.assert_quiet();
    assert!(client.connection.is_idle());
}

/// Whoever asks when the connection is over, or waits when it ends, hears of that, however it ends.
// covers: S1.7, S1.8
#[test]
fn questions_end_with_the_connection() {
    let ends: [fn(&mut Option<ScriptedClient>); 4] = [
        |client| client.as_mut().unwrap().connection.handle_disconnect(),
        |client| client.as_mut().unwrap().connection.close(),
        |client| {
            client.as_mut().unwrap().connection.drain();
            client.as_mut().unwrap().run();
        },
        |client| *client = None,
    ];
    for (end, is_closed) in ends.into_iter().zip([true, true, false, true]) {
        let handles: Arc<Mutex<Vec<ConnectionHandle>>> = Arc::default();
        let keep = Arc::clone(&handles);
        let server = server(|server| {
            server.tool(tool("keep", move |ctx: RequestContext, _: NoArguments| {
                keep.lock().unwrap().push(ctx.connection().clone());
                std::future::ready(())
            }))
        });
        let mut client = ScriptedClient::new(&server, ROOTS);
        client.call_tool("keep", json!({}));
        let handle = handles.lock().unwrap().pop().unwrap();
        // One that the client has got, and one that it has not.
        let mut passed_on = Box::pin(handle.ping());
        assert!((&mut passed_on).now_or_never().is_none());
        client.expect_message("ping");
        let mut waiting = Box::pin(handle.ping());
        assert!((&mut waiting).now_or_never().is_none());
        let mut client = Some(client);
        end(&mut client);
        for asked in [passed_on, waiting] {
            assert!(asked.now_or_never().expect("an end").is_err());
        }
        assert!(!is_closed || handle.ping().now_or_never().expect("an end").is_err());
        // What is told goes nowhere.
        handle.notify(&"notifications/news".into(), &json!({}));
    }
}
