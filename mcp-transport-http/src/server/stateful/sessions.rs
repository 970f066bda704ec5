//! POST, GET and DELETE of clients with sessions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderValue, Response, StatusCode};
use mcp_kernel::observe::Observer;
use mcp_kernel::server::Route;
use mcp_server::{AuthInfo, BoxFuture, Connection, Network, Principal, Server};
use mcp_session::{
    EndReason, EndedSession, EventIdKey, MemoryEventStore, NoRandomness, SessionError, SessionId, SessionLease,
    SessionManager, SessionMetrics, SessionRecord,
};
use mcp_types::jsonrpc::{Incoming, Message};
use mcp_types::{Era, ErrorCode, ErrorObject, Method, RequestId, Revision};

use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout};

use super::migration::{MigrateSession, Migrations, ResumeRequest};
use super::reader::{StreamReader, StreamSettings};
use super::record_sync::{self, RecordSync};
use super::session::{EventLog, FeedError, Session, SessionCounters};
use crate::clock::now;
use crate::rules::header_names::{LAST_EVENT, SESSION};
use crate::rules::headers::{VersionHeader, single_value};
use crate::rules::revision::request_id;
use crate::rules::status::status_of;
use crate::server::admission::Permit;
use crate::server::body::{EventSource, ResponseBody};
use crate::server::head::{RequestHead, SessionHeader};
use crate::server::observed::SessionSource;
use crate::server::options::{HttpOptions, SelectServer};
use crate::server::refusal::Refusal;
use crate::server::response_future::ResponseStage;
use crate::server::service::{accepted, json, requests};
use crate::server::shutdown::WorkGuard;
use crate::server::teardown::TEARDOWN_TIMEOUT;

/// All sessions of a service.
pub(crate) struct Sessions {
    pub(super) manager: SessionManager<Session>,
    settings: Arc<StreamSettings>,
    pub(super) events: Option<Arc<EventLog>>,
    record_sync: Option<RecordSync>,
    pub(super) migrations: Migrations,
    pub(super) migrate: Option<MigrateSession>,
    pub(super) counters: Arc<SessionCounters>,
}

/// How often the store is checked for sessions that another process has deleted. The documentation names this value.
const RECORD_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// How many sessions are checked at the same time.
const CONCURRENT_RECORD_CHECKS: usize = 32;

/// The request that begins a session.
struct NewSession {
    id: Option<RequestId>,
    principal: Option<Principal>,
    auth: Option<Arc<AuthInfo>>,
    permit: Permit,
    work_guard: WorkGuard,
}

/// A session that has begun, or a handshake that was refused.
enum Begun {
    Response(Response<ResponseBody>),
    /// The record of the session has to be saved before the response.
    Saving(BoxFuture<Result<Response<ResponseBody>, Refusal>>),
}

/// The session of a request, or the refusal if there is none.
pub(crate) type SessionLookup = Result<SessionLease<Session>, Refusal>;

impl Sessions {
    /// Creates the sessions of a service.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system's random source fails, which the key of event ids needs.
    pub(crate) fn new(options: &HttpOptions) -> Result<Self, NoRandomness> {
        let time_to_live = options.record_ttl;
        let record_sync = options.session_store.clone().map(|store| RecordSync { store, time_to_live });
        let settings = Arc::new(StreamSettings {
            record_sync: record_sync.clone(),
            keep_alive_interval: options.keep_alive_interval,
            retry: options.sse_retry,
            orphaned_timeout: options.orphaned_request_timeout,
            retry_after: options.retry_after,
            key: match &options.event_key {
                Some(key) => Arc::clone(key),
                None => Arc::new(EventIdKey::random()?),
            },
        });
        let events = options.resumable.then(|| match options.event_store.clone() {
            Some(store) => EventLog { store, is_shared: options.session_store.is_some() },
            None => EventLog { store: Arc::new(MemoryEventStore::default()), is_shared: false },
        });
        let events = events.map(Arc::new);
        let session_options = options.session_options.clone();
        let manager = SessionManager::with_deadlines(session_options, Session::bytes, Session::deadline);
        let (migrations, migrate) = (Migrations::default(), options.session_migration.clone());
        Ok(Self { manager, settings, events, record_sync, migrations, migrate, counters: Arc::default() })
    }

    pub(crate) fn metrics(&self) -> SessionMetrics {
        let mut metrics = self.manager.metrics();
        metrics.replayed = self.counters.replayed.load(Ordering::Relaxed);
        metrics.dropped_messages = self.counters.dropped_messages.load(Ordering::Relaxed);
        metrics
    }

    /// Lets an observer read the metrics.
    pub(crate) fn watch(&self, observer: &dyn Observer) {
        let (metrics, counters) = (self.manager.live_metrics(), Arc::clone(&self.counters));
        observer.watch(Arc::new(SessionSource { metrics, counters }));
        if let Some(source) = self.events.as_ref().and_then(|events| events.store.metrics()) {
            observer.watch(source);
        }
    }

    /// Returns when to check for expired sessions.
    pub(crate) fn next_sweep(&self) -> Instant {
        self.manager.next_sweep(Instant::now())
    }

    /// Ends expired sessions.
    pub(crate) fn sweep(&self) {
        drop(tear_down(self.manager.sweep(Instant::now())));
    }

    /// Returns when to [check](Self::end_deleted_elsewhere) the session store, if there is one.
    pub(crate) fn next_record_check(&self) -> Option<Instant> {
        let record_sync = self.record_sync.as_ref()?;
        // Records with a short lifetime have to be touched more often.
        let interval = RECORD_CHECK_INTERVAL.min(record_sync.time_to_live / 10).max(Duration::from_millis(10));
        Some(Instant::now() + interval)
    }

    /// Ends active sessions that another process has deleted, with their streams and requests. Extends the lifetime of the
    /// other records.
    pub(crate) async fn end_deleted_elsewhere(&self) {
        let Some(record_sync) = &self.record_sync else { return };
        let mut active = self
            .manager
            .active()
            .into_iter()
            .filter(|session| session.record_state.as_ref().is_some_and(|record_state| record_state.is_saved()));
        let mut looking = JoinSet::new();
        loop {
            while looking.len() < CONCURRENT_RECORD_CHECKS
                && let Some(session) = active.next()
            {
                let record_sync = record_sync.clone();
                // A lookup that hangs does not block the others.
                looking.spawn(async move {
                    let has_ended = timeout(RECORD_CHECK_INTERVAL, record_sync.has_ended(&session)).await;
                    has_ended.unwrap_or_default().then_some(session)
                });
            }
            let Some(ended) = looking.join_next().await else { break };
            if let Ok(Some(session)) = ended {
                drop(tear_down(session.end(EndReason::Deleted)));
            }
        }
    }

    /// Ends all sessions, and waits for the teardown of their handlers, up to the timeout of one.
    pub(crate) async fn shutdown(&self) {
        let tasks = tear_down(self.manager.shutdown());
        let all = async {
            for task in tasks {
                let _ = task.await;
            }
        };
        if timeout(TEARDOWN_TIMEOUT, all).await.is_err() {
            tracing::warn!(target: "mcp", "teardown of handlers takes too long");
        }
    }

    /// Restores the session of a request from the session store, or updates it. Returns `None` if there is no store.
    ///
    /// The record has the session's principal, which the request is checked against.
    pub(crate) fn restore(
        self: &Arc<Self>,
        server: &Server,
        select_server: Option<SelectServer>,
        head: &RequestHead,
        admit: impl FnOnce() -> Result<Permit, Refusal>,
    ) -> Result<Option<BoxFuture<Result<(), Refusal>>>, Refusal> {
        let Some(record_sync) = self.record_sync.clone() else { return Ok(None) };
        let SessionHeader::Id(id) = head.session else { return Ok(None) };
        let permit = admit()?;
        let (sessions, server) = (Arc::clone(self), server.clone());
        let (parts, principal) = (Arc::clone(&head.parts), head.principal.clone());
        let request = ResumeRequest { id, server, select_server, parts, principal };
        Ok(Some(Box::pin(async move {
            let _permit = permit;
            let found = record_sync.load(id).await?;
            if let Some(found) = &found {
                // The session is not restored for another principal.
                sessions.check_owner(&found.record, request.principal.as_ref())?;
            }
            let (manager, principal) = (&sessions.manager, request.principal.as_ref());
            let mut found = found;
            let session = loop {
                let here = if manager.contains(&id) { manager.enter(&id, principal).ok() } else { None };
                match (found, here) {
                    (Some(record), Some(session)) if session.is_resuming() => found = Some(record),
                    (Some(found), Some(session)) => {
                        record_sync.refresh(&session, found);
                        break session;
                    }
                    (Some(record), None) => match sessions.resume(&request, record).await? {
                        Ok(session) => break session,
                        Err(record) => found = Some(record),
                    },
                    // Another process has deleted it.
                    (None, Some(session)) => {
                        drop(tear_down(manager.end(&session.id(), principal, EndReason::Deleted)));
                        return Ok(());
                    }
                    // The request is refused when the session is looked up.
                    (None, None) => return Ok(()),
                }
                // Another request resumes the session.
                sessions.migrations.wait(id).await;
            };
            if let Some(auth) = request.parts.extensions.get::<Arc<AuthInfo>>() {
                session.use_token(auth);
            }
            if !record_sync.touch(&session).await? {
                // Another process has just deleted it.
                drop(tear_down(session.end(EndReason::Deleted)));
            }
            Ok(())
        })))
    }

    /// Looks up the session of a request that can only belong to one.
    pub(crate) fn enter(&self, head: &RequestHead) -> Option<SessionLookup> {
        head.requires_session().then(|| self.find(head))
    }

    /// Starts a message of a legacy client, whose session may have been looked up already. `admit` acquires the permit for
    /// a message that only waits for the session store.
    pub(crate) fn post(
        self: &Arc<Self>,
        server: &Server,
        session: Option<SessionLookup>,
        head: RequestHead,
        incoming: Incoming<'_>,
        (work_guard, permit): (WorkGuard, Permit),
        admit: impl FnOnce(&RequestHead) -> Result<Permit, Refusal>,
    ) -> Result<ResponseStage, Refusal> {
        if let Incoming::Single(Message::Request(request)) = &incoming
            && request.method == Method::INITIALIZE
            && head.session == SessionHeader::Missing
        {
            return self.initialize(server, head, incoming, (work_guard, permit));
        }
        let session = session.unwrap_or_else(|| self.find(&head))?;
        check_version(&head, session.revision)?;
        // What is no request has a permit for nothing; but what it settles has to wait for the store.
        let record_sync =
            match self.record_sync.clone().filter(|_| session.record_state.is_some() && requests(&incoming) == 0) {
                Some(record_sync) => Some((record_sync, admit(&head)?)),
                None => None,
            };
        let begun = session.feed(now(), incoming, head.caller(), permit).map_err(|error| match error {
            FeedError::Ended => refusal(&SessionError::Unknown),
            FeedError::Full => {
                let text = "a handler of this session blocks the others: try again later";
                Refusal::busy(StatusCode::SERVICE_UNAVAILABLE, text, self.settings.retry_after)
            }
        })?;
        let Some(begun) = begun else {
            let Some((record_sync, permit)) = record_sync else { return Ok(ResponseStage::ready(accepted())) };
            let retry_after = self.settings.retry_after;
            return Ok(ResponseStage::Saving(Box::pin(async move {
                let _permit = permit;
                or_shutting_down(&work_guard, record_sync.save(&session), retry_after).await?;
                Ok(accepted())
            })));
        };
        let mut reader = StreamReader::of_request(session, begun, Arc::clone(&self.settings), work_guard);
        reader.parts = Some(head.parts);
        Ok(ResponseStage::Running(EventSource::Session(Box::new(reader)), Era::Legacy))
    }

    /// Handles `initialize`, and creates a session if it succeeds.
    // S4.34, RB-53
    fn initialize(
        self: &Arc<Self>,
        server: &Server,
        head: RequestHead,
        incoming: Incoming<'_>,
        (work_guard, permit): (WorkGuard, Permit),
    ) -> Result<ResponseStage, Refusal> {
        let may_wait = self.record_sync.is_some() || server.config().intercept_initialize;
        let id = request_id(&incoming).filter(|_| may_wait).cloned();
        let mut connection = Connection::long_lived(server).network(Network::Http);
        let key = connection.feed_parsed(now(), incoming, &head.caller(), None);
        let auth = head.auth().cloned();
        let new = NewSession { id, principal: head.principal, auth, permit, work_guard };
        if key.is_none_or(|key| !connection.is_open(key)) {
            return Ok(match self.begin(connection, new)? {
                Begun::Response(response) => ResponseStage::ready(response),
                Begun::Saving(saving) => ResponseStage::Saving(saving),
            });
        }
        // The application decides about the handshake. If the client disconnects or the service shuts down, the decision
        // is dropped.
        let sessions = Arc::clone(self);
        Ok(ResponseStage::Saving(Box::pin(async move {
            let decided = async {
                std::future::poll_fn(|cx| connection.poll(cx, now())).await;
                Ok(())
            };
            let decided = or_shutting_down(&new.work_guard, decided, sessions.settings.retry_after).await;
            let (id, revision) = (new.id.clone(), connection.negotiated().unwrap_or(Revision::LATEST_LEGACY));
            match decided.and_then(|()| sessions.begin(connection, new)).map_err(|refusal| refusal.of(id, revision))? {
                Begun::Response(response) => Ok(response),
                Begun::Saving(saving) => saving.await,
            }
        })))
    }

    /// Creates the session of a client whose `initialize` was accepted, and responds.
    fn begin(self: &Arc<Self>, mut connection: Connection, new: NewSession) -> Result<Begun, Refusal> {
        let NewSession { id: request, principal, auth, permit, work_guard } = new;
        let reply = std::iter::from_fn(|| connection.poll_transmit()).find(|it| matches!(it.route, Route::Reply(_)));
        let Some(reply) = reply else { return Ok(Begun::Response(accepted())) };
        let Some(revision) = connection.handle().negotiated() else {
            return Ok(Begun::Response(json(status_of(Era::Legacy, reply.failure), reply.message, Some(permit))));
        };
        let record_state =
            self.record_sync.as_ref().and_then(|_| record_sync::new_state(&connection, principal.clone()));
        let (events, counters) = (self.events.clone(), Arc::clone(&self.counters));
        let make = |id| Session::new(id, connection, revision, events, record_state, counters);
        let created =
            self.manager.create(principal.clone(), make).map_err(|refused| self.too_many_sessions(&refused))?;
        drop(tear_down(created.evicted));
        let (session, response) = (created.lease, json(StatusCode::OK, reply.message, Some(permit)));
        auth.iter().for_each(|auth| session.use_token(auth));
        let Some(record_sync) = self.record_sync.clone() else {
            Session::start(&session);
            return Ok(Begun::Response(with_session_id(response, session.id())));
        };
        let (manager, retry_after) = (self.manager.clone(), self.settings.retry_after);
        Ok(Begun::Saving(Box::pin(async move {
            let saved = or_shutting_down(&work_guard, record_sync.save_new(&session), retry_after).await;
            if let Err(refusal) = saved {
                // A session that cannot be saved is not kept in memory either.
                drop(tear_down(manager.end(&session.id(), principal.as_ref(), EndReason::Deleted)));
                return Err(refusal.of(request, revision));
            }
            Session::start(&session);
            Ok(with_session_id(response, session.id()))
        })))
    }

    /// Refuses a session with `Retry-After`.
    pub(super) fn too_many_sessions(&self, refused: &SessionError) -> Refusal {
        refusal(refused).header(RETRY_AFTER, HeaderValue::from(self.settings.retry_after.as_secs().max(1)))
    }

    /// Opens the standalone stream, or resumes a stream after an event.
    pub(crate) fn get(
        &self,
        head: &RequestHead,
        work_guard: WorkGuard,
        admit: impl FnOnce() -> Result<Permit, Refusal>,
    ) -> Result<(StreamReader, Vec<u8>), Refusal> {
        let session = self.find(head)?;
        check_version(head, session.revision)?;
        let place = match single_value(&head.parts.headers, &LAST_EVENT) {
            Ok(None) => None,
            Ok(Some(id)) if session.is_resumable() => {
                Some(self.settings.key.decode(&session.id(), id).ok_or_else(unknown_event)?)
            }
            Ok(Some(_)) | Err(_) => return Err(unknown_event()),
        };
        Ok(StreamReader::of_stream(session, place, Arc::clone(&self.settings), work_guard, admit()?))
    }

    /// Ends a session for its client. With a session store this continues even if the client disconnects. `admit` acquires
    /// the permit for the lookup in the store.
    pub(crate) fn delete(
        self: &Arc<Self>,
        head: RequestHead,
        work_guard: WorkGuard,
        admit: impl FnOnce(&RequestHead) -> Result<Permit, Refusal>,
    ) -> Result<ResponseStage, Refusal> {
        let (Some(record_sync), SessionHeader::Id(id)) = (self.record_sync.clone(), head.session) else {
            self.end(&head)?;
            return Ok(ResponseStage::ready(no_content()));
        };
        let (sessions, permit, retry_after) = (Arc::clone(self), admit(&head)?, self.settings.retry_after);
        // One request in flight, until it has ended in both tasks.
        let work_guard = Arc::new(work_guard);
        let held = (permit, Arc::clone(&work_guard));
        let ending = tokio::spawn(async move {
            let _held = held;
            sessions.delete_record(&record_sync, id, &head).await
        });
        Ok(ResponseStage::Saving(Box::pin(async move {
            let failed = |_| Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the session could not be ended"));
            let ended = async { ending.await.unwrap_or_else(failed) };
            or_shutting_down(&work_guard, ended, retry_after).await?;
            Ok(no_content())
        })))
    }

    /// Ends the session of a request, if there is no session store.
    fn end(&self, head: &RequestHead) -> Result<(), Refusal> {
        let session = self.find(head)?;
        check_version(head, session.revision)?;
        let ended = self.manager.end(&session.id(), head.principal.as_ref(), EndReason::Deleted);
        drop(tear_down([ended.map_err(|refused| refusal(&refused))?]));
        Ok(())
    }

    /// Ends a session in the store, and in this process if it is here. It is not resumed for that.
    async fn delete_record(&self, record_sync: &RecordSync, id: SessionId, head: &RequestHead) -> Result<(), Refusal> {
        let (manager, principal) = (&self.manager, head.principal.as_ref());
        let Some(found) = record_sync.load(id).await? else {
            // Another process has deleted it.
            if manager.contains(&id) {
                drop(tear_down(manager.end(&id, principal, EndReason::Deleted)));
            }
            return Err(refusal(&SessionError::Unknown));
        };
        self.check_owner(&found.record, principal)?;
        check_version(head, found.record.revision)?;
        // Before it ends here: it can be resumed with its events as long as there is a record.
        record_sync.forget(id).await?;
        let here = if manager.contains(&id) { manager.enter(&id, principal).ok() } else { None };
        match here.filter(|session| !session.is_resuming()) {
            Some(session) => drop(tear_down(session.end(EndReason::Deleted))),
            // It is nowhere in this process; or a request resumes it, finds no record after that, and ends it.
            None => self.events.iter().for_each(|events| events.store.forget(id)),
        }
        Ok(())
    }

    /// Checks that a stored session belongs to the principal of a request, or to none.
    fn check_owner(&self, record: &SessionRecord, principal: Option<&Principal>) -> Result<(), Refusal> {
        if record.principal.is_some() && record.principal.as_ref() != principal {
            return Err(refusal(&self.manager.refuse_wrong_owner()));
        }
        Ok(())
    }

    fn find(&self, head: &RequestHead) -> SessionLookup {
        let id = match head.session {
            SessionHeader::Id(id) => id,
            SessionHeader::Invalid => return Err(refusal(&SessionError::Unknown)),
            SessionHeader::Missing => {
                let text = "`Mcp-Session-Id` is missing: a session starts with `initialize`; to serve legacy clients without \
                            sessions, set `HttpOptions::sessions` to `SessionMode::Stateless`";
                return Err(Refusal::new(StatusCode::BAD_REQUEST, text));
            }
        };
        let session = self.manager.enter(&id, head.principal.as_ref()).map_err(|refused| refusal(&refused))?;
        head.auth().into_iter().for_each(|auth| session.use_token(auth));
        Ok(session)
    }
}

/// Waits for a decision or for the session store, and refuses the request if a drain does not wait for it any longer.
async fn or_shutting_down<T>(
    work_guard: &WorkGuard,
    pending: impl Future<Output = Result<T, Refusal>>,
    retry_after: Duration,
) -> Result<T, Refusal> {
    work_guard.or_abort(pending).await.unwrap_or_else(|| Err(Refusal::shutting_down(retry_after)))
}

/// The response to a DELETE.
fn no_content() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Adds the session id to the response to `initialize`.
fn with_session_id(mut response: Response<ResponseBody>, id: SessionId) -> Response<ResponseBody> {
    if let Ok(id) = HeaderValue::from_bytes(&id.to_digits()) {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

/// Checks that the version header, if present, is the negotiated version.
// B-102
fn check_version(head: &RequestHead, agreed: Revision) -> Result<(), Refusal> {
    match &head.version {
        VersionHeader::Missing => Ok(()),
        VersionHeader::Known(named) if *named == agreed => Ok(()),
        VersionHeader::Invalid(fault) => Err(Refusal::new(StatusCode::BAD_REQUEST, fault.to_string())),
        VersionHeader::Known(_) | VersionHeader::Unknown(_) => {
            let text = format!("`MCP-Protocol-Version` is not the negotiated version {agreed}");
            Err(Refusal::new(StatusCode::BAD_REQUEST, text))
        }
    }
}

/// Ends sessions, and spawns the teardown of their handlers.
pub(super) fn tear_down(ended: impl IntoIterator<Item = EndedSession<Session>>) -> Vec<JoinHandle<()>> {
    let end = |EndedSession { value, reason, .. }: EndedSession<Session>| {
        let runtime = Handle::try_current().ok()?;
        Some(runtime.spawn(value.end(reason)?))
    };
    ended.into_iter().filter_map(end).collect()
}

fn unknown_event() -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "`Last-Event-ID` is not an event of this session")
}

pub(super) fn refusal(refused: &SessionError) -> Refusal {
    let status = match refused {
        SessionError::Unknown => StatusCode::NOT_FOUND,
        SessionError::WrongOwner => StatusCode::FORBIDDEN,
        SessionError::TooMany => StatusCode::TOO_MANY_REQUESTS,
        SessionError::NoRandomness | SessionError::Closed | _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    Refusal::with_error(status, ErrorObject::new(ErrorCode::INVALID_REQUEST, refused.to_string()))
}
