//! A call of a tool that asks nothing, through a server's connection.

use std::hint::black_box;
use std::task::{Context, Waker};

use mcp_server::{Caller, Connection, Server, Time, raw_tool};
use mcp_types::{CallToolResult, RawObject};
use peers::operations::Operation;

pub(crate) const TIMES: u32 = 1000;

const ENVELOPE: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}"#;

/// A call of a tool by a client of 2026-07-28, with what else is among its parameters.
pub(crate) fn call(tool: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{{"_meta":{{{ENVELOPE}}},"name":"{tool}","arguments":{{"query":"fn parse_single","path":"src/jsonrpc","limit":50}}{more}}}}}"#
    )
}

/// Takes a call in and its answer out.
pub(crate) fn serve(connection: &mut Connection, now: Time, request: &[u8]) -> Vec<u8> {
    connection.feed(now, request, &Caller::default());
    let _ = connection.poll(&mut Context::from_waker(Waker::noop()), now);
    connection.poll_transmit().expect("an answer").message.into_bytes()
}

fn server() -> Server {
    let schema = RawObject::parse(r#"{"type":"object"}"#).expect("a schema");
    let echo = raw_tool("echo", schema, async |_, _| CallToolResult::text("src/jsonrpc/incoming.rs:38"));
    Server::builder("bench", "1.0").tool(echo).build().expect("a server")
}

pub(crate) fn operations() -> Vec<Operation> {
    vec![
        Operation::new("modern tools/call that asks nothing", TIMES, || {
            let (mut connection, now, request) = (Connection::long_lived(&server()), Time::EPOCH, call("echo", ""));
            move || drop(black_box(serve(&mut connection, now, black_box(request.as_bytes()))))
        }),
        Operation::new("the same on a connection of its own", TIMES, || {
            let (server, now, request) = (server(), Time::EPOCH, call("echo", ""));
            move || {
                let mut connection = Connection::modern_request(&server);
                drop(black_box(serve(&mut connection, now, black_box(request.as_bytes()))));
            }
        }),
    ]
}
