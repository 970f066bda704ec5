//! How a server is started.

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

/// Describes a server to be started as a child process.
///
/// ```no_run
/// # async fn start() -> std::io::Result<()> {
/// use mcp_transport_stdio::{Ladder, Spawn, Stderr};
///
/// let mut server = Spawn::new("my-server").arg("--stdio").stderr(Stderr::Discard).start()?;
/// let (stdin, stdout) = (server.take_stdin(), server.take_stdout());
/// // Talk, and then let go of its standard input, because that is how it learns that it is over.
/// drop(stdin);
/// let status = server.shutdown(Ladder::default()).await?;
/// # drop((stdout, status));
/// # Ok(())
/// # }
/// ```
///
/// # Environment
///
/// The secrets of a host do not belong to each of its servers. A server gets the variables that programs need to find
/// themselves and their user, if we have them, and those that [`env`](Self::env) sets:
///
/// | | variables |
/// |---|---|
/// | Unix | `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `USER` |
/// | Windows | `APPDATA`, `HOMEDRIVE`, `HOMEPATH`, `LOCALAPPDATA`, `PATH`, `PATHEXT`, `PROCESSOR_ARCHITECTURE`, `SYSTEMDRIVE`, `SYSTEMROOT`, `TEMP`, `USERNAME`, `USERPROFILE` |
///
/// The official SDKs do the same. [`inherit_env`](Self::inherit_env) passes the whole environment instead, and
/// [`env_clear`](Self::env_clear) none of it. A [`Command`] that is converted keeps its own environment.
///
/// # Commands
///
/// What is not offered here can be set on a [`Command`] and converted. Its standard streams, its process group,
/// `kill_on_drop` and, on Windows, its creation flags are replaced.
pub struct Spawn {
    command: Command,
    stderr: Stderr,
}

impl Spawn {
    /// Describes a server that is started as `program`, which is looked up in `PATH` unless it has a slash.
    ///
    /// On Windows a program that is a batch file needs its extension: `npx.cmd`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.env_clear().envs(environment::safe(std::env::vars_os()));
        command.into()
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable of the server's environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Passes the whole environment of this process, as it is now, with all secrets in it.
    ///
    /// Variables that were set with [`env`](Self::env) stay as they were set.
    #[must_use]
    pub fn inherit_env(mut self) -> Self {
        for (name, value) in std::env::vars_os() {
            if !self.command.as_std().get_envs().any(|(set, _)| environment::is_same(set, &name)) {
                self.command.env(name, value);
            }
        }
        self
    }

    /// Removes all variables from the server's environment, also those that were set with [`env`](Self::env) before.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.command.env_clear();
        self
    }

    /// Sets the working directory, which otherwise is ours.
    #[must_use]
    pub fn current_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Says what becomes of its standard error. Default: [`Stderr::Inherit`].
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Starts the server; another one each time.
    ///
    /// On Unix it leads a process group of its own, so Ctrl-C in a terminal does not reach it: the client ends it. On
    /// Windows it is in a job object of its own; see [`ChildProcess`].
    ///
    /// # Errors
    ///
    /// If the program cannot be started; the error names it.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O and time enabled.
    pub fn start(&mut self) -> Result<ChildProcess, SpawnError> {
        let program = self.command.as_std().get_program().to_string_lossy().into_owned();
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(self.stderr.stdio());
        match ProcessTree::start(&mut self.command) {
            Ok(tree) => Ok(ChildProcess::new(program, tree, &self.stderr)),
            Err(source) => Err(SpawnError { program, source }),
        }
    }
}

/// Says which variables are set, but not to what, and how many arguments there are: either may hold secrets.
impl fmt::Debug for Spawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = self.command.as_std();
        let variables: Vec<&OsStr> = command.get_envs().map(|(name, _)| name).collect();
        f.debug_struct("Spawn")
            .field("program", &command.get_program())
            .field("arguments", &command.get_args().count())
            .field("variables", &variables)
            .field("stderr", &self.stderr)
            .finish_non_exhaustive()
    }
}

impl From<Command> for Spawn {
    fn from(command: Command) -> Self {
        Self { command, stderr: Stderr::default() }
    }
}

/// A server could not be started.
#[derive(Debug, thiserror::Error)]
#[error("`{program}` could not be started")]
#[non_exhaustive]
pub struct SpawnError {
    /// What was to be started.
    pub program: String,
    /// Why it was not.
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
        let spawn = || Spawn::new("my-server").arg("--token=secret").env("TOKEN", "secret").inherit_env();
        let path = std::env::var("PATH").unwrap();
        for shown in [format!("{:?}", spawn()), format!("{:?}", ChildTransport::new(spawn()))] {
            assert!(shown.contains("\"my-server\"") && shown.contains("\"TOKEN\""));
            assert!(!shown.contains("secret") && !shown.contains(&path));
        }
    }
}
