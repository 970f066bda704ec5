//! Files that are replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The end of the names of files that are not complete yet.
const TEMPORARY: &str = ".tmp";

/// Replaces a file, while no other process does: writes another one that only the user can read, waits until it is on the disk, and renames it.
pub(super) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    create_directory(path)?;
    remove_leftovers(path);
    let temporary = temporary_path(path);
    let result = write_private(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    if result.is_err() {
        // It was not renamed, so it is of no use. If it cannot be removed either, the first error says more.
        let _ = fs::remove_file(&temporary);
        return result;
    }
    sync_directory(path);
    Ok(())
}

/// Opens a lock file, which only the user can open, and creates it first if it does not exist.
pub(super) fn open_lock_file(path: &Path) -> io::Result<File> {
    create_directory(path)?;
    let mut options = private_options();
    exclusive(&mut options);
    options.create(true).truncate(false).open(path)
}

fn create_directory(path: &Path) -> io::Result<()> {
    let directory = directory_of(path);
    if directory.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = private_options().create_new(true).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Excludes all other handles, which is the lock on Windows: see [`lock`](super::lock).
#[cfg(windows)]
fn exclusive(options: &mut OpenOptions) {
    std::os::windows::fs::OpenOptionsExt::share_mode(options, 0);
}

#[cfg(not(windows))]
fn exclusive(_: &mut OpenOptions) {}

/// Returns a name that no other process and no other thread uses, in the same directory, so that it can be renamed.
fn temporary_path(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    // With random bytes: the temporary file of a killed process with the same id can still exist.
    let random = getrandom::u64().unwrap_or_default();
    name.push(format!(".{}-{count}-{random:016x}{TEMPORARY}", std::process::id()));
    path.with_file_name(name)
}

/// Removes the files of processes that were killed before they renamed them, as they have secrets. Those that cannot be removed
/// are no obstacle.
fn remove_leftovers(path: &Path) {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return };
    let Ok(entries) = fs::read_dir(directory_of(path)) else { return };
    for entry in entries.flatten() {
        let file_name = entry.file_name();
        let rest = file_name.to_str().and_then(|found| found.strip_prefix(name)?.strip_prefix('.'));
        if rest.is_some_and(|rest| rest.ends_with(TEMPORARY)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns the directory that a file is in.
fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Waits until a renamed file is on the disk by its new name.
///
/// Not all file systems and permissions allow that. The file is replaced in any case, and other processes read it.
#[cfg(unix)]
fn sync_directory(path: &Path) {
    let _ = File::open(directory_of(path)).and_then(|directory| directory.sync_all());
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) {}
