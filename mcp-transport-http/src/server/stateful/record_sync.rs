//! Sessions that outlive the process: their records in a store that others read as well.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use mcp_kernel::server::SessionState;
use mcp_server::{Connection, Principal, Server};
use mcp_session::{Lease, Refused, Saved, SessionId, SessionRecord, SessionStore, StoreError, Version, Versioned};
use mcp_types::RawObject;
use tokio::time::Instant;

use super::session::Session;
use super::sessions::refusal;
use crate::server::refusal::Refusal;

/// Keeps the records of sessions.
#[derive(Clone)]
pub(crate) struct RecordSync {
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) time_to_live: Duration,
}

/// What is known about the record of a session.
pub(crate) struct RecordState(Mutex<Inner>);

struct Inner {
    /// Without the parameters of `initialize`, which the connection has.
    record: SessionRecord,
    version: Version,
    /// When the store last heard from here that the session is in use.
    touched: Option<Instant>,
}

impl RecordState {
    pub(crate) fn new(mut record: SessionRecord, version: Version) -> Self {
        record.initialize = RawObject::empty();
        Self(Mutex::new(Inner { record, version, touched: None }))
    }

    fn read(&self) -> (SessionRecord, Version) {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (inner.record.clone(), inner.version)
    }

    fn set(&self, mut record: SessionRecord, version: Version) {
        record.initialize = RawObject::empty();
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody else may have been told of a later one.
        if version >= inner.version {
            (inner.record, inner.version) = (record, version);
        }
    }

    /// Whether there was a record once.
    pub(crate) fn is_saved(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).version > Version::NONE
    }

    /// Whether the store has to hear that the session is in use: not every time, but in time.
    fn is_due(&self, time_to_live: Duration) -> bool {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.touched.is_none_or(|touched| touched.elapsed() >= time_to_live / 10)
    }

    fn set_touched(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).touched = Some(Instant::now());
    }
}

impl RecordSync {
    /// Makes the record of a new session.
    pub(crate) async fn begin(&self, session: &Session) -> Result<(), Refusal> {
        let Some(record_state) = &session.record_state else { return Ok(()) };
        let (mut record, version) = record_state.read();
        record.initialize = session.initialize_params();
        match self.store.save(session.id, record.clone(), version, self.time_to_live).await.map_err(unavailable)? {
            Saved::As(version) => record_state.set(record, version),
            // Nobody else can have guessed the name.
            Saved::Not(_) => return Err(unavailable(StoreError("there is another session of this name".to_owned()))),
        }
        Ok(())
    }

    /// Finds the record of a session.
    pub(crate) async fn load(&self, id: SessionId) -> Result<Option<Versioned>, Refusal> {
        self.store.load(id).await.map_err(unavailable)
    }

    /// Forgets a session that has ended.
    pub(crate) async fn forget(&self, id: SessionId) -> Result<(), Refusal> {
        self.store.remove(id).await.map(drop).map_err(unavailable)
    }

    /// Takes over what was settled elsewhere.
    pub(crate) fn refresh(&self, session: &Session, found: Versioned) {
        if let Some(record_state) = &session.record_state {
            take_over(session, record_state, found);
        }
    }

    /// Says that a session is in use, if that is due; returns whether there is a record of it, as far as is known.
    pub(crate) async fn touch(&self, session: &Session) -> Result<bool, Refusal> {
        let Some(record_state) =
            session.record_state.as_ref().filter(|record_state| record_state.is_due(self.time_to_live))
        else {
            return Ok(true);
        };
        let is_there = self.store.touch(session.id, self.time_to_live).await.map_err(unavailable)?;
        record_state.set_touched();
        Ok(is_there)
    }

    /// Says that a session is in use for which nothing is asked now; returns whether it has ended elsewhere.
    pub(crate) async fn has_ended(&self, session: &Session) -> bool {
        match self.store.touch(session.id, self.time_to_live).await {
            Ok(is_there) => {
                session.record_state.iter().for_each(|record_state| record_state.set_touched());
                !is_there
            }
            Err(error) => {
                // There is time for more attempts.
                tracing::warn!(target: "mcp", %error, "the store does not hear that a session is in use");
                false
            }
        }
    }

    /// Saves what a request has settled, if anything; who settled something else meanwhile is heard as well.
    pub(crate) async fn save(&self, session: &Lease<Session>) -> Result<(), Refusal> {
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
            match self.store.save(session.id, record.clone(), version, self.time_to_live).await.map_err(unavailable)? {
                Saved::As(version) => {
                    record_state.set(record, version);
                    record_state.set_touched();
                    return Ok(());
                }
                Saved::Not(Some(theirs)) => take_over(session, record_state, *theirs),
                // It has ended elsewhere.
                Saved::Not(None) => return Err(refusal(&Refused::Unknown)),
            }
        }
        Err(unavailable(StoreError("too many change the session at once".to_owned())))
    }
}

/// Takes over what was settled elsewhere, and keeps what was settled here and is not saved yet.
///
/// What is known of the record changes together with the session, or else what one of them has and the other has not
/// would be taken for something that the client wants.
fn take_over(session: &Session, record_state: &RecordState, found: Versioned) {
    let _state = session.lock();
    let (base, version) = record_state.read();
    if found.version <= version {
        return;
    }
    if let Some(ours) = session.connection.session_state() {
        session.connection.refresh(merge(&state_of(&base), ours, state_of(&found.record)));
    }
    record_state.set(found.record, found.version);
}

/// How often a change is tried again because somebody else was faster.
const ATTEMPTS: usize = 8;

/// A connection that goes on with a session, if its record makes sense.
pub(crate) fn resume(server: &Server, record: &SessionRecord) -> Result<Connection, Refusal> {
    Connection::resume(server, record.initialize.clone(), state_of(record))
        .map_err(|fault| unavailable(StoreError(fault.to_string())))
}

/// What is to be known about the record of a session that begins.
pub(crate) fn begin(connection: &Connection, principal: Option<Principal>) -> Option<RecordState> {
    let state = connection.session_state()?;
    let record = SessionRecord::new(RawObject::empty(), state.revision, principal);
    Some(RecordState::new(with_state(record, state), Version::NONE))
}

fn state_of(record: &SessionRecord) -> SessionState {
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

/// Puts what was settled here on top of what was settled elsewhere since both were the same.
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

/// What clients are told when the store does not answer: it is not their fault, and may be better soon.
fn unavailable(error: StoreError) -> Refusal {
    tracing::error!(target: "mcp", %error, "a session cannot be served");
    Refusal::busy(StatusCode::SERVICE_UNAVAILABLE, "the store of sessions does not answer", Duration::from_secs(1))
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
