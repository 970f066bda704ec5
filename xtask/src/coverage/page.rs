//! The page that says which test covers which requirement.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Covered;
use super::reasons::Reasons;
use super::register::{Register, Row};

const HEAD: &str = "\
# Coverage

Written by `cargo xtask coverage`, do not edit by hand. Each row of [requirements.md](requirements.md) has the tests that cover it, by file, or
the reason why there is none. Tests name their rows in a comment; the reasons are in [coverage.toml](coverage.toml).
";

pub(crate) fn render(register: &Register, reasons: &Reasons, covered: &Covered<'_>) -> String {
    let mut page = HEAD.to_owned();
    for topic in register.topics.iter().filter(|topic| !topic.rows.is_empty()) {
        let _ = write!(page, "\n## {}\n\n| Id | Requirement | Tests |\n|---|---|---|\n", topic.title);
        for row in &topic.rows {
            let _ = writeln!(page, "| {} | {} | {} |", row.id, row.sentence, proof(row, reasons, covered));
        }
    }
    page
}

/// The tests of a row by their files, and what they leave out; or why there are none.
fn proof(row: &Row, reasons: &Reasons, covered: &Covered<'_>) -> String {
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for test in covered.get(&row.id).into_iter().flatten() {
        files.entry(&test.file).or_default().push(format!("`{}`", test.name));
    }
    let files = files.into_iter().map(|(file, tests)| format!("`{file}`: {}", tests.join(", ")));
    let reasons = [reasons.besides(&row.id), reasons.instead(&row.id)].into_iter().flatten().map(str::to_owned);
    files.chain(reasons).collect::<Vec<_>>().join("<br>")
}

#[cfg(test)]
mod tests {
    use super::super::test_case::TestCase;
    use super::super::{Covered, covered};
    use super::{Reasons, Register, render};

    #[test]
    fn rows_name_tests_by_file_and_what_they_leave_out() {
        let register = "# Parts\n## One\n| Id | Requirement |\n|---|---|\n| QQ-1 | Speak. |\n## None\n| Id | Requirement |\n|---|---|\n";
        let register = Register::parse(register).expect("a register");
        let reasons = Reasons::parse("[[partly]]\nnote = \"Not aloud.\"\nrows = [\"QQ-1\"]\n").expect("reasons");
        let test = |file: &str, name: &str| TestCase {
            file: file.to_owned(),
            name: name.to_owned(),
            covers: vec!["QQ-1".parse().expect("an id")],
        };
        let tests = [test("b.rs", "first"), test("a.rs", "second"), test("b.rs", "third")];
        let page = render(&register, &reasons, &covered(&tests));
        let row = "| QQ-1 | Speak. | `a.rs`: `second`<br>`b.rs`: `first`, `third`<br>Not aloud. |\n";
        assert!(page.ends_with(&format!("\n## One\n\n| Id | Requirement | Tests |\n|---|---|---|\n{row}")), "{page}");
        assert!(render(&register, &reasons, &Covered::new()).contains("| QQ-1 | Speak. | Not aloud. |"));
    }
}
