//! `RULES.md` has every row that this crate answers for, speaks of tests that exist, and says the same as they do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The rows of the checklist that belong here: chapter, first, last.
const ROWS: [(u32, u32, u32); 6] = [(0, 1, 28), (1, 1, 39), (2, 1, 41), (4, 48, 49), (4, 73, 91), (4, 102, 108)];

/// Tests by their name, with the rows and rules that they say they prove: `/// S0.1, M-2: why.`
type Tests = BTreeMap<String, BTreeSet<String>>;

/// Finds all tests below a folder; their names get a prefix.
fn tests_below(folder: &Path, prefix: &str, tests: &mut Tests) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            tests_below(&path, prefix, tests);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            tests_in(&fs::read_to_string(&path).expect("a source file"), prefix, tests);
        }
    }
}

fn tests_in(text: &str, prefix: &str, tests: &mut Tests) {
    let (mut doc, mut is_test) = (String::new(), false);
    for line in text.lines().map(str::trim) {
        if let Some(more) = line.strip_prefix("///") {
            doc.push_str(more);
        } else if line.starts_with("#[") {
            is_test |= line == "#[test]";
        } else {
            if let Some(function) = line.strip_prefix("fn ").filter(|_| is_test) {
                let name = function.split('(').next().unwrap_or_default();
                let proves = doc.split_once(": ").map(|(rows, _)| rows).unwrap_or_default();
                let proves = proves.split(',').map(|row| row.trim().to_owned()).collect();
                tests.insert(format!("{prefix}{name}"), proves);
            }
            (doc, is_test) = (String::new(), false);
        }
    }
}

#[test]
fn every_row_names_a_test_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tests = Tests::new();
    for folder in ["tests", "src"] {
        tests_below(&root.join(folder), "", &mut tests);
        tests_below(&root.join("../mcp-kernel").join(folder), "mcp-kernel::", &mut tests);
    }
    let table = fs::read_to_string(root.join("RULES.md")).expect("RULES.md");
    let (mut rows, mut tested) = (Vec::new(), BTreeSet::new());
    for row in table.lines().filter(|row| row.starts_with("| ") && !row.starts_with("| row")) {
        let Some((row, held_by)) = row.trim_matches(['|', ' ']).split_once(" | ") else { panic!("{row}") };
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
    let expected = ROWS.into_iter().flat_map(|(chapter, first, last)| (first..=last).map(move |row| (chapter, row)));
    let expected: Vec<_> = expected.map(|(chapter, row)| format!("S{chapter}.{row}")).collect();
    assert_eq!(rows, expected);
    for (name, proves) in tests.iter().filter(|(name, _)| !name.contains("::")) {
        for row in proves.iter().filter(|row| expected.contains(row)) {
            assert!(tested.contains(&(row.clone(), name.clone())), "{row} does not name `{name}`");
        }
    }
}
