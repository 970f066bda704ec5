//! Session records in a store that several processes share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use mcp_kernel::server::SessionState;
use mcp_server::{Connection, Network, Principal, Server};
use mcp_session::{
    RecordVersion, SaveOutcome, SessionError, SessionId, SessionLease, SessionRecord, SessionStore, StoreError,
    VersionedRecord,
};
use mcp_types::RawObject;
use tokio::time::Instant;

use super::session::Session;
use super::sessions::refusal;
use crate::server::refusal::Refusal;

/// Synchronises sessions with their records in the store.
#[derive(Clone)]
pub(crate) struct RecordSync {
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) time_to_live: Duration,
}

/// The last known state of a session's record.
pub(crate) struct RecordState(Mutex<Inner>);

struct Inner {
    /// Without the `initialize` parameters, which the connection has.
    record: SessionRecord,
    version: RecordVersion,
    /// Until when this process has last extended the record's lifetime.
    lives_until: Option<Instant>,
}

impl RecordState {
    pub(crate) fn new(mut record: SessionRecord, version: RecordVersion) -> Self {
        record.initialize = RawObject::empty();
        Self(Mutex::new(Inner { record, version, lives_until: None }))
    }

    fn read(&self) -> (SessionRecord, RecordVersion) {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (inner.record.clone(), inner.version)
    }

    fn set(&self, mut record: SessionRecord, version: RecordVersion) {
        record.initialize = RawObject::empty();
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A concurrent request may have read a later version.
        if version >= inner.version {
            (inner.record, inner.version) = (record, version);
        }
    }

    /// Whether the record was saved.
    pub(crate) fn is_saved(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).version > RecordVersion::NONE
    }

    /// Whether the record's lifetime has to be extended, which is not done for every request.
    fn is_due(&self, time_to_live: Duration) -> bool {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.lives_until.is_none_or(|until| until.duration_since(Instant::now()) <= time_to_live / 10 * 9)
    }

    fn set_touched(&self, time_to_live: Duration) {
        let lives_until = Instant::now().checked_add(time_to_live);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).lives_until = lives_until;
    }
}

impl RecordSync {
    /// Returns how long the record of a session lives after a request: not longer than its token.
    fn time_to_live_of(&self, session: &Session) -> Duration {
        let remaining = session.deadline().map(|deadline| deadline.duration_since(Instant::now()));
        remaining.map_or(self.time_to_live, |remaining| remaining.max(MIN_TIME_TO_LIVE).min(self.time_to_live))
    }

    /// Saves the record of a new session.
    pub(crate) async fn save_new(&self, session: &Session) -> Result<(), Refusal> {
        let Some(record_state) = &session.record_state else { return Ok(()) };
        let (mut record, version) = record_state.read();
        record.initialize = session.initialize_params();
        let time_to_live = self.time_to_live_of(session);
        match self.store.save(session.id(), record.clone(), version, time_to_live).await.map_err(unavailable)? {
            SaveOutcome::Saved(version) => record_state.set(record, version),
            // Session ids are random, so there cannot be another record.
            SaveOutcome::Conflict(_) => {
                return Err(unavailable(StoreError("there is already a session with this id".to_owned())));
            }
        }
        Ok(())
    }

    /// Loads the record of a session.
    pub(crate) async fn load(&self, id: SessionId) -> Result<Option<VersionedRecord>, Refusal> {
        self.store.load(id).await.map_err(unavailable)
    }

    /// Removes the record of a session that has ended.
    pub(crate) async fn forget(&self, id: SessionId) -> Result<(), Refusal> {
        self.store.remove(id).await.map(drop).map_err(unavailable)
    }

    /// Applies the changes of another process.
    pub(crate) fn refresh(&self, session: &Session, found: VersionedRecord) {
        if let Some(record_state) = &session.record_state {
            merge_record(session, record_state, found);
        }
    }

    /// Extends the record's lifetime, if that is due. Returns `false` if there is no record any more.
    pub(crate) async fn touch(&self, session: &Session) -> Result<bool, Refusal> {
        let time_to_live = self.time_to_live_of(session);
        let Some(record_state) = session.record_state.as_ref().filter(|record_state| record_state.is_due(time_to_live))
        else {
            return Ok(true);
        };
        let is_there = self.store.touch(session.id(), time_to_live).await.map_err(unavailable)?;
        record_state.set_touched(time_to_live);
        Ok(is_there)
    }

    /// Extends the record's lifetime. Returns whether another process has deleted the session.
    pub(crate) async fn has_ended(&self, session: &Session) -> bool {
        let Some(record_state) = &session.record_state else { return false };
        let (deadline, time_to_live) = (session.deadline(), self.time_to_live_of(session));
        let is_over = deadline.is_some_and(|deadline| deadline <= Instant::now());
        // A token limits the lifetime, but another process may have seen a newer one, and have extended it further.
        let is_there = match deadline.is_none() || !is_over && record_state.is_due(time_to_live) {
            true => {
                let touched = self.store.touch(session.id(), time_to_live).await;
                touched.inspect(|_| record_state.set_touched(time_to_live))
            }
            false => self.store.load(session.id()).await.map(|record| record.is_some()),
        };
        match is_there {
            // If the record has expired with the token, requests in flight may finish.
            Ok(is_there) => !is_there && !is_over,
            Err(error) => {
                // The record lives long enough for further attempts.
                tracing::warn!(target: "mcp", %error, "cannot extend the lifetime of a session record");
                false
            }
        }
    }

    /// Saves the changes of a request, if any, and merges them with changes of other processes.
    pub(crate) async fn save(&self, session: &SessionLease<Session>) -> Result<(), Refusal> {
        let Some(record_state) = &session.record_state else { return Ok(()) };
        for _ in 0..ATTEMPTS {
            let (settled, base, version) = {
                let _state = session.lock();
                let (base, version) = record_state.read();
                (session.connection.session_state(), base, version)
            };
            let Some(settled) = settled.filter(|settled| *settled != state_of(&base)) else { return Ok(()) };
            let mut record = with_state(base, settled);
            record.initialize = session.initialize_params();
            let time_to_live = self.time_to_live_of(session);
            match self.store.save(session.id(), record.clone(), version, time_to_live).await.map_err(unavailable)? {
                SaveOutcome::Saved(version) => {
                    record_state.set(record, version);
                    record_state.set_touched(time_to_live);
                    return Ok(());
                }
                SaveOutcome::Conflict(Some(theirs)) => merge_record(session, record_state, *theirs),
                // Another process has deleted it.
                SaveOutcome::Conflict(None) => return Err(refusal(&SessionError::Unknown)),
            }
        }
        Err(unavailable(StoreError("too many concurrent changes of the session".to_owned())))
    }
}

/// Applies the changes of another process, and keeps changes of this one that are not saved yet.
///
/// The record state and the session change under one lock: otherwise a difference between them would look like a change
/// made by the client.
fn merge_record(session: &Session, record_state: &RecordState, found: VersionedRecord) {
    let state = session.lock();
    let (base, version) = record_state.read();
    if found.version <= version {
        return;
    }
    if let Some(ours) = session.connection.session_state() {
        session.connection.refresh(merge(&state_of(&base), ours, state_of(&found.record)));
    }
    record_state.set(found.record, found.version);
    drop(state);
    session.connection.wake_refreshed();
}

/// Stores need not accept records that have expired already.
const MIN_TIME_TO_LIVE: Duration = Duration::from_secs(1);

/// How many times a save is retried after a concurrent change.
const ATTEMPTS: usize = 8;

/// Creates a connection that continues the session of a record, without its subscriptions: the application may refuse the
/// session, and is notified of them after that.
pub(crate) fn resume(server: &Server, record: &SessionRecord) -> Result<Connection, Refusal> {
    let mut state = state_of(record);
    state.subscriptions.clear();
    Connection::resume(server, record.initialize.clone(), state)
        .map(|connection| connection.network(Network::Http).principal(record.principal.clone()))
        .map_err(|fault| unavailable(StoreError(fault.to_string())))
}

/// Creates the record state of a new session.
pub(crate) fn new_state(connection: &Connection, principal: Option<Principal>) -> Option<RecordState> {
    let state = connection.session_state()?;
    let record = SessionRecord::new(RawObject::empty(), state.revision, principal);
    Some(RecordState::new(with_state(record, state), RecordVersion::NONE))
}

/// Returns the state of the session in a record.
pub(crate) fn state_of(record: &SessionRecord) -> SessionState {
    let mut state = SessionState::new(record.revision);
    state.is_ready = record.is_ready;
    state.log_level = record.log_level;
    state.subscriptions.clone_from(&record.subscriptions);
    state.subscriptions.sort_unstable();
    state
}

fn with_state(mut record: SessionRecord, state: SessionState) -> SessionRecord {
    record.is_ready = state.is_ready;
    record.log_level = state.log_level;
    record.subscriptions = state.subscriptions;
    record
}

/// Merges the changes of this process since `base` into the state of another.
fn merge(base: &SessionState, ours: SessionState, mut theirs: SessionState) -> SessionState {
    theirs.is_ready |= ours.is_ready;
    if ours.log_level != base.log_level {
        theirs.log_level = ours.log_level;
    }
    theirs.subscriptions.retain(|uri| ours.subscriptions.contains(uri) || !base.subscriptions.contains(uri));
    for uri in ours.subscriptions {
        if !base.subscriptions.contains(&uri) && !theirs.subscriptions.contains(&uri) {
            theirs.subscriptions.push(uri);
        }
    }
    theirs
}

/// Refuses a request with 503 because the session store failed.
fn unavailable(error: StoreError) -> Refusal {
    tracing::error!(target: "mcp", %error, "session store failed");
    Refusal::busy(
        StatusCode::SERVICE_UNAVAILABLE,
        "the session store is unavailable: try again later",
        Duration::from_secs(1),
    )
}

#[cfg(test)]
mod tests {
    use mcp_types::{LoggingLevel, Revision};

    use super::*;

    fn state(level: LoggingLevel, subscriptions: &[&str]) -> SessionState {
        let mut state = SessionState::new(Revision::V2025_11_25);
        state.log_level = level;
        state.subscriptions = subscriptions.iter().map(|uri| (*uri).to_owned()).collect();
        state
    }

    /// What two instances settle at the same time is settled by both.
    // covers: RB-54
    #[test]
    fn changes_of_both_are_kept() {
        let base = state(LoggingLevel::Info, &["a:1", "a:2"]);
        let ours = state(LoggingLevel::Error, &["a:1", "a:3"]);
        let mut theirs = state(LoggingLevel::Info, &["a:1", "a:2", "a:4"]);
        theirs.is_ready = true;
        let merged = merge(&base, ours, theirs);
        assert_eq!((merged.log_level, merged.is_ready), (LoggingLevel::Error, true));
        assert_eq!(merged.subscriptions, ["a:1", "a:4", "a:3"]);
    }
}
