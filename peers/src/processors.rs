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
    let id = std::process::id().to_string();
    let mut command = Command::new("taskset");
    command.args(["-p", "-c", DRIVER, &id]).stdout(Stdio::null()).stderr(Stdio::null());
    can_pin() && command.status().is_ok_and(|status| status.success())
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
