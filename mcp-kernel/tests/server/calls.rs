//! Requests to the client, which only the legacy era has.

use std::time::Duration;

use mcp_kernel::server::{Event, Route, ServerConfig};
use mcp_kernel::{CallError, CallId, CallOptions, CommandError, DeadlineKind, PeerMisbehaved, RequestKey};
use mcp_testkit::envelope::{initialize, modern_request, notification, request};
use mcp_types::jsonrpc::EnvelopeScan;
use mcp_types::{Method, RawObject, Revision};
use serde_json::{Value, json};

use crate::script::{Script, config};

const SECOND: Duration = Duration::from_secs(1);

fn call(
    script: &mut Script,
    related: Option<RequestKey>,
    method: Method,
    params: Value,
) -> Result<CallId, CommandError> {
    call_for(script, related, method, params, CallOptions::default())
}

fn call_for(
    script: &mut Script,
    related: Option<RequestKey>,
    method: Method,
    params: Value,
    options: CallOptions,
) -> Result<CallId, CommandError> {
    let params: RawObject = serde_json::from_value(params).expect("an object");
    let now = script.now();
    script.connection.call(now, related, method, &params, options)
}

fn session(capabilities: Value) -> Script {
    Script::initialized_with(config(), "2025-11-25", capabilities)
}

fn finished(script: &mut Script, call: CallId) -> Result<Value, CallError> {
    let event = script.event();
    let Event::CallFinished { call: ended, outcome } = event else { panic!("{event:?}") };
    assert_eq!(ended, call);
    outcome.map(|result| serde_json::from_str(result.as_str()).expect("JSON"))
}

fn answer(id: impl Into<Value>, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "result": result })
}

/// A question during a request travels on its stream, and the answer finds its way back.
// covers: B-10, S1.10
#[test]
fn a_question_is_asked_and_answered() {
    let mut script = session(json!({ "roots": {} }));
    let asked = script.served(request(1, "tools/call", json!({})));
    let roots = call(&mut script, Some(asked.key()), Method::ROOTS_LIST, json!({ "x": 1 })).unwrap();
    let (route, message) = script.next();
    assert_eq!(
        (route, &message["method"], &message["id"]),
        (Route::Related(asked.key()), &json!("roots/list"), &json!(1))
    );
    assert_eq!(message["params"], json!({ "x": 1, "_meta": { "progressToken": 1 } }));
    let ping = call(&mut script, None, Method::PING, json!({})).unwrap();
    let (route, message) = script.next();
    assert_eq!((route, &message["id"]), (Route::Standalone, &json!(2)));
    script.send(answer(2, json!({})));
    assert_eq!(finished(&mut script, ping), Ok(json!({})));
    script.send(answer(1, json!({ "roots": [] })));
    assert_eq!(finished(&mut script, roots), Ok(json!({ "roots": [] })));
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// An error of the client is its answer.
// covers: S1.29
#[test]
fn an_error_is_an_answer() {
    let mut script = session(json!({ "sampling": {} }));
    let sampling = call(&mut script, None, Method::SAMPLING_CREATE_MESSAGE, json!({})).unwrap();
    script.next();
    script.send(json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -1, "message": "no" } }));
    let outcome = finished(&mut script, sampling);
    assert!(matches!(outcome, Err(CallError::Rejected(error)) if error.message == "no"));
    script.assert_nothing_left();
}

/// What no text defines can be asked too, and the answer comes back as it was written.
// covers: S1.27
#[test]
fn what_nobody_defined_can_be_asked() {
    let mut script = session(json!({}));
    let custom = call(&mut script, None, "com.example/ask".into(), json!({ "n": [null] })).unwrap();
    let (_, message) = script.next();
    assert_eq!((&message["method"], &message["params"]["n"]), (&json!("com.example/ask"), &json!([null])));
    let result = r#"{"b":1.50,"a":null}"#;
    script.send_text(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
    let event = script.event();
    let Event::CallFinished { call, outcome: Ok(answer) } = event else { panic!("{event:?}") };
    assert_eq!((call, answer.as_str()), (custom, result));
    script.assert_nothing_left();
}

/// `ping` takes metadata and may be refused, like any question.
// covers: S1.34
#[test]
fn a_ping_is_a_question_like_others() {
    let mut script = session(json!({}));
    let ping = call(&mut script, None, Method::PING, json!({ "_meta": { "com.example/k": 1 } })).unwrap();
    let (route, message) = script.next();
    assert_eq!((route, &message["method"]), (Route::Standalone, &json!("ping")));
    assert_eq!(message["params"]["_meta"]["com.example/k"], 1);
    script.send(json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32601, "message": "what?" } }));
    let outcome = finished(&mut script, ping);
    assert!(matches!(outcome, Err(CallError::Rejected(error)) if error.message == "what?"));
    script.assert_nothing_left();
}

/// Each question needs its capability; what was not declared is not asked.
// covers: X-13, S2.28..S2.34, S0.11, S1.37, B-5
#[test]
fn questions_need_capabilities() {
    let sampling = Method::SAMPLING_CREATE_MESSAGE;
    let elicitation = Method::ELICITATION_CREATE;
    for (method, params, declared, missing) in [
        (Method::ROOTS_LIST, json!({}), json!({ "sampling": {} }), Some("roots")),
        (Method::ROOTS_LIST, json!({}), json!({ "roots": {} }), None),
        (sampling.clone(), json!({}), json!({}), Some("sampling")),
        (sampling.clone(), json!({ "tools": [] }), json!({ "sampling": {} }), Some("sampling.tools")),
        (sampling.clone(), json!({ "toolChoice": {} }), json!({ "sampling": {} }), Some("sampling.tools")),
        (sampling.clone(), json!({ "tools": [] }), json!({ "sampling": { "tools": {} } }), None),
        (
            sampling.clone(),
            json!({ "includeContext": "thisServer" }),
            json!({ "sampling": {} }),
            Some("sampling.context"),
        ),
        (sampling.clone(), json!({ "includeContext": "none" }), json!({ "sampling": {} }), None),
        (sampling, json!({ "includeContext": "thisServer" }), json!({ "sampling": { "context": {} } }), None),
        (elicitation.clone(), json!({}), json!({}), Some("elicitation.form")),
        (elicitation.clone(), json!({}), json!({ "elicitation": {} }), None),
        (
            elicitation.clone(),
            json!({ "mode": "form" }),
            json!({ "elicitation": { "url": {} } }),
            Some("elicitation.form"),
        ),
        (elicitation.clone(), json!({ "mode": "url" }), json!({ "elicitation": {} }), Some("elicitation.url")),
        (elicitation, json!({ "mode": "url" }), json!({ "elicitation": { "url": {} } }), None),
        ("x/custom".into(), json!({}), json!({}), None),
    ] {
        let mut script = session(declared.clone());
        let outcome = call(&mut script, None, method.clone(), params);
        match missing {
            Some(name) => {
                let Err(CommandError::MissingCapability(missing)) = outcome else { panic!("{method}: {outcome:?}") };
                assert_eq!(missing.name(), name, "{method} {declared}");
            }
            None => {
                let call = outcome.unwrap();
                script.next();
                script.send(answer(1, json!({})));
                assert_eq!(finished(&mut script, call), Ok(json!({})));
            }
        }
        script.assert_nothing_left();
    }
}

/// Before 2025-11-25 there was nothing to declare about context.
// covers: SA-4, B-59
#[test]
fn older_clients_declare_no_context() {
    let mut script = Script::initialized_with(config(), "2025-06-18", json!({ "sampling": {} }));
    let params = json!({ "includeContext": "thisServer" });
    let sampling = call(&mut script, None, Method::SAMPLING_CREATE_MESSAGE, params).unwrap();
    script.next();
    script.send(answer(1, json!({})));
    assert_eq!(finished(&mut script, sampling), Ok(json!({})));
    script.assert_nothing_left();
}

/// What the revision lacks is not asked, nor what only clients send.
// covers: B-57
#[test]
fn questions_fit_the_revision() {
    let mut script = Script::initialized_with(config(), "2025-03-26", json!({ "elicitation": {} }));
    for method in [Method::ELICITATION_CREATE, Method::TOOLS_LIST] {
        let refused = call(&mut script, None, method.clone(), json!({}));
        assert_eq!(refused, Err(CommandError::NotInRevision { method, revision: Revision::V2025_03_26 }));
    }
    script.assert_nothing_left();
}

/// Nothing is asked in the modern era, nor without a session.
// covers: M-15, S1.8, S1.9, S1.20, S1.34, S2.23
#[test]
fn there_may_be_no_back_channel() {
    let mut script = session(json!({ "roots": {} }));
    let asked = script.served(modern_request(1, "tools/call", json!({})));
    let refused = call(&mut script, Some(asked.key()), Method::ROOTS_LIST, json!({}));
    assert!(matches!(refused, Err(CommandError::NoBackChannel(_))), "{refused:?}");
    let key = asked.key();
    script.done(asked.responder);
    assert_eq!(call(&mut script, Some(key), Method::ROOTS_LIST, json!({})), Err(CommandError::Ended));
    script.assert_nothing_left();
    for mut script in [Script::modern_request(), Script::legacy_request(Revision::V2025_11_25)] {
        let refused = call(&mut script, None, Method::PING, json!({}));
        assert!(matches!(refused, Err(CommandError::NoBackChannel(_))), "{refused:?}");
        script.assert_nothing_left();
    }
}

/// Before the confirmation there is only `ping`, unless the client itself goes on already.
// covers: B-4, S1.13
#[test]
fn questions_wait_for_the_handshake() {
    let mut strict = config();
    strict.require_initialized = true;
    for (config, lenient) in [(strict, false), (config(), true)] {
        let mut script = Script::with(config);
        assert_eq!(call(&mut script, None, Method::PING, json!({})), Err(CommandError::NotReady));
        script.send(initialize(1, "2025-11-25", json!({ "roots": {} })));
        script.reply();
        assert_eq!(call(&mut script, None, Method::ROOTS_LIST, json!({})), Err(CommandError::NotReady));
        let ping = call(&mut script, None, Method::PING, json!({})).unwrap();
        script.next();
        script.send(answer(1, json!({})));
        assert_eq!(finished(&mut script, ping), Ok(json!({})));
        if lenient {
            let asked = script.served(request(2, "tools/call", json!({})));
            let roots = call(&mut script, Some(asked.key()), Method::ROOTS_LIST, json!({})).unwrap();
            script.next();
            script.send(answer(2, json!({})));
            assert_eq!(finished(&mut script, roots), Ok(json!({})));
            script.done(asked.responder);
        }
        script.assert_nothing_left();
    }
}

fn cancelled(script: &mut Script, id: i64) -> Route {
    let (route, message) = script.next();
    assert_eq!(message["method"], "notifications/cancelled");
    assert_eq!(message["params"]["requestId"], id);
    route
}

/// Silence ends a call, progress starts the wait anew, and the late answer is stray.
// covers: K-10, K-12, S1.28, B-39
#[test]
fn silence_times_out() {
    let mut script = session(json!({}));
    let options = CallOptions::default().idle_timeout(Some(10 * SECOND)).total_timeout(None);
    let call = call_for(&mut script, None, Method::PING, json!({}), options).unwrap();
    script.next();
    script.advance(9 * SECOND);
    script.no_event();
    script.send(notification("notifications/progress", json!({ "progressToken": 1, "progress": 1 })));
    assert!(matches!(script.event(), Event::CallProgress { call: of, .. } if of == call));
    let deadline = script.connection.poll_timeout().unwrap();
    assert_eq!((deadline.at, deadline.kind), (script.now() + 10 * SECOND, DeadlineKind::IdleTimeout(call)));
    script.advance(9 * SECOND);
    script.no_event();
    // Progress of something else does not count.
    script.send(notification("notifications/progress", json!({ "progressToken": "1", "progress": 2 })));
    script.send(notification("notifications/progress", json!({ "progress": 2 })));
    script.advance(SECOND);
    assert_eq!(finished(&mut script, call), Err(CallError::TimedOut));
    assert_eq!(cancelled(&mut script, 1), Route::Standalone);
    script.send(answer(1, json!({})));
    assert!(matches!(script.complaint(), PeerMisbehaved::StrayResponse(Some(id)) if id == 1_u32.into()));
    script.assert_nothing_left();
}

/// Whatever progress arrives, there is an end.
// covers: K-13, S1.28
#[test]
fn the_limit_holds_whatever_happens() {
    let mut script = session(json!({}));
    let options = CallOptions::default().idle_timeout(Some(2 * SECOND)).total_timeout(Some(5 * SECOND));
    let call = call_for(&mut script, None, Method::PING, json!({}), options).unwrap();
    script.next();
    for progress in 1..5 {
        script.advance(SECOND);
        script.send(notification("notifications/progress", json!({ "progressToken": 1, "progress": progress })));
        assert!(matches!(script.event(), Event::CallProgress { .. }));
    }
    script.advance(SECOND);
    assert_eq!(finished(&mut script, call), Err(CallError::TimedOut));
    cancelled(&mut script, 1);
    script.assert_nothing_left();
}

/// There is a deadline by default; none is possible.
// covers: RB-9
#[test]
fn deadlines_are_on_by_default() {
    let mut script = session(json!({}));
    let with = call(&mut script, None, Method::PING, json!({})).unwrap();
    let options = CallOptions::default().idle_timeout(None).total_timeout(None);
    let without = call_for(&mut script, None, Method::PING, json!({}), options).unwrap();
    script.next();
    script.next();
    script.advance(1000 * SECOND);
    assert_eq!(finished(&mut script, with), Err(CallError::TimedOut));
    cancelled(&mut script, 1);
    script.no_event();
    script.send(answer(2, json!({})));
    assert_eq!(finished(&mut script, without), Ok(json!({})));
    script.assert_nothing_left();
}

/// A call that is given up is cancelled, on the stream on which it was asked.
// covers: K-1, B-37
#[test]
fn a_call_can_be_given_up() {
    let mut script = session(json!({ "roots": {} }));
    let asked = script.served(request(1, "tools/call", json!({})));
    let call = call(&mut script, Some(asked.key()), Method::ROOTS_LIST, json!({})).unwrap();
    script.next();
    script.connection.cancel(call).unwrap();
    assert_eq!(finished(&mut script, call), Err(CallError::Cancelled));
    assert_eq!(cancelled(&mut script, 1), Route::Related(asked.key()));
    assert_eq!(script.connection.cancel(call), Err(CommandError::Ended));
    // K-7: the answer crossed the cancellation.
    script.send(answer(1, json!({})));
    assert!(matches!(script.complaint(), PeerMisbehaved::StrayResponse(Some(_))));
    script.done(asked.responder);
    script.assert_nothing_left();
}

/// The cancellation of a call whose stream is gone takes the stream of the connection.
// covers: B-22
#[test]
fn a_call_outlives_its_request() {
    let mut script = session(json!({ "roots": {} }));
    let asked = script.served(request(1, "tools/call", json!({})));
    let call = call(&mut script, Some(asked.key()), Method::ROOTS_LIST, json!({})).unwrap();
    script.next();
    script.done(asked.responder);
    script.connection.cancel(call).unwrap();
    assert_eq!(finished(&mut script, call), Err(CallError::Cancelled));
    assert_eq!(cancelled(&mut script, 1), Route::Standalone);
    script.assert_nothing_left();
}

/// A malformed answer ends the call, and is not answered.
#[test]
fn a_malformed_answer_ends_the_call() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":[]}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}"#,
    ] {
        let mut script = session(json!({}));
        let call = call(&mut script, None, Method::PING, json!({})).unwrap();
        script.next();
        script.send_text(text);
        assert_eq!(finished(&mut script, call), Err(CallError::InvalidResponse));
        assert!(matches!(script.complaint(), PeerMisbehaved::InvalidMessage(_)));
        // A second one is about nothing, and is not answered either.
        script.send_text(text);
        assert!(matches!(script.complaint(), PeerMisbehaved::InvalidMessage(_)));
        script.assert_nothing_left();
    }
}

/// An answer to `"01"` is no answer to `1`; only the text of the number itself is taken for it.
// covers: S0.27
#[test]
fn answers_keep_the_kind_of_the_id() {
    let mut script = session(json!({}));
    let call = call(&mut script, None, Method::PING, json!({})).unwrap();
    script.next();
    script.send(answer("01", json!({})));
    assert!(matches!(script.complaint(), PeerMisbehaved::StrayResponse(Some(_))));
    script.send(answer(1, json!({})));
    assert_eq!(finished(&mut script, call), Ok(json!({})));
    script.assert_nothing_left();
}

/// The application's own token comes back with the progress.
// covers: RB-21, S1.28
#[test]
fn the_token_of_the_application_is_kept() {
    let mut script = session(json!({}));
    let first = call(&mut script, None, Method::PING, json!({ "_meta": { "progressToken": 2 } })).unwrap();
    let second = call(&mut script, None, Method::PING, json!({})).unwrap();
    for (call, token) in [(first, 2.into()), (second, 2.into())] {
        let wire = script.next().1["params"]["_meta"]["progressToken"].take();
        script.send(notification("notifications/progress", json!({ "progressToken": wire, "progress": 1 })));
        let event = script.event();
        let Event::CallProgress { call: of, progress } = event else { panic!("{event:?}") };
        assert_eq!((of, progress.progress_token), (call, token));
    }
    for (id, call) in [(1, first), (2, second)] {
        script.send(answer(id, json!({})));
        assert_eq!(finished(&mut script, call), Ok(json!({})));
    }
    script.assert_nothing_left();
}

/// Nothing piles up for a client that reads nothing: in the end it is not asked any more.
#[test]
fn a_client_that_does_not_read_is_not_asked() {
    let mut small = config();
    small.limits.max_route_messages = 4;
    let mut script = Script::initialized_with(small, "2025-11-25", json!({}));
    script.connection.block(Route::Standalone);
    let mut asked = 0;
    for _ in 0..100 {
        match call(&mut script, None, Method::PING, json!({})) {
            Ok(_) => asked += 1,
            Err(refused) => assert!(matches!(refused, CommandError::OutboxFull), "{refused:?}"),
        }
        script.advance(60 * SECOND);
        while script.connection.poll_event().is_some() {}
    }
    assert_eq!(asked, 2);
    script.connection.unblock(Route::Standalone);
    for _ in 0..4 {
        script.next();
    }
    let ping = call(&mut script, None, Method::PING, json!({})).unwrap();
    script.next();
    script.send(answer(3, json!({})));
    assert_eq!(finished(&mut script, ping), Ok(json!({})));
    script.assert_nothing_left();
}

/// Calls have a limit, and end once with the connection.
#[test]
fn calls_have_a_limit_and_an_end() {
    let mut small: ServerConfig = config();
    small.limits.max_calls = 2;
    let mut script = Script::initialized_with(small, "2025-11-25", json!({}));
    let first = call(&mut script, None, Method::PING, json!({})).unwrap();
    let second = call(&mut script, None, Method::PING, json!({})).unwrap();
    assert_eq!(call(&mut script, None, Method::PING, json!({})), Err(CommandError::TooManyCalls { limit: 2 }));
    script.connection.handle_disconnect();
    assert_eq!(finished(&mut script, first), Err(CallError::Disconnected));
    assert_eq!(finished(&mut script, second), Err(CallError::Disconnected));
    assert!(matches!(script.event(), Event::Closed));
    script.advance(10_000 * SECOND);
    script.send(answer(1, json!({})));
    assert_eq!(script.connection.cancel(first), Err(CommandError::Ended));
    assert_eq!(call(&mut script, None, Method::PING, json!({})), Err(CommandError::Closed));
    script.assert_nothing_left();
}

/// An id that comes back as text answers the question that has the number, which is told once.
// covers: INT-4
#[test]
fn int_4_ids_may_come_back_as_text() {
    let mut script = session(json!({ "roots": {} }));
    for is_first in [true, false] {
        let ping = call(&mut script, None, Method::PING, json!({})).unwrap();
        let id = script.next().1["id"].to_string();
        for other in [format!("0{id}"), "999".to_owned()] {
            script.send(answer(other, json!({})));
            assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::StrayResponse(_))));
        }
        script.send(answer(id, json!({})));
        if is_first {
            assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::IdAsText(_))));
        }
        assert_eq!(finished(&mut script, ping), Ok(json!({})));
    }
    script.assert_nothing_left();
}

fn send_too_much(script: &mut Script, text: &str) {
    let mut scan = EnvelopeScan::default();
    scan.feed(text.as_bytes());
    script.connection.handle_oversized(10, &scan.finish());
}

/// So does one of a response that is too long.
// covers: INT-3, INT-4
#[test]
fn int_4_ids_of_long_responses_may_come_back_as_text() {
    let mut script = session(json!({ "roots": {} }));
    let ping = call(&mut script, None, Method::PING, json!({})).unwrap();
    let id = script.next().1["id"].to_string();
    send_too_much(&mut script, &format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"#));
    assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::IdAsText(_))));
    assert_eq!(finished(&mut script, ping), Err(CallError::TooLong { limit: 10 }));
    assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::TooLong { .. })));
    script.assert_nothing_left();
}

/// A batch may hold the answer to any call, and requests, too, so that it is refused besides.
// covers: INT-3
#[test]
fn int_3_a_batch_that_is_too_long_ends_every_call() {
    for (version, ends) in [("2025-03-26", true), ("2025-11-25", false)] {
        let mut script = Script::initialized_with(config(), version, json!({ "roots": {} }));
        let calls = [(); 2].map(|()| {
            let ping = call(&mut script, None, Method::PING, json!({})).unwrap();
            script.next();
            ping
        });
        send_too_much(&mut script, r#"[{"jsonrpc":"2.0","id":1"#);
        for call in calls.into_iter().filter(|_| ends) {
            assert_eq!(finished(&mut script, call), Err(CallError::TooLong { limit: 10 }));
        }
        assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::TooLong { .. })));
        assert_eq!(script.next().1["error"]["code"], -32600);
        assert!(script.connection.poll_event().is_none(), "{version}");
    }
}
