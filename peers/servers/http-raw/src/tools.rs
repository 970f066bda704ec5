//! The tools, all of which return their text.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::body::Body;

pub(crate) struct Tools {
    names: BTreeSet<String>,
    list: Value,
}

impl Tools {
    pub(crate) fn new(number: usize) -> Self {
        let others = (1..=number.saturating_sub(3)).map(|index| format!("tool_{index:02}"));
        let names: Vec<String> = ["echo", "progress", "change"].map(str::to_owned).into_iter().chain(others).collect();
        let tool = |name: &String| {
            let schema =
                json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
            json!({ "name": name, "description": "Returns the text.", "inputSchema": schema })
        };
        Self { list: names.iter().map(tool).collect(), names: names.into_iter().collect() }
    }

    pub(crate) fn list(&self) -> &Value {
        &self.list
    }

    /// Every tool returns its text.
    pub(crate) fn call(&self, params: &mut Value) -> Result<Value, Value> {
        if !params["name"].as_str().is_some_and(|name| self.names.contains(name)) {
            return Err(json!({ "code": -32602, "message": "unknown tool" }));
        }
        match params["arguments"]["text"].take() {
            Value::String(text) => Ok(json!({ "content": [{ "type": "text", "text": text }] })),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(json!({ "code": -32602, "message": "the text is missing" }))
            }
        }
    }
}

/// Returns a stream of three notifications and the answer.
pub(crate) fn with_progress(token: &Value, answer: &Value) -> Body {
    let (events, body) = Body::events();
    for progress in 1..=3 {
        let params = json!({ "progressToken": token, "progress": progress, "total": 3 });
        // The other end is the body, which is still here.
        let _ = events.send(event(&json!({
            "jsonrpc": "2.0", "method": "notifications/progress", "params": params,
        })));
    }
    let _ = events.send(event(answer));
    body
}

pub(crate) fn info() -> Value {
    json!({ "name": "raw", "version": "1.0" })
}

/// Writes a message as an event.
pub(crate) fn event(message: &Value) -> Bytes {
    format!("data: {message}\n\n").into()
}
