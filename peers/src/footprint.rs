//! What a program brings along: the size of its executable, and the crates that it is made of.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::watchdog::Watchdog;

/// How long Cargo may take to list the crates.
const LIMIT: Duration = Duration::from_secs(60);

/// What could be found out; the rest stays unknown.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Footprint {
    /// The size of the executable in bytes, as it was built.
    pub size: Option<u64>,
    /// The size of the executable without its symbols, unless `strip` is not installed.
    pub stripped: Option<u64>,
    /// The number of crates that it takes to build the program, besides the program itself.
    pub crates: Option<usize>,
    /// The same without those that run in the compiler only.
    pub linked: Option<usize>,
}

impl Footprint {
    /// Looks at the executable, and at the package of the benches that builds it.
    #[must_use]
    pub fn of(executable: &Path, package: &str) -> Self {
        Self {
            size: executable.metadata().ok().map(|metadata| metadata.len()),
            stripped: stripped(executable),
            crates: crates(package, "normal"),
            linked: crates(package, "normal,no-proc-macro"),
        }
    }
}

fn stripped(path: &Path) -> Option<u64> {
    let copy = path.with_extension("stripped");
    let status = Command::new("strip").arg("-o").arg(&copy).arg(path).status().ok()?;
    let size = copy.metadata().ok().map(|metadata| metadata.len());
    let _ = std::fs::remove_file(&copy);
    size.filter(|_| status.success())
}

/// Counts the crates that a package depends on, unless Cargo knows no such package or is too slow.
fn crates(package: &str, edges: &str) -> Option<usize> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let mut command = Command::new(cargo);
    command.args(["tree", "--locked", "--prefix", "none", "--edges", edges, "--package", package, "--manifest-path"]);
    command.arg(manifest).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut output = child.stdout.take()?;
    let child = Arc::new(Mutex::new(child));
    let watchdog = Watchdog::start(&child, LIMIT);
    let mut tree = String::new();
    let read = output.read_to_string(&mut tree);
    let was_killed = watchdog.stop();
    crate::watchdog::kill(&child);
    if was_killed || read.is_err() { None } else { distinct(&tree)?.checked_sub(1) }
}

/// Counts the crates in a tree without indentation; one that was shown before is marked as such.
fn distinct(tree: &str) -> Option<usize> {
    let crates: BTreeSet<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    (!crates.is_empty()).then_some(crates.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_counts_once() {
        assert_eq!(distinct("a v1.0.0\nb v1.0.0\nc v1.0.0\nb v1.0.0 (*)\nb v2.0.0\n"), Some(4));
        assert_eq!(distinct(""), None);
    }
}
