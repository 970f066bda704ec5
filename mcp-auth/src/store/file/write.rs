//! Files that are replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The end of the names of files that are not complete yet.
const TEMPORARY: &str = ".tmp";

/// Replaces a file, while no other process does: writes another one that only the user can read, waits until it is on the disk, and renames it.
pub(super) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_with(path, content, sync_directory)
}

fn replace_with(path: &Path, content: &[u8], sync_directory: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    create_directory(path)?;
    remove_leftovers(path);
    let temporary = temporary_path(path);
    let result = write_private(&temporary, content).and_then(|()| fs::rename(&temporary, path));
    if result.is_err() {
        // It was not renamed, so it is of no use. If it cannot be removed either, the first error says more.
        let _ = fs::remove_file(&temporary);
        return result;
    }
    // Not all file systems and permissions allow that. The file is replaced in any case, and other processes read it: a failure
    // would say that the tokens in it are not saved.
    let _ = sync_directory(directory_of(path));
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
        if rest.is_some_and(is_temporary) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether a name ends as [`temporary_path`] makes it. The names of other stores in the directory can begin with that of this one.
fn is_temporary(end: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(end) = end.strip_suffix(TEMPORARY) else { return false };
    let mut fields = end.split('-');
    fields.next().is_some_and(is_number)
        && fields.next().is_some_and(is_number)
        && fields.next().is_some_and(|random| random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit()))
        && fields.next().is_none()
}

/// Returns the directory that a file is in.
fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Waits until a renamed file is on the disk by its new name.
#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that is removed at the end of the test.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("mcp-auth-write-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_directory_that_cannot_be_synced_does_not_fail_a_save() {
        let directory = Directory::new("sync");
        let path = directory.0.join("logins.json");
        replace(&path, b"earlier").unwrap();
        let mut synced = None;
        let fail = |directory: &Path| {
            synced = Some(directory.to_owned());
            Err(io::ErrorKind::PermissionDenied.into())
        };
        replace_with(&path, b"later", fail).unwrap();
        assert_eq!(synced.as_ref(), Some(&directory.0));
        assert_eq!(fs::read(&path).unwrap(), b"later");
    }

    #[test]
    fn a_file_that_cannot_be_replaced_fails_a_save_and_leaves_nothing() {
        let directory = Directory::new("replace");
        let path = directory.0.join("logins.json");
        // A directory is not replaced by a file.
        fs::create_dir_all(path.join("x")).unwrap();
        replace_with(&path, b"later", |_| panic!("there is nothing to sync")).unwrap_err();
        assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 1);
    }
}
