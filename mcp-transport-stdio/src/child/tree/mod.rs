//! A child and everything that it started.
//!
//! Many servers hide behind a launcher (`npx`, `uvx`, a shell), so ending the child alone may miss the server. Hence the
//! child leads a process group on Unix, and is put into a job object on Windows; both contain what it starts.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::ProcessTree;
#[cfg(windows)]
pub(super) use windows::ProcessTree;
