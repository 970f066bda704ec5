//! Who talks to whom, and what is said.

use std::sync::Arc;

use mcp_kernel::Time;
use mcp_kernel::server::{Connection, Event, ServerConfig, Transmit};
use mcp_types::{
    CallToolResult, Implementation, PromptsCapability, ResourcesCapability, ServerCapabilities, ToolsCapability,
};

const ENVELOPE: &str =
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

const TOOL: &str = r#""name":"search_files","arguments":{"query":"fn parse_single","path":"src/jsonrpc","limit":50,"caseSensitive":true}"#;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"roots":{}},"clientInfo":{"name":"bench","version":"1.0"}}}"#;

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A call by a client of 2026-07-28.
pub(crate) fn modern_call() -> Vec<u8> {
    call(&format!(r#"{{"progressToken":17,{ENVELOPE}}}"#))
}

/// The same call by a client of an older revision.
pub(crate) fn legacy_call() -> Vec<u8> {
    call(r#"{"progressToken":17}"#)
}

fn call(meta: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{{"_meta":{meta},{TOOL}}}}}"#).into_bytes()
}

/// A request to hear of changes of a resource.
pub(crate) fn listen(id: usize, uri: &str) -> Vec<u8> {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"_meta":{{{ENVELOPE}}},"notifications":{{"resourceSubscriptions":["{uri}"]}}}}}}"#
    )
    .into_bytes()
}

/// What a call answers: one line of text.
pub(crate) fn answer() -> CallToolResult {
    CallToolResult::text("src/jsonrpc/incoming.rs:38: pub(super) fn parse_single<'a>(bytes: &'a [u8])")
}

/// A server that offers what is measured, with room for so many listeners.
pub(crate) fn config(listeners: usize) -> Arc<ServerConfig> {
    let capabilities = ServerCapabilities::default()
        .tools(ToolsCapability::default().list_changed(true))
        .prompts(PromptsCapability::default().list_changed(true))
        .resources(ResourcesCapability::default().list_changed(true).subscribe(true));
    let mut config = ServerConfig::new(Implementation::new("bench", "1.0"), capabilities);
    config.limits.max_listen_streams = listeners;
    Arc::new(config)
}

/// A connection on which the handshake took place.
pub(crate) fn initialized(config: Arc<ServerConfig>) -> Connection {
    let mut connection = Connection::long_lived(config);
    shake_hands(&mut connection);
    connection
}

/// Lets the handshake take place.
pub(crate) fn shake_hands(connection: &mut Connection) {
    for message in [INITIALIZE, INITIALIZED] {
        connection.handle_bytes(Time::EPOCH, message.as_bytes(), None);
        drain(connection);
    }
    assert!(connection.negotiated().is_some() && connection.is_idle());
}

/// Takes a request in and sends its answer.
pub(crate) fn serve(connection: &mut Connection, now: Time, request: &[u8]) -> Transmit {
    connection.handle_bytes(now, request, None);
    let Some(Event::Request { responder, scope, params }) = connection.poll_event() else { panic!("no request") };
    connection.respond(responder, Ok(answer()));
    drop((scope, params));
    connection.poll_transmit().expect("an answer")
}

/// Takes what there is to send and to tell; returns how many messages were to be sent.
pub(crate) fn drain(connection: &mut Connection) -> usize {
    while connection.poll_event().is_some() {}
    std::iter::from_fn(|| connection.poll_transmit()).count()
}
