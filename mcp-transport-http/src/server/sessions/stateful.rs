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
    BoxFuture, Ended, EventKey, Lease, MemoryEvents, NoRandomness, Reason, Refused, SessionId, SessionManager,
    SessionMetrics,
};
use mcp_types::jsonrpc::{Incoming, Message};
use mcp_types::{Era, ErrorCode, ErrorObject, Method, ProtocolVersion, Revision};

use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout};

use super::keeper::{self, Keeper, Kept};
use super::reader::{Reader, Settings};
use super::session::{Counts, Events, NotTaken, Session};
use crate::rules::era::request_id;
use crate::rules::headers::{VERSION, single_value};
use crate::rules::status::status_of;
use crate::server::admission::Permit;
use crate::server::body::ResponseBody;
use crate::server::exchange::{TEARDOWN, now};
use crate::server::lifeline::AtWork;
use crate::server::options::{HttpOptions, SelectServer};
use crate::server::refusal::Refusal;
use crate::server::service::{accepted, json, requests};

/// The name of a session.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The last event that a client has seen.
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// All sessions of a service.
pub(crate) struct Sessions {
    manager: SessionManager<Session>,
    settings: Settings,
    events: Option<Events>,
    keeper: Option<Keeper>,
    counts: Arc<Counts>,
    /// When clients for whom there is no session are asked to come back.
    retry_after: Duration,
}

/// How much time is between two looks for sessions that have ended elsewhere, which the documentation names.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// For how many sessions the store is asked at the same time.
const LOOKS_AT_ONCE: usize = 32;

/// The session that a request belongs to, or why it has none.
pub(crate) type Entered = Result<Lease<Session>, Refusal>;

/// What became of a request of a client with a session.
pub(crate) enum Taken {
    Reader(Reader, Revision),
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
        let keeper = options.session_store.clone().map(|store| Keeper { store, time_to_live });
        let settings = Settings {
            keeper: keeper.clone(),
            keep_alive: options.keep_alive_interval,
            retry: options.sse_retry,
            grace: options.orphaned_request_timeout,
            key: match &options.event_key {
                Some(key) => Arc::clone(key),
                None => Arc::new(EventKey::random()?),
            },
        };
        let events = options.resumable.then(|| match options.event_store.clone() {
            Some(store) => Events { store, is_shared: options.session_store.is_some() },
            None => Events { store: Arc::new(MemoryEvents::default()), is_shared: false },
        });
        let manager = SessionManager::measured(options.session_options.clone(), Session::bytes);
        Ok(Self { manager, settings, events, keeper, counts: Arc::default(), retry_after: options.retry_after })
    }

    /// Whether a request names a session.
    fn is_named(parts: &Parts) -> bool {
        parts.headers.contains_key(SESSION)
    }

    /// Whether a request can only belong to a session that has begun already. A modern one names its revision, or is
    /// refused.
    pub(crate) fn is_inside(parts: &Parts) -> bool {
        let version = single_value(&parts.headers, &VERSION).ok().flatten();
        let revision = version.and_then(|version| ProtocolVersion::from(version.to_owned()).revision());
        let is_modern = revision.is_some_and(|revision| revision.era() == Era::Modern);
        parts.method != Verb::POST || (Self::is_named(parts) && !is_modern)
    }

    pub(crate) fn metrics(&self) -> SessionMetrics {
        let mut metrics = self.manager.metrics();
        metrics.replayed = self.counts.replayed.load(Ordering::Relaxed);
        metrics.unheard = self.counts.unheard.load(Ordering::Relaxed);
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
    pub(crate) fn next_look(&self) -> Option<Instant> {
        let keeper = self.keeper.as_ref()?;
        // Records that do not last have to be touched more often.
        let interval = LOOK_INTERVAL.min(keeper.time_to_live / 10).max(Duration::from_millis(10));
        Some(Instant::now() + interval)
    }

    /// Ends the sessions that are active here and have ended elsewhere: their streams, and what is at work for them. The
    /// store hears that the others are in use.
    pub(crate) async fn end_elsewhere(&self) {
        let Some(keeper) = &self.keeper else { return };
        let mut active = self
            .manager
            .active()
            .into_iter()
            .filter(|session| session.kept.as_ref().is_some_and(|kept| kept.is_saved()));
        let mut looking = JoinSet::new();
        loop {
            while looking.len() < LOOKS_AT_ONCE
                && let Some(session) = active.next()
            {
                let keeper = keeper.clone();
                // A store that does not answer about one of them does not keep the others from being looked for.
                looking.spawn(async move {
                    let has_ended = timeout(LOOK_INTERVAL, keeper.has_ended(&session)).await;
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
        if timeout(TEARDOWN, all).await.is_err() {
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
        let Some(keeper) = self.keeper.clone() else { return Ok(None) };
        let id = single_value(&parts.headers, &SESSION).ok().flatten().and_then(|id| SessionId::parse(id).ok());
        let Some(id) = id else { return Ok(None) };
        let permit = admit()?;
        let (sessions, server, parts) = (Arc::clone(self), server.clone(), Arc::clone(parts));
        Ok(Some(Box::pin(async move {
            let _permit = permit;
            let found = keeper.load(id).await?;
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
                    keeper.refresh(&session, found);
                    session
                }
                (Some(found), None) => {
                    let server = match select_server {
                        Some(select_server) => select_server(Arc::clone(&parts)).await?,
                        None => server,
                    };
                    let connection = keeper::resume(&server, &found.record)?;
                    let revision = found.record.revision;
                    let (events, counts) = (sessions.events.clone(), Arc::clone(&sessions.counts));
                    let kept = Kept::new(found.record, found.version);
                    let make = |id| Session::new(id, connection, revision, events, Some(kept), counts);
                    let adopted = manager.adopt(id, owner, make).map_err(|refused| sessions.no_room(&refused))?;
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
            if !keeper.touch(&session).await? {
                // It has just ended elsewhere.
                drop(tear_down(session.end(Reason::Deleted)));
            }
            Ok(())
        })))
    }

    /// Finds the session of a request that can only belong to one.
    pub(crate) fn enter(&self, parts: &Parts) -> Option<Entered> {
        Self::is_inside(parts).then(|| self.find(parts, parts.extensions.get()))
    }

    /// Takes a message of a legacy client, who may have entered a session before; `admit` makes room for what only waits
    /// for the store.
    pub(crate) fn post(
        self: &Arc<Self>,
        server: &Server,
        session: Option<Entered>,
        parts: Arc<Parts>,
        incoming: Incoming<'_>,
        (at_work, permit): (AtWork, Permit),
        admit: impl FnOnce() -> Result<Permit, Refusal>,
    ) -> Result<Taken, Refusal> {
        let principal = parts.extensions.get::<Principal>().cloned();
        if let Incoming::Single(Message::Request(request)) = &incoming
            && request.method == Method::INITIALIZE
            && !Self::is_named(&parts)
        {
            return self.initialize(server, parts, incoming, principal, (at_work, permit));
        }
        let session = session.unwrap_or_else(|| self.find(&parts, principal.as_ref()))?;
        check_version(&parts, &session)?;
        let (revision, caller) = (session.revision, caller(parts, principal));
        // What is no request has a permit for nothing; but what it settles has to wait for the store.
        let keeper = match self.keeper.clone().filter(|_| session.kept.is_some() && requests(&incoming) == 0) {
            Some(keeper) => Some((keeper, admit()?)),
            None => None,
        };
        let begun = session.feed(now(), incoming, caller, permit).map_err(|not_taken| match not_taken {
            NotTaken::Ended => refusal(&Refused::Unknown),
            NotTaken::Full => {
                let text = "a handler of this session keeps the others from running: try again later";
                Refusal::busy(StatusCode::SERVICE_UNAVAILABLE, text, self.retry_after)
            }
        })?;
        let Some(begun) = begun else {
            let Some((keeper, permit)) = keeper else { return Ok(Taken::Response(accepted())) };
            return Ok(Taken::Later(Box::pin(async move {
                let _held = (at_work, permit);
                keeper.save(&session).await?;
                Ok(accepted())
            })));
        };
        let reader = Reader::of_request(session, begun, self.settings.clone(), at_work);
        Ok(Taken::Reader(reader, revision))
    }

    /// Shakes hands; only if that succeeds there is a session.
    // S4.34, RB-53
    fn initialize(
        self: &Arc<Self>,
        server: &Server,
        parts: Arc<Parts>,
        incoming: Incoming<'_>,
        principal: Option<Principal>,
        (at_work, permit): (AtWork, Permit),
    ) -> Result<Taken, Refusal> {
        let request = request_id(&incoming).filter(|_| self.keeper.is_some()).cloned();
        let mut connection = Connection::long_lived(server);
        let caller = caller(parts, principal.clone());
        connection.feed_parsed(now(), incoming, &caller);
        let answer = std::iter::from_fn(|| connection.poll_transmit()).find(|it| matches!(it.route, Route::Reply(_)));
        let Some(answer) = answer else { return Ok(Taken::Response(accepted())) };
        let Some(revision) = connection.handle().negotiated() else {
            return Ok(Taken::Response(json(status_of(Era::Legacy, answer.failure), answer.message, Some(permit))));
        };
        let kept = self.keeper.as_ref().and_then(|_| keeper::begin(&connection, principal.clone()));
        let (events, counts) = (self.events.clone(), Arc::clone(&self.counts));
        let make = |id| Session::new(id, connection, revision, events, kept, counts);
        let created = self.manager.create(principal.clone(), make).map_err(|refused| self.no_room(&refused))?;
        drop(tear_down(created.evicted));
        let (session, response) = (created.lease, json(StatusCode::OK, answer.message, Some(permit)));
        let Some(keeper) = self.keeper.clone() else { return Ok(Taken::Response(named(response, session.id))) };
        let manager = self.manager.clone();
        Ok(Taken::Later(Box::pin(async move {
            let _at_work = at_work;
            if let Err(refusal) = keeper.begin(&session).await {
                // What cannot be kept must not be here either.
                drop(tear_down(manager.end(&session.id, principal.as_ref(), Reason::Deleted)));
                return Err(refusal.of(request));
            }
            Ok(named(response, session.id))
        })))
    }

    /// There may be room for a session later.
    fn no_room(&self, refused: &Refused) -> Refusal {
        refusal(refused).header(RETRY_AFTER, HeaderValue::from(self.retry_after.as_secs().max(1)))
    }

    /// Opens the stream of what belongs to the session as a whole, or goes on with one that was interrupted.
    pub(crate) fn get(
        &self,
        parts: &Parts,
        at_work: AtWork,
        admit: impl FnOnce() -> Result<Permit, Refusal>,
    ) -> Result<(Reader, Vec<u8>), Refusal> {
        let session = self.find(parts, parts.extensions.get())?;
        check_version(parts, &session)?;
        let place = match single_value(&parts.headers, &LAST_EVENT) {
            Ok(None) => None,
            Ok(Some(id)) if session.may_be_resumed() => {
                Some(self.settings.key.read(&session.id, id).ok_or_else(unknown_event)?)
            }
            Ok(Some(_)) | Err(_) => return Err(unknown_event()),
        };
        Ok(Reader::of_stream(session, place, self.settings.clone(), at_work, admit()?))
    }

    /// Ends a session, because its client says so. Where that takes time it does not need the client, who may have hung
    /// up long before.
    pub(crate) fn delete(
        self: &Arc<Self>,
        parts: &Arc<Parts>,
        restoring: Option<BoxFuture<Result<(), Refusal>>>,
        at_work: AtWork,
    ) -> Result<Taken, Refusal> {
        let (Some(keeper), Some(restoring)) = (self.keeper.clone(), restoring) else {
            self.end(parts)?;
            return Ok(Taken::Response(no_content()));
        };
        let (sessions, parts) = (Arc::clone(self), Arc::clone(parts));
        let ending = tokio::spawn(async move {
            let _at_work = at_work;
            restoring.await?;
            let session = sessions.find_to_end(&parts)?;
            // As long as there is a record the session goes on, with all that was said.
            keeper.forget(session.id).await?;
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
