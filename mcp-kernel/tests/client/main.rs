//! A scripted server against the client's side of a connection.

mod cancellation;
mod idle;
mod notifications;
mod observed;
mod pauses;
mod raw_text;
mod related;
mod renewal;

use std::sync::Arc;

use mcp_kernel::client::{ClientConfig, Connection, DetectedRevision, Event, Responder, Transmit};
use mcp_kernel::{CallError, CallId, CallOptions, CommandError, PeerMisbehaved, Time};
use mcp_types::jsonrpc::EnvelopeScan;
use mcp_types::{
    ClientCapabilities, ElicitationCapability, Implementation, Method, RawObject, RequestId, Revision, RootsCapability,
};
use serde_json::{Value, json};

/// A server that says what a test tells it to say.
struct Script {
    client: Connection,
    now: Time,
}

impl Script {
    /// A client that is ready, in a revision.
    fn ready(revision: Revision) -> Self {
        let capabilities = ClientCapabilities::default()
            .roots(RootsCapability::default())
            .elicitation(ElicitationCapability::default());
        Self::ready_with(revision, capabilities)
    }

    /// Begins a message that is longer than the transport reads.
    fn say_too_much(&mut self, text: &str) {
        let mut scan = EnvelopeScan::default();
        scan.feed(text.as_bytes());
        self.client.handle_oversized(self.now, 10, &scan.finish());
    }

    fn assert_too_long(&mut self, call: CallId) {
        let event = self.event();
        let Event::CallFinished { call: ended, outcome } = event else { panic!("{event:?}") };
        assert_eq!((ended, outcome.err()), (call, Some(CallError::TooLong { limit: 10 })));
    }

    /// A client that is ready, with capabilities of the test's choice.
    fn ready_with(revision: Revision, capabilities: ClientCapabilities) -> Self {
        Self::connected(revision, ClientConfig::new(Implementation::new("client", "1"), capabilities))
    }

    /// A client that is ready, with a configuration of the test's choice.
    fn connected(revision: Revision, config: ClientConfig) -> Self {
        let now = Time::EPOCH;
        let mut script = Self { client: Connection::new(Arc::new(config)), now };
        script.client.start(now, Some(DetectedRevision::new(revision)));
        script.begin(revision);
        script
    }

    /// Completes the handshake, if there is one.
    fn begin(&mut self, revision: Revision) {
        if revision != Revision::V2026_07_28 {
            let id = self.sent()["id"].clone();
            let info = json!({ "name": "s", "version": "1" });
            let result = json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "serverInfo": info });
            self.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
            assert_eq!(self.sent()["method"], "notifications/initialized");
        }
        assert!(matches!(self.client.poll_event(), Some(Event::Ready { .. })));
    }

    fn say(&mut self, message: &Value) {
        self.client.handle_bytes(self.now, message.to_string().as_bytes());
    }

    /// The next message of the client, which there must be.
    fn sent(&mut self) -> Value {
        match self.client.poll_transmit() {
            Some(Transmit::Send { message, .. }) => serde_json::from_slice(&message).expect("JSON"),
            other => panic!("expected a message, found {other:?}"),
        }
    }

    fn event(&mut self) -> Event {
        self.client.poll_event().expect("an event")
    }

    fn call(&mut self) -> (CallId, Value) {
        let call = self.client.call(self.now, &Method::TOOLS_LIST, &RawObject::empty(), CallOptions::default());
        (call.expect("a call"), self.sent()["id"].clone())
    }

    fn asked(&mut self) -> Responder {
        let event = self.event();
        let Event::Request { responder, .. } = event else { panic!("expected a request, found {event:?}") };
        responder
    }

    fn assert_nothing_left(mut self) {
        assert_eq!(self.client.poll_transmit(), None);
        let event = self.client.poll_event();
        assert!(event.is_none(), "{event:?}");
        assert!(self.client.is_idle(), "{:?}", self.client);
    }
}

fn roots(id: impl Into<Value>) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "roots/list" })
}

/// What the client declared is handed on, `ping` is answered, the rest does not exist.
// covers: B-9, B-10
#[test]
fn requests_of_a_server_are_served_as_declared() {
    let mut script = Script::ready(Revision::V2025_11_25);
    script.say(&json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }));
    assert_eq!(script.sent(), json!({ "jsonrpc": "2.0", "id": "p", "result": {} }));
    for method in ["sampling/createMessage", "tools/list", "tasks/get"] {
        script.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": {} }));
        assert_eq!(script.sent()["error"]["code"], -32601, "{method}");
        assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::UnknownMethod(_))));
    }
    script.say(&roots(1));
    let responder = script.asked();
    let result = RawObject::parse(r#"{"roots":[]}"#).expect("an object");
    assert!(script.client.respond(script.now, responder, Ok(&result)));
    assert_eq!(script.sent(), json!({ "jsonrpc": "2.0", "id": 1, "result": { "roots": [] } }));
    script.assert_nothing_left();
}

/// An id that is in use is refused; after a cancellation a stale right answers nothing.
// covers: M-4, B-37
#[test]
fn ids_of_a_server_are_used_once_at_a_time() {
    let mut script = Script::ready(Revision::V2025_06_18);
    script.say(&roots("a"));
    let stale = script.asked();
    assert_eq!(*stale.id(), RequestId::from("a"));
    script.say(&roots("a"));
    assert_eq!(script.sent()["error"]["code"], -32600);
    assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::DuplicateId(_))));
    script.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "a" } }));
    assert!(matches!(script.event(), Event::RequestCancelled { id } if id == RequestId::from("a")));
    script.say(&roots("a"));
    let fresh = script.asked();
    let result = RawObject::parse(r#"{"roots":[]}"#).expect("an object");
    assert!(!script.client.respond(script.now, stale, Ok(&result)), "the first request is gone");
    assert_eq!(script.client.poll_transmit(), None);
    assert!(script.client.respond(script.now, fresh, Ok(&result)));
    script.sent();
    script.assert_nothing_left();
}

/// A server cannot make the client hold more of its requests than the limit says.
#[test]
fn requests_of_a_server_are_bounded() {
    let mut script = Script::ready(Revision::V2025_11_25);
    let mut responders = Vec::new();
    for id in 0..100 {
        script.say(&roots(id));
        responders.push(script.asked());
    }
    script.say(&roots(100));
    assert_eq!(script.sent()["error"]["code"], -32603);
    assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::TooManyRequests)));
    for responder in responders {
        assert!(script.client.respond(script.now, responder, Ok(&RawObject::empty())));
        script.sent();
    }
    script.assert_nothing_left();
}

/// An answer that makes no sense ends its call, and does not look like one of the server's errors.
// covers: M-11, E-12
#[test]
fn a_broken_answer_ends_its_call() {
    for answer in [r#""result":[]"#, r#""result":{},"error":{"code":1,"message":"m"}"#, r#""error":5"#] {
        let mut script = Script::ready(Revision::V2026_07_28);
        let (call, id) = script.call();
        script.client.handle_bytes(script.now, format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#).as_bytes());
        let event = script.event();
        let Event::CallFinished { call: ended, outcome } = event else { panic!("{answer}: {event:?}") };
        assert_eq!((ended, outcome), (call, Err(CallError::InvalidResponse)), "{answer}");
        assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::InvalidMessage(_))));
        script.assert_nothing_left();
    }
}

/// An answer that makes no sense ends its call within a batch as well.
// covers: B-109
#[test]
fn a_broken_answer_in_a_batch_ends_its_call() {
    let mut script = Script::ready(Revision::V2025_03_26);
    let (call, id) = script.call();
    script.say(&json!([{ "jsonrpc": "2.0", "id": id, "result": "wrong" }]));
    let event = script.event();
    let Event::CallFinished { call: ended, outcome } = event else { panic!("{event:?}") };
    assert_eq!((ended, outcome), (call, Err(CallError::InvalidResponse)));
    assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::InvalidMessage(_))));
    script.assert_nothing_left();
}

/// The answer to a call is recognised on its stream, alone and in a batch, and nothing else is.
// covers: B-109
#[test]
fn the_answer_on_a_stream_closes_its_call() {
    for (message, is_answer) in [
        (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, true),
        (r#"{"jsonrpc":"2.0","id":7,"error":{}}"#, true),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#, true),
        (r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#, true),
        (r#"[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":7,"result":{}}]"#, true),
        (r#"{"jsonrpc":"2.0","id":"7","result":{}}"#, true),
        (r#"{"jsonrpc":"2.0","id":"07","result":{}}"#, false),
        (r#"{"jsonrpc":"2.0","id":8,"result":{}}"#, false),
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, false),
        (r#"{"jsonrpc":"2.0","result":{}}"#, false),
        (r#"[{"jsonrpc":"2.0","id":8,"result":{}}]"#, false),
        ("{", false),
    ] {
        let mut script = Script::ready(Revision::V2025_03_26);
        let (call, id) = script.call();
        let text = message.replace('7', &id.to_string());
        assert_eq!(script.client.handle_reply(script.now, call, text.as_bytes()), !is_answer, "{message}");
    }
}

/// An answer to nothing, to `"01"` instead of `1`, or for the second time changes nothing.
// covers: K-7
#[test]
fn stray_answers_change_nothing() {
    let mut script = Script::ready(Revision::V2026_07_28);
    let (call, id) = script.call();
    let text = Value::from(format!("0{id}"));
    for stray in [json!(4711), text, Value::Null] {
        script.say(&json!({ "jsonrpc": "2.0", "id": stray, "error": { "code": 1, "message": "m" } }));
        assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::StrayResponse(_))));
    }
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [] } });
    script.say(&answer);
    assert!(matches!(script.event(), Event::CallFinished { call: ended, outcome: Ok(_) } if ended == call));
    script.say(&answer);
    assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::StrayResponse(_))));
    script.assert_nothing_left();
}

/// An id is not used again, not even after its response.
// covers: B-12
#[test]
fn ids_are_used_once() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut script = Script::ready(revision);
        let mut ids = Vec::new();
        for _ in 0..3 {
            let (_, id) = script.call();
            script.say(&json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [] } }));
            assert!(matches!(script.event(), Event::CallFinished { outcome: Ok(_), .. }));
            assert!(!ids.contains(&id), "{id} in {revision}");
            ids.push(id);
        }
    }
}

/// Batches are read in the one revision that has them.
// covers: B-8
#[test]
fn batches_are_read_where_they_exist() {
    for (revision, is_read) in [(Revision::V2025_03_26, true), (Revision::V2025_06_18, false)] {
        let mut script = Script::ready(revision);
        let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
        script.say(&json!([changed]));
        let event = script.event();
        assert_eq!(matches!(event, Event::Changed { .. }), is_read, "{event:?}");
        script.assert_nothing_left();
    }
}

/// Every modern request describes its client, no legacy one does.
// covers: X-7..X-9, DU-44
#[test]
fn the_envelope_is_there_in_one_era() {
    for (revision, is_there) in [(Revision::V2026_07_28, true), (Revision::V2025_11_25, false)] {
        let mut script = Script::ready(revision);
        let params = RawObject::parse(r#"{"name":"x","_meta":{"com.example/k":1.50}}"#).expect("an object");
        let call =
            script.client.call(script.now, &Method::TOOLS_CALL, &params, CallOptions::default()).expect("a call");
        let meta = script.sent()["params"]["_meta"].clone();
        assert_eq!(meta["com.example/k"], json!(1.5));
        for key in ["protocolVersion", "clientCapabilities", "clientInfo"] {
            assert_eq!(meta.get(format!("io.modelcontextprotocol/{key}")).is_some(), is_there, "{key}");
        }
        script.client.cancel(call).expect("it is open");
        script.sent();
        assert!(matches!(script.event(), Event::CallFinished { outcome: Err(CallError::Cancelled), .. }));
        script.assert_nothing_left();
    }
}

/// Nothing that a server sends makes the client panic, or keep something for ever.
#[test]
fn hostile_bytes_do_no_harm() {
    let seeds = [
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[]}}"#,
        r#"{"jsonrpc":"2.0","id":"x","method":"roots/list","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}]"#,
    ];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).expect("31 bits") % bound
    };
    for round in 0..3000 {
        let revision = if round % 2 == 0 { Revision::V2026_07_28 } else { Revision::V2025_03_26 };
        let mut script = Script::ready(revision);
        let _ = script.call();
        for _ in 0..4 {
            let mut bytes = seeds[random(seeds.len())].as_bytes().to_vec();
            for _ in 0..random(3) {
                let at = random(bytes.len());
                bytes[at] = b"{}[]\",:0129ex\\ \xff"[random(16)];
            }
            script.client.handle_bytes(script.now, &bytes);
        }
        script.client.handle_disconnect();
        while script.client.poll_transmit().is_some() {}
        while script.client.poll_event().is_some() {}
        assert!(script.client.is_idle(), "round {round}");
    }
}

/// A server that asks without reading the answers is cut off, and every call ends.
#[test]
fn whoever_does_not_read_is_cut_off() {
    let mut script = Script::ready(Revision::V2025_11_25);
    let (call, _) = script.call();
    let ping = |id: usize| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    let mut sent = 0;
    while script.client.wants_input() {
        script.say(&ping(sent));
        sent += 1;
    }
    assert_eq!(sent, 1024);
    let refused = script.client.notify(&Method::NOTIFICATIONS_ROOTS_LIST_CHANGED, &json!({}));
    assert_eq!(refused, Err(CommandError::OutboxFull));
    assert_eq!(script.sent()["id"], 0);
    script.say(&ping(sent));
    script.say(&ping(sent + 1));
    assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::NotReading)));
    let ended = script.event();
    assert!(
        matches!(ended, Event::CallFinished { call: ended, outcome: Err(CallError::Disconnected) } if ended == call)
    );
    assert!(matches!(script.event(), Event::Closed));
    script.assert_nothing_left();
}

/// A server that has to get rid of its results before it reads on is listened to, however many calls wait to be sent.
#[test]
fn calls_that_wait_to_be_sent_do_not_stop_reading() {
    let mut script = Script::ready(Revision::V2025_11_25);
    let told = |script: &mut Script| script.client.notify(&Method::NOTIFICATIONS_ROOTS_LIST_CHANGED, &json!({}));
    while told(&mut script).is_ok() {}
    assert_eq!(told(&mut script), Err(CommandError::OutboxFull));
    assert!(script.client.wants_input());
    script.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }));
    while script.client.poll_transmit().is_some() {}
    assert_eq!(told(&mut script), Ok(()));
}

/// The id of a request is kept until it is answered, so its length is bounded.
#[test]
fn long_ids_are_not_kept() {
    let mut script = Script::ready(Revision::V2025_11_25);
    script.say(&roots("x".repeat(2000)));
    assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::IdTooLong { .. })));
    script.assert_nothing_left();
}

/// An id that comes back as text ends the call that has the number, which is told once.
// covers: INT-4
#[test]
fn int_4_ids_may_come_back_as_text() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut script = Script::ready(revision);
        let answer = |id: Value| json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [] } });
        for is_first in [true, false] {
            let (call, id) = script.call();
            for other in [format!("0{id}"), format!("+{id}"), format!(" {id}"), "999".into(), String::new()] {
                script.say(&answer(other.into()));
                assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::StrayResponse(_))));
            }
            script.say(&answer(id.to_string().into()));
            if is_first {
                assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::IdAsText(_))));
            }
            let event = script.event();
            assert!(matches!(event, Event::CallFinished { call: ended, outcome: Ok(_) } if ended == call), "{event:?}");
            // The call is over; nothing has the id any more.
            script.say(&answer(id.to_string().into()));
            assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::StrayResponse(_))));
        }
        script.assert_nothing_left();
    }
}

/// So does one of a response that is too long.
// covers: INT-3, INT-4
#[test]
fn int_4_ids_of_long_responses_may_come_back_as_text() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut script = Script::ready(revision);
        let (call, id) = script.call();
        script.say_too_much(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"#));
        assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::IdAsText(_))));
        script.assert_too_long(call);
        assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::TooLong { .. })));
        script.assert_nothing_left();
    }
}

/// A request that is too long is refused by its id. A modern server has none to send, and gets no answer.
// covers: INT-3, M-16
#[test]
fn int_3_a_request_that_is_too_long_is_refused_in_the_legacy_era() {
    for (revision, is_refused) in [(Revision::V2025_11_25, true), (Revision::V2026_07_28, false)] {
        let mut script = Script::ready(revision);
        script.say_too_much(r#"{"jsonrpc":"2.0","id":7,"method":"roots/list","params":{"#);
        if is_refused {
            let refusal = script.sent();
            assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(7), &json!(-32600)), "{refusal}");
        }
        assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::TooLong { .. })));
        script.assert_nothing_left();
    }
}

/// Whichever call a batch was to answer, it is over. Only one revision has batches, and what merely begins like one is
/// output of something else.
// covers: INT-3
#[test]
fn int_3_a_batch_that_is_too_long_ends_every_call() {
    for (revision, text, ends) in [
        (Revision::V2025_03_26, r#" [ {"jsonrpc":"2.0","id":1"#, true),
        (Revision::V2025_03_26, "[INFO] {", false),
        (Revision::V2025_03_26, "[1,", false),
        (Revision::V2025_11_25, r#"[{"jsonrpc":"2.0","id":1"#, false),
    ] {
        let mut script = Script::ready(revision);
        let (first, second) = (script.call().0, script.call().0);
        script.say_too_much(text);
        if ends {
            script.assert_too_long(first);
            script.assert_too_long(second);
        }
        assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::TooLong { .. })), "{text}");
        assert!(script.client.poll_event().is_none(), "{text}");
    }
}

/// The handshake, too.
// covers: INT-4
#[test]
fn int_4_the_handshake_may_return_its_id_as_text() {
    let config = ClientConfig::new(Implementation::new("client", "1"), ClientCapabilities::default());
    let now = Time::EPOCH;
    let mut script = Script { client: Connection::new(Arc::new(config)), now };
    script.client.start(now, Some(DetectedRevision::new(Revision::V2025_11_25)));
    let id = script.sent()["id"].to_string();
    let info = json!({ "name": "s", "version": "1" });
    let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info });
    script.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    assert!(matches!(script.event(), Event::PeerMisbehaved(PeerMisbehaved::IdAsText(_))));
    assert!(matches!(script.event(), Event::Ready { .. }));
}

/// For everything else `1` and `"1"` are two ids.
// covers: INT-4, AMB-12
#[test]
fn int_4_other_ids_keep_their_kind() {
    let mut script = Script::ready(Revision::V2025_11_25);
    script.say(&roots(1));
    let number = script.asked();
    script.say(&roots("1"));
    let text = script.asked();
    script.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "1" } }));
    assert!(matches!(script.event(), Event::RequestCancelled { id } if id == RequestId::from("1")));
    let result = RawObject::parse(r#"{"roots":[]}"#).expect("an object");
    assert!(!script.client.respond(script.now, text, Ok(&result)), "it was cancelled");
    assert!(script.client.respond(script.now, number, Ok(&result)));
    assert_eq!(script.sent()["id"], 1);
    script.assert_nothing_left();
}
