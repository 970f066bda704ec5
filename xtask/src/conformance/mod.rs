//! Runs the official conformance suite against the server and the client of `mcp-tests`.

mod client;
mod install;
mod server;
mod tally;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::Running;
use crate::{Outcome, process, workspace};
use install::Suite;
use server::Server;
use tally::Scenario;

pub(crate) use client::run as client;

/// What the suite is asked to run at a revision.
struct Run {
    revision: &'static str,
    selection: Selection,
    /// How many scenarios that is, so that none gets lost.
    scenarios: usize,
}

#[derive(Clone, Copy)]
enum Selection {
    /// Everything in the revision's frozen set, scored or not.
    Requirements,
    /// Everything that applies to a revision that has no such set.
    All,
}

impl Selection {
    /// What tells the suite to list it.
    fn arguments(self, revision: &str) -> [&str; 2] {
        match self {
            Self::Requirements => ["--requirements", revision],
            Self::All => ["--spec-version", revision],
        }
    }
}

/// Who is tried.
#[derive(Clone, Copy)]
enum Role {
    Server,
    Client,
}

const RUNS: [Run; 4] = [
    Run { revision: "2025-03-26", selection: Selection::All, scenarios: 1 },
    Run { revision: "2025-06-18", selection: Selection::All, scenarios: 27 },
    Run { revision: "2025-11-25", selection: Selection::Requirements, scenarios: 33 },
    Run { revision: "2026-07-28", selection: Selection::Requirements, scenarios: 50 },
];

/// Scenarios of extensions that these crates do not have yet. They run, and do not count.
/// There is nothing else that may fail.
// `io.modelcontextprotocol/skills`; the pinned suite has them in no revision's set
const NOT_DUE: [&str; 3] = ["sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"];

/// Scenarios that the pinned suite has by name only: it skips all of their checks, so that they prove nothing.
const ALWAYS_SKIPPED: [&str; 1] = ["tasks-status-notifications"];

/// How long the suite may take to list its scenarios, to run one, and to run all of a revision.
const LIST_LIMIT: Duration = Duration::from_secs(60);
const SCENARIO_LIMIT: Duration = Duration::from_secs(30);
const RUN_LIMIT: Duration = Duration::from_secs(600);
const BUILD_LIMIT: Duration = Duration::from_secs(1200);

/// Runs the server scenarios of one revision or of all, or one of them, as `options` say.
pub(crate) fn server(options: &[&str]) -> Outcome {
    let Options { spec, scenario } = Options::parse(options, &RUNS.map(|run| run.revision))?;
    let folder = workspace::target_dir().join("conformance");
    let suite = Suite::install(&folder)?;
    let program = build(&workspace::target_dir(), server::PROGRAM)?;
    let mut reports = Vec::new();
    let mut failed = false;
    for run in RUNS.iter().filter(|run| spec.is_none_or(|spec| spec == run.revision)) {
        let results = folder.join(format!("server-{}", run.revision));
        fresh(&results)?;
        let listed = run.list(&suite, &results)?;
        if scenario.is_some_and(|scenario| !listed.iter().any(|name| name == scenario)) {
            continue;
        }
        let (report, passed) = run.judge(&suite, &program, &results, &listed, scenario)?;
        failed |= !passed;
        reports.push(report);
    }
    match scenario {
        Some(scenario) if reports.is_empty() => {
            Err(format!("no revision that was asked for has a scenario `{scenario}`"))
        }
        _ if failed => Err(reports.join("\n")),
        _ => Ok(reports.join("\n")),
    }
}

#[derive(Default)]
struct Options<'a> {
    spec: Option<&'a str>,
    scenario: Option<&'a str>,
}

impl<'a> Options<'a> {
    fn parse(options: &[&'a str], revisions: &[&str]) -> Result<Self, String> {
        let mut parsed = Self::default();
        let mut rest = options;
        while let [name, value, others @ ..] = rest {
            match *name {
                "--spec" => parsed.spec = Some(value),
                "--scenario" => parsed.scenario = Some(value),
                _ => break,
            }
            rest = others;
        }
        if let Some(option) = rest.first() {
            return Err(format!("`{option}` is no option, or lacks its value\n\n{}", crate::USAGE));
        }
        match parsed.spec {
            Some(spec) if !revisions.contains(&spec) => Err(format!("--spec is one of {}", revisions.join(", "))),
            _ => Ok(parsed),
        }
    }
}

impl Run {
    /// Has the suite say which scenarios belong to this run.
    fn list(&self, suite: &Suite, results: &Path) -> Result<Vec<String>, String> {
        let mut command = suite.command();
        command.args(["list", "--server"]).args(self.selection.arguments(self.revision));
        let list = results.join("scenarios.txt");
        process::run(command.stdout(process::log(&list)?), "the conformance suite", LIST_LIMIT)?;
        let listed = listed(&process::read(&list)?, Role::Server);
        if listed.len() == self.scenarios {
            Ok(listed)
        } else {
            let Self { revision, scenarios, .. } = self;
            let found = listed.len();
            let list = list.display();
            Err(format!("the suite should list {scenarios} scenarios for {revision}, not {found}: see {list}"))
        }
    }

    /// Runs all scenarios, or one of them, and says whether they passed.
    fn judge(
        &self,
        suite: &Suite,
        program: &Path,
        results: &Path,
        listed: &[String],
        scenario: Option<&str>,
    ) -> Result<(String, bool), String> {
        let mut server = Server::start(program, results)?;
        let mut command = self.command(suite, &server.url, scenario);
        let log = process::log(&results.join("suite.log"))?;
        let errors = log.try_clone().map_err(|error| format!("cannot write suite.log: {error}"))?;
        command.arg("--output-dir").arg(results).stdout(log).stderr(errors);
        let status = Running::start(&mut command, "the conformance suite")?.wait(RUN_LIMIT);
        let ended = server.process.ended()?;

        let scenarios: Vec<Scenario> = match scenario {
            // Who asks for a scenario by its name wants to know.
            Some(name) => vec![Scenario::read(results, name, true)],
            None => listed.iter().map(|name| Scenario::read(results, name, is_due(name))).collect(),
        };
        let due = scenarios.iter().filter(|scenario| scenario.due).count();
        let failing = scenarios.iter().filter(|scenario| scenario.fails()).count();
        let mut complaints = Vec::new();
        match status {
            Ok(status) if status.success() || failing > 0 => {}
            Ok(status) => complaints.push(format!("No scenario failed, and yet the suite did ({status}).")),
            Err(fault) => complaints.push(fault),
        }
        if let Some(status) = ended {
            complaints.push(format!("The server ended before the suite did ({status})."));
        }

        let mut report = format!("Server scenarios, {}\n\n{}\n", self.revision, tally::report(&scenarios));
        complaints.iter().for_each(|complaint| report.push_str(&format!("{complaint}\n")));
        let passing = due - failing;
        report.push_str(&format!("{passing} of {due} scenarios pass. Checks and logs: {}\n", results.display()));
        Ok((report, failing == 0 && complaints.is_empty()))
    }

    /// Has the suite drive the server at an address.
    fn command(&self, suite: &Suite, url: &str, scenario: Option<&str>) -> Command {
        let mut command = suite.command();
        command.args(["server", "--url", url, "--timeout", &SCENARIO_LIMIT.as_millis().to_string()]);
        match (scenario, self.selection) {
            // Without `--force` the suite skips scenarios of extensions, and is content.
            (Some(name), _) => command.args(["--scenario", name, "--spec-version", self.revision, "--force"]),
            (None, Selection::Requirements) => command.args(["--requirements", self.revision]),
            (None, Selection::All) => command.args(["--suite", "all", "--spec-version", self.revision]),
        };
        command
    }
}

fn is_due(scenario: &str) -> bool {
    !NOT_DUE.contains(&scenario) && !ALWAYS_SKIPPED.contains(&scenario)
}

/// Reads the scenarios of a role out of what `list` prints: its own section, and marked entries of what is not scored.
fn listed(printed: &str, role: Role) -> Vec<String> {
    let (title, mark) = match role {
        Role::Server => ("Server scenarios", " [server]"),
        Role::Client => ("Client scenarios", " [client]"),
    };
    let mut names = Vec::new();
    let mut section = "";
    for line in printed.lines() {
        match line.trim_start().strip_prefix("- ") {
            None if !line.is_empty() && !line.starts_with(' ') => section = line,
            None => {}
            Some(entry) => {
                let name = entry.split(' ').next().unwrap_or(entry);
                if section.starts_with(title) || entry.ends_with(mark) {
                    names.push(name.to_owned());
                }
            }
        }
    }
    names
}

/// Builds a program as the tests do: cargo builds the programs of a package for any of its tests, and with the features of
/// `.ci/run` nothing is compiled twice. The speed of the program does not matter here.
fn build(target: &Path, program: &str) -> Result<PathBuf, String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args([
        "test",
        "--no-run",
        "--quiet",
        "--workspace",
        "--all-features",
        "--test",
        "input_required",
        "--locked",
    ]);
    command.arg("--target-dir").arg(target).current_dir(workspace::root());
    process::run(&mut command, &format!("the build of {program}"), BUILD_LIMIT)?;
    Ok(target.join("debug").join(program))
}

/// Makes a folder that has nothing in it.
fn fresh(folder: &Path) -> Result<(), String> {
    let failed = |error| format!("cannot prepare {}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(failed)?;
    }
    std::fs::create_dir_all(folder).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_understood() {
        let Options { spec, scenario } =
            Options::parse(&["--scenario", "ping", "--spec", "2025-11-25"], &["2025-11-25"]).unwrap();
        assert_eq!((spec, scenario), (Some("2025-11-25"), Some("ping")));
        assert!(Options::parse(&[], &[]).is_ok());
        for wrong in [&["--spec"][..], &["--spec", "2024-11-05"], &["--suite", "all"], &["ping"]] {
            assert!(Options::parse(wrong, &["2025-11-25"]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_scenarios_of_a_requirement_set_are_found() {
        let printed = "Required for 2026-07-28 (frozen):\n\nServer scenarios (test against a server):\n  - tools-list\n\n\
                       Client scenarios (test against a client):\n  - tools_call\n\nRun and reported, but never scored:\n  \
                       extension (2):\n    - auth/dpop [client]\n    - tasks-lifecycle [server]\n";
        assert_eq!(listed(printed, Role::Server), ["tools-list", "tasks-lifecycle"]);
        assert_eq!(listed(printed, Role::Client), ["tools_call", "auth/dpop"]);
    }

    #[test]
    fn the_scenarios_of_a_revision_are_found() {
        let printed = "Server scenarios (test against a server):\n  - ping [2025-06-18,2025-11-25]\n";
        assert_eq!(listed(printed, Role::Server), ["ping"]);
    }
}
