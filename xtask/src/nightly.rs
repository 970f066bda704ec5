//! The nightly toolchain, for what stable Rust cannot do: fuzzing, and documentation as JSON.

use std::process::Command;
use std::time::Duration;

use crate::process;

/// The version of the toolchain, fixed because `public-api` reads one version of the JSON only.
pub(crate) const TOOLCHAIN: &str = "nightly-2026-05-20";

const INSTALL_LIMIT: Duration = Duration::from_secs(900);

/// Installs the toolchain, unless it is there.
pub(crate) fn install() -> Result<(), String> {
    if process::succeeds(Command::new("rustup").args(["run", TOOLCHAIN, "rustc", "--version"])) {
        return Ok(());
    }
    let mut command = Command::new("rustup");
    command.args(["toolchain", "install", TOOLCHAIN, "--profile", "minimal"]);
    process::run(&mut command, "installing the nightly toolchain", INSTALL_LIMIT)
}

/// A command of the toolchain's cargo.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", TOOLCHAIN, "cargo"]).args(arguments);
    command
}
