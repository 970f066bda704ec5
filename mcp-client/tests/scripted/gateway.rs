//! Clients that many callers share: what belongs to which call, and single rounds.

use std::sync::{Arc, Mutex};

use mcp_client::types::{
    ClientCapabilities, ElicitAction, ElicitResult, ElicitValue, ErrorObject, InputRequest, InputResponses,
    ListRootsResult, Method, RawObject, Root,
};
use mcp_client::{CommandError, Error, InputResult, RetryLimits, RoundOutcome, TransportKind};
use mcp_testkit::envelope::tool_result;
use mcp_testkit::{Clock, ManualTransport, ReceivedRequest, ScriptedServer, Task, expect_ready};
use serde_json::{Value, json};

use crate::fixtures::{KINDS, builder};

struct Caller(&'static str);

fn form() -> Value {
    let properties = json!({ "name": { "type": "string" }, "age": { "type": "integer", "default": 7 } });
    json!({ "message": "?", "requestedSchema": { "type": "object", "properties": properties } })
}

fn input_required(state: Option<&str>) -> Value {
    let requests = json!({
        "who": { "method": "elicitation/create", "params": form() }, "where": { "method": "roots/list" },
    });
    let mut result = json!({ "resultType": "input_required", "inputRequests": requests });
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    result
}

/// Responds to elicitation requests with a name.
async fn named(request: InputRequest, name: &'static str) -> Result<Option<InputResult>, ErrorObject> {
    let named = || ElicitResult::accepted([("name", ElicitValue::from(name))]).into();
    Ok(matches!(request, InputRequest::Elicit(_)).then(named))
}

fn request_on(server: &mut ScriptedServer, on: &ReceivedRequest, id: &str, method: &str, params: Value) -> Value {
    server.send_on(on, &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    let response = server.next_message();
    assert_eq!(response["id"], id);
    response
}

/// The handler of a call serves its requests. What it leaves is served by the client's, which see the values of the call.
// covers: GW-1
#[test]
fn gw_1_calls_handle_their_own_input_requests_modern() {
    for kind in KINDS {
        let builder = builder()
            .on_form_elicitation(async |context, _| {
                let name = context.extension::<Caller>().map_or("none", |caller| caller.0);
                ElicitResult::accepted([("name", ElicitValue::from(name))])
            })
            .roots([Root::new("file:///r")]);
        let (client, mut server) = ScriptedServer::modern(kind, builder);
        let mut tasks = [
            Task::start(client.call_tool("a").on_input(|request| named(request, "Ada"))),
            Task::start(client.call_tool("b").extension(Caller("Bob"))),
            Task::start(client.call_tool("c")),
        ];
        let calls = [(); 3].map(|()| server.expect_request("tools/call"));
        for ((task, call), name) in tasks.iter_mut().zip(&calls).zip(["Ada", "Bob", "none"]).rev() {
            server.respond(call, input_required(None));
            task.assert_pending();
            let retry = server.expect_request("tools/call");
            assert_eq!(retry.params["name"], call.params["name"]);
            let expected = json!({
                "who": { "action": "accept", "content": { "name": name, "age": 7 } },
                "where": { "roots": [{ "uri": "file:///r" }] },
            });
            assert_eq!(retry.params["inputResponses"], expected);
        }
    }
}

/// The requests of a legacy server reach the call on whose stream they arrive. On a pipe with several calls they are left to
/// the handlers of the client.
// covers: GW-1
#[test]
fn gw_1_calls_handle_their_own_input_requests_legacy() {
    for kind in KINDS {
        let builder = builder()
            .on_form_elicitation(async |context, _| {
                let name = context.extension::<Caller>().map_or("none", |caller| caller.0);
                ElicitResult::accepted([("name", ElicitValue::from(name))])
            })
            .roots([Root::new("file:///r")]);
        let (client, mut server) = ScriptedServer::legacy(kind, builder);
        let _first = Task::start(client.call_tool("a").on_input(|request| named(request, "Ada")));
        let alone = server.expect_request("tools/call");
        let response = request_on(&mut server, &alone, "0", "elicitation/create", form());
        assert_eq!(response["result"]["content"], json!({ "name": "Ada", "age": 7 }));
        let _second = Task::start(client.call_tool("b").extension(Caller("Bob")));
        let second = server.expect_request("tools/call");
        let is_known = kind == TransportKind::RequestPerCall;
        for (number, call, name) in [("1", &second, "Bob"), ("2", &alone, "Ada")] {
            let response = request_on(&mut server, call, number, "elicitation/create", form());
            assert_eq!(response["result"]["content"]["name"], if is_known { name } else { "none" }, "{kind:?}");
        }
        // What the handler of the call leaves.
        let response = request_on(&mut server, &alone, "3", "roots/list", json!({}));
        assert_eq!(response["result"], json!({ "roots": [{ "uri": "file:///r" }] }));
    }
}

/// A request that a legacy server repeats is the same for the handler of the call, which may have sent it on.
// covers: GW-1, GW-9
#[test]
fn gw_1_repeated_requests_are_equal() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let capabilities = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
    let capabilities: ClientCapabilities = serde_json::from_value(capabilities).unwrap();
    let (client, mut server) =
        ScriptedServer::legacy(TransportKind::RequestPerCall, builder().capabilities(capabilities));
    let recorded = Arc::clone(&seen);
    let call = client.call_tool("a").on_input(move |request| {
        recorded.lock().unwrap().push(serde_json::to_value(&request).unwrap());
        async { Err(ErrorObject::internal_error("no")) }
    });
    let _call = Task::start(call);
    let call = server.expect_request("tools/call");
    let url = json!({ "mode": "url", "message": "?", "url": "https://a.test", "elicitationId": "1" });
    let requests = [
        ("elicitation/create", form()),
        ("elicitation/create", url),
        ("sampling/createMessage", json!({ "messages": [], "maxTokens": 1 })),
        ("roots/list", json!({})),
    ];
    for (number, (method, params)) in requests.iter().enumerate() {
        for meta in [json!({ "progressToken": number }), json!({ "progressToken": "x" })] {
            let mut params = params.clone();
            params["_meta"] = meta;
            request_on(&mut server, &call, &format!("{number}{}", params["_meta"]), method, params);
        }
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 8);
    assert!(seen.chunks(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
}

/// Log messages and other notifications have the values of their call, in both eras.
// covers: GW-1
#[test]
fn gw_1_log_messages_have_the_values_of_their_call() {
    for is_modern in [true, false] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (logs, notifications) = (Arc::clone(&seen), Arc::clone(&seen));
        let builder = builder()
            .on_log(move |context, _| logs.lock().unwrap().push(context.extension::<Caller>().map(|caller| caller.0)))
            .on_notification(move |context, _, _| {
                notifications.lock().unwrap().push(context.extension::<Caller>().map(|caller| caller.0));
            });
        let kind = TransportKind::RequestPerCall;
        let connect = if is_modern { ScriptedServer::modern } else { ScriptedServer::legacy };
        let (client, mut server) = connect(kind, builder);
        let _first = Task::start(client.call_tool("a").extension(Caller("Ada")));
        let _second = Task::start(client.call_tool("b").extension(Caller("Bob")));
        let (first, second) = (server.expect_request("tools/call"), server.expect_request("tools/call"));
        server.notify_on(&second, "notifications/message", json!({ "level": "info", "data": 1 }));
        server.notify_on(&first, "notifications/message", json!({ "level": "info", "data": 1 }));
        server.notify_on(&second, "notifications/custom", json!({}));
        server.notify("notifications/message", json!({ "level": "info", "data": 1 }));
        server.poll();
        assert_eq!(*seen.lock().unwrap(), [Some("Bob"), Some("Ada"), Some("Bob"), None], "modern: {is_modern}");
    }
}

/// A result of another kind than the request, and content that violates the form, are not sent.
// covers: GW-1, EL-19
#[test]
fn gw_1_results_of_calls_are_checked() {
    let results: [InputResult; 3] = [
        ListRootsResult::new(Vec::new()).into(),
        ElicitResult::accepted([("name", ElicitValue::from(1))]).into(),
        RawObject::new(&json!({ "roots": 1 })).unwrap().into(),
    ];
    for result in results {
        let builder = builder().on_form_elicitation(async |_, _| ElicitResult::new(ElicitAction::Decline)).roots([]);
        let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder);
        let call = client.call_tool("a").on_input(move |request| {
            let result = matches!(request, InputRequest::Elicit(_)).then(|| result.clone());
            async { Ok(result) }
        });
        let mut call = Task::start(call);
        let request = server.expect_request("tools/call");
        server.respond(&request, input_required(None));
        let Err(Error::InputRequestFailed { key, .. }) = call.finish() else { panic!("it was sent") };
        assert_eq!(key, "who");
    }
}

/// One round returns the input requests and the state as they are; the retry has both, and the outcome of the whole call.
// covers: GW-2
#[test]
fn gw_2_one_round_returns_the_input_requests() {
    for kind in KINDS {
        let builder =
            builder().on_form_elicitation(async |_, _| panic!("the gateway's client is asked") as ElicitResult);
        let (client, mut server) = ScriptedServer::modern(kind, builder);
        let mut round = Task::start(client.call_tool("t").arguments(&json!({ "x": 1 })).one_round());
        let first = server.expect_request("tools/call");
        let sent = input_required(Some(" state\u{e9}"));
        server.respond(&first, sent.clone());
        let Ok(RoundOutcome::InputRequired(required)) = round.finish() else { panic!("no input required") };
        assert_eq!(serde_json::to_value(&*required).unwrap(), sent);
        let mut responses = InputResponses::new();
        responses.insert("who", RawObject::new(&json!({ "action": "decline", "unknown": 1 })).unwrap());
        responses.insert("where", RawObject::new(&json!({ "roots": [] })).unwrap());
        let retry = client.call_tool("t").arguments(&json!({ "x": 1 })).input_responses(responses);
        let mut round = Task::start(retry.request_state(required.request_state.unwrap()).one_round());
        let second = server.expect_request("tools/call");
        assert_eq!(second.params["arguments"], json!({ "x": 1 }));
        assert_eq!(second.params["requestState"], " state\u{e9}");
        let expected = json!({ "who": { "action": "decline", "unknown": 1 }, "where": { "roots": [] } });
        assert_eq!(second.params["inputResponses"], expected);
        server.respond(&second, tool_result("done"));
        let Ok(RoundOutcome::Complete(result)) = round.finish() else { panic!("not complete") };
        assert_eq!(result.content[0].as_text(), Some("done"));
    }
}

/// A legacy call is complete after one round; its requests are served meanwhile.
// covers: GW-2
#[test]
fn gw_2_one_round_of_a_legacy_server_is_complete() {
    for kind in KINDS {
        let capabilities = serde_json::from_value(json!({ "elicitation": {} })).unwrap();
        let (client, mut server) = ScriptedServer::legacy(kind, builder().capabilities(capabilities));
        let mut round = Task::start(client.call_tool("t").on_input(|request| named(request, "Ada")).one_round());
        let call = server.expect_request("tools/call");
        let response = request_on(&mut server, &call, "1", "elicitation/create", form());
        assert_eq!(response["result"]["content"]["name"], "Ada");
        server.respond(&call, tool_result("done"));
        assert!(matches!(round.finish(), Ok(RoundOutcome::Complete(_))));
    }
}

/// The limit of input requests holds for one round, too.
// covers: GW-2, SEC-11
#[test]
fn gw_2_one_round_is_bounded() {
    let builder = builder().retry_limits(RetryLimits::default().max_input_requests(1));
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder);
    let mut round = Task::start(client.call_tool("t").one_round());
    let call = server.expect_request("tools/call");
    server.respond(&call, input_required(None));
    assert!(matches!(round.finish(), Err(Error::Retry(_))));
}

/// Parameters of a modern client can be forwarded to a legacy server, which must not take the request for a modern one.
// covers: GW-9
#[test]
fn gw_9_forwarded_metadata_fits_the_era() {
    let own = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "roots": {} },
        "io.modelcontextprotocol/logLevel": "info",
        "com.example/own": 1,
    });
    let params = json!({ "name": "t", "_meta": own });
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::legacy(kind, builder());
        let _call = Task::start(client.request::<Value>("tools/call", &params).idle_timeout(None));
        assert_eq!(server.expect_request("tools/call").params["_meta"], json!({ "com.example/own": 1 }));
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let _call = Task::start(client.request::<Value>("tools/call", &params).idle_timeout(None));
        assert_eq!(server.expect_request("tools/call").params["_meta"], own);
    }
}

/// Other requests of a legacy server have handlers by method.
// covers: GW-3
#[test]
fn gw_3_other_requests_are_handled() {
    for kind in KINDS {
        let builder = builder()
            .on_request("custom/a", async |_, _| Err::<RawObject, _>(ErrorObject::internal_error("replaced")))
            .on_request("custom/a", async |context, params| {
                let name = context.extension::<Caller>().map_or("none", |caller| caller.0);
                assert_eq!(params.as_str(), r#"{"b":1}"#);
                RawObject::new(&json!({ "name": name })).map_err(|error| ErrorObject::internal_error(error.to_string()))
            });
        let (client, mut server) = ScriptedServer::legacy(kind, builder);
        let _call = Task::start(client.call_tool("t").extension(Caller("Ada")));
        let call = server.expect_request("tools/call");
        let response = request_on(&mut server, &call, "1", "custom/a", json!({ "b": 1 }));
        let name = if kind == TransportKind::RequestPerCall { "Ada" } else { "none" };
        assert_eq!(response["result"], json!({ "name": name }));
        assert_eq!(request_on(&mut server, &call, "2", "custom/b", json!({}))["error"]["code"], -32601);
    }
}

/// Requests that have functions of their own are not handled twice.
// covers: GW-3
#[test]
fn gw_3_own_methods_are_reserved() {
    for method in ["ping", "elicitation/create", "sampling/createMessage", "roots/list"] {
        let builder = builder().on_request(method, async |_, _| RawObject::empty());
        let connected = expect_ready(builder.connect(ManualTransport::new(TransportKind::Pipe, &Clock::new())));
        let Err(Error::Command(CommandError::Reserved(reserved))) = connected else {
            panic!("{method} is handled twice")
        };
        assert_eq!(reserved, Method::from(method));
    }
}

/// Capabilities are declared as a whole, in both eras, and admit requests that calls handle.
// covers: GW-4
#[test]
fn gw_4_capabilities_are_declared_as_a_whole() {
    let given = json!({
        "experimental": { "a": {} }, "elicitation": { "url": {} }, "roots": { "listChanged": false }, "own": [1],
    });
    let capabilities: ClientCapabilities = serde_json::from_value(given.clone()).unwrap();
    let (_connecting, mut server) =
        ScriptedServer::connect(TransportKind::Pipe, builder().without_tasks().capabilities(capabilities.clone()));
    let probe = server.expect_request("server/discover");
    let mut declared = probe.params["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone();
    // What the revision does not have any more.
    declared["roots"] = json!({ "listChanged": false });
    assert_eq!(declared, given);
    let builder = builder().capabilities(capabilities).mode(mcp_client::Mode::Legacy);
    let (_connecting, mut server) = ScriptedServer::connect(TransportKind::Pipe, builder);
    assert_eq!(server.expect_request("initialize").params["capabilities"], given);
}

/// A contradiction is found before anything is sent.
// covers: GW-4
#[test]
fn gw_4_contradictions_are_found() {
    let capabilities = serde_json::from_value(json!({ "roots": { "listChanged": false } })).unwrap();
    let builder = builder().capabilities(capabilities).roots([]);
    let connected = expect_ready(builder.connect(ManualTransport::new(TransportKind::Pipe, &Clock::new())));
    assert!(matches!(connected, Err(Error::InvalidCapabilities(_))));
}

/// Roots can depend on the call, and take their time.
// covers: GW-7
#[test]
fn gw_7_roots_are_looked_up() {
    let with_roots = || {
        builder().roots([]).on_roots(async |context| {
            let user = context.extension::<Caller>().ok_or_else(|| ErrorObject::internal_error("no user"))?;
            Ok::<_, ErrorObject>(ListRootsResult::new(vec![Root::new(format!("file:///{}", user.0))]))
        })
    };
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, with_roots());
    let mut task = Task::start(client.call_tool("t").extension(Caller("ada")));
    let call = server.expect_request("tools/call");
    let requests = json!({ "where": { "method": "roots/list" } });
    server.respond(&call, json!({ "resultType": "input_required", "inputRequests": requests }));
    task.assert_pending();
    let retry = server.expect_request("tools/call");
    assert_eq!(retry.params["inputResponses"], json!({ "where": { "roots": [{ "uri": "file:///ada" }] } }));
    let (client, mut server) = ScriptedServer::legacy(TransportKind::RequestPerCall, with_roots());
    let _call = Task::start(client.call_tool("t").extension(Caller("ada")));
    let call = server.expect_request("tools/call");
    let response = request_on(&mut server, &call, "1", "roots/list", json!({}));
    assert_eq!(response["result"], json!({ "roots": [{ "uri": "file:///ada" }] }));
    server.send_request("2", "roots/list", json!({}));
    assert_eq!(server.next_message()["error"]["message"], "no user");
}
