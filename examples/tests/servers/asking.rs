//! The tools of the demo with server-to-client requests: the same outcome in both eras.

use mcp::serde_json::{Value, json};

use crate::client::{Client, Era};
use crate::demo::{DEMO, ERAS, LEGACY};

/// A client with all capabilities, and a note.
async fn start(era: Era) -> Client {
    let mut client = Client::declaring(DEMO, &["--stdio"], era, json!({ "elicitation": {}, "sampling": {} })).await;
    client.call("add_note", json!({ "title": "Milk", "text": "Buy milk" })).await;
    client
}

fn accepts(content: Value) -> impl Fn(&Value) -> Value {
    move |_| json!({ "action": "accept", "content": content })
}

async fn titles(client: &mut Client) -> Vec<String> {
    let listed = client.call("list_notes", json!({})).await;
    let notes = listed["structuredContent"]["notes"].as_array().expect("notes");
    notes.iter().map(|note| note["title"].as_str().expect("a title").to_owned()).collect()
}

/// A note is deleted only if the user confirms it.
#[tokio::test]
async fn deleting_needs_a_yes() {
    for era in ERAS {
        let mut client = start(era).await;
        let id = json!({ "id": 1 });
        for answer in [
            json!({ "action": "accept", "content": { "delete": false } }),
            json!({ "action": "decline" }),
            json!({ "action": "cancel" }),
        ] {
            let (result, rounds) = client.converse("delete_note", id.clone(), |_| answer.clone()).await;
            assert!(result["content"][0]["text"].as_str().unwrap().starts_with("kept"), "{result}");
            assert_eq!(rounds.len(), 1);
            assert_eq!(titles(&mut client).await, ["Milk"]);
        }
        let agrees = |question: &Value| {
            assert_eq!(question["params"]["message"], "Delete the note \"Milk\"?");
            json!({ "action": "accept", "content": { "delete": true } })
        };
        let (result, _) = client.converse("delete_note", id, agrees).await;
        assert_eq!(result["content"][0]["text"], "deleted \"Milk\"");
        assert!(titles(&mut client).await.is_empty());
        client.finish().await;

        // A client without elicitation cannot confirm.
        let mut client = Client::start(DEMO, &["--stdio"], era).await;
        client.call("add_note", json!({ "title": "Milk", "text": "Buy milk" })).await;
        let error = client.fail("tools/call", json!({ "name": "delete_note", "arguments": { "id": 1 } })).await;
        assert_eq!(error["code"], -32021);
        assert_eq!(titles(&mut client).await, ["Milk"]);
        client.finish().await;
    }
}

#[tokio::test]
async fn two_requests_share_a_round() {
    for era in ERAS {
        let mut client = start(era).await;
        let answer = |question: &Value| {
            if question["method"] == "sampling/createMessage" {
                let content = json!({ "type": "text", "text": "Water the roses." });
                return json!({ "role": "assistant", "model": "m", "content": content });
            }
            json!({ "action": "accept", "content": { "title": "Garden" } })
        };
        let (result, rounds) = client.converse("draft_note", json!({ "about": "roses" }), answer).await;
        assert_eq!(result["structuredContent"]["title"], "Garden", "{result}");
        assert_eq!(result["structuredContent"]["text"], "Water the roses.");
        let asked = if era == LEGACY {
            vec![json!("elicitation/create"), json!("sampling/createMessage")]
        } else {
            vec![json!({ "title": "elicitation/create", "text": "sampling/createMessage" })]
        };
        assert_eq!(rounds, asked);
        assert_eq!(titles(&mut client).await, ["Milk", "Garden"]);
        client.finish().await;
    }
}

/// Each letter costs one stamp, although a modern client sends the request twice.
#[tokio::test]
async fn the_user_pays_once() {
    for era in ERAS {
        let mut client = start(era).await;
        for letter in 1..=2 {
            let address = accepts(json!({ "address": "1 Rose Lane" }));
            let (result, rounds) = client.converse("post_note", json!({ "id": 1 }), address).await;
            let posted = json!({ "title": "Milk", "address": "1 Rose Lane", "receipt": letter, "sold": letter });
            assert_eq!(result["structuredContent"], posted);
            assert_eq!(rounds.len(), 1);
        }
        let (result, _) = client.converse("post_note", json!({ "id": 1 }), |_| json!({ "action": "decline" })).await;
        assert_eq!(result["isError"], true);
        let text = "the user declined; the stamp with receipt 3 can be returned";
        assert_eq!(result["content"][0]["text"], text);
        client.finish().await;
    }
}

/// A retry that is sent twice is refused the second time.
#[tokio::test]
async fn input_responses_are_used_once() {
    let mut client = start(Era::Modern).await;
    let params = json!({ "name": "post_note", "arguments": { "id": 1 } });
    let asked = client.ask("tools/call", params.clone()).await;
    let mut retry = params;
    retry["inputResponses"]["address"] = accepts(json!({ "address": "1 Rose Lane" }))(&Value::Null);
    retry["requestState"] = asked["requestState"].clone();
    assert_eq!(client.ask("tools/call", retry.clone()).await["structuredContent"]["receipt"], 1);
    assert_eq!(client.fail("tools/call", retry).await["code"], -32602);
    client.finish().await;
}
