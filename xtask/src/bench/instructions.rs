//! Instructions, as callgrind counts them.

use std::process::{Command, Stdio};

use super::program::Program;
use crate::Outcome;

/// Has callgrind run what `cargo run` would; its summary goes to the standard error output.
const RUNNER: &str = "target.'cfg(all())'.runner=['valgrind','--tool=callgrind','--callgrind-out-file=/dev/null']";

/// Counts the instructions of all operations that a program lists.
pub(super) fn table(program: &Program) -> Outcome {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Ok("not counted: valgrind is not installed\n".to_owned());
    }
    let listed = program.output(&[], &["--operations"])?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let operations: Vec<(&str, u64)> = listed.lines().filter_map(operation).collect();
    let width = operations.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut table = format!("{:width$} | {:>11}\n", "", "per op");
    for (name, times) in operations {
        // What it takes to start and to prepare is the same in both runs.
        let once = count(program, name, times)?;
        let twice = count(program, name, times * 2)?;
        table.push_str(&format!("{name:width$} | {:>11}\n", twice.saturating_sub(once) / times));
    }
    Ok(table)
}

/// Reads a line such as `name<tab>1000`; an operation that is never run has no instructions.
fn operation(line: &str) -> Option<(&str, u64)> {
    let (name, times) = line.split_once('\t')?;
    Some((name, times.parse().ok().filter(|times| *times > 0)?))
}

/// Counts the instructions of a run in which an operation is done so many times.
fn count(program: &Program, operation: &str, times: u64) -> Result<u64, String> {
    let output = program.output(&["--config", RUNNER], &["--callgrind", operation, &times.to_string()])?;
    let summary = String::from_utf8_lossy(&output.stderr);
    collected(&summary).ok_or_else(|| format!("callgrind printed no `Collected` line for `{operation}`:\n{summary}"))
}

/// Finds the count in a summary with the line `==123== Collected : 456`.
fn collected(summary: &str) -> Option<u64> {
    let (_, count) = summary.lines().find_map(|line| line.split_once("Collected :"))?;
    count.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_the_summary() {
        let summary = "==7== Events    : Ir\n==7== Collected : 218434\n==7== \n==7== I   refs:      218,434\n";
        assert_eq!(collected(summary), Some(218_434));
        assert_eq!(collected("==7== nothing"), None);
    }

    #[test]
    fn operations_are_listed_with_how_often_to_run_them() {
        assert_eq!(operation("a call, and more\t1000"), Some(("a call, and more", 1000)));
        assert_eq!(operation("a call\t0"), None);
        assert_eq!(operation("Finished"), None);
    }
}
