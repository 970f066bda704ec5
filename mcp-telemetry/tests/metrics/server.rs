//! A server that reports to the metrics.

use std::sync::Arc;

use mcp_client::{Client, MemoryTransport};
use mcp_server::{NoArguments, Server, tool};
use mcp_types::{Era, Revision};

use crate::collected::{Collector, Point, number};

// covers: S4.107
#[tokio::test]
async fn a_server_records_its_requests_and_sessions() {
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        let collector = Collector::new();
        let hello = tool("hello", async |_, _: NoArguments| "Hello!");
        let server =
            Server::builder("greeter", "1.0").tool(hello).observer(Arc::new(collector.metrics())).build().unwrap();
        let client = Client::builder("test", "1.0").revisions([revision]);
        let client = client.connect(MemoryTransport::new(server)).await.unwrap();
        client.call_tool("hello").await.unwrap();
        client.call_tool("unknown").await.unwrap_err();

        let points = collector.points("mcp.server.operation.duration");
        let version = revision.as_str();
        let hello = format!("gen_ai.tool.name=hello mcp.method.name=tools/call mcp.protocol.version={version}");
        assert!(matches!(points[&hello], Point::Durations { count: 1, .. }), "{points:?}");
        let unknown = format!(
            "error.type=-32602 mcp.method.name=tools/call mcp.protocol.version={version} rpc.response.status_code=-32602"
        );
        assert!(matches!(points[&unknown], Point::Durations { count: 1, .. }), "{points:?}");
        assert_eq!(collector.points("mcp.server.active_requests")["mcp.method.name=tools/call"], number(0));

        client.close().await;
        // A connection of the modern era has no revision of its own, each request has one.
        let expected = match revision.era() {
            Era::Legacy => format!("mcp.protocol.version={version}"),
            Era::Modern => String::new(),
        };
        let points = collector.points("mcp.server.session.duration");
        assert_eq!(points.keys().collect::<Vec<_>>(), [&expected]);
        assert_eq!(collector.points("mcp.server.session.count")[""], number(0));
    }
}
