//! Limits for waits: a process that keeps the driver waiting is killed, which ends the wait.

use std::process::Child;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A process that may be killed by the one who waits for it, and by the one who ends the wait.
pub type Shared = Arc<Mutex<Child>>;

/// Kills a process unless the wait ends in time.
#[derive(Debug)]
pub struct Watchdog {
    /// Nothing is sent: hanging up tells that the wait is over.
    wait: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Watchdog {
    /// Starts to wait; the process is killed when the limit is reached.
    #[expect(clippy::disallowed_methods, reason = "what blocks cannot look at the clock, so another thread does")]
    pub fn start(process: &Shared, limit: Duration) -> Self {
        let (wait, ended) = mpsc::channel();
        let process = Arc::clone(process);
        let thread = thread::spawn(move || {
            let is_late = ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if is_late {
                kill(&process);
            }
            is_late
        });
        Self { wait, thread }
    }

    /// Ends the wait; returns whether the process had to be killed.
    pub fn stop(self) -> bool {
        drop(self.wait);
        self.thread.join().unwrap_or(false)
    }
}

/// Kills a process by its id; one that has ended already stays as it is.
pub fn kill(process: &Shared) {
    let mut process = process.lock().unwrap_or_else(PoisonError::into_inner);
    if process.kill().is_ok() {
        let _ = process.wait();
    }
}
