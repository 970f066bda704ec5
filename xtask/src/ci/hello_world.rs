//! The smallest server, in a package of its own.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::{Outcome, process, workspace};

/// All that a server depends on.
const MANIFEST: &str = r#"[package]
name = "hello-world"
version = "0.1.0"
edition = "2024"

[workspace]

[dependencies]
mcp = { path = "../../mcp" }
serde = { version = "1", features = ["derive"] }
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
"#;

const LIMIT: Duration = Duration::from_secs(600);

/// Compiles the server of the README as a newcomer would: outside the workspace, with three dependencies. The versions of the
/// workspace's lock file and its target directory are used, so that nothing is downloaded and little is compiled.
pub(super) fn check() -> Outcome {
    let root = workspace::root();
    let package = root.join("target/hello-world");
    let source = package.join("src");
    fs::create_dir_all(&source).map_err(|error| format!("cannot make {}: {error}", source.display()))?;
    copy(&root.join("examples/src/bin/minimal.rs"), &source.join("main.rs"))?;
    copy(&root.join("Cargo.lock"), &package.join("Cargo.lock"))?;
    let manifest = package.join("Cargo.toml");
    fs::write(&manifest, MANIFEST).map_err(|error| format!("cannot write {}: {error}", manifest.display()))?;
    let mut command = Command::new("cargo");
    command.args(["check", "--offline", "--target-dir"]).arg(root.join("target")).current_dir(&package);
    process::run(&mut command, "cargo check of hello-world", LIMIT)?;
    Ok("the smallest server compiles with mcp, serde and tokio".to_owned())
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(|error| format!("cannot copy {}: {error}", from.display()))
}
