//! The smallest server, and one with metrics, each in a package of its own.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::{Outcome, process, workspace};

/// All that a server depends on.
const DEPENDENCIES: &str = r#"[dependencies]
mcp = { path = "/path/to/clone/mcp" }
serde = { version = "1", features = ["derive"] }
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
"#;

const GUIDE: &str = "docs/watching-a-server.md";

const LIMIT: Duration = Duration::from_secs(600);

/// Compiles the server of the README, and the first one of the guide to metrics, as a newcomer would: outside the workspace,
/// with the dependencies that are shown. The versions of the workspace's lock file and its target directory are used, so that
/// nothing is downloaded and little is compiled.
pub(super) fn check() -> Outcome {
    let root = workspace::root();
    compile("hello-world", DEPENDENCIES, &process::read(&root.join("examples/src/bin/minimal.rs"))?)?;
    let guide = process::read(&root.join(GUIDE))?;
    let block = |language| {
        let (_, rest) = guide.split_once(&format!("```{language}\n"))?;
        rest.split_once("```").map(|(block, _)| block)
    };
    let (Some(dependencies), Some(program)) = (block("toml"), block("rust,no_run")) else {
        return Err(format!("{GUIDE} shows no program with its dependencies"));
    };
    compile("hello-metrics", dependencies, program)?;
    Ok("the smallest server compiles with mcp, serde and tokio, and one with metrics as the guide shows it".to_owned())
}

fn compile(name: &str, dependencies: &str, program: &str) -> Result<(), String> {
    let root = workspace::root();
    let package = root.join("target").join(name);
    let source = package.join("src");
    fs::create_dir_all(&source).map_err(|error| format!("cannot make {}: {error}", source.display()))?;
    write(&source.join("main.rs"), program)?;
    write(&package.join("Cargo.lock"), &process::read(&root.join("Cargo.lock"))?)?;
    let dependencies = dependencies.replace("/path/to/clone", "../..");
    let package_table = format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
    write(&package.join("Cargo.toml"), &format!("{package_table}\n[workspace]\n\n{dependencies}"))?;
    let mut command = Command::new("cargo");
    command.args(["check", "--offline", "--target-dir"]).arg(root.join("target")).current_dir(&package);
    process::run(&mut command, &format!("cargo check of {name}"), LIMIT)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
