//! Builds and runs the fuzz targets, and installs what that needs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::nightly::{self, TOOLCHAIN};
use crate::process::{self, succeeds};
use crate::{Outcome, workspace};

/// The tool that asks for the instrumentation.
pub(crate) const CARGO_FUZZ: &str = "cargo-fuzz@0.13.2";

/// No sanitizer: the workspace forbids unsafe code, so there are few faults of memory to find, and AddressSanitizer
/// would more than double the time that each build and each execution takes. What is looked for are panics, promises
/// that do not hold, inputs that take too long, and those that take too much memory; libFuzzer finds all of these.
const SANITIZER: &str = "none";

/// The longest that a build may take.
const LIMIT: Duration = Duration::from_secs(1800);

/// How long a target of the smoke test runs, unless told otherwise.
const SMOKE_SECONDS: u64 = 12;

/// How long a single input may take, how much memory a target may have, and how long an input may be.
const LIMITS: [&str; 3] = ["-timeout=10", "-rss_limit_mb=2048", "-max_len=4096"];

/// Runs every target for a short time, starting with its corpus.
pub(crate) fn smoke(options: &[&str]) -> Outcome {
    let seconds = match options {
        [] => SMOKE_SECONDS,
        ["--seconds", seconds] => number(seconds)?,
        _ => return Err("usage: cargo xtask fuzz smoke [--seconds N]".to_owned()),
    };
    is_locked()?;
    let programs = build()?;
    let targets = targets()?;
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(1, usize::from).min(targets.len());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = watch(&programs, target, seconds);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((target, outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort();
    let failures: Vec<_> = outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().err().cloned()).collect();
    if !failures.is_empty() {
        return Err(failures.join("\n\n"));
    }
    let rows = outcomes.iter().map(|(target, outcome)| {
        let executions = outcome.as_ref().map_or(0, |executions| *executions);
        format!("{target:<16} {executions:>10} executions\n")
    });
    Ok(format!("{}{seconds} s each, no findings", rows.collect::<String>()))
}

/// Runs one target for some minutes, and shows what it says.
pub(crate) fn run(target: &str, options: &[&str]) -> Outcome {
    let minutes = match options {
        ["--minutes", minutes] => number(minutes)?,
        _ => return Err("usage: cargo xtask fuzz run TARGET --minutes N".to_owned()),
    };
    let targets = targets()?;
    if !targets.iter().any(|known| known == target) {
        return Err(format!("there is no target `{target}`, only {}", targets.join(", ")));
    }
    let programs = build()?;
    let found = found(target)?;
    let status = command(&programs, target, &found, minutes.saturating_mul(60)).status();
    let status = status.map_err(|error| format!("cannot start {target}: {error}"))?;
    if !status.success() {
        return Err(failed(target));
    }
    Ok(format!(
        "no findings; {} holds what is new, and `cargo +{TOOLCHAIN} fuzz cmin` makes it smaller",
        found.display()
    ))
}

/// Fails if building would change the lock file of the targets, which is not that of the workspace.
fn is_locked() -> Result<(), String> {
    let mut command = Command::new("cargo");
    command.args(["metadata", "--locked", "--format-version", "1", "--manifest-path"]);
    command.arg(workspace::root().join("fuzz/Cargo.toml")).stdout(Stdio::null());
    let what = "reading fuzz/Cargo.lock, which `cargo update --workspace` in fuzz/ brings up to date,";
    process::run(&mut command, what, LIMIT)
}

/// Builds all targets, and returns the folder that they are in.
fn build() -> Result<PathBuf, String> {
    install()?;
    let folder = workspace::root().join("fuzz");
    let target_dir = folder.join("target");
    let mut command = nightly::cargo(&["fuzz", "build", "--sanitizer", SANITIZER, "--target-dir"]);
    process::run(command.arg(&target_dir).current_dir(&folder), "building the fuzz targets", LIMIT)?;
    Ok(target_dir.join(host()?).join("release"))
}

/// Installs the toolchain and the tool, unless they are there.
fn install() -> Result<(), String> {
    if !succeeds(Command::new("c++").arg("--version")) {
        return Err("libFuzzer needs a C++ compiler (Debian: apt-get install g++)".to_owned());
    }
    nightly::install()?;
    if !succeeds(Command::new("cargo").args(["fuzz", "--version"])) {
        process::run(Command::new("cargo").args(["install", CARGO_FUZZ, "--locked"]), "installing cargo-fuzz", LIMIT)?;
    }
    Ok(())
}

/// The platform that targets are built for, which is part of where they are.
fn host() -> Result<String, String> {
    let output = Command::new("rustup").args(["run", TOOLCHAIN, "rustc", "-vV"]).output();
    let output = output.map_err(|error| format!("cannot start rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not say which platform it is for".to_owned())
}

/// The names of all targets.
fn targets() -> Result<Vec<String>, String> {
    let folder = workspace::root().join("fuzz/fuzz_targets");
    let failed = |error| format!("cannot read {}: {error}", folder.display());
    let mut targets = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        targets.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    targets.sort();
    Ok(targets)
}

/// Runs a target with its messages in a file; returns how many executions there were.
fn watch(programs: &Path, target: &str, seconds: u64) -> Result<u64, String> {
    let found = found(target)?;
    let log = found.with_extension("log");
    let failing = |error| format!("cannot write to {}: {error}", log.display());
    let file = File::create(&log).map_err(failing)?;
    let status = command(programs, target, &found, seconds).stdout(Stdio::null()).stderr(file).status();
    let status = status.map_err(|error| format!("cannot start {target}: {error}"))?;
    let text = fs::read(&log).map_err(failing)?;
    let text = String::from_utf8_lossy(&text);
    if !status.success() {
        let lines: Vec<&str> = text.lines().collect();
        let end = lines.get(lines.len().saturating_sub(40)..).unwrap_or_default();
        return Err(format!("{}\n{}", end.join("\n"), failed(target)));
    }
    let executions = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let executions = executions.and_then(|executions| executions.trim().parse().ok());
    executions
        .filter(|executions| *executions > 0)
        .ok_or_else(|| format!("{target} did not run; see {}", log.display()))
}

/// What runs a target: the first folder gets what it finds, the second one is only read.
fn command(programs: &Path, target: &str, found: &Path, seconds: u64) -> Command {
    let fuzz = workspace::root().join("fuzz");
    let mut command = Command::new(programs.join(target));
    command.arg(found).arg(fuzz.join("corpus").join(target));
    command.arg(format!("-max_total_time={seconds}")).args(LIMITS).arg("-print_final_stats=1");
    command.arg(format!("-artifact_prefix={}/", artifacts(target).display()));
    command.stdin(Stdio::null());
    command
}

/// The folder for what a target finds out, apart from the corpus that is committed.
fn found(target: &str) -> Result<PathBuf, String> {
    let found = workspace::root().join("fuzz/target/found").join(target);
    for folder in [&found, &artifacts(target)] {
        fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    }
    Ok(found)
}

/// The folder for inputs that a target fails with.
fn artifacts(target: &str) -> PathBuf {
    workspace::root().join("fuzz/artifacts").join(target)
}

fn failed(target: &str) -> String {
    let folder = artifacts(target);
    format!("`{target}` found something: {} has the input, which belongs into fuzz/corpus/{target}", folder.display())
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}
