//! Why a requirement has no test, or not a complete one.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::id::{self, Id};
use super::register::Register;
use super::{Covered, REASONS};

/// What `docs/coverage.toml` says, by row.
pub(crate) struct Reasons {
    /// Instead of tests.
    instead: BTreeMap<Id, String>,
    /// Besides tests.
    besides: BTreeMap<Id, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    planned: Vec<Planned>,
    #[serde(default)]
    untested: Vec<Untested>,
    #[serde(default)]
    partly: Vec<Partly>,
}

/// Rows of a feature to come.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Planned {
    feature: String,
    rows: Vec<String>,
}

/// Rows that have no test for some reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Untested {
    reason: String,
    rows: Vec<String>,
}

/// Rows whose tests cover a part of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Partly {
    note: String,
    rows: Vec<String>,
}

impl Reasons {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|fault| format!("{REASONS}: {fault}"))?;
        let mut reasons = Self { instead: BTreeMap::new(), besides: BTreeMap::new() };
        for Planned { feature, rows } in file.planned {
            insert(&mut reasons.instead, &rows, &format!("Planned: {feature}"))?;
        }
        for Untested { reason, rows } in file.untested {
            insert(&mut reasons.instead, &rows, &format!("No test: {reason}"))?;
        }
        for Partly { note, rows } in file.partly {
            insert(&mut reasons.besides, &rows, &note)?;
        }
        Ok(reasons)
    }

    /// Whether there is a reason why a row has no test.
    pub(crate) fn explain(&self, id: &Id) -> bool {
        self.instead.contains_key(id)
    }

    /// Why a row has no test.
    pub(crate) fn instead(&self, id: &Id) -> Option<&str> {
        self.instead.get(id).map(String::as_str)
    }

    /// What the tests of a row leave out.
    pub(crate) fn besides(&self, id: &Id) -> Option<&str> {
        self.besides.get(id).map(String::as_str)
    }

    /// Reasons for rows that do not exist, or that have tests; notes about tests that do not exist.
    pub(crate) fn problems(&self, register: &Register, covered: &Covered<'_>) -> Vec<String> {
        let is_covered = |id: &&Id| covered.contains_key(*id);
        let rows = || self.instead.keys().chain(self.besides.keys());
        let unknown = rows().filter(|id| !register.contains(id)).map(|id| format!("{REASONS}: {id} does not exist"));
        let stale = self.instead.keys().filter(is_covered);
        let stale = stale.map(|id| format!("{REASONS}: {id} has a test, and needs no reason"));
        let idle = self.besides.keys().filter(|id| !is_covered(id));
        let idle = idle.map(|id| format!("{REASONS}: {id} has no test that a note could be about"));
        unknown.chain(stale).chain(idle).collect()
    }
}

fn insert(reasons: &mut BTreeMap<Id, String>, rows: &[String], reason: &str) -> Result<(), String> {
    for rows in rows {
        for id in id::list(rows).map_err(|fault| format!("{REASONS}: {fault}"))? {
            if let Some(other) = reasons.insert(id.clone(), reason.to_owned()) {
                return Err(format!("{REASONS}: {id} has two reasons: {other} / {reason}"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Covered, Reasons, Register};

    fn reasons(text: &str) -> Reasons {
        Reasons::parse(text).expect("reasons")
    }

    #[test]
    fn rows_have_their_reasons() {
        let text = "[[planned]]\nfeature = \"ears\"\nrows = [\"QQ-1..QQ-2\", \"QQ-7\"]\n\
                    [[untested]]\nreason = \"A matter of taste.\"\nrows = [\"QQ-4\"]\n\
                    [[partly]]\nnote = \"Only on Sundays.\"\nrows = [\"QQ-5\"]\n";
        let reasons = reasons(text);
        let instead = |id: &str| reasons.instead(&id.parse().expect("an id")).map(str::to_owned);
        assert_eq!(instead("QQ-2"), Some("Planned: ears".to_owned()));
        assert_eq!(instead("QQ-4"), Some("No test: A matter of taste.".to_owned()));
        assert_eq!(instead("QQ-5"), None);
        assert_eq!(reasons.besides(&"QQ-5".parse().expect("an id")), Some("Only on Sundays."));
    }

    #[test]
    fn a_note_needs_a_test() {
        let register = Register::parse("| Id | Requirement |\n|---|---|\n| QQ-5 | Rest. |\n").expect("a register");
        let reasons = reasons("[[partly]]\nnote = \"Only on Sundays.\"\nrows = [\"QQ-5\"]\n");
        let expected = "docs/coverage.toml: QQ-5 has no test that a note could be about";
        assert_eq!(reasons.problems(&register, &Covered::new()), [expected]);
    }

    #[test]
    fn a_row_has_one_reason() {
        let text =
            "[[planned]]\nfeature = \"ears\"\nrows = [\"QQ-1\"]\n[[untested]]\nreason = \"None.\"\nrows = [\"QQ-1\"]\n";
        let expected = "docs/coverage.toml: QQ-1 has two reasons: Planned: ears / No test: None.";
        assert_eq!(Reasons::parse(text).err().as_deref(), Some(expected));
        assert!(Reasons::parse("[[planed]]\nfeature = \"ears\"\nrows = []\n").is_err());
    }
}
