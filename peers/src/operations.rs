//! Operations that can be timed, and run by name under a tool that counts instructions.

use std::process::ExitCode;

use crate::measure::{self, Cost};

/// Something that can be done any number of times.
#[non_exhaustive]
pub struct Operation {
    /// What it is called.
    pub name: String,
    /// How often to run it for the instructions to be seen; never, if that would take too long.
    pub times: u32,
    /// Prepares it, off the clock.
    prepare: Box<dyn Fn() -> Box<dyn FnMut()>>,
}

impl Operation {
    /// Names an operation, and says how to prepare it.
    pub fn new<F: FnMut() + 'static>(name: impl Into<String>, times: u32, prepare: impl Fn() -> F + 'static) -> Self {
        Self { name: name.into(), times, prepare: Box::new(move || Box::new(prepare())) }
    }
}

/// Measures operations in turns.
#[must_use]
pub fn measure(operations: &[Operation]) -> Vec<Cost> {
    let mut prepared: Vec<_> = operations.iter().map(|operation| (operation.prepare)()).collect();
    measure::each(&mut prepared)
}

/// What a bench does by its arguments: reports, lists its operations, or runs one of them.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "what it prints is what it is for")]
pub fn main(bench: &str, operations: &[Operation], report: impl FnOnce()) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => report(),
        ["--operations"] => {
            for operation in operations.iter().filter(|operation| operation.times > 0) {
                println!("{}\t{}", operation.name, operation.times);
            }
        }
        ["--callgrind", name, times] => {
            let operation = operations.iter().find(|operation| operation.name == *name);
            let (Some(operation), Ok(times)) = (operation, times.parse::<u32>()) else {
                eprintln!("{}", usage(bench));
                return ExitCode::FAILURE;
            };
            let mut run = (operation.prepare)();
            for _ in 0..times {
                run();
            }
        }
        _ => {
            eprintln!("{}", usage(bench));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn usage(bench: &str) -> String {
    let indent = " ".repeat("usage: ".len());
    format!(
        "usage: {bench}                          print all tables
{indent}{bench} --operations             list what can be run by name, and how often is enough to see its cost
{indent}{bench} --callgrind NAME TIMES   run one operation so many times, and nothing else"
    )
}
