//! What valgrind counts: instructions and allocations.
//!
//! A server is run twice, and asked for more the second time. The difference is what that took; what it takes to start
//! and to warm up is the same in both runs.

use crate::client::Client;
use crate::process::Process;
use crate::request::Kind;
use crate::servers::Server;

/// How many calls warm up.
const BEFORE: usize = 200;

/// How many calls are counted.
const COUNTED: usize = 500;

/// Counts the instructions of a call, in the server.
pub(crate) fn instructions(server: &Server, kind: Kind, tools: usize) -> Result<f64, String> {
    let command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
    per_call(server, kind, tools, &command, |summary| number_after(summary, "Collected :"))
}

/// Counts the allocations of a call, in the server; growing a block counts as one.
pub(crate) fn allocations(server: &Server, kind: Kind, tools: usize) -> Result<f64, String> {
    let command = ["valgrind", "--tool=memcheck", "--leak-check=no", "--undef-value-errors=no"];
    per_call(server, kind, tools, &command, |summary| number_after(summary, "total heap usage:"))
}

fn per_call(
    server: &Server,
    kind: Kind,
    tools: usize,
    command: &[&str],
    count: fn(&str) -> Option<u64>,
) -> Result<f64, String> {
    let run = |calls| {
        let process = Process::start_with(server, kind.mode(), tools, command)?;
        Client::open(kind, process.address, 1)?.run(calls, &mut Vec::new())?;
        let summary = process.stop()?;
        count(&summary).ok_or_else(|| format!("valgrind counted nothing of {}:\n{summary}", server.name))
    };
    let (once, more) = (run(BEFORE)?, run(BEFORE + COUNTED)?);
    Ok((more as f64 - once as f64) / COUNTED as f64)
}

/// Finds a number such as `1,234` after a word.
fn number_after(summary: &str, word: &str) -> Option<u64> {
    let (_, rest) = summary.lines().find_map(|line| line.split_once(word))?;
    rest.split_whitespace().next()?.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_the_summary() {
        let summary = "==7== Collected : 218434\n==7==   total heap usage: 1,234 allocs, 5 frees, 6 bytes allocated\n";
        assert_eq!(number_after(summary, "Collected :"), Some(218_434));
        assert_eq!(number_after(summary, "total heap usage:"), Some(1234));
        assert_eq!(number_after("nothing", "Collected :"), None);
    }
}
