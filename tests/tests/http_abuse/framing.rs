//! What is not HTTP, or hardly.

use crate::arena::{Arena, SMALL};
use crate::heap::{Alone, alone};
use crate::mistreat::mistreat;
use crate::tally::repeated;
use crate::wire::{TYPES, call, call_body, names, post};

/// How the server reacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaction {
    /// It answers, and goes on reading.
    Goes(u16),
    /// It answers, and closes the connection.
    Ends(u16),
    /// It closes the connection.
    Closes,
}

use Reaction::{Closes, Ends, Goes};

/// Sends something on a connection of its own, and a request behind it if the first thing was answered.
async fn react(arena: &Arena, bytes: &[u8]) -> Reaction {
    let mut client = arena.connect().await;
    client.try_send(bytes).await;
    let Some(answer) = client.answer().await else { return Closes };
    client.try_send(&call(2, "echo", r#"{"text":"x"}"#)).await;
    match client.answer().await {
        Some(next) if next.status == 200 => Goes(answer.status),
        // What is left of the first thing is no request.
        Some(next) => {
            assert!(next.status == 400 && client.is_closed().await, "{next:?}");
            Ends(answer.status)
        }
        None => Ends(answer.status),
    }
}

/// A request with these lines between the first and the body.
fn with(lines: &str, body: &str) -> Vec<u8> {
    format!("POST /mcp HTTP/1.1\r\n{lines}\r\n{body}").into_bytes()
}

/// A good request but for one more header.
fn plus(header: &[u8]) -> Vec<u8> {
    let body = call_body(1, "echo", r#"{"text":"x"}"#);
    let head = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{TYPES}{}", names("tools/call", Some("echo")));
    let length = format!("\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), header, length.as_bytes(), body.as_bytes()].concat()
}

/// A good request but for its first line.
fn first_line(line: &str) -> Vec<u8> {
    let good = String::from_utf8(plus(b"X-More: 1")).expect("text");
    good.replacen("POST /mcp HTTP/1.1", line, 1).into_bytes()
}

/// A good request but for what says how long it is.
fn framed(lines: &str, body: &str) -> Vec<u8> {
    with(&format!("Host: localhost\r\n{TYPES}{}{lines}", names("tools/call", Some("echo"))), body)
}

fn check(alone: &Alone, name: &str, cases: Vec<(&str, Vec<u8>, Reaction)>) {
    mistreat(alone, name, SMALL, async |arena| {
        let mut wrong = Vec::new();
        for (case, bytes, expected) in &cases {
            let reaction = react(arena, bytes).await;
            if reaction != *expected {
                wrong.push(format!("{case}: {reaction:?}, not {expected:?}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        repeated(cases.len(), "requests")
    });
}

#[test]
fn first_lines() {
    let alone = alone();
    let long = format!("POST /mcp?{} HTTP/1.1", "x".repeat(100_000));
    check(
        &alone,
        "first lines",
        vec![
            ("good", first_line("POST /mcp HTTP/1.1"), Goes(200)),
            ("rubbish", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(), Ends(400)),
            ("zeros", vec![0; 1000], Ends(400)),
            ("a line of JSON", b"{\"jsonrpc\":\"2.0\"}\r\n\r\n".to_vec(), Ends(400)),
            ("no version", first_line("POST /mcp"), Ends(400)),
            ("version 0.9", first_line("POST /mcp HTTP/0.9"), Ends(400)),
            ("version 1.7", first_line("POST /mcp HTTP/1.7"), Ends(400)),
            ("version 2.0 in a line", first_line("POST /mcp HTTP/2.0"), Ends(400)),
            ("a method with a space", first_line("PO ST /mcp HTTP/1.1"), Ends(400)),
            ("a method that nobody knows", first_line("BREW /mcp HTTP/1.1"), Goes(405)),
            ("a method in small letters", first_line("post /mcp HTTP/1.1"), Goes(405)),
            ("a method without end", [b"A".repeat(100_000), b" / HTTP/1.1\r\n\r\n".to_vec()].concat(), Ends(431)),
            ("GET", first_line("GET /mcp HTTP/1.1"), Goes(405)),
            ("DELETE", first_line("DELETE /mcp HTTP/1.1"), Goes(405)),
            ("CONNECT", first_line("CONNECT localhost:80 HTTP/1.1"), Goes(404)),
            ("an asterisk", first_line("OPTIONS * HTTP/1.1"), Goes(404)),
            ("another path", first_line("POST /mcp/ HTTP/1.1"), Goes(404)),
            ("a path with dots", first_line("POST /x/../mcp HTTP/1.1"), Goes(404)),
            ("a path that is encoded", first_line("POST /%6dcp HTTP/1.1"), Goes(404)),
            ("an address for us", first_line("POST http://localhost/mcp HTTP/1.1"), Goes(200)),
            ("an address for others", first_line("POST http://evil.example.com/mcp HTTP/1.1"), Goes(403)),
            ("an address with a user", first_line("POST http://localhost@evil.example.com/mcp HTTP/1.1"), Goes(403)),
            ("an address of 100 KB", first_line(&long), Ends(431)),
            ("an address with a line break", first_line("POST /mcp\nX: y HTTP/1.1"), Ends(400)),
            ("an address with a zero", first_line("POST /mcp\0 HTTP/1.1"), Ends(400)),
        ],
    );
}

#[test]
fn headers() {
    let alone = alone();
    let many = "X-Many: 1\r\n".repeat(10_000);
    let some = "X-Some: 1\r\n".repeat(90);
    let megabyte = [b"X-Long: ".to_vec(), b"x".repeat(1 << 20)].concat();
    check(
        &alone,
        "headers",
        vec![
            ("a zero in a value", plus(b"X-Bad: a\0b"), Ends(400)),
            ("a zero in a name", plus(b"X-B\0ad: a"), Ends(400)),
            ("a control character in a value", plus(b"X-Bad: a\x01b"), Ends(400)),
            ("an escape in a value", plus(b"X-Bad: \x1b[31m"), Ends(400)),
            ("a delete in a value", plus(b"X-Bad: a\x7fb"), Ends(400)),
            ("a tab in a value", plus(b"X-Tab: a\tb"), Goes(200)),
            ("what is not ASCII in a value", plus(b"X-Other: \xff\xfe"), Goes(200)),
            ("a space in a name", plus(b"X Bad: a"), Ends(400)),
            ("a space before the colon", plus(b"X-Bad : a"), Ends(400)),
            ("no colon", plus(b"X-Bad"), Ends(400)),
            ("no name", plus(b": a"), Ends(400)),
            ("a folded line", plus(b"X-Bad: a\r\n b"), Ends(400)),
            ("a lone carriage return", plus(b"X-Bad: a\rX-Other: b"), Ends(400)),
            ("a lone line feed", plus(b"X-One: a\nX-Two: b"), Goes(200)),
            ("a header of 1 MB", plus(&megabyte), Ends(431)),
            ("90 headers more", plus(some.trim_end().as_bytes()), Goes(200)),
            ("10,000 headers", plus(many.trim_end().as_bytes()), Ends(431)),
            ("a huge cookie", plus(format!("Cookie: {}", "c=d;".repeat(30_000)).as_bytes()), Ends(431)),
            ("no host", with(&format!("{TYPES}Content-Length: 2\r\n"), "{}"), Goes(403)),
            ("two hosts", plus(b"Host: localhost"), Goes(403)),
            ("an upgrade", plus(b"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk"), Goes(200)),
            ("a web socket", plus(b"Connection: Upgrade\r\nUpgrade: websocket"), Goes(200)),
            ("an expectation that nobody knows", plus(b"Expect: wonders"), Goes(200)),
            ("types twice", plus(b"Content-Type: application/json"), Goes(415)),
            ("a coding", plus(b"Content-Encoding: gzip"), Goes(415)),
            ("a version twice", plus(b"MCP-Protocol-Version: 2026-07-28"), Goes(400)),
            ("the end of the connection", plus(b"Connection: close"), Ends(200)),
        ],
    );
}

#[test]
fn lengths() {
    let alone = alone();
    let body = call_body(1, "echo", r#"{"text":"x"}"#);
    let length = body.len();
    let chunked = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let chunks = "Transfer-Encoding: chunked\r\n";
    check(
        &alone,
        "lengths",
        vec![
            ("no length, no body", framed("", ""), Goes(400)),
            ("a length that is no number", framed("Content-Length: x\r\n", &body), Ends(400)),
            ("a negative length", framed("Content-Length: -1\r\n", &body), Ends(400)),
            ("a length with a sign", framed(&format!("Content-Length: +{length}\r\n"), &body), Ends(400)),
            ("a hexadecimal length", framed("Content-Length: 0x10\r\n", &body), Ends(400)),
            ("a length of 30 digits", framed(&format!("Content-Length: {}\r\n", "9".repeat(30)), &body), Ends(400)),
            ("the greatest length", framed("Content-Length: 18446744073709551615\r\n", &body), Ends(431)),
            ("a length of a terabyte", framed("Content-Length: 1099511627776\r\n", &body), Ends(413)),
            ("two lengths", framed(&format!("Content-Length: {length}\r\nContent-Length: 5\r\n"), &body), Ends(400)),
            ("a list of lengths", framed(&format!("Content-Length: {length}, 5\r\n"), &body), Ends(400)),
            ("a length that is too small", framed("Content-Length: 5\r\n", &body), Ends(400)),
            ("chunks", framed(chunks, &chunked), Goes(200)),
            ("chunks with an extension", framed(chunks, &chunked.replacen("\r\n", ";a=b\r\n", 1)), Goes(200)),
            ("chunks with trailers", framed(chunks, &chunked.replace("\r\n0\r\n", "\r\n0\r\nHost: x\r\n")), Goes(200)),
            ("a chunk without a size", framed(chunks, "\r\n\r\n"), Ends(400)),
            ("a chunk whose size is no number", framed(chunks, "zz\r\n{}\r\n0\r\n\r\n"), Ends(400)),
            ("a chunk with a negative size", framed(chunks, "-1\r\n{}\r\n0\r\n\r\n"), Ends(400)),
            ("a chunk that is too large", framed(chunks, "ffffffffffffffffff\r\n{}\r\n0\r\n\r\n"), Ends(400)),
            ("a chunk that is longer than it says", framed(chunks, "2\r\n{}{}\r\n0\r\n\r\n"), Ends(400)),
            ("an extension without end", framed(chunks, &format!("2;{}", "x".repeat(100_000))), Ends(400)),
            ("trailers without end", framed(chunks, &format!("0\r\nX: {}", "x".repeat(100_000))), Ends(400)),
            ("another coding", framed("Transfer-Encoding: gzip\r\n", &body), Ends(400)),
            ("chunks before another coding", framed("Transfer-Encoding: chunked, gzip\r\n", &body), Ends(400)),
            ("chunks twice", framed("Transfer-Encoding: chunked, chunked\r\n", &chunked), Goes(200)),
            ("chunks that are misspelt", framed("Transfer-Encoding: xchunked\r\n", &chunked), Ends(400)),
            ("a length and chunks", framed(&format!("Content-Length: {length}\r\n{chunks}"), &chunked), Ends(200)),
            (
                "chunks and a length that hides a request",
                framed(&format!("{chunks}Content-Length: {}\r\n", chunked.len()), &format!("{chunked}{smuggled}")),
                Ends(200),
            ),
            (
                "chunks in HTTP/1.0",
                {
                    let request = String::from_utf8(framed(chunks, &chunked)).expect("text");
                    request.replacen("HTTP/1.1", "HTTP/1.0", 1).into_bytes()
                },
                Ends(400),
            ),
        ],
    );
}

/// Requests that follow each other without waiting are answered in order, and each is what it says it is.
#[test]
fn pipelines() {
    let alone = alone();
    mistreat(&alone, "pipelines", SMALL, async |arena| {
        let mut client = arena.connect().await;
        let mut all = Vec::new();
        for id in 0..50 {
            all.extend(call(id, "echo", r#"{"text":"x"}"#));
            all.extend(post(&names("tools/call", Some("echo")), b"{"));
        }
        client.send(&all).await;
        for id in 0..50 {
            let answer = client.answer().await.expect("an answer");
            assert_eq!((answer.status, answer.json()["id"].as_u64()), (200, Some(id)));
            assert_eq!(client.answer().await.expect("an answer").status, 400);
        }
        repeated(100, "requests")
    });
}

/// Who asks whether to send a body is told to, or is told at once that it is not wanted.
#[test]
fn expectations() {
    let alone = alone();
    mistreat(&alone, "expectations", SMALL, async |arena| {
        let body = call_body(1, "echo", r#"{"text":"x"}"#);
        let request = |length: usize, more: &str| {
            let names = names("tools/call", Some("echo"));
            let lines = format!("{TYPES}{names}{more}Expect: 100-continue\r\nContent-Length: {length}\r\n");
            with(&lines, "")
        };
        let mut client = arena.connect().await;
        client.send(&request(body.len(), "Host: localhost\r\n")).await;
        assert_eq!(client.answer().await.map(|answer| answer.status), Some(100));
        client.send(body.as_bytes()).await;
        assert_eq!(client.answer().await.map(|answer| answer.status), Some(200));
        for (length, more, status) in [
            ((4 << 20) + 1, "Host: localhost\r\n", 413),
            (body.len(), "Host: evil.example.com\r\n", 403),
            (body.len(), "Host: localhost\r\nOrigin: http://evil.example.com\r\n", 403),
            (body.len(), "Host: localhost\r\nContent-Encoding: br\r\n", 415),
        ] {
            assert_eq!(arena.status(&request(length, more)).await, Some(status), "{more}");
        }
        repeated(5, "requests")
    });
}
