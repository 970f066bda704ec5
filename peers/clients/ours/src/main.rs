//! `client-ours stdio COMMAND..` or `client-ours http URL`: makes the calls that the driver wants.

#[path = "../../../shared/caller_ours.rs"]
mod caller_ours;
#[path = "../../../shared/calls.rs"]
mod calls;

use mcp_client::{Client, Mode, Transport};
use mcp_transport_http::HttpTransport;
use mcp_transport_stdio::{ChildTransport, ServerCommand};

use crate::calls::Fault;

fn main() -> Result<(), Fault> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["stdio", program, rest @ ..] => {
            calls::run(connect(ChildTransport::new(ServerCommand::new(program).args(rest))))
        }
        ["http", url] => calls::run(connect(HttpTransport::new(url)?)),
        _ => Err("client-ours stdio COMMAND.. | http URL".into()),
    }
}

async fn connect(transport: impl Transport) -> Result<Client, Fault> {
    Ok(Client::builder("bench", "1.0").mode(Mode::Modern).connect(transport).await?)
}
