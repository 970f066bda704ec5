//! Builds the workspace for Windows, and runs there, under Wine, what talks to other processes.

mod wine;

use std::process::Command;
use std::time::Duration;

use crate::{Outcome, process, workspace};
use wine::Wine;

const TARGET: &str = "x86_64-pc-windows-gnu";

/// What runs under Wine: the stdio server, the child transport, and the examples as processes.
const TESTED: [&str; 2] = ["mcp-transport-stdio", "mcp-examples"];

/// What is built for Windows and does not run there, with the reason.
const NOT_RUN: [(&str, &str); 6] = [
    (
        "mcp-transport-stdio: child, client::children, client::ends",
        "play servers with shell scripts; `processes` does not",
    ),
    ("mcp-transport-stdio: listen::unix", "needs Unix sockets"),
    ("mcp-tests: stdio_abuse, stdio_kill, http_abuse, client_abuse", "measure with /proc, and send signals"),
    ("mcp-redis: redis, mcp-tests: sessions_in_redis, tasks_in_redis", "need a Redis server"),
    ("mcp-examples: prometheus", "needs Prometheus"),
    ("all other tests", "depend on no system, and run on the host"),
];

const BUILD_LIMIT: Duration = Duration::from_secs(1200);
const TEST_LIMIT: Duration = Duration::from_secs(600);

/// Lints everything for Windows, then tests what depends on the system.
pub(crate) fn run() -> Outcome {
    let wine = Wine::prepare(&workspace::root().join("target/wine"))?;
    let mut lints = cargo("clippy");
    lints.args(["--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]);
    process::run(&mut lints, "cargo clippy for Windows", BUILD_LIMIT)?;
    process::run(tests().arg("--no-run"), "cargo test --no-run for Windows", BUILD_LIMIT)?;
    process::run(wine.runs(&mut tests()), "cargo test under Wine", TEST_LIMIT)?;
    let mut report = format!("the workspace builds for {TARGET}; under Wine pass: {}\n", TESTED.join(", "));
    for (tests, reason) in NOT_RUN {
        report += &format!("not run under Wine: {tests} ({reason})\n");
    }
    Ok(report)
}

fn tests() -> Command {
    let mut command = cargo("test");
    command.args(TESTED.iter().flat_map(|package| ["--package", package]));
    // Without the unit tests of programs, which depend on no system. The programs are built all the same.
    command.args(["--all-features", "--lib", "--test", "*"]);
    command
}

fn cargo(command: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args([command, "--locked", "--target", TARGET]).current_dir(workspace::root());
    cargo
}
