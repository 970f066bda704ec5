//! One request in and its answer out, against the least that any server has to do with it.

use std::fmt::{Display, Write as _};
use std::hint::black_box;

use mcp_kernel::Time;
use mcp_kernel::server::Connection;
use mcp_types::RequestId;
use mcp_types::jsonrpc::{Limits, Message, write_result};
use peers::operations::{Operation, measure};
use peers::report::Costs;
use serde_json::Value;

use crate::workload;

const TIMES: u32 = 1000;

pub(crate) fn operations() -> Vec<Operation> {
    vec![
        Operation::new("modern tools/call in, answer out", TIMES, || {
            let (mut connection, now) = (Connection::long_lived(workload::config(16)), Time::EPOCH);
            let request = workload::modern_call();
            move || drop(black_box(workload::serve(&mut connection, now, black_box(&request))))
        }),
        Operation::new("legacy tools/call in, answer out", TIMES, || {
            let (mut connection, now) = (workload::initialized(workload::config(16)), Time::EPOCH);
            let request = workload::legacy_call();
            move || drop(black_box(workload::serve(&mut connection, now, black_box(&request))))
        }),
        Operation::new("modern call on a connection of its own", TIMES, || {
            let (config, now, request) = (workload::config(16), Time::EPOCH, workload::modern_call());
            move || {
                let mut connection = Connection::modern_request(config.clone());
                drop(black_box(workload::serve(&mut connection, now, black_box(&request))));
            }
        }),
        Operation::new("modern_request, and drop", TIMES, || {
            let config = workload::config(16);
            move || drop(black_box(Connection::modern_request(black_box(&config).clone())))
        }),
        Operation::new("the modern text to serde_json::Value", TIMES, || {
            let request = workload::modern_call();
            move || drop(black_box(serde_json::from_slice::<Value>(black_box(&request)).expect("JSON")))
        }),
        Operation::new("the modern text to jsonrpc::Message", TIMES, || {
            let (request, limits) = (workload::modern_call(), Limits::default());
            move || drop(black_box(Message::parse(black_box(&request), &limits).expect("a message")))
        }),
        Operation::new("the answer made, and written as it is", TIMES, || {
            let id = RequestId::from(17);
            move || {
                let mut message = Vec::new();
                write_result(&mut message, &id, &workload::answer()).expect("an answer can be written");
                drop(black_box(message));
            }
        }),
    ]
}

/// The costs, each as a ratio to both ways to read the request.
pub(crate) fn report() -> impl Display {
    let operations = operations();
    let costs = measure(&operations);
    let [modern, .., tree, envelope, answer] = costs.as_slice() else { unreachable!("operations and costs match") };
    let size = workload::modern_call().len();
    let title = format!("Requests, through the server's kernel; the modern one has {size} bytes");
    let mut table = Costs::new(title, vec!["/ Value", "/ Message"]);
    for (operation, cost) in operations.iter().zip(&costs) {
        let cells = [tree, envelope].map(|base| format!("{:.2}", cost.nanoseconds / base.nanoseconds)).to_vec();
        table.add(operation.name.as_str(), *cost, cells);
    }
    let mut report = table.to_string();
    let own = modern.nanoseconds - envelope.nanoseconds - answer.nanoseconds;
    for (what, nanoseconds) in
        [("all of it", modern.nanoseconds), ("without reading the text and writing the answer", own)]
    {
        let verdict = if nanoseconds < tree.nanoseconds { "met" } else { "MISSED" };
        let ratio = nanoseconds / tree.nanoseconds;
        let _ = writeln!(
            report,
            "aim: a modern request costs less than its JSON parsed to a Value; {what}: {nanoseconds:.0} ns, {ratio:.2}: {verdict}",
        );
    }
    report
}
