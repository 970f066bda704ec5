//! Bodies that are too large, too slow, or too many.

use std::time::Duration;

use mcp_transport_http::HttpOptions;

use crate::arena::{SMALL, alone, mistreat, mistreat_with};
use crate::wire::{Raw, call_body, names, post};

const LIMIT: usize = 4 << 20;

/// What is more than the limit is refused: at once if it says so, else when it is reached.
#[test]
fn more_than_the_limit() {
    let alone = alone();
    let names = names("tools/call", Some("echo"));
    let sized = post(&names, &vec![b' '; LIMIT + 1]);
    let head = sized.len() - (LIMIT + 1);
    let mut chunked = post(&format!("{names}Transfer-Encoding: chunked\r\n"), b"");
    chunked.extend(format!("{:x}\r\n{}\r\n0\r\n\r\n", LIMIT + 1, " ".repeat(LIMIT + 1)).into_bytes());
    let chunked = String::from_utf8(chunked).expect("text").replacen("Content-Length: 0\r\n", "", 1);
    mistreat(&alone, "more than the limit", SMALL, async |arena| {
        // The answer comes before the body.
        let mut client = arena.connect().await;
        client.send(&sized[..head]).await;
        let answer = client.answer().await.expect("an answer");
        assert!(answer.status == 413 && answer.json()["error"]["message"].as_str().is_some(), "{answer:?}");
        assert!(client.is_closed().await, "the rest is not read");
        for request in [&sized[..], chunked.as_bytes()] {
            let mut client = arena.connect().await;
            client.try_send(request).await;
            let answer = client.answer().await.expect("an answer");
            assert_eq!(answer.status, 413);
            arena.honest().await;
        }
    });
}

/// Chunks of one byte each, with as much around them.
#[test]
fn tiny_chunks() {
    let alone = alone();
    let body = call_body(1, "echo", &format!(r#"{{"text":"{}"}}"#, "x".repeat(30_000)));
    let request = post(&format!("{}Transfer-Encoding: chunked\r\n", names("tools/call", Some("echo"))), b"");
    let mut request = String::from_utf8(request).expect("text").replacen("Content-Length: 0\r\n", "", 1);
    for byte in body.chars() {
        request.push_str("1\r\n");
        request.push(byte);
        request.push_str("\r\n");
    }
    request.push_str("0\r\n\r\n");
    mistreat(&alone, "tiny chunks", SMALL, async |arena| {
        assert_eq!(arena.status(request.as_bytes()).await, Some(200));
    });
}

/// As many bodies as may be on their way, and then more: those are refused, and whoever sends all at once is not.
#[test]
fn more_than_may_be_on_their_way() {
    const UPLOADS: usize = 16;
    let alone = alone();
    let options = HttpOptions::default().uploads(UPLOADS).body_time(Duration::from_secs(3600));
    let body = call_body(1, "echo", &format!(r#"{{"text":"{}"}}"#, "x".repeat(300_000)));
    let request = post(&names("tools/call", Some("echo")), body.as_bytes());
    let part = request.len() - 10;
    mistreat_with(&alone, "more than may be on their way", SMALL, options, async |arena| {
        let mut slow: Vec<Raw> = Vec::new();
        let mut refused = 0;
        for _ in 0..UPLOADS + 20 {
            let mut client = arena.connect().await;
            client.try_send(&request[..part]).await;
            slow.push(client);
        }
        arena.honest().await;
        // The first to come are not always the first to be read: whichever were taken are served to the end.
        for client in &mut slow {
            client.try_send(&request[part..]).await;
        }
        let mut served = 0;
        for client in &mut slow {
            match client.answer().await.expect("an answer").status {
                200 => served += 1,
                503 => refused += 1,
                status => panic!("{status}"),
            }
        }
        assert!(served >= UPLOADS && served + refused == UPLOADS + 20, "{served} were served, {refused} refused");
    });
}
