//! Replays the corpus of the fuzz targets, so that what was found once stays found.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use mcp_tests::{Random, fuzz};

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

#[test]
fn rounds() {
    let files = corpus("rounds");
    assert!(files.len() >= 30, "only {} files", files.len());
    let failed: Vec<_> = files.iter().filter(|file| !survives(fuzz::rounds, file)).collect();
    assert!(failed.is_empty(), "the body panics for {failed:?}");
}

/// What a fuzzer would try first, for those who have none: lines that mean something, and files with changed bytes.
#[test]
fn rounds_at_random() {
    let files: Vec<_> = corpus("rounds").iter().map(|file| fs::read(file).expect("a file")).collect();
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let data = if random.chance(70) { lines(&mut random) } else { changed(&mut random, &files) };
        let is_fine = catch_unwind(AssertUnwindSafe(|| fuzz::rounds(&data))).is_ok();
        assert!(is_fine, "seed {seed}:\n{}", String::from_utf8_lossy(&data));
    }
}

/// Lines that begin something, go on with it, and get it wrong now and then.
fn lines(random: &mut Random) -> Vec<u8> {
    const STARTS: [&str; 12] = ["", "", "", "", "@l", "@l", "@L", "@L", "@O", "@e", "@s", "@n"];
    const TARGETS: [&str; 15] = ["o", "o", "o", "o", "p", "p", "p", "f", "u", "s", "r", "x", "c", "g", "b"];
    const STATES: [&str; 10] = ["", ".", ".", ".", ".", "0", "1", "2", "5", "'AQEAAAAA"];
    const ANSWERS: [&str; 11] = [
        "*",
        "*",
        "*",
        "*d",
        "*c",
        "*w",
        "",
        r#"{"first":{"action":"accept","content":{"name":"bob"}}}"#,
        r#"{"form":{"action":"accept","content":{"name":"ann"}},"text":{}}"#,
        r#"{"roots":{"roots":[]},"url":{"action":"cancel"},"second":{"action":"accept","content":{"name":"\u00e9"}}}"#,
        "[1]",
    ];
    let start = random.pick(&STARTS);
    let is_legacy = matches!(*start, "@L" | "@O");
    let mut text = (*start).to_owned();
    let favourite = random.pick(&TARGETS);
    for _ in 0..random.below(14) {
        text.push('\n');
        match random.below(20) {
            0 => text.push_str(random.pick::<&str>(&["~", "v", "k", "!", "?"])),
            1..13 if is_legacy => text.push_str(&format!("={}", random.pick(&ANSWERS))),
            _ => {
                let target = if random.chance(70) { favourite } else { random.pick(&TARGETS) };
                let state = random.pick(&STATES);
                let answers = random.pick(&ANSWERS);
                text.push_str(&format!("{target}{state}{} {answers}", operations(random)));
            }
        }
    }
    text.into_bytes()
}

/// What happens to a state, which is mostly nothing.
fn operations(random: &mut Random) -> String {
    const OPERATIONS: [&str; 10] = ["<", ">", "+", "=", "_", "*", "$", "^", "%", "/"];
    let mut text = String::new();
    while random.chance(25) {
        text.push_str(random.pick::<&str>(&OPERATIONS));
        if text.ends_with(['^', '%', '/']) {
            text.push(char::from(u8::try_from(random.below(94)).unwrap_or_default() + b'!'));
        }
    }
    text
}

/// A file with some of its bytes changed, left out, or doubled.
fn changed(random: &mut Random, files: &[Vec<u8>]) -> Vec<u8> {
    let mut data = random.pick(files).clone();
    for _ in 0..=random.below(4) {
        let place = usize::try_from(random.below(data.len().max(1) as u64)).unwrap_or_default();
        let rest = data.split_off(place);
        let byte = u8::try_from(random.below(256)).unwrap_or_default();
        match random.below(4) {
            0 => data.push(byte),
            1 => data.extend_from_slice(&random.pick(files)[..]),
            _ => data.extend(rest.first().map(|old| old ^ (1 << (byte % 8)))),
        }
        data.extend(rest.iter().skip(1));
    }
    data.truncate(LARGEST);
    data
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
