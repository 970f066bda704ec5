//! Abuses of a server that are repeated, and what is allocated before and after.

use std::time::Duration;

use mcp_transport_http::{HttpOptions, SessionMode};
use tokio::runtime::Builder;

use crate::arena::{Arena, Room};
use crate::heap::Alone;
use crate::tally::{Repeated, Tally, requested};

/// Has a server mistreated, twice.
pub(crate) fn mistreat(alone: &Alone, name: &str, room: Room, abuse: impl AsyncFn(&Arena) -> Repeated) {
    mistreat_with(alone, name, room, HttpOptions::default(), abuse);
}

/// Has a server mistreated, once, because that takes long enough.
pub(crate) fn mistreat_once(_: &Alone, name: &str, room: Room, abuse: impl AsyncFn(&Arena) -> Repeated) {
    rounds(name, 1, Arena::start(room, HttpOptions::default()), abuse);
}

/// Has a server mistreated, once, that gives clients up which read nothing for a while.
pub(crate) fn mistreat_stalled(
    _: &Alone,
    name: &str,
    room: Room,
    stall_timeout: Duration,
    abuse: impl AsyncFn(&Arena) -> Repeated,
) {
    let arena = Arena::start_with(room, HttpOptions::default(), |server| server.stall_timeout(stall_timeout));
    rounds(name, 1, arena, abuse);
}

/// Has a server with sessions mistreated, which looks for those whose time is over in a task of its own.
pub(crate) fn mistreat_sessions(
    _: &Alone,
    name: &str,
    count: usize,
    options: HttpOptions,
    abuse: impl AsyncFn(&Arena) -> Repeated,
) {
    let room = Room { requests: 64, listeners: 8, connections: 1024 };
    let mut arena = Arena::start(room, options.sessions(SessionMode::Stateful));
    arena.idle_tasks += 1;
    rounds(name, count, arena, abuse);
}

pub(crate) fn mistreat_with(
    _: &Alone,
    name: &str,
    room: Room,
    options: HttpOptions,
    abuse: impl AsyncFn(&Arena) -> Repeated,
) {
    rounds(name, 2, Arena::start(room, options), abuse);
}

fn rounds(name: &str, count: usize, arena: Arena, abuse: impl AsyncFn(&Arena) -> Repeated) {
    let clients = Builder::new_current_thread().enable_all().build().expect("a runtime");
    clients.block_on(async {
        arena.honest().await;
        let round = async || {
            let repeated = abuse(&arena).await;
            arena.honest().await;
            repeated
        };
        compare(name, count, async || arena.is_at_rest().await, round).await;
        arena.has_room().await;
    });
    drop(clients);
    arena.stop();
}

/// What the harness of the tests may allocate meanwhile, in this process: it reports the test before, and starts the next.
const HARNESS: usize = 16 * 1024;

/// Repeats an abuse, and compares what is allocated before and after.
pub(crate) async fn compare(
    name: &str,
    count: usize,
    at_rest: impl AsyncFn() -> usize,
    abuse: impl AsyncFn() -> Repeated,
) {
    // Tables keep the room that they once needed, so the first of several rounds shows what is usual.
    if count > 1 || requested().is_some() {
        abuse().await;
    }
    let before = at_rest().await;
    let mut tally = Tally::start(name, count.max(2) - 1);
    while tally.goes_on() {
        tally.add(abuse().await);
    }
    let after = at_rest().await;
    tally.print(format_args!("{before} bytes before, {after} after"));
    assert!(after <= before + before / 10 + HARNESS, "{name}: {before} bytes were allocated, and now {after}");
}
