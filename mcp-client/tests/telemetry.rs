//! What an operator sees. Alone, because whether a span is wanted is remembered for all threads.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like one")]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use mcp_client::{Client, MemoryTransport};
use mcp_server::{NoArguments, Server, text_resource, tool};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_core::span::Current;

type Fields = BTreeMap<&'static str, String>;

/// Writes down all spans, with what is recorded on them.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    spans: Vec<(&'static Metadata<'static>, Fields)>,
    entered: Vec<u64>,
}

struct Reader<'a>(&'a mut Fields);

impl Visit for Reader<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

fn index(span: &Id) -> usize {
    usize::try_from(span.into_u64()).unwrap() - 1
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target() == "mcp"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
        span.record(&mut Reader(&mut fields));
        let mut state = self.0.lock().unwrap();
        state.spans.push((span.metadata(), fields));
        Id::from_u64(state.spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(&mut Reader(&mut self.0.lock().unwrap().spans[index(span)].1));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        self.0.lock().unwrap().entered.push(span.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().entered.pop();
    }

    fn current_span(&self) -> Current {
        let state = self.0.lock().unwrap();
        let current = state.entered.last().map(|number| Id::from_u64(*number));
        current.map_or_else(Current::none, |id| Current::new(id.clone(), state.spans[index(&id)].0))
    }
}

/// A call has a span that says what is called and how it ended, and a connection has one that lasts.
// covers: S4.102, S4.103, S4.106, MIS-3
#[tokio::test]
async fn calls_have_spans() {
    let spans = Spans::default();
    let _guard = tracing::subscriber::set_default(spans.clone());
    let server = Server::builder("kit", "1.0")
        .tool(tool("hello", async |_, _: NoArguments| "Hello!"))
        .tool(tool("fail", async |_, _: NoArguments| Err::<(), _>("no")))
        .resource(text_resource("test://here", "here", "here"));
    let client = Client::connect(MemoryTransport::new(server.build().unwrap())).await.unwrap();
    client.call_tool("hello").await.unwrap();
    client.call_tool("fail").await.unwrap();
    assert!(client.read_resource("test://nowhere").await.is_err());
    client.close().await;

    // The spans of the server in the same process are none of ours.
    let state = spans.0.lock().unwrap();
    let of_client = |name: &str| -> Vec<&Fields> {
        let ours =
            state.spans.iter().filter(|(metadata, fields)| metadata.name() == name && fields["otel.kind"] == "client");
        ours.map(|(_, fields)| fields).collect()
    };
    let [hello, fail, nowhere] = of_client("mcp.request")[..] else { panic!("three calls") };
    let names = [hello, fail, nowhere].map(|span| span["otel.name"].as_str());
    assert_eq!(names, ["tools/call hello", "tools/call fail", "resources/read test://nowhere"]);
    let ids = [hello, fail, nowhere].map(|span| span["jsonrpc.request.id"].clone());
    assert!(ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
    assert_eq!((&*hello["gen_ai.tool.name"], hello.get("error.type")), ("hello", None));
    assert_eq!((&*fail["error.type"], fail.get("rpc.response.status_code")), ("tool_error", None));
    assert_eq!((&*nowhere["error.type"], &*nowhere["rpc.response.status_code"]), ("-32602", "-32602"));
    let [session] = of_client("mcp.session")[..] else { panic!("one connection") };
    for span in [hello, fail, nowhere, session] {
        assert_eq!(span["mcp.protocol.version"], "2026-07-28");
        assert_eq!(span["mcp.session.id"], session["mcp.session.id"]);
    }
}
