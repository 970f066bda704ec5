//! `RULES.md` has every row that this crate answers for, speaks of tests that exist, and says the same as they do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The rows that belong here, in their order: what they begin with, first, last.
const ROWS: [(&str, u32, u32); 25] = [
    // The checklist.
    ("S3.", 1, 73),
    ("S3.F", 1, 18),
    ("S4.", 1, 47),
    ("S4.", 63, 65),
    ("S4.", 69, 72),
    ("S4.", 77, 84),
    ("S4.", 92, 101),
    ("S4.", 109, 114),
    ("S4.", 117, 118),
    // The register.
    ("H-", 1, 34),
    ("H-", 40, 58),
    ("H-", 60, 84),
    ("B-", 100, 112),
    ("DU-", 10, 26),
    ("L-", 1, 20),
    // What others lack, and where they fail.
    ("G", 2, 3),
    ("G", 5, 5),
    ("G", 8, 14),
    ("G", 18, 18),
    ("G", 20, 21),
    ("peers ", 1, 12),
    ("rmcp ", 1, 6),
    ("rmcp ", 10, 18),
    ("rmcp ", 22, 22),
    ("rmcp ", 24, 24),
];

/// Tests by their name, with the rows that they say they prove: `/// S3.1, H-2..H-4: why.`
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
    let (mut doc, mut is_test) = (String::new(), false);
    for line in text.lines().map(str::trim) {
        if let Some(more) = line.strip_prefix("///") {
            doc.push_str(more);
        } else if line.starts_with("#[") {
            is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
        } else {
            let line = line.strip_prefix("async ").unwrap_or(line);
            if let Some(function) = line.strip_prefix("fn ").filter(|_| is_test) {
                let name = function.split('(').next().unwrap_or_default();
                let proves = doc.split_once(": ").map(|(rows, _)| rows).unwrap_or_default();
                let proves = proves.split(',').flat_map(|rows| range(rows.trim())).collect();
                tests.insert(format!("{prefix}{name}"), proves);
            }
            (doc, is_test) = (String::new(), false);
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

#[test]
fn every_row_names_a_test_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tests = Tests::new();
    for folder in ["tests", "src"] {
        tests_below(&root.join(folder), "", &mut tests);
        for other in ["mcp-kernel", "mcp-server", "mcp-mrtr"] {
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
    let expected = ROWS.into_iter().flat_map(|(name, first, last)| (first..=last).map(move |row| (name, row)));
    let expected: Vec<_> = expected.map(|(name, row)| format!("{name}{row}")).collect();
    assert_eq!(rows, expected);
    for (name, proves) in tests.iter().filter(|(name, _)| !name.contains("::")) {
        for row in proves.iter().filter(|row| expected.contains(row)) {
            assert!(tested.contains(&(row.clone(), name.clone())), "{row} does not name `{name}`");
        }
    }
}
