//! The tables of the store in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::{
    ClaimedTask, QueueAction, ReplaceOutcome, StoredTask, TaskClaim, TaskCursor, TaskId, TaskLimit, TaskLimits,
    TaskOwner, TaskPage, TaskStoreError, TaskTicket, TaskUsage, TaskWrite, VersionedTask,
};

/// All tasks. The other tables refer to a task by the number of its creation, which takes less memory than its id.
#[derive(Default)]
pub(super) struct Tables {
    numbers: HashMap<TaskId, u64>,
    tasks: BTreeMap<u64, Entry>,
    by_expiry: BTreeSet<(u64, u64)>,
    by_owner: HashMap<TaskOwner, Owned>,
    /// How many tasks of each tool are not finished. The name is shared by its tasks.
    by_tool: HashMap<Arc<str>, usize>,
    /// The tasks that can be claimed, by the order in which they were queued.
    queue: BTreeMap<u64, u64>,
    /// The tasks that are claimed, by the end of their leases.
    leases: BTreeSet<(u64, u64)>,
    unfinished: usize,
    bytes: usize,
    /// The last number that was used, for a task or a place in the queue.
    last_number: u64,
}

struct Entry {
    id: TaskId,
    task: StoredTask,
    version: u64,
    run: u64,
    place: Place,
    /// When the last tenth of its life begins.
    late: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    None,
    Queued(u64),
    /// Claimed until a time.
    Claimed(u64),
}

/// The tasks of an owner.
#[derive(Default)]
struct Owned {
    numbers: BTreeSet<u64>,
    unfinished: usize,
    bytes: usize,
}

/// Where a new task begins.
pub(super) enum Start {
    Queued,
    /// Claimed until a time.
    Claimed(u64),
}

impl Entry {
    fn versioned(&self) -> VersionedTask {
        VersionedTask { task: self.task.clone(), version: self.version, run: self.run }
    }

    /// Whether a worker may claim it, whose lease would last until a time: it has the tool, or the task is about to expire.
    fn is_meant(&self, now: u64, until: u64, claim: &TaskClaim<'_>) -> bool {
        claim.has_tool(&self.task.tool) || (now >= self.late && until >= self.task.expires)
    }

    fn accepts(&self, ticket: TaskTicket) -> bool {
        self.run == ticket.run && matches!(self.place, Place::Claimed(_))
    }
}

impl Tables {
    /// Removes the tasks that have expired.
    pub(super) fn sweep(&mut self, now: u64) {
        while let Some((expires, number)) = self.by_expiry.first().copied()
            && expires <= now
        {
            self.remove_number(number);
        }
    }

    pub(super) fn insert(
        &mut self,
        limits: &TaskLimits,
        now: u64,
        id: TaskId,
        mut task: StoredTask,
        start: &Start,
    ) -> Result<(), TaskStoreError> {
        if self.numbers.contains_key(&id) {
            return Err(TaskStoreError::Failed("there is a task with this id".to_owned()));
        }
        self.check_room(limits, &task)?;
        let number = self.next_number();
        if !task.is_finished {
            let count = match self.by_tool.get_key_value(&task.tool) {
                Some((name, count)) => {
                    task.tool = Arc::clone(name);
                    *count
                }
                None => 0,
            };
            self.by_tool.insert(Arc::clone(&task.tool), count + 1);
            self.unfinished += 1;
        }
        if let Some(owner) = task.owner {
            let owned = self.by_owner.entry(owner).or_default();
            owned.numbers.insert(number);
            owned.unfinished += usize::from(!task.is_finished);
        }
        self.count_bytes(task.owner, 0, task.content.len());
        self.by_expiry.insert((task.expires, number));
        self.numbers.insert(id, number);
        let is_finished = task.is_finished;
        let late = task.expires.saturating_sub(task.expires.saturating_sub(now) / 10);
        let (place, run) = (Place::None, u64::from(matches!(start, Start::Claimed(_))));
        self.tasks.insert(number, Entry { id, task, version: 1, run, place, late });
        match start {
            _ if is_finished => {}
            Start::Queued => self.enqueue(number),
            Start::Claimed(until) => self.move_to(number, Place::Claimed(*until)),
        }
        Ok(())
    }

    fn check_room(&self, limits: &TaskLimits, task: &StoredTask) -> Result<(), TaskStoreError> {
        let owned = task.owner.map(|owner| self.by_owner.get(&owner));
        let unfinished_of_owner = owned.map(|owned| owned.map_or(0, |owned| owned.unfinished));
        let kept_of_owner = owned.map(|owned| owned.map_or(0, |owned| owned.numbers.len()));
        let is_unfinished = !task.is_finished;
        let of_tool = self.by_tool.get(&task.tool).copied().unwrap_or_default();
        let counts = [
            (TaskLimit::UnfinishedPerOwner, unfinished_of_owner.filter(|_| is_unfinished)),
            (TaskLimit::UnfinishedPerTool, is_unfinished.then_some(of_tool)),
            (TaskLimit::Unfinished, is_unfinished.then_some(self.unfinished)),
            (TaskLimit::KeptPerOwner, kept_of_owner),
            (TaskLimit::Kept, Some(self.tasks.len())),
        ];
        for (limit, count) in counts {
            let max = limits.max(limit);
            if count.is_some_and(|count| count >= max) {
                return Err(TaskStoreError::Full { limit, max });
            }
        }
        self.check_bytes(limits, task.owner, 0, task.content.len())
    }

    /// Checks the limits of all contents when one of them is replaced.
    fn check_bytes(
        &self,
        limits: &TaskLimits,
        owner: Option<TaskOwner>,
        before: usize,
        after: usize,
    ) -> Result<(), TaskStoreError> {
        let of_owner = owner.map(|owner| self.by_owner.get(&owner).map_or(0, |owned| owned.bytes));
        for (limit, bytes) in [(TaskLimit::BytesPerOwner, of_owner), (TaskLimit::Bytes, Some(self.bytes))] {
            let max = limits.max(limit);
            let is_over = bytes.is_some_and(|bytes| replaced(bytes, before, after) > max);
            if after > before && is_over {
                return Err(TaskStoreError::Full { limit, max });
            }
        }
        Ok(())
    }

    /// Counts a content that replaces another one.
    fn count_bytes(&mut self, owner: Option<TaskOwner>, before: usize, after: usize) {
        self.bytes = replaced(self.bytes, before, after);
        if let Some(owned) = owner.and_then(|owner| self.by_owner.get_mut(&owner)) {
            owned.bytes = replaced(owned.bytes, before, after);
        }
    }

    pub(super) fn load(&self, id: TaskId) -> Option<VersionedTask> {
        self.find(id).map(|(_, entry)| entry.versioned())
    }

    /// Replaces a task; returns as well whether it was queued.
    pub(super) fn replace(
        &mut self,
        limits: &TaskLimits,
        id: TaskId,
        write: TaskWrite,
    ) -> Result<(ReplaceOutcome, bool), TaskStoreError> {
        let Some((number, entry)) = self.find(id) else { return Ok((ReplaceOutcome::Gone, false)) };
        if write.ticket.is_some_and(|ticket| !entry.accepts(ticket)) {
            return Ok((ReplaceOutcome::LeaseLost, false));
        }
        if entry.version != write.read || entry.task.is_finished {
            return Ok((ReplaceOutcome::Conflict(Box::new(entry.versioned())), false));
        }
        let (before, version, place) = (entry.task.content.len(), entry.version.saturating_add(1), entry.place);
        let (owner, after) = (entry.task.owner, write.content.len());
        if !write.is_finished || after > before.saturating_add(TaskLimits::FINAL_BYTES) {
            self.check_bytes(limits, owner, before, after)?;
        }
        self.count_bytes(owner, before, after);
        if let Some(entry) = self.tasks.get_mut(&number) {
            entry.version = version;
            entry.task.content = write.content;
        }
        if write.is_finished {
            self.finish(number);
        }
        let mut is_queued = false;
        match write.queue {
            _ if write.is_finished => self.move_to(number, Place::None),
            QueueAction::Keep => {}
            QueueAction::Enqueue => {
                is_queued = place == Place::None;
                if is_queued {
                    self.enqueue(number);
                }
            }
            QueueAction::Done => self.move_to(number, Place::None),
        }
        Ok((ReplaceOutcome::Replaced(version), is_queued))
    }

    fn finish(&mut self, number: u64) {
        if let Some(entry) = self.tasks.get_mut(&number) {
            entry.task.is_finished = true;
            let (owner, tool) = (entry.task.owner, Arc::clone(&entry.task.tool));
            self.forget_unfinished(owner, &tool);
        }
    }

    pub(super) fn claim(&mut self, now: u64, until: u64, claim: &TaskClaim<'_>) -> Option<ClaimedTask> {
        let is_meant = |number: &u64| self.tasks.get(number).is_some_and(|entry| entry.is_meant(now, until, claim));
        let expired =
            self.leases.iter().take_while(|(until, _)| *until <= now).map(|(_, number)| *number).find(is_meant);
        let number = expired.or_else(|| self.queue.values().copied().find(is_meant))?;
        self.move_to(number, Place::Claimed(until));
        let entry = self.tasks.get_mut(&number)?;
        entry.run = entry.run.saturating_add(1);
        let ticket = TaskTicket { id: entry.id, run: entry.run, token: 0 };
        Some(ClaimedTask { ticket, task: entry.versioned(), is_taken_over: expired.is_some() })
    }

    pub(super) fn renew(&mut self, ticket: TaskTicket, until: u64) -> bool {
        let number = self.claimed_number(ticket);
        if let Some(number) = number {
            self.move_to(number, Place::Claimed(until));
        }
        number.is_some()
    }

    pub(super) fn release(&mut self, ticket: TaskTicket) -> bool {
        let number = self.claimed_number(ticket);
        if let Some(number) = number {
            self.move_to(number, Place::None);
            self.enqueue(number);
        }
        number.is_some()
    }

    pub(super) fn list(&self, owner: TaskOwner, after: Option<TaskCursor>, count: usize) -> TaskPage {
        let start = after.map_or(Bound::Unbounded, |TaskCursor(number)| Bound::Excluded(number));
        let owned = self.by_owner.get(&owner);
        let mut numbers = owned.into_iter().flat_map(|owned| owned.numbers.range((start, Bound::Unbounded)));
        let page: Vec<u64> = numbers.by_ref().take(count).copied().collect();
        let next = numbers.next().and_then(|_| page.last()).map(|number| TaskCursor(*number));
        let entries = page.iter().filter_map(|number| self.tasks.get(number));
        TaskPage { tasks: entries.map(|entry| (entry.id, entry.versioned())).collect(), next }
    }

    pub(super) fn remove(&mut self, id: TaskId) -> bool {
        let number = self.numbers.get(&id).copied();
        if let Some(number) = number {
            self.remove_number(number);
        }
        number.is_some()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let tables =
            [self.numbers.len(), self.tasks.len(), self.by_expiry.len(), self.by_owner.len(), self.by_tool.len()];
        let counts = [self.queue.len(), self.leases.len(), self.unfinished, self.bytes];
        tables.into_iter().chain(counts).sum::<usize>() == 0
    }

    pub(super) fn usage(&self) -> TaskUsage {
        TaskUsage {
            kept: self.tasks.len(),
            unfinished: self.unfinished,
            queued: self.queue.len(),
            claimed: self.leases.len(),
            bytes: self.bytes,
        }
    }

    fn find(&self, id: TaskId) -> Option<(u64, &Entry)> {
        let number = *self.numbers.get(&id)?;
        Some((number, self.tasks.get(&number)?))
    }

    fn claimed_number(&self, ticket: TaskTicket) -> Option<u64> {
        self.find(ticket.id).filter(|(_, entry)| entry.accepts(ticket)).map(|(number, _)| number)
    }

    fn remove_number(&mut self, number: u64) {
        self.move_to(number, Place::None);
        let Some(Entry { id, task, .. }) = self.tasks.remove(&number) else { return };
        self.numbers.remove(&id);
        self.by_expiry.remove(&(task.expires, number));
        self.count_bytes(task.owner, task.content.len(), 0);
        if !task.is_finished {
            self.forget_unfinished(task.owner, &task.tool);
        }
        if let Some(owner) = task.owner
            && let Some(owned) = self.by_owner.get_mut(&owner)
        {
            owned.numbers.remove(&number);
            if owned.numbers.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
        if self.tasks.is_empty() {
            // The memory of a flood is given back.
            let last_number = self.last_number;
            *self = Self { last_number, ..Self::default() };
        }
    }

    fn forget_unfinished(&mut self, owner: Option<TaskOwner>, tool: &Arc<str>) {
        self.unfinished = self.unfinished.saturating_sub(1);
        if let Some(owned) = owner.and_then(|owner| self.by_owner.get_mut(&owner)) {
            owned.unfinished = owned.unfinished.saturating_sub(1);
        }
        if let Some(count) = self.by_tool.get_mut(tool) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_tool.remove(tool);
            }
        }
    }

    fn enqueue(&mut self, number: u64) {
        let position = self.next_number();
        self.move_to(number, Place::Queued(position));
    }

    /// Moves a task to another place.
    fn move_to(&mut self, number: u64, place: Place) {
        let Some(entry) = self.tasks.get_mut(&number) else { return };
        match std::mem::replace(&mut entry.place, place) {
            Place::None => {}
            Place::Queued(position) => drop(self.queue.remove(&position)),
            Place::Claimed(until) => drop(self.leases.remove(&(until, number))),
        }
        match place {
            Place::None => {}
            Place::Queued(position) => drop(self.queue.insert(position, number)),
            Place::Claimed(until) => drop(self.leases.insert((until, number))),
        }
    }

    fn next_number(&mut self) -> u64 {
        self.last_number = self.last_number.wrapping_add(1);
        self.last_number
    }
}

/// The bytes of all contents when one of them is replaced.
fn replaced(all: usize, before: usize, after: usize) -> usize {
    all.saturating_sub(before).saturating_add(after)
}

/// Copies a content into memory of its own: a part of a larger buffer would keep all of it.
pub(super) fn compact(content: &Bytes) -> Bytes {
    Bytes::copy_from_slice(content)
}
