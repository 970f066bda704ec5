//! Where rows are cited.

use super::id;
use super::register::Register;
use super::source::Source;

/// Ids of a file that no row has, and ids in rustdoc, where readers do not have the register at hand.
pub(crate) fn problems(source: &Source, register: &Register) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, line) in source.lines() {
        let is_rustdoc = source.is_rust() && (line.starts_with("///") || line.starts_with("//!"));
        for id in id::cited(line).filter(|id| register.has_family(id)) {
            if !register.contains(&id) {
                problems.push(format!("{}:{number}: {id} does not exist", source.path));
            } else if is_rustdoc {
                problems.push(format!("{}:{number}: {id} is cited in rustdoc; say the thing itself", source.path));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::{Register, Source, problems};

    fn found(path: &str, text: &str) -> Vec<String> {
        let register = Register::parse("| Id | Requirement |\n|---|---|\n| QQ-1 | Speak. |\n").expect("a register");
        problems(&Source { path: path.to_owned(), text: text.to_owned() }, &register)
    }

    #[test]
    fn citations_resolve() {
        assert_eq!(found("a.md", "QQ-1, UTF-8, QZ-1."), [""; 0]);
        assert_eq!(found("a.md", "One\nand QQ-2."), ["a.md:2: QQ-2 does not exist"]);
        assert_eq!(found("a.rs", "    // QQ-1..QQ-3: why."), ["a.rs:1: QQ-3 does not exist"]);
    }

    #[test]
    fn rustdoc_cites_nothing() {
        assert_eq!(found("a.rs", "    /// Speaks (QQ-1)."), ["a.rs:1: QQ-1 is cited in rustdoc; say the thing itself"]);
        assert_eq!(found("a.rs", "//! QQ-1"), ["a.rs:1: QQ-1 is cited in rustdoc; say the thing itself"]);
        assert_eq!(found("a.rs", "    // QQ-1"), [""; 0]);
    }
}
