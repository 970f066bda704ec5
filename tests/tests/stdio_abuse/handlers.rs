//! Handlers that fail, hang, or ask.

use std::time::Duration;

use mcp_testkit::envelope::cancelled;
use serde_json::json;

use crate::harness::{Peer, call, code, modern, now, request, text, with_progress};
use crate::rounds::{processes, rounds};
use crate::tally::repeated;

/// A panic is answered, costs nobody else anything, and shows on standard error alone.
#[test]
fn a_handler_that_panics() {
    let mut peer = Peer::legacy();
    let mut panics = 0;
    rounds("handlers that panic", &mut peer, |peer| {
        peer.send(&call("other", "slow", json!({"ms": 100})));
        for n in 0..80 {
            let at = if n % 2 == 0 { "start" } else { "later" };
            let request = call(n, "panic", json!({"at": at}));
            peer.send(&if n < 40 { request } else { modern(request) });
            let answer = peer.answer(&json!(n));
            assert_eq!(code(&answer), -32603, "{at}");
            assert!(!answer.to_string().contains("panics"), "what it said is not the client's: {answer}");
        }
        assert_eq!(text(&peer.answer(&json!("other"))), "slept for 100 ms");
        panics += 80;
        repeated(80, "requests")
    });
    peer.close_stdin();
    assert_eq!(peer.exit().code(), Some(0));
    assert_eq!(peer.stderr().matches("panicked at").count(), panics);
}

/// Even one that panics while it is cleaned away.
#[test]
fn a_handler_that_panics_when_it_is_cancelled() {
    let mut peer = Peer::legacy();
    let mut panics = 0;
    rounds("handlers that panic when they are cancelled", &mut peer, |peer| {
        peer.send(&call("other", "slow", json!({"ms": 100})));
        peer.send_all((0..80).map(|n| call(n, "panic", json!({"at": "drop"}))));
        peer.assert_alive();
        peer.send_all((0..80).map(cancelled));
        assert_eq!(text(&peer.answer(&json!("other"))), "slept for 100 ms");
        peer.assert_alive();
        panics += 80;
        repeated(80, "requests")
    });
    assert_eq!(peer.signal_and_exit("TERM"), Some(0));
    assert_eq!(peer.stderr().matches("panicked at").count(), panics);
}

/// And one that does so at the end.
#[test]
fn a_handler_that_panics_at_the_end() {
    processes("handlers that panic at the end", || {
        let mut peer = Peer::start_with(&["--drain", "50"]);
        peer.send_all((0..100).map(|n| modern(call(n, "panic", json!({"at": "drop"})))));
        peer.assert_alive();
        peer.close_stdin();
        assert_eq!(peer.exit().code(), Some(0));
        assert_eq!(peer.stderr().matches("panicked at").count(), 100);
        repeated(100, "requests")
    });
}

/// And whoever hears of a notification.
#[test]
fn a_notification_that_makes_somebody_panic() {
    let mut peer = Peer::legacy();
    let mut panics = 0;
    rounds("notifications that make somebody panic", &mut peer, |peer| {
        peer.send(&call(1, "slow", json!({"ms": 50})));
        peer.send_all((0..50).map(|_| json!({"jsonrpc": "2.0", "method": "notifications/test/panic"})));
        peer.assert_alive();
        assert_eq!(text(&peer.answer(&json!(1))), "slept for 50 ms");
        panics += 50;
        repeated(50, "notifications")
    });
    peer.close_stdin();
    assert_eq!(peer.exit().code(), Some(0));
    assert_eq!(peer.stderr().matches("panicked at").count(), panics);
}

/// A handler that never ends does so when it is cancelled, and is not answered.
#[test]
fn handlers_that_hang() {
    let mut peer = Peer::legacy();
    let mut round = 0;
    rounds("handlers that hang", &mut peer, |peer| {
        round += 1;
        peer.send_all((0..100).map(|n| call(n, "hang", json!({}))));
        // All places are taken, so this one waits, and would forever.
        peer.send(&call("waits", "echo", json!({"text": round.to_string()})));
        peer.assert_alive();
        assert!(peer.recv_within(Duration::from_millis(20)).is_none());
        peer.send_all((0..100).map(cancelled));
        assert_eq!(text(&peer.recv()), round.to_string());
        repeated(100, "requests")
    });
    peer.finish();
}

#[test]
fn a_handler_that_computes_does_not_hold_up_others() {
    let mut peer = Peer::legacy();
    rounds("handlers that compute", &mut peer, |peer| {
        peer.send(&call(1, "crunch", json!({"rounds": u64::MAX})));
        peer.assert_alive();
        peer.send(&call(2, "crunch", json!({"rounds": 1000})));
        assert!(!text(&peer.answer(&json!(2))).is_empty());
        peer.send(&cancelled(1));
        peer.assert_alive();
        repeated(2, "requests")
    });
    peer.finish();
}

#[test]
fn a_cancelled_request_says_nothing_more() {
    let mut peer = Peer::legacy();
    rounds("requests that are cancelled", &mut peer, |peer| {
        let slow = |n: usize| with_progress(call(n, "slow", json!({"ms": 10_000, "steps": 1000})), n);
        peer.send_all((0..100).map(slow));
        let mut steps = [0_u64; 100];
        while steps.iter().any(|step| *step < 3) {
            let report = peer.recv();
            let token = report["params"]["progressToken"].as_u64().and_then(|token| usize::try_from(token).ok());
            let step = &mut steps[token.expect("a token")];
            *step += 1;
            assert_eq!(report["params"]["progress"], *step);
        }
        peer.send_all((0..100).map(cancelled));
        peer.assert_alive();
        // Whatever was on its way came before the answer to the ping.
        while peer.recv_within(Duration::ZERO).is_some() {}
        assert!(peer.recv_within(Duration::from_millis(100)).is_none());
        repeated(100, "requests")
    });
    peer.finish();
}

#[test]
fn questions_to_the_client() {
    let mut peer = Peer::legacy();
    rounds("questions to the client", &mut peer, |peer| {
        for _ in 0..10 {
            peer.send(&call(1, "ask", json!({})));
            let question = peer.recv();
            assert_eq!(question["method"], "roots/list");
            // Answers to something else do not count, nor does a text that is not the number as it was sent.
            let id = question["id"].clone();
            for wrong in [json!(-1), json!(format!("0{id}")), json!("")] {
                peer.send(&json!({"jsonrpc": "2.0", "id": wrong, "result": {"roots": []}}));
            }
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"roots": [{"uri": "file:///x"}]}});
            peer.send_all([answer.clone(), answer]);
            assert_eq!(text(&peer.answer(&json!(1))), "file:///x");
            // An answer that is none ends the question.
            for wrong in [
                json!({"result": 1}),
                json!({"result": {}}),
                json!({"error": "no"}),
                json!({"error": {"code": 1, "message": "no"}}),
            ] {
                peer.send(&call(2, "ask", json!({})));
                let mut answer = wrong.clone();
                (answer["jsonrpc"], answer["id"]) = (json!("2.0"), peer.recv()["id"].clone());
                peer.send(&answer);
                let answer = peer.answer(&json!(2));
                assert_eq!(answer["result"]["isError"], true, "{wrong}: {answer}");
            }
        }
        // Whoever cancels the request need not answer the question, and whoever is silent is not waited for.
        peer.send(&call(3, "ask", json!({})));
        let question = peer.recv();
        peer.send(&cancelled(3));
        let taken_back = peer.recv();
        assert_eq!(
            (&taken_back["method"], &taken_back["params"]["requestId"]),
            (&json!("notifications/cancelled"), &question["id"])
        );
        peer.send(&call(4, "ask", json!({"limit": 50})));
        assert_eq!(peer.recv()["method"], "roots/list");
        let waited: u64 = text(&peer.answer(&json!(4))).parse().expect("milliseconds");
        assert!(waited >= 50);
        assert_eq!(peer.recv()["method"], "notifications/cancelled");
        repeated(10 * 5 + 2, "requests")
    });
    peer.finish();
}

/// More questions at once than may be open; and nobody waits for answers once the input has ended.
#[test]
fn questions_that_nobody_answers() {
    processes("questions that nobody answers", || {
        let mut peer = Peer::legacy();
        peer.send_all((0..100).map(|n| call(n, "ask", json!({}))));
        for _ in 0..100 {
            assert_eq!(peer.recv()["method"], "roots/list");
        }
        peer.assert_alive();
        let started = now();
        peer.close_stdin();
        let answers = peer.rest();
        assert_eq!(answers.len(), 100);
        assert!(answers.iter().all(|answer| answer["result"]["isError"] == true), "{}", answers[0]);
        assert!(started.elapsed() < Duration::from_secs(10));
        peer.finish();
        repeated(100, "requests")
    });
}

/// Each connection counts for itself, and one has just one.
#[test]
fn state_belongs_to_the_connection() {
    let mut peer = Peer::legacy();
    let mut count = 0;
    rounds("state of the connection", &mut peer, |peer| {
        peer.send_all(
            (0..10).map(|n| if n % 2 == 0 { call(n, "count", json!({})) } else { modern(call(n, "count", json!({}))) }),
        );
        for n in 0..10 {
            count += 1;
            assert_eq!(text(&peer.answer(&json!(n))), count.to_string());
        }
        peer.send(&request(1, "resources/read", json!({"uri": "test:text"})));
        assert_eq!(peer.recv()["result"]["contents"][0]["text"], "a text");
        repeated(11, "requests")
    });
    peer.finish();
}
