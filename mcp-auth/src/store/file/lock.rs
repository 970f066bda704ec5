//! Locks that processes exclude each other with.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::write::open_lock_file;
use crate::store::{StoreError, StoreLock};

/// How long the first attempts are apart. A refresh takes longer.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
/// How long later attempts are apart.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Waits for the lock on a file, which the operating system releases when the result is dropped or the process ends.
///
/// The lock is attempted again and again: a thread that waits in the operating system could not be stopped when the time is over
/// or the login is cancelled, and would keep the runtime from shutting down.
pub(in crate::store) async fn lock(path: &Path, timeout: Duration) -> Result<StoreLock, StoreError> {
    // Without an end if the time is too long to be expressed.
    let deadline = Instant::now().checked_add(timeout);
    let mut pause = FIRST_PAUSE;
    loop {
        let attempted = path.to_owned();
        let result = tokio::task::spawn_blocking(move || try_lock(&attempted)).await;
        match result.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(Some(file)) => return Ok(StoreLock::new(file)),
            Ok(None) if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                return Err(StoreError::Locked { store: path.display().to_string() });
            }
            Ok(None) => {}
            Err(error) => return Err(StoreError::unavailable(path.display().to_string(), error)),
        }
        // At random, so that processes that started together do not stay in step.
        let jitter = getrandom::u32().unwrap_or_default() % 1000;
        sleep(pause / 2 + pause * jitter / 1000).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// Locks the file, or returns `None` if another handle holds the lock.
#[cfg(unix)]
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = open_lock_file(path)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens the file for this handle only, or returns `None` if another handle has it open.
#[cfg(windows)]
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    const ERROR_SHARING_VIOLATION: i32 = 32;
    match open_lock_file(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.raw_os_error() == Some(ERROR_SHARING_VIOLATION) => Ok(None),
        Err(error) => Err(error),
    }
}
