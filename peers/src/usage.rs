//! What a process takes of the machine, as Linux tells it; elsewhere nobody does.

use std::time::Duration;

/// The time that all threads of a process have run so far, ended ones included.
///
/// It comes in steps of ten milliseconds, so it takes many calls to know what one costs.
#[must_use]
pub fn processor_time(id: u32) -> Option<Duration> {
    ticks(&std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?).map(|ticks| Duration::from_millis(ticks * 10))
}

/// The most memory that a process has had at a time, in KiB.
#[must_use]
pub fn peak_memory(id: u32) -> Option<u64> {
    kibibytes(&std::fs::read_to_string(format!("/proc/{id}/status")).ok()?, "VmHWM:")
}

/// The memory that a process has now, in KiB.
#[must_use]
pub fn memory(id: u32) -> Option<u64> {
    kibibytes(&std::fs::read_to_string(format!("/proc/{id}/status")).ok()?, "VmRSS:")
}

/// Adds up the time in user mode and in the kernel. The name, in parentheses, can contain anything.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn kibibytes(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_modes_count() {
        assert_eq!(ticks("7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 25 5 0 0 20 0 1 0 12345"), Some(30));
        assert_eq!(ticks("nothing"), None);
    }

    #[test]
    fn memory_is_found_among_the_lines() {
        assert_eq!(kibibytes("VmPeak:\t   90 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 1024 kB\n", "VmHWM:"), Some(2048));
        assert_eq!(kibibytes("VmRSS:\t 1024 kB\n", "VmHWM:"), None);
    }
}
