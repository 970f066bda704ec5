//! What clients with sessions ask for: POST, GET and DELETE.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method as Verb, Response, StatusCode};
use mcp_kernel::Route;
use mcp_server::{Caller, Connection, Principal, Server};
use mcp_session::{
    BoxFuture, Ended, EventKey, Lease, MemoryEventStore, NoRandomness, Reason, Refused, SessionId, SessionManager,
    SessionMetrics,
};
use mcp_types::jsonrpc::{Incoming, Message};
use mcp_types::{Era, ErrorCode, ErrorObject, Method, ProtocolVersion, Revision};

use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout};

use super::reader::{StreamReader, StreamSettings};
use super::record_sync::{self, RecordState, RecordSync};
use super::session::{EventLog, FeedError, Session, SessionCounters};
use crate::clock::now;
use crate::rules::era::request_id;
use crate::rules::headers::{VERSION, single_value};
use crate::rules::status::status_of;
use crate::server::admission::Permit;
use crate::server::body::ResponseBody;
use crate::server::exchange::TEARDOWN_TIMEOUT;
use crate::server::options::{HttpOptions, SelectServer};
use crate::server::refusal::Refusal;
use crate::server::service::{accepted, json, requests};
use crate::server::shutdown::WorkGuard;

/// The name of a session.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The last event that a client has seen.
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// All sessions of a service.
pub(crate) struct Sessions {
    manager: SessionManager<Session>,
    settings: StreamSettings,
    events: Option<EventLog>,
    record_sync: Option<RecordSync>,
    counters: Arc<SessionCounters>,
    /// When clients for whom there is no session are asked to come back.
    retry_after: Duration,
}

/// How much time is between two looks for sessions that have ended elsewhere, which the documentation names.
const RECORD_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// For how many sessions the store is asked at the same time.
const CONCURRENT_RECORD_CHECKS: usize = 32;

/// The session that a request belongs to, or why it has none.
pub(crate) type SessionLookup = Result<Lease<Session>, Refusal>;

/// What became of a request of a client with a session.
pub(crate) enum Taken {
    Stream(StreamReader, Revision),
    Response(Response<ResponseBody>),
    /// Something has to be kept first.
    Later(BoxFuture<Result<Response<ResponseBody>, Refusal>>),
}

impl Sessions {
    /// # Errors
    ///
    /// Fails if the system has no randomness for the key of event ids.
    pub(crate) fn new(options: &HttpOptions) -> Result<Self, NoRandomness> {
        let time_to_live = options.record_ttl;
        let record_sync = options.session_store.clone().map(|store| RecordSync { store, time_to_live });
        let settings = StreamSettings {
            record_sync: record_sync.clone(),
            keep_alive_interval: options.keep_alive_interval,
            retry: options.sse_retry,
            orphaned_timeout: options.orphaned_request_timeout,
            key: match &options.event_key {
                Some(key) => Arc::clone(key),
                None => Arc::new(EventKey::random()?),
            },
        };
        let events = options.resumable.then(|| match options.event_store.clone() {
            Some(store) => EventLog { store, is_shared: options.session_store.is_some() },
            None => EventLog { store: Arc::new(MemoryEventStore::default()), is_shared: false },
        });
        let manager = SessionManager::measured(options.session_options.clone(), Session::bytes);
        Ok(Self { manager, settings, events, record_sync, counters: Arc::default(), retry_after: options.retry_after })
    }

    /// Whether a request names a session.
    fn names_session(parts: &Parts) -> bool {
        parts.headers.contains_key(SESSION)
    }

    /// Whether a request can only belong to a session that has begun already. A modern one names its revision, or is
    /// refused.
    pub(crate) fn requires_session(parts: &Parts) -> bool {
        let version = single_value(&parts.headers, &VERSION).ok().flatten();
        let revision = version.and_then(|version| ProtocolVersion::from(version.to_owned()).revision());
        let is_modern = revision.is_some_and(|revision| revision.era() == Era::Modern);
        parts.method != Verb::POST || (Self::names_session(parts) && !is_modern)
    }

    pub(crate) fn metrics(&self) -> SessionMetrics {
        let mut metrics = self.manager.metrics();
        metrics.replayed = self.counters.replayed.load(Ordering::Relaxed);
        metrics.unheard = self.counters.unheard.load(Ordering::Relaxed);
        metrics
    }

    /// When to look for those whose time is over.
    pub(crate) fn next_sweep(&self) -> Instant {
        self.manager.next_sweep(Instant::now())
    }

    /// Ends those whose time is over.
    pub(crate) fn sweep(&self) {
        drop(tear_down(self.manager.sweep(Instant::now())));
    }

    /// When to [look](Self::end_elsewhere) for sessions that have ended elsewhere, if they can.
    pub(crate) fn next_record_check(&self) -> Option<Instant> {
        let record_sync = self.record_sync.as_ref()?;
        // Records that do not last have to be touched more often.
        let interval = RECORD_CHECK_INTERVAL.min(record_sync.time_to_live / 10).max(Duration::from_millis(10));
        Some(Instant::now() + interval)
    }

    /// Ends the sessions that are active here and have ended elsewhere: their streams, and what is at work for them. The
    /// store hears that the others are in use.
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
                // A store that does not answer about one of them does not keep the others from being looked for.
                looking.spawn(async move {
                    let has_ended = timeout(RECORD_CHECK_INTERVAL, record_sync.has_ended(&session)).await;
                    has_ended.unwrap_or_default().then_some(session)
                });
            }
            let Some(ended) = looking.join_next().await else { break };
            if let Ok(Some(session)) = ended {
                drop(tear_down(session.end(Reason::Deleted)));
            }
        }
    }

    /// Ends all, and waits for what handlers left to be done, as long as one such thing may take.
    pub(crate) async fn shutdown(&self) {
        let tasks = tear_down(self.manager.shutdown());
        let all = async {
            for task in tasks {
                let _ = task.await;
            }
        };
        if timeout(TEARDOWN_TIMEOUT, all).await.is_err() {
            tracing::warn!(target: "mcp", "what handlers left to be done at the end takes too long");
        }
    }

    /// Brings a session here that began elsewhere, or up to date; nothing if sessions are kept by this process alone.
    ///
    /// Whose it is, the record says; whoever asks for it is compared with that like in any other session.
    pub(crate) fn restore(
        self: &Arc<Self>,
        server: &Server,
        select_server: Option<SelectServer>,
        parts: &Arc<Parts>,
        admit: impl FnOnce() -> Result<Permit, Refusal>,
    ) -> Result<Option<BoxFuture<Result<(), Refusal>>>, Refusal> {
        let Some(record_sync) = self.record_sync.clone() else { return Ok(None) };
        let id = single_value(&parts.headers, &SESSION).ok().flatten().and_then(|id| SessionId::parse(id).ok());
        let Some(id) = id else { return Ok(None) };
        let permit = admit()?;
        let (sessions, server, parts) = (Arc::clone(self), server.clone(), Arc::clone(parts));
        Ok(Some(Box::pin(async move {
            let _permit = permit;
            let found = record_sync.load(id).await?;
            let principal = parts.extensions.get::<Principal>();
            let owner = found.as_ref().and_then(|found| found.record.principal.clone());
            if owner.is_some() && owner.as_ref() != principal {
                // Nothing is made for somebody whose it is not.
                return Err(refusal(&sessions.manager.refuse_stranger()));
            }
            let manager = &sessions.manager;
            let here = if manager.knows(&id) { manager.enter(&id, principal).ok() } else { None };
            let session = match (found, here) {
                (Some(found), Some(session)) => {
                    record_sync.refresh(&session, found);
                    session
                }
                (Some(found), None) => {
                    let server = match select_server {
                        Some(select_server) => select_server(Arc::clone(&parts)).await?,
                        None => server,
                    };
                    let connection = record_sync::resume(&server, &found.record)?;
                    let revision = found.record.revision;
                    let (events, counters) = (sessions.events.clone(), Arc::clone(&sessions.counters));
                    let record_state = RecordState::new(found.record, found.version);
                    let make = |id| Session::new(id, connection, revision, events, Some(record_state), counters);
                    let adopted =
                        manager.adopt(id, owner, make).map_err(|refused| sessions.too_many_sessions(&refused))?;
                    drop(tear_down(adopted.evicted));
                    adopted.lease
                }
                // It has ended elsewhere.
                (None, Some(session)) => {
                    drop(tear_down(manager.end(&session.id, principal, Reason::Deleted)));
                    return Ok(());
                }
                // Whatever it is will be said about it.
                (None, None) => return Ok(()),
            };
            if !record_sync.touch(&session).await? {
                // It has just ended elsewhere.
                drop(tear_down(session.end(Reason::Deleted)));
            }
            Ok(())
        })))
    }

    /// Finds the session of a request that can only belong to one.
    pub(crate) fn enter(&self, parts: &Parts) -> Option<SessionLookup> {
        Self::requires_session(parts).then(|| self.find(parts, parts.extensions.get()))
    }

    /// Takes a message of a legacy client, who may have entered a session before; `admit` makes room for what only waits
    /// for the store.
    pub(crate) fn post(
        self: &Arc<Self>,
        server: &Server,
        session: Option<SessionLookup>,
        parts: Arc<Parts>,
        incoming: Incoming<'_>,
        (work_guard, permit): (WorkGuard, Permit),
        admit: impl FnOnce() -> Result<Permit, Refusal>,
    ) -> Result<Taken, Refusal> {
        let principal = parts.extensions.get::<Principal>().cloned();
        if let Incoming::Single(Message::Request(request)) = &incoming
            && request.method == Method::INITIALIZE
            && !Self::names_session(&parts)
        {
            return self.initialize(server, parts, incoming, principal, (work_guard, permit));
        }
        let session = session.unwrap_or_else(|| self.find(&parts, principal.as_ref()))?;
        check_version(&parts, &session)?;
        let (revision, caller) = (session.revision, caller(parts, principal));
        // What is no request has a permit for nothing; but what it settles has to wait for the store.
        let record_sync =
            match self.record_sync.clone().filter(|_| session.record_state.is_some() && requests(&incoming) == 0) {
                Some(record_sync) => Some((record_sync, admit()?)),
                None => None,
            };
        let begun = session.feed(now(), incoming, caller, permit).map_err(|error| match error {
            FeedError::Ended => refusal(&Refused::Unknown),
            FeedError::Full => {
                let text = "a handler of this session keeps the others from running: try again later";
                Refusal::busy(StatusCode::SERVICE_UNAVAILABLE, text, self.retry_after)
            }
        })?;
        let Some(begun) = begun else {
            let Some((record_sync, permit)) = record_sync else { return Ok(Taken::Response(accepted())) };
            return Ok(Taken::Later(Box::pin(async move {
                let _held = (work_guard, permit);
                record_sync.save(&session).await?;
                Ok(accepted())
            })));
        };
        let reader = StreamReader::of_request(session, begun, self.settings.clone(), work_guard);
        Ok(Taken::Stream(reader, revision))
    }

    /// Shakes hands; only if that succeeds there is a session.
    // S4.34, RB-53
    fn initialize(
        self: &Arc<Self>,
        server: &Server,
        parts: Arc<Parts>,
        incoming: Incoming<'_>,
        principal: Option<Principal>,
        (work_guard, permit): (WorkGuard, Permit),
    ) -> Result<Taken, Refusal> {
        let request = request_id(&incoming).filter(|_| self.record_sync.is_some()).cloned();
        let mut connection = Connection::long_lived(server);
        let caller = caller(parts, principal.clone());
        connection.feed_parsed(now(), incoming, &caller);
        let answer = std::iter::from_fn(|| connection.poll_transmit()).find(|it| matches!(it.route, Route::Reply(_)));
        let Some(answer) = answer else { return Ok(Taken::Response(accepted())) };
        let Some(revision) = connection.handle().negotiated() else {
            return Ok(Taken::Response(json(status_of(Era::Legacy, answer.failure), answer.message, Some(permit))));
        };
        let record_state = self.record_sync.as_ref().and_then(|_| record_sync::begin(&connection, principal.clone()));
        let (events, counters) = (self.events.clone(), Arc::clone(&self.counters));
        let make = |id| Session::new(id, connection, revision, events, record_state, counters);
        let created =
            self.manager.create(principal.clone(), make).map_err(|refused| self.too_many_sessions(&refused))?;
        drop(tear_down(created.evicted));
        let (session, response) = (created.lease, json(StatusCode::OK, answer.message, Some(permit)));
        let Some(record_sync) = self.record_sync.clone() else {
            return Ok(Taken::Response(named(response, session.id)));
        };
        let manager = self.manager.clone();
        Ok(Taken::Later(Box::pin(async move {
            let _at_work = work_guard;
            if let Err(refusal) = record_sync.begin(&session).await {
                // What cannot be kept must not be here either.
                drop(tear_down(manager.end(&session.id, principal.as_ref(), Reason::Deleted)));
                return Err(refusal.of(request));
            }
            Ok(named(response, session.id))
        })))
    }

    /// There may be room for a session later.
    fn too_many_sessions(&self, refused: &Refused) -> Refusal {
        refusal(refused).header(RETRY_AFTER, HeaderValue::from(self.retry_after.as_secs().max(1)))
    }

    /// Opens the stream of what belongs to the session as a whole, or goes on with one that was interrupted.
    pub(crate) fn get(
        &self,
        parts: &Parts,
        work_guard: WorkGuard,
        admit: impl FnOnce() -> Result<Permit, Refusal>,
    ) -> Result<(StreamReader, Vec<u8>), Refusal> {
        let session = self.find(parts, parts.extensions.get())?;
        check_version(parts, &session)?;
        let place = match single_value(&parts.headers, &LAST_EVENT) {
            Ok(None) => None,
            Ok(Some(id)) if session.is_resumable() => {
                Some(self.settings.key.read(&session.id, id).ok_or_else(unknown_event)?)
            }
            Ok(Some(_)) | Err(_) => return Err(unknown_event()),
        };
        Ok(StreamReader::of_stream(session, place, self.settings.clone(), work_guard, admit()?))
    }

    /// Ends a session, because its client says so. Where that takes time it does not need the client, who may have hung
    /// up long before.
    pub(crate) fn delete(
        self: &Arc<Self>,
        parts: &Arc<Parts>,
        restoring: Option<BoxFuture<Result<(), Refusal>>>,
        work_guard: WorkGuard,
    ) -> Result<Taken, Refusal> {
        let (Some(record_sync), Some(restoring)) = (self.record_sync.clone(), restoring) else {
            self.end(parts)?;
            return Ok(Taken::Response(no_content()));
        };
        let (sessions, parts) = (Arc::clone(self), Arc::clone(parts));
        let ending = tokio::spawn(async move {
            let _at_work = work_guard;
            restoring.await?;
            let session = sessions.find_to_end(&parts)?;
            // As long as there is a record the session goes on, with all that was said.
            record_sync.forget(session.id).await?;
            drop(tear_down(session.end(Reason::Deleted)));
            Ok(())
        });
        Ok(Taken::Later(Box::pin(async move {
            let failed = |_| Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the session could not be ended"));
            ending.await.unwrap_or_else(failed)?;
            Ok(no_content())
        })))
    }

    /// Ends the session that a request names, where nobody else has it.
    fn end(&self, parts: &Parts) -> Result<(), Refusal> {
        let session = self.find_to_end(parts)?;
        let ended = self.manager.end(&session.id, parts.extensions.get(), Reason::Deleted);
        drop(tear_down([ended.map_err(|refused| refusal(&refused))?]));
        Ok(())
    }

    /// Finds the session that a request ends.
    fn find_to_end(&self, parts: &Parts) -> Result<Lease<Session>, Refusal> {
        let session = self.find(parts, parts.extensions.get())?;
        check_version(parts, &session)?;
        Ok(session)
    }

    fn find(&self, parts: &Parts, principal: Option<&Principal>) -> Result<Lease<Session>, Refusal> {
        let id = single_value(&parts.headers, &SESSION).map_err(|_| refusal(&Refused::Unknown))?;
        let Some(id) = id else {
            let text = "a session begins with `initialize`, and its name has to be repeated in `Mcp-Session-Id`; a \
                        server for clients without sessions is set up with `SessionMode::Stateless`";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, text));
        };
        let id = SessionId::parse(id).map_err(|_| refusal(&Refused::Unknown))?;
        self.manager.enter(&id, principal).map_err(|refused| refusal(&refused))
    }
}

/// There is nothing to say about a session that is over.
fn no_content() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Tells the client the name of its new session.
fn named(mut response: Response<ResponseBody>, id: SessionId) -> Response<ResponseBody> {
    if let Ok(id) = HeaderValue::try_from(id.to_string()) {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

fn caller(parts: Arc<Parts>, principal: Option<Principal>) -> Caller {
    let mut caller = Caller::default();
    caller.principal = principal;
    caller.extensions.insert_shared(parts);
    caller
}

/// A version that is named has to be the one that was agreed on.
// B-102
fn check_version(parts: &Parts, session: &Session) -> Result<(), Refusal> {
    let named = single_value(&parts.headers, &VERSION)
        .map_err(|fault| Refusal::new(StatusCode::BAD_REQUEST, fault.to_string()))?;
    if named.is_none_or(|named| named == session.revision.as_str()) {
        return Ok(());
    }
    let agreed = session.revision;
    Err(Refusal::new(StatusCode::BAD_REQUEST, format!("`MCP-Protocol-Version` is not {agreed}, which was agreed on")))
}

/// Ends sessions; what handlers left to be done is done meanwhile, whether anybody waits for it or not.
fn tear_down(ended: impl IntoIterator<Item = Ended<Session>>) -> Vec<JoinHandle<()>> {
    let end = |Ended { value, reason, .. }: Ended<Session>| {
        let runtime = Handle::try_current().ok()?;
        Some(runtime.spawn(value.end(reason)?))
    };
    ended.into_iter().filter_map(end).collect()
}

fn unknown_event() -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "`Last-Event-ID` names no event of this session")
}

pub(super) fn refusal(refused: &Refused) -> Refusal {
    let status = match refused {
        Refused::Unknown => StatusCode::NOT_FOUND,
        Refused::WrongOwner => StatusCode::FORBIDDEN,
        Refused::TooMany => StatusCode::TOO_MANY_REQUESTS,
        Refused::NoRandomness | Refused::Closed | _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    Refusal::with_error(status, ErrorObject::new(ErrorCode::INVALID_REQUEST, refused.to_string()))
}
