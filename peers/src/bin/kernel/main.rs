//! What the server's state machine of `mcp-kernel` costs.

mod idle;
mod publish;
mod requests;
mod workload;

use std::process::ExitCode;

use peers::measure::ROUNDS;
use peers::operations::{self, Operation};
use peers::versions;

fn main() -> ExitCode {
    let all: Vec<Operation> = requests::operations().into_iter().chain(publish::operations()).collect();
    operations::main("kernel", &all, report)
}

#[expect(clippy::print_stdout, reason = "the report is what this is for")]
fn report() {
    println!("{}, {}, {}", versions::named("mcp-kernel"), versions::named("mcp-types"), versions::named("serde_json"));
    println!("{ROUNDS} rounds each, in turns; the time is that of the median round\n");
    println!("{}", requests::report());
    println!("{}", publish::report());
    println!("{}", idle::report());
}
