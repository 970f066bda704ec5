//! What an operator sees. Alone, because whether a span is wanted is remembered for all threads.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like one")]

use std::sync::{Arc, Mutex};

use mcp_client::{Client, MemoryTransport};
use mcp_server::{NoArguments, Server, text_resource, tool};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Writes down the spans of calls, and what is recorded on them.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.name() == "mcp.request"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.0.lock().unwrap().push(format!("{:?}", span.values()));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        self.0.lock().unwrap().push(format!("{values:?}"));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A call has a span that says what is called, and how it ended.
// covers: S4.102, S4.103, S4.106, MIS-3
#[tokio::test]
async fn calls_have_spans() {
    let notes = Notes::default();
    let _guard = tracing::subscriber::set_default(notes.clone());
    let server = Server::builder("kit", "1.0")
        .tool(tool("hello", async |_, _: NoArguments| "Hello!"))
        .resource(text_resource("test://here", "here", "here"));
    let client = Client::connect(MemoryTransport::new(server.build().unwrap())).await.unwrap();
    client.call_tool("hello").await.unwrap();
    assert!(client.read_resource("test://nowhere").await.is_err());
    let notes = notes.0.lock().unwrap().join("\n");
    assert!(notes.contains("client") && notes.contains("tools/call hello"), "{notes}");
    assert!(notes.contains("test://nowhere") && notes.contains("-32602"), "{notes}");
    for field in ["mcp.protocol.version", "mcp.session.id", "jsonrpc.request.id"] {
        assert!(notes.contains(field), "{field}: {notes}");
    }
}
