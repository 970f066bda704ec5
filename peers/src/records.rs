//! The figures of a run as lines of JSON, for the report that `cargo xtask bench` makes of them.
//!
//! They are appended to the file that the environment variable [`FILE`] names; without it, there are none.

use std::fs::OpenOptions;
use std::io::Write as _;

use serde::Serialize;

/// The environment variable with the path of the file.
pub const FILE: &str = "BENCH_RECORDS";

/// What a figure is counted in, and which of two is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum Unit {
    /// Requests or calls per second: more are better.
    #[serde(rename = "requests/s")]
    PerSecond,
    /// Time: less is better, as of all that follows.
    #[serde(rename = "µs")]
    Microseconds,
    /// The same in thousands.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Memory.
    KiB,
    /// Instructions of the processor.
    #[serde(rename = "instructions")]
    Instructions,
    /// Blocks that were allocated.
    #[serde(rename = "allocations")]
    Allocations,
    /// Packages that a program is built from.
    #[serde(rename = "crates")]
    Crates,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Record<'a> {
    Figure { workload: &'a str, unit: Unit, is_higher_better: bool, name: &'a str, value: f64 },
    Aim { what: &'a str, least: Option<f64>, most: Option<f64>, value: Option<f64>, is_met: Option<bool> },
}

/// Records what a contestant needed for a workload; nothing if that is unknown.
pub fn figure(workload: &str, unit: Unit, name: &str, value: Option<f64>) {
    if let Some(value) = value.filter(|value| value.is_finite()) {
        let is_higher_better = unit == Unit::PerSecond;
        add(&Record::Figure { workload, unit, is_higher_better, name, value });
    }
}

/// Records a promise, and whether it was kept.
pub(crate) fn aim(what: &str, least: Option<f64>, most: Option<f64>, value: Option<f64>, is_met: Option<bool>) {
    add(&Record::Aim { what, least, most, value, is_met });
}

#[expect(clippy::print_stderr, reason = "a run whose figures are lost should not look as if they were there")]
fn add(record: &Record<'_>) {
    let Some(path) = std::env::var_os(FILE) else { return };
    let write = || {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        OpenOptions::new().create(true).append(true).open(&path)?.write_all(&line)
    };
    if let Err(error) = write() {
        eprintln!("cannot write {}: {error}", path.to_string_lossy());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_an_object_with_one_member() {
        let figure =
            Record::Figure { workload: "w", unit: Unit::PerSecond, is_higher_better: true, name: "ours", value: 1.5 };
        let expected =
            r#"{"figure":{"workload":"w","unit":"requests/s","is_higher_better":true,"name":"ours","value":1.5}}"#;
        assert_eq!(serde_json::to_string(&figure).unwrap(), expected);
    }
}
