//! Replays the corpus of the fuzz targets, so that what was found once stays found.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::Once;

use mcp_tests::fuzz::TARGETS;
use mcp_tests::{Random, fuzz};

/// Files of a corpus are read by people, too.
const LARGEST: usize = 4096;

/// The files of a target, and all of them together, stay small.
const MOST_FILES: usize = 300;
const MOST_BYTES: u64 = 256 << 10;

#[test]
fn corpora_are_replayed() {
    let mut failed = Vec::new();
    for (target, body) in TARGETS {
        let files = corpus(target);
        assert!((20..=MOST_FILES).contains(&files.len()), "{target}: {} files", files.len());
        let bytes: u64 = files.iter().map(|file| fs::metadata(file).expect("a file").len()).sum();
        assert!(bytes <= MOST_BYTES, "{target}: {bytes} bytes");
        failed.extend(files.into_iter().filter(|file| !survives(body, file)));
    }
    assert!(failed.is_empty(), "the body panics for {failed:?}");
}

/// Each target has a program, and each program and corpus a target.
#[test]
fn targets_are_complete() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let names = |below: &str| {
        let entries = fs::read_dir(folder.join(below)).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry of the folder").path());
        let names = paths.filter_map(|path| path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        names.filter(|name| !name.starts_with('.')).collect::<BTreeSet<String>>()
    };
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names("fuzz_targets"), targets);
    assert_eq!(names("corpus"), targets);
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
    for target in &targets {
        assert!(manifest.contains(&format!("[[bin]]\nname = \"{target}\"\n")), "{target} is not built");
    }
}

/// What a fuzzer would try first, for those who have none: lines that mean something, and files with changed bytes.
#[test]
fn rounds_at_random() {
    let files: Vec<_> = corpus("rounds").iter().map(|file| fs::read(file).expect("a file")).collect();
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let data = if random.chance(70) { lines(&mut random) } else { changed(&mut random, &files) };
        assert!(is_fine(fuzz::rounds, &data), "seed {seed}:\n{}", String::from_utf8_lossy(&data));
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
    is_fine(body, &data)
}

thread_local! {
    /// How many panics there were in this thread.
    static PANICS: Cell<usize> = const { Cell::new(0) };
}

/// Whether a body ends without a panic, also in a task of its runtime, which contains panics.
fn is_fine(body: fn(&[u8]), data: &[u8]) -> bool {
    static COUNTING: Once = Once::new();
    COUNTING.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            PANICS.set(PANICS.get() + 1);
            report(panic);
        }));
    });
    let before = PANICS.get();
    catch_unwind(AssertUnwindSafe(|| body(data))).is_ok() && PANICS.get() == before
}
