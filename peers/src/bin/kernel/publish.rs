//! A change is published, and some of those who listen want to hear of it.

use std::fmt::Display;
use std::hint::black_box;

use mcp_kernel::server::{Connection, ListenStreams};
use mcp_kernel::{Change, Time};
use mcp_types::SubscriptionFilter;
use peers::operations::{Operation, measure};
use peers::report::Costs;

use crate::workload;

const WATCHED: &str = "file:///project/src/main.rs";

/// How many listen, and how many of them want to hear of the change.
const CASES: [(usize, usize); 7] =
    [(1, 1), (100, 1), (100, 10), (100, 100), (10_000, 1), (10_000, 1_000), (10_000, 10_000)];

/// The address that a listener asks for, so that as many as wanted ask for the one that changes.
fn uri(index: usize, matching: usize) -> String {
    if index < matching { WATCHED.to_owned() } else { format!("file:///project/other/{index}.rs") }
}

pub(crate) fn operations() -> Vec<Operation> {
    let matched = CASES.map(|(all, matching)| index(all, matching));
    let published = CASES.map(|(all, matching)| connection(all, matching));
    matched.into_iter().chain(published).collect()
}

/// The index alone: who is to be told.
fn index(all: usize, matching: usize) -> Operation {
    Operation::new(format!("ListenStreams::of, {matching} of {all}"), times(matching), move || {
        let mut streams = ListenStreams::default();
        for index in 0..all {
            let filter = SubscriptionFilter::default().resource_subscriptions(vec![uri(index, matching)]);
            streams.insert(index, &filter);
        }
        let change = Change::Resource(WATCHED.to_owned());
        move || {
            let reached = streams.of(black_box(&change)).map(black_box).count();
            assert_eq!(reached, matching);
        }
    })
}

/// All of it, up to the messages that the driver takes.
fn connection(all: usize, matching: usize) -> Operation {
    Operation::new(format!("Connection::publish, {matching} of {all}"), times(matching), move || {
        let (mut connection, now) = (Connection::long_lived(workload::config(all)), Time::EPOCH);
        for index in 0..all {
            connection.handle_bytes(now, &workload::listen(index, &uri(index, matching)), None);
            workload::drain(&mut connection);
        }
        let change = Change::Resource(WATCHED.to_owned());
        move || {
            connection.publish(black_box(&change));
            assert_eq!(black_box(workload::drain(&mut connection)), matching);
        }
    })
}

/// Instructions are counted slowly, so what takes long is done less often.
fn times(matching: usize) -> u32 {
    match matching {
        ..=10 => 1000,
        11..=100 => 100,
        _ => 5,
    }
}

pub(crate) fn report() -> impl Display {
    let operations = operations();
    let costs = measure(&operations);
    let title = "Publishing the change of a resource: k of n streams want to hear of it";
    let mut table = Costs::new(title, vec!["ns/reached"]);
    for ((operation, cost), (_, matching)) in operations.iter().zip(&costs).zip(CASES.iter().cycle()) {
        let each = format!("{:.1}", cost.nanoseconds / *matching as f64);
        table.add(operation.name.as_str(), *cost, vec![each]);
    }
    table
}
