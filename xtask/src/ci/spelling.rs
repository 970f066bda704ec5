//! The spelling of names and prose.

use std::process::Command;
use std::time::Duration;

use crate::process;
use crate::{Outcome, workspace};

/// Built for many systems, which takes seconds to install and minutes to compile.
const TYPOS: &str = "typos==1.51.1";

const LIMIT: Duration = Duration::from_secs(300);

/// Installs `typos` below `target`, unless it is there, and runs it. `typos.toml` has the exceptions.
pub(super) fn check() -> Outcome {
    let root = workspace::root();
    let folder = root.join("target/tools/typos");
    let program = folder.join("bin/typos");
    if !program.is_file() {
        let mut environment = Command::new("python3");
        process::run(environment.args(["-m", "venv"]).arg(&folder), "python3 -m venv", LIMIT)?;
        let mut install = Command::new(folder.join("bin/python"));
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", TYPOS]);
        process::run(&mut install, "installing typos", LIMIT)?;
    }
    process::run(Command::new(program).current_dir(root), "typos", LIMIT)?;
    Ok("no word is misspelt".to_owned())
}
