//! Clients that ask and do not read.

use std::time::Duration;

use mcp_testkit::envelope::cancelled;
use serde_json::{Value, json};

use crate::harness::{MIB, Peer, call, code, is_answer, modern, nap, request, text, with_progress};
use crate::rounds::rounds;
use crate::tally::repeated;

/// For what is not going to happen.
const SHORT: Duration = Duration::from_millis(300);

/// Waits until the server neither computes nor reads.
fn stuck(peer: &Peer) {
    let (mut before, mut same) = (None, 0);
    for _ in 0..400 {
        let now = Some(peer.activity());
        same = if now == before && peer.is_asleep() { same + 1 } else { 0 };
        if same == 4 {
            return;
        }
        before = now;
        nap(Duration::from_millis(50));
    }
    panic!("it does not come to rest");
}

#[test]
fn pings_without_reading_the_answers() {
    const PINGS: usize = 100_000;
    let mut peer = Peer::legacy();
    let idle = peer.settled();
    let pings: String =
        (0..PINGS).map(|n| format!("{{\"jsonrpc\":\"2.0\",\"id\":{n},\"method\":\"ping\"}}\n")).collect();
    rounds("pings without reading the answers", &mut peer, |peer| {
        peer.write(pings.as_bytes());
        assert!(!peer.is_written_within(SHORT), "the server does not read on");
        stuck(peer);
        let memory = peer.memory();
        assert!(memory.peak < idle.peak + 4 * MIB, "{idle:?} {memory:?}");
        for n in 0..PINGS {
            let answer = peer.recv();
            assert!(is_answer(&answer, &json!(n)), "{n}: {answer}");
        }
        repeated(PINGS, "requests")
    });
    let memory = peer.settled();
    assert!(memory.peak < idle.peak + 4 * MIB, "{idle:?} {memory:?}");
    peer.finish();
}

/// Refusals are answers, too.
#[test]
fn rubbish_without_reading_the_answers() {
    const LINES: usize = 5000;
    let mut peer = Peer::legacy();
    let idle = peer.settled();
    // Each answer repeats what was asked for, so it is as long.
    let line = |n| request(n, &"m".repeat(2000), json!({})).to_string() + "\n";
    rounds("rubbish without reading the answers", &mut peer, |peer| {
        peer.write((0..LINES).map(line).collect::<String>());
        assert!(!peer.is_written_within(SHORT));
        stuck(peer);
        let memory = peer.memory();
        assert!(memory.peak < idle.peak + 8 * MIB, "{idle:?} {memory:?}");
        for n in 0..LINES {
            let answer = peer.recv();
            assert!(is_answer(&answer, &json!(n)) && code(&answer) == -32601);
        }
        repeated(LINES, "requests")
    });
    peer.finish();
}

/// Large results to nobody: the server does not make more of them than it may keep.
#[test]
fn large_results_that_nobody_reads() {
    const BYTES: usize = 1024 * 1024;
    let mut peer = Peer::legacy();
    let idle = peer.settled();
    rounds("large results that nobody reads", &mut peer, |peer| {
        peer.send_all((0..100).map(|n| call(n, "big", json!({"bytes": BYTES}))));
        // A small request behind it waits for them, but a server that is read from again answers all of it.
        peer.send(&request("behind", "ping", json!({})));
        stuck(peer);
        let memory = peer.memory();
        assert!(memory.peak < idle.peak + 64 * MIB, "{idle:?} {memory:?}");
        let mut seen: Vec<Value> = Vec::new();
        for _ in 0..101 {
            let answer = peer.recv();
            if answer["id"] != "behind" {
                assert_eq!(text(&answer).len(), BYTES);
            }
            seen.push(answer["id"].clone());
        }
        assert!((0..100).all(|n| seen.contains(&json!(n))) && seen.contains(&json!("behind")));
        repeated(101, "requests")
    });
    let memory = peer.settled();
    assert!(memory.peak < idle.peak + 64 * MIB, "reading does not make it grow: {idle:?} {memory:?}");
    assert!(memory.now < idle.now + 4 * MIB, "what was sent is given back: {idle:?} {memory:?}");
    peer.finish();
}

/// Progress that nobody reads is dropped; the answer is not.
#[test]
fn progress_that_nobody_reads() {
    const MESSAGES: usize = 100_000;
    for burst in [1, 50_000] {
        let mut peer = Peer::legacy();
        let idle = peer.settled();
        rounds(&format!("progress of one call that nobody reads, in bursts of {burst}"), &mut peer, |peer| {
            let flood = call(1, "flood", json!({"messages": MESSAGES, "bytes": 50, "burst": burst}));
            peer.send(&with_progress(flood, 1));
            peer.send(&request("after", "ping", json!({})));
            stuck(peer);
            let memory = peer.memory();
            assert!(memory.peak < idle.peak + 4 * MIB, "{idle:?} {memory:?}");
            let (mut last, mut count, mut open) = (0, 0, 2);
            while open > 0 {
                let message = peer.recv();
                if message["method"] == "notifications/progress" {
                    let progress = message["params"]["progress"].as_u64().expect("a number");
                    assert!(progress > last, "it grows");
                    (last, count) = (progress, count + 1);
                } else {
                    open -= 1;
                    if is_answer(&message, &json!(1)) {
                        assert_eq!(text(&message), format!("reported {MESSAGES} times"));
                        assert_eq!(json!(last), MESSAGES, "the newest is kept");
                    }
                }
            }
            assert!(count < 10_000, "{count}");
            repeated(MESSAGES, "notifications")
        });
        peer.finish();
    }
}

/// All that run report at once, each message as large as a token can make it.
#[test]
fn progress_with_huge_tokens_that_nobody_reads() {
    let mut peer = Peer::legacy();
    let idle = peer.settled();
    let flood = |peer: &mut Peer| {
        for n in 0..30 {
            let flood = call(n, "flood", json!({"messages": 80, "bytes": 1, "burst": 10, "wait": true}));
            peer.send(&with_progress(flood, format!("{n}{}", "t".repeat(60_000))));
        }
        // All of them have begun when the next one is answered.
        assert!(peer.between(b"").is_empty());
        peer.send(&call("go", "go", json!({})));
        stuck(peer);
        let memory = peer.memory();
        assert!(memory.peak < idle.peak + 64 * MIB, "{idle:?} {memory:?}");
        let mut open = 31;
        while open > 0 {
            let message = peer.recv();
            open -= u32::from(message.get("method").is_none());
        }
        repeated(30 * 80, "notifications")
    };
    // What the allocator keeps of 60 KB each is there after the first of them.
    flood(&mut peer);
    rounds("progress with huge tokens that nobody reads", &mut peer, flood);
    peer.finish();
}

/// Others are served as before once the client reads again, and who is cancelled meanwhile is not answered.
#[test]
fn a_client_that_reads_again() {
    let mut peer = Peer::legacy();
    rounds("clients that read again", &mut peer, |peer| {
        peer.send(&call("big", "big", json!({"bytes": 1_000_000})));
        peer.send_all((0..45).map(|n| call(n, "slow", json!({"ms": 10}))));
        peer.send_all((50..95).flat_map(|n| [modern(call(n, "hang", json!({}))), cancelled(n)]));
        nap(Duration::from_millis(100));
        assert_eq!(text(&peer.recv()).len(), 1_000_000);
        for _ in 0..45 {
            assert_eq!(text(&peer.recv()), "slept for 10 ms");
        }
        peer.assert_alive();
        repeated(1 + 2 * 45, "requests")
    });
    peer.finish();
}

/// A question has its time even if nobody reads it.
#[test]
fn a_question_that_nobody_reads() {
    let mut peer = Peer::legacy();
    rounds("questions that nobody reads", &mut peer, |peer| {
        peer.send(&call(1, "big", json!({"bytes": 1_000_000})));
        peer.send(&call(2, "ask", json!({"limit": 100, "after": 200})));
        nap(Duration::from_millis(1500));
        let waited: u64 = text(&peer.answer(&json!(2))).parse().expect("milliseconds");
        assert!((50..1000).contains(&waited), "{waited} ms");
        peer.answer(&json!(1));
        assert_eq!(peer.recv()["method"], "roots/list");
        assert_eq!(peer.recv()["method"], "notifications/cancelled");
        repeated(2, "requests")
    });
    peer.finish();
}
