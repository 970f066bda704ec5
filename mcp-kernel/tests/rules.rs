//! `RULES.md` speaks of tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The names of all test functions below a folder.
fn tests_below(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            tests_below(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            let functions = text.lines().filter_map(|line| line.trim().strip_prefix("fn ")?.split('(').next());
            names.extend(functions.map(str::to_owned));
        }
    }
}

#[test]
fn every_rule_names_a_test_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names = BTreeSet::new();
    tests_below(&root.join("tests"), &mut names);
    tests_below(&root.join("src"), &mut names);
    let table = fs::read_to_string(root.join("RULES.md")).expect("RULES.md");
    let mut tested = 0;
    for row in table.lines().filter(|row| row.starts_with("| ") && !row.starts_with("| rule")) {
        let Some((rule, held_by)) = row.trim_matches(['|', ' ']).split_once(" | ") else { panic!("{row}") };
        if let Some(reason) = held_by.strip_prefix("none: ") {
            assert!(!reason.is_empty(), "{rule} needs a reason");
            continue;
        }
        for name in held_by.split(", ").map(|name| name.trim_matches('`')) {
            assert!(names.contains(name), "{rule}: there is no test `{name}`");
        }
        tested += 1;
    }
    assert!(tested > 140, "{tested}");
}
