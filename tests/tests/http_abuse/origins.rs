//! Clients that pretend to be somebody else, or try to write where they may not.

use serde_json::json;

use crate::arena::SMALL;
use crate::heap::alone;
use crate::mistreat::mistreat;
use crate::tally::repeated;
use crate::wire::{TYPES, call, call_body, names, post};

/// A good call with other headers about where it comes from and goes to.
fn from(lines: &str) -> Vec<u8> {
    let body = call_body(1, "echo", r#"{"text":"x"}"#);
    let (names, length) = (names("tools/call", Some("echo")), body.len());
    format!("POST /mcp HTTP/1.1\r\n{lines}{TYPES}{names}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// DNS rebinding, and what proxies would say: only `Host` and `Origin` count, and nothing vouches for them.
#[test]
fn forged_hosts_and_origins() {
    let alone = alone();
    let local = "Host: localhost\r\n";
    let evil = "Host: evil.example.com\r\n";
    let cases = [
        (local.to_owned(), 200),
        (evil.to_owned(), 403),
        ("Host: localhost.evil.example.com\r\n".to_owned(), 403),
        ("Host: localhost@evil.example.com\r\n".to_owned(), 403),
        ("Host: localhost#.evil.example.com\r\n".to_owned(), 403),
        ("Host: localhost/evil.example.com\r\n".to_owned(), 403),
        ("Host: 127.0.0.1.evil.example.com\r\n".to_owned(), 403),
        ("Host: 0.0.0.0\r\n".to_owned(), 403),
        ("Host: 2130706433\r\n".to_owned(), 403),
        ("Host: 127.1\r\n".to_owned(), 403),
        ("Host: [::ffff:127.0.0.1]\r\n".to_owned(), 403),
        ("Host: \r\n".to_owned(), 403),
        ("Host: localhost.\r\n".to_owned(), 403),
        ("Host: l\u{f6}calhost\r\n".to_owned(), 403),
        (format!("Host: {}\r\n", "a".repeat(10_000)), 403),
        (format!("{local}{evil}"), 403),
        (format!("{evil}X-Forwarded-Host: localhost\r\n"), 403),
        (format!("{evil}Forwarded: host=localhost;for=127.0.0.1\r\n"), 403),
        (format!("{evil}X-Forwarded-For: 127.0.0.1\r\nX-Real-IP: 127.0.0.1\r\n"), 403),
        (format!("{evil}X-Original-Host: localhost\r\nX-Host: localhost\r\n"), 403),
        (format!("{local}X-Forwarded-Host: evil.example.com\r\n"), 200),
        (format!("{local}X-HTTP-Method-Override: DELETE\r\n"), 200),
        (format!("{local}Origin: http://evil.example.com\r\n"), 403),
        (format!("{local}Origin: http://localhost.evil.example.com\r\n"), 403),
        (format!("{local}Origin: http://localhost:80@evil.example.com\r\n"), 403),
        (format!("{local}Origin: null\r\n"), 403),
        (format!("{local}Origin: \r\n"), 403),
        (format!("{local}Origin: file://\r\n"), 403),
        (format!("{local}Origin: http://localhost http://evil.example.com\r\n"), 403),
        (format!("{local}Origin: http://localhost\r\nOrigin: http://evil.example.com\r\n"), 403),
        (format!("{local}Origin: http://localhost:5173\r\n"), 200),
        (format!("{local}Referer: http://evil.example.com/\r\nSec-Fetch-Site: cross-site\r\n"), 200),
    ];
    mistreat(&alone, "forged hosts and origins", SMALL, async |arena| {
        for (lines, status) in &cases {
            assert_eq!(arena.status(&from(lines)).await, Some(*status), "{lines}");
        }
        repeated(cases.len(), "requests")
    });
}

/// Whatever a client names, no header of an answer repeats it, and a text cannot end an event or a line of one.
#[test]
fn injection() {
    let alone = alone();
    let nasty = "x\r\nSet-Cookie: a=b\r\n\r\nHTTP/1.1 200 OK\r\n\r\ndata: {}\n\n";
    let escaped = json!(nasty).to_string();
    mistreat(&alone, "injection", SMALL, async |arena| {
        let mut client = arena.connect().await;
        let base64 = mcp_server::types::base64::encode(nasty.as_bytes());
        let name = format!("=?base64?{base64}?=");
        let bodies = [
            (names("tools/call", Some(&name)), call_body(1, &escaped[1..escaped.len() - 1], "{}"), 200),
            (names("tools/call", Some("echo")), call_body(nasty, "echo", r#"{"text":"x"}"#), 200),
            (names("tools/call", Some("echo")), call_body(1, "echo", &json!({"text": nasty}).to_string()), 200),
            (names("tools/call", Some("echo")), call_body(1, "echo", &json!({nasty: nasty}).to_string()), 200),
            (names(&name, None), call_body(1, "echo", "{}"), 400),
        ];
        for (headers, body, status) in &bodies {
            client.send(&post(headers, body.as_bytes())).await;
            let answer = client.answer().await.expect("an answer");
            assert_eq!(answer.status, *status, "{answer:?}");
            let known = ["content-type", "content-length", "date"];
            let mut lines = answer.head.lines().skip(1).filter(|line| !line.is_empty());
            assert!(lines.all(|line| line.split(':').next().is_some_and(|name| known.contains(&name))), "{answer:?}");
            assert!(answer.json().is_object() && !answer.body.contains(&b'\n'), "{answer:?}");
        }
        // The same in events: each is one line.
        let id = json!(nasty);
        let mut client = arena.connect().await;
        client.send(&call(id.clone(), "flood", r#"{"messages":1,"bytes":1}"#)).await;
        assert_eq!(client.head().await.map(|head| head.status), Some(200));
        let mut events = client.chunk().await.expect("progress");
        arena.gate.open(1);
        while let Some(chunk) = client.chunk().await {
            events.extend(chunk);
        }
        let events = String::from_utf8(events).expect("text");
        let events: Vec<&str> = events.split_terminator("\n\n").collect();
        assert!(events.iter().all(|event| event.starts_with("data: {") && event.lines().count() == 1), "{events:?}");
        let last: serde_json::Value = serde_json::from_str(&events[events.len() - 1][6..]).expect("JSON");
        assert_eq!(last["id"], id);
        repeated(bodies.len() + 1, "requests")
    });
}
