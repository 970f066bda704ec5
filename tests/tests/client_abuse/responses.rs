//! Responses that are none, over a socket.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use mcp_client::Error;
use serde_json::{Value, json};

use crate::arena::{compare, run, within};
use crate::heap::alone;
use crate::socket::{JSON, Reply, Script, Socket, Then, events, response};
use crate::tally::repeated;

/// How many rounds an abuse has at least.
const ROUNDS: usize = 4;

/// How a client calls a server that mistreats it.
#[derive(Clone, Copy)]
struct Calls {
    /// How many there are in a round, and how many of them at a time.
    count: usize,
    at_once: usize,
    /// How long the server may be silent.
    idle: Duration,
    /// How many messages the client sends by itself for each of them in the legacy era.
    messages: usize,
}

/// Patient enough for a busy machine.
const PATIENT: Calls = Calls { count: 10, at_once: 1, idle: Duration::from_secs(30), messages: 0 };

/// Against servers that are never silent, and never answer: each call waits until its time is over, and is cancelled then.
const SHORT: Calls = Calls { count: 100, at_once: 100, idle: Duration::from_millis(20), messages: 1 };

/// Has calls mistreated, in both eras; whatever comes of them, the next honest one is answered.
fn mistreat(
    name: &str,
    calls: Calls,
    script: impl Fn(Value) -> Reply + Send + Sync + 'static,
    check: fn(&Result<(), Error>) -> bool,
) {
    let _alone = alone();
    let script: Script = Arc::new(script);
    for is_modern in [true, false] {
        run(async {
            let socket = Socket::open(is_modern, Arc::clone(&script)).await;
            socket.honest().await;
            compare(&format!("{name}, {}", if is_modern { "modern" } else { "legacy" }), ROUNDS, async || {
                let heard = socket.messages();
                for _ in 0..calls.count / calls.at_once {
                    let call = || within(socket.client.call_tool("t").idle_timeout(calls.idle));
                    for outcome in join_all((0..calls.at_once).map(|_| call())).await {
                        let outcome = outcome.map(drop);
                        assert!(check(&outcome), "{name}: {outcome:?}");
                    }
                }
                socket.honest().await;
                // What the client says by itself is sent one after the other, so it may come after the end of the calls. What
                // waits is part of what the client keeps, up to a limit: the queue must not grow from round to round.
                if !is_modern {
                    socket.has_heard(heard + calls.count * calls.messages).await;
                }
                repeated(calls.count, "responses")
            })
            .await;
            within(socket.client.close()).await;
        });
    }
}

fn is_error(outcome: &Result<(), Error>) -> bool {
    outcome.is_err()
}

fn is_fine(outcome: &Result<(), Error>) -> bool {
    outcome.is_ok()
}

fn result(message: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "resultType": "complete", "content": [] } })
}

#[test]
fn wrong_content_types() {
    mistreat(
        "wrong content types",
        PATIENT,
        |message| {
            let body = result(&message).to_string();
            let number = message["id"].as_u64().unwrap_or_default();
            let headers = match number % 4 {
                0 => "content-type: text/html\r\n",
                1 => "",
                2 => "content-type: application/json\r\ncontent-encoding: gzip\r\n",
                _ => "content-type: \"\r\n",
            };
            Reply { bytes: response(200, headers, &body), then: Then::GoOn }
        },
        is_error,
    );
}

#[test]
fn bodies_that_are_no_message() {
    mistreat(
        "bad bodies",
        PATIENT,
        |message| {
            let number = message["id"].as_u64().unwrap_or_default();
            let body = match number % 5 {
                0 => "}{".to_owned(),
                1 => String::new(),
                2 => format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000)),
                3 => json!({ "jsonrpc": "2.0", "id": { "x": 1 }, "result": {} }).to_string(),
                _ => json!({ "jsonrpc": "2.0", "id": 999_999, "result": {} }).to_string(),
            };
            Reply { bytes: response(200, JSON, &body), then: Then::GoOn }
        },
        is_error,
    );
}

#[test]
fn bodies_without_end() {
    let head = format!("HTTP/1.1 200 OK\r\n{JSON}connection: close\r\n\r\n");
    mistreat(
        "endless bodies",
        PATIENT,
        move |_| Reply { bytes: head.clone().into_bytes(), then: Then::Repeat(&[b' '; 16 * 1024]) },
        is_error,
    );
}

#[test]
fn headers_without_end() {
    mistreat(
        "endless headers",
        SHORT,
        |_| Reply { bytes: b"HTTP/1.1 200 OK\r\n".to_vec(), then: Then::Repeat(b"x-header: something or other\r\n") },
        is_error,
    );
}

#[test]
fn streams_without_end() {
    mistreat(
        "endless comments",
        SHORT,
        |_| Reply { bytes: events(""), then: Then::Repeat(b": still at it\n\n") },
        is_error,
    );
}

#[test]
fn events_without_end() {
    mistreat(
        "endless events",
        PATIENT,
        |_| Reply { bytes: events("data: "), then: Then::Repeat(&[b'x'; 16 * 1024]) },
        is_error,
    );
}

#[test]
fn streams_of_notifications_without_end() {
    const LINE: &[u8] = b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{\"a\":\"b\"}}\n\n";
    mistreat("endless notifications", SHORT, |_| Reply { bytes: events(""), then: Then::Repeat(LINE) }, is_error);
}

#[test]
fn half_events() {
    mistreat(
        "half events",
        PATIENT,
        |message| Reply { bytes: events(&format!("id: 1\nretry: 1\ndata: {}", result(&message))), then: Then::Close },
        is_error,
    );
}

#[test]
fn streams_with_everything_before_the_answer() {
    mistreat(
        "noise before the answer",
        Calls { messages: 10, ..PATIENT },
        |message| {
            let mut text = String::new();
            for number in 0..40 {
                let id = number + 1_000_000;
                for noise in [
                    json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
                    json!({ "jsonrpc": "2.0", "id": [id], "method": "ping" }),
                    json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": id } }),
                ] {
                    text.push_str(&format!("data: {noise}\n\n"));
                }
                text.push_str("data: }{\n\nevent: other\ndata: x\n\n");
                if number % 4 == 0 {
                    let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
                    text.push_str(&format!("data: {ping}\n\n"));
                }
            }
            text.push_str(&format!("data: {}\n\n", result(&message)));
            Reply { bytes: events(&text), then: Then::Close }
        },
        is_fine,
    );
}

#[test]
fn redirects_in_circles() {
    mistreat(
        "redirects",
        PATIENT,
        |message| {
            let to = if message["id"].as_u64().unwrap_or_default() % 2 == 0 { "/mcp" } else { "http://127.0.0.1:9/x" };
            Reply { bytes: response(307, &format!("location: {to}\r\n"), ""), then: Then::GoOn }
        },
        is_error,
    );
}

#[test]
fn refusals_with_large_bodies() {
    let body = "no ".repeat(100_000);
    mistreat(
        "large refusals",
        PATIENT,
        move |_| Reply { bytes: response(403, "content-type: text/plain\r\n", &body), then: Then::GoOn },
        |outcome| matches!(outcome, Err(error) if error.to_string().len() < 1000),
    );
}

#[test]
fn connections_that_break() {
    mistreat(
        "broken connections",
        PATIENT,
        |message| {
            let number = message["id"].as_u64().unwrap_or_default();
            let bytes = match number % 3 {
                0 => Vec::new(),
                1 => b"HTTP/1.1 200".to_vec(),
                _ => b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{".to_vec(),
            };
            Reply { bytes, then: Then::Close }
        },
        is_error,
    );
}

#[test]
fn statuses_without_end() {
    mistreat(
        "informational responses",
        SHORT,
        |_| Reply { bytes: Vec::new(), then: Then::Repeat(b"HTTP/1.1 103 Early Hints\r\n\r\n") },
        is_error,
    );
}
