//! The reference model: what a store and its tasks have to look like, in the simplest way.

use std::collections::{BTreeMap, BTreeSet};

use mcp_tasks::{
    QueueAction, TaskClaim, TaskId, TaskLimit, TaskLimits, TaskOwner, TaskRecord, TaskTicket, VersionedTask,
};

use mcp_types::TaskStatus;

use crate::handler::{Handler, open_keys};

#[derive(Default)]
pub(crate) struct Model {
    /// By the order of creation.
    pub(crate) tasks: Vec<Entry>,
    /// The number of tasks that have ended, by id, with those that have expired since.
    ends: BTreeMap<TaskId, u32>,
    effects: BTreeMap<(TaskId, String), Effect>,
    pub(crate) expired: usize,
    /// How often a worker left a task to others.
    pub(crate) passed_over: usize,
}

pub(crate) struct Entry {
    pub(crate) record: TaskRecord,
    pub(crate) version: u64,
    pub(crate) run: u64,
    pub(crate) place: Place,
    pub(crate) handler: Handler,
    wire_keys: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    None,
    Queued,
    Claimed(u64),
}

/// A step, with the runs that took it: more than one if a worker has died, or has lost its lease, before it stored the result.
#[derive(Default)]
struct Effect {
    runs: BTreeSet<u64>,
    is_stored: bool,
}

/// What a store has to answer to a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Replaced(u64),
    Conflict(u64),
    LeaseLost,
    Gone,
}

impl Model {
    pub(crate) fn sweep(&mut self, now: u64) {
        let before = self.tasks.len();
        self.tasks.retain(|entry| entry.record.expires > now);
        self.expired += before - self.tasks.len();
    }

    pub(crate) fn find(&mut self, id: TaskId) -> Option<&mut Entry> {
        self.tasks.iter_mut().find(|entry| entry.record.id == id)
    }

    /// Adds a task, or returns the limit that is reached.
    pub(crate) fn insert(
        &mut self,
        limits: &TaskLimits,
        record: TaskRecord,
        handler: Handler,
        until: Option<u64>,
    ) -> Option<TaskLimit> {
        let unfinished = || self.tasks.iter().filter(|entry| !entry.record.is_finished());
        let owner = record.owner;
        if owner.is_some()
            && unfinished().filter(|entry| entry.record.owner == owner).count() >= limits.max_unfinished_per_owner
        {
            return Some(TaskLimit::UnfinishedPerOwner);
        }
        if unfinished().filter(|entry| entry.record.tool == record.tool).count() >= limits.max_unfinished_per_tool {
            return Some(TaskLimit::UnfinishedPerTool);
        }
        if unfinished().count() >= limits.max_unfinished {
            return Some(TaskLimit::Unfinished);
        }
        let (run, place) = until.map_or((0, Place::Queued), |until| (1, Place::Claimed(until)));
        self.tasks.push(Entry { record, version: 1, run, place, handler, wire_keys: BTreeSet::new() });
        None
    }

    /// Checks what a claim has found.
    pub(crate) fn claim(
        &mut self,
        now: u64,
        until: u64,
        claim: &TaskClaim<'_>,
        found: Option<(TaskTicket, &VersionedTask)>,
    ) -> Option<Handler> {
        let is_free = |entry: &Entry| match entry.place {
            Place::None => false,
            Place::Queued => true,
            Place::Claimed(until) => until <= now,
        };
        let is_meant = |record: &TaskRecord| {
            let is_late = now >= record.expires - (record.expires - record.created) / 10;
            claim.has_tool(&record.tool) || (is_late && until >= record.expires)
        };
        self.passed_over += self.tasks.iter().filter(|entry| is_free(entry) && !is_meant(&entry.record)).count();
        let is_claimable = |entry: &Entry| is_free(entry) && is_meant(&entry.record);
        let Some((ticket, task)) = found else {
            let forgotten = self.tasks.iter().find(|entry| is_claimable(entry)).map(|entry| entry.record.id);
            assert_eq!(forgotten, None, "a task that can run was not found");
            return None;
        };
        let entry = self.find(ticket.id).expect("a task that was claimed exists");
        assert!(is_claimable(entry), "{:?} was claimed as {:?}", ticket.id, entry.place);
        assert!(!entry.record.is_finished(), "a finished task was claimed");
        entry.run += 1;
        entry.place = Place::Claimed(until);
        assert_eq!((ticket.run, task.run, task.version), (entry.run, entry.run, entry.version));
        Some(entry.handler.clone())
    }

    fn accepts(&mut self, ticket: TaskTicket) -> Option<&mut Entry> {
        self.find(ticket.id).filter(|entry| entry.run == ticket.run && matches!(entry.place, Place::Claimed(_)))
    }

    pub(crate) fn renew(&mut self, ticket: TaskTicket, until: u64) -> bool {
        self.accepts(ticket).map(|entry| entry.place = Place::Claimed(until)).is_some()
    }

    pub(crate) fn release(&mut self, ticket: TaskTicket) -> bool {
        self.accepts(ticket).map(|entry| entry.place = Place::Queued).is_some()
    }

    pub(crate) fn replace(
        &mut self,
        read: u64,
        record: &TaskRecord,
        queue: QueueAction,
        ticket: Option<TaskTicket>,
    ) -> Expected {
        if self.find(record.id).is_none() {
            return Expected::Gone;
        }
        if ticket.is_some_and(|ticket| self.accepts(ticket).is_none()) {
            return Expected::LeaseLost;
        }
        let entry = self.find(record.id).expect("it was found before");
        if entry.version != read || entry.record.is_finished() {
            return Expected::Conflict(entry.version);
        }
        entry.check_change(record);
        entry.version += 1;
        entry.record = record.clone();
        match queue {
            _ if record.is_finished() => entry.place = Place::None,
            QueueAction::Keep => {}
            QueueAction::Enqueue if entry.place == Place::None => entry.place = Place::Queued,
            QueueAction::Enqueue => {}
            QueueAction::Done => entry.place = Place::None,
        }
        let version = entry.version;
        for (key, _) in record.journal().steps() {
            let effect = self.effects.entry((record.id, key.to_owned())).or_default();
            assert!(!effect.runs.is_empty(), "a step has a result without having been taken");
            effect.is_stored = true;
        }
        if record.is_finished() {
            let ends = self.ends.entry(record.id).or_default();
            *ends += 1;
            assert_eq!(*ends, 1, "a task ends once");
        }
        Expected::Replaced(version)
    }

    /// A worker takes a step.
    pub(crate) fn take_effect(&mut self, ticket: TaskTicket, key: &str) {
        let effect = self.effects.entry((ticket.id, key.to_owned())).or_default();
        assert!(!effect.is_stored, "the completed step {key} of {:?} is repeated", ticket.id);
        assert!(effect.runs.insert(ticket.run), "a run takes {key} twice");
    }

    pub(crate) fn ids_of(&self, owner: TaskOwner) -> Vec<TaskId> {
        let own = self.tasks.iter().filter(|entry| entry.record.owner == Some(owner));
        own.map(|entry| entry.record.id).collect()
    }

    pub(crate) fn unfinished(&self) -> usize {
        self.tasks.iter().filter(|entry| !entry.record.is_finished()).count()
    }

    /// Checks everything when nothing runs any more; returns how many steps were repeated.
    pub(crate) fn check_end(&self) -> usize {
        for entry in &self.tasks {
            let id = entry.record.id;
            assert!(entry.record.is_finished(), "{id:?} never ends: {:?}", entry.record.status());
            assert_eq!(self.ends.get(&id), Some(&1), "{id:?} ends once");
        }
        self.effects.values().filter(|effect| effect.runs.len() > 1).count()
    }
}

impl Entry {
    /// Checks that a journal only grows, and that no wire key is used twice.
    fn check_change(&mut self, next: &TaskRecord) {
        assert!(next.updated() >= self.record.updated(), "time does not go back");
        if next.is_finished() {
            return;
        }
        let is_waiting = next.status() == TaskStatus::InputRequired;
        assert_eq!(is_waiting, next.journal().is_waiting(), "the status tells whether input requests are pending");
        for (key, result) in self.record.journal().steps() {
            assert_eq!(next.journal().step(key), Some(result), "the result of {key} stays");
        }
        let before = open_keys(&self.record);
        for wire_key in open_keys(next) {
            if !before.contains(&wire_key) {
                assert!(self.wire_keys.insert(wire_key.clone()), "the key {wire_key} is used twice");
            }
        }
    }
}
