//! Events for metrics and traces.

use super::*;
use mcp_kernel::client::HandledMessage;
use mcp_types::ErrorCode;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn observed() -> ClientConfig {
    let mut config = ClientConfig::new(Implementation::new("client", "1"), ClientCapabilities::default());
    config.observed = true;
    config
}

/// Removes the events for metrics.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other events are those of other tests")]
fn reported(script: &mut Script) -> (Vec<HandledMessage>, Vec<Option<CallError>>) {
    let (mut handled, mut ended) = (Vec::new(), Vec::new());
    while let Some(event) = script.client.poll_event() {
        match event {
            Event::Handled(message) => handled.push(*message),
            Event::OwnCallFinished { error, .. } => ended.push(error),
            _ => {}
        }
    }
    (handled, ended)
}

/// The ends of the probe and of the handshake are reported, each once, however they end.
// covers: S4.102
#[test]
fn the_ends_of_own_requests_are_reported() {
    let connect = || {
        let mut script = Script { client: Connection::new(Arc::new(observed())), now: Time::EPOCH };
        script.client.start(Time::EPOCH, None);
        let probe = script.sent();
        (script, probe)
    };
    let (mut script, probe) = connect();
    let error = json!({ "code": -32601, "message": "no" });
    script.say(&json!({ "jsonrpc": "2.0", "id": probe["id"], "error": error }));
    let (_, ended) = reported(&mut script);
    assert!(matches!(&ended[..], [Some(CallError::Rejected(error))] if error.code == ErrorCode::METHOD_NOT_FOUND));
    let hello = script.sent();
    let result = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" },
    });
    script.say(&json!({ "jsonrpc": "2.0", "id": hello["id"], "result": result }));
    assert_eq!(reported(&mut script).1, [None]);

    // The server is silent: both are in flight, and end with the connection.
    let (mut script, _) = connect();
    script.client.handle_timeout(script.client.poll_timeout().expect("a timeout").at);
    assert_eq!(reported(&mut script).1, []);
    script.client.close();
    assert_eq!(reported(&mut script).1, [Some(CallError::Disconnected), Some(CallError::Disconnected)]);
}

/// What the kernel responds to itself is reported, with its trace, and so are notifications.
#[test]
fn messages_of_the_server_are_reported() {
    let mut script = Script { client: Connection::new(Arc::new(observed())), now: Time::EPOCH };
    script.client.resume(Revision::V2025_11_25, Default::default());
    let _ = reported(&mut script);
    let meta = json!({ "_meta": { "traceparent": PARENT } });
    script.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": meta }));
    script.say(&json!({ "jsonrpc": "2.0", "id": 2, "method": "roots/list" }));
    script.say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": meta }));
    let (handled, _) = reported(&mut script);
    let found: Vec<_> =
        handled.iter().map(|it| (it.method.as_str(), it.error, it.trace_context.traceparent())).collect();
    let expected = [
        ("ping", None, Some(PARENT)),
        ("roots/list", Some(ErrorCode::METHOD_NOT_FOUND), None),
        ("notifications/tools/list_changed", None, Some(PARENT)),
    ];
    assert_eq!(found, expected);
    assert_eq!(handled[0].id, Some(1_u32.into()));
}
