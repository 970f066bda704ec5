//! Calls and what comes of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::types::{ErrorCode, Method, PromptReference, Revision};
use mcp_client::{CloseReason, Error};
use serde_json::json;

use crate::demo::{Sum, connect, limited};

/// The same calls, whatever the server speaks.
// covers: S3.61
#[tokio::test]
async fn every_method_in_every_revision() {
    for revision in Revision::ALL {
        let client = connect(revision).await;
        assert_eq!(client.revision(), Some(revision));
        assert_eq!(client.server().instructions.as_deref(), Some("Add things"), "{revision}");
        let result = limited(client.call_tool("add").arguments(&json!({ "a": 1, "b": 2 }))).await.unwrap();
        assert!(result.content[0].as_text().unwrap().contains('3'), "{revision}");
        let failed = limited(client.call_tool("fail")).await.unwrap();
        assert_eq!(failed.is_error, Some(true));
        let read = limited(client.read_resource("test://echo/abc")).await.unwrap();
        assert!(serde_json::to_string(&read).unwrap().contains("abc"));
        let prompt = limited(client.get_prompt("greet").argument("name", "Ada")).await.unwrap();
        assert!(serde_json::to_string(&prompt).unwrap().contains("Hello, Ada!"));
        let completed = limited(client.complete(PromptReference::new("greet"), "name", "al")).await.unwrap();
        assert_eq!(completed.completion.values, ["alice", "albert"]);
        assert_eq!(limited(client.close()).await, CloseReason::ByClient);
    }
}

#[tokio::test]
async fn what_an_era_lacks_is_not_sent() {
    let modern = connect(Revision::V2026_07_28).await;
    assert!(matches!(limited(modern.ping()).await, Err(Error::Command(_))));
    assert!(limited(modern.discover()).await.is_ok());
    let legacy = connect(Revision::V2025_11_25).await;
    assert!(limited(legacy.ping()).await.is_ok());
    assert!(matches!(limited(legacy.discover()).await, Err(Error::Command(_))));
}

/// What is off the specification can be tried; the server says what it makes of it.
#[tokio::test]
async fn raw_calls() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let client = connect(revision).await;
        let error = limited(client.request::<serde_json::Value>("x/y", &json!({ "z": 1 }))).await.unwrap_err();
        assert!(error.is_remote());
        assert_eq!(error.as_rejection().unwrap().code, ErrorCode::METHOD_NOT_FOUND);
        let result: serde_json::Value =
            limited(client.request(Method::TOOLS_CALL, &json!({ "name": "add", "arguments": { "a": 2, "b": 2 } })))
                .await
                .unwrap();
        assert!(result["content"][0]["text"].as_str().unwrap().contains('4'));
    }
}

#[tokio::test]
async fn structured_results() {
    let client = connect(Revision::V2026_07_28).await;
    let sum: Sum = limited(client.call_tool("add").arguments(&json!({ "a": 1, "b": 2 })).structured()).await.unwrap();
    assert_eq!(sum, Sum { sum: 3 });
    let failed = limited(client.call_tool("fail").structured::<Sum>()).await;
    assert!(matches!(failed, Err(Error::ToolFailed(text)) if text == "as asked"));
    let other = limited(client.call_tool("touch").structured::<Sum>()).await;
    assert!(matches!(other, Err(Error::InvalidResponse(_))));
}

/// Progress reaches the one who made the call.
// covers: P-2, K-12
#[tokio::test]
async fn progress_reaches_its_call() {
    for revision in [Revision::V2024_11_05, Revision::V2026_07_28] {
        let client = connect(revision).await;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let listener = Arc::clone(&heard);
        let call = client.call_tool("slow").on_progress(move |progress| {
            listener.lock().unwrap().push(progress.progress.to_string());
        });
        limited(call).await.unwrap();
        assert_eq!(*heard.lock().unwrap(), ["1", "2", "3"], "{revision}");
    }
}

/// A server that says nothing is given up, and told so.
// covers: K-10, K-13
#[tokio::test]
async fn silence_ends_a_call() {
    let client = connect(Revision::V2026_07_28).await;
    let call = client.call_tool("wait").idle_timeout(Duration::from_millis(20));
    assert!(matches!(limited(call).await, Err(Error::TimedOut)));
    assert!(limited(client.call_tool("add").arguments(&json!({ "a": 1, "b": 2 }))).await.is_ok());
}

/// Dropping the future and the handle both cancel.
// covers: K-1, K-3
#[tokio::test]
async fn calls_can_be_cancelled() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = connect(revision).await;
        let mut call = client.call_tool("wait");
        let handle = call.cancel_handle();
        let call = tokio::spawn(call.into_future());
        tokio::task::yield_now().await;
        handle.cancel();
        assert!(matches!(limited(call).await.unwrap(), Err(Error::Cancelled)));
        let dropped = tokio::time::timeout(Duration::from_millis(5), client.call_tool("wait")).await;
        assert!(dropped.is_err());
        assert!(limited(client.call_tool("add").arguments(&json!({ "a": 1, "b": 2 }))).await.is_ok());
    }
}

/// Everybody hears that it is over, and why.
// covers: S4.54
#[tokio::test]
async fn closing_ends_everything() {
    let client = connect(Revision::V2026_07_28).await;
    let waiting = tokio::spawn(client.call_tool("wait").into_future());
    let closed = tokio::spawn({
        let client = client.clone();
        async move { client.closed().await }
    });
    tokio::task::yield_now().await;
    assert_eq!(limited(client.close()).await, CloseReason::ByClient);
    assert_eq!(limited(closed).await.unwrap(), CloseReason::ByClient);
    assert!(matches!(limited(waiting).await.unwrap(), Err(Error::Closed(CloseReason::ByClient))));
    assert!(matches!(limited(client.ping()).await, Err(Error::Closed(_))));
}
