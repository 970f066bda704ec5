//! Messages that nobody asked for, over a pipe.

use serde_json::{Value, json};

use crate::arena::{compare, run, within};
use crate::heap::alone;
use crate::pipe::Pipe;
use crate::tally::repeated;

/// How many messages are sent before a call shows that all of them were read.
const ROUND: usize = 500;

/// How many rounds an abuse has at least.
const ROUNDS: usize = 4;

fn notification(method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params }).to_string()
}

fn request(id: Value, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// Sends a line again and again, in both eras.
fn flood(name: &str, line: impl Fn(usize) -> Vec<u8>) {
    let _alone = alone();
    for is_modern in [true, false] {
        run(async {
            let mut pipe = Pipe::open(is_modern).await;
            pipe.honest().await;
            let mut sent = 0;
            compare(&format!("{name}, {}", if is_modern { "modern" } else { "legacy" }), ROUNDS, async || {
                let mut chunk = Vec::new();
                for _ in 0..ROUND {
                    sent += 1;
                    chunk.extend_from_slice(&line(sent));
                    chunk.push(b'\n');
                    if chunk.len() > 32 * 1024 {
                        pipe.write(&chunk).await;
                        chunk.clear();
                    }
                }
                pipe.write(&chunk).await;
                drop(chunk);
                pipe.honest().await;
                repeated(ROUND, "messages")
            })
            .await;
            within(pipe.client.close()).await;
        });
    }
}

#[test]
fn notifications_nobody_knows() {
    flood("unknown notifications", |number| {
        notification("x", json!({ "number": number, "text": "x".repeat(100) })).into()
    });
}

#[test]
fn log_messages() {
    flood("log messages", |number| notification("message", json!({ "level": "info", "data": { "n": number } })).into());
}

#[test]
fn progress_of_nothing() {
    flood("progress", |number| {
        notification("progress", json!({ "progressToken": number, "progress": 1, "message": "x".repeat(100) })).into()
    });
}

#[test]
fn cancellations_of_nothing() {
    flood("cancellations", |number| notification("cancelled", json!({ "requestId": number + 1_000_000 })).into());
}

#[test]
fn changes_of_everything() {
    flood("changes", |number| match number % 4 {
        0 => notification("tools/list_changed", json!({})).into(),
        1 => notification("prompts/list_changed", json!({})).into(),
        2 => notification("resources/list_changed", json!({})).into(),
        _ => notification("resources/updated", json!({ "uri": format!("test://{number}") })).into(),
    });
}

#[test]
fn responses_to_nobody() {
    flood("responses to nobody", |number| match number % 3 {
        0 => {
            json!({ "jsonrpc": "2.0", "id": number + 1_000_000, "result": { "x": "x".repeat(100) } }).to_string().into()
        }
        1 => json!({ "jsonrpc": "2.0", "id": number + 1_000_000, "error": { "code": 1, "message": "no" } })
            .to_string()
            .into(),
        _ => json!({ "jsonrpc": "2.0", "error": { "code": 1, "message": "no" } }).to_string().into(),
    });
}

#[test]
fn requests_to_the_client() {
    flood("requests", |number| match number % 5 {
        0 => request(json!(number), "ping", json!({})).into(),
        1 => request(json!(number), "who/knows", json!({})).into(),
        2 => request(json!(number), "roots/list", json!({})).into(),
        3 => request(json!(number), "sampling/createMessage", json!({ "messages": [], "maxTokens": 1 })).into(),
        _ => {
            let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
            request(json!(number), "elicitation/create", json!({ "message": "?", "requestedSchema": schema })).into()
        }
    });
}

#[test]
fn ids_that_are_none() {
    flood("bad ids", |number| {
        let id = match number % 6 {
            0 => json!({}),
            1 => json!([1]),
            2 => json!(1.5),
            3 => json!("x".repeat(5000)),
            4 => json!(true),
            _ => Value::Null,
        };
        request(id, "ping", json!({})).into()
    });
}

#[test]
fn the_same_id_again() {
    flood("one id", |_| request(json!("x"), "roots/list", json!({})).into());
}

#[test]
fn json_that_is_deep() {
    flood("deep JSON", |number| {
        let depth = 200;
        let params = format!("{}{}{}", "[".repeat(depth), number, "]".repeat(depth));
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"x":{params}}}}}"#).into()
    });
}

#[test]
fn rubbish() {
    flood("rubbish", |number| match number % 6 {
        0 => b"}{".to_vec(),
        1 => vec![0xff; 100],
        2 => br#"{"jsonrpc":"2.0","#.to_vec(),
        3 => b"[]".to_vec(),
        4 => br#"[{"jsonrpc":"2.0","method":"notifications/x"}]"#.to_vec(),
        _ => br#"{"jsonrpc":"1.0","id":1,"result":{}}"#.to_vec(),
    });
}

#[test]
fn large_notifications() {
    // Ten to a megabyte.
    flood("large notifications", |number| {
        if number.is_multiple_of(50) {
            notification("x", json!({ "text": "x".repeat(100_000) })).into()
        } else {
            b"{}".to_vec()
        }
    });
}

/// A call whose server reports progress without end, and does not answer before.
#[test]
fn progress_of_a_call() {
    let _alone = alone();
    for is_modern in [true, false] {
        run(async {
            let mut pipe = Pipe::open(is_modern).await;
            compare(
                &format!("progress of a call, {}", if is_modern { "modern" } else { "legacy" }),
                ROUNDS,
                async || {
                    let call = pipe.client.call_tool("slow").on_progress(|_| ());
                    let calling = tokio::spawn(within(call));
                    let request = pipe.request().await;
                    let token = &request["params"]["_meta"]["progressToken"];
                    for progress in 1..=ROUND {
                        let report =
                            json!({ "progressToken": token, "progress": progress, "message": "x".repeat(200) });
                        pipe.write(format!("{}\n", notification("progress", report)).as_bytes()).await;
                    }
                    pipe.answer(&request, &json!({ "resultType": "complete", "content": [] })).await;
                    within(calling).await.expect("no panic").expect("a result");
                    repeated(ROUND, "messages")
                },
            )
            .await;
        });
    }
}
