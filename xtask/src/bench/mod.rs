//! The benches, which live in a workspace of their own.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::{Outcome, workspace};

const HOW_TO_READ: &str = "Compare ratios of one run only; peers/README.md says how to read them.";

/// Has callgrind run what `cargo run` would; its summary goes to the standard error output.
const RUNNER: &str = "target.'cfg(all())'.runner=['valgrind','--tool=callgrind','--callgrind-out-file=/dev/null']";

/// Compares `mcp-types` with its peers.
pub(crate) fn types() -> Outcome {
    run("types")?;
    Ok(HOW_TO_READ.to_owned())
}

/// Shows what `mcp-kernel` costs.
pub(crate) fn kernel() -> Outcome {
    run("kernel")?;
    let table = counted("kernel", &[])?;
    Ok(format!("Instructions, counted by callgrind\n\n{table}\n{HOW_TO_READ}"))
}

/// Shows what rounds cost: those who ask, and those who could and do not.
pub(crate) fn mrtr() -> Outcome {
    let mut tables = String::new();
    for (features, which) in [("mrtr", "with the feature `mrtr`"), ("server", "without the feature `mrtr`")] {
        let options = ["--features", features];
        run_with("mrtr", &options)?;
        tables.push_str(&format!("Instructions {which}, counted by callgrind\n\n{}\n", counted("mrtr", &options)?));
    }
    Ok(format!("{tables}{HOW_TO_READ}"))
}

/// Counts the instructions of all operations that a program lists.
fn counted(program: &str, options: &[&str]) -> Outcome {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Ok("not counted: valgrind is not installed\n".to_owned());
    }
    let listed = output(program, options, &["--operations"])?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let operations: Vec<(&str, u64)> = listed.lines().filter_map(operation).collect();
    let width = operations.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut table = format!("{:width$} | {:>11}\n", "", "per op");
    let options = [options, &["--config", RUNNER]].concat();
    for (name, times) in operations {
        // What it takes to start and to prepare is the same in both runs.
        let once = instructions(program, &options, name, times)?;
        let twice = instructions(program, &options, name, times * 2)?;
        table.push_str(&format!("{name:width$} | {:>11}\n", twice.saturating_sub(once) / times));
    }
    Ok(table)
}

/// Compares servers over standard streams.
pub(crate) fn stdio() -> Outcome {
    compare("stdio")
}

/// Compares servers over HTTP.
pub(crate) fn http() -> Outcome {
    compare("http")
}

/// Compares clients.
pub(crate) fn client() -> Outcome {
    build(&["stdio-ours", "http-ours", "client-ours", "client-rmcp", "client-memory"])?;
    run("client")?;
    Ok(HOW_TO_READ.to_owned())
}

/// Builds the servers over a transport, and runs the program that compares them.
fn compare(transport: &str) -> Outcome {
    let servers = servers(transport)?;
    build(&servers.iter().map(String::as_str).collect::<Vec<_>>())?;
    run(transport)?;
    Ok(HOW_TO_READ.to_owned())
}

/// Builds packages of `peers`, one by one, so that none is built with features that another one asks for.
fn build(packages: &[&str]) -> Result<(), String> {
    for package in packages {
        let mut command = cargo();
        command.args(["build", "--release", "--package", package, "--manifest-path"]).arg(manifest());
        let status = command.status().map_err(|error| format!("cannot start cargo: {error}"))?;
        if !status.success() {
            return Err(failure(package, &status.to_string()));
        }
    }
    Ok(())
}

/// Returns the packages below `peers/servers` whose transport this is. Each is named after its folder, with `stdio-`
/// before it unless it is one for HTTP.
fn servers(transport: &str) -> Result<Vec<String>, String> {
    let folder = workspace::root().join("peers/servers");
    let unreadable = |error| format!("cannot read {}: {error}", folder.display());
    let mut packages = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if let Some(name) = path.file_name().filter(|_| path.join("Cargo.toml").is_file()) {
            let name = name.to_string_lossy();
            packages.push(if name.starts_with("http-") { name.into_owned() } else { format!("stdio-{name}") });
        }
    }
    packages.retain(|package| package.split('-').next() == Some(transport));
    packages.sort_unstable();
    Ok(packages)
}

/// Reads a line such as `name<tab>1000`; an operation that is never run has no instructions.
fn operation(line: &str) -> Option<(&str, u64)> {
    let (name, times) = line.split_once('\t')?;
    Some((name, times.parse().ok().filter(|times| *times > 0)?))
}

/// Counts the instructions of a run in which an operation is done so many times.
fn instructions(program: &str, options: &[&str], operation: &str, times: u64) -> Result<u64, String> {
    let output = output(program, options, &["--callgrind", operation, &times.to_string()])?;
    let summary = String::from_utf8_lossy(&output.stderr);
    collected(&summary).ok_or_else(|| format!("callgrind printed no `Collected` line for `{operation}`:\n{summary}"))
}

/// Finds the count in a summary with the line `==123== Collected : 456`.
fn collected(summary: &str) -> Option<u64> {
    let (_, count) = summary.lines().find_map(|line| line.split_once("Collected :"))?;
    count.split_whitespace().next()?.parse().ok()
}

/// Runs one of the programs in `peers`, which prints its report itself.
fn run(program: &str) -> Result<(), String> {
    run_with(program, &[])
}

/// Runs one of the programs in `peers`, built in a way of its own.
fn run_with(program: &str, options: &[&str]) -> Result<(), String> {
    let mut command = command(program, options, &[]);
    let status = command.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(failure(program, &status.to_string())) }
}

/// Runs one of the programs in `peers`, and returns what it prints.
fn output(program: &str, options: &[&str], arguments: &[&str]) -> Result<Output, String> {
    let mut command = command(program, options, arguments);
    let output = command.output().map_err(|error| format!("cannot start cargo: {error}"))?;
    if output.status.success() {
        Ok(output)
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{said}\n{}", failure(program, &output.status.to_string())))
    }
}

fn command(program: &str, options: &[&str], arguments: &[&str]) -> Command {
    let mut command = cargo();
    command.args(["run", "--release", "--bin", program, "--manifest-path"]);
    command.arg(manifest()).args(options).arg("--").args(arguments);
    command
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn manifest() -> PathBuf {
    workspace::root().join("peers/Cargo.toml")
}

fn failure(program: &str, status: &str) -> String {
    format!(
        "the bench `{program}` of peers failed ({status}); the messages above say why. Its dependencies \
         are fetched from the registry when it is built for the first time."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_the_summary() {
        let summary = "==7== Events    : Ir\n==7== Collected : 218434\n==7== \n==7== I   refs:      218,434\n";
        assert_eq!(collected(summary), Some(218_434));
        assert_eq!(collected("==7== nothing"), None);
    }

    #[test]
    fn the_servers_are_found() {
        for (transport, expected) in [("stdio", "stdio-raw"), ("http", "http-raw")] {
            let servers = servers(transport).unwrap();
            assert!(servers.iter().any(|server| server == expected), "{servers:?}");
            assert!(servers.iter().all(|server| server.starts_with(transport)), "{servers:?}");
        }
    }

    #[test]
    fn operations_are_listed_with_how_often_to_run_them() {
        assert_eq!(operation("a call, and more\t1000"), Some(("a call, and more", 1000)));
        assert_eq!(operation("a call\t0"), None);
        assert_eq!(operation("Finished"), None);
    }
}
