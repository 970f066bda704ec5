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

    /// Returns the id of the child, until it was reaped.
    pub(in crate::child) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Takes the standard input, output and error.
    pub(in crate::child) fn take_streams(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin().take(), self.child.stdout().take(), self.child.stderr().take())
    }

    /// Returns `false`: Windows has no signal that asks a process to exit.
    pub(in crate::child) fn terminate(&self) -> bool {
        false
    }

    /// Kills all processes in the job.
    pub(in crate::child) fn kill(&mut self) {
        let _ = self.child.start_kill();
    }

    /// Waits for the child, and kills the rest of the job. Cancel safe.
    pub(in crate::child) async fn wait(&mut self) -> io::Result<ExitStatus> {
        // The `wait` of the job would wait until the last process in it exits by itself.
        let status = self.child.inner_mut().wait().await?;
        self.kill();
        Ok(status)
    }
}
