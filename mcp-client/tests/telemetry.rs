//! What an operator sees. Alone, because whether a span is wanted is remembered for all threads.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like one")]

use mcp_client::types::{
    ElicitAction, ElicitResult, ErrorCode, ErrorObject, RequestedSchema, Revision, SubscriptionFilter,
};
use mcp_client::{Client, MemoryTransport};
use mcp_server::{HandlerError, NoArguments, RequestContext, Server, text_resource, tool};
use mcp_testkit::{TraceFields, TraceRecorder};

/// The spans of the client, in the order in which they were created.
fn of_client<'a>(spans: &'a [TraceFields], span: &str) -> Vec<&'a TraceFields> {
    let kind = "client";
    spans.iter().filter(|fields| fields["span"] == span && fields["otel.kind"] == kind).collect()
}

/// A call has a span that says what is called and how it ended, and a connection has one that lasts.
// covers: S4.102, S4.103, S4.106, MIS-3
#[tokio::test]
async fn calls_have_spans() {
    let recorder = TraceRecorder::start();
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
    let spans = recorder.finish().spans;
    let [hello, fail, nowhere] = of_client(&spans, "mcp.request")[..] else { panic!("three calls") };
    let names = [hello, fail, nowhere].map(|span| span["otel.name"].as_str());
    assert_eq!(names, ["tools/call hello", "tools/call fail", "resources/read test://nowhere"]);
    let ids = [hello, fail, nowhere].map(|span| span["jsonrpc.request.id"].clone());
    assert!(ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
    assert_eq!((&*hello["gen_ai.tool.name"], hello.get("error.type")), ("hello", None));
    assert_eq!((&*fail["error.type"], fail.get("rpc.response.status_code")), ("tool_error", None));
    assert_eq!((&*nowhere["error.type"], &*nowhere["rpc.response.status_code"]), ("-32602", "-32602"));
    let [session] = of_client(&spans, "mcp.session")[..] else { panic!("one connection") };
    for span in [hello, fail, nowhere, session] {
        assert_eq!(span["mcp.protocol.version"], "2026-07-28");
        assert_eq!(span["mcp.session.id"], session["mcp.session.id"]);
    }
}

/// A server that asks its client, and is told which trace each message belongs to.
fn asking() -> Server {
    let ask = tool("ask", async |ctx: RequestContext, _: NoArguments| {
        let form = mcp_client::types::ElicitRequestFormParams::new("Sure?", RequestedSchema::new(Default::default()));
        let said = ctx.elicit_form("sure", form).await;
        Ok::<_, HandlerError>(if said.is_ok() { "asked" } else { "refused" })
    });
    Server::builder("kit", "1.0").tool(ask).trace_parent(|_, _| {}).trace_context(|| None).build().unwrap()
}

/// Messages that the client sends by itself have spans, and so have subscriptions, notifications and the requests of the
/// server.
// covers: S4.102
#[tokio::test]
async fn all_messages_have_spans() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let recorder = TraceRecorder::start();
        let client = Client::builder("test", "1.0")
            .revisions([revision])
            .trace_context(|| None)
            .on_form_elicitation(async |_, _| ElicitResult::new(ElicitAction::Decline))
            .roots([]);
        let client = client.connect(MemoryTransport::new(asking())).await.unwrap();
        assert_eq!(client.call_tool("ask").await.unwrap().to_text(), "asked");
        client.notify("notifications/custom", &serde_json::json!({})).await.unwrap();
        if revision == Revision::LATEST {
            drop(client.listen(SubscriptionFilter::default().tools_list_changed(true)).await.unwrap());
        }
        client.close().await;
        let spans = recorder.finish().spans;
        let requests = spans.iter().filter(|span| span["span"] == "mcp.request");
        let mut seen: Vec<_> = requests.map(|span| format!("{} {}", span["otel.kind"], span["otel.name"])).collect();
        seen.sort();
        let expected: &[&str] = if revision == Revision::LATEST {
            &[
                "client notifications/cancelled",
                "client notifications/custom",
                "client server/discover",
                "client subscriptions/listen",
                "client tools/call ask",
                "server _OTHER",
                "server notifications/cancelled",
                "server notifications/subscriptions/acknowledged",
                "server server/discover",
                "server subscriptions/listen",
                "server tools/call ask",
                "server tools/call ask",
            ]
        } else {
            &[
                "client elicitation/create",
                "client initialize",
                "client notifications/custom",
                "client notifications/initialized",
                "client tools/call ask",
                "server _OTHER",
                "server elicitation/create",
                "server initialize",
                "server notifications/initialized",
                "server tools/call ask",
            ]
        };
        assert_eq!(seen, expected, "{revision}");
        for span in spans.iter().filter(|span| span["span"] == "mcp.request" && !span["otel.name"].contains("notif")) {
            assert!(span.contains_key("jsonrpc.request.id") || span["otel.name"] == "_OTHER", "{span:?}");
            assert_eq!(span.get("error.type"), None, "{span:?}");
        }
    }
}

/// The span of a request of the server says how it ended.
#[tokio::test]
async fn requests_of_the_server_say_how_they_ended() {
    let recorder = TraceRecorder::start();
    let client = Client::builder("test", "1.0")
        .revisions([Revision::V2025_11_25])
        .on_form_elicitation(async |_, _| Err::<ElicitResult, _>(ErrorObject::new(ErrorCode::new(7), "no")));
    let client = client.connect(MemoryTransport::new(asking())).await.unwrap();
    assert_eq!(client.call_tool("ask").await.unwrap().to_text(), "refused");
    client.close().await;
    let spans = recorder.finish().spans;
    let asked: Vec<_> =
        spans.iter().filter(|span| span.get("otel.name").is_some_and(|it| it.starts_with("elic"))).collect();
    assert_eq!(asked.len(), 2);
    for span in asked {
        assert_eq!((&*span["error.type"], &*span["rpc.response.status_code"]), ("7", "7"));
    }
}
