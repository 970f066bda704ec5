//! What a simulated handler does.

use mcp_tasks::{TaskJournal, TaskRecord};
use mcp_types::{ElicitRequestFormParams, InputRequest, OrderedMap, RawJson, RawObject, RequestedSchema};

use crate::Random;

/// The operations of a handler, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Handler {
    operations: Vec<Operation>,
    /// Whether it ends with an error.
    fails: bool,
    /// Whether another worker may run it again. Otherwise it waits for responses in memory.
    pub(crate) is_restartable: bool,
}

#[derive(Clone, Debug)]
enum Operation {
    Step(String),
    /// Input requests at once, with different ones in the first run and in later ones if `changes`.
    Ask {
        keys: Vec<String>,
        changes: bool,
    },
}

/// What a handler does next.
#[derive(Debug)]
pub(crate) enum Next {
    Step(String),
    Ask(Vec<(String, InputRequest)>),
    Complete(RawObject),
    Fail(String),
}

impl Handler {
    pub(crate) fn new(random: &mut Random) -> Self {
        let is_restartable = random.chance(85);
        let operation = |random: &mut Random, number: usize| match random.below(5) {
            0..3 => Operation::Step(format!("s{number}")),
            3 => Operation::Ask { keys: vec![format!("q{number}")], changes: random.chance(20) },
            _ => Operation::Ask { keys: vec![format!("q{number}"), format!("r{number}")], changes: false },
        };
        let count = 1 + random.below(6);
        let operations = (0..count).map(|number| operation(random, number)).collect();
        Self { operations, fails: random.chance(10), is_restartable }
    }

    /// What comes after everything in the journal.
    pub(crate) fn next(&self, journal: &TaskJournal, run: u64) -> Next {
        let mut results = Vec::new();
        for operation in &self.operations {
            match operation {
                Operation::Step(key) => match journal.step(key) {
                    Some(result) => results.push(result.as_str().to_owned()),
                    None => return Next::Step(key.clone()),
                },
                Operation::Ask { keys, changes } => {
                    let version = if *changes { run.min(2) } else { 0 };
                    let questions: Vec<_> = keys.iter().map(|key| (key.clone(), form(key, version))).collect();
                    for (key, request) in &questions {
                        match journal.response(key, request) {
                            Some(answer) => results.push(answer.as_str().to_owned()),
                            None => return Next::Ask(questions),
                        }
                    }
                }
            }
        }
        if self.fails {
            return Next::Fail(format!("[{}]", results.join(",")));
        }
        Next::Complete(RawObject::parse(&format!(r#"{{"all":[{}]}}"#, results.join(","))).expect("an object"))
    }
}

fn form(key: &str, version: u64) -> InputRequest {
    ElicitRequestFormParams::new(format!("{key} {version}?"), RequestedSchema::new(OrderedMap::new())).into()
}

/// The result of a step, which tells who took it.
pub(crate) fn step_result(instance: usize, run: u64, number: u64) -> RawJson {
    RawJson::parse(&format!("\"{instance}-{run}-{number}\"")).expect("a text")
}

/// The wire keys of the pending input requests of a task.
pub(crate) fn open_keys(record: &TaskRecord) -> Vec<String> {
    record.journal().open().map(|(wire_key, _)| wire_key.to_owned()).collect()
}
