//! The steps, in the order in which they run.

use std::process::Command;
use std::time::Duration;

use super::Lane::{self, Background, First, Foreground};
use super::tools::{self, CARGO_HACK, CHROMIUM, CXX, MINGW, NODE, NPM, PROMETHEUS, PYTHON, REDIS, WINE};
use super::{Checked, Step, dependencies, hello_world, licences, minimal, spelling, unused};
use crate::{api, codegen, conformance, coverage, fuzz, import, process, windows, workspace};

/// The longest that a single command may take.
const LIMIT: Duration = Duration::from_secs(1800);

/// Where the official schemas are if they are anywhere: they are not part of this repository.
const SCHEMAS: &str = "../shared/schema";

/// Everything is built for the whole workspace with all features, so that there is one set of features, and everything
/// is compiled once.
const ALL: [&str; 3] = ["--workspace", "--all-features", "--locked"];

/// Packages that are not published.
const UNPUBLISHED: [&str; 5] = ["mcp-example-catalogue", "mcp-examples", "mcp-tests", "mcp-tests-wasm", "xtask"];

/// Without anything of a system, and with standard streams, a clock and a random source.
const WASM_TARGETS: [&str; 2] = ["wasm32-unknown-unknown", "wasm32-wasip1"];

/// Tests that need more than Rust. They run only if they are named.
const REDIS_TESTS: [&str; 3] = ["redis", "sessions_in_redis", "tasks_in_redis"];
const PROMETHEUS_TESTS: [&str; 1] = ["prometheus"];
const INTEROP_TESTS: [&str; 5] = ["interop_stdio", "interop_http", "client_interop", "interop_auth", "interop_tasks"];
const SCHEMA_TESTS: [&str; 1] = ["official"];

pub(super) const STEPS: [Step; 27] = [
    step("format", "rustfmt", First, format),
    step("spelling", "typos", Foreground, spelling),
    step("licences", "the licences of all dependencies", First, licences),
    step("advisories", "known vulnerabilities of dependencies", Foreground, advisories),
    step("unused", "dependencies that are not used", First, unused),
    step("minimal", "the lowest versions of dependencies are those that are tested", First, minimal),
    step("lints", "clippy on everything, with all features", First, lints),
    step("build", "the tests compile", First, build),
    step("tests", "what the README tells contributors to run", Background, tests),
    step("redis", "what instances share in Redis", Background, redis),
    step("prometheus", "what Prometheus makes of the metrics of the demo under load", Background, prometheus),
    step("interop", "clients and servers of the official packages and of rmcp, and logging in", Background, interop),
    step("conformance", "the official conformance suite", Background, conformance),
    step("codegen", "the generated code is up to date", Foreground, codegen),
    step("coverage", "every requirement has a test or a reason", Foreground, coverage),
    step("schemas", "the types match the official schemas", Foreground, schemas),
    step("docs", "rustdoc without warnings", Foreground, docs),
    step("api", "the public API is the one of its snapshots", Foreground, api),
    step("features", "clippy with each feature alone and with most pairs", Foreground, features),
    step("dependencies", "what the crates depend on, and how many crates that are", Foreground, dependencies),
    step("hello-world", "small servers compile in packages of their own", Foreground, hello_world),
    step("packages", "the published crates can be packaged", Foreground, packages),
    step("peers", "clippy on the benches", Foreground, peers),
    step("msrv", "the minimum Rust version", Foreground, msrv),
    step("fuzz", "every fuzz target for a short time", Foreground, fuzz),
    step("wasm", "a client calls a server in both eras, as WebAssembly in Node", Foreground, wasm),
    step("windows", "clippy for Windows, and tests under Wine", Foreground, windows),
];

type Run = fn() -> Result<Checked, String>;

const fn step(name: &'static str, summary: &'static str, lane: Lane, run: Run) -> Step {
    Step { name, summary, lane, run }
}

fn format() -> Result<Checked, String> {
    done(&mut cargo(&["fmt", "--all", "--check"]))
}

fn spelling() -> Result<Checked, String> {
    tools::with(&[PYTHON], || spelling::check().map(Checked::Yes))
}

fn licences() -> Result<Checked, String> {
    licences::check().map(Checked::Yes)
}

fn advisories() -> Result<Checked, String> {
    if !tools::has_subcommand("deny") {
        // It takes longer to compile than all other checks together, and its data is not in a package registry.
        return Ok(Checked::Not("there is no cargo-deny (cargo install --locked cargo-deny)".to_owned()));
    }
    done(&mut cargo(&["deny", "--locked", "check", "advisories"]))
}

fn unused() -> Result<Checked, String> {
    unused::check().map(Checked::Yes)
}

fn minimal() -> Result<Checked, String> {
    minimal::check().map(Checked::Yes)
}

fn lints() -> Result<Checked, String> {
    lint(&[&ALL[..], &["--all-targets"]].concat())?;
    // Tests that run only if they are named are not among all targets.
    let named = [&REDIS_TESTS[..], &PROMETHEUS_TESTS, &INTEROP_TESTS, &SCHEMA_TESTS].concat();
    let named: Vec<&str> = named.into_iter().flat_map(|test| ["--test", test]).collect();
    lint(&[&ALL[..], &named].concat())
}

fn features() -> Result<Checked, String> {
    tools::install(CARGO_HACK)?;
    let mut pairs = cargo(&["hack", "clippy", "--feature-powerset", "--depth", "2", "--lib", "--locked"]);
    // `internals` and `store-tests` are for our own tests, and `default` is one of the combinations by another name.
    pairs.args(["--workspace", "--exclude-features", "default,internals,store-tests"]);
    pairs.args(UNPUBLISHED.iter().chain(&["mcp", "mcp-auth"]).flat_map(|package| ["--exclude", package]));
    run(pairs.args(["--", "-D", "warnings"]))?;
    // It has a module for each feature, and too many pairs.
    let mut alone = cargo(&["hack", "clippy", "--each-feature", "--lib", "--locked", "--package", "mcp-auth"]);
    run(alone.args(["--", "-D", "warnings"]))?;
    // It has no code that could depend on a pair.
    done(&mut cargo(&["hack", "check", "--each-feature", "--lib", "--locked", "--package", "mcp"]))
}

fn build() -> Result<Checked, String> {
    done(cargo(&["test", "--no-run"]).args(ALL))
}

fn tests() -> Result<Checked, String> {
    done(cargo(&["test"]).args(ALL))
}

fn redis() -> Result<Checked, String> {
    tools::with(&[REDIS], || done(&mut named_tests(&REDIS_TESTS)))
}

fn prometheus() -> Result<Checked, String> {
    tools::with(&[PROMETHEUS], || done(&mut named_tests(&PROMETHEUS_TESTS)))
}

fn interop() -> Result<Checked, String> {
    tools::with(&[PYTHON, NPM, CHROMIUM], || {
        run(Command::new("bash").arg("tests/interop/install"))?;
        done(&mut named_tests(&INTEROP_TESTS))
    })
}

fn conformance() -> Result<Checked, String> {
    tools::with(&[NPM], || {
        let server = conformance::server(&[])?;
        let client = conformance::client(&[])?;
        Ok(Checked::Yes(format!("{server}\n{client}")))
    })
}

fn codegen() -> Result<Checked, String> {
    codegen::run(true).map(Checked::Yes)
}

fn coverage() -> Result<Checked, String> {
    coverage::run(true).map(Checked::Yes)
}

fn schemas() -> Result<Checked, String> {
    let folder = workspace::root().join(SCHEMAS);
    if !folder.is_dir() {
        return Ok(Checked::Not(format!("they are not part of this repository, and not at {SCHEMAS}")));
    }
    import::run(&folder, true)?;
    done(named_tests(&SCHEMA_TESTS).env("MCP_SCHEMA_DIR", folder))
}

fn docs() -> Result<Checked, String> {
    let mut command = cargo(&["doc", "--no-deps", "--document-private-items"]);
    done(command.args(ALL).env("RUSTDOCFLAGS", "-D warnings"))
}

fn api() -> Result<Checked, String> {
    api::run(true).map(Checked::Yes)
}

fn dependencies() -> Result<Checked, String> {
    dependencies::check().map(Checked::Yes)
}

fn hello_world() -> Result<Checked, String> {
    hello_world::check().map(Checked::Yes)
}

fn packages() -> Result<Checked, String> {
    // Their code is compiled by the other steps.
    done(&mut cargo(&["package", "--workspace", "--no-verify", "--allow-dirty", "--locked", "--quiet"]))
}

fn peers() -> Result<Checked, String> {
    // In the same target directory, where most of what they depend on is already.
    lint(
        &[
            &["--manifest-path", "peers/Cargo.toml", "--target-dir", "target", "--workspace", "--all-targets"][..],
            &["--all-features", "--locked"],
        ]
        .concat(),
    )
}

fn msrv() -> Result<Checked, String> {
    let version = workspace::minimum_rust_version()?;
    // With a target directory of its own, so that it does not wait for the tests that run meanwhile.
    let toolchain = format!("+{version}");
    done(cargo(&[&toolchain, "check", "--target-dir", "target/msrv"]).args(ALL))
}

fn wasm() -> Result<Checked, String> {
    tools::with(&[NODE], || {
        let mut build = cargo(&["build", "--locked", "--package", "mcp-tests-wasm"]);
        run(build.args(WASM_TARGETS.iter().flat_map(|target| ["--target", target])))?;
        let module = |target| workspace::target_dir().join(target).join("debug/mcp-tests-wasm.wasm");
        done(Command::new("node").arg("tests/wasm/run.mjs").args(WASM_TARGETS.map(module)))
    })
}

fn windows() -> Result<Checked, String> {
    tools::with(&[WINE, MINGW], || windows::run().map(Checked::Yes))
}

fn fuzz() -> Result<Checked, String> {
    tools::with(&[CXX], || fuzz::smoke(&[]).map(Checked::Yes))
}

/// Runs clippy, for which a warning is an error.
fn lint(options: &[&str]) -> Result<Checked, String> {
    done(cargo(&["clippy"]).args(options).args(["--", "-D", "warnings"]))
}

fn named_tests(names: &[&str]) -> Command {
    let mut command = cargo(&["test"]);
    command.args(ALL).args(names.iter().flat_map(|name| ["--test", name]));
    command
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments);
    command
}

fn done(command: &mut Command) -> Result<Checked, String> {
    run(command).map(|()| Checked::Yes(String::new()))
}

fn run(command: &mut Command) -> Result<(), String> {
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    let what = format!("{} {}", command.get_program().to_string_lossy(), arguments.join(" "));
    process::run(command.current_dir(workspace::root()), &what, LIMIT)
}
