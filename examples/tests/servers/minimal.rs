//! The smallest server.

use mcp::serde_json::json;

use crate::client::{Client, Era};

const MINIMAL: &str = env!("CARGO_BIN_EXE_minimal");

#[tokio::test]
async fn it_answers_in_every_revision() {
    let legacy = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"].map(Era::Legacy);
    for era in legacy.into_iter().chain([Era::Modern]) {
        let mut client = Client::start(MINIMAL, &[], era).await;
        let listed = client.ask("tools/list", json!({})).await;
        assert_eq!(listed["tools"][0]["name"], "count_words");
        assert_eq!(listed["tools"][0]["inputSchema"]["required"], json!(["text"]));
        let result = client.call("count_words", json!({ "text": "to be or not to be" })).await;
        assert_eq!(result["content"][0]["text"], "6", "{era:?}");
        let result = client.call("count_words", json!({ "txt": "" })).await;
        assert_eq!(result["isError"], true, "{result}");
        client.finish().await;
    }
}
