//! The demo on standard streams.

use mcp::serde_json::{self, Value, json};

use crate::client::{Client, Era};

pub(crate) const DEMO: &str = env!("CARGO_BIN_EXE_demo");

pub(crate) const LEGACY: Era = Era::Legacy("2025-11-25");
pub(crate) const ERAS: [Era; 2] = [LEGACY, Era::Modern];

async fn start(era: Era) -> Client {
    Client::declaring(DEMO, &["--stdio"], era, json!({ "elicitation": {} })).await
}

#[tokio::test]
async fn tools_give_structured_results_and_readable_errors() {
    for era in ERAS {
        let mut client = start(era).await;
        let result = client.call("text_statistics", json!({ "text": "To be, or not to be" })).await;
        assert_eq!(result["structuredContent"]["words"], 6, "{result}");
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"]);

        let result = client.call("convert", json!({ "value": 212, "from": "fahrenheit", "to": "celsius" })).await;
        assert_eq!(result["structuredContent"], json!({ "value": 100.0, "unit": "celsius" }));
        let result = client.call("convert", json!({ "value": 1, "from": "mile", "to": "gram" })).await;
        assert_eq!(result["isError"], true, "{result}");
        client.finish().await;
    }
}

/// A long-running tool reports progress, lets other requests through, and can be cancelled.
#[tokio::test]
async fn a_long_running_tool_reports_progress_and_can_be_cancelled() {
    for era in ERAS {
        let mut client = start(era).await;
        let params = |up_to: u32| json!({ "name": "count_primes", "arguments": { "up_to": up_to }, "_meta": { "progressToken": "p" } });
        let result = client.ask("tools/call", params(10_000)).await;
        assert_eq!(result["structuredContent"]["primes"], 1229);
        let progress: Vec<f64> =
            client.notifications.drain(..).filter_map(|it| it["params"]["progress"].as_f64()).collect();
        assert!(progress.len() > 10 && progress.is_sorted(), "{progress:?}");

        let slow = client.request("tools/call", params(100_000_000)).await;
        let result = client.call("text_statistics", json!({ "text": "meanwhile" })).await;
        assert_eq!(result["structuredContent"]["words"], 1);
        let cancelled = json!({ "requestId": slow });
        client.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled })).await;
        // Otherwise it would run for minutes, and its response would be unexpected.
        client.finish().await;
    }
}

#[tokio::test]
async fn log_messages_respect_the_level() {
    let log = |level: &str| json!({ "message": "smoke", "level": level });
    let mut client = start(LEGACY).await;
    client.ask("logging/setLevel", json!({ "level": "warning" })).await;
    client.call("log", log("info")).await;
    client.call("log", log("error")).await;
    let logged = client.notification("notifications/message").await;
    assert_eq!(logged, json!({ "level": "error", "logger": "demo", "data": "smoke" }));
    client.finish().await;

    let mut client = start(Era::Modern).await;
    client.call("log", log("error")).await;
    assert!(client.notifications.is_empty());
    let meta = json!({ "io.modelcontextprotocol/logLevel": "warning" });
    client.ask("tools/call", json!({ "name": "log", "arguments": log("error"), "_meta": meta })).await;
    assert_eq!(client.notification("notifications/message").await["data"], "smoke");
    client.finish().await;
}

/// Subscribes to changes, as the era does it.
async fn listen(client: &mut Client, era: Era, uri: &str) {
    if era == LEGACY {
        client.ask("resources/subscribe", json!({ "uri": uri })).await;
    } else {
        let filter = json!({ "resourcesListChanged": true, "resourceSubscriptions": [uri] });
        client.request("subscriptions/listen", json!({ "notifications": filter })).await;
        client.notification("notifications/subscriptions/acknowledged").await;
    }
}

#[tokio::test]
async fn notes_are_resources() {
    for era in ERAS {
        let mut client = start(era).await;
        listen(&mut client, era, "note://1").await;
        let note = client.call("add_note", json!({ "title": "Milk", "text": "Buy milk" })).await;
        assert_eq!(note["structuredContent"]["uri"], "note://1", "{note}");
        client.notification("notifications/resources/list_changed").await;

        let listed = client.ask("resources/list", json!({})).await;
        let uris: Vec<_> =
            listed["resources"].as_array().unwrap().iter().map(|it| it["uri"].as_str().unwrap()).collect();
        assert_eq!(uris, ["demo://readme", "demo://logo.png", "note://1"]);
        let templates = client.ask("resources/templates/list", json!({})).await;
        assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "note://{id}");

        client.call("edit_note", json!({ "id": 1, "text": "Buy oat milk" })).await;
        assert_eq!(client.notification("notifications/resources/updated").await["uri"], "note://1");
        let read = client.ask("resources/read", json!({ "uri": "note://1" })).await;
        assert_eq!(read["contents"][0]["text"], "Buy oat milk");

        assert_eq!(client.call("list_notes", json!({})).await["structuredContent"]["notes"][0]["title"], "Milk");
        let agrees = |_: &Value| json!({ "action": "accept", "content": { "delete": true } });
        client.converse("delete_note", json!({ "id": 1 }), agrees).await;
        client.notification("notifications/resources/list_changed").await;
        assert_eq!(client.call("delete_note", json!({ "id": 1 })).await["isError"], true);
        let code = if era == LEGACY { -32002 } else { -32602 };
        assert_eq!(client.fail("resources/read", json!({ "uri": "note://1" })).await["code"], code);
        client.finish().await;
    }
}

#[tokio::test]
async fn the_prompt_is_typed_and_completed() {
    for era in ERAS {
        let mut client = start(era).await;
        client.call("add_note", json!({ "title": "Milk", "text": "Buy milk" })).await;
        let listed = client.ask("prompts/list", json!({})).await;
        let arguments = listed["prompts"][0]["arguments"].as_array().unwrap();
        let names: Vec<_> = arguments.iter().map(|it| (it["name"].as_str().unwrap(), it["required"] == true)).collect();
        assert_eq!(names, [("note", true), ("style", false), ("words", false)]);

        let reference = json!({ "type": "ref/prompt", "name": "summarize_note" });
        let params =
            |name: &str, value: &str| json!({ "ref": reference, "argument": { "name": name, "value": value } });
        let completed = client.ask("completion/complete", params("style", "b")).await;
        assert_eq!(completed["completion"]["values"], json!(["bullets"]));
        let completed = client.ask("completion/complete", params("note", "")).await;
        assert_eq!(completed["completion"]["values"], json!(["1"]));

        let arguments = json!({ "note": "1", "style": "headline", "words": "5" });
        let got = client.ask("prompts/get", json!({ "name": "summarize_note", "arguments": arguments })).await;
        let text = "Summarize the note \"Milk\" as one headline, in at most 5 words.";
        assert_eq!(got["messages"][0]["content"]["text"], text);
        assert_eq!(got["messages"][1]["content"]["resource"]["text"], "Buy milk");
        let unreadable = json!({ "name": "summarize_note", "arguments": { "note": "one" } });
        assert_eq!(client.fail("prompts/get", unreadable).await["code"], -32602);
        client.finish().await;
    }
}

#[tokio::test]
async fn fixed_resources_are_text_or_bytes() {
    for era in ERAS {
        let mut client = start(era).await;
        let readme = client.ask("resources/read", json!({ "uri": "demo://readme" })).await;
        assert_eq!(readme["contents"][0]["mimeType"], "text/markdown");
        let logo = client.ask("resources/read", json!({ "uri": "demo://logo.png" })).await;
        // The signature of PNG, in base64.
        assert!(logo["contents"][0]["blob"].as_str().unwrap().starts_with("iVBORw0KGgo"));
        client.finish().await;
    }
}

/// One connection serves both eras: a handshake does not affect modern requests.
#[tokio::test]
async fn eras_share_a_connection() {
    let mut client = start(LEGACY).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = json!({ "name": "list_notes", "arguments": {}, "_meta": meta });
    assert_eq!(client.ask("tools/call", call).await["resultType"], "complete");
    assert!(client.call("list_notes", json!({})).await.get("resultType").is_none());
    client.finish().await;
}
