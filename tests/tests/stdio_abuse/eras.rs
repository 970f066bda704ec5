//! Handshakes at the wrong time, and both eras on one pipe.

use mcp_testkit::envelope::cancelled;
use serde_json::{Value, json};

use crate::harness::{LEGACY, Peer, call, code, initialize, is_answer, modern, request, text};
use crate::rounds::rounds;
use crate::tally::repeated;

#[test]
fn requests_before_the_handshake_are_refused() {
    let mut peer = Peer::start();
    rounds("requests before the handshake", &mut peer, |peer| {
        peer.send(&request(1, "tools/list", json!({})));
        peer.send(&call("x", "echo", json!({"text": "early"})));
        assert_eq!(code(&peer.answer(&json!(1))), -32600);
        assert_eq!(code(&peer.answer(&json!("x"))), -32600);
        repeated(2, "requests")
    });
    peer.handshake(LEGACY);
    peer.send(&call(1, "echo", json!({"text": "now"})));
    assert_eq!(text(&peer.answer(&json!(1))), "now");
    peer.finish();
}

#[test]
fn the_second_handshake_changes_nothing() {
    let mut peer = Peer::start();
    peer.handshake("2025-06-18");
    let mut count = 0;
    rounds("second handshakes", &mut peer, |peer| {
        for version in ["2025-06-18", "2024-11-05", "2026-07-28", "nonsense"] {
            peer.send(&initialize(2, version));
            let answer = peer.answer(&json!(2));
            if version == "2025-06-18" {
                assert_eq!(answer["result"]["protocolVersion"], version, "the same again gets the same response");
            } else {
                assert_eq!(code(&answer), -32600, "{version}");
            }
            peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
            // The connection is still the one that was counted for.
            count += 1;
            peer.send(&call(3, "count", json!({})));
            assert_eq!(text(&peer.answer(&json!(3))), count.to_string());
        }
        repeated(4, "requests")
    });
    peer.finish();
}

#[test]
fn a_handshake_that_is_malformed_can_be_repeated() {
    let mut peer = Peer::start();
    rounds("handshakes that are malformed", &mut peer, |peer| {
        for params in [json!({}), json!({"protocolVersion": 1}), json!({"protocolVersion": LEGACY})] {
            peer.send(&request(1, "initialize", params));
            assert_eq!(code(&peer.answer(&json!(1))), -32602);
        }
        repeated(3, "requests")
    });
    peer.handshake(LEGACY);
    peer.assert_alive();
    peer.finish();
}

/// Batches exist in one revision; in it they have a limit, and are answered together.
#[test]
fn batches_in_the_right_and_in_the_wrong_revision() {
    let mut peer = Peer::start();
    peer.handshake("2025-03-26");
    let batch = |many: usize| {
        let one = |n| match n % 4 {
            0 => request(n, "ping", json!({})),
            1 => call(n, "slow", json!({"ms": 1})),
            2 => json!({"jsonrpc": "2.0", "id": n, "method": "what"}),
            _ => json!({"jsonrpc": "2.0", "method": "notifications/what"}),
        };
        format!("{}\n", Value::from_iter((0..many).map(one)))
    };
    rounds("batches in the right revision", &mut peer, |peer| {
        assert_eq!(code(&peer.between(batch(1000).as_bytes())[0]), -32600);
        peer.write(batch(100));
        let answers = peer.recv();
        let mut ids: Vec<_> =
            answers.as_array().expect("a batch").iter().filter_map(|answer| answer["id"].as_u64()).collect();
        ids.sort_unstable();
        assert!(ids.into_iter().eq((0..100).filter(|n| n % 4 != 3)));
        // A batch of notifications is not answered, and one with rubbish is, for each piece.
        assert!(peer.between(b"[{\"jsonrpc\":\"2.0\",\"method\":\"x\"}]\n").is_empty());
        let answers = peer.between(b"[1,{},\"x\",{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}]\n");
        assert_eq!(answers[0].as_array().map(Vec::len), Some(4), "{answers:?}");
        // Neither modern requests nor the handshake are part of a batch.
        for foreign in [modern(request(1, "tools/list", json!({}))), initialize(1, "2025-03-26")] {
            let answers = peer.between(format!("[{foreign}]\n").as_bytes());
            assert_eq!((answers.len(), code(&answers[0])), (1, -32600), "{answers:?}");
        }
        repeated(6, "batches")
    });
    peer.finish();
    for version in ["2024-11-05", "2025-06-18", LEGACY] {
        let mut peer = Peer::start();
        peer.handshake(version);
        rounds(&format!("batches in the wrong revision, {version}"), &mut peer, |peer| {
            let answers = peer.between(batch(4).as_bytes());
            assert_eq!((answers.len(), code(&answers[0])), (1, -32600), "{version}");
            repeated(1, "batches")
        });
        peer.finish();
    }
}

/// A cancelled batch member is left out; the others are still answered.
#[test]
fn a_batch_that_is_cancelled_in_part() {
    let mut peer = Peer::start();
    peer.handshake("2025-03-26");
    let batch = |id: u64| {
        json!([call(id, "hang", json!({})), call(id + 1, "slow", json!({"ms": 10})), call(id + 2, "hang", json!({}))])
    };
    rounds("batches that are cancelled in part", &mut peer, |peer| {
        for id in (0..60).step_by(3) {
            peer.send(&batch(id));
            peer.send_all([cancelled(id), cancelled(id + 2)]);
        }
        let mut left: Vec<_> = (1..60).step_by(3).map(Value::from).collect();
        while !left.is_empty() {
            let answers = peer.recv();
            assert_eq!(answers.as_array().map(Vec::len), Some(1), "{answers}");
            let at = left.iter().position(|id| *id == answers[0]["id"]).expect("a call that was not cancelled");
            left.swap_remove(at);
        }
        // And one of which nothing is left is not answered at all.
        for _ in 0..20 {
            peer.send(&json!([call(1, "hang", json!({})), call(2, "hang", json!({}))]));
            peer.send_all([cancelled(1), cancelled(2)]);
        }
        peer.assert_alive();
        repeated(40, "batches")
    });
    peer.finish();
}

#[test]
fn both_eras_on_one_pipe() {
    let mut peer = Peer::start();
    peer.send(&modern(call(1, "echo", json!({"text": "modern"}))));
    let answer = peer.answer(&json!(1));
    assert_eq!((text(&answer), &answer["result"]["resultType"]), ("modern", &json!("complete")));
    peer.handshake(LEGACY);
    let both = |n: u64| {
        let call = call(n, "slow", json!({"ms": n % 7}));
        if n.is_multiple_of(2) { modern(call) } else { call }
    };
    rounds("both eras on one pipe", &mut peer, |peer| {
        peer.send_all((0..90).map(both));
        for n in 0..90 {
            let answer = peer.answer(&json!(n));
            assert_eq!(answer["result"].get("resultType").is_some(), n % 2 == 0, "{answer}");
        }
        repeated(90, "requests")
    });
    peer.finish();
}

/// An id is in use in both eras at once, as there is one pipe for the answers; the same digits as text are another id.
#[test]
fn ids_are_told_apart_in_both_eras() {
    let mut peer = Peer::legacy();
    rounds("ids in both eras", &mut peer, |peer| {
        peer.send(&call(1, "slow", json!({"ms": 300})));
        peer.send(&modern(call(1, "echo", json!({"text": "the same id"}))));
        assert_eq!(code(&peer.recv()), -32600, "an id that is in use");
        peer.send(&modern(call("1", "slow", json!({"ms": 300}))));
        peer.send(&modern(call("1", "echo", json!({"text": "again"}))));
        assert_eq!(code(&peer.recv()), -32600);
        // What is cancelled in one era goes on in the other.
        peer.send(&cancelled("1"));
        peer.send(&modern(call("1", "echo", json!({"text": "free again"}))));
        assert_eq!(text(&peer.answer(&json!("1"))), "free again");
        assert_eq!(text(&peer.answer(&json!(1))), "slept for 300 ms");
        // And the other way round.
        peer.send_all([modern(call(2, "slow", json!({"ms": 100}))), call("2", "hang", json!({})), cancelled("2")]);
        assert_eq!(text(&peer.answer(&json!(2))), "slept for 100 ms");
        // An id that was cancelled may come back in the other era, while the old handler ends.
        for n in 0..200 {
            let (first, second) = (call(9, "hang", json!({})), call(9, "echo", json!({"text": n.to_string()})));
            let pair =
                if n % 2 == 0 { [modern(first), cancelled(9), second] } else { [first, cancelled(9), modern(second)] };
            peer.send_all(pair);
            let answer = peer.recv();
            assert!(is_answer(&answer, &json!(9)));
            assert_eq!(text(&answer), n.to_string());
        }
        repeated(7 + 2 * 200, "requests")
    });
    peer.finish();
}

/// Two requests at once with the same id: the first is served, the second is refused.
#[test]
fn an_id_that_is_in_use() {
    for (era, name) in [(std::convert::identity as fn(Value) -> Value, "legacy"), (modern, "modern")] {
        let mut peer = Peer::legacy();
        rounds(&format!("ids that are in use, {name}"), &mut peer, |peer| {
            let slow = (0..50).map(|id| era(call(id, "slow", json!({"ms": 100}))));
            let again = (0..50).map(|id| era(call(id, "echo", json!({"text": "x"}))));
            peer.send_all(slow.chain(again));
            for id in 0..50 {
                let answer = peer.recv();
                assert!(is_answer(&answer, &json!(id)) && code(&answer) == -32600, "{answer}");
            }
            for _ in 0..50 {
                assert_eq!(text(&peer.recv()), "slept for 100 ms");
            }
            for id in 0..50 {
                peer.send(&era(call(id, "echo", json!({"text": "x"}))));
                assert_eq!(text(&peer.recv()), "x");
            }
            repeated(3 * 50, "requests")
        });
        peer.finish();
    }
}
