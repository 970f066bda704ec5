//! The process group that a child leads.

use std::io;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// A child and the process group that it leads.
///
/// The signals go through `rustix`, because `kill` is not in the standard library and needs `unsafe` with `libc`. Next
/// to tokio it adds three crates on Linux (itself, `bitflags`, `linux-raw-sys`) and two on macOS; `nix` adds four.
/// `process-wrap` signals a group whose leader was waited for, and waits for all of the group, so it is no substitute.
pub(in crate::child) struct ProcessTree {
    child: Child,
    /// The id of the group, until the child was reaped.
    leader: Option<Pid>,
}

impl ProcessTree {
    /// Starts a child that leads a group.
    pub(in crate::child) fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Ok(Self { child, leader: id.and_then(Pid::from_raw) })
    }

    /// Returns the id of the child, until it was reaped.
    pub(in crate::child) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Takes the standard input, output and error.
    pub(in crate::child) fn take_streams(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// Sends SIGTERM to the group; returns whether that was possible.
    pub(in crate::child) fn terminate(&self) -> bool {
        self.signal(Signal::TERM)
    }

    /// Kills the group.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "the Windows implementation needs it")]
    pub(in crate::child) fn kill(&mut self) {
        self.signal(Signal::KILL);
    }

    /// Waits for the child, and kills the rest of the group. Cancel safe.
    pub(in crate::child) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        // Later the id of the group may be reused.
        if let Some(leader) = self.leader.take() {
            let _ = kill_process_group(leader, Signal::KILL);
        }
        Ok(status)
    }

    /// Sends a signal to the group, or to the child alone if it left its group; returns whether that was possible.
    fn signal(&self, signal: Signal) -> bool {
        let Some(leader) = self.leader else { return false };
        kill_process_group(leader, signal).or_else(|_| kill_process(leader, signal)).is_ok()
    }
}
