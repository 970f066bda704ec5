//! Processes that end when they should: by themselves, at their limit, or with the process that started them.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A process that was started here, and is killed when it goes out of sight.
pub(crate) struct Running {
    child: Child,
    what: String,
}

impl Running {
    /// Starts a process, which gets nothing to read.
    pub(crate) fn start(command: &mut Command, what: &str) -> Result<Self, String> {
        let child = command.stdin(Stdio::null()).spawn();
        let child = child.map_err(|error| format!("cannot start {what}: {error}"))?;
        Ok(Self { child, what: what.to_owned() })
    }

    /// Waits for the process to end by itself.
    pub(crate) fn wait(mut self, limit: Duration) -> Result<ExitStatus, String> {
        let status = until(limit, || self.ended())?;
        status.ok_or_else(|| format!("{} took longer than {} s, and was killed", self.what, limit.as_secs()))
    }

    /// How the process ended, unless it is still running.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, String> {
        self.child.try_wait().map_err(|error| format!("cannot wait for {}: {error}", self.what))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails for a process that has ended, which is just as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a process that has to succeed within a limit.
pub(crate) fn run(command: &mut Command, what: &str, limit: Duration) -> Result<(), String> {
    let status = Running::start(command, what)?.wait(limit)?;
    if status.success() { Ok(()) } else { Err(format!("{what} failed ({status}); the messages above say why")) }
}

/// Whether a command succeeds, which prints nothing.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Asks again and again until there is an answer; `None` if there is none within the limit.
#[expect(clippy::disallowed_methods, reason = "a command-line tool that waits for other processes")]
pub(crate) fn until<T>(
    limit: Duration,
    mut ask: impl FnMut() -> Result<Option<T>, String>,
) -> Result<Option<T>, String> {
    const PAUSE: Duration = Duration::from_millis(20);
    let start = Instant::now();
    loop {
        let answer = ask()?;
        if answer.is_some() || start.elapsed() >= limit {
            return Ok(answer);
        }
        std::thread::sleep(PAUSE);
    }
}

/// A new file for what a process prints.
pub(crate) fn log(path: &Path) -> Result<File, String> {
    File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Reads a file that a process wrote.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_killed() {
        let sleeper = Running::start(Command::new("sleep").arg("600"), "a sleeper").unwrap();
        let fault = sleeper.wait(Duration::from_millis(50)).unwrap_err();
        assert!(fault.starts_with("a sleeper took longer"), "{fault}");
    }

    #[test]
    fn what_fails_or_cannot_start_is_told() {
        let limit = Duration::from_secs(60);
        assert_eq!(run(&mut Command::new("true"), "it", limit), Ok(()));
        assert!(run(&mut Command::new("false"), "it", limit).unwrap_err().starts_with("it failed"));
        assert!(run(&mut Command::new("no-such-program"), "it", limit).unwrap_err().starts_with("cannot start it"));
    }
}
