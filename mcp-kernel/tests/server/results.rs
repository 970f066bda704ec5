//! What a result looks like in each revision.

use mcp_kernel::server::{Delivery, Event, Failure};
use mcp_testkit::envelope::{modern_request, request};
use mcp_types::{
    CallToolResult, ElicitRequestFormParams, ErrorCode, ErrorObject, InputRequest, InputRequiredResult,
    ListToolsResult, OrderedMap, RawObject, ReadResourceResult, RequestedSchema, ResultType, Revision,
};
use serde_json::{Value, json};

use crate::script::Script;

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

fn raw(value: Value) -> RawObject {
    serde_json::from_value(value).expect("a result")
}

fn tool(value: Value) -> CallToolResult {
    serde_json::from_value(value).expect("a result")
}

/// The kind and the server's name are modern.
// covers: M-6, X-15, B-11
#[test]
fn results_are_completed_by_era() {
    let mut script = Script::initialized("2025-11-25");
    let asked = script.served(modern_request(1, "tools/call", json!({})));
    let result = script.done(asked.responder)["result"].take();
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["_meta"][SERVER_INFO], json!({ "name": "demo", "version": "1.0" }));
    assert!(result.get("ttlMs").is_none(), "only lists and contents may be kept: {result}");
    let asked = script.served(request(2, "tools/call", json!({})));
    let expected = json!({ "content": [{ "type": "text", "text": "done" }] });
    assert_eq!(script.done(asked.responder), json!({ "jsonrpc": "2.0", "id": 2, "result": expected }));
    script.assert_nothing_left();
}

/// What may be kept says for how long, with the handler's word before the default.
// covers: C-1, C-19, S3.F4
#[test]
fn cache_hints_are_filled_in() {
    let mut script = Script::initialized("2025-11-25");
    let asked = script.served(modern_request(1, "tools/list", json!({})));
    script.connection.respond(asked.responder, Ok(ListToolsResult::new(Vec::new())));
    let result = script.reply()["result"].take();
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")));
    let asked = script.served(modern_request(2, "resources/read", json!({ "uri": "a:b" })));
    script.connection.respond(asked.responder, Ok(ReadResourceResult::new(Vec::new()).ttl_ms(9_i64)));
    let result = script.reply()["result"].take();
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(9), &json!("private")));
    let asked = script.served(request(3, "tools/list", json!({})));
    script.connection.respond(asked.responder, Ok(ListToolsResult::new(Vec::new())));
    assert_eq!(script.reply()["result"], json!({ "tools": [] }));
    script.assert_nothing_left();
}

/// Members that the revision lacks are not sent, and that shows.
// covers: B-50, B-64, RB-23
#[test]
fn members_that_the_revision_lacks_are_stripped() {
    let mut script = Script::initialized("2025-03-26");
    let asked = script.served(request(1, "tools/list", json!({})));
    let tools = json!({ "tools": [{ "name": "a", "title": "A", "inputSchema": { "type": "object" } }], "ttlMs": 5 });
    let tools: ListToolsResult = serde_json::from_value(tools).unwrap();
    script.connection.respond(asked.responder, Ok(tools));
    let result = script.reply()["result"].take();
    assert_eq!(result, json!({ "tools": [{ "name": "a", "inputSchema": { "type": "object" } }] }));
    let event = script.event();
    let Event::Stripped { revision, members } = event else { panic!("{event:?}") };
    assert_eq!(revision, Revision::V2025_03_26);
    assert!(members.contains(&"Tool.title") && members.contains(&"ListToolsResult.ttlMs"), "{members:?}");
    script.assert_nothing_left();
}

/// What the revision cannot say becomes an internal error, and that shows.
// covers: B-49
#[test]
fn what_cannot_be_said_is_an_internal_error() {
    let mut script = Script::initialized("2024-11-05");
    let asked = script.served(request(1, "tools/call", json!({})));
    let key = asked.key();
    let audio = tool(json!({ "content": [{ "type": "audio", "data": "aGk=", "mimeType": "audio/wav" }] }));
    assert_eq!(script.connection.respond(asked.responder, Ok(audio)), Delivery::Queued);
    script.refusal(1, -32603);
    let event = script.event();
    let Event::NotExpressible { request, what } = event else { panic!("{event:?}") };
    assert_eq!(request, key);
    assert!(!what.is_empty());
    script.assert_nothing_left();
}

fn question() -> InputRequiredResult {
    InputRequiredResult::default().request_state("s")
}

/// Three methods may be answered with a question.
// covers: R-2, M-7, C-4
#[test]
fn questions_answer_three_methods() {
    let mut script = Script::new();
    for method in ["tools/call", "prompts/get", "resources/read"] {
        let asked = script.served(modern_request(1, method, json!({})));
        script.connection.respond(asked.responder, Ok(question()));
        let result = script.reply()["result"].take();
        assert_eq!((&result["resultType"], &result["requestState"]), (&json!("input_required"), &json!("s")));
        assert!(result.get("ttlMs").is_none(), "a question is not kept: {result}");
    }
    for method in ["tools/list", "prompts/list", "completion/complete"] {
        let asked = script.served(modern_request(1, method, json!({})));
        script.connection.respond(asked.responder, Ok(question()));
        script.refusal(1, -32603);
        assert!(matches!(script.event(), Event::NotExpressible { .. }));
    }
    script.assert_nothing_left();
}

/// A question asks something, or brings state.
// covers: R-3, CG-15
#[test]
fn an_empty_question_is_not_sent() {
    let mut script = Script::new();
    let asked = script.served(modern_request(1, "tools/call", json!({})));
    script.connection.respond(asked.responder, Ok(InputRequiredResult::default()));
    script.refusal(1, -32603);
    assert!(matches!(script.event(), Event::NotExpressible { .. }));
    script.assert_nothing_left();
}

/// The legacy era has no such answer, however it is written.
// covers: DU-26
#[test]
fn legacy_has_no_questions_in_results() {
    let mut script = Script::initialized("2025-11-25");
    let asked = script.served(request(1, "tools/call", json!({})));
    script.connection.respond(asked.responder, Ok(question()));
    script.refusal(1, -32603);
    assert!(matches!(script.event(), Event::NotExpressible { .. }));
    let asked = script.served(request(2, "tools/call", json!({})));
    let typed = CallToolResult::text("?").result_type(ResultType::INPUT_REQUIRED);
    script.connection.respond(asked.responder, Ok(typed));
    script.refusal(2, -32603);
    assert!(matches!(script.event(), Event::Stripped { .. }));
    assert!(matches!(script.event(), Event::NotExpressible { .. }));
    script.assert_nothing_left();
}

/// Errors of the application travel as they are.
// covers: M-11, M-12
#[test]
fn errors_travel_as_they_are() {
    let mut script = Script::initialized("2025-11-25");
    for request in [modern_request("a", "tools/call", json!({})), request("a", "tools/call", json!({}))] {
        let asked = script.served(request);
        let error = ErrorObject::new(ErrorCode::from(17), "no").data(&json!([1])).unwrap();
        script.connection.respond(asked.responder, Err::<CallToolResult, _>(error));
        let expected = json!({ "code": 17, "message": "no", "data": [1] });
        assert_eq!(script.reply(), json!({ "jsonrpc": "2.0", "id": "a", "error": expected }));
    }
    script.assert_nothing_left();
}

/// A raw result keeps its members and gets what is owed; legacy results get nothing.
// covers: M-6, M-19, C-1
#[test]
fn raw_results_are_completed_too() {
    let mut script = Script::initialized("2025-11-25");
    let asked = script.served(modern_request(1, "tools/list", json!({})));
    script.connection.respond_raw(asked.responder, &raw(json!({ "tools": [], "x": { "y": null }, "ttlMs": 3 })));
    let result = script.reply()["result"].take();
    assert_eq!((&result["x"], &result["tools"]), (&json!({ "y": null }), &json!([])));
    assert_eq!(
        (&result["resultType"], &result["ttlMs"], &result["cacheScope"]),
        (&json!("complete"), &json!(3), &json!("private"))
    );
    assert_eq!(result["_meta"][SERVER_INFO]["name"], "demo");
    let asked = script.served(modern_request(2, "tools/call", json!({})));
    script
        .connection
        .respond_raw(asked.responder, &raw(json!({ "resultType": "input_required", "requestState": "s" })));
    assert_eq!(script.reply()["result"]["resultType"], "input_required");
    let asked = script.served(request(3, "tools/list", json!({})));
    script.connection.respond_raw(asked.responder, &raw(json!({})));
    assert_eq!(script.reply()["result"], json!({}));
    script.assert_nothing_left();
}

/// A raw result of a modern server has no member that the revision of a legacy client lacks, and all members that no revision has.
// covers: GW-9
#[test]
fn gw_9_raw_results_are_cut_to_the_revision() {
    let list = json!({ "resultType": "complete", "ttlMs": 5, "cacheScope": "public", "x": { "y": null },
        "_meta": { SERVER_INFO: { "name": "upstream", "version": "1" } },
        "tools": [{ "name": "a", "inputSchema": { "type": "object" }, "icons": [], "x-rank": 1 }] });
    for (revision, icons) in [("2024-11-05", false), ("2025-06-18", false), ("2025-11-25", true)] {
        let mut script = Script::initialized(revision);
        let asked = script.served(request(1, "tools/list", json!({})));
        script.connection.respond_raw(asked.responder, &raw(list.clone()));
        let mut tool = json!({ "name": "a", "inputSchema": { "type": "object" }, "x-rank": 1 });
        if icons {
            tool["icons"] = json!([]);
        }
        assert_eq!(script.reply()["result"], json!({ "x": { "y": null }, "tools": [tool] }), "{revision}");
        assert!(matches!(script.event(), Event::Stripped { .. }));
        // What is not a list of tools stays as it is, except for the hints of the protocol layer.
        let asked = script.served(request(2, "tools/list", json!({})));
        script.connection.respond_raw(asked.responder, &raw(json!({ "tools": 7, "ttlMs": 5, "_meta": {} })));
        assert_eq!(script.reply()["result"], json!({ "tools": 7 }));
        // An audio block is not part of the first revision.
        let asked = script.served(request(3, "tools/call", json!({ "name": "a" })));
        let audio = json!({ "content": [{ "type": "audio", "data": "", "mimeType": "audio/wav", "x": 1 }] });
        script.connection.respond_raw(asked.responder, &raw(audio.clone()));
        let reply = script.reply();
        assert_eq!(
            (reply.get("result"), reply["error"]["code"] == -32603),
            match revision {
                "2024-11-05" => (None, true),
                _ => (Some(&audio), false),
            }
        );
    }
    // A legacy result gets what a modern client expects, and loses what was removed since.
    let mut script = Script::new();
    let asked = script.served(modern_request(1, "tools/list", json!({})));
    let old = json!({ "tools": [{ "name": "a", "inputSchema": { "type": "object" }, "execution": {}, "x-rank": 1 }] });
    script.connection.respond_raw(asked.responder, &raw(old));
    let result = script.reply()["result"].take();
    assert_eq!(result["tools"], json!([{ "name": "a", "inputSchema": { "type": "object" }, "x-rank": 1 }]));
    assert_eq!((&result["resultType"], &result["ttlMs"]), (&json!("complete"), &json!(0)));
}

/// The error for a resource that does not exist has the code of the client's era, also if it comes from a server of the other.
// covers: GW-9, B-45
#[test]
fn gw_9_not_found_has_the_code_of_the_era() {
    let mut script = Script::initialized("2025-11-25");
    let read = json!({ "uri": "a:b" });
    for made_for in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for (request, code) in [
            (modern_request("a", "resources/read", read.clone()), -32602),
            (request("a", "resources/read", read.clone()), -32002),
        ] {
            let asked = script.served(request);
            let error = ErrorObject::resource_not_found(made_for, "a:b");
            script.connection.respond(asked.responder, Err::<CallToolResult, _>(error));
            let error = script.reply()["error"].take();
            assert_eq!((&error["code"], &error["data"]), (&json!(code), &json!({ "uri": "a:b" })));
        }
    }
    let asked = script.served(request("a", "resources/read", read));
    let other = ErrorObject::invalid_params("something else");
    script.connection.respond(asked.responder, Err::<CallToolResult, _>(other));
    assert_eq!(script.reply()["error"]["code"], -32602, "not every invalid parameter is a missing resource");
    let asked = script.served(modern_request("a", "tools/call", json!({})));
    let other = ErrorObject::new(ErrorCode::RESOURCE_NOT_FOUND, "a code of the application");
    script.connection.respond(asked.responder, Err::<CallToolResult, _>(other));
    assert_eq!(script.reply()["error"]["code"], -32002);
    script.assert_nothing_left();
}

/// A handler may name another server, and its other metadata stays.
//
#[test]
fn metadata_of_the_handler_stays() {
    let mut script = Script::new();
    let asked = script.served(modern_request(1, "tools/call", json!({})));
    let mine = json!({ "content": [], "_meta": { SERVER_INFO: { "name": "other", "version": "9" }, "com.a/b": 1 } });
    script.connection.respond(asked.responder, Ok(tool(mine.clone())));
    assert_eq!(script.reply()["result"]["_meta"], mine["_meta"]);
    script.assert_nothing_left();
}

/// A question that the client cannot be asked is not sent; the client learns what it would have to declare.
//
#[test]
fn questions_need_what_the_client_declared() {
    for (capabilities, is_asked) in [(json!({}), false), (json!({ "elicitation": {} }), true)] {
        let mut script = Script::new();
        let key = "io.modelcontextprotocol/clientCapabilities";
        let asked =
            script.served(modern_request(1, "tools/call", json!({ "name": "x", "_meta": { key: capabilities } })));
        let form = ElicitRequestFormParams::new("Who?", RequestedSchema::new(OrderedMap::new()));
        let asks = InputRequiredResult::default().input_requests([("who", InputRequest::from(form))]);
        let _ = script.connection.respond(asked.responder, Ok(asks));
        let reply = script.reply();
        if is_asked {
            assert_eq!(reply["result"]["resultType"], "input_required");
        } else {
            assert_eq!(reply["error"]["code"], -32021);
            let required = json!({ "requiredCapabilities": { "elicitation": { "form": {} } } });
            assert_eq!(reply["error"]["data"], required);
        }
        script.assert_nothing_left();
    }
}

/// A transport that tells the client by other means as well, such as a status, knows what is wrong and who says so.
#[test]
fn errors_say_whose_they_are() {
    let failure = |script: &mut Script| script.connection.poll_transmit().expect("an answer").failure;
    let mut script = Script::new();
    script.send(modern_request(1, "nobody/knows", json!({})));
    assert_eq!(failure(&mut script), Some(Failure::Refused(ErrorCode::METHOD_NOT_FOUND)));
    script.complaint();
    script.send_text("{");
    assert_eq!(failure(&mut script), Some(Failure::Refused(ErrorCode::PARSE_ERROR)));
    script.complaint();
    let asked = script.served(modern_request(2, "tools/call", json!({ "name": "a" })));
    let error = ErrorObject::invalid_params("no such tool");
    let _ = script.connection.respond::<CallToolResult>(asked.responder, Err(error));
    assert_eq!(failure(&mut script), Some(Failure::Failed(ErrorCode::INVALID_PARAMS)));
    let asked = script.served(modern_request(3, "tools/call", json!({ "name": "a" })));
    let _ = script.connection.respond(asked.responder, Ok(CallToolResult::text("done")));
    assert_eq!(failure(&mut script), None);
    script.assert_nothing_left();
}
