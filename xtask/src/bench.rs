//! The benches, which live in a workspace of their own.

use std::process::Command;

use crate::{Outcome, workspace};

/// Compares `mcp-types` with its peers.
pub(crate) fn types() -> Outcome {
    run("types")
}

/// Runs one of the programs in `peers`, which prints its report itself.
fn run(program: &str) -> Outcome {
    let manifest = workspace::root().join("peers/Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(&cargo)
        .args(["run", "--release", "--bin", program, "--manifest-path"])
        .arg(&manifest)
        .status()
        .map_err(|error| format!("cannot start {}: {error}", cargo.display()))?;
    if status.success() {
        Ok("Compare ratios of one run only; peers/README.md says how to read them.".to_owned())
    } else {
        Err(format!(
            "the bench `{program}` of {} failed ({status}); the messages above say why. Its dependencies \
             are fetched from the registry when it is built for the first time.",
            manifest.display()
        ))
    }
}
