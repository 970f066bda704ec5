//! The tasks of 2025-11-25.

use mcp_server::types::{CallToolResult, ElicitRequestFormParams, InputRequiredResult, Revision};
use mcp_server::{HandlerError, NoArguments, RequestContext, RoundResult, tool};
use mcp_tasks::{TaskId, TaskOptions, TaskSupport};
use serde_json::{Value, json};

use crate::kit::{Counts, EXTENSION, RELATED_TASK, TestClient, accept, server, text};
use crate::tools;

/// The capability is complete, tools say what they support, and the extension is not declared.
// covers: B-80, B-81, B-90, TK-36
#[tokio::test(start_paused = true)]
async fn tasks_are_declared_by_revision() {
    let server = server([tools::hello(TaskSupport::Allowed), tools::slow(TaskSupport::Required), tools::curious()]);
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        for user in [false, true] {
            let connection = mcp_server::Connection::long_lived(&server);
            let mut client = mcp_testkit::ScriptedClient::on_connection(connection, revision, json!({}));
            if user {
                client.caller = client.caller.principal(mcp_server::Principal::new(None, "ann"));
            }
            let declared = client.initialize()["result"]["capabilities"].take();
            assert_eq!(declared.get("extensions"), None, "the extension belongs to modern clients");
            let mut expected = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
            if user {
                expected["list"] = json!({});
            }
            let expected = Some(expected).filter(|_| revision == Revision::V2025_11_25);
            assert_eq!(declared.get("tasks"), expected.as_ref());
        }
    }
    let mut client = TestClient::core(&server);
    let tools = client.result("tools/list", json!({})).await;
    let support: Vec<_> =
        tools["tools"].as_array().unwrap().iter().map(|tool| &tool["execution"]["taskSupport"]).collect();
    assert_eq!(support, ["optional", "required", "optional"]);
}

/// An augmented call is a task, whose result is fetched, with the id of its task.
// covers: B-82, B-84, B-85, B-86, B-87
#[tokio::test(start_paused = true)]
async fn an_augmented_call_is_a_task() {
    let server = server([tools::slow(TaskSupport::Allowed)]);
    let mut client = TestClient::core(&server);
    let created = client.result("tools/call", json!({ "name": "slow", "task": { "ttl": 60_000 } })).await;
    let task = &created["task"];
    assert_eq!(
        (&task["status"], &task["ttl"], &task["pollInterval"]),
        (&json!("working"), &json!(60_000), &json!(1000))
    );
    assert_eq!((created.get("resultType"), task.get("ttlMs")), (None, None));
    let id = task["taskId"].as_str().unwrap();
    // It waits until the task has ended.
    let waiting = client.scripted.start("tasks/result", json!({ "taskId": id }));
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let state = client.get(id).await;
    assert_eq!((&state["status"], &state["statusMessage"]), (&json!("working"), &json!("half (1/2)")));
    assert_eq!(state.get("_meta"), None);
    let result = client.response(waiting).await["result"].take();
    assert_eq!(text(&result), "done");
    assert_eq!(result["_meta"][RELATED_TASK], json!({ "taskId": id }));
    assert_eq!(result.get("resultType"), None);
    assert_eq!(client.get(id).await["status"], "completed");
    let again = client.result("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(again, result);
}

/// The requestor's time to live is honoured within limits.
// covers: B-87
#[tokio::test(start_paused = true)]
async fn the_time_to_live_is_limited() {
    let server = server([tools::hello(TaskSupport::Allowed)]);
    let mut client = TestClient::core(&server);
    for (requested, expected) in
        [(json!({}), 3_600_000), (json!({ "ttl": 0 }), 1000), (json!({ "ttl": 1e15 }), 86_400_000)]
    {
        let created = client.result("tools/call", json!({ "name": "hello", "task": requested })).await;
        assert_eq!(created["task"]["ttl"], expected);
    }
    client.error("tools/call", json!({ "name": "hello", "task": { "ttl": "long" } }), -32602).await;
    client.error("tools/call", json!({ "name": "hello", "task": 1 }), -32602).await;
}

/// Whether a call may, must or must not be a task.
// covers: B-81, B-83, TK-36
#[tokio::test(start_paused = true)]
async fn tools_decide_about_tasks() {
    let server = server([tools::hello(TaskSupport::Never), tools::slow(TaskSupport::Required), tools::broken()]);
    let mut client = TestClient::core(&server);
    client.error("tools/call", json!({ "name": "hello", "task": {} }), -32601).await;
    client.error("tools/call", json!({ "name": "slow" }), -32601).await;
    assert_eq!(text(&client.result("tools/call", json!({ "name": "broken" })).await), "no paper");
    // The extension enables nothing here.
    let mut client = TestClient::new(&server, Revision::V2025_11_25, json!({ "extensions": { EXTENSION: {} } }));
    assert_eq!(text(&client.result("tools/call", json!({ "name": "broken" })).await), "no paper");
    client.error("tasks/update", json!({ "taskId": "t", "inputResponses": {} }), -32601).await;
    // Older revisions have no tasks.
    let mut client = TestClient::new(&server, Revision::V2025_06_18, json!({}));
    assert_eq!(text(&client.result("tools/call", json!({ "name": "broken", "task": {} })).await), "no paper");
    client.error("tasks/get", json!({ "taskId": "t" }), -32601).await;
}

/// A failure of the tool is one of the task, and its result is the one of the call; errors are errors.
// covers: B-85, B-91
#[tokio::test(start_paused = true)]
async fn failures_of_tools_are_failures() {
    let server = server([tools::broken(), tools::faulty()]);
    let mut client = TestClient::core(&server);
    let task = client.start_core("broken").await;
    let result = client.result("tasks/result", json!({ "taskId": task })).await;
    assert_eq!((text(&result), &result["isError"]), ("no paper", &json!(true)));
    assert_eq!(client.get(&task).await["status"], "failed");
    let task = client.start_core("faulty").await;
    let error = client.error("tasks/result", json!({ "taskId": task }), -32602).await;
    assert_eq!(error["message"], "no such file");
    assert_eq!(client.get(&task).await["statusMessage"], "no such file");
    // The same task by the rules of the other model, in which only errors of the protocol are failures.
    let task = client.start_core("broken").await;
    client.result("tasks/result", json!({ "taskId": task })).await;
    let state = TestClient::modern(&server).get(&task).await;
    assert_eq!((&state["status"], text(&state["result"])), (&json!("completed"), "no paper"));
}

/// Input requests are sent while the client waits for the result, with the id of their task.
// covers: B-85, B-86
#[tokio::test(start_paused = true)]
async fn a_task_asks_while_its_result_is_awaited() {
    let server = server([tools::curious()]);
    let mut client = TestClient::core(&server);
    let task = client.start_core("curious").await;
    client.until(&task, "input_required").await;
    assert!(client.messages().iter().all(|message| message["method"] != "elicitation/create"), "nobody waits");
    let waiting = client.scripted.start("tasks/result", json!({ "taskId": task }));
    for _ in 0..3 {
        let request = client.message("elicitation/create").await;
        assert_eq!(request["params"]["_meta"][RELATED_TASK]["taskId"], json!(task));
        let properties = &request["params"]["requestedSchema"]["properties"];
        let content: Value = properties
            .as_object()
            .unwrap()
            .keys()
            .map(|name| (name.clone(), json!("x")))
            .collect::<serde_json::Map<_, _>>()
            .into();
        client.scripted.respond(&request, accept(content));
    }
    let result = client.response(waiting).await["result"].take();
    assert_eq!(text(&result), "x x x");
}

/// A client that responds with an error refuses the request: the handler learns it, as outside of a task, and may go on.
#[tokio::test(start_paused = true)]
async fn a_refused_request_is_an_error_of_the_handler() {
    let asks = tool("asks", async |ctx: RequestContext, _: NoArguments| {
        match ctx.elicit::<tools::Name>("name", "Who?").await {
            Ok(_) => "answered".to_owned(),
            Err(error) => error.to_string(),
        }
    });
    async fn ask(ctx: RequestContext, has_state: bool) -> Result<RoundResult<CallToolResult>, HandlerError> {
        if !ctx.input_responses().is_empty() {
            return Ok(RoundResult::Complete(CallToolResult::text("answered")));
        }
        let form = ElicitRequestFormParams::new("Who?", mcp_server::form::schema_of::<tools::Name>()?);
        let mut result = InputRequiredResult::default();
        result.input_requests = Some([("name".to_owned(), form.into())].into_iter().collect());
        if has_state {
            result.request_state = Some(ctx.seal_state(&1)?);
        }
        Ok(RoundResult::InputRequired(Box::new(result)))
    }
    let waits = tool("waits", async |ctx: RequestContext, _: NoArguments| {
        ctx.elicit::<tools::Name>("name", "Who?").await.is_err().to_string()
    });
    let returns = tool("returns", async |ctx, _: NoArguments| ask(ctx, false).await);
    let resumes = tool("resumes", async |ctx, _: NoArguments| ask(ctx, true).await);
    let server = server(
        [asks, returns, resumes]
            .map(|tool| tool.task(TaskSupport::Allowed))
            .into_iter()
            .chain([waits.task(TaskOptions::allowed().not_restartable())]),
    );
    for (name, expected, is_error) in [
        ("asks", "the peer", false),
        ("returns", "the peer", true),
        ("resumes", "the peer", true),
        ("waits", "true", false),
    ] {
        let mut client = TestClient::core(&server);
        let task = client.start_core(name).await;
        client.until(&task, "input_required").await;
        let waiting = client.scripted.start("tasks/result", json!({ "taskId": task }));
        let request = client.message("elicitation/create").await;
        let error = json!({ "code": -32603, "message": "no form" });
        client.scripted.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }));
        client.scripted.run();
        let result = client.response(waiting).await["result"].take();
        assert!(text(&result).starts_with(expected), "{result}");
        assert_eq!(result["isError"] == true, is_error, "{result}");
    }
    // Without the capability, nothing is asked.
    let mut client = TestClient::new(&server, Revision::V2025_11_25, json!({}));
    let task = client.start_core("asks").await;
    let result = client.result("tasks/result", json!({ "taskId": task })).await;
    assert_eq!(text(&result), "the client does not support the request");
}

/// Two that wait for one result get the same requests, of which one response is enough.
#[tokio::test(start_paused = true)]
async fn one_response_is_enough() {
    let counts = Counts::default();
    let server = server([tools::order(&counts)]);
    let (mut one, mut two) = (TestClient::core(&server), TestClient::core(&server));
    let task = one.start_core("order").await;
    let first = one.scripted.start("tasks/result", json!({ "taskId": task }));
    let second = two.scripted.start("tasks/result", json!({ "taskId": task }));
    let request = one.message("elicitation/create").await;
    two.message("elicitation/create").await;
    one.scripted.respond(&request, accept(json!({ "name": "Ann" })));
    assert_eq!(text(&one.response(first).await["result"]), "Ann: 1 1");
    assert_eq!(text(&two.response(second).await["result"]), "Ann: 1 1");
    two.message("notifications/cancelled").await;
    assert_eq!((counts.of("pay"), counts.of("send")), (1, 1));
}

/// Cancelling changes the status before the response, once.
// covers: B-84, B-88, B-89
#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled_once() {
    let counts = Counts::default();
    let server = server([tools::endless(&counts)]);
    let mut client = TestClient::core(&server);
    let task = client.start_core("endless").await;
    while counts.of("started") == 0 {
        tokio::task::yield_now().await;
    }
    let waiting = client.scripted.start("tasks/result", json!({ "taskId": task }));
    let cancelled = client.result("tasks/cancel", json!({ "taskId": task })).await;
    assert_eq!((&cancelled["status"], &cancelled["taskId"]), (&json!("cancelled"), &json!(task)));
    assert_eq!(client.response(waiting).await["error"]["message"], "the task was cancelled");
    client.error("tasks/cancel", json!({ "taskId": task }), -32602).await;
    assert_eq!(client.get(&task).await["status"], "cancelled");
    while counts.of("dropped") == 0 {
        tokio::task::yield_now().await;
    }
    let unknown = TaskId::from_bytes([1; 32]).to_string();
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        client.error(method, json!({ "taskId": unknown }), -32602).await;
    }
}

/// The session that created a task is notified of its status.
// covers: B-86
#[tokio::test(start_paused = true)]
async fn sessions_are_notified() {
    let server = server([tools::slow(TaskSupport::Allowed)]);
    let (mut client, mut other) = (TestClient::core(&server), TestClient::core(&server));
    let task = client.start_core("slow").await;
    let notified = client.wait_for(|message| message["params"]["status"] == "completed").await;
    assert_eq!(notified["method"], "notifications/tasks/status");
    assert_eq!(notified["params"]["taskId"], json!(task));
    assert_eq!(notified["params"].get("_meta"), None, "the id is a parameter");
    assert!(notified["params"]["createdAt"].is_string() && notified["params"]["ttl"].is_number());
    assert!(other.messages().is_empty());
}
