//! Who runs on which processor.

use std::process::{Command, Stdio};

/// The processor of servers.
pub const SERVER: &str = "0";

/// The processor of those who talk to them.
pub const DRIVER: &str = "1";

/// What to put before a command so that it runs on this processor; nothing where that is not possible.
pub fn pinned(processor: &'static str) -> impl Iterator<Item = &'static str> {
    can_pin().then_some(["taskset", "-c", processor]).into_iter().flatten()
}

/// Keeps this process off the processor of the servers; returns whether that was possible.
#[must_use]
pub fn pin_driver() -> bool {
    can_pin() && keep(std::process::id(), DRIVER)
}

/// Has this process and others share one processor while `work` runs, and tells it whether that was possible.
///
/// Where only one of them runs at a time, the scheduler is free to wake each on the processor of the other one or on an
/// idle one, which takes several times as long: it would be its choice that is measured.
pub fn sharing<T>(others: impl IntoIterator<Item = u32>, work: impl FnOnce(bool) -> T) -> T {
    let ids: Vec<u32> = others.into_iter().chain([std::process::id()]).collect();
    let all = std::fs::read_to_string("/sys/devices/system/cpu/online").ok().filter(|_| can_pin());
    let is_shared = all.is_some() && ids.iter().all(|id| keep(*id, SERVER));
    let result = work(is_shared);
    if let Some(all) = all {
        for id in ids {
            // A process that has ended needs none.
            let _ = keep(id, all.trim());
        }
    }
    result
}

/// Keeps all threads of a process on these processors; returns whether that was possible.
fn keep(id: u32, processors: &str) -> bool {
    let mut command = Command::new("taskset");
    command.args(["-a", "-p", "-c", processors, &id.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether there are two processors, and a way to choose.
#[must_use]
pub fn can_pin() -> bool {
    // What this driver is pinned to does not count.
    let has_two = std::fs::exists("/sys/devices/system/cpu/cpu1").unwrap_or(false);
    has_two && is_installed("taskset")
}

/// Whether there is such a program.
#[must_use]
pub fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}
