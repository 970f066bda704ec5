//! The server whose costs are looked at.

use mcp_kernel::Limits;
use mcp_server::{RequestContext, Server, tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// What most tools take.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Text {
    text: String,
}

/// What the tool with a long result takes.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Length {
    bytes: usize,
}

/// Builds a server with so many tools, the others included: `echo`, `length`, `repeat`, and `wait`, which never ends.
pub(crate) fn server(number: usize) -> Server {
    let mut builder = Server::builder("growth", "1.0")
        .limits(limits())
        .tool(tool("echo", async |_: RequestContext, Text { text }| text))
        .tool(tool("length", async |_: RequestContext, Text { text }| text.len().to_string()))
        .tool(tool("repeat", async |_: RequestContext, Length { bytes }| long_text(bytes)))
        .tool(tool("wait", async |_: RequestContext, Text { text }| {
            std::future::pending::<()>().await;
            text
        }));
    for index in 4..number {
        builder = builder.tool(tool(format!("tool_{index:05}"), async |_: RequestContext, Text { text }| text));
    }
    builder.build().expect("a server")
}

/// Lines of code, so many bytes of them.
pub(crate) fn long_text(bytes: usize) -> String {
    LINE.repeat(bytes / LINE.len() + 1)[..bytes].to_owned()
}

/// Limits above all that is measured.
fn limits() -> Limits {
    let mut limits = Limits::default();
    (limits.max_in_flight, limits.max_queued) = (MANY, MANY);
    (limits.max_in_flight_bytes, limits.max_queued_bytes) = (usize::MAX, usize::MAX);
    (limits.max_outbox_messages, limits.max_outbox_bytes) = (MANY, usize::MAX);
    (limits.max_listen_streams, limits.max_route_messages, limits.max_route_bytes) = (MANY, MANY, usize::MAX);
    limits
}

const MANY: usize = 1 << 20;
const LINE: &str = "    let value = index.checked_add(offset).unwrap_or_default(); // no text of its own\n";
