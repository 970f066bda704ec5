//! More than anybody needs, sent by a client that at least reads.

use std::time::Duration;

use mcp_testkit::envelope::cancelled;
use serde_json::{Value, json};

use crate::harness::{LIMIT, MIB, Peer, call, code, is_answer, modern, now, request, text};
use crate::rounds::{LEFT, rounds};
use crate::tally::repeated;

/// How many messages there are in a round.
const MANY: usize = 20_000;

/// What is not to be answered costs nothing but the time to read it.
#[test]
fn messages_that_are_not_answered() {
    let mut peer = Peer::legacy();
    let idle = peer.settled();
    let lines = [
        ("cancellations", cancelled(4711)),
        ("cancellations of texts", cancelled("x".repeat(50))),
        ("notifications", json!({"jsonrpc": "2.0", "method": "notifications/nobody/knows"})),
        ("responses", json!({"jsonrpc": "2.0", "id": 1, "result": {}})),
        ("errors", json!({"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "no"}})),
        (
            "progress",
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 2}}),
        ),
    ];
    for (name, line) in lines {
        rounds(name, &mut peer, |peer| {
            peer.send(&call(1, "slow", json!({"ms": 1})));
            peer.write_times(format!("{line}\n").repeat(100), MANY / 100);
            peer.send(&call(2, "echo", json!({"text": "after"})));
            assert_eq!(text(&peer.answer(&json!(2))), "after");
            assert_eq!(text(&peer.answer(&json!(1))), "slept for 1 ms");
            repeated(MANY, "messages")
        });
    }
    let memory = peer.settled();
    assert!(memory.peak < idle.peak + LEFT, "{idle:?} {memory:?}");
    peer.finish();
}

/// Rubbish is refused as often as it comes.
#[test]
fn rubbish_without_end() {
    let mut peer = Peer::legacy();
    let idle = peer.settled();
    rounds("rubbish without end", &mut peer, |peer| {
        peer.write_times("}{\n".repeat(100), MANY / 100);
        for _ in 0..MANY {
            assert_eq!(code(&peer.recv()), -32700);
        }
        repeated(MANY, "messages")
    });
    let memory = peer.settled();
    assert!(memory.peak < idle.peak + LEFT, "{idle:?} {memory:?}");
    peer.finish();
}

/// Cancels everything that runs and that waits, again and again.
#[test]
fn cancelling_everything_in_flight() {
    let mut peer = Peer::legacy();
    let idle = peer.settled();
    rounds("cancelling everything in flight", &mut peer, |peer| {
        for round in 0..20 {
            let hang = |n| if n % 2 == 0 { call(n, "hang", json!({})) } else { modern(call(n, "hang", json!({}))) };
            peer.send_all((0..164).map(hang));
            // In any order, twice each, with some for nobody.
            let order = |n: u64| (n * 37 + round) % 200;
            peer.send_all((0..400).map(|n| cancelled(order(n))));
            peer.send(&call("after", "echo", json!({"text": "after"})));
            assert!(is_answer(&peer.recv(), &json!("after")), "and nothing else is answered");
        }
        repeated(20 * 164, "requests")
    });
    let memory = peer.settled();
    assert!(memory.peak < idle.peak + LEFT, "{idle:?} {memory:?}");
    peer.finish();
}

/// More calls than run and wait: each beyond that is refused, and what controls the others is not.
#[test]
fn more_calls_than_run_and_wait() {
    let mut peer = Peer::legacy();
    rounds("more calls than run and wait", &mut peer, |peer| {
        peer.send_all((0..164).map(|n| call(n, "hang", json!({}))));
        for n in 164..400 {
            let more = call(n, "echo", json!({"text": "x"}));
            peer.send(&if n % 2 == 0 { more } else { modern(more) });
        }
        for n in 164..400 {
            let answer = peer.recv();
            assert!(is_answer(&answer, &json!(n)), "{answer}");
            assert_eq!(
                (code(&answer), &answer["error"]["message"]),
                (-32603, &json!("too many requests are in flight (`max_in_flight`)"))
            );
        }
        // Pings and what the connection answers by itself need no place.
        for n in 0..100 {
            peer.assert_alive();
            peer.send(&request(format!("level {n}"), "logging/setLevel", json!({"level": "error"})));
            assert!(is_answer(&peer.recv(), &json!(format!("level {n}"))));
        }
        // One that waits is cancelled, and its place is free for another.
        peer.send_all([
            cancelled(150),
            call("waits", "echo", json!({"text": "x"})),
            call("refused", "hang", json!({})),
        ]);
        assert!(is_answer(&peer.recv(), &json!("refused")));
        // When all that came before are gone, it runs.
        peer.send_all((0..164).map(cancelled));
        assert!(is_answer(&peer.recv(), &json!("waits")));
        repeated(400, "requests")
    });
    peer.finish();
}

/// Calls that end make room, in the order in which the others came.
#[test]
fn calls_that_wait_run_in_order() {
    let mut peer = Peer::legacy();
    rounds("calls that wait", &mut peer, |peer| {
        peer.send_all((0..100).map(|n| call(n, "slow", json!({"ms": 100}))));
        peer.send_all((100..164).map(|n| call(n, "echo", json!({"text": "x"}))));
        peer.send(&call("refused", "echo", json!({"text": "x"})));
        let pinged = now();
        peer.assert_alive();
        assert!(pinged.elapsed() < Duration::from_secs(10));
        assert_eq!(code(&peer.answer(&json!("refused"))), -32603);
        let echoes = std::iter::from_fn(|| Some(peer.recv())).take(164);
        let echoes: Vec<u64> =
            echoes.map(|answer| answer["id"].as_u64().expect("a number")).filter(|n| *n >= 100).collect();
        assert!(echoes.into_iter().eq(100..164));
        repeated(165, "requests")
    });
    peer.finish();
}

/// What waits is bounded by its size, too.
#[test]
fn calls_that_wait_have_a_size() {
    let mut peer = Peer::legacy();
    let text = "x".repeat(1_000_000);
    rounds("calls that wait and are large", &mut peer, |peer| {
        peer.send_all((0..100).map(|n| call(n, "hang", json!({}))));
        peer.send_all((100..110).map(|n| call(n, "echo", json!({"text": text}))));
        for n in 104..110 {
            let answer = peer.recv();
            assert!(is_answer(&answer, &json!(n)) && code(&answer) == -32603, "{answer}");
        }
        peer.send_all((0..100).map(cancelled));
        for n in 100..104 {
            assert!(is_answer(&peer.recv(), &json!(n)));
        }
        repeated(110, "requests")
    });
    let memory = peer.settled();
    assert!(memory.peak < 64 * MIB, "{memory:?}");
    peer.finish();
}

fn listen(id: impl Into<Value>, uris: &[String]) -> Value {
    modern(request(id, "subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}})))
}

/// More listeners than may be, with as much as each may name.
#[test]
fn more_listeners_than_may_be() {
    let mut peer = Peer::start();
    peer.assert_alive();
    let idle = peer.memory();
    let uris: Vec<String> = (0..256).map(|n| format!("test:{n}:{}", "u".repeat(4000))).collect();
    let listening = |peer: &mut Peer| {
        for n in 0..17 {
            peer.send(&listen(n, &uris));
            let answer = peer.recv();
            if n < 16 {
                assert_eq!(answer["method"], "notifications/subscriptions/acknowledged");
            } else {
                assert_eq!((&answer["id"], code(&answer)), (&json!(n), -32603));
            }
        }
        let full = peer.memory();
        assert!(full.peak < idle.peak + 64 * MIB, "{idle:?} {full:?}");
        peer.send_all((0..17).map(cancelled));
        peer.assert_alive();
        repeated(17, "subscriptions")
    };
    // The tables of the server keep the room that they once needed, and the allocator has all it keeps after six rounds.
    for _ in 0..6 {
        listening(&mut peer);
    }
    rounds("listeners of a megabyte", &mut peer, listening);
    let memory = peer.settled();
    assert!(memory.now < idle.now + 32 * MIB, "{idle:?} {memory:?}");
    peer.finish();
}

/// Listeners that come and go leave nothing behind, and a change is told once.
#[test]
fn listeners_that_come_and_go() {
    const LISTENERS: usize = 5000;
    let mut peer = Peer::start();
    let uris = ["test:text".to_owned()];
    let come_and_go = |peer: &mut Peer| {
        let pairs: String = (0..LISTENERS).map(|n| format!("{}\n{}\n", listen(n, &uris), cancelled(n))).collect();
        peer.write(pairs);
        peer.assert_alive();
        // One that was cancelled before its acknowledgement left is not told of it.
        while let Some(message) = peer.recv_within(Duration::ZERO) {
            assert_eq!(message["method"], "notifications/subscriptions/acknowledged");
        }
        repeated(LISTENERS, "subscriptions")
    };
    come_and_go(&mut peer);
    let idle = peer.settled();
    rounds("listeners that come and go", &mut peer, come_and_go);
    let memory = peer.settled();
    peer.send(&listen("all", &uris));
    assert_eq!(peer.recv()["method"], "notifications/subscriptions/acknowledged");
    let started = now();
    for n in 0..100 {
        peer.send(&modern(call(n, "touch", json!({"uri": "test:text"}))));
        let told = peer.recv();
        assert_eq!(
            (&told["method"], &told["params"]["uri"]),
            (&json!("notifications/resources/updated"), &json!("test:text"))
        );
        assert!(is_answer(&peer.recv(), &json!(n)));
    }
    assert!(started.elapsed() < LIMIT / 10, "a change costs as much as there are listeners, not as there were");
    assert!(memory.now < idle.now + MIB, "{idle:?} {memory:?}");
    peer.close_stdin();
    assert!(is_answer(&peer.recv(), &json!("all")), "it ends with its result");
    peer.finish();
}

/// More subscriptions of a legacy client than may be, and longer ones.
#[test]
fn more_subscriptions_than_may_be() {
    let mut peer = Peer::legacy();
    let idle = peer.settled();
    let uri = |n: u64, bytes: usize| json!({"uri": format!("test:{n}:{}", "u".repeat(bytes))});
    let subscribe = |n: u64, bytes| request(n, "resources/subscribe", uri(n, bytes));
    let unsubscribe = |n: u64, bytes| request(n, "resources/unsubscribe", uri(n, bytes));
    rounds("more subscriptions than may be", &mut peer, |peer| {
        // There is a limit for their number, and one for their size.
        for (bytes, most, all) in [(200, 1024, 1100), (8000, 32, 100)] {
            for n in 0..all {
                peer.send(&subscribe(n, bytes));
                let answer = peer.recv();
                assert_eq!(answer.get("result").is_some(), n < most, "{n}: {answer}");
            }
            // One twice is one, and one less makes room.
            let free = request(3000, "resources/unsubscribe", uri(5, bytes));
            peer.send_all([subscribe(5, bytes), free, subscribe(2000, bytes)]);
            for _ in 0..3 {
                let answer = peer.recv();
                assert!(answer.get("result").is_some(), "{answer}");
            }
            for n in (0..most).chain([2000]) {
                peer.send(&unsubscribe(n, bytes));
                assert!(is_answer(&peer.recv(), &json!(n)));
            }
        }
        repeated(1100 + 100, "subscriptions")
    });
    let memory = peer.settled();
    assert!(memory.peak < idle.peak + 2 * MIB, "{idle:?} {memory:?}");
    peer.finish();
}
