//! The job object that a child is in.

use std::io;
use std::process::ExitStatus;

use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

/// A child and the job object that it is in.
///
/// The job is closed with its last handle, which is here. Closing it kills all processes in it, so they end with this
/// process however that ends. A process cannot leave the job.
///
/// `process-wrap` starts the child suspended and lets it run when it is in the job, so nothing that it starts is outside.
pub(in crate::child) struct ProcessTree {
    child: Box<dyn ChildWrapper>,
}

impl ProcessTree {
    /// Starts a child in a job.
    pub(in crate::child) fn start(command: &mut Command) -> io::Result<Self> {
        let mut wrap = CommandWrap::from(std::mem::replace(command, Command::new("")));
        let started = wrap.wrap(KillOnDrop).wrap(JobObject).spawn();
        *command = wrap.into_command();
        Ok(Self { child: started? })
    }

    /// The id of the child, until it has been waited for.
    pub(in crate::child) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    pub(in crate::child) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin().take()
    }

    pub(in crate::child) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout().take()
    }

    pub(in crate::child) fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr().take()
    }

    /// There is no way to ask a process to end that it could not miss, other than to close its input.
    pub(in crate::child) fn terminate(&self) -> bool {
        false
    }

    /// Kills all processes in the job.
    pub(in crate::child) fn kill(&mut self) {
        let _ = self.child.start_kill();
    }

    /// Waits for the child alone, and kills what outlived it.
    ///
    /// Dropping the future loses nothing.
    pub(in crate::child) async fn wait(&mut self) -> io::Result<ExitStatus> {
        // The job's own `wait` would wait until the last process in it ends by itself.
        let status = self.child.inner_mut().wait().await?;
        self.kill();
        Ok(status)
    }
}
