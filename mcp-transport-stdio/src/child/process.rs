//! A server that was started, until it has ended.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::{ChildStdin, ChildStdout};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::stderr::Stderr;
use super::tree::ProcessTree;

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
/// | | Unix | Windows |
/// |---|---|---|
/// | the child and what it starts are in | a process group that the child leads | a job object |
/// | `shutdown` closes stdin, then | sends SIGTERM, then SIGKILL to the group | terminates the job |
/// | when the child has ended | what is left of the group is killed | what is left of the job is killed |
/// | what must outlive the child | leaves the group (`setsid`) | cannot |
/// | if this process dies without dropping its values | nothing is killed; the server sees the end of its input, and should end by itself | the job is killed |
///
/// # Dropping
///
/// Dropping kills the group or job at once. On Unix it leaves it to the runtime in which the child was started to collect
/// it, so that no zombie stays. That needs a runtime that still runs. If it does not, or is never polled again, the child
/// is dead all the same, but its entry in the process table stays until another tokio runtime of this process finds it,
/// or until this process ends.
pub struct ChildProcess {
    program: String,
    /// Always there, except while dropping.
    tree: Option<ProcessTree>,
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
    /// How long to wait for it to be gone after SIGKILL, or the end of its job, which it cannot refuse. Default: 10 s.
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
    pub(super) fn new(program: String, mut tree: ProcessTree, stderr: &Stderr) -> Self {
        Self {
            program,
            stdin: tree.take_stdin(),
            stdout: tree.take_stdout(),
            stderr: stderr.read(tree.take_stderr()),
            tree: Some(tree),
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
        self.tree.as_ref().and_then(ProcessTree::id)
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

    /// Ends the server: closes its standard input, asks it to end, and kills it, with some patience in between.
    ///
    /// Dropping the future kills the server.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](io::ErrorKind::TimedOut) if it was killed and is not gone, because the system does not let go of it
    /// or it may not be killed by us; otherwise if the system does not tell.
    // IO-11
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

    /// Asks the child and what it started to end; returns whether the child did.
    async fn terminated(&mut self, patience: Duration) -> io::Result<bool> {
        if !self.tree.as_ref().is_some_and(ProcessTree::terminate) {
            return Ok(false);
        }
        match timeout(patience, self.exit()).await {
            Ok(ended) => ended.map(|_| true),
            Err(_) => Ok(false),
        }
    }

    /// Waits for the child alone; what it started ends with it.
    async fn exit(&mut self) -> io::Result<ExitStatus> {
        self.tree.as_mut().ok_or(io::ErrorKind::NotFound)?.wait().await
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
        // Without an id it has been waited for.
        if tree.id().is_some() {
            // tokio would collect it too, but only after a later SIGCHLD if this one comes at an unlucky moment. If the
            // runtime has ended, the task and with it the child are dropped, and tokio's way is what remains.
            self.runtime.spawn(async move { tree.wait().await });
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
