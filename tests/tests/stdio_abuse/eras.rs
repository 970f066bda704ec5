//! Handshakes at the wrong time, and both eras on one pipe.

use serde_json::{Value, json};

use crate::harness::{LEGACY, Peer, call, cancel, code, initialize, is_answer, modern, request, text};

#[test]
fn requests_before_the_handshake_are_refused() {
    let mut peer = Peer::start();
    peer.assert_alive();
    peer.send(&request(1, "tools/list", json!({})));
    peer.send(&call("x", "echo", json!({"text": "early"})));
    assert_eq!(code(&peer.answer(&json!(1))), -32600);
    assert_eq!(code(&peer.answer(&json!("x"))), -32600);
    peer.handshake(LEGACY);
    peer.send(&call(1, "echo", json!({"text": "now"})));
    assert_eq!(text(&peer.answer(&json!(1))), "now");
    peer.finish();
}

#[test]
fn the_second_handshake_changes_nothing() {
    let mut peer = Peer::start();
    peer.handshake("2025-06-18");
    peer.send(&call(1, "count", json!({})));
    assert_eq!(text(&peer.answer(&json!(1))), "1");
    for version in ["2025-06-18", "2024-11-05", "2026-07-28", "nonsense"] {
        peer.send(&initialize(2, version));
        let answer = peer.answer(&json!(2));
        if version == "2025-06-18" {
            assert_eq!(answer["result"]["protocolVersion"], version, "the same again gets the same response");
        } else {
            assert_eq!(code(&answer), -32600, "{version}");
        }
        peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }
    peer.send(&call(3, "count", json!({})));
    assert_eq!(text(&peer.answer(&json!(3))), "2");
    peer.finish();
}

#[test]
fn a_handshake_that_is_malformed_can_be_repeated() {
    let mut peer = Peer::start();
    for params in [json!({}), json!({"protocolVersion": 1}), json!({"protocolVersion": LEGACY})] {
        peer.send(&request(1, "initialize", params));
        assert_eq!(code(&peer.answer(&json!(1))), -32602);
    }
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
    peer.finish();
    for version in ["2024-11-05", "2025-06-18", LEGACY] {
        let mut peer = Peer::start();
        peer.handshake(version);
        let answers = peer.between(batch(4).as_bytes());
        assert_eq!((answers.len(), code(&answers[0])), (1, -32600), "{version}");
        peer.finish();
    }
}

/// A cancelled batch member is left out; the others are still answered.
#[test]
fn a_batch_that_is_cancelled_in_part() {
    let mut peer = Peer::start();
    peer.handshake("2025-03-26");
    let batch = json!([call(1, "hang", json!({})), call(2, "slow", json!({"ms": 50})), call(3, "hang", json!({}))]);
    peer.send(&batch);
    peer.send_all([cancel(1), cancel(3)]);
    let answers = peer.recv();
    assert_eq!((answers.as_array().map(Vec::len), &answers[0]["id"]), (Some(1), &json!(2)), "{answers}");
    // And one of which nothing is left is not answered at all.
    peer.send(&json!([call(1, "hang", json!({})), call(2, "hang", json!({}))]));
    peer.send_all([cancel(1), cancel(2)]);
    peer.assert_alive();
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
    peer.send_all((0..90).map(both));
    for n in 0..90 {
        let answer = peer.answer(&json!(n));
        assert_eq!(answer["result"].get("resultType").is_some(), n % 2 == 0, "{answer}");
    }
    peer.finish();
}

/// An id is in use in both eras at once, as there is one pipe for the answers; the same digits as text are another id.
#[test]
fn ids_are_told_apart_in_both_eras() {
    let mut peer = Peer::legacy();
    peer.send(&call(1, "slow", json!({"ms": 300})));
    peer.send(&modern(call(1, "echo", json!({"text": "the same id"}))));
    assert_eq!(code(&peer.recv()), -32600, "an id that is in use");
    peer.send(&modern(call("1", "slow", json!({"ms": 300}))));
    peer.send(&modern(call("1", "echo", json!({"text": "again"}))));
    assert_eq!(code(&peer.recv()), -32600);
    // What is cancelled in one era goes on in the other.
    peer.send(&cancel("1"));
    peer.send(&modern(call("1", "echo", json!({"text": "free again"}))));
    assert_eq!(text(&peer.answer(&json!("1"))), "free again");
    assert_eq!(text(&peer.answer(&json!(1))), "slept for 300 ms");
    // And the other way round.
    peer.send_all([modern(call(2, "slow", json!({"ms": 100}))), call("2", "hang", json!({})), cancel("2")]);
    assert_eq!(text(&peer.answer(&json!(2))), "slept for 100 ms");
    // An id that was cancelled may come back in the other era, while the old handler ends.
    for n in 0..200 {
        let (first, second) = (call(9, "hang", json!({})), call(9, "echo", json!({"text": n.to_string()})));
        let pair = if n % 2 == 0 { [modern(first), cancel(9), second] } else { [first, cancel(9), modern(second)] };
        peer.send_all(pair);
        let answer = peer.recv();
        assert!(is_answer(&answer, &json!(9)));
        assert_eq!(text(&answer), n.to_string());
    }
    peer.finish();
}

/// Two requests at once with the same id: the first is served, the second is refused.
#[test]
fn an_id_that_is_in_use() {
    for era in [std::convert::identity, modern] {
        let mut peer = Peer::legacy();
        peer.send_all([era(call(1, "slow", json!({"ms": 100}))), era(call(1, "echo", json!({"text": "x"})))]);
        assert_eq!(code(&peer.recv()), -32600);
        assert_eq!(text(&peer.recv()), "slept for 100 ms");
        peer.send(&era(call(1, "echo", json!({"text": "x"}))));
        assert_eq!(text(&peer.recv()), "x");
        peer.finish();
    }
}
