//! Lines that are too long, and inputs that end too early.

use std::time::Duration;

use serde_json::json;

use crate::harness::{LIMIT, MIB, Peer, call, code, request, text};
use crate::rounds::{processes, rounds};
use crate::tally::repeated;

const LINE: usize = 16 * 1024 * 1024;

/// A call of `echo` whose line has exactly so many bytes.
fn echo_of(bytes: usize) -> Vec<u8> {
    let (head, tail) =
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":""#, r#""}}}"#);
    let text = "x".repeat(bytes - head.len() - tail.len());
    let mut line = [head, &text, tail].concat().into_bytes();
    assert_eq!(line.len(), bytes);
    line.push(b'\n');
    line
}

/// As much as a line may have is served, and does not stay in memory.
#[test]
fn a_line_at_the_limit_is_served() {
    let mut peer = Peer::legacy();
    let idle = peer.settled();
    rounds("lines at the limit", &mut peer, |peer| {
        let answers = peer.between(&echo_of(LINE));
        assert_eq!(answers.len(), 1);
        assert!(text(&answers[0]).len() > LINE - 200);
        repeated(1, "lines")
    });
    let memory = peer.settled();
    assert!(memory.peak < 160 * MIB, "{memory:?}");
    assert!(memory.now < idle.now + 4 * MIB, "{memory:?}");
    peer.finish();
}

/// One byte more is refused, once, and nothing of it stays.
#[test]
fn a_line_beyond_the_limit_is_refused_once() {
    let mut peer = Peer::legacy();
    let idle = peer.settled();
    rounds("lines beyond the limit", &mut peer, |peer| {
        for bytes in [LINE + 1, LINE + 64 * 1024, 3 * LINE] {
            let answers = peer.between(&echo_of(bytes));
            assert_eq!(answers.len(), 1, "{bytes}");
            assert_eq!(code(&answers[0]), -32600, "{bytes}: {}", answers[0]);
            let message = answers[0]["error"]["message"].as_str().expect("a message");
            assert!(message.starts_with(&format!("a message must not have more than {LINE} bytes")), "{message}");
            assert_eq!(answers[0]["id"], 1, "it is told whose request it is");
        }
        repeated(3, "lines")
    });
    let memory = peer.settled();
    assert!(memory.peak < idle.peak + 40 * MIB, "{memory:?}");
    assert!(memory.now < idle.now + 4 * MIB, "the buffer is given back: {memory:?}");
    peer.finish();
}

/// A line that never ends is refused when it has passed the limit, not when it ends.
#[test]
fn a_line_of_a_gigabyte_is_skipped() {
    let mut peer = Peer::legacy();
    let idle = peer.settled();
    rounds("lines of a gigabyte", &mut peer, |peer| {
        peer.write(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":""#);
        peer.write_times(vec![b'x'; 1 << 20], 1024);
        assert_eq!(code(&peer.recv()), -32600, "it is told at once");
        assert!(peer.is_written_within(3 * LIMIT), "all of it is read");
        let during = peer.memory();
        assert!(during.now < idle.now + 4 * MIB, "{idle:?} {during:?}");
        peer.write("\"}}\n");
        repeated(1, "lines")
    });
    let memory = peer.settled();
    assert!(memory.peak < idle.peak + 40 * MIB, "{memory:?}");
    assert!(memory.now < idle.now + 4 * MIB, "{memory:?}");
    peer.finish();
}

/// Nothing but spaces is nothing, but not without limit.
#[test]
fn a_blank_line_has_a_limit_too() {
    let mut peer = Peer::legacy();
    let mut blank = vec![b' '; LINE + 1];
    blank.push(b'\n');
    rounds("blank lines", &mut peer, |peer| {
        assert!(peer.between(&blank[1..]).is_empty());
        assert_eq!(peer.between(&blank).len(), 1);
        repeated(2, "lines")
    });
    peer.finish();
}

/// Bytes may come one by one, and a line may be cut anywhere.
#[test]
fn pieces_do_not_matter() {
    let mut peer = Peer::legacy();
    let line = format!("{}\r\n", call(1, "echo", json!({"text": "päckchen \u{1f600}"})));
    rounds("pieces of lines", &mut peer, |peer| {
        for byte in line.bytes() {
            peer.write([byte]);
            assert!(peer.is_written_within(LIMIT));
        }
        assert_eq!(text(&peer.answer(&json!(1))), "päckchen \u{1f600}");
        repeated(line.len(), "bytes written one by one")
    });
    peer.finish();
}

/// What was asked before the input ended is answered, and so is what the end cut off.
#[test]
fn half_a_message_and_the_end() {
    processes("half a message and the end", || {
        let mut peer = Peer::legacy();
        peer.send(&call(1, "slow", json!({"ms": 50})));
        peer.write(r#"{"jsonrpc":"2.0","id":2,"method":"pi"#);
        peer.close_stdin();
        let mut answers = peer.rest();
        // On a busy machine the call may end before the end of the input is seen.
        answers.sort_by_key(|answer| answer.get("error").is_none());
        assert_eq!(answers.len(), 2, "{answers:?}");
        assert_eq!(code(&answers[0]), -32700);
        assert_eq!(text(&answers[1]), "slept for 50 ms");
        peer.finish();
        repeated(1, "connections")
    });
}

/// The last line needs no end.
#[test]
fn a_whole_message_and_the_end() {
    processes("a whole message and the end", || {
        let mut peer = Peer::legacy();
        peer.write(request(1, "ping", json!({})).to_string());
        peer.close_stdin();
        let answers = peer.rest();
        assert_eq!((answers.len(), &answers[0]["id"]), (1, &json!(1)));
        peer.finish();
        repeated(1, "connections")
    });
}

/// An end without a beginning, and one in the middle of a line that is too long.
#[test]
fn nothing_and_the_end() {
    processes("nothing and the end", || {
        Peer::start().finish();
        let mut peer = Peer::start();
        peer.assert_alive();
        peer.write(vec![b'x'; LINE + 1]);
        assert_eq!(code(&peer.recv()), -32600);
        assert!(peer.recv_within(Duration::from_millis(50)).is_none());
        peer.finish();
        repeated(2, "connections")
    });
}
