//! A running server process.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::{ChildStdin, ChildStdout};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::stderr::Stderr;
use super::tree::ProcessTree;

/// A server process; created by [`ServerCommand::spawn`](crate::ServerCommand::spawn).
///
/// ```text
///   running -- exits by itself -------------------------------> wait
///      |
///   shutdown -- close stdin -- SIGTERM -- SIGKILL ------------> exit status, or an error if it is still alive
///      |
///    drop -- SIGKILL
/// ```
///
/// | | Unix | Windows |
/// |---|---|---|
/// | the child and its descendants are in | a process group that the child leads | a job object |
/// | `shutdown` closes stdin, then | sends SIGTERM, then SIGKILL to the group | terminates the job |
/// | when the child has exited | the rest of the group is killed | the rest of the job is killed |
/// | a descendant that must outlive the child | leaves the group (`setsid`) | is not possible |
/// | if this process dies without dropping its values | nothing is killed; the server sees the end of its input, and should exit | the job is killed |
///
/// # Dropping
///
/// Dropping kills the group or job at once. On Unix the runtime in which the child was started reaps it afterwards. If that
/// runtime has ended, or is never polled again, the child remains a zombie until another tokio runtime of this process
/// reaps it, or until this process exits.
pub struct ChildProcess {
    program: String,
    /// `None` only while dropping.
    tree: Option<ProcessTree>,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<JoinHandle<()>>,
    runtime: Handle,
}

/// How long [`ChildProcess::shutdown`] waits after each step before it takes the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ShutdownTimeouts {
    pub(crate) stdin_timeout: Duration,
    terminate_timeout: Duration,
    kill_timeout: Duration,
}

impl ChildProcess {
    pub(super) fn new(program: String, mut tree: ProcessTree, stderr: &Stderr) -> Self {
        let (stdin, stdout, pipe) = tree.take_streams();
        Self { program, stdin, stdout, stderr: stderr.read(pipe), tree: Some(tree), runtime: Handle::current() }
    }

    /// Returns the program.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Returns the process id, or `None` after the process was reaped.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.tree.as_ref().and_then(ProcessTree::id)
    }

    /// Takes the standard input of the process; `None` if it was taken before.
    ///
    /// Drop it before calling [`shutdown`](Self::shutdown), whose first step is to close it. Otherwise the process has to be
    /// stopped by a signal.
    #[must_use]
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Takes the standard output of the process; `None` if it was taken before.
    #[must_use]
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// Waits until the process exits by itself, and until its standard error was passed to [`Stderr::lines`].
    ///
    /// This method is cancel safe.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system does not report the exit status.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.wait_for_exit().await?;
        if let Some(reading) = &mut self.stderr {
            // A process that left the group may keep the pipe open.
            if timeout(STDERR_TIMEOUT, &mut *reading).await.is_err() {
                reading.abort();
                // The callback must not be called after this method has returned.
                let _ = reading.await;
            }
            self.stderr = None;
        }
        Ok(status)
    }

    /// Stops the process: closes its standard input, sends SIGTERM, and kills it, with a timeout after each step.
    ///
    /// Dropping the future kills the process.
    ///
    /// # Errors
    ///
    /// Returns [`TimedOut`](io::ErrorKind::TimedOut) if the process is still alive after it was killed, and an error if the
    /// operating system does not report the exit status.
    // IO-11
    pub async fn shutdown(mut self, timeouts: ShutdownTimeouts) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        if let Ok(ended) = timeout(timeouts.stdin_timeout, self.wait_for_exit()).await {
            ended?;
        } else if !self.terminate(timeouts.terminate_timeout).await? {
            self.kill();
            let Ok(ended) = timeout(timeouts.kill_timeout, self.wait_for_exit()).await else {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("`{}` is still alive after it was killed", self.program),
                ));
            };
            ended?;
        }
        self.wait().await
    }

    /// Sends SIGTERM to the child and its descendants; returns whether the child exited in time.
    async fn terminate(&mut self, limit: Duration) -> io::Result<bool> {
        if !self.tree.as_ref().is_some_and(ProcessTree::terminate) {
            return Ok(false);
        }
        match timeout(limit, self.wait_for_exit()).await {
            Ok(ended) => ended.map(|_| true),
            Err(_) => Ok(false),
        }
    }

    /// Waits for the child; its descendants are killed then.
    async fn wait_for_exit(&mut self) -> io::Result<ExitStatus> {
        self.tree.as_mut().ok_or(io::ErrorKind::NotFound)?.wait().await
    }

    fn kill(&mut self) {
        if let Some(tree) = &mut self.tree {
            tree.kill();
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
        if let Some(reading) = self.stderr.take() {
            reading.abort();
        }
        let Some(mut tree) = self.tree.take() else { return };
        // A process without an id was reaped.
        if tree.id().is_some() {
            // tokio reaps orphans by itself, but possibly not before the next SIGCHLD. If the runtime has ended, the task and
            // the child are dropped, and tokio's way is what remains.
            self.runtime.spawn(async move { tree.wait().await });
        }
    }
}

impl Default for ShutdownTimeouts {
    fn default() -> Self {
        Self {
            stdin_timeout: Duration::from_secs(2),
            terminate_timeout: Duration::from_secs(2),
            kill_timeout: Duration::from_secs(10),
        }
    }
}

impl ShutdownTimeouts {
    /// Sets how long to wait after closing the standard input of the server. Defaults to 2 seconds.
    pub fn stdin_timeout(self, stdin_timeout: Duration) -> Self {
        Self { stdin_timeout, ..self }
    }

    /// Sets how long to wait after SIGTERM. No effect on Windows. Defaults to 2 seconds.
    pub fn terminate_timeout(self, terminate_timeout: Duration) -> Self {
        Self { terminate_timeout, ..self }
    }

    /// Sets how long to wait after SIGKILL, or on Windows after the job was terminated. Defaults to 10 seconds.
    pub fn kill_timeout(self, kill_timeout: Duration) -> Self {
        Self { kill_timeout, ..self }
    }
}

/// How long the standard error of a server is read after the server has exited.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);
