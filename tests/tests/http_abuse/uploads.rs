//! Bodies that are too large, too slow, or too many.

use std::time::Duration;

use mcp_transport_http::HttpOptions;

use crate::arena::SMALL;
use crate::heap::alone;
use crate::http2::{Streams, request};
use crate::mistreat::{mistreat, mistreat_once, mistreat_with};
use crate::tally::repeated;
use crate::wire::{Raw, call, call_body, names, post, within};

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
        client.finish_quietly().await;
        assert!(client.is_closed().await);
        for request in [&sized[..], chunked.as_bytes()] {
            let mut client = arena.connect().await;
            client.try_send(request).await;
            let answer = client.answer().await.expect("an answer");
            assert_eq!(answer.status, 413);
            arena.honest().await;
        }
        repeated(3, "requests")
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
        repeated(1, "requests")
    });
}

/// As many bodies as may be on their way, and then more: those are refused, and whoever sends all at once is not.
#[test]
fn more_than_may_be_on_their_way() {
    const UPLOADS: usize = 16;
    let alone = alone();
    let options = HttpOptions::default().max_uploads(UPLOADS).body_timeout(Duration::from_secs(3600));
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
        repeated(UPLOADS + 20, "requests")
    });
}

/// A client that sends all of a request before it reads anything sees why it was refused, whatever the reason. It may
/// go on with the connection.
// covers: INT-2
#[test]
fn int_2_refusals_reach_those_who_send_first() {
    const BYTES: usize = 24 << 20;
    let alone = alone();
    let names = names("tools/call", Some("echo"));
    let sized = |more: &str| {
        let head = post(&format!("{names}{more}"), b"");
        let head = String::from_utf8(head).expect("text");
        head.replacen("Content-Length: 0\r\n", &format!("Content-Length: {BYTES}\r\n"), 1)
    };
    let chunked = sized("Transfer-Encoding: chunked\r\n").replacen(&format!("Content-Length: {BYTES}\r\n"), "", 1);
    let cases = [
        ("a large body", sized(""), 413),
        ("chunks", chunked, 413),
        ("another host", sized("").replacen("Host: localhost", "Host: evil.example", 1), 403),
        ("another path", sized("").replacen(" /mcp ", " /other ", 1), 404),
        ("another verb", sized("").replacen("POST", "PUT", 1), 405),
        ("another type", sized("").replacen("application/json\r\n", "text/plain\r\n", 1), 415),
    ];
    let piece = vec![b' '; 1 << 20];
    mistreat_once(&alone, "refusals of those who send first", SMALL, async |arena| {
        for (case, head, status) in &cases {
            let mut client = arena.connect().await;
            client.send(head.as_bytes()).await;
            for _ in 0..BYTES >> 20 {
                if head.contains("chunked") {
                    client.send(format!("{:x}\r\n", piece.len()).as_bytes()).await;
                    client.send(&piece).await;
                    client.send(b"\r\n").await;
                } else {
                    client.send(&piece).await;
                }
            }
            if head.contains("chunked") {
                client.send(b"0\r\n\r\n").await;
            }
            let answer = client.answer().await.unwrap_or_else(|| panic!("{case}: no answer"));
            assert_eq!(answer.status, *status, "{case}: {answer:?}");
            client.send(&call(1, "echo", r#"{"text":"x"}"#)).await;
            assert_eq!(client.answer().await.map(|answer| answer.status), Some(200), "{case}");
        }
        // Who asks first is not made to send.
        let mut client = arena.connect().await;
        client.send(sized("Expect: 100-continue\r\n").as_bytes()).await;
        assert_eq!(client.answer().await.map(|answer| answer.status), Some(413));
        assert!(client.is_closed().await);
        // Over HTTP/2 the stream is not reset.
        let mut streams = Streams::connect(arena.address, 1).await;
        let (answer, mut stream) = streams.begin(request("tools/call", Some("echo"))).await.expect("it is open");
        stream.send_data(vec![b' '; BYTES].into(), true).expect("it is open");
        let answer = within(answer).await.expect("an answer");
        assert_eq!(answer.status(), 413);
        let reset = std::future::poll_fn(|cx| stream.poll_reset(cx));
        let reset = tokio::time::timeout(Duration::from_millis(500), reset).await;
        assert!(!matches!(reset, Ok(Ok(_))), "it can send all of it: {reset:?}");
        streams.close().await;
        repeated(cases.len() + 2, "requests")
    });
}
