//! State between calls, without a session.

use mcp::serde_json::{self, Value, json};

use crate::client::{Client, Era};

const BASKET: &str = env!("CARGO_BIN_EXE_basket");

const ERAS: [Era; 3] = [Era::Legacy("2024-11-05"), Era::Legacy("2025-11-25"), Era::Modern];

fn contents(result: &Value) -> Value {
    serde_json::from_str(result["content"][0]["text"].as_str().expect("a text")).expect("JSON")
}

#[tokio::test]
async fn a_basket_lives_from_call_to_call() {
    for era in ERAS {
        let mut client = Client::start(BASKET, &[], era).await;
        let opened = contents(&client.call("open_basket", json!({})).await);
        let basket = &opened["basket"];
        client.call("add_item", json!({ "basket": basket, "item": "bread" })).await;
        let filled = contents(&client.call("add_item", json!({ "basket": basket, "item": "milk" })).await);
        assert_eq!(filled, json!({ "basket": basket, "items": ["bread", "milk"] }));
        let bought = client.call("check_out", json!({ "basket": basket })).await;
        assert_eq!(bought["content"][0]["text"], "bought bread, milk", "{era:?}");
        let refused = client.call("check_out", json!({ "basket": basket })).await;
        assert_eq!(refused["isError"], true);
        let text = refused["content"][0]["text"].as_str().expect("a text");
        assert!(text.ends_with("Call `open_basket` to get one."), "{text}");
        client.finish().await;
    }
}

/// A modern client repeats the call with the response of the user; the basket is bought once.
#[tokio::test]
async fn the_user_is_asked_before_the_basket_is_used_up() {
    let mut client = Client::declaring(BASKET, &[], Era::Modern, json!({ "elicitation": {} })).await;
    let basket = contents(&client.call("open_basket", json!({})).await)["basket"].clone();
    client.call("add_item", json!({ "basket": basket, "item": "bread" })).await;
    let asked = client.call("check_out", json!({ "basket": basket })).await;
    assert_eq!(asked["inputRequests"]["confirm"]["params"]["message"], "Buy 1 items?", "{asked}");
    let retry = json!({
        "name": "check_out",
        "arguments": { "basket": basket },
        "requestState": asked["requestState"],
        "inputResponses": { "confirm": { "action": "accept", "content": { "sure": true } } },
    });
    let bought = client.ask("tools/call", retry).await;
    assert_eq!(bought["content"][0]["text"], "bought bread", "{bought}");
    client.finish().await;
}
