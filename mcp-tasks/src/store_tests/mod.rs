//! Tests for implementations of [`TaskStore`].
//!
//! # Examples
//!
//! ```
//! use std::cell::Cell;
//! use std::time::Duration;
//!
//! use mcp_tasks::{MemoryTaskStore, store_tests};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // This store knows no time but that of its arguments. Others need the real time, and to sleep.
//! let now = Cell::new(1_000_000);
//! let sleep = async |time: Duration| now.set(now.get() + time.as_millis() as u64);
//! store_tests::check_task_store(async |limits| MemoryTaskStore::new(limits), || now.get(), sleep).await;
//! # }
//! ```

mod changes;
mod expiry;
mod leases;
mod limits;
mod lists;
mod queue;
mod records;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::{
    ClaimedTask, InsertedTask, NewTask, QueueAction, ReplaceOutcome, StoredTask, TaskClaim, TaskId, TaskLimits,
    TaskOwner, TaskStart, TaskStore, TaskStoreError, TaskTicket, TaskUsage, TaskWrite, VersionedTask,
};

/// Tests an implementation of [`TaskStore`], within a runtime of tokio. `make` creates an empty store with these limits,
/// `now` returns the milliseconds since the Unix epoch, and `sleep` waits.
///
/// # Panics
///
/// Panics if the store does not behave as the trait requires.
pub async fn check_task_store<S: TaskStore>(
    make: impl AsyncFn(TaskLimits) -> S,
    now: impl Fn() -> u64,
    sleep: impl AsyncFn(Duration),
) {
    let make_default = async || make(TaskLimits::default().max_unfinished_per_owner(100)).await;
    records::tasks_survive(&make_default().await, now()).await;
    records::versions_are_compared(&make_default().await, now()).await;
    records::finished_tasks_are_final(&make_default().await, now()).await;
    records::tasks_are_removed(&make_default().await, now()).await;
    records::one_of_many_replaces(make_default().await, now()).await;
    queue::tasks_are_claimed_in_order(&make_default().await, now()).await;
    queue::a_task_has_one_place(&make_default().await, now()).await;
    queue::finished_tasks_are_not_queued(&make_default().await, now()).await;
    queue::tasks_begin_claimed(&make_default().await, now()).await;
    queue::each_task_is_claimed_once(make_default().await, now()).await;
    leases::tickets_of_earlier_runs_are_refused(&make_default().await, &now, &sleep).await;
    leases::leases_are_renewed(&make_default().await, &now, &sleep).await;
    leases::expired_leases_last_until_they_are_taken_over(&make_default().await, &now, &sleep).await;
    leases::claimed_beginnings_are_taken_over(&make_default().await, &now, &sleep).await;
    tools::tasks_are_left_to_workers_with_their_tool(&make_default().await, now()).await;
    tools::a_dead_run_is_left_to_workers_with_its_tool(&make_default().await, &now, &sleep).await;
    tools::any_worker_claims_what_is_about_to_expire(&make_default().await, &now, &sleep).await;
    leases::tasks_are_released(&make_default().await, now()).await;
    leases::expired_leases_are_found_among_many(&make_default().await, &now, &sleep).await;
    limits::unfinished_tasks_are_limited(&make, now()).await;
    limits::kept_tasks_are_limited(&make, now()).await;
    limits::bytes_are_limited(&make, now()).await;
    limits::bytes_of_owners_are_limited(&make, now()).await;
    limits::floods_stay_within_limits(&make, now()).await;
    lists::owners_see_their_own(&make_default().await, now()).await;
    lists::pages_are_stable(&make_default().await, now()).await;
    expiry::tasks_expire(&make_default().await, &now, &sleep).await;
    expiry::expired_tasks_make_room(&make, &now, &sleep).await;
    changes::changes_are_reported(&make_default().await, now()).await;
    changes::no_change_is_missed_silently(&make_default().await, now()).await;
}

const HOUR: u64 = 60 * 60 * 1000;
const LEASE: Duration = Duration::from_secs(1);
/// More than half of a lease, and less than a lease.
const MOST_OF_A_LEASE: Duration = Duration::from_millis(650);
const LONG_LEASE: Duration = Duration::from_secs(600);

fn id() -> TaskId {
    TaskId::random().expect("randomness")
}

fn owner(number: u8) -> TaskOwner {
    TaskOwner([number; 32])
}

fn task(now: u64, content: impl Into<Bytes>) -> StoredTask {
    StoredTask {
        owner: Some(owner(1)),
        tool: "render".into(),
        expires: now + HOUR,
        is_finished: false,
        content: content.into(),
    }
}

fn queued(id: TaskId, task: &StoredTask) -> NewTask {
    NewTask { id, task: task.clone(), start: TaskStart::Queued }
}

fn claimed(id: TaskId, task: &StoredTask, lease: Duration) -> NewTask {
    NewTask { id, task: task.clone(), start: TaskStart::Claimed { worker: Arc::from("inline"), lease } }
}

/// Inserts a queued task, and returns its id.
async fn insert(store: &impl TaskStore, now: u64, task: &StoredTask) -> TaskId {
    let id = id();
    let inserted = try_insert(store, now, queued(id, task)).await.expect("there is room");
    assert_eq!(inserted, InsertedTask { version: 1, ticket: None }, "nobody runs it yet");
    id
}

async fn try_insert(store: &impl TaskStore, now: u64, new: NewTask) -> Result<InsertedTask, TaskStoreError> {
    store.insert(now, new).await
}

async fn load(store: &impl TaskStore, now: u64, id: TaskId) -> Option<VersionedTask> {
    store.load(now, id).await.expect("the store responds")
}

/// The version of a task that is there.
async fn version(store: &impl TaskStore, now: u64, id: TaskId) -> u64 {
    load(store, now, id).await.expect("the task is there").version
}

async fn replace(store: &impl TaskStore, now: u64, id: TaskId, write: TaskWrite) -> ReplaceOutcome {
    store.replace(now, id, write).await.expect("the store responds")
}

async fn claim(store: &impl TaskStore, now: u64, lease: Duration) -> Option<ClaimedTask> {
    store.claim(now, TaskClaim::new("worker", lease)).await.expect("the store responds")
}

/// Claims a task, which has to be this one.
async fn claim_this(store: &impl TaskStore, now: u64, lease: Duration, id: TaskId) -> TaskTicket {
    let claimed = claim(store, now, lease).await.expect("a task is queued");
    assert_eq!(claimed.ticket.id, id, "it is its turn");
    claimed.ticket
}

async fn renew(store: &impl TaskStore, now: u64, ticket: TaskTicket, lease: Duration) -> bool {
    store.renew(now, ticket, lease).await.expect("the store responds")
}

async fn release(store: &impl TaskStore, now: u64, ticket: TaskTicket) -> bool {
    store.release(now, ticket).await.expect("the store responds")
}

async fn usage(store: &impl TaskStore, now: u64) -> TaskUsage {
    store.usage(now).await.expect("the store responds")
}

/// A write on behalf of a client that leaves the queue alone.
fn write(read: u64, content: impl Into<Bytes>) -> TaskWrite {
    TaskWrite { read, content: content.into(), is_finished: false, queue: QueueAction::Keep, ticket: None }
}

/// A write that ends a task.
fn finish(read: u64, content: impl Into<Bytes>) -> TaskWrite {
    TaskWrite { is_finished: true, queue: QueueAction::Done, ..write(read, content) }
}

fn replaced(outcome: &ReplaceOutcome) -> u64 {
    match outcome {
        ReplaceOutcome::Replaced(version) => *version,
        ReplaceOutcome::Conflict(_) | ReplaceOutcome::LeaseLost | ReplaceOutcome::Gone => {
            panic!("it was not replaced: {outcome:?}")
        }
    }
}
