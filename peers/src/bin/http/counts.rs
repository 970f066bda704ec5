//! What valgrind counts: instructions and allocations.
//!
//! A server is run twice, and asked for more the second time. The difference is what that took; what it takes to start
//! and to warm up is the same in both runs.

use std::process::Command;

use crate::client::Client;
use crate::process::Process;
use crate::request::Kind;
use crate::servers::Server;

/// How many calls warm up.
const BEFORE: usize = 200;

/// How many calls are counted.
const COUNTED: usize = 500;

/// How many calls with an access token are counted: to collect entropy at the start takes cryptography a different number
/// of instructions each time.
const COUNTED_WITH_TOKEN: usize = 8000;

/// What a call takes in a server, with so many tools; what is not known was not counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count {
    pub(crate) kind: Kind,
    pub(crate) tools: usize,
    pub(crate) server: &'static str,
    pub(crate) instructions: Option<f64>,
    /// Those of the instructions that move memory.
    pub(crate) copying: Option<f64>,
    /// Those of the instructions that are the allocator's.
    pub(crate) allocating: Option<f64>,
    /// Growing a block counts as one.
    pub(crate) allocations: Option<f64>,
}

impl Count {
    pub(crate) fn of(server: &Server, kind: Kind, tools: usize) -> Result<Self, String> {
        let mut count = Self {
            kind,
            tools,
            server: server.name,
            instructions: None,
            copying: None,
            allocating: None,
            allocations: None,
        };
        if server.supports(kind) {
            let counted = if kind == Kind::Token { COUNTED_WITH_TOKEN } else { COUNTED };
            let [all, copying, allocating] = per_call(counted, |calls| profile(server, kind, tools, calls))?;
            let [allocations] = per_call(COUNTED, |calls| allocations(server, kind, tools, calls))?;
            count.instructions = Some(all);
            // Where there are no names of functions, there is nothing to see.
            count.copying = Some(copying).filter(|count| *count > 0.0);
            count.allocating = Some(allocating).filter(|count| *count > 0.0);
            count.allocations = Some(allocations);
        }
        Ok(count)
    }
}

fn per_call<const N: usize>(
    counted: usize,
    run: impl Fn(usize) -> Result<[u64; N], String>,
) -> Result<[f64; N], String> {
    let (once, more) = (run(BEFORE)?, run(BEFORE + counted)?);
    Ok(std::array::from_fn(|index| (more[index] as f64 - once[index] as f64) / counted as f64))
}

/// Counts all instructions of a run, those that copy and those of the allocator.
fn profile(server: &Server, kind: Kind, tools: usize, calls: usize) -> Result<[u64; 3], String> {
    let file = std::env::temp_dir().join(format!("callgrind.{}.out", std::process::id()));
    let option = format!("--callgrind-out-file={}", file.display());
    let summary = run(server, kind, tools, calls, &["valgrind", "--tool=callgrind", &option])?;
    let all = number_after(&summary, "Collected :").ok_or_else(|| nothing(server, &summary))?;
    let output = Command::new("callgrind_annotate").args(["--threshold=100", "--auto=no"]).arg(&file).output();
    let _ = std::fs::remove_file(&file);
    let listed = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    Ok([all, sum(&listed, COPYING), sum(&listed, ALLOCATING)])
}

fn allocations(server: &Server, kind: Kind, tools: usize, calls: usize) -> Result<[u64; 1], String> {
    let command = ["valgrind", "--tool=memcheck", "--leak-check=no", "--undef-value-errors=no"];
    let summary = run(server, kind, tools, calls, &command)?;
    Ok([number_after(&summary, "total heap usage:").ok_or_else(|| nothing(server, &summary))?])
}

fn run(server: &Server, kind: Kind, tools: usize, calls: usize, command: &[&str]) -> Result<String, String> {
    let process = Process::start_with(server, kind.mode(), tools, command)?;
    Client::open(kind, process.address, 1)?.run(calls, &mut Vec::new())?;
    process.stop()
}

fn nothing(server: &Server, summary: &str) -> String {
    format!("valgrind counted nothing of {}:\n{summary}", server.name)
}

/// Finds a number such as `1,234` after a word.
fn number_after(summary: &str, word: &str) -> Option<u64> {
    let (_, rest) = summary.lines().find_map(|line| line.split_once(word))?;
    number(rest)
}

fn number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.replace(',', "").parse().ok()
}

/// Adds up the lines such as `1,234 (5.67%)  malloc.c:malloc [/lib/libc.so.6]` of functions of the C library whose names
/// begin so.
fn sum(listed: &str, functions: &[&str]) -> u64 {
    let of_function = |line: &&str| {
        let (name, library) = line.split_once(')').and_then(|(_, rest)| rest.split_once(" [")).unwrap_or_default();
        let name = name.rsplit(':').next().unwrap_or_default().trim_start_matches('_');
        library.contains("/libc") && functions.iter().any(|function| name.starts_with(function))
    };
    listed.lines().filter(of_function).filter_map(number).sum()
}

const COPYING: &[&str] = &["memcpy", "memmove"];

/// Without the underscores before their names.
const ALLOCATING: &[&str] =
    &["malloc", "free", "calloc", "realloc", "cfree", "int_malloc", "int_free", "int_realloc", "unlink_chunk"];

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

    #[test]
    fn functions_are_found_in_the_list() {
        let listed = "1,200 (50.0%)  ./malloc/malloc.c:_int_malloc [/lib/libc.so.6]\n\
                      300 (10.0%)  ???:free [/lib/libc.so.6]\n\
                      70 ( 2.0%)  ???:__memcpy_avx_unaligned_erms [/lib/libc.so.6]\n\
                      5 ( 0.1%)  src/main.rs:app::free [/app]\n\
                      Ir  file:function\n";
        assert_eq!((sum(listed, COPYING), sum(listed, ALLOCATING)), (70, 1500));
    }
}
