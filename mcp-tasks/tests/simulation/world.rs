//! Instances with workers and clocks, clients, and a store.

use std::time::Duration;

use futures_util::FutureExt as _;
use mcp_tasks::{
    MemoryTaskStore, NewTask, QueueAction, ReplaceOutcome, ResponseOutcome, TaskCall, TaskClaim, TaskId, TaskLimits,
    TaskOutcome, TaskOwner, TaskRecord, TaskStart, TaskStore, TaskStoreError, TaskTicket, TaskWrite,
};
use mcp_types::{ErrorObject, InputResponses, RawJson, RawObject, Revision};

use crate::handler::{Handler, Next, open_keys, step_result};
use crate::model::{Expected, Model};
use crate::{Random, Trace};

const LEASE: Duration = Duration::from_secs(10);
const LEASE_MS: u64 = 10_000;
const TIME_TO_LIVE: Duration = Duration::from_secs(600);
const INSTANCES: usize = 3;
const TOOLS: [&str; 2] = ["render", "count"];
const ACTIONS: usize = 400;

/// What happened in all runs.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    tasks: usize,
    refused: usize,
    runs: usize,
    taken_over: usize,
    deaths: usize,
    conflicts: usize,
    leases_lost: usize,
    lost_responses: usize,
    repeated_steps: usize,
    answers: usize,
    cancelled: usize,
    expired: usize,
    passed_over: usize,
}

impl Summary {
    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, more) in self.counts().into_iter().zip([
            other.tasks,
            other.refused,
            other.runs,
            other.taken_over,
            other.deaths,
            other.conflicts,
            other.leases_lost,
            other.lost_responses,
            other.repeated_steps,
            other.answers,
            other.cancelled,
            other.expired,
            other.passed_over,
        ]) {
            *sum += more;
        }
    }

    /// Checks that everything happened that can happen.
    pub(crate) fn check(&mut self) {
        assert!(self.counts().into_iter().all(|count| *count > 0), "{self:?}");
    }

    fn counts(&mut self) -> [&mut usize; 13] {
        [
            &mut self.tasks,
            &mut self.refused,
            &mut self.runs,
            &mut self.taken_over,
            &mut self.deaths,
            &mut self.conflicts,
            &mut self.leases_lost,
            &mut self.lost_responses,
            &mut self.repeated_steps,
            &mut self.answers,
            &mut self.cancelled,
            &mut self.expired,
            &mut self.passed_over,
        ]
    }
}

/// An instance of a server, whose clock is ahead of the others.
struct Instance {
    ahead: u64,
    /// Some instances are of an older version, which does not have all tools.
    tools: &'static [&'static str],
    runs: Vec<Run>,
}

/// A task that a worker runs, with the record as it knows it.
struct Run {
    ticket: TaskTicket,
    record: TaskRecord,
    version: u64,
    handler: Handler,
    /// A step that was taken, and whose result is not stored yet.
    taken: Option<(String, RawJson)>,
    /// Whether the instance has the tool. Otherwise the task is about to expire.
    has_tool: bool,
    /// The end of the lease as far as the worker knows.
    until: u64,
}

/// A write of a client that is on its way.
struct Pending {
    read: u64,
    record: TaskRecord,
    queue: QueueAction,
}

pub(crate) struct World {
    random: Random,
    trace: Trace,
    store: MemoryTaskStore,
    model: Model,
    clock: u64,
    instances: Vec<Instance>,
    pending: Vec<Pending>,
    /// Whether leases are measured by a clock of the store, as in Redis. Then a worker knows how long its lease lasts at least.
    /// Otherwise the clock of each instance decides, and a worker has to confirm its lease before each step.
    has_own_clock: bool,
    /// Whether nothing goes wrong any more.
    is_calm: bool,
    summary: Summary,
}

fn unless_finished(run: Run) -> Option<Run> {
    (!run.record.is_finished()).then_some(run)
}

/// The store in memory does not wait.
fn ready<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("it does not wait")
}

impl World {
    pub(crate) fn new(seed: u64, trace: Trace) -> Self {
        let mut random = Random(seed);
        let limits = TaskLimits::default().max_unfinished(12).max_unfinished_per_owner(5).max_unfinished_per_tool(9);
        let instances = (0..INSTANCES)
            .map(|number| Instance {
                ahead: random.next() % 4000,
                tools: if number == 0 { &TOOLS[..1] } else { &TOOLS },
                runs: Vec::new(),
            })
            .collect();
        Self {
            random,
            trace,
            store: MemoryTaskStore::new(limits),
            model: Model::default(),
            clock: 1_000_000,
            instances,
            pending: Vec::new(),
            has_own_clock: seed.is_multiple_of(2),
            is_calm: false,
            summary: Summary::default(),
        }
    }

    pub(crate) fn run(mut self) -> Summary {
        for _ in 0..ACTIONS {
            self.act();
            self.check_store();
        }
        self.calm_down();
        self.summary.repeated_steps = self.model.check_end();
        self.summary.expired = self.model.expired;
        self.summary.passed_over = self.model.passed_over;
        self.summary
    }

    /// The time of an instance. All tasks that have expired for it are gone.
    fn now(&mut self, instance: usize) -> u64 {
        let now = self.clock + self.instances[instance].ahead;
        self.sweep(now);
        now
    }

    /// Lets tasks expire, in the store by the next best call.
    fn sweep(&mut self, now: u64) {
        ready(self.store.usage(now)).expect("it responds");
        self.model.sweep(now);
    }

    /// The time by which leases are measured.
    fn lease_clock(&mut self, instance: usize) -> u64 {
        if self.has_own_clock {
            self.sweep(self.clock);
            return self.clock;
        }
        self.now(instance)
    }

    fn act(&mut self) {
        let instance = self.random.below(INSTANCES);
        match self.random.below(100) {
            0..10 => self.insert(instance),
            10..28 => self.claim(instance),
            28..62 => self.advance(instance),
            62..70 => self.renew(instance),
            70..73 => self.release(instance),
            73..75 => self.die(instance),
            75..83 => self.answer(instance),
            83..85 => self.cancel(instance),
            85..92 => self.deliver(instance),
            92..99 => self.clock += self.random.next() % 1500,
            _ => self.jump(),
        }
    }

    /// Clocks go forward at once, together or one of them.
    fn jump(&mut self) {
        match self.random.below(4) {
            0 => {
                let instance = self.random.below(INSTANCES);
                self.instances[instance].ahead = self.random.next() % 20_000;
            }
            1 if self.random.chance(50) => self.clock += 400_000,
            _ => self.clock += LEASE_MS + self.random.next() % (3 * LEASE_MS),
        }
        self.trace.note(|| format!("the clock is {}", self.clock));
    }

    fn insert(&mut self, instance: usize) {
        let now = self.now(instance);
        let handler = Handler::new(&mut self.random);
        let mut bytes = [0; 32];
        bytes.as_chunks_mut().0.iter_mut().for_each(|part: &mut [u8; 8]| *part = self.random.next().to_ne_bytes());
        let id = TaskId::from_bytes(bytes);
        let owner = [None, Some(TaskOwner([1; 32])), Some(TaskOwner([2; 32]))][self.random.below(3)];
        let tool = TOOLS[self.random.below(TOOLS.len())];
        let call = TaskCall::new(Revision::V2026_07_28, RawObject::empty());
        let record = TaskRecord::new(id, tool, call, now, TIME_TO_LIVE).owner(owner);
        let begins_claimed = self.random.chance(20);
        let start = if begins_claimed {
            TaskStart::Claimed { worker: "inline".into(), lease: LEASE }
        } else {
            TaskStart::Queued
        };
        let task = record.encode(self.store.limits()).expect("it is small");
        let inserted = ready(self.store.insert(now, NewTask { id, task, start }));
        let until = begins_claimed.then_some(now + LEASE_MS);
        let refusal = self.model.insert(&self.store.limits().clone(), record.clone(), handler.clone(), until);
        self.trace.note(|| format!("{instance} inserts {id:?}: {inserted:?}"));
        match inserted {
            Ok(inserted) => {
                assert_eq!((refusal, inserted.version), (None, 1));
                self.summary.tasks += 1;
                if let Some(ticket) = inserted.ticket {
                    // Measured by the clock of the instance, so the worker does not rely on it.
                    let run = Run { ticket, record, version: 1, handler, taken: None, has_tool: true, until: 0 };
                    self.instances[instance].runs.push(run);
                }
            }
            Err(TaskStoreError::Full { limit, .. }) => {
                assert_eq!(refusal, Some(limit));
                self.summary.refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn claim(&mut self, instance: usize) {
        let now = self.lease_clock(instance);
        let claim = TaskClaim::new("worker", LEASE).tools(self.instances[instance].tools);
        let claimed = ready(self.store.claim(now, claim)).expect("it responds");
        self.trace.note(|| format!("{instance} claims {:?}", claimed.as_ref().map(|claimed| claimed.ticket)));
        let found = claimed.as_ref().map(|claimed| (claimed.ticket, &claimed.task));
        let Some(handler) = self.model.claim(now, now + LEASE_MS, &claim, found) else { return };
        let claimed = claimed.expect("the model has found it");
        let ticket = claimed.ticket;
        let record = TaskRecord::decode(ticket.id, &claimed.task.task).expect("it is valid");
        let mut holders = self.instances.iter().flat_map(|instance| &instance.runs);
        self.summary.taken_over += usize::from(holders.any(|run| run.ticket.id == ticket.id));
        self.summary.runs += 1;
        let has_tool = claim.has_tool(&record.tool);
        let (version, until) = (claimed.task.version, now + LEASE_MS);
        let run = Run { ticket, record, version, handler, taken: None, has_tool, until };
        self.instances[instance].runs.push(run);
    }

    /// Takes a run out of an instance.
    fn pick(&mut self, instance: usize) -> Option<Run> {
        let count = self.instances[instance].runs.len();
        (count > 0).then(|| self.random.below(count)).map(|index| self.instances[instance].runs.swap_remove(index))
    }

    /// One run goes a bit further.
    fn advance(&mut self, instance: usize) {
        let Some(run) = self.pick(instance) else { return };
        let run = self.proceed(instance, run);
        self.instances[instance].runs.extend(run);
    }

    /// Goes a bit further; `None` if the run is over.
    fn proceed(&mut self, instance: usize, mut run: Run) -> Option<Run> {
        let now = self.now(instance);
        let mut record = run.record.clone();
        if let Some((key, result)) = &run.taken {
            if record.complete_step(now, key, result.clone()).is_err() {
                // It was stored, and the response was lost.
                run.taken = None;
                return Some(run);
            }
            return self.write(instance, run, record, QueueAction::Keep);
        }
        let is_repeated = !run.handler.is_restartable && run.ticket.run > 1;
        if is_repeated || !run.has_tool {
            let error = ErrorObject::internal_error("the task cannot be run");
            record.fail(now, TaskOutcome::Error(error)).expect("it is not finished");
            return self.write(instance, run, record, QueueAction::Done);
        }
        if record.journal().is_waiting() {
            // It waits in memory, and looks for responses.
            return self.reload(instance, run);
        }
        match run.handler.next(record.journal(), run.ticket.run) {
            Next::Step(key) => {
                if !self.confirm_lease(instance, &mut run) {
                    return None;
                }
                // Between both, time may pass for a real worker. A step that is taken twice for this reason cannot be avoided.
                self.model.take_effect(run.ticket, &key);
                let result = step_result(instance, run.ticket.run, self.random.next() % 1000);
                run.taken = Some((key, result));
                Some(run)
            }
            Next::Ask(questions) if run.handler.is_restartable => {
                let is_waiting = record.park(now, questions, None).expect("it is not finished");
                assert!(is_waiting, "it was not answered");
                self.write(instance, run, record, QueueAction::Done)
            }
            Next::Ask(questions) => {
                for (key, request) in questions {
                    if record.journal().response(&key, &request).is_none() {
                        record.request_input(now, &key, request).expect("it is not finished");
                    }
                }
                self.write(instance, run, record, QueueAction::Keep)
            }
            Next::Complete(result) => {
                record.complete(now, result).expect("it is not finished");
                self.write(instance, run, record, QueueAction::Done)
            }
            Next::Fail(message) => {
                let outcome = TaskOutcome::Error(ErrorObject::internal_error(message));
                record.fail(now, outcome).expect("it is not finished");
                self.write(instance, run, record, QueueAction::Done)
            }
        }
    }

    /// Writes for a run; `None` if the run is over.
    fn write(&mut self, instance: usize, mut run: Run, record: TaskRecord, queue: QueueAction) -> Option<Run> {
        let outcome = self.replace(instance, run.version, &record, queue, Some(run.ticket));
        if !self.is_calm && self.random.chance(5) {
            // The worker does not learn the outcome, and reads what is there. The write may have ended its lease.
            self.summary.lost_responses += 1;
            run.until = 0;
            return self.reload(instance, run);
        }
        match outcome {
            ReplaceOutcome::Replaced(version) => {
                run.taken = None;
                (run.record, run.version) = (record, version);
                (queue == QueueAction::Keep).then_some(run)
            }
            ReplaceOutcome::Conflict(found) => {
                run.record = TaskRecord::decode(run.ticket.id, &found.task).expect("it is valid");
                run.version = found.version;
                unless_finished(run)
            }
            ReplaceOutcome::LeaseLost => {
                self.summary.leases_lost += 1;
                None
            }
            ReplaceOutcome::Gone => None,
        }
    }

    /// Reads the record of a run again; `None` if the run is over.
    fn reload(&mut self, instance: usize, mut run: Run) -> Option<Run> {
        let now = self.now(instance);
        let found = ready(self.store.load(now, run.ticket.id)).expect("it responds")?;
        run.record = TaskRecord::decode(run.ticket.id, &found.task).expect("it is valid");
        run.version = found.version;
        unless_finished(run)
    }

    fn replace(
        &mut self,
        instance: usize,
        read: u64,
        record: &TaskRecord,
        queue: QueueAction,
        ticket: Option<TaskTicket>,
    ) -> ReplaceOutcome {
        let now = self.now(instance);
        let stored = record.encode(self.store.limits()).expect("it is small");
        let (content, is_finished) = (stored.content, stored.is_finished);
        let write = TaskWrite { read, content, is_finished, queue, ticket };
        let outcome = ready(self.store.replace(now, record.id, write)).expect("it responds");
        self.trace.note(|| {
            let status = record.status().as_str();
            format!("{instance} writes {:?} as {status} after {read} with {ticket:?}: {outcome:?}", record.id)
        });
        let expected = self.model.replace(read, record, queue, ticket);
        let found = match &outcome {
            ReplaceOutcome::Replaced(version) => Expected::Replaced(*version),
            ReplaceOutcome::Conflict(found) => Expected::Conflict(found.version),
            ReplaceOutcome::LeaseLost => Expected::LeaseLost,
            ReplaceOutcome::Gone => Expected::Gone,
        };
        assert_eq!(found, expected, "the write of {:?}", record.id);
        self.summary.conflicts += usize::from(matches!(outcome, ReplaceOutcome::Conflict(_)));
        outcome
    }

    fn renew(&mut self, instance: usize) {
        let Some(mut run) = self.pick(instance) else { return };
        if self.renew_lease(instance, &mut run) {
            self.instances[instance].runs.push(run);
        }
    }

    fn renew_lease(&mut self, instance: usize, run: &mut Run) -> bool {
        let now = self.lease_clock(instance);
        let is_renewed = ready(self.store.renew(now, run.ticket, LEASE)).expect("it responds");
        run.until = now + LEASE_MS;
        assert_eq!(is_renewed, self.model.renew(run.ticket, run.until), "the renewal of {:?}", run.ticket);
        self.summary.leases_lost += usize::from(!is_renewed);
        is_renewed
    }

    /// Makes sure that no other worker has taken the task over, and has completed the step that this one is about to take.
    fn confirm_lease(&mut self, instance: usize, run: &mut Run) -> bool {
        (self.has_own_clock && self.clock < run.until) || self.renew_lease(instance, run)
    }

    /// A graceful shutdown gives tasks back.
    fn release(&mut self, instance: usize) {
        let Some(run) = self.pick(instance) else { return };
        let now = self.now(instance);
        let is_released = ready(self.store.release(now, run.ticket)).expect("it responds");
        assert_eq!(is_released, self.model.release(run.ticket), "the release of {:?}", run.ticket);
    }

    /// An instance dies, with all that it runs.
    fn die(&mut self, instance: usize) {
        self.trace.note(|| format!("{instance} dies"));
        self.summary.deaths += 1;
        self.instances[instance].runs.clear();
    }

    /// A client reads a task that waits for input, and sends some responses, also to keys that nobody knows.
    fn answer(&mut self, instance: usize) {
        let waiting: Vec<TaskId> = self.model.tasks.iter().map(|entry| entry.record.id).collect();
        if waiting.is_empty() {
            return;
        }
        let id = waiting[self.random.below(waiting.len())];
        let is_partial = self.random.chance(30);
        self.answer_task(instance, id, is_partial);
    }

    fn answer_task(&mut self, instance: usize, id: TaskId, is_partial: bool) {
        let now = self.now(instance);
        let Some(found) = ready(self.store.load(now, id)).expect("it responds") else { return };
        let mut record = TaskRecord::decode(id, &found.task).expect("it is valid");
        let mut responses = InputResponses::new();
        for wire_key in open_keys(&record) {
            if is_partial && self.random.chance(50) {
                continue;
            }
            let text = format!(r#"{{"key":"{wire_key}","number":{}}}"#, self.random.next() % 1000);
            responses.insert(wire_key, RawObject::parse(&text).expect("an object"));
        }
        responses.insert("unknown", RawObject::empty());
        let queue = match record.respond(now, &responses) {
            Ok(ResponseOutcome::Ready) if self.is_restartable(id) => QueueAction::Enqueue,
            Ok(ResponseOutcome::Ready | ResponseOutcome::Partial) => QueueAction::Keep,
            Ok(ResponseOutcome::Ignored) | Err(_) => return,
        };
        self.summary.answers += 1;
        self.pending.push(Pending { read: found.version, record, queue });
    }

    fn is_restartable(&mut self, id: TaskId) -> bool {
        self.model.find(id).is_some_and(|entry| entry.handler.is_restartable)
    }

    fn cancel(&mut self, instance: usize) {
        let now = self.now(instance);
        let count = self.model.tasks.len();
        if count == 0 {
            return;
        }
        let id = self.model.tasks[self.random.below(count)].record.id;
        let Some(found) = ready(self.store.load(now, id)).expect("it responds") else { return };
        let mut record = TaskRecord::decode(id, &found.task).expect("it is valid");
        if record.cancel(now).is_ok() {
            self.pending.push(Pending { read: found.version, record, queue: QueueAction::Done });
        }
    }

    /// A write of a client arrives, possibly late, and possibly twice.
    fn deliver(&mut self, instance: usize) {
        if self.pending.is_empty() {
            return;
        }
        let index = self.random.below(self.pending.len());
        let Pending { read, record, queue } = self.pending.swap_remove(index);
        let outcome = self.replace(instance, read, &record, queue, None);
        if record.is_finished() {
            self.summary.cancelled += usize::from(matches!(outcome, ReplaceOutcome::Replaced(_)));
        }
        if !self.is_calm && self.random.chance(20) {
            self.pending.push(Pending { read, record, queue });
        }
    }

    /// Compares the store with the model.
    fn check_store(&mut self) {
        let instance = self.random.below(INSTANCES);
        let now = self.now(instance);
        let usage = ready(self.store.usage(now)).expect("it responds");
        assert_eq!((usage.kept, usage.unfinished), (self.model.tasks.len(), self.model.unfinished()));
        if self.random.chance(10) {
            for owner in [TaskOwner([1; 32]), TaskOwner([2; 32])] {
                let page = ready(self.store.list(now, owner, None, 1000)).expect("it responds");
                let ids: Vec<_> = page.tasks.into_iter().map(|(id, _)| id).collect();
                assert_eq!(ids, self.model.ids_of(owner), "the tasks of an owner");
            }
            for entry in &self.model.tasks {
                let found = ready(self.store.load(now, entry.record.id)).expect("it responds").expect("it is there");
                let record = TaskRecord::decode(entry.record.id, &found.task).expect("it is valid");
                assert_eq!((&record, found.version, found.run), (&entry.record, entry.version, entry.run));
            }
        }
    }

    /// Nothing goes wrong any more: all tasks end.
    fn calm_down(&mut self) {
        self.is_calm = true;
        for _ in 0..1000 {
            if self.model.unfinished() == 0 {
                break;
            }
            let instance = self.random.below(INSTANCES);
            self.claim(instance);
            for instance in 0..INSTANCES {
                for _ in 0..self.instances[instance].runs.len() {
                    self.renew(instance);
                    self.advance(instance);
                }
            }
            let ids: Vec<TaskId> = self.model.tasks.iter().map(|entry| entry.record.id).collect();
            for id in ids {
                self.answer_task(instance, id, false);
            }
            while !self.pending.is_empty() {
                self.deliver(instance);
            }
            self.clock += 500;
            self.check_store();
        }
        for instance in 0..INSTANCES {
            self.die(instance);
        }
    }
}
