//! Many calls that have not ended, and one more.

use std::task::{Context, Waker};

use mcp_kernel::Time;
use mcp_server::{Caller, Connection};

use crate::dimension::Dimension;
use crate::service::{Service, Started, call};
use crate::tools;

const SIZES: [usize; 4] = [1, 10, 100, 1000];

pub(crate) fn dimensions() -> Vec<Dimension> {
    let http = Dimension::new(
        "a modern call over HTTP, with many in flight",
        "calls in flight",
        "each call has a response of its own",
    );
    let http = SIZES.into_iter().fold(http, |dimension, size| {
        dimension.at(size, 1, 500, move || {
            let service = Service::new(tools::server(10));
            let start = |_| match service.start(call("wait", r#"{"text":"hello"}"#)) {
                Started::Pending(future) => future,
                Started::Ready(response) => panic!("ended: {}", response.status()),
            };
            let waiting: Vec<_> = (0..size).map(start).collect();
            let (service, request) = (service.clone(), call("echo", r#"{"text":"hello"}"#));
            move || {
                // They are in flight as long as the operation is there.
                let _ = &waiting;
                drop(service.body(request.clone()));
            }
        })
    });
    let connection = Dimension::new(
        "a modern call on one connection, as of stdio, with many in flight",
        "calls in flight",
        "its id is looked up in a map, or compared with few others (`InFlight::key_of`)",
    );
    let connection = SIZES.into_iter().fold(connection, |dimension, size| {
        dimension.at(size, 1, 500, move || {
            let mut connection = Connection::long_lived(&tools::server(10));
            let caller = Caller::default();
            for id in 0..size {
                connection.feed(Time::EPOCH, message(id, "wait").as_bytes(), &caller);
            }
            let mut context = Context::from_waker(Waker::noop());
            let _ = connection.poll(&mut context, Time::EPOCH);
            let request = message(size, "echo");
            move || {
                connection.feed(Time::EPOCH, request.as_bytes(), &caller);
                let _ = connection.poll(&mut Context::from_waker(Waker::noop()), Time::EPOCH);
                assert!(connection.poll_transmit().is_some(), "there is no response");
            }
        })
    });
    vec![http, connection]
}

fn message(id: usize, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"hello"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}
