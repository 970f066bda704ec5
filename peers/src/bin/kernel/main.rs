//! What the server's state machine of `mcp-kernel` costs.

mod idle;
mod operations;
mod publish;
mod requests;
mod workload;

use std::process::ExitCode;

use operations::Operation;
use peers::measure::ROUNDS;
use peers::versions;

const USAGE: &str = "\
usage: kernel                          print all tables
       kernel --operations             list what can be run by name, and how often is enough to see its cost
       kernel --callgrind NAME TIMES   run one operation so many times, and nothing else";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this is for")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => report(),
        ["--operations"] => {
            for operation in all().filter(|operation| operation.times > 0) {
                println!("{}\t{}", operation.name, operation.times);
            }
        }
        ["--callgrind", name, times] => {
            let operation = all().find(|operation| operation.name == *name);
            let (Some(operation), Ok(times)) = (operation, times.parse::<u32>()) else {
                eprintln!("{USAGE}");
                return ExitCode::FAILURE;
            };
            let mut run = (operation.prepare)();
            for _ in 0..times {
                run();
            }
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

#[expect(clippy::print_stdout, reason = "the report is what this is for")]
fn report() {
    println!("{}, {}, {}", versions::named("mcp-kernel"), versions::named("mcp-types"), versions::named("serde_json"));
    println!("{ROUNDS} rounds each, in turns; the time is that of the median round\n");
    println!("{}", requests::report());
    println!("{}", publish::report());
    println!("{}", idle::report());
}

fn all() -> impl Iterator<Item = Operation> {
    requests::operations().into_iter().chain(publish::operations())
}
