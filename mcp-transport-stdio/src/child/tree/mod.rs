//! A child process and its descendants.
//!
//! Many servers run behind a launcher (`npx`, `uvx`, a shell), so killing the child alone may not stop the server. Hence the
//! child leads a process group on Unix, and is put into a job object on Windows.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::ProcessTree;
#[cfg(windows)]
pub(super) use windows::ProcessTree;
