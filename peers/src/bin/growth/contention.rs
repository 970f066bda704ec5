//! Which locks threads wait for, as the system sees it: a lock that is free costs no system call.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use peers::processors::is_installed;

/// What was traced.
pub(crate) struct Contention {
    /// How often a thread waited.
    pub(crate) waits: usize,
    /// Where, the most frequent first.
    pub(crate) places: Vec<(String, usize)>,
}

/// Traces this program while two threads contend; nothing if that is not possible.
pub(crate) fn of(case: &str) -> Result<Option<Contention>, String> {
    if !is_installed("strace") {
        return Ok(None);
    }
    let file = std::env::temp_dir().join(format!("growth.{}.strace", std::process::id()));
    let failed = |error: std::io::Error| format!("cannot trace: {error}");
    let mut command = Command::new("strace");
    command.args(["-f", "-k", "--seccomp-bpf", "-e", "trace=futex", "-o"]).arg(&file);
    command.arg(std::env::current_exe().map_err(failed)?).args(["--contend", case]);
    let status = command.stdin(Stdio::null()).stderr(Stdio::null()).status().map_err(failed)?;
    let trace = std::fs::read_to_string(&file);
    let _ = std::fs::remove_file(&file);
    // Tracing is forbidden in some containers.
    Ok(if status.success() { trace.ok().map(|trace| read(&trace)) } else { None })
}

/// Reads calls such as `12 futex(.., FUTEX_WAIT..) = 0`, each followed by its stack, one ` > file(function+0x1) [0x2]` per
/// line. A call that was interrupted by that of another thread has its stack where it is resumed.
fn read(trace: &str) -> Contention {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut waiting: BTreeSet<&str> = BTreeSet::new();
    let mut is_looking = false;
    let mut waits = 0;
    for line in trace.lines() {
        let Some(frame) = line.strip_prefix(" > ") else {
            let thread = line.split_whitespace().next().unwrap_or_default();
            if line.ends_with("<unfinished ...>") {
                is_looking = false;
                if line.contains("FUTEX_WAIT") {
                    waiting.insert(thread);
                }
            } else {
                is_looking = line.contains("FUTEX_WAIT") || line.contains("resumed>") && waiting.remove(thread);
            }
            continue;
        };
        let function = frame.split_once('(').map_or("", |(_, rest)| rest.split("+0x").next().unwrap_or_default());
        if !is_looking || SYSTEM.iter().any(|system| function.starts_with(system)) || function.is_empty() {
            continue;
        }
        // The first function that is not the system's has the lock in it. To wait for a thread or for a response is no lock.
        is_looking = false;
        if !["thread", "::park::", "growth::"].iter().any(|part| function.contains(part)) {
            waits += 1;
            *places.entry(function.to_owned()).or_default() += 1;
        }
    }
    let mut places: Vec<(String, usize)> = places.into_iter().collect();
    places.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    places.truncate(5);
    Contention { waits, places }
}

const SYSTEM: [&str; 6] = ["syscall", "std::", "<std::", "__", "core::", "<core::"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_with_the_lock_is_found() {
        let trace = "12 futex(0x1, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>\n\
                     13 futex(0x1, FUTEX_WAKE_PRIVATE, 1) = 1\n \
                     > /app(other+0x1) [0x5]\n\
                     12 <... futex resumed>) = 0\n \
                     > /lib/libc.so.6(syscall+0x1d) [0x1]\n \
                     > /app(std::sys::sync::mutex::futex::Mutex::lock_contended+0x2) [0x2]\n \
                     > /app(mcp_session::manager::Manager::get+0x9) [0x3]\n \
                     > /app(main+0x1) [0x4]\n\
                     12 futex(0x1, FUTEX_WAKE_PRIVATE, 1) = 1\n \
                     > /app(other+0x1) [0x5]\n";
        let contention = read(trace);
        assert_eq!(contention.waits, 1);
        assert_eq!(contention.places, [("mcp_session::manager::Manager::get".to_owned(), 1)]);
    }
}
