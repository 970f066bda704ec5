//! How much memory tasks take. Alone in its process, so that nothing else is measured.

use std::alloc::System;
use std::time::Duration;

use cap::Cap;
use futures_util::FutureExt as _;
use mcp_tasks::{
    MemoryTaskStore, NewTask, QueueAction, TaskCall, TaskClaim, TaskId, TaskLimits, TaskOwner, TaskRecord, TaskStart,
    TaskStore, TaskUsage, TaskWrite,
};
use mcp_types::{ElicitRequestFormParams, OrderedMap, RawObject, RequestedSchema, Revision};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const COUNT: usize = 10_000;
const TIME_TO_LIVE: Duration = Duration::from_secs(600);

fn ready<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("it does not wait")
}

fn record(number: usize) -> TaskRecord {
    let params =
        RawObject::parse(&format!(r#"{{"name":"render","arguments":{{"frame":{number}}}}}"#)).expect("an object");
    let mut owner = [0; 32];
    owner[..8].copy_from_slice(&(number / 10).to_ne_bytes());
    let call = TaskCall::new(Revision::V2026_07_28, params);
    TaskRecord::new(TaskId::random().expect("randomness"), "render", call, 0, TIME_TO_LIVE)
        .owner(Some(TaskOwner(owner)))
}

/// A task that waits for input takes little more than its record, and nothing is left of it.
#[test]
fn waiting_tasks_are_small() {
    let store = MemoryTaskStore::new(TaskLimits::default().max_unfinished_per_tool(COUNT));
    let before = ALLOCATOR.allocated();
    let mut bytes = 0;
    for number in 0..COUNT {
        let mut record = record(number);
        let task = record.encode(store.limits()).unwrap();
        let new = NewTask { id: record.id, task, start: TaskStart::Queued };
        ready(store.insert(0, new)).unwrap();
        let ticket = ready(store.claim(0, TaskClaim::new("worker", TIME_TO_LIVE))).unwrap().unwrap().ticket;
        let question = ElicitRequestFormParams::new("Which colour?", RequestedSchema::new(OrderedMap::new())).into();
        record.park(1, vec![("colour".to_owned(), question)], None).unwrap();
        let content = record.encode(store.limits()).unwrap().content;
        bytes += content.len();
        let park = TaskWrite { read: 1, content, is_finished: false, queue: QueueAction::Done, ticket: Some(ticket) };
        ready(store.replace(1, record.id, park)).unwrap();
    }
    let all = (ALLOCATOR.allocated() - before) / COUNT;
    let content = bytes / COUNT;
    println!("a waiting task: {all} bytes, of which {content} are its record");
    assert!(all < content + 500, "{all} bytes, of which {content} are its record");
    let usage = ready(store.usage(2)).unwrap();
    assert_eq!((usage.kept, usage.unfinished, usage.bytes), (COUNT, COUNT, bytes));

    // All of them have expired.
    assert_eq!(ready(store.usage(u64::MAX)).unwrap(), TaskUsage::default());
    let left = ALLOCATOR.allocated() - before;
    assert!(left < 4096, "{left} bytes are left of {COUNT} tasks");
}
