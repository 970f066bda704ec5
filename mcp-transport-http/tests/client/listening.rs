//! Subscriptions of modern servers.

use mcp_client::Change;
use mcp_client::types::SubscriptionFilter;
use serde_json::json;

use crate::scripted::{Reply, Scripted, event, modern, within};

/// A subscription that breaks off is made again, as a new request, and not come back to.
// covers: S3.53, RB-67, H-23, H-24
#[tokio::test]
async fn a_subscription_is_made_again() {
    let mut times = 0;
    let server = Scripted::start(modern(move |seen| {
        times += 1;
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": seen.body["id"] });
        let tell = |method: &str, params: serde_json::Value| {
            let mut params = params;
            params["_meta"] = meta.clone();
            event(&json!({ "jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params }))
        };
        let filter = json!({ "notifications": { "promptsListChanged": true } });
        let acknowledged = tell("subscriptions/acknowledged", filter);
        match times {
            1 => Reply::events(&format!("id: 1\nretry: 1\n{acknowledged}")),
            2 => Reply::status(503),
            _ => Reply::open_events(&format!("{acknowledged}{}", tell("prompts/list_changed", json!({})))),
        }
    }))
    .await;
    let client = server.client().await;
    let mut listener = within(client.listen(SubscriptionFilter::default().prompts_list_changed(true))).await.unwrap();
    assert_eq!(within(listener.next()).await.unwrap().unwrap(), Change::Prompts);
    server.until(|seen| seen.iter().filter(|seen| seen.method() == "subscriptions/listen").count() == 3).await;
    let listens = server.seen_of("subscriptions/listen");
    assert!(listens.iter().all(|seen| seen.header("last-event-id").is_none()));
    assert!(listens[0].body["id"] != listens[1].body["id"] && listens[1].body["id"] != listens[2].body["id"]);
    assert!(server.seen_of("GET").is_empty());
}
