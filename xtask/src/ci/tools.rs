//! The tools that steps use, and how they are installed.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::{Checked, log_path};
use crate::process::{self, Running};
use crate::{fuzz, nightly, workspace};

const INSTALL_LIMIT: Duration = Duration::from_secs(1200);

/// A program that does not come with Rust, and the Debian packages that have it.
pub(super) struct Tool {
    program: &'static str,
    packages: &'static str,
}

pub(super) const REDIS: Tool = Tool { program: "redis-server", packages: "redis-server" };
pub(super) const PROMETHEUS: Tool = Tool { program: "prometheus", packages: "prometheus" };
pub(super) const PYTHON: Tool = Tool { program: "python3", packages: "python3 python3-venv" };
pub(super) const NPM: Tool = Tool { program: "npm", packages: "npm" };
pub(super) const NODE: Tool = Tool { program: "node", packages: "nodejs" };
/// The tests drive a browser that does what a person does to log in.
pub(super) const CHROMIUM: Tool = Tool { program: "chromium", packages: "chromium" };
pub(super) const WINE: Tool = Tool { program: "wine", packages: "wine wine64" };
pub(super) const MINGW: Tool = Tool { program: "x86_64-w64-mingw32-gcc", packages: "gcc-mingw-w64-x86-64-win32" };
pub(super) const CXX: Tool = Tool { program: "c++", packages: "g++" };

/// All that Debian has; `rustup` installs the rest.
const ALL: [&Tool; 9] = [&REDIS, &PROMETHEUS, &PYTHON, &NPM, &NODE, &CHROMIUM, &WINE, &MINGW, &CXX];

/// Installs what is missing, while the first steps compile. Whatever fails here is reported by the step that needs it.
pub(super) fn install_in_background() -> Result<(Running, PathBuf), String> {
    let log = log_path("install")?;
    let file = process::log(&log)?;
    let errors = file.try_clone().map_err(|error| format!("cannot write {}: {error}", log.display()))?;
    let missing: Vec<&str> = ALL.iter().filter(|tool| !is_there(tool)).map(|tool| tool.packages).collect();
    let mut command = Command::new("bash");
    command.arg(workspace::root().join(".ci/install")).args(missing.join(" ").split_whitespace());
    command.env("MSRV", workspace::minimum_rust_version()?).env("NIGHTLY", nightly::TOOLCHAIN);
    command.env("CARGO_FUZZ", fuzz::CARGO_FUZZ).env("CARGO_HACK", CARGO_HACK.package);
    command.current_dir(workspace::root()).stdout(file).stderr(errors);
    Ok((Running::start(&mut command, "installing the tools")?, log))
}

/// Waits for the tools.
pub(super) fn finish((installing, log): (Running, PathBuf)) -> Result<(), String> {
    super::report::headline(&format!("waiting for the tools, with messages in {}", log.display()));
    installing.wait(INSTALL_LIMIT).map(drop)
}

/// A subcommand of cargo, and the package that has it.
pub(super) struct Subcommand {
    name: &'static str,
    package: &'static str,
}

/// Runs a command with many sets of features.
pub(super) const CARGO_HACK: Subcommand = Subcommand { name: "hack", package: "cargo-hack@0.6.46" };

/// Installs a subcommand of cargo, unless it is there.
pub(super) fn install(Subcommand { name, package }: Subcommand) -> Result<(), String> {
    if has_subcommand(name) {
        return Ok(());
    }
    let mut command = Command::new("cargo");
    process::run(command.args(["install", "--locked", package]), package, INSTALL_LIMIT)
}

/// Whether cargo has a subcommand.
pub(super) fn has_subcommand(name: &str) -> bool {
    process::succeeds(Command::new("cargo").args([name, "--version"]))
}

/// Runs a step if its tools are there. A missing one is an error if `CI` is set, and otherwise named in the report.
pub(super) fn with(tools: &[Tool], run: impl FnOnce() -> Result<Checked, String>) -> Result<Checked, String> {
    let Some(missing) = tools.iter().find(|tool| !is_there(tool)) else {
        return run();
    };
    let reason = format!("there is no {} (Debian: apt-get install {})", missing.program, missing.packages);
    if std::env::var_os("CI").is_some_and(|ci| !ci.is_empty()) { Err(reason) } else { Ok(Checked::Not(reason)) }
}

fn is_there(tool: &Tool) -> bool {
    // Some have no `--version`, hence the path is searched.
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|folder| folder.join(tool.program).is_file())
}
