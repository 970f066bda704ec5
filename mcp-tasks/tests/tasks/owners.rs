//! Tasks belong to the user that created them.

use mcp_tasks::{TaskId, TaskSupport};
use serde_json::{Value, json};

use crate::kit::{TestClient, build, server, settings};
use crate::tools;
use mcp_tasks::{MemoryTaskStore, Tasks};

/// Others get the same error as for a task that does not exist, in both models.
// covers: TK-35, B-90, S4.89
#[tokio::test(start_paused = true)]
async fn others_do_not_know_a_task() {
    let server = server([tools::curious()]);
    let unknown = json!({ "code": -32602, "message": "Unknown task" });
    let mut ann = TestClient::modern(&server).user("ann");
    let task = ann.start("curious").await;
    ann.until(&task, "input_required").await;
    let anonymous = TestClient::modern(&server).start("curious").await;
    let guessed = TaskId::from_bytes([9; 32]).to_string();
    for (mut client, tasks) in [
        (TestClient::modern(&server).user("bob"), [&task, &anonymous, &guessed]),
        (TestClient::modern(&server), [&task, &guessed, &guessed]),
        (TestClient::modern(&server).user("ann"), [&anonymous, &guessed, &guessed]),
    ] {
        for task in tasks {
            for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
                let responses = json!({ "name": { "action": "decline" }, "colour": { "action": "decline" } });
                let error = client.call(method, json!({ "taskId": task, "inputResponses": responses })).await;
                assert_eq!(error["error"], unknown, "{method}");
            }
            let listening =
                client.scripted.start("subscriptions/listen", json!({ "notifications": { "taskIds": [task] } }));
            let accepted = client.message("notifications/subscriptions/acknowledged").await;
            assert_eq!(accepted["params"]["notifications"], json!({ "taskIds": [] }));
            client.scripted.cancel(listening);
        }
    }
    for (mut client, tasks) in
        [(TestClient::core(&server).user("bob"), [&task, &anonymous]), (TestClient::core(&server), [&task, &guessed])]
    {
        for task in tasks {
            for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
                let error = client.call(method, json!({ "taskId": task })).await;
                assert_eq!(error["error"], unknown, "{method}");
            }
        }
    }
    assert_eq!(ann.get(&task).await["inputRequests"].as_object().unwrap().len(), 2, "nothing has changed");
}

/// A list has the tasks of one user, page by page, and none for others.
// covers: B-89, B-90
#[tokio::test(start_paused = true)]
async fn lists_have_ones_own_tasks() {
    let tasks = Tasks::with_settings(MemoryTaskStore::default(), settings().page_size(2));
    let server = build(tasks, |builder| builder.tool(tools::hello(TaskSupport::Allowed)));
    let mut ann = TestClient::core(&server).user("ann");
    let mut expected = Vec::new();
    for _ in 0..5 {
        expected.push(ann.start_core("hello").await);
    }
    let mut bob = TestClient::core(&server).user("bob");
    let other = bob.start_core("hello").await;
    TestClient::core(&server).start_core("hello").await;
    let (mut listed, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        let page = ann.result("tasks/list", params).await;
        let tasks = page["tasks"].as_array().unwrap();
        assert!(tasks.len() <= 2);
        listed.extend(tasks.iter().map(|task| task["taskId"].as_str().unwrap().to_owned()));
        cursor = page.get("nextCursor").cloned().unwrap_or_default();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(listed, expected);
    let page = bob.result("tasks/list", json!({})).await;
    assert_eq!(page["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(page["tasks"][0]["taskId"], json!(other));
    ann.error("tasks/list", json!({ "cursor": "nonsense" }), -32602).await;
    TestClient::core(&server).error("tasks/list", json!({}), -32601).await;
}
