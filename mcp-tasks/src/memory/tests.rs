//! What is particular to the store in memory.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use futures_util::FutureExt as _;

use super::*;
use crate::store_tests::check_task_store;
use crate::{QueueAction, StoredTask};

fn insert(store: &MemoryTaskStore, now: u64, expires: u64) -> TaskId {
    let (id, owner) = (TaskId::random().unwrap(), Some(TaskOwner([1; 32])));
    let task = StoredTask { owner, tool: "a".into(), expires, is_finished: false, content: "content".into() };
    let new = NewTask { id, task, start: TaskStart::Queued };
    store.insert(now, new).now_or_never().expect("it does not wait").unwrap();
    id
}

#[tokio::test]
async fn it_is_a_store_of_tasks() {
    let now = Cell::new(1_000_000);
    let sleep = async |time: Duration| now.set(now.get() + u64::try_from(time.as_millis()).unwrap());
    check_task_store(async |limits| MemoryTaskStore::new(limits), || now.get(), sleep).await;
}

/// The tables are empty when all tasks have expired: the next call removes them, whatever it is for.
#[test]
fn expired_tasks_take_no_memory() {
    let store = MemoryTaskStore::new(TaskLimits::default().max_unfinished_per_owner(1000));
    for number in 0..100 {
        insert(&store, 0, 10 + number % 2);
    }
    let claimed = store.claim(0, TaskClaim::new("worker", Duration::from_secs(1))).now_or_never().unwrap().unwrap();
    assert!(claimed.is_some());
    assert_eq!(store.usage(10).now_or_never().unwrap().unwrap().kept, 50);
    assert_eq!(store.usage(11).now_or_never().unwrap(), Ok(TaskUsage::default()));
    assert!(store.0.tables.lock().unwrap().is_empty());
}

/// A woken subscriber can use the store at once, so no lock is held while it is woken.
#[test]
fn subscribers_are_woken_without_a_lock() {
    struct Reader(MemoryTaskStore, AtomicUsize);
    impl Wake for Reader {
        fn wake(self: Arc<Self>) {
            assert!(self.0.0.tables.try_lock().is_ok(), "it is not locked");
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    let store = MemoryTaskStore::default();
    let reader = Arc::new(Reader(store.clone(), AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&reader));
    let id = insert(&store, 0, 10);
    let write = |read, queue| TaskWrite { read, content: "x".into(), is_finished: false, queue, ticket: None };
    let calls: [&dyn Fn(); 4] = [
        &|| assert_ne!(insert(&store, 0, 10), id),
        &|| drop(store.replace(0, id, write(1, QueueAction::Done)).now_or_never()),
        &|| drop(store.replace(0, id, write(2, QueueAction::Enqueue)).now_or_never()),
        &|| drop(store.remove(0, id).now_or_never()),
    ];
    for (number, call) in calls.iter().enumerate() {
        let mut changes = store.changes();
        let mut next = std::pin::pin!(changes.next());
        assert!(next.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        call();
        assert_eq!(reader.1.load(Ordering::Relaxed), number + 1, "each of them is reported");
    }
}
