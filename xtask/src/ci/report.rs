//! What was checked, how long it took, and what was not.

use std::fmt;
use std::time::Instant;

use super::{Checked, Step};

/// The line after which a report begins.
const MARK: &str = "== steps";

/// How the lines about what was not checked begin.
const NOT_CHECKED: &str = "NOT CHECKED";

/// The steps so far.
pub(super) struct Report {
    start: Instant,
    lines: Vec<String>,
    not_checked: Vec<String>,
}

impl Report {
    pub(super) fn new() -> Self {
        Self { start: now(), lines: Vec::new(), not_checked: Vec::new() }
    }

    /// Runs a step; the error names it.
    pub(super) fn run(&mut self, step: &Step) -> Result<(), String> {
        headline(&format!("{}: {}", step.name, step.summary));
        let start = now();
        let outcome = (step.run)();
        self.lines.push(format!("{:>5} s  {}", start.elapsed().as_secs(), step.name));
        match outcome {
            Ok(Checked::Yes(message)) => {
                say(message.trim_end());
                Ok(())
            }
            Ok(Checked::Not(reason)) => {
                self.not_checked.push(format!("{}: {reason}", step.name));
                Ok(())
            }
            Err(error) => Err(format!("{}: {error}", step.name)),
        }
    }

    /// What has to be said of a success.
    pub(super) fn exceptions(&self) -> &'static str {
        let is_partial = !self.not_checked.is_empty() || self.lines.iter().any(|line| line.starts_with(NOT_CHECKED));
        if is_partial { ", except for what was not checked" } else { "" }
    }

    /// Adds what another process says about its steps: its own report, or the end of its messages if one failed.
    pub(super) fn add_background(&mut self, messages: &str, is_green: bool) {
        const SHOWN: usize = 200;
        let lines: Vec<&str> = messages.lines().collect();
        let from = match lines.iter().rposition(|line| *line == MARK) {
            Some(mark) if is_green => mark + 1,
            _ => lines.len().saturating_sub(SHOWN),
        };
        self.lines.push("meanwhile, in the background:".to_owned());
        self.lines.extend(lines.iter().skip(from).map(|line| (*line).to_owned()));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{MARK}")?;
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        for reason in &self.not_checked {
            writeln!(f, "{NOT_CHECKED}: {reason}")?;
        }
        write!(f, "{:>5} s  in all", self.start.elapsed().as_secs())
    }
}

#[expect(clippy::disallowed_methods, reason = "a command-line tool that tells how long it took")]
fn now() -> Instant {
    Instant::now()
}

/// Announces what follows.
pub(super) fn headline(text: &str) {
    say(&format!("\n== {text}"));
}

#[expect(clippy::print_stdout, reason = "a command-line tool talks to its user")]
fn say(text: &str) {
    if !text.is_empty() {
        println!("{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ci::Lane;

    fn step(run: fn() -> Result<Checked, String>) -> Step {
        Step { name: "sample", summary: "a sample", lane: Lane::First, run }
    }

    #[test]
    fn what_was_not_checked_is_named() {
        let mut report = Report::new();
        report.run(&step(|| Ok(Checked::Not("there is no such tool".to_owned())))).unwrap();
        assert!(report.to_string().contains("NOT CHECKED: sample: there is no such tool"), "{report}");
    }

    #[test]
    fn a_failure_names_its_step() {
        let mut report = Report::new();
        let error = report.run(&step(|| Err("it broke".to_owned()))).unwrap_err();
        assert_eq!(error, "sample: it broke");
    }

    #[test]
    fn the_report_of_the_background_is_part_of_the_report() {
        let mut inner = Report::new();
        inner.run(&step(|| Ok(Checked::Not("reason".to_owned())))).unwrap();
        let mut report = Report::new();
        report.add_background(&format!("messages of tests\n{inner}\n"), true);
        assert!(report.to_string().contains("NOT CHECKED: sample: reason"), "{report}");
        assert!(!report.to_string().contains("messages of tests"), "{report}");
        assert_eq!(report.exceptions(), ", except for what was not checked");
        report.add_background("messages of tests\n", false);
        assert!(report.to_string().contains("messages of tests"), "{report}");
    }
}
