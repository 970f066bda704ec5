//! The workspace's own tools.

mod api;
mod bench;
mod ci;
mod codegen;
mod conformance;
mod coverage;
mod fuzz;
mod import;
mod metadata;
mod model;
mod names;
mod nightly;
mod process;
mod windows;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

/// What a command has to say, or why it failed.
type Outcome = Result<String, String>;

const USAGE: &str = "\
usage: cargo xtask <command>

  ci                     everything that must hold before a change lands
  ci STEP ..             some steps of it
  ci --list              the names of the steps
  import DIR             merge the official schema files below DIR into mcp-types/schema/model.json
  import DIR --check     fail if model.json does not match them
  import DIR --diff A B  show what changed from revision A to revision B
  codegen                write mcp-types/src/generated from model.json and docs.toml
  codegen --check        fail if the generated files are not up to date
  coverage               write docs/coverage.md: the tests of each requirement
  coverage --check       fail if it is not up to date
  api                    write docs/api: the public items of each published crate; installs the nightly toolchain if it is missing
  api --check            fail if it is not up to date
  bench types            compare mcp-types with its peers, in time and allocations
  bench kernel           what mcp-kernel costs, in time, allocations, bytes and, with valgrind, instructions
  bench mrtr             what rounds of questions cost, and what a server that could ask pays for a call that does not
  bench tasks            what tasks cost in memory and in Redis: created and finished, polled, memory of those that wait
  bench stdio            compare servers over standard streams: time of a call, start, size, dependencies
  bench http             compare servers over HTTP: requests, streams, sessions, listeners, memory, instructions, size
  bench client           compare clients in memory, over standard streams and HTTP: calls, allocations, size, dependencies
  bench growth           how the cost of a request grows with tools, sessions, streams, sizes, calls in flight, threads
  bench service          compare servers whose tools use Redis and another service, with 50 clients
  bench all              all of these, one after the other
    [--peers all]          with peers that take long to build
    [--report]             write target/bench/report.html, a chart for each workload of all benches that were run
  bench report           write that page, and run nothing
  conformance server     run the official conformance suite against the server of mcp-tests, at all revisions
  conformance client     run it against the client of mcp-tests, each scenario by itself
    [--spec REVISION]      at one revision
    [--scenario NAME]      one scenario
  fuzz smoke             run every fuzz target for 20 s; installs the nightly toolchain and cargo-fuzz if they are missing
    [--seconds N]          for N seconds
  fuzz run TARGET --minutes N
                         run one fuzz target
  windows                build the workspace for Windows, and run what depends on the system under Wine";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its user")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["ci", steps @ ..] => ci::run(steps),
        ["import", dir] => import::run(Path::new(dir), false),
        ["import", dir, "--check"] | ["import", "--check", dir] => import::run(Path::new(dir), true),
        ["import", dir, "--diff", old, new] => import::diff(Path::new(dir), old, new),
        ["codegen"] => codegen::run(false),
        ["codegen", "--check"] => codegen::run(true),
        ["coverage"] => coverage::run(false),
        ["coverage", "--check"] => coverage::run(true),
        ["api"] => api::run(false),
        ["api", "--check"] => api::run(true),
        ["bench", arguments @ ..] => bench::run(arguments),
        ["conformance", "server", options @ ..] => conformance::server(options),
        ["conformance", "client", options @ ..] => conformance::client(options),
        ["fuzz", "smoke", options @ ..] => fuzz::smoke(options),
        ["fuzz", "run", target, options @ ..] => fuzz::run(target, options),
        ["windows"] => windows::run(),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(message) => {
            println!("{}", message.trim_end());
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
