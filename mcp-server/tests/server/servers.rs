//! Servers to test, and what they do.

use mcp_server::types::Revision;
use mcp_server::{BuildError, Server, ServerBuilder};

/// The revisions with a handshake.
pub(crate) const LEGACY: [Revision; 4] =
    [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

pub(crate) const MODERN: Revision = Revision::V2026_07_28;

pub(crate) fn server(build: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    build(Server::builder("demo", "1.0")).build().expect("a server")
}

pub(crate) fn refused(build: impl FnOnce(ServerBuilder) -> ServerBuilder) -> BuildError {
    build(Server::builder("demo", "1.0")).build().expect_err("a refusal")
}

/// Removes a tool; returns whether it was there.
pub(crate) fn removed(server: &Server, tool: &str) -> bool {
    let mut was_there = false;
    let update = server.update(|registry| {
        was_there = registry.remove_tool(tool);
        Ok(())
    });
    update.expect("an update");
    was_there
}

/// What a handler does that has a bug.
pub(crate) fn fails() {
    panic!("this is what the test wants");
}
