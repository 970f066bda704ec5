//! What the suite found, scenario by scenario.
//!
//! The suite's own summary and exit code are no verdict: they ignore warnings, scenarios that are not scored, and
//! scenarios that checked nothing.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The file in which the suite leaves the checks of a scenario.
const CHECKS: &str = "checks.json";

/// A check that the suite adds to most scenarios. It also succeeds if the server said nothing at all, and so proves nothing.
const WIRE_SCHEMA: &str = "wire-schema-valid";

/// The checks of one scenario, counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    successes: usize,
    failures: usize,
    warnings: usize,
    skipped: usize,
    /// Mere information.
    infos: usize,
    /// What is wrong, in sentences.
    faults: Vec<String>,
}

/// One entry of `checks.json`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    id: String,
    status: String,
    #[serde(default)]
    description: String,
    error_message: Option<String>,
}

impl Tally {
    /// Counts the checks in the text of a `checks.json`.
    pub(crate) fn of(checks: &str) -> Self {
        let checks: Vec<Check> = match serde_json::from_str(checks) {
            Ok(checks) => checks,
            Err(error) => return Self::fault(format!("{CHECKS} is not what it should be: {error}")),
        };
        let mut tally = Self::default();
        let mut proved = false;
        for check in &checks {
            match check.status.as_str() {
                "SUCCESS" => {
                    tally.successes += 1;
                    proved |= check.id != WIRE_SCHEMA;
                }
                "SKIPPED" => tally.skipped += 1,
                "INFO" => tally.infos += 1,
                "WARNING" => {
                    tally.warnings += 1;
                    tally.faults.push(check.fault());
                }
                // A status that is not known yet is no success.
                _ => {
                    tally.failures += 1;
                    tally.faults.push(check.fault());
                }
            }
        }
        if !proved {
            tally.faults.push("no check of its own succeeded".to_owned());
        }
        tally
    }

    /// A scenario that has no checks to count.
    pub(crate) fn fault(fault: String) -> Self {
        Self { faults: vec![fault], ..Self::default() }
    }

    /// Finds fault with checks that were skipped, beyond those that cannot be run.
    pub(crate) fn allow_skipped(&mut self, allowed: usize) {
        if self.skipped > allowed {
            self.blame(format!("{} checks were skipped, and only {allowed} may be", self.skipped));
        }
    }

    /// Finds fault with something that the suite did not check.
    pub(crate) fn blame(&mut self, fault: String) {
        self.faults.push(fault);
    }

    /// Whether something succeeded, and nothing failed or gave a warning.
    pub(crate) fn passed(&self) -> bool {
        self.faults.is_empty()
    }
}

impl Check {
    fn fault(&self) -> String {
        let message = self.error_message.as_ref().unwrap_or(&self.description);
        format!("{} {}: {message}", self.status, self.id)
    }
}

/// A scenario, and what came of it.
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) tally: Tally,
    /// Whether it counts.
    pub(crate) due: bool,
    /// Where the suite wrote what it saw.
    folder: Option<PathBuf>,
}

impl Scenario {
    /// Reads what the suite wrote for a scenario into a folder of its own below `results`.
    pub(crate) fn read(results: &Path, name: &str, due: bool) -> Self {
        let folder = folder(results, name);
        let tally = match folder.as_ref().map(|folder| std::fs::read_to_string(folder.join(CHECKS))) {
            Some(Ok(checks)) => Tally::of(&checks),
            Some(Err(error)) => Tally::fault(format!("{CHECKS} cannot be read: {error}")),
            None => Tally::fault("the suite did not run it".to_owned()),
        };
        Self { name: name.to_owned(), tally, due, folder }
    }

    /// Whether this scenario keeps the whole run from passing.
    pub(crate) fn fails(&self) -> bool {
        self.due && !self.tally.passed()
    }
}

/// Finds `server-<name>-<time>`, or `<name>-<time>` of a client. Names begin with one another, but a time always has the
/// same length. A name such as `auth/dpop` is a path.
fn folder(results: &Path, name: &str) -> Option<PathBuf> {
    let (group, name) = name.rsplit_once('/').unwrap_or(("", name));
    let entries = std::fs::read_dir(results.join(group)).ok()?;
    let mut folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    folders.find(|path| path.file_name().is_some_and(|folder| belongs_to(&folder.to_string_lossy(), name)))
}

fn belongs_to(folder: &str, name: &str) -> bool {
    const TIME: &str = "2026-07-28T12-34-56-789Z";
    let rest = folder.strip_prefix("server-").unwrap_or(folder).strip_prefix(name);
    rest.and_then(|rest| rest.strip_prefix('-')).is_some_and(|time| time.len() == TIME.len() && time.ends_with('Z'))
}

/// All scenarios as a table, then what is wrong with those that fail.
pub(crate) fn report(scenarios: &[Scenario]) -> String {
    let width = scenarios.iter().map(|scenario| scenario.name.len()).max().unwrap_or_default();
    let mut text = format!("  {:width$} | success | failure | warning | skipped | info\n", "scenario");
    for Scenario { name, tally, due, .. } in scenarios {
        let Tally { successes, failures, warnings, skipped, infos, .. } = tally;
        let verdict = match (due, tally.passed()) {
            (false, _) => "-",
            (true, true) => " ",
            (true, false) => "x",
        };
        let remark = if *due { "" } else { "  does not count" };
        let _ = writeln!(
            text,
            "{verdict} {name:width$} | {successes:>7} | {failures:>7} | {warnings:>7} | {skipped:>7} | {infos:>4}{remark}"
        );
    }
    for scenario in scenarios.iter().filter(|scenario| scenario.fails()) {
        let _ = writeln!(text, "\n{}", scenario.name);
        for fault in &scenario.tally.faults {
            let _ = writeln!(text, "  {}", fault.replace('\n', "\n    "));
        }
        if let Some(folder) = &scenario.folder {
            let _ = writeln!(text, "  see {}", folder.join(CHECKS).display());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: &str) -> String {
        format!(r#"{{"id":"an-id","name":"N","description":"It is so","status":"{status}","timestamp":"now"}}"#)
    }

    fn tally(statuses: &[&str]) -> Tally {
        let checks: Vec<String> = statuses.iter().map(|status| check(status)).collect();
        Tally::of(&format!("[{}]", checks.join(",")))
    }

    #[test]
    fn a_scenario_passes_if_something_succeeds_and_nothing_else_is_said() {
        let tally = tally(&["SUCCESS", "SKIPPED", "INFO", "SUCCESS"]);
        assert!(tally.passed());
        assert_eq!(tally, Tally { successes: 2, skipped: 1, infos: 1, ..Tally::default() });
    }

    #[test]
    fn failures_and_warnings_and_unknown_statuses_do_not_pass() {
        for status in ["FAILURE", "WARNING", "PERHAPS"] {
            let tally = tally(&["SUCCESS", status]);
            assert!(!tally.passed(), "{status}");
            assert_eq!(tally.faults, [format!("{status} an-id: It is so")]);
        }
        assert_eq!((tally(&["WARNING"]).warnings, tally(&["WARNING"]).failures), (1, 0));
        assert_eq!((tally(&["PERHAPS"]).warnings, tally(&["PERHAPS"]).failures), (0, 1));
    }

    #[test]
    fn what_is_skipped_without_need_does_not_pass() {
        let mut tally = tally(&["SUCCESS", "SKIPPED"]);
        tally.allow_skipped(1);
        assert!(tally.passed());
        tally.allow_skipped(0);
        assert!(!tally.passed());
    }

    #[test]
    fn a_scenario_that_checked_nothing_does_not_pass() {
        for statuses in [&[][..], &["SKIPPED", "INFO"]] {
            assert_eq!(tally(statuses).faults, ["no check of its own succeeded"]);
        }
        let only_schema = Tally::of(&format!("[{}]", check("SUCCESS").replace("an-id", WIRE_SCHEMA)));
        assert_eq!(only_schema.faults, ["no check of its own succeeded"]);
        assert!(!Tally::of("{}").passed());
        assert!(!Tally::of("").passed());
    }

    #[test]
    fn the_message_of_a_check_says_what_failed() {
        let checks = r#"[{"id":"a","description":"d","status":"FAILURE","errorMessage":"expected 400, got 200"}]"#;
        let tally = Tally::of(checks);
        assert_eq!(tally.faults, ["FAILURE a: expected 400, got 200", "no check of its own succeeded"]);
    }

    #[test]
    fn a_scenario_without_results_fails() {
        let scenario = Scenario::read(Path::new("/nowhere"), "tools-list", true);
        assert!(scenario.fails());
        assert!(report(&[scenario]).contains("tools-list\n  the suite did not run it"));
    }

    #[test]
    fn folders_are_told_apart() {
        let folder = "server-json-schema-2020-12-2026-07-28T12-34-56-789Z";
        assert!(belongs_to(folder, "json-schema-2020-12"));
        assert!(!belongs_to(folder, "json-schema"));
        assert!(!belongs_to(folder, "json-schema-2020-12-2026"));
        assert!(!belongs_to("suite.log", "suite"));
        assert!(belongs_to("tools_call-2026-07-28T12-34-56-789Z", "tools_call"));
    }

    #[test]
    fn what_is_not_due_is_shown_and_does_not_count() {
        let scenario =
            Scenario { name: "tasks-lifecycle".to_owned(), tally: tally(&["FAILURE"]), due: false, folder: None };
        assert!(!scenario.fails());
        assert!(report(&[scenario]).ends_with("|       0 |       1 |       0 |       0 |    0  does not count\n"));
    }
}
