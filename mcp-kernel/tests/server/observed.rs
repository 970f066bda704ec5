//! Events for metrics and traces.

use mcp_kernel::server::{Event, HandledMessage, ServerConfig};
use mcp_testkit::envelope::{cancelled, initialize, initialized, modern_request, notification, request};
use mcp_types::{ErrorCode, Method, RequestId, Revision};
use serde_json::{Value, json};

use crate::script::{Script, config};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn observed() -> ServerConfig {
    let mut config = config();
    config.observed = true;
    config
}

/// The messages that the kernel handled since the last call.
fn handled(script: &mut Script) -> Vec<HandledMessage> {
    let mut handled = Vec::new();
    while let Some(event) = script.connection.poll_event() {
        if let Event::Handled(message) = event {
            handled.push(*message);
        }
    }
    handled
}

fn only(mut handled: Vec<HandledMessage>) -> HandledMessage {
    assert_eq!(handled.len(), 1, "{handled:?}");
    handled.remove(0)
}

fn with_parent(mut message: Value) -> Value {
    message["params"]["_meta"]["traceparent"] = json!(PARENT);
    message
}

/// What the kernel responds to itself is reported with its trace, revision and error, and what the application responds to
/// is not.
// covers: S4.102
#[test]
fn what_the_kernel_handles_is_reported() {
    let mut script = Script::with(observed());
    script.send(with_parent(initialize(1, "2025-11-25", json!({}))));
    let message = only(handled(&mut script));
    assert_eq!((&message.method, message.id, message.error), (&Method::INITIALIZE, Some(1_u32.into()), None));
    assert_eq!(message.revision, Some(Revision::V2025_11_25));
    assert_eq!(message.trace_context.traceparent(), Some(PARENT));
    script.send(initialized());
    let message = only(handled(&mut script));
    assert_eq!((&message.method, message.id), (&Method::NOTIFICATIONS_INITIALIZED, None));
    script.send(request(2, "ping", json!({})));
    assert_eq!(only(handled(&mut script)).method, Method::PING);
    script.send(with_parent(modern_request(3, "server/discover", json!({}))));
    let message = only(handled(&mut script));
    assert_eq!((message.revision, message.trace_context.traceparent()), (Some(Revision::LATEST), Some(PARENT)));
    script.send(modern_request(4, "no/such", json!({})));
    let message = only(handled(&mut script));
    assert_eq!((message.method.as_str(), message.error), ("no/such", Some(ErrorCode::METHOD_NOT_FOUND)));
    script.send(notification("notifications/roots/list_changed", json!({})));
    assert_eq!(only(handled(&mut script)).method, Method::NOTIFICATIONS_ROOTS_LIST_CHANGED);
    for _ in 0..4 {
        script.reply();
    }
    script.send(modern_request(5, "tools/call", json!({ "name": "a" })));
    let open = script.asked();
    script.no_event();
    script.done(open.responder);
    script.assert_nothing_left();
}

/// A listen stream is reported by its own events, as it has not ended.
#[test]
fn listen_streams_are_not_handled_messages() {
    let mut script = Script::with(observed());
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    script.send(modern_request(1, "subscriptions/listen", filter));
    assert!(matches!(script.event(), Event::Listening { .. }));
    script.no_event();
}

/// A handshake that the application decides about is reported when it is decided.
#[test]
fn decided_handshakes_are_reported() {
    let mut config = observed();
    config.intercept_initialize = true;
    let mut script = Script::with(config);
    script.send(initialize(1, "2025-11-25", json!({})));
    assert_eq!(handled(&mut script), []);
    script.connection.refuse_handshake(&mcp_types::ErrorObject::internal_error("no"));
    assert_eq!(only(handled(&mut script)).error, Some(ErrorCode::INTERNAL_ERROR));
    script.send(initialize(2, "2025-11-25", json!({})));
    assert_eq!(handled(&mut script), []);
    assert!(script.connection.accept_handshake(None));
    let message = only(handled(&mut script));
    assert_eq!((message.id, message.error), (Some(2_u32.into()), None));
    assert_eq!(message.revision, Some(Revision::V2025_11_25));
}

/// The length of the queue is reported as it grows and shrinks: by a response, by a cancellation, and at the end.
#[test]
fn the_queue_is_reported() {
    let call = |id| modern_request(id, "tools/call", json!({ "name": "a" }));
    let length = |script: &mut Script| {
        let mut length = None;
        while let Some(event) = script.connection.poll_event() {
            if let Event::QueueLength(now) = event {
                length = Some(now);
            }
        }
        length
    };
    let mut config = observed();
    (config.limits.max_in_flight, config.limits.max_queued) = (1, 3);
    let mut script = Script::with(config);
    let first = script.served(call(1));
    script.no_event();
    script.send(call(2));
    script.send(call(3));
    script.send(call(4));
    assert_eq!(length(&mut script), Some(3));
    script.send(cancelled(3));
    assert_eq!(length(&mut script), Some(2));
    script.done(first.responder);
    assert_eq!(length(&mut script), Some(1));
    script.connection.close();
    assert_eq!(length(&mut script), Some(0));
}

/// A request that ends in the queue is reported, as the application never learns of it.
#[test]
fn requests_that_end_in_the_queue_are_reported() {
    let call = |id| modern_request(id, "tools/call", json!({ "name": "a" }));
    let unqueued = |script: &mut Script| {
        let mut ids = Vec::new();
        while let Some(event) = script.connection.poll_event() {
            if let Event::CancelledInQueue { scope, .. } = event {
                ids.push(scope.id().clone());
            }
        }
        ids
    };
    for is_observed in [true, false] {
        let mut config = observed();
        config.observed = is_observed;
        (config.limits.max_in_flight, config.limits.max_queued) = (1, 3);
        let mut script = Script::with(config);
        let _first = script.served(call(1));
        (2..5).for_each(|id| script.send(call(id)));
        script.send(cancelled(3));
        let expected = if is_observed { vec![RequestId::from(3_u32)] } else { Vec::new() };
        assert_eq!(unqueued(&mut script), expected);
        script.connection.close();
        let expected = if is_observed { vec![2_u32.into(), 4_u32.into()] } else { Vec::new() };
        assert_eq!(unqueued(&mut script), expected);
    }
}

/// Without an observer there are no such events.
#[test]
fn nothing_is_reported_by_default() {
    let mut script = Script::initialized("2025-11-25");
    script.send(request(2, "ping", json!({})));
    script.reply();
    script.no_event();
}
