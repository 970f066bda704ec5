//! The standard error of a server.

use std::fmt;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::process::ChildStderr;
use tokio::task::JoinHandle;

use crate::{Line, LineReader};

/// What to do with the standard error of a server. Output there is not a sign of failure.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Stderr {
    /// Inherit the standard error of this process.
    #[default]
    Inherit,
    /// Discard it.
    Discard,
    /// Pass it to a callback, line by line; see [`Stderr::lines`].
    Lines(Callback),
}

/// The callback, shared by all processes of a command.
type Callback = Arc<Mutex<dyn FnMut(&str) + Send>>;

impl Stderr {
    /// Maximum number of bytes in a line; longer lines are truncated.
    pub const LINE_LIMIT: usize = 8 * 1024;

    /// Passes each line to `callback`, without its line ending.
    ///
    /// Blank lines are skipped, lines longer than [`LINE_LIMIT`](Self::LINE_LIMIT) are truncated, and invalid UTF-8 is
    /// replaced. The callback runs in a task of its own and must not block.
    #[must_use]
    pub fn lines(callback: impl FnMut(&str) + Send + 'static) -> Self {
        Self::Lines(Arc::new(Mutex::new(callback)))
    }

    pub(super) fn stdio(&self) -> Stdio {
        match self {
            Self::Inherit => Stdio::inherit(),
            Self::Discard => Stdio::null(),
            Self::Lines(_) => Stdio::piped(),
        }
    }

    /// Spawns the task that reads, if there is a callback.
    pub(super) fn read(&self, pipe: Option<ChildStderr>) -> Option<JoinHandle<()>> {
        let (Self::Lines(callback), Some(pipe)) = (self, pipe) else { return None };
        Some(tokio::spawn(forward(pipe, Arc::clone(callback))))
    }
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inherit => "Inherit",
            Self::Discard => "Discard",
            Self::Lines(_) => "Lines(..)",
        })
    }
}

async fn forward(pipe: ChildStderr, callback: Callback) {
    let mut lines = LineReader::with_capacity(pipe, Stderr::LINE_LIMIT, INITIAL_CAPACITY).truncate_long_lines();
    // A read error ends the output, too.
    while let Ok(Some(line)) = lines.next().await {
        let Line::Message(bytes) = line else { continue };
        let mut callback = callback.lock().unwrap_or_else(PoisonError::into_inner);
        callback(&String::from_utf8_lossy(bytes));
    }
}

/// The initial capacity of the buffer: a few log lines.
const INITIAL_CAPACITY: usize = 1024;
