//! `cargo xtask coverage`: which test covers which requirement.
//!
//! `docs/requirements.md` has the requirements. A test names those that it covers in a comment, `// covers: ..A-5`, so that
//! the names move with the test. `docs/coverage.toml` has the reasons of rows without a test. `docs/coverage.md` is made of the three.

mod citation;
mod id;
mod page;
mod reasons;
mod register;
mod source;
mod test_case;

use std::collections::BTreeMap;
use std::fs;

use self::id::Id;
use self::reasons::Reasons;
use self::register::Register;
use self::source::Source;
use self::test_case::TestCase;
use crate::{Outcome, workspace};

const REGISTER: &str = "docs/requirements.md";
const REASONS: &str = "docs/coverage.toml";
const PAGE: &str = "docs/coverage.md";

/// Tests by the row that they cover.
type Covered<'a> = BTreeMap<Id, Vec<&'a TestCase>>;

/// Writes the page, or checks that it is up to date. Fails if a row has neither a test nor a reason, and if a row is cited that does
/// not exist.
pub(crate) fn run(check: bool) -> Outcome {
    let read =
        |path: &str| fs::read_to_string(workspace::root().join(path)).map_err(|fault| format!("{path}: {fault}"));
    let sources: Vec<Source> = source::all()?.into_iter().filter(|source| source.path != PAGE).collect();
    let (page, summary) = examine(&read(REGISTER)?, &read(REASONS)?, &sources)?;
    if read(PAGE).unwrap_or_default() == page {
        return Ok(format!("{PAGE} is up to date: {summary}"));
    }
    if check {
        return Err(format!("{PAGE} is out of date, run `cargo xtask coverage`"));
    }
    fs::write(workspace::root().join(PAGE), page).map_err(|fault| format!("{PAGE}: {fault}"))?;
    Ok(format!("wrote {PAGE}: {summary}"))
}

/// The page and a summary of it, or everything that is wrong.
fn examine(register: &str, reasons: &str, sources: &[Source]) -> Result<(String, String), String> {
    let register = Register::parse(register)?;
    let reasons = Reasons::parse(reasons)?;
    let mut problems = Vec::new();
    let mut tests = Vec::new();
    for source in sources {
        match test_case::find(source) {
            Ok(found) => tests.extend(found),
            Err(fault) => problems.push(fault),
        }
        problems.extend(citation::problems(source, &register));
    }
    let covered = covered(&tests);
    for (id, tests) in &covered {
        if !register.contains(id) {
            problems.extend(
                tests.iter().map(|test| format!("{}: `{}` covers {id}, which does not exist", test.file, test.name)),
            );
        }
    }
    problems.extend(reasons.problems(&register, &covered));
    let is_open = |id: &&Id| !covered.contains_key(*id) && !reasons.explain(id);
    problems.extend(register.ids().filter(is_open).map(|id| format!("{id} has neither a test nor a reason")));
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    let with_tests = register.ids().filter(|id| covered.contains_key(*id)).count();
    let all = register.ids().count();
    let summary = format!("{all} rows, {with_tests} of them with tests, {} with a reason", all - with_tests);
    Ok((page::render(&register, &reasons, &covered), summary))
}

fn covered(tests: &[TestCase]) -> Covered<'_> {
    let mut covered = Covered::new();
    for test in tests {
        for id in &test.covers {
            covered.entry(id.clone()).or_default().push(test);
        }
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::examine;
    use super::source::Source;

    const REGISTER: &str =
        "## Words\n| Id | Level | Requirement |\n|---|---|---|\n| QQ-1 | must | Speak. |\n| QQ-2 | may | Listen. |\n";
    const REASONS: &str = "[[planned]]\nfeature = \"ears\"\nrows = [\"QQ-2\"]\n";

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    fn fault(reasons: &str, sources: &[Source]) -> String {
        examine(REGISTER, reasons, sources).expect_err("a fault")
    }

    fn test(text: &str) -> Source {
        source("a/tests/it.rs", text)
    }

    // covers: MIS-16
    #[test]
    fn each_row_has_a_test_or_a_reason() {
        let speaks = test("// covers: QQ-1\n#[test]\nfn speaks() {}\n");
        let (page, summary) = examine(REGISTER, REASONS, &[speaks]).expect("a page");
        assert!(page.contains("| QQ-1 | Speak. | `a/tests/it.rs`: `speaks` |"), "{page}");
        assert!(page.contains("| QQ-2 | Listen. | Planned: ears |"), "{page}");
        assert_eq!(summary, "2 rows, 1 of them with tests, 1 with a reason");
    }

    #[test]
    fn a_row_without_both_is_a_fault() {
        assert_eq!(fault(REASONS, &[]), "QQ-1 has neither a test nor a reason");
    }

    #[test]
    fn a_reason_for_a_row_that_has_a_test_is_a_fault() {
        let both = test("// covers: QQ-1, QQ-2\n#[test]\nfn both() {}\n");
        assert_eq!(fault(REASONS, &[both]), "docs/coverage.toml: QQ-2 has a test, and needs no reason");
    }

    #[test]
    fn rows_that_do_not_exist_are_faults() {
        let unknown = test("// covers: QQ-1, QQ-3\n#[test]\nfn speaks() {}\n");
        let faults = fault(&REASONS.replace("QQ-2", "QQ-2..QQ-4"), &[unknown]);
        let expected = [
            "a/tests/it.rs:1: QQ-3 does not exist",
            "a/tests/it.rs: `speaks` covers QQ-3, which does not exist",
            "docs/coverage.toml: QQ-3 has a test, and needs no reason",
            "docs/coverage.toml: QQ-3 does not exist",
            "docs/coverage.toml: QQ-4 does not exist",
        ];
        for line in expected {
            assert!(faults.lines().any(|fault| fault == line), "{line}: {faults}");
        }
    }
}
