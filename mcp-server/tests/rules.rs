//! `RULES.md` has every row that this crate answers for, and speaks of tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The rows of the checklist that belong here: chapter, first, last.
const ROWS: [(u32, u32, u32); 6] = [(0, 1, 28), (1, 1, 39), (2, 1, 41), (4, 48, 49), (4, 73, 91), (4, 102, 108)];

/// The names of all test functions below a folder, after a prefix.
fn tests_below(folder: &Path, prefix: &str, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            tests_below(&path, prefix, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            let mut is_test = false;
            for line in text.lines().map(str::trim) {
                if let Some(function) = line.strip_prefix("fn ").filter(|_| is_test) {
                    names.insert(format!("{prefix}{}", function.split('(').next().unwrap_or_default()));
                }
                is_test = line == "#[test]" || (is_test && line.starts_with("#["));
            }
        }
    }
}

#[test]
fn every_row_names_a_test_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names = BTreeSet::new();
    for folder in ["tests", "src"] {
        tests_below(&root.join(folder), "", &mut names);
        tests_below(&root.join("../mcp-kernel").join(folder), "mcp-kernel::", &mut names);
    }
    let table = fs::read_to_string(root.join("RULES.md")).expect("RULES.md");
    let mut seen = Vec::new();
    let mut tested = 0;
    for row in table.lines().filter(|row| row.starts_with("| ") && !row.starts_with("| row")) {
        let Some((row, held_by)) = row.trim_matches(['|', ' ']).split_once(" | ") else { panic!("{row}") };
        seen.push(row.to_owned());
        if let Some(reason) = held_by.strip_prefix("none: ") {
            assert!(!reason.is_empty(), "{row} needs a reason");
            continue;
        }
        for name in held_by.split(", ").map(|name| name.trim_matches('`')) {
            assert!(names.contains(name), "{row}: there is no test `{name}`");
        }
        tested += 1;
    }
    let expected = ROWS.into_iter().flat_map(|(chapter, first, last)| (first..=last).map(move |row| (chapter, row)));
    let expected: Vec<_> = expected.map(|(chapter, row)| format!("S{chapter}.{row}")).collect();
    assert_eq!(seen, expected);
    assert!(tested > 110, "{tested}");
}
