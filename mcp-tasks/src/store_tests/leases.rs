//! Leases.

use std::time::Duration;

use super::{
    LEASE, LONG_LEASE, MOST_OF_A_LEASE, claim, claim_this, claimed, finish, id, insert, release, renew, replace,
    replaced, task, try_insert, usage, version, write,
};
use crate::{QueueAction, ReplaceOutcome, TaskStore, TaskWrite};

pub(super) async fn tickets_of_earlier_runs_are_refused(
    store: &impl TaskStore,
    now: &impl Fn() -> u64,
    sleep: &impl AsyncFn(Duration),
) {
    let id = insert(store, now(), &task(now(), "1")).await;
    let dead = claim_this(store, now(), LEASE, id).await;
    sleep(MOST_OF_A_LEASE).await;
    assert_eq!(claim(store, now(), LEASE).await, None, "the lease lasts");
    sleep(MOST_OF_A_LEASE).await;
    let claimed = claim(store, now(), LEASE).await.expect("it can be claimed");
    assert!(claimed.is_taken_over && claimed.ticket.id == id, "its lease has expired");
    let alive = claimed.ticket;
    assert_eq!((dead.run, alive.run), (1, 2), "it is taken over");
    assert_eq!(claim(store, now(), LEASE).await, None, "by one");
    // The worker was not dead, only slow.
    assert!(!renew(store, now(), dead, LEASE).await);
    assert!(!release(store, now(), dead).await);
    for (queue, is_finished) in [
        (QueueAction::Keep, false),
        (QueueAction::Done, false),
        (QueueAction::Enqueue, false),
        (QueueAction::Done, true),
    ] {
        let late = TaskWrite { ticket: Some(dead), queue, is_finished, ..write(1, "late") };
        assert_eq!(replace(store, now(), id, late).await, ReplaceOutcome::LeaseLost);
    }
    assert_eq!(version(store, now(), id).await, 1, "nothing was written");
    assert!(renew(store, now(), alive, LEASE).await, "and nothing was taken away");
    let end = TaskWrite { ticket: Some(alive), ..finish(1, "done") };
    replaced(&replace(store, now(), id, end).await);
}

pub(super) async fn leases_are_renewed(store: &impl TaskStore, now: &impl Fn() -> u64, sleep: &impl AsyncFn(Duration)) {
    let renewed = insert(store, now(), &task(now(), "renewed")).await;
    let ticket = claim_this(store, now(), LEASE, renewed).await;
    for _ in 0..4 {
        sleep(MOST_OF_A_LEASE).await;
        assert!(renew(store, now(), ticket, LEASE).await, "it runs");
        assert_eq!(claim(store, now(), LEASE).await, None, "it runs");
    }
    sleep(2 * MOST_OF_A_LEASE).await;
    let next = claim_this(store, now(), LEASE, renewed).await;
    assert_eq!(next.run, 2, "without renewal it is taken over");
}

/// The time alone takes nothing away: a worker that was delayed goes on, unless another one has begun.
pub(super) async fn expired_leases_last_until_they_are_taken_over(
    store: &impl TaskStore,
    now: &impl Fn() -> u64,
    sleep: &impl AsyncFn(Duration),
) {
    let id = insert(store, now(), &task(now(), "1")).await;
    let ticket = claim_this(store, now(), LEASE, id).await;
    sleep(2 * MOST_OF_A_LEASE).await;
    let step = TaskWrite { ticket: Some(ticket), ..write(1, "2") };
    replaced(&replace(store, now(), id, step).await);
    assert!(renew(store, now(), ticket, LEASE).await, "nobody has taken it over");
    assert_eq!(claim(store, now(), LEASE).await, None, "and the lease lasts again");
    sleep(2 * MOST_OF_A_LEASE).await;
    let (first, second) = (claim(store, now(), LEASE).await, claim(store, now(), LEASE).await);
    assert!(first.is_some() && second.is_none(), "one takes it over");
}

pub(super) async fn claimed_beginnings_are_taken_over(
    store: &impl TaskStore,
    now: &impl Fn() -> u64,
    sleep: &impl AsyncFn(Duration),
) {
    let id = id();
    let inserted = try_insert(store, now(), claimed(id, &task(now(), "1"), LEASE)).await.expect("there is room");
    let ticket = inserted.ticket.expect("it is claimed");
    sleep(MOST_OF_A_LEASE).await;
    assert!(renew(store, now(), ticket, LEASE).await);
    sleep(MOST_OF_A_LEASE).await;
    assert_eq!(claim(store, now(), LEASE).await, None, "it was renewed");
    // In some stores a claim that finds it for the first time begins its lease anew.
    sleep(2 * MOST_OF_A_LEASE).await;
    let next = claim_this(store, now(), LEASE, id).await;
    assert_eq!((next.run, renew(store, now(), ticket, LEASE).await), (2, false));
}

pub(super) async fn tasks_are_released(store: &impl TaskStore, now: u64) {
    let id = insert(store, now, &task(now, "1")).await;
    let ticket = claim_this(store, now, LONG_LEASE, id).await;
    assert!(release(store, now, ticket).await);
    assert_eq!((usage(store, now).await.queued, usage(store, now).await.claimed), (1, 0));
    assert!(!release(store, now, ticket).await, "but not twice");
    assert!(!renew(store, now, ticket, LONG_LEASE).await);
    let late = TaskWrite { ticket: Some(ticket), ..write(1, "late") };
    assert_eq!(replace(store, now, id, late).await, ReplaceOutcome::LeaseLost);
    let next = claim_this(store, now, LONG_LEASE, id).await;
    assert_eq!(next.run, 2, "it can be claimed at once");
    assert_eq!(claim(store, now, LONG_LEASE).await, None, "by one");
}

/// However many tasks run: a dead one is found.
pub(super) async fn expired_leases_are_found_among_many(
    store: &impl TaskStore,
    now: &impl Fn() -> u64,
    sleep: &impl AsyncFn(Duration),
) {
    let mut tickets = Vec::new();
    for _ in 0..60 {
        let id = insert(store, now(), &task(now(), "")).await;
        tickets.push(claim_this(store, now(), LEASE, id).await);
    }
    sleep(MOST_OF_A_LEASE).await;
    let dead = tickets.remove(47);
    for ticket in &tickets {
        assert!(renew(store, now(), *ticket, LEASE).await);
    }
    sleep(MOST_OF_A_LEASE).await;
    let queued = insert(store, now(), &task(now(), "new")).await;
    let (first, second) = (claim(store, now(), LEASE).await, claim(store, now(), LEASE).await);
    let mut found = [first, second].map(|claimed| claimed.expect("a task can be claimed").ticket.id);
    found.sort();
    let mut expected = [dead.id, queued];
    expected.sort();
    assert_eq!(found, expected, "the dead one and the new one");
    assert_eq!(claim(store, now(), LEASE).await, None, "all others run");
}
