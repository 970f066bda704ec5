//! What may be answered to a question, and whether an answer is one.

use serde_json::{Value, json};

/// An answer to the question with a key, in a way: `d` declines, `c` cancels, `w` is wrong, all others are right.
pub(super) fn answer(key: &str, way: Option<&u8>) -> Value {
    let action = match way {
        Some(b'd') => "decline",
        Some(b'c') => "cancel",
        _ => "accept",
    };
    let is_wrong = way == Some(&b'w');
    match key {
        "text" if is_wrong => json!({ "role": "assistant" }),
        "text" => json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "hello" } }),
        "roots" if is_wrong => json!({ "roots": [{ "name": "a" }] }),
        "roots" => json!({ "roots": [{ "uri": "file:///a" }] }),
        "url" if is_wrong => json!({ "action": "perhaps" }),
        "url" => json!({ "action": action }),
        _ if is_wrong => json!({ "action": "accept", "content": { "name": "too long" } }),
        _ if action == "accept" => json!({ "action": action, "content": { "name": "ann", "age": 30 } }),
        _ => json!({ "action": action }),
    }
}

/// What a key is asked by.
pub(super) fn method(key: &str) -> &'static str {
    match key {
        "text" => "sampling/createMessage",
        "roots" => "roots/list",
        _ => "elicitation/create",
    }
}

/// Whether an answer is valid, and the one that a handler says it got. It does not look at how the server decides that.
pub(super) fn is_behind(key: &str, answer: &Value, reported: &Value) -> bool {
    match key {
        "text" => {
            let is_valid = answer["role"].is_string() && answer["model"].is_string();
            is_valid
                && (answer["content"].is_object() || answer["content"].is_array())
                && reported["model"] == answer["model"]
        }
        "roots" => {
            let uris = |list: &Value| -> Option<Vec<String>> {
                list.as_array()?.iter().map(|root| Some(root["uri"].as_str()?.to_owned())).collect()
            };
            uris(&answer["roots"]).is_some_and(|sent| Some(sent) == uris(reported))
        }
        "url" => (answer["action"] == "accept") == (*reported == true),
        _ => answer["action"] == "accept" && is_filled_in(&answer["content"], reported),
    }
}

/// Whether a form is filled in by its rules: those of `handlers::form`.
fn is_filled_in(content: &Value, reported: &Value) -> bool {
    let is_named = content["name"].as_str().is_some_and(|name| (1..=5).contains(&name.chars().count()));
    let age = content.get("age").map_or(Some(7.0), Value::as_f64);
    let is_old = age.is_some_and(|age| age.fract() == 0.0 && (0.0..=150.0).contains(&age));
    let is_sure = content.get("sure").is_none_or(Value::is_boolean);
    let is_same = reported["name"] == content["name"] && reported["age"].as_f64() == age;
    is_named && is_old && is_sure && is_same && reported.get("sure") == content.get("sure")
}
