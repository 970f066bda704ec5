//! Named checks, each printed as one line.

use std::cell::Cell;
use std::error::Error;
use std::fmt::Debug;
use std::process::ExitCode;
use std::time::Duration;

/// Why a check failed.
pub(crate) type Fault = Box<dyn Error>;

/// What a check comes to.
pub(crate) type Checked<T = ()> = Result<T, Fault>;

/// How long one check may take.
const WAIT: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(crate) struct Report {
    passed: Cell<u32>,
    failed: Cell<u32>,
}

impl Report {
    /// Runs a check: it passes unless it fails or takes too long.
    pub(crate) async fn check(&self, name: &str, body: impl Future<Output = Checked>) {
        match tokio::time::timeout(WAIT, body).await {
            Ok(Ok(())) => {
                self.passed.set(self.passed.get() + 1);
                say(&format!("ok {name}"));
            }
            Ok(Err(fault)) => self.fail(name, &fault.to_string()),
            Err(_) => self.fail(name, &format!("nothing within {WAIT:?}")),
        }
    }

    pub(crate) fn fail(&self, name: &str, why: &str) {
        self.failed.set(self.failed.get() + 1);
        say(&format!("FAIL {name}: {why}"));
    }

    /// Prints the count.
    pub(crate) fn finish(&self) -> ExitCode {
        let (passed, failed) = (self.passed.get(), self.failed.get());
        say(&serde_json::json!({ "failed": failed, "passed": passed }).to_string());
        if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

#[expect(clippy::print_stdout, reason = "whoever started this reads the checks there")]
fn say(line: &str) {
    println!("{line}");
}

pub(crate) fn expect(condition: bool, why: impl Into<String>) -> Checked {
    if condition { Ok(()) } else { Err(why.into().into()) }
}

pub(crate) fn equal<T: PartialEq + Debug>(actual: T, expected: T, what: &str) -> Checked {
    expect(actual == expected, format!("{what}: expected {expected:?}, got {actual:?}"))
}

/// Waits for a condition; the check around it limits how long.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
