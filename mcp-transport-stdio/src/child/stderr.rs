//! What becomes of a server's error output.

use std::fmt;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::process::ChildStderr;
use tokio::task::JoinHandle;

use crate::{Line, LineReader};

/// What becomes of what a server writes to its standard error.
///
/// Whatever it says, it is no sign of a failure.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Stderr {
    /// It appears where our own does.
    #[default]
    Inherit,
    /// It is thrown away.
    Discard,
    /// It is given to a callback, line by line; see [`Stderr::lines`].
    Lines(Callback),
}

/// What lines are given to, shared by all servers that are started from the same description.
type Callback = Arc<Mutex<dyn FnMut(&str) + Send>>;

impl Stderr {
    /// How many bytes of a line are kept: 8 KiB.
    pub const LINE_LIMIT: usize = 8 * 1024;

    /// Gives each line to `callback`, without its end.
    ///
    /// Blank lines are left out, lines longer than [`LINE_LIMIT`](Self::LINE_LIMIT) are cut there, and what is not
    /// UTF-8 is replaced. The callback runs in a task of its own, which ends with the child; it must not block.
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

    /// Starts to read, if there is somebody to read for.
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
    let mut lines = LineReader::with_capacity(pipe, Stderr::LINE_LIMIT, INITIAL_CAPACITY).cut_off();
    // An error of a pipe is as good as its end.
    while let Ok(Some(line)) = lines.next().await {
        let Line::Message(bytes) = line else { continue };
        let mut callback = callback.lock().unwrap_or_else(PoisonError::into_inner);
        callback(&String::from_utf8_lossy(bytes));
    }
}

/// A few log lines.
const INITIAL_CAPACITY: usize = 1024;
