//! What rounds cost those who ask, and those who do not.
//!
//! It is built twice: with the feature `mrtr`, and without it, for what a server pays that can ask and never does.

mod calls;
#[cfg(feature = "mrtr")]
mod states;

use std::process::ExitCode;

use peers::measure::ROUNDS;
use peers::operations::{self, Operation};
use peers::report::Costs;
use peers::versions;

fn main() -> ExitCode {
    operations::main("mrtr", &all(), report)
}

#[cfg(feature = "mrtr")]
fn all() -> Vec<Operation> {
    calls::operations().into_iter().chain(states::operations()).collect()
}

#[cfg(not(feature = "mrtr"))]
fn all() -> Vec<Operation> {
    calls::operations()
}

#[expect(clippy::print_stdout, reason = "the report is what this is for")]
fn report() {
    let which = if cfg!(feature = "mrtr") { "with the feature `mrtr`" } else { "without the feature `mrtr`" };
    println!("{}, {}", versions::named("mcp-server"), versions::named("mcp-mrtr"));
    println!("{ROUNDS} rounds each, in turns; the time is that of the median round\n");
    let operations = all();
    let mut table = Costs::new(format!("Calls and states, {which}"), Vec::new());
    for (operation, cost) in operations.iter().zip(operations::measure(&operations)) {
        table.add(operation.name.as_str(), cost, Vec::new());
    }
    println!("{table}");
}
