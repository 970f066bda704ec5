//! A child and everything that it started.

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, Command};

/// The process group that a child leads, as long as its number is certainly its own.
///
/// Many servers hide behind a launcher (`npx`, `uvx`, a shell), so a signal to the child alone may miss the server. On
/// Unix the child therefore leads a group, and signals go to all of it. Elsewhere only the child itself can be killed.
///
/// The signals go through `rustix`, because `kill` is not in the standard library and needs `unsafe` with `libc`. Next
/// to tokio it adds three crates on Linux (itself, `bitflags`, `linux-raw-sys`) and two on macOS; `nix` adds four.
pub(super) struct Group {
    #[cfg(unix)]
    leader: Option<Pid>,
}

#[cfg(unix)]
impl Group {
    /// Lets the child that the command starts lead a group.
    pub(super) fn prepare(command: &mut Command) {
        command.process_group(0);
    }

    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { leader: id.and_then(Pid::from_raw) }
    }

    /// Asks all of the group to end; whether that could be asked.
    pub(super) fn terminate(&self) -> bool {
        self.signal(Signal::TERM)
    }

    /// Kills all of the group.
    pub(super) fn kill(&self, _: &mut Child) {
        self.signal(Signal::KILL);
    }

    /// Kills what outlived the child.
    ///
    /// To be called right after the child was waited for, because from then on its number may be given to somebody
    /// else; the group does not use it again.
    pub(super) fn bury(&mut self) {
        if let Some(leader) = self.leader.take() {
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }

    /// Whether somebody was there to be signalled: all of the group, or the child alone if it left its own group.
    fn signal(&self, signal: Signal) -> bool {
        let Some(leader) = self.leader else { return false };
        kill_process_group(leader, signal).or_else(|_| kill_process(leader, signal)).is_ok()
    }
}

#[cfg(not(unix))]
impl Group {
    pub(super) fn prepare(_: &mut Command) {}

    pub(super) fn of(_: &Child) -> Self {
        Self {}
    }

    pub(super) fn terminate(&self) -> bool {
        false
    }

    pub(super) fn kill(&self, child: &mut Child) {
        let _ = child.start_kill();
    }

    #[expect(clippy::needless_pass_by_ref_mut, reason = "on Unix it changes")]
    pub(super) fn bury(&mut self) {}
}
