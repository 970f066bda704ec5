//! The figures that benches record, a line of JSON each.

use std::io::ErrorKind;
use std::path::PathBuf;

use serde::Deserialize;

use crate::workspace;

/// The environment variable that tells a bench where to put its figures.
pub(super) const VARIABLE: &str = "BENCH_RECORDS";

/// What a bench recorded.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    /// What a contestant needed for a workload.
    Figure(Figure),
    /// What was promised, and whether it was kept.
    Aim(Aim),
}

#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct Figure {
    pub(super) workload: String,
    pub(super) unit: String,
    pub(super) is_higher_better: bool,
    pub(super) name: String,
    pub(super) value: f64,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct Aim {
    pub(super) what: String,
    pub(super) least: Option<f64>,
    pub(super) most: Option<f64>,
    pub(super) value: Option<f64>,
    pub(super) is_met: Option<bool>,
}

/// Where benches leave what they found out.
pub(super) fn folder() -> PathBuf {
    workspace::target_dir().join("bench")
}

/// Where a bench records its figures.
pub(super) fn file(bench: &str) -> PathBuf {
    folder().join(bench).with_extension("jsonl")
}

/// Forgets what an earlier run of a bench recorded.
pub(super) fn forget(bench: &str) -> Result<(), String> {
    let folder = folder();
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    match std::fs::remove_file(file(bench)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(format!("cannot remove {bench}.jsonl: {error}")),
        _ => Ok(()),
    }
}

/// Reads what a bench recorded; nothing if it was not run.
pub(super) fn read(bench: &str) -> Result<Vec<Record>, String> {
    match std::fs::read_to_string(file(bench)) {
        Ok(text) => parse(&text).map_err(|error| format!("{bench}.jsonl: {error}")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(format!("cannot read {bench}.jsonl: {error}")),
    }
}

fn parse(text: &str) -> serde_json::Result<Vec<Record>> {
    text.lines().map(serde_json::from_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_are_read() {
        let text = "{\"figure\":{\"workload\":\"w\",\"unit\":\"ms\",\"is_higher_better\":false,\"name\":\"ours\",\"value\":1.5}}\n\
                    {\"aim\":{\"what\":\"a\",\"least\":0.85,\"most\":null,\"value\":0.9,\"is_met\":true}}\n";
        let records = parse(text).unwrap();
        assert!(matches!(&records[0], Record::Figure(figure) if figure.value == 1.5));
        assert!(matches!(&records[1], Record::Aim(aim) if aim.is_met == Some(true)));
    }
}
