//! A server with fifty tools, as its author would write it.

mod tools;

use std::io;

use mcp_server::Server;

fn main() -> io::Result<()> {
    let server = tools::echoes(Server::builder("ours", "1.0"), 50).build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(mcp_transport_stdio::serve_stdio(server))
}
