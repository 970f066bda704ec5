//! The official clients drive the fixture server over standard input and output, in every revision.
//!
//! What they check is in `interop/README.md`. `interop/install` has to be run before.

use std::path::Path;
use std::process::Output;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::process::Command;

/// The scripts limit themselves to 120 s, and end by force 20 s later.
const LIMIT: Duration = Duration::from_secs(150);

/// Some checks are about time, so the clients do not compete for the processor.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn python() {
    drive("python/bin/python", "python/drive.py", 305);
}

#[test]
fn typescript() {
    drive("bin/node", "typescript/drive.mjs", 302);
}

/// Runs a script to its end; all of its checks pass, and they are not fewer than they were.
fn drive(interpreter: &str, script: &str, least: usize) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let interpreter = package.join("../target/interop").join(interpreter);
    assert!(interpreter.exists(), "{} is missing: run `bash tests/interop/install`", interpreter.display());
    let Output { status, stdout, stderr } = run(&interpreter, &package.join("interop").join(script));

    let (said, complained) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    let notable: Vec<&str> =
        said.lines().filter(|line| !line.starts_with("ok ") && !line.starts_with("n/a ")).collect();
    assert!(status.success(), "{script}: {status}\n{}\n{complained}", notable.join("\n"));
    let passed = said.lines().last().and_then(|line| line.strip_suffix(" checks passed"));
    let passed: usize = passed.and_then(|number| number.parse().ok()).expect("the last line counts the checks");
    assert!(passed >= least, "{script}: {passed} checks passed, there were {least}");
}

fn run(interpreter: &Path, script: &Path) -> Output {
    let mut command = Command::new(interpreter);
    command.arg(script).args(["--", env!("CARGO_BIN_EXE_conformance-server"), "--stdio"]);
    // A client that is given up takes its server with it, whose input ends.
    command.kill_on_drop(true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let output = runtime.block_on(async { tokio::time::timeout(LIMIT, command.output()).await });
    output.expect("the script ends within its limit").expect("the script can be run")
}
