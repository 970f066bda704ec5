//! A server that was started, until it has ended.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::group::Group;
use super::stderr::Stderr;

/// A server that runs as a child process.
///
/// ```text
///   running -- ends by itself --------------------------------> wait
///      |
///   shutdown -- close stdin -- SIGTERM -- SIGKILL ------------> status, or an error if all that was in vain
///      |
///    drop -- SIGKILL
/// ```
///
/// On Unix signals go to the process group that the child leads, and when the child has ended, what is left of its
/// group is killed: a server that ended has no processes. One that must live on has to leave the group (`setsid`).
/// Elsewhere the child itself is killed, and nothing else.
///
/// # Dropping
///
/// Dropping kills the group at once and leaves it to the runtime in which the child was started to collect it, so that
/// no zombie stays. That needs a runtime that still runs. If it does not, or is never polled again, the child is dead all
/// the same, but its entry in the process table stays until another tokio runtime of this process finds it, or until this
/// process ends. Nothing is killed if this process itself dies without dropping its values; then the server sees the end
/// of its input, and should end by itself (IO-12).
pub struct ChildProcess {
    program: String,
    /// Always there, except while dropping.
    child: Option<Child>,
    group: Group,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<JoinHandle<()>>,
    runtime: Handle,
}

/// How long each step of [`ChildProcess::shutdown`] may take before the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ladder {
    /// How long a server may take to end after the end of its input. Default: 2 s.
    pub close: Duration,
    /// How long it may take after SIGTERM, which exists on Unix only. Default: 2 s.
    pub terminate: Duration,
    /// How long to wait for it to be gone after SIGKILL, which it cannot refuse. Default: 10 s.
    pub kill: Duration,
}

/// A server ended although nobody had asked it to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{program}` has ended ({status})")]
#[non_exhaustive]
pub struct Exited {
    /// What had been started.
    pub program: String,
    /// How it ended.
    pub status: ExitStatus,
}

impl ChildProcess {
    pub(super) fn new(program: String, mut child: Child, stderr: &Stderr) -> Self {
        Self {
            program,
            group: Group::of(&child),
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: stderr.read(child.stderr.take()),
            child: Some(child),
            runtime: Handle::current(),
        }
    }

    /// What was started.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Its process id, until it has been waited for.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    /// Takes its standard input; `None` the second time.
    ///
    /// Whoever takes it has to drop it before [`shutdown`](Self::shutdown), which otherwise cannot close it and has to
    /// go on with a signal.
    #[must_use]
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Takes its standard output; `None` the second time.
    #[must_use]
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// Waits until the server ends by itself, and until its last words went to [`Stderr::lines`].
    ///
    /// Dropping the future changes nothing, and one may ask again.
    ///
    /// # Errors
    ///
    /// If the system does not tell.
    pub async fn wait(&mut self) -> io::Result<Exited> {
        let status = self.reap().await?;
        Ok(Exited { program: self.program.clone(), status })
    }

    /// Ends the server (IO-11): closes its standard input, asks it to end, and kills it, with some patience in between.
    ///
    /// Dropping the future kills the server.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](io::ErrorKind::TimedOut) if it was killed and is not gone, because the system does not let go of it
    /// or it may not be killed by us; otherwise if the system does not tell.
    pub async fn shutdown(mut self, ladder: Ladder) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        if let Ok(ended) = timeout(ladder.close, self.exit()).await {
            ended?;
        } else if !self.terminated(ladder.terminate).await? {
            self.kill();
            let Ok(ended) = timeout(ladder.kill, self.exit()).await else {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("`{}` survived being killed", self.program),
                ));
            };
            ended?;
        }
        self.reap().await
    }

    /// Asks the group to end; whether the child did.
    async fn terminated(&mut self, patience: Duration) -> io::Result<bool> {
        if !self.group.terminate() {
            return Ok(false);
        }
        match timeout(patience, self.exit()).await {
            Ok(ended) => ended.map(|_| true),
            Err(_) => Ok(false),
        }
    }

    /// Waits for the child alone, and takes what is left of its group with it.
    async fn exit(&mut self) -> io::Result<ExitStatus> {
        let child = self.child.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let status = child.wait().await?;
        self.group.bury();
        Ok(status)
    }

    /// Waits for the child and for the end of its standard error.
    async fn reap(&mut self) -> io::Result<ExitStatus> {
        let status = self.exit().await?;
        if let Some(reading) = &mut self.stderr {
            // A process that left the group may hold the pipe open for as long as it likes.
            if timeout(LAST_WORDS, &mut *reading).await.is_err() {
                reading.abort();
                // Once we return, the callback is not called any more.
                let _ = reading.await;
            }
            self.stderr = None;
        }
        Ok(status)
    }

    fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            self.group.kill(child);
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
        if let Some(reading) = self.stderr.take() {
            reading.abort();
        }
        let Some(mut child) = self.child.take() else { return };
        // Without an id it has been waited for.
        if child.id().is_some() {
            // tokio would collect it too, but only after a later SIGCHLD if this one comes at an unlucky moment. If the
            // runtime has ended, the task and with it the child are dropped, and tokio's way is what remains.
            self.runtime.spawn(async move { child.wait().await });
        }
    }
}

impl Default for Ladder {
    fn default() -> Self {
        Self { close: Duration::from_secs(2), terminate: Duration::from_secs(2), kill: Duration::from_secs(10) }
    }
}

impl Ladder {
    /// Replaces [`close`](Self::close).
    #[must_use]
    pub fn with_close(self, close: Duration) -> Self {
        Self { close, ..self }
    }

    /// Replaces [`terminate`](Self::terminate).
    #[must_use]
    pub fn with_terminate(self, terminate: Duration) -> Self {
        Self { terminate, ..self }
    }

    /// Replaces [`kill`](Self::kill).
    #[must_use]
    pub fn with_kill(self, kill: Duration) -> Self {
        Self { kill, ..self }
    }
}

/// How long what an ended server wrote to its standard error may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(1);
