//! A server that runs.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use peers::http::LIMIT;
use peers::processors::{self, SERVER};
use peers::watchdog::{self, Shared, Watchdog};

use crate::servers::Server;

/// The number of tools that a server has, unless it is said otherwise.
pub(crate) const TOOLS: usize = 50;

/// How a server treats legacy clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    NoSessions,
    Sessions,
}

#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    id: u32,
    child: Shared,
    output: BufReader<ChildStdout>,
    errors: Option<BufReader<ChildStderr>>,
    pub(crate) address: SocketAddr,
}

impl Process {
    pub(crate) fn start(server: &Server, mode: Mode) -> Result<Self, String> {
        Self::start_with(server, mode, TOOLS, &[])
    }

    /// Starts a server on a processor of its own, with `before` before its command.
    pub(crate) fn start_with(server: &Server, mode: Mode, tools: usize, before: &[&str]) -> Result<Self, String> {
        let name = server.name;
        let path = server.path().ok_or_else(|| format!("{name} was not built"))?;
        let mut line: Vec<String> = processors::pinned(SERVER).map(str::to_owned).collect();
        line.extend(before.iter().map(|word| (*word).to_owned()));
        line.push(path.to_string_lossy().into_owned());
        line.extend(["--tools".to_owned(), tools.to_string()]);
        if mode == Mode::Sessions {
            line.push("--sessions".to_owned());
        }
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        if !before.is_empty() {
            command.stderr(Stdio::piped());
        }
        let mut child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
        let (output, errors, id) = (child.stdout.take(), child.stderr.take(), child.id());
        let child = Arc::new(Mutex::new(child));
        let Some(mut output) = output.map(BufReader::new) else { return Err(format!("{name} has no output")) };
        let watchdog = Watchdog::start(&child, LIMIT);
        let mut line = String::new();
        let read = output.read_line(&mut line);
        watchdog.stop();
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.split('/').next()?.parse().ok());
        match (read, address) {
            (Ok(_), Some(address)) => Ok(Self { name, id, child, output, errors: errors.map(BufReader::new), address }),
            (read, _) => {
                watchdog::kill(&child);
                Err(format!("{name} says no address but `{line}` ({read:?})"))
            }
        }
    }

    /// Ends the server; returns how many tasks it had.
    pub(crate) fn stop_and_count_tasks(mut self) -> Result<usize, String> {
        drop(self.lock().stdin.take());
        let watchdog = Watchdog::start(&self.child, LIMIT);
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        watchdog.stop();
        line.trim().parse().map_err(|_| format!("{} says no number of tasks but `{line}` ({read:?})", self.name))
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Ends the server by closing its input; returns what it wrote to its standard error output, if that was asked for.
    pub(crate) fn stop(mut self) -> Result<String, String> {
        drop(self.lock().stdin.take());
        let watchdog = Watchdog::start(&self.child, LIMIT);
        let mut said = String::new();
        let read = self.errors.take().map_or(Ok(0), |mut errors| errors.read_to_string(&mut said));
        if watchdog.stop() {
            return Err(format!("{}: did not end when its input did, and was killed", self.name));
        }
        read.map_err(|error| format!("{}: {error}", self.name))?;
        Ok(said)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        watchdog::kill(&self.child);
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
