//! A program of the benches that runs, and says lines.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::processors;
use crate::watchdog::{self, Shared, Watchdog};

/// How long any wait may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A process, which ends when its input does, and is killed if it is dropped before.
#[derive(Debug)]
pub struct Process {
    name: String,
    id: u32,
    child: Shared,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts a program; returns it with the first line that it says.
    ///
    /// # Errors
    ///
    /// Returns why it could not be started, or that it said nothing.
    pub fn start(name: &str, command: &[String]) -> Result<(Self, String), String> {
        let (program, arguments) = command.split_first().ok_or("no command")?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
        let (id, input) = (child.id(), child.stdin.take());
        let Some(output) = child.stdout.take().map(BufReader::new) else { return Err(format!("{name} has no output")) };
        let mut process = Self { name: name.to_owned(), id, child: Arc::new(Mutex::new(child)), input, output };
        let line = process.line()?;
        Ok((process, line))
    }

    /// The id that the system knows it by.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Says a line, and waits for one.
    ///
    /// # Errors
    ///
    /// Returns that it said nothing, or has ended.
    pub fn ask(&mut self, line: &str) -> Result<String, String> {
        let input = self.input.as_mut().ok_or("its input is closed")?;
        writeln!(input, "{line}").map_err(|error| format!("{}: cannot write: {error}", self.name))?;
        self.line()
    }

    fn line(&mut self) -> Result<String, String> {
        let watchdog = Watchdog::start(&self.child, LIMIT);
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        let was_killed = watchdog.stop();
        match read {
            Ok(1..) => Ok(line),
            _ if was_killed => Err(format!("{}: said nothing for {} s, and was killed", self.name, LIMIT.as_secs())),
            Ok(0) => Err(format!("{}: has ended", self.name)),
            Err(error) => Err(format!("{}: cannot read: {error}", self.name)),
        }
    }

    /// Ends it by closing its input.
    ///
    /// # Errors
    ///
    /// Returns that it had to be killed.
    pub fn stop(mut self) -> Result<(), String> {
        drop(self.input.take());
        let watchdog = Watchdog::start(&self.child, LIMIT);
        let mut rest = String::new();
        while self.output.read_line(&mut rest).is_ok_and(|length| length > 0) {}
        if watchdog.stop() {
            Err(format!("{}: did not end when its input did, and was killed", self.name))
        } else {
            Ok(())
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        watchdog::kill(&self.child);
    }
}

/// Returns the command that starts one of the executables next to this one on a processor.
///
/// # Errors
///
/// Returns that it was not built.
pub fn pinned(processor: &'static str, executable: &str) -> Result<Vec<String>, String> {
    let path = path(executable).ok_or_else(|| format!("{executable} was not built"))?;
    let before = processors::pinned(processor).map(str::to_owned);
    Ok(before.chain([path.to_string_lossy().into_owned()]).collect())
}

/// Returns where an executable is, unless it was not built.
#[must_use]
pub fn path(executable: &str) -> Option<PathBuf> {
    let driver = std::env::current_exe().ok()?;
    let path = driver.with_file_name(format!("{executable}{}", std::env::consts::EXE_SUFFIX));
    path.is_file().then_some(path)
}
