//! Checks, by name: all of them are made, whichever fail.

use std::fmt::{Debug, Display};
use std::time::Duration;

/// What came of a check.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// Nothing takes that long unless it hangs.
const LIMIT: Duration = Duration::from_secs(20);

/// What was checked so far.
#[derive(Default)]
pub(crate) struct Report {
    passed: usize,
    failed: Vec<String>,
}

impl Report {
    pub(crate) async fn check(&mut self, scene: &impl Display, name: &str, check: impl Future<Output = Outcome>) {
        match tokio::time::timeout(LIMIT, check).await {
            Ok(Ok(())) => self.passed += 1,
            Ok(Err(why)) => self.failed.push(format!("{scene}: {name}: {why}")),
            Err(_) => self.failed.push(format!("{scene}: {name}: it hangs")),
        }
    }

    /// How many passed, if none failed.
    pub(crate) fn passed(self) -> usize {
        assert!(
            self.failed.is_empty(),
            "{} passed, {} failed\n{}",
            self.passed,
            self.failed.len(),
            self.failed.join("\n")
        );
        self.passed
    }
}

pub(crate) fn same<T: PartialEq + Debug>(found: T, wanted: T) -> Outcome {
    if found == wanted { Ok(()) } else { Err(format!("{found:?} instead of {wanted:?}")) }
}

/// Makes an error readable.
pub(crate) trait OrSay<T> {
    fn or_say(self, what: &str) -> Outcome<T>;
}

impl<T, E: Display> OrSay<T> for Result<T, E> {
    fn or_say(self, what: &str) -> Outcome<T> {
        self.map_err(|error| format!("{what}: {error}"))
    }
}

impl<T> OrSay<T> for Option<T> {
    fn or_say(self, what: &str) -> Outcome<T> {
        self.ok_or_else(|| what.to_owned())
    }
}
