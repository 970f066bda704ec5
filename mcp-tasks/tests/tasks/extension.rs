//! The extension, in 2026-07-28.

use mcp_server::types::Revision;
use mcp_server::{BuildError, Server};
use mcp_tasks::{TaskId, TaskSupport};
use serde_json::{Value, json};

use crate::kit::{Counts, EXTENSION, TestClient, accept, server, text};
use crate::tools;

/// A call becomes a task, which has all its members from the beginning, and its result at the end.
// covers: TK-1, TK-3, TK-9, TK-10, TK-11, TK-12, TK-14, TK-16, TK-17, TK-33, TK-37, TK-38, B-87, S3.36, S4.87, MIS-1
#[tokio::test(start_paused = true)]
async fn a_task_has_a_life() {
    let server = server([tools::slow(TaskSupport::Allowed)]);
    let mut client = TestClient::modern(&server);
    let discovered = client.result("server/discover", json!({})).await;
    assert_eq!(discovered["capabilities"]["extensions"][EXTENSION], json!({}));
    assert_eq!(discovered["capabilities"].get("tasks"), None, "the old capability");
    let created = client.result("tools/call", json!({ "name": "slow", "_meta": { "progressToken": 1 } })).await;
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
    assert_eq!((&created["ttlMs"], &created["pollIntervalMs"]), (&json!(3_600_000), &json!(1000)));
    assert_eq!(created["createdAt"], created["lastUpdatedAt"]);
    for absent in ["task", "result", "error", "inputRequests", "requestState", "ttl", "pollInterval"] {
        assert_eq!(created.get(absent), None, "{absent}");
    }
    let task = created["taskId"].as_str().unwrap();
    let state = client.get(task).await;
    assert_eq!((&state["status"], &state["resultType"]), (&json!("working"), &json!("complete")));
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert_eq!(client.get(task).await["statusMessage"], "half (1/2)");
    let state = client.until(task, "completed").await;
    assert_eq!(text(&state["result"]), "done");
    assert_eq!(state["result"]["resultType"], "complete");
    assert_eq!(state["result"].get("_meta"), None);
    assert!(state["lastUpdatedAt"].as_str().unwrap() > state["createdAt"].as_str().unwrap());
    assert!(client.messages().is_empty(), "no progress and no log messages");
}

/// Errors of the protocol are failures, and those of tools are results.
// covers: TK-15, TK-16, B-91
#[tokio::test(start_paused = true)]
async fn failures_are_errors_of_the_protocol() {
    let server = server([tools::broken(), tools::faulty()]);
    let mut client = TestClient::modern(&server);
    let task = client.start("broken").await;
    let state = client.until(&task, "completed").await;
    assert_eq!((text(&state["result"]), &state["result"]["isError"]), ("no paper", &json!(true)));
    let task = client.start("faulty").await;
    let state = client.until(&task, "failed").await;
    assert_eq!(state["error"], json!({ "code": -32602, "message": "no such file" }));
    assert_eq!((state.get("result"), &state["statusMessage"]), (None, &json!("no such file")));
}

/// A client that did not declare the extension never gets a task, whatever it said before or in the old way.
// covers: TK-4, TK-7, TK-29, TK-31, TK-36
#[tokio::test(start_paused = true)]
async fn tasks_need_the_declaration_of_the_request() {
    let server = server([tools::hello(TaskSupport::Allowed), tools::slow(TaskSupport::Required)]);
    let mut able = TestClient::modern(&server);
    let task = able.start("hello").await;
    for capabilities in [json!({}), json!({ "tasks": { "requests": { "tools": { "call": {} } } } })] {
        let mut client = TestClient::new(&server, Revision::V2026_07_28, capabilities);
        let result = client.result("tools/call", json!({ "name": "hello", "task": { "ttl": 1 } })).await;
        assert_eq!(text(&result), "hello");
        let mut refused = vec![client.error("tools/call", json!({ "name": "slow" }), -32021).await];
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({ "taskId": task, "inputResponses": {} });
            refused.push(client.error(method, params, -32021).await);
        }
        let filter = json!({ "notifications": { "taskIds": [task] } });
        refused.push(client.error("subscriptions/listen", filter, -32021).await);
        for error in refused {
            assert_eq!(error["data"]["requiredCapabilities"]["extensions"][EXTENSION], json!({}), "{error}");
        }
    }
}

/// The methods of 2025-11-25 do not exist, and a `task` member means nothing.
// covers: TK-2, TK-30, TK-31
#[tokio::test(start_paused = true)]
async fn the_old_model_is_gone() {
    let server = server([tools::hello(TaskSupport::Never)]);
    let mut client = TestClient::modern(&server);
    for method in ["tasks/result", "tasks/list"] {
        client.error(method, json!({ "taskId": "t" }), -32601).await;
    }
    let result = client.result("tools/call", json!({ "name": "hello", "task": {} })).await;
    assert_eq!(text(&result), "hello");
    let tools = client.result("tools/list", json!({})).await;
    assert_eq!(tools["tools"][0].get("execution"), None);
}

/// Unknown ids have an error in all methods.
// covers: TK-28, TK-35
#[tokio::test(start_paused = true)]
async fn unknown_tasks_are_refused() {
    let server = server([tools::hello(TaskSupport::Allowed)]);
    let mut client = TestClient::modern(&server);
    let guessed = TaskId::from_bytes([7; 32]).to_string();
    for id in ["", "1", &guessed, &"x".repeat(10_000)] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let error = client.error(method, json!({ "taskId": id, "inputResponses": {} }), -32602).await;
            assert_eq!(error["message"], "Unknown task");
        }
    }
    client.error("tasks/get", json!({}), -32602).await;
}

/// All requests of one poll are open together; partial responses leave the rest, and unknown ones are ignored.
// covers: TK-14, TK-21, TK-24, TK-25
#[tokio::test(start_paused = true)]
async fn a_task_asks() {
    let server = server([tools::curious()]);
    let mut client = TestClient::modern(&server);
    let task = client.start("curious").await;
    let state = client.until(&task, "input_required").await;
    let keys = |state: &Value| -> Vec<String> {
        state["inputRequests"].as_object().into_iter().flat_map(|open| open.keys().cloned()).collect()
    };
    assert_eq!(keys(&state), ["colour", "name"]);
    assert_eq!(state["inputRequests"]["name"]["method"], "elicitation/create");
    let done =
        client.update(&task, json!({ "nothing": accept(json!({})), "name": accept(json!({ "name": "Ann" })) })).await;
    assert_eq!(done, json!({ "resultType": "complete", "_meta": done["_meta"] }));
    assert_eq!(keys(&client.until(&task, "input_required").await), ["colour"]);
    // It was answered before, so that this changes nothing.
    client.update(&task, json!({ "name": accept(json!({ "name": "Bob" })) })).await;
    client.update(&task, json!({ "colour": accept(json!({ "colour": "red" })) })).await;
    let state = loop {
        let state = client.until(&task, "input_required").await;
        if keys(&state) == ["again"] {
            break state;
        }
    };
    assert_eq!(state["inputRequests"]["again"]["params"]["message"], "Ann, again?");
    client.update(&task, json!({ "again": accept(json!({ "name": "Eve" })) })).await;
    let state = client.until(&task, "completed").await;
    assert_eq!(text(&state["result"]), "Ann red Eve");
    client.update(&task, json!({ "again": accept(json!({ "name": "late" })) })).await;
    assert_eq!(text(&client.get(&task).await["result"]), "Ann red Eve");
}

/// A response that is not one of the request is refused, and the request stays open.
// covers: TK-24
#[tokio::test(start_paused = true)]
async fn malformed_responses_are_refused() {
    let server = server([tools::curious()]);
    let mut client = TestClient::modern(&server);
    let task = client.start("curious").await;
    client.until(&task, "input_required").await;
    for wrong in [json!({ "name": {} }), json!({ "name": { "action": "maybe" } }), json!({ "name": 7 }), json!([])] {
        client.error("tasks/update", json!({ "taskId": task, "inputResponses": wrong }), -32602).await;
    }
    assert_eq!(client.get(&task).await["inputRequests"].as_object().unwrap().len(), 2);
}

/// Cancelling is acknowledged, reaches the handler, and changes nothing afterwards.
// covers: TK-17, TK-26, TK-27, S4.82
#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled() {
    let counts = Counts::default();
    let server = server([tools::endless(&counts), tools::hello(TaskSupport::Allowed)]);
    let mut client = TestClient::modern(&server);
    let task = client.start("endless").await;
    while counts.of("started") == 0 {
        tokio::task::yield_now().await;
    }
    let done = client.result("tasks/cancel", json!({ "taskId": task })).await;
    assert_eq!(done["resultType"], "complete");
    assert_eq!(client.get(&task).await["status"], "cancelled");
    while counts.of("dropped") == 0 || counts.of("seen") == 0 {
        tokio::task::yield_now().await;
    }
    client.result("tasks/cancel", json!({ "taskId": task })).await;
    let task = client.start("hello").await;
    client.until(&task, "completed").await;
    client.result("tasks/cancel", json!({ "taskId": task })).await;
    assert_eq!(client.get(&task).await["status"], "completed");
}

/// A task is kept for its time to live, from its creation, and not longer.
// covers: TK-19, TK-20, S4.90
#[tokio::test(start_paused = true)]
async fn tasks_expire() {
    let server = server([tools::hello(TaskSupport::Allowed)]);
    let mut client = TestClient::modern(&server);
    let task = client.start("hello").await;
    client.until(&task, "completed").await;
    tokio::time::sleep(std::time::Duration::from_secs(3590)).await;
    assert_eq!(client.get(&task).await["status"], "completed");
    tokio::time::sleep(std::time::Duration::from_secs(20)).await;
    client.error("tasks/get", json!({ "taskId": task }), -32602).await;
}

/// Nothing of tasks exists in a server without them.
// covers: EX-13
#[tokio::test(start_paused = true)]
async fn a_server_without_tasks_has_none() {
    let server = Server::builder("plain", "1.0").tool(tools::hello(TaskSupport::Never)).build().unwrap();
    let mut client = TestClient::modern(&server);
    let discovered = client.result("server/discover", json!({})).await;
    assert_eq!(discovered["capabilities"].get("extensions"), None);
    client.error("tasks/get", json!({ "taskId": "t" }), -32601).await;
    assert_eq!(text(&client.result("tools/call", json!({ "name": "hello" })).await), "hello");
    let refused = Server::builder("plain", "1.0").tool(tools::hello(TaskSupport::Allowed)).build().unwrap_err();
    assert_eq!(refused, BuildError::MissingTasks { tool: "hello".to_owned() });
    let added = server.update(|registry| registry.add_tool(tools::slow(TaskSupport::Required)));
    assert_eq!(added.unwrap_err(), BuildError::MissingTasks { tool: "slow".to_owned() });
}
