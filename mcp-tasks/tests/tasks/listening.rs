//! Listen streams with notifications of tasks.

use mcp_tasks::TaskSupport;
use serde_json::json;

use crate::kit::{Counts, TestClient, accept, server, text};
use crate::tools;

/// A listener gets the state of its tasks as `tasks/get` returns it, and nothing of others.
// covers: TK-32, TK-33, L-7, L-17
#[tokio::test(start_paused = true)]
async fn listeners_get_the_whole_state() {
    let counts = Counts::default();
    let server = server([tools::order(&counts), tools::hello(TaskSupport::Allowed)]);
    let mut client = TestClient::modern(&server).user("ann");
    let task = client.start("order").await;
    client.until(&task, "input_required").await;
    let mut listener = TestClient::modern(&server).user("ann");
    let filter = json!({ "taskIds": [task, "unknown", task], "toolsListChanged": true });
    let id = listener.scripted.start("subscriptions/listen", json!({ "notifications": filter }));
    let accepted = listener.message("notifications/subscriptions/acknowledged").await;
    assert_eq!(accepted["params"]["notifications"], json!({ "taskIds": [task], "toolsListChanged": true }));
    let mut first = listener.message("notifications/tasks").await;
    assert_eq!(first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    first["params"].as_object_mut().unwrap().remove("_meta");
    let mut got = client.get(&task).await;
    for member in ["_meta", "resultType"] {
        got.as_object_mut().unwrap().remove(member);
    }
    assert_eq!(first["params"], got);
    let other = client.start("hello").await;
    client.until(&other, "completed").await;
    client.update(&task, json!({ "name": accept(json!({ "name": "Ann" })) })).await;
    let last = listener.wait_for(|message| message["params"]["status"] == "completed").await;
    assert_eq!(text(&last["params"]["result"]), "Ann: 1 1");
    assert!(listener.messages().iter().all(|message| message["params"]["taskId"] != json!(other)));
}

/// A filter that is not valid is refused.
// covers: TK-29
#[tokio::test(start_paused = true)]
async fn filters_are_checked() {
    let server = server([tools::hello(TaskSupport::Allowed)]);
    let mut client = TestClient::modern(&server);
    for wrong in [json!("t"), json!([1]), json!({})] {
        client.error("subscriptions/listen", json!({ "notifications": { "taskIds": wrong } }), -32602).await;
    }
    let many: Vec<_> = (0..100_000).map(|number| format!("{number}")).collect();
    let error = client.error("subscriptions/listen", json!({ "notifications": { "taskIds": many } }), -32602).await;
    assert!(error["message"].as_str().unwrap().contains("max_uris_per_listen_stream"), "{error}");
    // Without tasks the filter is as before.
    client.scripted.start("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    let accepted = client.message("notifications/subscriptions/acknowledged").await;
    assert_eq!(accepted["params"]["notifications"], json!({ "toolsListChanged": true }));
}

/// A stream that has ended gets nothing.
#[tokio::test(start_paused = true)]
async fn streams_end() {
    let server = server([tools::slow(TaskSupport::Allowed)]);
    let mut client = TestClient::modern(&server);
    let task = client.start("slow").await;
    let id = client.scripted.start("subscriptions/listen", json!({ "notifications": { "taskIds": [task] } }));
    client.message("notifications/tasks").await;
    client.scripted.cancel(id);
    client.messages();
    client.until(&task, "completed").await;
    assert!(client.messages().is_empty());
}
