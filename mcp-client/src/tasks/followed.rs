//! The tasks that a client follows, and what arrives for them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::meta::key;
use serde::Deserialize;

use crate::context::CallContext;
use crate::state::Shared;

/// The tasks that are followed, by their id. Several followers may have the same one.
#[derive(Default)]
pub(crate) struct FollowedTasks {
    all: BTreeMap<FollowerKey, FollowedTask>,
    last_key: u64,
    /// Number of streams of `subscriptions/listen` for tasks.
    streams: usize,
    /// Whether the server has refused such a stream.
    is_polled_only: bool,
}

/// The id of a task, and a number for each of its followers.
type FollowerKey = (Arc<str>, u64);

struct FollowedTask {
    /// What the caller attached to the call that created the task.
    context: CallContext,
    /// The latest notification that was not taken yet.
    latest: Option<PayloadBuf>,
    waker: Option<Waker>,
}

/// The member of notifications, and of `related-task` metadata, that names a task.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskId {
    task_id: String,
}

impl FollowedTasks {
    /// Passes a notification to those who follow its task; returns the tasks to wake, or `None` if there are none.
    pub(crate) fn notify(&mut self, params: &PayloadBuf) -> Option<Vec<Waker>> {
        if self.all.is_empty() {
            return None;
        }
        let id: String = serde_json::from_str(params.get("taskId")?.get()).ok()?;
        let mut wakers = None;
        for (_, task) in self.all.range_mut(of_id(&id)) {
            task.latest = Some(params.clone());
            wakers.get_or_insert_with(Vec::new).extend(task.waker.take());
        }
        wakers
    }

    /// Forgets what an earlier server has refused.
    pub(crate) fn connected(&mut self) {
        self.is_polled_only = false;
    }

    /// Records that the server has no streams for tasks.
    pub(super) fn streams_refused(&mut self) {
        self.is_polled_only = true;
    }

    /// Returns what is attached to the call that has become a task.
    pub(crate) fn context_of(&self, id: &str) -> Option<CallContext> {
        let (_, task) = self.all.range(of_id(id)).next()?;
        Some(task.context.clone())
    }
}

/// Returns the range of the keys of a task.
fn of_id(id: &str) -> RangeInclusive<FollowerKey> {
    let id: Arc<str> = id.into();
    (Arc::clone(&id), 0)..=(id, u64::MAX)
}

/// Returns the task that a message of 2025-11-25 belongs to.
pub(crate) fn related_task(payload: &PayloadBuf) -> Option<String> {
    let meta: BTreeMap<String, &serde_json::value::RawValue> =
        serde_json::from_str(payload.get("_meta")?.get()).ok()?;
    let related: TaskId = serde_json::from_str(meta.get(key::RELATED_TASK)?.get()).ok()?;
    Some(related.task_id)
}

/// The registration of a follower, which ends when it is dropped.
pub(super) struct Registration {
    shared: Arc<Shared>,
    key: FollowerKey,
    has_stream: bool,
}

impl Registration {
    pub(super) fn new(shared: &Arc<Shared>, id: &Arc<str>, context: &CallContext) -> Self {
        let task = FollowedTask { context: context.clone(), latest: None, waker: None };
        let key = shared.with(|core, _| {
            let followed = &mut core.followed_tasks;
            followed.last_key += 1;
            let key = (Arc::clone(id), followed.last_key);
            followed.all.insert(key.clone(), task);
            key
        });
        Self { shared: Arc::clone(shared), key, has_stream: false }
    }

    /// Takes the latest notification.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<PayloadBuf> {
        self.shared.with(|core, _| {
            let Some(task) = core.followed_tasks.all.get_mut(&self.key) else { return Poll::Pending };
            match task.latest.take() {
                Some(latest) => Poll::Ready(latest),
                None => {
                    task.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
    }

    /// Reserves a stream for notifications; returns whether there may be one.
    pub(super) fn reserve_stream(&mut self) -> bool {
        let limit = self.shared.settings.max_task_streams;
        self.has_stream = self.has_stream
            || self.shared.with(|core, _| {
                let followed = &mut core.followed_tasks;
                let is_free = followed.streams < limit && !followed.is_polled_only;
                followed.streams += usize::from(is_free);
                is_free
            });
        self.has_stream
    }

    /// Returns the reserved stream.
    pub(super) fn release_stream(&mut self) {
        if std::mem::take(&mut self.has_stream) {
            self.shared.with(|core, _| core.followed_tasks.streams -= 1);
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.release_stream();
        // Its values are dropped after the lock is released.
        drop(self.shared.with(|core, _| core.followed_tasks.all.remove(&self.key)));
    }
}
