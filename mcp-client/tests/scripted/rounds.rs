//! Modern servers that ask before they complete a call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::types::{
    CreateMessageResult, ElicitAction, ElicitResult, ElicitValue, ErrorObject, Role, Root, SamplingContent, TextContent,
};
use mcp_client::{ClientBuilder, Error, RetryLimits, TransportKind};
use mcp_testkit::envelope::tool_result;
use mcp_testkit::{ReceivedRequest, ScriptedServer, Task};
use serde_json::{Value, json};

use crate::fixtures::{KINDS, builder};

fn form(properties: Value) -> Value {
    let schema = json!({ "type": "object", "properties": properties });
    json!({ "method": "elicitation/create", "params": { "message": "?", "requestedSchema": schema } })
}

fn asks(questions: Value, state: Option<&str>) -> Value {
    let mut result = json!({ "resultType": "input_required", "inputRequests": questions });
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    result
}

/// A client whose person gives their name.
fn named() -> ClientBuilder {
    builder()
        .on_form_elicitation(async |_, _| ElicitResult::accepted([("name", ElicitValue::from("Ada"))]))
        .roots([Root::new("file:///r")])
}

/// Calls a tool, and asks something before it is done.
fn round(
    builder: ClientBuilder,
    questions: Value,
) -> (Task<Result<mcp_client::types::CallToolResult, Error>>, ScriptedServer) {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder);
    let call = Task::start(client.call_tool("t"));
    let request = server.expect_request("tools/call");
    server.respond(&request, asks(questions, None));
    (call, server)
}

/// Each round repeats the request under a new id, with the answers and the state of the round before, to the letter,
/// and with nothing of earlier ones.
// covers: R-15, R-17..R-19, R-21, R-22
#[test]
fn rounds_repeat_the_request() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, named());
        let mut call = Task::start(client.call_tool("t").arguments(&json!({ "x": 1 })));
        let first = server.expect_request("tools/call");
        let state = " {\"not\": 1.0e1}\u{e9}\\u00e9 ";
        server
            .respond(&first, asks(json!({ "who": form(json!({})), "where": { "method": "roots/list" } }), Some(state)));
        call.assert_pending();
        let second = server.expect_request("tools/call");
        assert_ne!(first.id, second.id);
        assert_eq!(second.params["name"], "t");
        assert_eq!(second.params["arguments"], json!({ "x": 1 }));
        assert_eq!(second.params["requestState"], state);
        let who = json!({ "action": "accept", "content": { "name": "Ada" } });
        let places = json!({ "roots": [{ "uri": "file:///r" }] });
        assert_eq!(second.params["inputResponses"], json!({ "who": who, "where": places }));
        server.respond(&second, asks(json!({ "again": form(json!({})) }), None));
        call.assert_pending();
        let third = server.expect_request("tools/call");
        assert_eq!(third.params.get("requestState"), None);
        assert_eq!(third.params["inputResponses"], json!({ "again": who }));
        server.respond(&third, tool_result("done"));
        call.finish().unwrap();
    }
}

/// What one call is asked does not get into another.
// covers: R-20
#[test]
fn rounds_of_different_calls_do_not_mix() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, named());
        let mut calls = ["a", "b"].map(|name| Task::start(client.call_tool(name)));
        let requests: [ReceivedRequest; 2] = [server.expect_request("tools/call"), server.expect_request("tools/call")];
        for (request, name) in requests.iter().zip(["a", "b"]) {
            server.respond(request, asks(json!({ name: form(json!({})) }), Some(name)));
        }
        for (call, name) in calls.iter_mut().zip(["a", "b"]).rev() {
            call.assert_pending();
            let request = server.expect_request("tools/call");
            assert_eq!(request.params["name"], name);
            assert_eq!(request.params["requestState"], name);
            assert_eq!(request.params["inputResponses"].as_object().unwrap().keys().collect::<Vec<_>>(), [name]);
            server.respond(&request, tool_result(name));
            call.finish().unwrap();
        }
    }
}

/// A server that puts the client off is asked again later and later, and not for ever.
// covers: R-16, R-23
#[test]
fn a_server_may_put_a_call_off() {
    for kind in KINDS {
        let (client, mut server) =
            ScriptedServer::modern(kind, builder().retry_limits(RetryLimits::default().max_waits(2)));
        let mut call = Task::start(client.call_tool("t"));
        for wait in [500, 1000] {
            let request = server.expect_request("tools/call");
            server.respond(&request, json!({ "resultType": "input_required", "requestState": "later" }));
            call.assert_pending();
            server.advance(Duration::from_millis(wait - 1));
            server.assert_quiet();
            server.advance(Duration::from_millis(1));
            call.assert_pending();
        }
        let request = server.expect_request("tools/call");
        assert_eq!(request.params["requestState"], "later");
        server.respond(&request, json!({ "resultType": "input_required", "requestState": "later" }));
        assert!(matches!(call.finish(), Err(Error::Retry(_))));
    }
}

/// A server that asks without end is given up; one that asks nothing, too.
// covers: R-23
#[test]
fn rounds_have_an_end() {
    for kind in KINDS {
        let (client, mut server) =
            ScriptedServer::modern(kind, named().retry_limits(RetryLimits::default().max_rounds(3)));
        let mut call = Task::start(client.call_tool("t"));
        for _ in 0..3 {
            let request = server.expect_request("tools/call");
            server.respond(&request, asks(json!({ "q": form(json!({})) }), None));
            call.assert_pending();
        }
        let request = server.expect_request("tools/call");
        server.respond(&request, asks(json!({ "q": form(json!({})) }), None));
        assert!(matches!(call.finish(), Err(Error::Retry(_))));
        let mut call = Task::start(client.call_tool("t"));
        let request = server.expect_request("tools/call");
        server.respond(&request, json!({ "resultType": "input_required" }));
        assert!(matches!(call.finish(), Err(Error::Retry(_))));
        server.assert_quiet();
    }
}

/// A question that nobody answers ends the call, which says which one it was.
// covers: R-27, SA-15
#[test]
fn what_nobody_answers_ends_the_call() {
    let refusing = builder()
        .on_form_elicitation(async |_, _| Err::<ElicitResult, _>(ErrorObject::internal_error("the user is away")));
    for (builder, question) in [
        (refusing, form(json!({}))),
        (builder(), form(json!({}))),
        (builder(), json!({ "method": "roots/list" })),
        (builder(), json!({ "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 1 } })),
        (
            named(),
            json!({ "method": "elicitation/create", "params": { "mode": "url", "message": "?", "url": "https://a" } }),
        ),
        (named(), json!({ "method": "who/knows" })),
    ] {
        let (mut call, mut server) = round(builder, json!({ "q": question }));
        let error = call.finish().unwrap_err();
        assert!(matches!(&error, Error::InputRequestFailed { key, .. } if key == "q"), "{question}: {error}");
        assert!(!error.is_remote());
        server.assert_quiet();
    }
}

/// Without a mode it is a form; fields that the answer leaves out get their defaults, others stay as they are.
// covers: EL-4, EL-6, EL-7, EL-24
#[test]
fn defaults_are_filled_in() {
    let properties = json!({
        "name": { "type": "string", "default": "Bob" }, "age": { "type": "integer", "default": 30 },
        "height": { "type": "number", "default": 1.5 }, "tall": { "type": "boolean", "default": true },
        "colour": { "type": "string", "enum": ["red", "blue"], "default": "blue" },
        "pets": { "type": "array", "items": { "type": "string", "enum": ["cat", "dog"] }, "default": ["cat"] },
        "free": { "type": "string" },
    });
    let (mut call, mut server) = round(named(), json!({ "q": form(properties) }));
    call.assert_pending();
    let answer = server.expect_request("tools/call").params["inputResponses"]["q"].clone();
    let content = json!({
        "name": "Ada", "age": 30, "height": 1.5, "tall": true, "colour": "blue", "pets": ["cat"],
    });
    assert_eq!(answer, json!({ "action": "accept", "content": content }));
}

/// Content comes with an accepted form, and with nothing else.
// covers: EL-9
#[test]
fn content_comes_with_an_accepted_form_alone() {
    let with_content = |action: ElicitAction| {
        let mut result = ElicitResult::accepted([("name", ElicitValue::from("Ada"))]);
        result.action = action;
        result
    };
    let url =
        json!({ "method": "elicitation/create", "params": { "mode": "url", "message": "?", "url": "https://a" } });
    let defaults = form(json!({ "a": { "type": "string", "default": "b" } }));
    for (question, action, expected) in [
        (defaults.clone(), ElicitAction::Decline, json!({ "action": "decline" })),
        (defaults, ElicitAction::Cancel, json!({ "action": "cancel" })),
        (url, ElicitAction::Accept, json!({ "action": "accept" })),
    ] {
        let (form_action, url_action) = (action, action);
        let builder = builder()
            .on_form_elicitation(move |_, _| async move { with_content(form_action) })
            .on_url_elicitation(move |_, _| async move { with_content(url_action) });
        let (mut call, mut server) = round(builder, json!({ "q": question }));
        call.assert_pending();
        assert_eq!(server.expect_request("tools/call").params["inputResponses"]["q"], expected);
    }
}

fn sampled() -> CreateMessageResult {
    let text = SamplingContent::from(TextContent::new("hi"));
    CreateMessageResult::new(Role::ASSISTANT, text, "model")
}

/// A model is asked what the server asks; with tools only if it can use them.
// covers: SA-1..SA-3, SA-13
#[test]
fn models_are_asked() {
    let question = |tools: bool| {
        let mut params = json!({
            "messages": [{ "role": "user", "content": { "type": "text", "text": "hello" } }], "maxTokens": 5,
        });
        if tools {
            params["tools"] = json!([{ "name": "a", "inputSchema": { "type": "object" } }]);
            params["toolChoice"] = json!({ "mode": "auto" });
        }
        json!({ "q": { "method": "sampling/createMessage", "params": params } })
    };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = |seen: &Arc<Mutex<Vec<(i64, bool)>>>| {
        let seen = Arc::clone(seen);
        move |_, request: mcp_client::types::CreateMessageRequestParams| {
            seen.lock().unwrap().push((request.max_tokens, request.tools.is_some()));
            async { sampled() }
        }
    };
    for (builder, tools) in
        [(builder().on_sampling(note(&seen)), false), (builder().on_sampling_with_tools(note(&seen)), true)]
    {
        let (mut call, mut server) = round(builder, question(tools));
        call.assert_pending();
        let request = server.expect_request("tools/call");
        assert_eq!(request.params["inputResponses"]["q"]["content"]["text"], "hi");
        let declared = &request.params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["sampling"];
        assert_eq!(*declared, if tools { json!({ "tools": {} }) } else { json!({}) });
    }
    assert_eq!(*seen.lock().unwrap(), [(5, false), (5, true)]);
    let (mut call, _server) = round(builder().on_sampling(note(&seen)), question(true));
    assert!(matches!(call.finish(), Err(Error::InputRequestFailed { .. })));
}

/// Each request declares what there are functions for, and nothing that its revision lacks.
// covers: EL-1, SA-1, RO-1, X-8
#[test]
fn requests_declare_what_can_be_answered() {
    let form = || builder().on_form_elicitation(async |_, _| ElicitResult::new(ElicitAction::Cancel));
    let cases = [
        (builder(), json!({})),
        (form(), json!({ "elicitation": { "form": {} } })),
        (
            form().on_url_elicitation(async |_, _| ElicitResult::new(ElicitAction::Cancel)),
            json!({ "elicitation": { "form": {}, "url": {} } }),
        ),
        (builder().roots([]), json!({ "roots": {} })),
        (builder().on_sampling(async |_, _| sampled()), json!({ "sampling": {} })),
    ];
    for (builder, expected) in cases {
        let (client, mut server) = ScriptedServer::modern(TransportKind::RequestPerCall, builder.without_tasks());
        let _call = Task::start(client.call_tool("t"));
        let request = server.expect_request("tools/call");
        assert_eq!(request.params["_meta"]["io.modelcontextprotocol/clientCapabilities"], expected);
    }
    let (_connecting, mut server) =
        ScriptedServer::connect(TransportKind::Pipe, builder().roots([]).mode(mcp_client::Mode::Legacy));
    let initialize = server.expect_request("initialize");
    assert_eq!(initialize.params["capabilities"], json!({ "roots": { "listChanged": true } }));
}

/// A round with more input requests than the limit is refused before one of them is read, and so before one is answered.
// covers: SEC-11
#[test]
fn sec_11_input_requests_of_a_round_are_bounded() {
    let form = json!({ "method": "elicitation/create", "params": {
        "message": "?", "requestedSchema": { "type": "object", "properties": {} },
    } });
    for (count, question, fits) in
        [(64, &form, true), (65, &form, false), (50_000, &form, false), (65, &json!("unreadable"), false)]
    {
        let asked = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&asked);
        let builder = builder().on_form_elicitation(move |_, _| {
            *counted.lock().unwrap() += 1;
            async { ElicitResult::new(ElicitAction::Decline) }
        });
        let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder);
        let mut call = Task::start(client.call_tool("t"));
        let request = server.expect_request("tools/call");
        let requests: serde_json::Map<_, _> =
            (0..count).map(|number| (format!("k{number}"), question.clone())).collect();
        server.respond(&request, json!({ "resultType": "input_required", "inputRequests": requests }));
        if fits {
            call.assert_pending();
            server.expect_request("tools/call");
            assert_eq!(*asked.lock().unwrap(), count);
        } else {
            let error = call.finish().unwrap_err();
            assert!(error.to_string().contains("more than 64 input requests"), "{error}");
            assert_eq!(*asked.lock().unwrap(), 0);
        }
    }
}
