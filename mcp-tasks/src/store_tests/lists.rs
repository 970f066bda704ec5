//! Lists of the tasks of an owner.

use super::{finish, insert, owner, replace, replaced, task};
use crate::{StoredTask, TaskCursor, TaskId, TaskOwner, TaskPage, TaskStore};

async fn list(
    store: &impl TaskStore,
    now: u64,
    owner: TaskOwner,
    after: Option<TaskCursor>,
    count: usize,
) -> (Vec<TaskId>, Option<TaskCursor>) {
    let TaskPage { tasks, next } = store.list(now, owner, after, count).await.expect("the store responds");
    assert!(tasks.len() <= count, "a page has at most {count}");
    for (id, task) in &tasks {
        assert_eq!(task.task.owner, Some(owner), "only its own");
        assert_eq!(Some(task), super::load(store, now, *id).await.as_ref(), "as they are");
    }
    (tasks.into_iter().map(|(id, _)| id).collect(), next)
}

pub(super) async fn owners_see_their_own(store: &impl TaskStore, now: u64) {
    let mut mine = Vec::new();
    for number in 0..6_u8 {
        let owner = [Some(owner(1)), Some(owner(2)), None][usize::from(number % 3)];
        let id = insert(store, now, &StoredTask { owner, ..task(now, number.to_string()) }).await;
        if number % 3 == 0 {
            mine.push(id);
        }
    }
    assert_eq!(list(store, now, owner(1), None, 100).await, (mine.clone(), None), "in the order of creation");
    assert_eq!(list(store, now, owner(2), None, 100).await.0.len(), 2);
    assert_eq!(list(store, now, owner(3), None, 100).await, (Vec::new(), None), "others see nothing");
    replaced(&replace(store, now, mine[0], finish(1, "done")).await);
    while super::claim(store, now, super::LONG_LEASE).await.is_some() {}
    assert_eq!(list(store, now, owner(1), None, 100).await.0, mine, "whatever their status");
    store.remove(now, mine[0]).await.expect("the store responds");
    assert_eq!(list(store, now, owner(1), None, 100).await.0, mine[1..]);
}

pub(super) async fn pages_are_stable(store: &impl TaskStore, now: u64) {
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(insert(store, now, &task(now, "")).await);
        insert(store, now, &StoredTask { owner: Some(owner(9)), ..task(now, "") }).await;
    }
    let (first, next) = list(store, now, owner(1), None, 4).await;
    assert_eq!(first, ids[..4]);
    assert!(next.is_some(), "there are more");
    // Tasks that come and go do not move the others.
    for id in [ids[0], ids[3], ids[5]] {
        store.remove(now, id).await.expect("the store responds");
    }
    ids.push(insert(store, now, &task(now, "")).await);
    let (second, after_second) = list(store, now, owner(1), next, 4).await;
    assert_eq!(second, [ids[4], ids[6], ids[7], ids[8]]);
    let (third, end) = list(store, now, owner(1), after_second, 4).await;
    assert_eq!((third, end), (ids[9..].to_vec(), None), "the last page");
    assert_eq!(list(store, now, owner(1), next, 4).await, (second, after_second), "a cursor can be used again");
    // A page that ends with the last task has no next one.
    assert_eq!(list(store, now, owner(1), None, 8).await.1, None);
    assert_eq!(list(store, now, owner(9), None, 10).await.1, None);
    let beyond = list(store, now, owner(1), Some(TaskCursor(u64::from(u32::MAX))), 4).await;
    assert_eq!(beyond, (Vec::new(), None), "a cursor of nowhere leads to nothing");
}
