//! The calls that requests and log messages of the server belong to.

use mcp_kernel::client::CancelStyle;
use mcp_types::SamplingCapability;

use super::*;

/// A client that is ready, on a transport where each call has its own stream, or on a pipe.
fn ready(revision: Revision, cancel_style: CancelStyle) -> Script {
    let capabilities = ClientCapabilities::default()
        .roots(RootsCapability::default())
        .elicitation(ElicitationCapability::default())
        .sampling(SamplingCapability::default());
    let mut config = ClientConfig::new(Implementation::new("client", "1"), capabilities);
    config.cancel_style = cancel_style;
    Script::connected(revision, config)
}

fn request(id: &str, method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} })
}

fn log() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": 1 } })
}

fn custom() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/custom" })
}

impl Script {
    fn say_to(&mut self, call: CallId, message: &Value) {
        self.client.handle_reply(self.now, call, message.to_string().as_bytes());
    }

    /// The call that the next request or notification belongs to.
    fn related(&mut self) -> Option<CallId> {
        let event = self.event();
        let (Event::Request { related, .. } | Event::Notification { related, .. } | Event::Log { related, .. }) = event
        else {
            panic!("{event:?}")
        };
        related
    }

    fn respond_to(&mut self, id: &Value) {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [] } }));
        assert!(matches!(self.event(), Event::CallFinished { .. }));
    }
}

/// The stream of a call says which one it is, however many there are. Another stream belongs to none.
// covers: GW-1
#[test]
fn gw_1_the_stream_says_which_call_is_meant() {
    let mut script = ready(Revision::V2025_11_25, CancelStyle::CloseStream);
    let (first, _) = script.call();
    let (second, _) = script.call();
    for (number, call) in [second, first, second].into_iter().enumerate() {
        for (kind, method) in ["elicitation/create", "sampling/createMessage", "roots/list"].into_iter().enumerate() {
            script.say_to(call, &request(&format!("{number}.{kind}"), method));
            assert_eq!(script.related(), Some(call), "{method}");
        }
        script.say_to(call, &log());
        assert_eq!(script.related(), Some(call));
        script.say_to(call, &custom());
        assert_eq!(script.related(), Some(call));
    }
    for message in [request("x", "elicitation/create"), log(), custom()] {
        script.say(&message);
        assert_eq!(script.related(), None);
    }
}

/// Modern servers have no requests, but log messages on the stream of a call.
// covers: GW-1
#[test]
fn gw_1_modern_log_messages_belong_to_the_call_of_their_stream() {
    let mut script = ready(Revision::V2026_07_28, CancelStyle::CloseStream);
    let (first, _) = script.call();
    let (second, _) = script.call();
    for call in [second, first] {
        script.say_to(call, &log());
        assert_eq!(script.related(), Some(call));
    }
}

/// On a pipe a call is meant if it is the only one. What may have nothing to do with a call belongs to none.
// covers: GW-1
#[test]
fn gw_1_on_a_pipe_only_the_only_call_is_meant() {
    let mut script = ready(Revision::V2025_11_25, CancelStyle::Notify);
    script.say(&request("a", "elicitation/create"));
    assert_eq!(script.related(), None);
    let (first, first_id) = script.call();
    script.say(&request("b", "elicitation/create"));
    assert_eq!(script.related(), Some(first));
    script.say(&request("c", "sampling/createMessage"));
    assert_eq!(script.related(), Some(first));
    for message in [request("d", "roots/list"), request("e", "custom"), log(), custom()] {
        script.say(&message);
        assert_eq!(script.related(), None, "{message}");
    }
    let (second, _) = script.call();
    script.say(&request("f", "elicitation/create"));
    assert_eq!(script.related(), None);
    script.respond_to(&first_id);
    script.say(&request("g", "elicitation/create"));
    assert_eq!(script.related(), Some(second));
}

/// A modern server logs for a request, so that the only one is meant.
// covers: GW-1
#[test]
fn gw_1_modern_log_messages_on_a_pipe_belong_to_the_only_call() {
    let mut script = ready(Revision::V2026_07_28, CancelStyle::Notify);
    let (first, _) = script.call();
    script.say(&log());
    assert_eq!(script.related(), Some(first));
    script.call();
    script.say(&log());
    assert_eq!(script.related(), None);
}

/// The server may still be working on a call that was cancelled, and its requests are not taken for those of another one.
/// A new process works on nothing.
// covers: GW-1
#[test]
fn gw_1_a_cancelled_call_makes_requests_on_a_pipe_ambiguous() {
    let mut script = ready(Revision::V2025_11_25, CancelStyle::Notify);
    let (first, _) = script.call();
    script.client.cancel(first).expect("it is in flight");
    assert_eq!(script.sent()["method"], "notifications/cancelled");
    assert!(matches!(script.event(), Event::CallFinished { .. }));
    script.call();
    script.say(&request("a", "elicitation/create"));
    assert_eq!(script.related(), None);
    script.client.restart(script.now, Some(DetectedRevision::new(Revision::V2025_11_25)));
    assert!(matches!(script.event(), Event::CallFinished { .. }));
    assert!(matches!(script.event(), Event::RequestCancelled { .. }));
    script.begin(Revision::V2025_11_25);
    let (third, _) = script.call();
    script.say(&request("b", "elicitation/create"));
    assert_eq!(script.related(), Some(third));
}
