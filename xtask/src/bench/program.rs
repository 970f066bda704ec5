//! The programs of the workspace of the benches: how they are built and run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::records;
use crate::{Outcome, workspace};

/// A program that prints a report.
#[derive(Debug)]
pub(super) struct Program {
    name: &'static str,
    /// Those with which it is built, if there are any.
    features: Option<&'static str>,
}

impl Program {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, features: None }
    }

    pub(super) fn with_features(name: &'static str, features: &'static str) -> Self {
        Self { name, features: Some(features) }
    }

    /// Runs it; it prints its report itself.
    pub(super) fn run(&self, arguments: &[&str]) -> Outcome {
        let mut command = self.command(&[], arguments);
        command.env(records::VARIABLE, records::file(self.name));
        let status = command.status().map_err(|error| format!("cannot start cargo: {error}"))?;
        if status.success() { Ok(String::new()) } else { Err(failure(self.name, &status.to_string())) }
    }

    /// Runs it with options of Cargo, and returns what it prints.
    pub(super) fn output(&self, options: &[&str], arguments: &[&str]) -> Result<Output, String> {
        let mut command = self.command(options, arguments);
        let output = command.output().map_err(|error| format!("cannot start cargo: {error}"))?;
        if output.status.success() {
            Ok(output)
        } else {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{said}\n{}", failure(self.name, &output.status.to_string())))
        }
    }

    fn command(&self, options: &[&str], arguments: &[&str]) -> Command {
        let mut command = cargo();
        command.args(["run", "--release", "--bin", self.name, "--manifest-path"]).arg(manifest());
        command.args(self.features.into_iter().flat_map(|features| ["--features", features]));
        command.args(options).arg("--").args(arguments);
        command
    }
}

/// Builds packages of `peers`, one by one, so that none is built with features that another one asks for.
pub(super) fn build(packages: &[String]) -> Result<(), String> {
    packages.iter().try_for_each(|package| build_in(&manifest(), &["--package", package], package))
}

/// Builds the peers that have workspaces of their own, into the folder in which the bench looks for them.
///
/// A peer that cannot be built is left out, as one that was not built at all.
#[expect(clippy::print_stderr, reason = "a command-line tool talks to its user")]
pub(super) fn build_others() -> Result<(), String> {
    let peers = workspace::root().join("peers");
    let target = peers.join("target");
    for folder in folders(&peers.join("others"))? {
        let manifest = peers.join("others").join(&folder).join("Cargo.toml");
        if let Err(error) = build_in(&manifest, &["--target-dir", &target.to_string_lossy()], &folder) {
            eprintln!("{folder} is left out: {error}");
        }
    }
    Ok(())
}

fn build_in(manifest: &Path, options: &[&str], what: &str) -> Result<(), String> {
    let mut command = cargo();
    command.args(["build", "--release", "--manifest-path"]).arg(manifest).args(options);
    let status = command.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(failure(what, &status.to_string())) }
}

/// Returns the packages below `peers/servers` that a bench starts. Each is named after its folder, with `stdio-` before it
/// unless the folder begins with the name of another bench or of the tests of interoperability.
pub(super) fn servers(bench: &str) -> Result<Vec<String>, String> {
    let folders = folders(&workspace::root().join("peers/servers"))?;
    let has_user = |folder: &str| ["http-", "service-", "interop-"].iter().any(|user| folder.starts_with(user));
    let package = |folder: String| if has_user(&folder) { folder } else { format!("stdio-{folder}") };
    let mut packages: Vec<String> = folders.into_iter().map(package).collect();
    packages.retain(|package| package.split('-').next() == Some(bench));
    packages.sort_unstable();
    Ok(packages)
}

/// Returns the names of the folders with a package in them.
fn folders(parent: &Path) -> Result<Vec<String>, String> {
    let unreadable = |error| format!("cannot read {}: {error}", parent.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(parent).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if let Some(name) = path.file_name().filter(|_| path.join("Cargo.toml").is_file()) {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
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

    /// Each is a package of that name, as Cargo is asked for it.
    #[test]
    fn the_servers_are_found() {
        let folder = workspace::root().join("peers/servers");
        let manifests = folders(&folder).unwrap().into_iter().map(|name| folder.join(name).join("Cargo.toml"));
        let manifests = manifests.map(|path| std::fs::read_to_string(path).unwrap()).collect::<String>();
        for (bench, expected) in [("stdio", "stdio-raw"), ("http", "http-strict"), ("service", "service-prices")] {
            let servers = servers(bench).unwrap();
            assert!(servers.iter().any(|server| server == expected), "{servers:?}");
            assert!(servers.iter().all(|server| server.starts_with(bench)), "{servers:?}");
            assert!(servers.iter().all(|server| manifests.contains(&format!("name = \"{server}\""))), "{servers:?}");
        }
    }
}
