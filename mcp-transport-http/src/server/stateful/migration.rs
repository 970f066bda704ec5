//! Sessions that this process resumes from the session store.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::request::Parts;
use mcp_server::{BoxFuture, ConnectionHandle, Principal, Server};
use mcp_session::{EndReason, SessionId, SessionLease, SessionRecord, VersionedRecord};
use tokio::sync::Notify;

use super::record_sync::{self, RecordState};
use super::session::Session;
use super::sessions::{Sessions, tear_down};
use crate::server::head::caller;
use crate::server::options::SelectServer;
use crate::server::refusal::Refusal;

/// A session that this process resumes from the session store, for
/// [`HttpOptions::session_migration`](crate::HttpOptions::session_migration).
///
/// What the record does not have is lost: the values that handlers kept in the
/// [connection](mcp_server::RequestContext::connection), the callbacks for its end, and requests in flight.
#[derive(Clone, Debug)]
pub struct SessionMigration {
    id: SessionId,
    parts: Arc<Parts>,
    principal: Option<Principal>,
    record: SessionRecord,
    connection: ConnectionHandle,
}

impl SessionMigration {
    /// Returns the id of the session, for example as the key of what the application stored for it.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Returns the head of the request for which the session is resumed.
    #[must_use]
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Returns the principal of the request. It is the one in the record, unless the session has no owner.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// Returns the record of the session.
    #[must_use]
    pub fn record(&self) -> &SessionRecord {
        &self.record
    }

    /// Returns the new connection, which has no values yet. Those that are inserted here are there for all requests.
    #[must_use]
    pub fn connection(&self) -> &ConnectionHandle {
        &self.connection
    }
}

/// Is called for each session that is resumed.
pub(crate) type MigrateSession = Arc<dyn Fn(SessionMigration) -> BoxFuture<Result<(), Refusal>> + Send + Sync>;

/// The sessions that are being resumed: each by one request, for which the others wait.
#[derive(Default)]
pub(crate) struct Migrations {
    open: Mutex<BTreeSet<SessionId>>,
    ended: Notify,
}

impl Migrations {
    /// Begins to resume a session, unless another request does.
    fn begin(&self, id: SessionId) -> Option<Migration<'_>> {
        self.lock().insert(id).then(|| Migration { migrations: self, id })
    }

    /// Waits until no other request resumes a session.
    pub(super) async fn wait(&self, id: SessionId) {
        loop {
            let ended = self.ended.notified();
            if !self.lock().contains(&id) {
                return;
            }
            ended.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<SessionId>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session that a request resumes.
struct Migration<'a> {
    migrations: &'a Migrations,
    id: SessionId,
}

impl Drop for Migration<'_> {
    fn drop(&mut self) {
        self.migrations.lock().remove(&self.id);
        self.migrations.ended.notify_waiters();
    }
}

/// A session in this process that is not complete. Dropping it ends the session, because the application refused it or
/// the client disconnected.
struct IncompleteSession(Option<SessionLease<Session>>);

impl IncompleteSession {
    fn complete(mut self) -> Option<SessionLease<Session>> {
        let session = self.0.take()?;
        session.set_resumed();
        Some(session)
    }
}

impl Drop for IncompleteSession {
    fn drop(&mut self) {
        if let Some(session) = self.0.take() {
            drop(tear_down(session.end(EndReason::NotResumed)));
        }
    }
}

/// The request for which a session is resumed.
pub(super) struct ResumeRequest {
    pub(super) id: SessionId,
    pub(super) server: Server,
    pub(super) select_server: Option<SelectServer>,
    pub(super) parts: Arc<Parts>,
    pub(super) principal: Option<Principal>,
}

impl Sessions {
    /// Resumes a session of another process. Returns the record if another request is about to do that.
    pub(super) async fn resume(
        &self,
        request: &ResumeRequest,
        found: VersionedRecord,
    ) -> Result<Result<SessionLease<Session>, VersionedRecord>, Refusal> {
        let Some(_migration) = self.migrations.begin(request.id) else { return Ok(Err(found)) };
        let server = match &request.select_server {
            Some(select_server) => select_server(Arc::clone(&request.parts)).await?,
            None => request.server.clone(),
        };
        let VersionedRecord { record, version } = found;
        let caller = caller(&request.parts, request.principal.as_ref());
        let server = match server.choose_for_resume(&record.initialize, record.revision, caller.clone()) {
            Some(choice) => choice.await.map_err(|error| {
                tracing::debug!(target: "mcp", session = ?request.id, %error, "session not resumed: `on_initialize` refused it");
                Refusal::unknown_session()
            })?,
            None => server,
        };
        if !server.config().revisions.contains(&record.revision) {
            // The client begins a new session, with a revision that the server has.
            tracing::debug!(target: "mcp", session = ?request.id, revision = %record.revision, "session not resumed: the server does not support its revision");
            return Err(Refusal::unknown_session());
        }
        let (connection, state) = (record_sync::resume(&server, &record)?, record_sync::state_of(&record));
        let kept = self.migrate.as_ref().map(|migrate| (migrate, record.clone()));
        let (owner, revision) = (record.principal.clone(), record.revision);
        let (events, counters) = (self.events.clone(), Arc::clone(&self.counters));
        let record_state = RecordState::new(record, version);
        let make = |id| Session::resumed(id, connection, revision, events, record_state, counters);
        let adopted =
            self.manager.adopt(request.id, owner, make).map_err(|refused| self.too_many_sessions(&refused))?;
        drop(tear_down(adopted.evicted));
        let connection = adopted.lease.connection.handle();
        let session = IncompleteSession(Some(adopted.lease));
        if let Some((migrate, record)) = kept {
            let ResumeRequest { id, parts, principal, .. } = request;
            let (parts, principal) = (Arc::clone(parts), principal.clone());
            migrate(SessionMigration { id: *id, parts, principal, record, connection }).await?;
        }
        if let Some(session) = &session.0 {
            Session::complete_resume(session, state, caller).await;
        }
        session.complete().map(Ok).ok_or_else(Refusal::unknown_session)
    }
}
