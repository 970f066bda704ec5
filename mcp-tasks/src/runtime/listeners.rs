//! Notifications of tasks to clients of this process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_server::tasks::TaskListener;
use mcp_server::{ConnectionHandle, WeakConnectionHandle};
use mcp_types::Method;
use tokio::sync::Notify;

use crate::runtime::write::{self, Backoff};
use crate::runtime::{Shared, Stage};
use crate::wire::{core, extension};
use crate::{TaskChange, TaskChanges, TaskId, TaskRecord, TaskStoreError};

/// The clients that want to know about tasks.
#[derive(Default)]
pub(crate) struct Listeners {
    state: Mutex<State>,
    has_due: Notify,
}

#[derive(Default)]
struct State {
    /// The listen streams of modern clients.
    streams: BTreeMap<TaskId, Vec<TaskListener>>,
    /// The sessions of clients of 2025-11-25 that created tasks here.
    sessions: BTreeMap<TaskId, Session>,
    /// The number of sessions above which those are removed that have ended, or whose task has expired.
    next_purge: usize,
    /// The tasks whose state has to be sent.
    due: BTreeSet<TaskId>,
}

/// The session that created a task.
#[derive(Clone)]
struct Session {
    connection: WeakConnectionHandle,
    /// When the task expires, which stores do not announce.
    expires: u64,
}

impl Listeners {
    /// Adds a listen stream, which gets the state of its tasks first: it may have changed since the stream was requested.
    pub(crate) fn add(&self, listener: &TaskListener, ids: impl Iterator<Item = TaskId>) {
        let mut state = self.lock();
        for id in ids {
            let streams = state.streams.entry(id).or_default();
            if !streams.iter().any(|other| other.is_same(listener)) {
                streams.push(listener.clone());
            }
            state.due.insert(id);
        }
        drop(state);
        self.has_due.notify_one();
    }

    pub(crate) fn remove(&self, listener: &TaskListener, ids: impl Iterator<Item = TaskId>) {
        let mut state = self.lock();
        for id in ids {
            if let Some(streams) = state.streams.get_mut(&id) {
                streams.retain(|other| !other.is_same(listener));
                if streams.is_empty() {
                    state.streams.remove(&id);
                }
            }
        }
    }

    /// Adds the session of a client of 2025-11-25 that created a task. It gets the state first: the task may have changed since it
    /// was inserted.
    pub(crate) fn add_session(&self, now: u64, record: &TaskRecord, connection: &ConnectionHandle) {
        // Without a session no notification can be sent later.
        if connection.scratch().is_err() {
            return;
        }
        let mut state = self.lock();
        let session = Session { connection: connection.downgrade(), expires: record.expires };
        state.sessions.insert(record.id, session);
        if state.sessions.len() > state.next_purge.max(MIN_PURGE) {
            state.sessions.retain(|_, session| session.expires > now && session.connection.upgrade().is_some());
            state.next_purge = state.sessions.len() * 2;
        }
        state.due.insert(record.id);
        drop(state);
        self.has_due.notify_one();
    }

    fn handle(&self, change: TaskChange) {
        let mut state = self.lock();
        match change {
            TaskChange::Changed(id) if state.streams.contains_key(&id) || state.sessions.contains_key(&id) => {
                state.due.insert(id);
            }
            TaskChange::Gap => {
                let State { streams, sessions, due, .. } = &mut *state;
                due.extend(streams.keys().chain(sessions.keys()));
            }
            TaskChange::Changed(_) | TaskChange::Queued => return,
        }
        drop(state);
        self.has_due.notify_one();
    }

    fn take_due(&self) -> BTreeSet<TaskId> {
        std::mem::take(&mut self.lock().due)
    }

    /// Sends the state of a task to all that listen to it.
    fn notify(&self, id: TaskId, record: Option<&TaskRecord>) {
        let mut state = self.lock();
        let streams = state.streams.get(&id).cloned().unwrap_or_default();
        let is_over = record.is_none_or(TaskRecord::is_finished);
        let session = if is_over { state.sessions.remove(&id) } else { state.sessions.get(&id).cloned() };
        drop(state);
        let Some(record) = record else { return };
        if !streams.is_empty() {
            let params = extension::notification(record);
            let ended: Vec<_> = streams.into_iter().filter(|stream| !stream.notify(&params)).collect();
            ended.iter().for_each(|stream| self.remove(stream, std::iter::once(id)));
        }
        if let Some(session) = session.and_then(|session| session.connection.upgrade()) {
            session.notify(&Method::NOTIFICATIONS_TASKS_STATUS, &core::notification(record));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of sessions up to which none is removed.
const MIN_PURGE: usize = 1000;

/// Passes the changes of the store on, until the shutdown.
pub(crate) async fn distribute(shared: Arc<Shared>, mut changes: TaskChanges) {
    let pass_on = async {
        while let Some(change) = changes.next().await {
            shared.hub.handle(change);
            shared.listeners.handle(change);
        }
    };
    tokio::select! {
        () = pass_on => {}
        () = released(&shared) => {}
    }
}

/// Notifies clients of the tasks that have changed, until the shutdown.
pub(crate) async fn publish(shared: Arc<Shared>) {
    let publish = async {
        loop {
            shared.listeners.has_due.notified().await;
            for id in shared.listeners.take_due() {
                notify(&shared, id).await;
            }
        }
    };
    tokio::select! {
        () = publish => {}
        () = released(&shared) => {}
    }
}

/// Loads a task, and sends its state. No change is lost while the store does not respond; a record that cannot be read, such as
/// that of a newer version, is left out.
async fn notify(shared: &Arc<Shared>, id: TaskId) {
    let mut backoff = Backoff::default();
    loop {
        match write::load(shared, id).await {
            Ok(read) => return shared.listeners.notify(id, read.as_ref().map(|read| &read.record)),
            Err(error) => {
                tracing::warn!(target: "mcp", %error, "clients cannot be notified of a task");
                if !matches!(error, TaskStoreError::Failed(_)) {
                    return;
                }
                backoff.wait().await;
            }
        }
    }
}

/// Waits until the server was dropped, and no task runs any more. Requests are served after a shutdown.
pub(crate) async fn released(shared: &Shared) {
    shared.reached(Stage::Stopped).await;
    let _ = shared.running.subscribe().wait_for(|count| *count == 0).await;
    while shared.server().is_some() {
        tokio::time::sleep(RELEASE_INTERVAL).await;
    }
}

/// How often it is looked at whether the server was dropped, after the shutdown of its tasks.
const RELEASE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);
