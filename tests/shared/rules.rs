//! Compares a table of rules with the tests that it names; for the tests of every crate that has such a table.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Tests by their name, with the rows that they say they prove: `// covers: S3.1, H-2..H-4`
type Tests = BTreeMap<String, BTreeSet<String>>;

/// Finds all tests below a folder; their names get a prefix.
fn tests_below(folder: &Path, prefix: &str, tests: &mut Tests) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            tests_below(&path, prefix, tests);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            tests_in(&fs::read_to_string(&path).expect("a source file"), prefix, tests);
        }
    }
}

fn tests_in(text: &str, prefix: &str, tests: &mut Tests) {
    let (mut covers, mut is_test) = ("", false);
    for line in text.lines().map(str::trim) {
        if line.starts_with("//") {
            covers = line.strip_prefix("// covers: ").unwrap_or(covers);
        } else if line.starts_with("#[") {
            is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
        } else {
            let line = line.strip_prefix("async ").unwrap_or(line);
            if let Some(function) = line.strip_prefix("fn ").filter(|_| is_test) {
                let name = function.split('(').next().unwrap_or_default();
                let proves = covers.split(',').flat_map(|rows| range(rows.trim())).collect();
                tests.insert(format!("{prefix}{name}"), proves);
            }
            (covers, is_test) = ("", false);
        }
    }
}

/// `H-2..H-4` is three rows; what is no range is one.
fn range(rows: &str) -> Vec<String> {
    let Some((first, last)) = rows.split_once("..") else { return vec![rows.to_owned()] };
    let Some((name, first)) = first.rsplit_once('-') else { return Vec::new() };
    let number = |text: &str| text.parse::<u32>().unwrap_or_else(|_| panic!("no range: {rows}"));
    let last = last.strip_prefix(name).and_then(|last| last.strip_prefix('-')).map_or(0, number);
    (number(first)..=last).map(|row| format!("{name}-{row}")).collect()
}

/// Checks `RULES.md` below `root`: it has exactly the `rows` (what they begin with, first, last), in this order, and each
/// names tests that say that they prove it, or a reason why there is none. Tests of `others` are named with their crate.
pub(crate) fn check(root: &str, others: &[&str], rows: &[(&str, u32, u32)]) {
    let (root, all) = (Path::new(root), rows);
    let mut tests = Tests::new();
    for folder in ["tests", "src"] {
        tests_below(&root.join(folder), "", &mut tests);
        for other in others {
            tests_below(&root.join("..").join(other).join(folder), &format!("{other}::"), &mut tests);
        }
    }
    let table = fs::read_to_string(root.join("RULES.md")).expect("RULES.md");
    let (mut rows, mut tested) = (Vec::new(), BTreeSet::new());
    for row in table.lines().filter(|row| row.starts_with("| ") && !row.starts_with("| row")) {
        let Some((row, held_by)) = row.trim_matches(['|', ' ']).split_once(" | ") else { panic!("{row}") };
        // What a row is about may be said in between.
        let held_by = held_by.rsplit(" | ").next().unwrap_or_default();
        rows.push(row.to_owned());
        if let Some(reason) = held_by.strip_prefix("none: ") {
            assert!(!reason.is_empty(), "{row} needs a reason");
            continue;
        }
        for name in held_by.split(", ").map(|name| name.trim_matches('`')) {
            let proves = tests.get(name).unwrap_or_else(|| panic!("{row}: there is no test `{name}`"));
            assert!(name.contains("::") || proves.contains(row), "`{name}` does not say that it proves {row}");
            tested.insert((row.to_owned(), name.to_owned()));
        }
    }
    let expected = all.iter().flat_map(|(name, first, last)| (*first..=*last).map(move |row| (name, row)));
    let expected: Vec<_> = expected.map(|(name, row)| format!("{name}{row}")).collect();
    assert_eq!(rows, expected);
    for (name, proves) in tests.iter().filter(|(name, _)| !name.contains("::")) {
        for row in proves.iter().filter(|row| expected.contains(row)) {
            assert!(tested.contains(&(row.clone(), name.clone())), "{row} does not name `{name}`");
        }
    }
}
