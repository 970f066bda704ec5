//! Replays the corpus of the fuzz targets, so that what was found once stays found.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use mcp_tests::fuzz;

/// Files of a corpus are read by people, too.
const LARGEST: usize = 4096;

#[test]
fn envelope() {
    let files = corpus("envelope");
    assert!(files.len() >= 50, "only {} files", files.len());
    let failed: Vec<_> = files.iter().filter(|file| !survives(fuzz::envelope, file)).collect();
    assert!(failed.is_empty(), "the body panics for {failed:?}");
}

#[test]
fn sequence() {
    let files = corpus("sequence");
    assert!(files.len() >= 25, "only {} files", files.len());
    let failed: Vec<_> = files.iter().filter(|file| !survives(fuzz::sequence, file)).collect();
    assert!(failed.is_empty(), "the body panics for {failed:?}");
}

/// The files of a corpus, in the same order everywhere.
fn corpus(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|fault| panic!("{}: {fault}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry of the folder").path()).collect();
    files.sort();
    files
}

fn survives(body: fn(&[u8]), file: &Path) -> bool {
    let data = fs::read(file).unwrap_or_else(|fault| panic!("{}: {fault}", file.display()));
    assert!(data.len() <= LARGEST, "{} is large", file.display());
    catch_unwind(AssertUnwindSafe(|| body(&data))).is_ok()
}
