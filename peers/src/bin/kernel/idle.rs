//! How much a connection takes on which nothing happens.

use std::fmt::{Display, Write as _};
use std::sync::Arc;

use mcp_kernel::Time;
use mcp_kernel::server::{Connection, ServerConfig};
use peers::allocations;

use crate::workload;

const AIM: usize = 1024;

type Prepare = fn(Arc<ServerConfig>) -> Connection;

const CASES: [(&str, Prepare); 5] = [
    ("modern_request", Connection::modern_request),
    ("long_lived", Connection::long_lived),
    ("after the legacy handshake", workload::initialized),
    ("after a modern call", |config| {
        let mut connection = Connection::long_lived(config);
        drop(workload::serve(&mut connection, Time::EPOCH, &workload::modern_call()));
        connection
    }),
    ("after the handshake and 100 calls at once", |config| {
        let mut connection = workload::initialized(config);
        burst(&mut connection);
        connection
    }),
];

/// A hundred calls come in before the first is answered.
fn burst(connection: &mut Connection) {
    for id in 0..100 {
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"a"}}}}"#);
        connection.handle_bytes(Time::EPOCH, request.as_bytes(), None);
    }
    let events: Vec<_> = std::iter::from_fn(|| connection.poll_event()).collect();
    for event in events {
        if let mcp_kernel::server::Event::Request { responder, .. } = event {
            connection.respond(responder, Ok(workload::answer()));
        }
    }
    workload::drain(connection);
}

pub(crate) fn report() -> impl Display {
    let config = workload::config(16);
    let size = size_of::<Connection>();
    let mut report = String::from("Bytes of an idle Connection; the configuration is shared and does not count\n\n");
    let width = CASES.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let _ = writeln!(report, "{:width$} | {:>8} | {:>8} | {:>8}", "", "itself", "heap", "all");
    for (name, prepare) in CASES {
        let config = Arc::clone(&config);
        let (connection, heap) = allocations::retained(|| prepare(config));
        assert!(connection.is_idle(), "{connection:?}");
        let all = size as i64 + heap;
        let verdict = if all < AIM as i64 { "met" } else { "MISSED" };
        let _ = writeln!(report, "{name:width$} | {size:>8} | {heap:>8} | {all:>8} | aim below {AIM}: {verdict}");
    }
    report
}
