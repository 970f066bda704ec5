//! The client scenarios: each is run by itself, because only then the suite looks at how the client ended.

use std::path::{Path, PathBuf};

use super::install::Suite;
use super::tally::{self, Scenario};
use super::{LIST_LIMIT, Options, Role, SCENARIO_LIMIT, Selection, build, fresh, listed};
use crate::process::{self, Running};
use crate::{Outcome, workspace};

const PROGRAM: &str = "conformance-client";

/// What the suite is asked to run at a revision.
struct Run {
    revision: &'static str,
    selection: Selection,
    /// How many scenarios that is, so that none gets lost.
    scenarios: usize,
}

const RUNS: [Run; 4] = [
    Run { revision: "2025-03-26", selection: Selection::All, scenarios: 2 },
    Run { revision: "2025-06-18", selection: Selection::All, scenarios: 5 },
    // 18 that are required, 6 of extensions, and one that was added later.
    Run { revision: "2025-11-25", selection: Selection::Requirements, scenarios: 25 },
    // 32 that are required, and the same others.
    Run { revision: "2026-07-28", selection: Selection::Requirements, scenarios: 39 },
];

/// Scenarios of what these crates do not have yet, by how their names begin: they do not run.
const NOT_DUE: [&str; 1] = ["sep-2640-"];

/// Checks that no client can do anything about: of requests that its revision does not have.
const SKIPPED: [(&str, usize); 1] = [("http-standard-headers", 2)];

/// Runs the client scenarios of one revision or of all, or one of them, as `options` say.
pub(crate) fn run(options: &[&str]) -> Outcome {
    let Options { spec, scenario } = Options::parse(options, &RUNS.map(|run| run.revision))?;
    let folder = workspace::target_dir().join("conformance");
    let suite = Suite::install(&folder)?;
    let program = build(&workspace::target_dir(), PROGRAM)?;
    let mut reports = Vec::new();
    let mut failed = false;
    for run in RUNS.iter().filter(|run| spec.is_none_or(|spec| spec == run.revision)) {
        let results = folder.join(format!("client-{}", run.revision));
        fresh(&results)?;
        let mut names = run.list(&suite, &results)?;
        names.retain(|name| scenario.is_none_or(|scenario| scenario == name));
        if names.is_empty() {
            continue;
        }
        let mut scenarios = Vec::new();
        for name in &names {
            scenarios.push(run.judge(&suite, &program, &results, name)?);
        }
        let failing = scenarios.iter().filter(|scenario| scenario.fails()).count();
        failed |= failing > 0;
        let (due, passing) = (scenarios.len(), scenarios.len() - failing);
        reports.push(format!(
            "Client scenarios, {}\n\n{}\n{passing} of {due} scenarios pass. Checks and logs: {}\n",
            run.revision,
            tally::report(&scenarios),
            results.display()
        ));
    }
    match scenario {
        Some(scenario) if reports.is_empty() => {
            Err(format!("no revision that was asked for has a scenario `{scenario}`"))
        }
        _ if failed => Err(reports.join("\n")),
        _ => Ok(reports.join("\n")),
    }
}

impl Run {
    /// Has the suite say which scenarios belong to this run.
    fn list(&self, suite: &Suite, results: &Path) -> Result<Vec<String>, String> {
        let mut command = suite.command();
        command.args(["list", "--client"]).args(self.selection.arguments(self.revision));
        let list = results.join("scenarios.txt");
        process::run(command.stdout(process::log(&list)?), "the conformance suite", LIST_LIMIT)?;
        let mut names = listed(&process::read(&list)?, Role::Client);
        names.retain(|name| !NOT_DUE.iter().any(|prefix| name.starts_with(prefix)));
        if names.len() == self.scenarios {
            return Ok(names);
        }
        let Self { revision, scenarios, .. } = self;
        let (found, list) = (names.len(), list.display());
        Err(format!("the suite should list {scenarios} scenarios for {revision}, not {found}: see {list}"))
    }

    /// Runs one scenario; the client has to end well, too.
    fn judge(&self, suite: &Suite, program: &Path, results: &Path, name: &str) -> Result<Scenario, String> {
        let mut command = suite.command();
        command.arg("client").arg("--command").arg(PathBuf::from(program)).args(["--scenario", name]);
        command.args(["--spec-version", self.revision, "--force"]);
        command.args(["--timeout", &SCENARIO_LIMIT.as_millis().to_string()]);
        let log = process::log(&results.join(format!("{}.log", name.replace('/', "-"))))?;
        let errors = log.try_clone().map_err(|error| format!("cannot write the log of {name}: {error}"))?;
        command.arg("--output-dir").arg(results).stdout(log).stderr(errors);
        let ended = Running::start(&mut command, "the conformance suite")?.wait(SCENARIO_LIMIT * 2);
        let mut scenario = Scenario::read(results, name, true);
        let allowed = SKIPPED.iter().find(|(skipped, _)| *skipped == name).map_or(0, |(_, count)| *count);
        scenario.tally.allow_skipped(allowed);
        match ended {
            Ok(status) if status.success() => {}
            Ok(status) => {
                scenario.tally.blame(format!("the suite is not content with how the client ended ({status})"))
            }
            Err(fault) => scenario.tally.blame(fault),
        }
        Ok(scenario)
    }
}
