//! How the cost of a request grows: with tools, sessions, streams, sizes, calls in flight, threads.
//!
//! Everything happens in this process, through the public API of the crates and without sockets.

mod contention;
mod dimension;
mod in_flight;
mod service;
mod sessions;
mod sizes;
mod streams;
mod threads;
mod tools;

use std::process::ExitCode;

use peers::measure::ROUNDS;
use peers::operations;

use crate::dimension::Dimension;
use crate::service::{Service, call};

#[expect(clippy::print_stderr, reason = "a command-line tool talks to its user")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => report(),
        ["--prepared", name, times] => prepared(name, times),
        ["--contend", case] => threads::contend(case),
        _ => Err("usage: growth".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "the report is what this is for")]
fn report() -> Result<(), String> {
    println!("What is done without a socket, in one process; {ROUNDS} rounds each, in turns\n");
    for dimension in dimensions() {
        println!("{}", dimension.report()?);
    }
    println!("{}", threads::report()?);
    Ok(())
}

/// Runs an operation for another process of this program, which counts.
fn prepared(name: &str, times: &str) -> Result<(), String> {
    let dimensions = dimensions();
    let operation = dimensions.iter().flat_map(|dimension| &dimension.operations).find(|found| found.name == name);
    let operation = operation.ok_or("there is no such operation")?;
    operations::run_prepared(operation, times.parse().map_err(|_| "not a number")?)
}

fn dimensions() -> Vec<Dimension> {
    let by_tools = [10, 100, 1000, 10_000].into_iter().fold(
        Dimension::new("a modern call of a tool", "tools", "the registry is looked up by name"),
        |dimension, size| {
            dimension.at(size, 1, 500, move || {
                let service = Service::new(tools::server(size));
                let request = call("echo", r#"{"text":"hello"}"#);
                move || drop(service.body(request.clone()))
            })
        },
    );
    let mut dimensions = vec![by_tools];
    dimensions.extend(sessions::dimensions());
    dimensions.extend(streams::dimensions());
    dimensions.extend(sizes::dimensions());
    dimensions.extend(in_flight::dimensions());
    dimensions
}
