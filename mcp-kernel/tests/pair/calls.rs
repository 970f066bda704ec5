//! Calls, answers, and what comes between.

use std::time::Duration;

use mcp_kernel::client::{self, CancelStyle, Mode};
use mcp_kernel::server;
use mcp_kernel::{CallError, CallOptions, CommandError};
use mcp_types::{CallToolResult, ErrorCode, ErrorObject, Method, Number, RawObject, Revision};

use mcp_testkit::Pair;

fn legacy() -> Pair {
    let mut client = Pair::client_config();
    client.mode = Mode::Legacy;
    Pair::ready(client, Pair::server_config())
}

fn modern() -> Pair {
    Pair::ready(Pair::client_config(), Pair::server_config())
}

/// The same call and the same answer, in both eras.
// covers: M-5, M-6, DU-44, S3.3
#[test]
fn a_call_is_answered_in_both_eras() {
    for (mut pair, revision) in [(modern(), Revision::V2026_07_28), (legacy(), Revision::V2025_11_25)] {
        let call = pair.call(&Method::TOOLS_CALL, r#"{"name":"hi","arguments":{"b":1.50,"a":2}}"#);
        pair.drive();
        let (scope, params, responder) = pair.expect_request();
        assert_eq!(scope.revision(), revision);
        assert_eq!(params.get("arguments").map(|raw| raw.get()), Some(r#"{"b":1.50,"a":2}"#));
        assert!(scope.capabilities().sampling.is_some());
        let _ = pair.server.respond(responder, Ok(CallToolResult::text("ho")));
        pair.drive();
        let result = pair.finished(call).expect("a result");
        assert_eq!(result.contains("resultType"), revision == Revision::V2026_07_28, "{result}");
        pair.assert_idle();
    }
}

/// An answer that crosses a cancellation is no offence, and arrives nowhere.
// covers: K-5, K-7, K-8
#[test]
fn an_answer_may_cross_a_cancellation() {
    for mut pair in [modern(), legacy()] {
        let call = pair.call(&Method::TOOLS_CALL, r#"{"name":"slow"}"#);
        pair.drive();
        let (_, _, responder) = pair.expect_request();
        let _ = pair.server.respond(responder, Ok(CallToolResult::text("late")));
        pair.client.cancel(call).expect("it is open");
        pair.drive();
        assert_eq!(pair.finished(call), Err(CallError::Cancelled));
        let stray = pair.client_events.pop_front();
        assert!(matches!(stray, Some(client::Event::PeerMisbehaved(_))), "counted, but nothing happens: {stray:?}");
        assert_eq!(pair.client.cancel(call), Err(CommandError::Ended));
        pair.assert_idle();
    }
}

/// The server hears of a cancellation while it works, and its answer stays unsent.
// covers: K-1, IO-9
#[test]
fn a_cancellation_reaches_the_handler() {
    for mut pair in [modern(), legacy()] {
        let call = pair.call(&Method::TOOLS_CALL, r#"{"name":"slow"}"#);
        pair.drive();
        let (scope, _, responder) = pair.expect_request();
        pair.client.cancel(call).expect("it is open");
        pair.drive();
        assert_eq!(pair.finished(call), Err(CallError::Cancelled));
        let cancelled = pair.server_events.pop_front();
        assert!(matches!(cancelled, Some(server::Event::Cancelled { request, .. }) if request == scope.key()));
        assert_eq!(pair.server.respond(responder, Ok(CallToolResult::text("late"))), server::Delivery::NotSent);
        pair.assert_idle();
    }
}

/// Where each call has a stream, closing it is the cancellation.
// covers: K-2
#[test]
fn a_stream_is_closed_instead_of_a_notification() {
    let mut client = Pair::client_config();
    client.cancel_style = CancelStyle::CloseStream;
    let mut pair = Pair::ready(client, Pair::server_config());
    let call = pair.call(&Method::TOOLS_CALL, r#"{"name":"slow"}"#);
    let _ = pair.client.poll_transmit();
    pair.client.cancel(call).expect("it is open");
    assert_eq!(pair.client.poll_transmit(), Some(client::Transmit::Abort { call }));
    assert_eq!(pair.client.poll_transmit(), None);
}

/// Silence ends a call, progress keeps it alive, and the limit ends it all the same.
// covers: K-10..K-13, S3.F14
#[test]
fn progress_keeps_a_call_alive_up_to_the_limit() {
    let mut pair = modern();
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let options = CallOptions::default().idle_timeout(seconds(10)).total_timeout(seconds(25));
    let params = RawObject::parse(r#"{"name":"slow"}"#).expect("an object");
    let call = pair.client.call(pair.now, &Method::TOOLS_CALL, &params, options).expect("a call");
    pair.drive();
    let (scope, _, _responder) = pair.expect_request();
    assert!(scope.may_report_progress());
    for done in 1..=2_i64 {
        pair.advance(Duration::from_secs(9));
        let _ = pair.server.progress(scope.key(), done, Some(Number::from(3)), None);
        pair.drive();
        let progress = pair.client_events.pop_front();
        assert!(matches!(progress, Some(client::Event::CallProgress { call: of, .. }) if of == call), "{progress:?}");
    }
    pair.advance(Duration::from_secs(8));
    pair.drive();
    assert_eq!(pair.finished(call), Err(CallError::TimedOut));
    assert!(matches!(pair.server_events.pop_front(), Some(server::Event::Cancelled { .. })));
    pair.assert_idle();
}

/// A legacy server asks the client while it works on its request.
// covers: B-10, DU-26
#[test]
fn a_legacy_server_asks_the_client() {
    let mut pair = legacy();
    let call = pair.call(&Method::TOOLS_CALL, r#"{"name":"ask"}"#);
    pair.drive();
    let (scope, _, responder) = pair.expect_request();
    let params = RawObject::parse(r#"{"message":"sure?","requestedSchema":{"type":"object","properties":{}}}"#);
    let params = params.expect("an object");
    let question = pair
        .server
        .call(pair.now, Some(scope.key()), Method::ELICITATION_CREATE, &params, CallOptions::default())
        .expect("the client declared it");
    pair.drive();
    let Some(client::Event::Request { method, responder: answer, .. }) = pair.client_events.pop_front() else {
        panic!("a question")
    };
    assert_eq!(method, Method::ELICITATION_CREATE);
    let accept = RawObject::parse(r#"{"action":"accept","content":{}}"#).expect("an object");
    assert!(pair.client.respond(pair.now, answer, Ok(&accept)));
    pair.drive();
    let Some(server::Event::CallFinished { call: ended, outcome: Ok(result) }) = pair.server_events.pop_front() else {
        panic!("an answer")
    };
    assert_eq!((ended, result.as_str()), (question, accept.as_str()));
    let _ = pair.server.respond(responder, Ok(CallToolResult::text("done")));
    pair.drive();
    assert!(pair.finished(call).is_ok());
    pair.assert_idle();
}

/// In the modern era there is no way back, on either side.
// covers: M-15, DU-45, S1.8, S1.9, S1.21, S3.56, S3.F6, RB-18, T-1, IO-6
#[test]
fn a_modern_server_cannot_ask() {
    let mut pair = modern();
    let call = pair.call(&Method::TOOLS_CALL, r#"{"name":"ask"}"#);
    pair.drive();
    let (scope, _, responder) = pair.expect_request();
    let asked =
        pair.server.call(pair.now, Some(scope.key()), Method::ROOTS_LIST, &RawObject::empty(), CallOptions::default());
    assert!(matches!(asked, Err(CommandError::NoBackChannel(_))), "{asked:?}");
    pair.client.handle_bytes(pair.now, br#"{"jsonrpc":"2.0","id":"x","method":"roots/list"}"#);
    pair.collect();
    assert!(pair.to_server.is_empty(), "M-16: no answer");
    assert!(matches!(pair.client_events.pop_front(), Some(client::Event::PeerMisbehaved(_))));
    let error = ErrorObject::new(ErrorCode::new(4711), "no");
    let _ = pair.server.respond::<CallToolResult>(responder, Err(error.clone()));
    pair.drive();
    assert_eq!(pair.finished(call), Err(CallError::Rejected(error)));
    pair.assert_idle();
}

/// A kind of result that the client does not know makes the answer invalid.
// covers: M-9, M-10
#[test]
fn unknown_kinds_of_result_are_refused() {
    let mut pair = modern();
    for (kind, is_valid) in [(r#","resultType":"complete""#, true), ("", true), (r#","resultType":"weird""#, false)] {
        let call = pair.call(&Method::TOOLS_CALL, r#"{"name":"x"}"#);
        let Some(client::Transmit::Send { message, .. }) = pair.client.poll_transmit() else { panic!("a request") };
        let text = String::from_utf8(message.into_bytes()).expect("text");
        let id = text.split(r#""id":"#).nth(1).and_then(|rest| rest.split(',').next()).expect("an id");
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]{kind}}}}}"#);
        pair.client.handle_bytes(pair.now, answer.as_bytes());
        pair.collect();
        assert_eq!(pair.finished(call).is_ok(), is_valid, "{kind}");
    }
    pair.assert_idle();
}

/// Everything that is open ends when the connection does, each once.
#[test]
fn a_disconnect_ends_everything_once() {
    for mut pair in [modern(), legacy()] {
        let calls = [pair.call(&Method::TOOLS_LIST, "{}"), pair.call(&Method::TOOLS_CALL, r#"{"name":"x"}"#)];
        pair.drive();
        pair.server_events.clear();
        pair.client.handle_disconnect();
        pair.server.handle_disconnect();
        pair.collect();
        for call in calls {
            assert_eq!(pair.finished(call), Err(CallError::Disconnected));
        }
        assert!(matches!(pair.client_events.pop_front(), Some(client::Event::Closed)));
        assert_eq!(pair.server_events.len(), 3, "two cancellations and the end: {:?}", pair.server_events);
        pair.server_events.clear();
        let late = pair.client.call(pair.now, &Method::TOOLS_LIST, &RawObject::empty(), CallOptions::default());
        assert_eq!(late, Err(CommandError::Closed));
        assert!(pair.client.is_idle() && pair.server.is_idle());
    }
}

/// The client does not send what the revision does not have.
// covers: H-33
#[test]
fn removed_methods_are_not_sent() {
    let mut pair = modern();
    for method in [Method::PING, Method::LOGGING_SET_LEVEL, Method::RESOURCES_SUBSCRIBE] {
        let refused = pair.client.call(pair.now, &method, &RawObject::empty(), CallOptions::default());
        assert!(matches!(refused, Err(CommandError::NotInRevision { .. })), "{method}");
    }
    let mut pair = legacy();
    assert!(matches!(pair.client.listen(pair.now, Default::default(), None), Err(CommandError::NotInRevision { .. })));
    pair.assert_idle();
}

/// A token of the caller's own comes back with the progress, and keeps the call alive.
// covers: P-2, K-12
#[test]
fn a_callers_token_is_kept() {
    let mut pair = modern();
    let params = RawObject::parse(r#"{"name":"slow","_meta":{"progressToken":"mine"}}"#).expect("an object");
    let call = pair.client.call(pair.now, &Method::TOOLS_CALL, &params, CallOptions::default()).expect("a call");
    pair.drive();
    let (scope, _, responder) = pair.expect_request();
    pair.advance(Duration::from_secs(59));
    let _ = pair.server.progress(scope.key(), 1, None, None);
    pair.drive();
    let Some(client::Event::CallProgress { progress, .. }) = pair.client_events.pop_front() else { panic!("progress") };
    assert_eq!(progress.progress_token, "mine".into());
    pair.advance(Duration::from_secs(59));
    let _ = pair.server.respond(responder, Ok(CallToolResult::text("done")));
    pair.drive();
    assert!(pair.finished(call).is_ok());
    pair.assert_idle();
}

/// The end of a stream without an answer ends the call on it, and no other.
// covers: L-12, AMB-1
#[test]
fn a_closed_stream_ends_its_call() {
    let mut pair = modern();
    let listen = pair.client.listen(pair.now, Default::default(), None).expect("modern");
    let other = pair.call(&Method::TOOLS_LIST, "{}");
    pair.client.handle_stream_closed(pair.now, listen);
    pair.client.handle_stream_closed(pair.now, listen);
    pair.collect();
    assert_eq!(pair.finished(listen), Err(CallError::Disconnected));
    assert!(pair.client_events.is_empty(), "{:?}", pair.client_events);
    pair.client.cancel(other).expect("it is open");
}
