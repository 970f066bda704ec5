//! Clients of others, as child processes that check the fixture server and count what they checked.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::Mutex;

/// The server that they are pointed at.
pub(crate) const SERVER: &str = env!("CARGO_BIN_EXE_conformance-server");

/// The clients limit themselves to 120 s, and end by force 20 s later.
const LIMIT: Duration = Duration::from_secs(150);

/// Some checks are about time, so the clients do not compete for the processor.
pub(crate) static ALONE: Mutex<()> = Mutex::const_new(());

/// A script, to be run by what `interop/install` has installed.
pub(crate) fn script(interpreter: &str, script: &str) -> Command {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let interpreter: PathBuf = package.join("../target/interop").join(interpreter);
    assert!(interpreter.exists(), "{} is missing: run `bash tests/interop/install`", interpreter.display());
    let mut command = Command::new(interpreter);
    command.arg(package.join("interop").join(script));
    command
}

/// Runs a client to its end; all of its checks pass, and they are not fewer than they were.
pub(crate) async fn drive(command: &mut Command, least: u64) {
    let Output { status, stdout, stderr } = run(command, LIMIT).await;
    let (said, complained) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    let notable: Vec<&str> =
        said.lines().filter(|line| !line.starts_with("ok ") && !line.starts_with("n/a ")).collect();
    assert!(status.success(), "{status}\n{}\n{complained}", notable.join("\n"));
    let passed = said.lines().last().and_then(count).expect("the last line counts the checks");
    assert!(passed >= least, "{passed} checks passed, there were {least}");
}

/// `305 checks passed`, or an object.
fn count(line: &str) -> Option<u64> {
    match line.strip_suffix(" checks passed") {
        Some(number) => number.parse().ok(),
        None => serde_json::from_str::<serde_json::Value>(line).ok()?["passed"].as_u64(),
    }
}

/// Runs a command to its end. One that is given up is killed.
pub(crate) async fn run(command: &mut Command, limit: Duration) -> Output {
    let output = tokio::time::timeout(limit, command.kill_on_drop(true).output()).await;
    output.expect("the command ends within its limit").expect("the command can be run")
}
