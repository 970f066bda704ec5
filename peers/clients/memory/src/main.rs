//! `client-memory WHICH`: makes the calls that the driver wants, to a server in the same process.

#[path = "../../../shared/caller_ours.rs"]
mod caller_ours;
#[path = "../../../shared/caller_rmcp.rs"]
mod caller_rmcp;
#[path = "../../../shared/calls.rs"]
mod calls;
#[path = "../../../servers/rmcp-handler/src/handler.rs"]
mod handler;
#[path = "../../../servers/ours/src/tools.rs"]
mod tools;

use std::future::pending;

use mcp_client::{Client, MemoryTransport, Mode, Transport};
use mcp_server::Server;
use mcp_transport_stdio::{ServeOptions, StreamTransport, serve_io};
use rmcp::ServiceExt as _;
use tokio::io::{DuplexStream, duplex, split};

use crate::caller_rmcp::Rmcp;
use crate::calls::Fault;

fn main() -> Result<(), Fault> {
    let which = std::env::args().nth(1);
    match which.as_deref() {
        Some("ours-memory") => calls::run(async { ours(MemoryTransport::new(server()?)).await }),
        Some("ours-duplex") => calls::run(async {
            let (reader, writer) = split(serve_ours()?);
            ours(StreamTransport::new(reader, writer)).await
        }),
        Some("rmcp-duplex") => calls::run(async { Rmcp::connect(serve_ours()?).await }),
        Some("rmcp-alone") => calls::run(async { Rmcp::connect(serve_rmcp()).await }),
        _ => Err("client-memory ours-memory | ours-duplex | rmcp-duplex | rmcp-alone".into()),
    }
}

async fn ours(transport: impl Transport) -> Result<Client, Fault> {
    Ok(Client::builder("bench", "1.0").mode(Mode::Modern).connect(transport).await?)
}

fn server() -> Result<Server, Fault> {
    Ok(tools::echoes(Server::builder("ours", "1.0"), 50).build()?)
}

/// Serves at one end of a pipe; returns the other one.
fn serve_ours() -> Result<DuplexStream, Fault> {
    let server = server()?;
    let (near, far) = duplex(PIPE);
    tokio::spawn(async move {
        let (reader, writer) = split(far);
        serve_io(&server, reader, writer, &ServeOptions::default(), pending()).await
    });
    Ok(near)
}

/// The same with the server of `rmcp`.
fn serve_rmcp() -> DuplexStream {
    let (near, far) = duplex(PIPE);
    tokio::spawn(async move {
        if let Ok(server) = handler::Server::new().serve(far).await {
            let _ = server.waiting().await;
        }
    });
    near
}

/// As many bytes as a pipe of Linux holds.
const PIPE: usize = 64 * 1024;
