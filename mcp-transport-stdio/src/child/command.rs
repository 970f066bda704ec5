//! The command that starts a server.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use super::environment;
use super::process::ChildProcess;
use super::stderr::Stderr;
use super::tree::ProcessTree;

/// A command that starts a server as a child process.
///
/// # Examples
///
/// ```no_run
/// # async fn start() -> std::io::Result<()> {
/// use mcp_transport_stdio::{ShutdownTimeouts, ServerCommand, Stderr};
///
/// let mut server = ServerCommand::new("my-server").arg("--stdio").stderr(Stderr::Discard).spawn()?;
/// let (stdin, stdout) = (server.take_stdin(), server.take_stdout());
/// // Exchange messages, and then close its standard input, which asks the server to exit.
/// drop(stdin);
/// let status = server.shutdown(ShutdownTimeouts::default()).await?;
/// # drop((stdout, status));
/// # Ok(())
/// # }
/// ```
///
/// # Environment
///
/// The environment of the host may contain secrets. A server inherits only these variables, and gets those that
/// [`env`](Self::env) sets:
///
/// | | variables |
/// |---|---|
/// | Unix | `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `USER` |
/// | Windows | `APPDATA`, `HOMEDRIVE`, `HOMEPATH`, `LOCALAPPDATA`, `PATH`, `PATHEXT`, `PROCESSOR_ARCHITECTURE`, `SYSTEMDRIVE`, `SYSTEMROOT`, `TEMP`, `USERNAME`, `USERPROFILE` |
///
/// The official SDKs do the same. [`inherit_env`](Self::inherit_env) passes the whole environment instead, and
/// [`env_clear`](Self::env_clear) none of it.
///
/// # Conversion from `Command`
///
/// For settings that are not available here, convert a [`Command`]. It keeps its environment; its standard streams, process
/// group, `kill_on_drop` and, on Windows, creation flags are replaced.
#[must_use]
pub struct ServerCommand {
    command: Command,
    stderr: Stderr,
}

impl ServerCommand {
    /// Creates a command for `program`, which is looked up in `PATH` unless it contains a slash.
    ///
    /// On Windows, batch files need their extension, such as `npx.cmd`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.env_clear().envs(environment::inherited(std::env::vars_os()));
        command.into()
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets an environment variable of the server.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Passes the whole current environment of this process, including its secrets.
    ///
    /// Variables that were set with [`env`](Self::env) before are kept.
    pub fn inherit_env(mut self) -> Self {
        for (name, value) in std::env::vars_os() {
            if !self.command.as_std().get_envs().any(|(set, _)| environment::is_same(set, &name)) {
                self.command.env(name, value);
            }
        }
        self
    }

    /// Removes all environment variables of the server, including those that were set with [`env`](Self::env) before.
    pub fn env_clear(mut self) -> Self {
        self.command.env_clear();
        self
    }

    /// Sets the working directory. Defaults to that of this process.
    pub fn current_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Sets what to do with the standard error of the server. Defaults to [`Stderr::Inherit`].
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Starts a new process.
    ///
    /// On Unix it leads a process group of its own, so that Ctrl-C in a terminal does not reach it. On Windows it is in a
    /// job object of its own; see [`ChildProcess`].
    ///
    /// # Errors
    ///
    /// Returns an error if the program cannot be started.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime with I/O and time enabled.
    pub fn spawn(&mut self) -> Result<ChildProcess, SpawnError> {
        let program = self.command.as_std().get_program().to_string_lossy().into_owned();
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(self.stderr.stdio());
        match ProcessTree::start(&mut self.command) {
            Ok(tree) => Ok(ChildProcess::new(program, tree, &self.stderr)),
            Err(source) => Err(SpawnError { program, source }),
        }
    }
}

/// Shows the names of variables and the number of arguments only: values may be secrets.
impl fmt::Debug for ServerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = self.command.as_std();
        let variables: Vec<&OsStr> = command.get_envs().map(|(name, _)| name).collect();
        f.debug_struct("ServerCommand")
            .field("program", &command.get_program())
            .field("arguments", &command.get_args().count())
            .field("variables", &variables)
            .field("stderr", &self.stderr)
            .finish_non_exhaustive()
    }
}

impl From<Command> for ServerCommand {
    fn from(command: Command) -> Self {
        Self { command, stderr: Stderr::default() }
    }
}

/// The error of starting a server.
#[derive(Debug, thiserror::Error)]
#[error("`{program}` could not be started")]
#[non_exhaustive]
pub struct SpawnError {
    /// The program.
    pub program: String,
    /// The error of the operating system.
    pub source: io::Error,
}

impl From<SpawnError> for io::Error {
    fn from(error: SpawnError) -> Self {
        Self::new(error.source.kind(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChildTransport;

    /// Arguments and variables are where hosts put secrets.
    #[test]
    fn secrets_are_not_shown() {
        let spawn = || ServerCommand::new("my-server").arg("--token=secret").env("TOKEN", "secret").inherit_env();
        let path = std::env::var("PATH").unwrap();
        for shown in [format!("{:?}", spawn()), format!("{:?}", ChildTransport::new(spawn()))] {
            assert!(shown.contains("\"my-server\"") && shown.contains("\"TOKEN\""));
            assert!(!shown.contains("secret") && !shown.contains(&path));
        }
    }
}
