//! Everything that must hold before a change lands, as steps that also run one by one.

mod dependencies;
mod hello_world;
mod licences;
mod minimal;
mod report;
mod spelling;
mod steps;
mod tools;
mod unused;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::process::{self, Running};
use crate::{Outcome, workspace};
use report::Report;
use steps::STEPS;

/// The longest that the steps in the background may take.
const BACKGROUND_LIMIT: Duration = Duration::from_secs(3600);

/// A named part of the checks.
struct Step {
    name: &'static str,
    /// What is checked, for the list of steps and the report.
    summary: &'static str,
    lane: Lane,
    run: fn() -> Result<Checked, String>,
}

/// When a step runs if all of them do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// In order, each with all processors to itself.
    First,
    /// In order, after the first ones. These wait for processes and clocks for most of their time.
    Background,
    /// In order, after the first ones, while those in the background wait. These compile.
    Foreground,
}

/// How a step ended that did not fail.
enum Checked {
    /// It holds; with what there is to say about it.
    Yes(String),
    /// It was not checked, because of something that is missing on this machine.
    Not(String),
}

/// Runs all steps, or those that are named.
pub(crate) fn run(names: &[&str]) -> Outcome {
    if names == ["--list"] {
        return Ok(list());
    }
    let mut report = Report::new();
    let outcome = if names.is_empty() { run_all(&mut report) } else { run_named(names, &mut report) };
    let summary = report.to_string();
    match outcome {
        Ok(()) => Ok(format!("{summary}\n== all green{}", report.exceptions())),
        Err(error) => Err(format!("{summary}\n== FAILED: {error}")),
    }
}

fn list() -> String {
    STEPS.iter().map(|step| format!("{:<14} {}\n", step.name, step.summary)).collect()
}

fn run_named(names: &[&str], report: &mut Report) -> Result<(), String> {
    let find = |name: &&str| STEPS.iter().find(|step| step.name == *name);
    if let Some(unknown) = names.iter().find(|name| find(name).is_none()) {
        return Err(format!("there is no step `{unknown}`; the steps are:\n{}", list()));
    }
    names.iter().filter_map(find).try_for_each(|step| report.run(step))
}

fn run_all(report: &mut Report) -> Result<(), String> {
    let lane = |lane| STEPS.iter().filter(move |step| step.lane == lane);
    let installing = tools::install_in_background()?;
    lane(Lane::First).try_for_each(|step| report.run(step))?;
    tools::finish(installing)?;
    let background = Background::start(&lane(Lane::Background).map(|step| step.name).collect::<Vec<_>>())?;
    let foreground = lane(Lane::Foreground).try_for_each(|step| report.run(step));
    let background = background.finish(report);
    foreground.and(background)
}

/// Steps that run in a process of their own, with their messages in a file.
struct Background {
    process: Running,
    log: PathBuf,
}

impl Background {
    fn start(steps: &[&str]) -> Result<Self, String> {
        let log = log_path("background")?;
        let file = process::log(&log)?;
        let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let mut command = Command::new(program);
        command.arg("ci").args(steps).current_dir(workspace::root());
        let errors = file.try_clone().map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        let process = Running::start(command.stdout(file).stderr(errors), "the steps in the background")?;
        report::headline(&format!("in the background, with messages in {}: {}", log.display(), steps.join(", ")));
        Ok(Self { process, log })
    }

    fn finish(self, report: &mut Report) -> Result<(), String> {
        report::headline("waiting for the steps in the background");
        let status = self.process.wait(BACKGROUND_LIMIT);
        let messages = process::read(&self.log)?;
        let is_green = status.as_ref().is_ok_and(|status| status.success());
        report.add_background(&messages, is_green);
        if status?.success() { Ok(()) } else { Err("a step in the background".to_owned()) }
    }
}

/// Where the messages of something that runs in the background go.
fn log_path(name: &str) -> Result<PathBuf, String> {
    let folder = workspace::root().join("target/ci");
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    Ok(folder.join(format!("{name}.log")))
}
