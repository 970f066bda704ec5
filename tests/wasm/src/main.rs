//! A client that calls the tools of a server in both eras, as WebAssembly.
//!
//! Without arguments, both are in one module, which takes no clock, random source or I/O from its host: on
//! `wasm32-unknown-unknown` there are none. With the arguments `server` or `client REVISION` the module is one of the two, and
//! exchanges lines with the other one on its standard streams, as `wasm32-wasip1` allows. A failure is a panic, which ends a
//! module with a trap.

mod client;
mod link;
mod server;

use std::time::Duration;

use mcp_client::types::Revision;

use self::link::{LocalServer, Streams};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => run_in_one_module(),
        ["server"] => LocalServer::on_system_clock(server::builder()).serve_streams(),
        ["client", "2026-07-28"] => client::exchange(Revision::V2026_07_28, &mut Streams::new()),
        ["client", "2025-11-25"] => client::exchange(Revision::V2025_11_25, &mut Streams::new()),
        _ => panic!("usage: [server | client 2026-07-28 | client 2025-11-25]"),
    }
}

fn run_in_one_module() {
    for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
        client::exchange(revision, &mut LocalServer::on_manual_clock(server::builder()));
        client::exceed_time_limit(
            revision,
            &mut LocalServer::on_manual_clock(server::builder()),
            Duration::from_secs(3600),
        );
    }
}

// covers: GW-12
#[test]
fn client_and_server_work_in_one_module() {
    run_in_one_module();
}
