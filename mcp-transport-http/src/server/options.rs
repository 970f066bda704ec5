//! Settings of the HTTP service.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use mcp_server::{BoxFuture, Server};
use mcp_session::{EventIdKey, EventStore, SessionOptions, SessionStore};

use super::refusal::Refusal;
use super::stateful::{MigrateSession, SessionMigration};
use crate::rules::hosts::{AllowList, Names};

/// Whether legacy clients get sessions. Modern clients never need one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionMode {
    /// Serves each legacy request on its own, in the revision of its `MCP-Protocol-Version` header. Any instance can
    /// serve any request. Tools, prompts and resources work; server-to-client requests, change notifications and
    /// subscriptions do not.
    #[default]
    Stateless,
    /// Starts a session for each legacy client with `initialize`. Handlers can send server-to-client requests, and
    /// clients receive change notifications and resume broken streams. All requests of a session must reach the same
    /// process, unless there is a [session store](HttpOptions::session_store).
    Stateful,
    /// Refuses legacy clients.
    Off,
}

/// Settings of an [`HttpService`](crate::HttpService): allowed hosts, sessions, limits and timeouts.
///
/// The defaults suit a server that is used from the machine on which it runs.
///
/// | setting | default | effect of a larger value |
/// |---|---|---|
/// | [`sessions`](Self::sessions) | [`Stateless`](SessionMode::Stateless) | enables sessions for legacy clients |
/// | [`allow_host`](Self::allow_host), [`allow_origin`](Self::allow_origin) | this machine | allows further host names and web pages; without this check, any page in a browser on this machine could use the server |
/// | [`body_limit`](Self::body_limit) | 4 MiB | more memory per request |
/// | [`body_timeout`](Self::body_timeout) | 30 s | incomplete bodies stay in memory longer |
/// | [`max_uploads`](Self::max_uploads) | 256 | more slow uploads at the same time |
/// | [`max_in_flight`](Self::max_in_flight) | 1,024 | more concurrent requests and unsent responses |
/// | [`max_in_flight_per_principal`](Self::max_in_flight_per_principal) | 256 | a larger share for one user |
/// | [`max_listen_streams`](Self::max_listen_streams) | 1,024 | more open listen streams |
/// | [`max_listen_streams_per_principal`](Self::max_listen_streams_per_principal) | 16 | a larger share for one user |
/// | [`keep_alive_interval`](Self::keep_alive_interval) | 15 s | less traffic, but proxies may close idle streams |
/// | [`retry_after`](Self::retry_after) | 1 s | refused clients retry later |
#[derive(Clone)]
#[must_use]
pub struct HttpOptions {
    pub(crate) sessions: SessionMode,
    pub(crate) allowed: AllowList,
    pub(crate) body_limit: usize,
    pub(crate) body_timeout: Duration,
    pub(crate) max_uploads: usize,
    pub(crate) max_in_flight: usize,
    pub(crate) max_in_flight_per_principal: usize,
    pub(crate) max_listen_streams: usize,
    pub(crate) max_listen_streams_per_principal: usize,
    pub(crate) keep_alive_interval: Duration,
    pub(crate) retry_after: Duration,
    pub(crate) session_options: SessionOptions,
    pub(crate) resumable: bool,
    pub(crate) sse_retry: Duration,
    pub(crate) orphaned_request_timeout: Duration,
    pub(crate) session_store: Option<Arc<dyn SessionStore>>,
    pub(crate) event_store: Option<Arc<dyn EventStore>>,
    pub(crate) event_key: Option<Arc<EventIdKey>>,
    pub(crate) record_ttl: Duration,
    pub(crate) select_server: Option<SelectServer>,
    pub(crate) session_migration: Option<MigrateSession>,
}

pub(crate) type SelectServer = Arc<dyn Fn(Arc<Parts>) -> BoxFuture<Result<Server, Refusal>> + Send + Sync>;

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            sessions: SessionMode::default(),
            allowed: AllowList::default(),
            body_limit: 4 << 20,
            body_timeout: Duration::from_secs(30),
            max_uploads: 256,
            max_in_flight: 1024,
            max_in_flight_per_principal: 256,
            max_listen_streams: 1024,
            max_listen_streams_per_principal: 16,
            keep_alive_interval: Duration::from_secs(15),
            retry_after: Duration::from_secs(1),
            session_options: SessionOptions::default(),
            resumable: true,
            sse_retry: Duration::from_secs(1),
            orphaned_request_timeout: Duration::from_secs(300),
            session_store: None,
            event_store: None,
            event_key: None,
            record_ttl: Duration::from_secs(2 * 3600),
            select_server: None,
            session_migration: None,
        }
    }
}

impl HttpOptions {
    /// Sets whether legacy clients get sessions. Defaults to [`SessionMode::Stateless`].
    ///
    /// A server that [requires sessions](mcp_server::ServerBuilder::requires_sessions) needs [`SessionMode::Stateful`]:
    /// otherwise the service is not created, or the request is refused if [`select_server`](Self::select_server) returned
    /// that server.
    pub fn sessions(mut self, sessions: SessionMode) -> Self {
        self.sessions = sessions;
        self
    }

    /// Allows a host: the name or address by which clients reach the server, optionally with a port to allow only that
    /// port. Loopback names are always allowed.
    pub fn allow_host(mut self, host: &str) -> Self {
        self.allowed.add_host(host);
        self
    }

    /// Allows any `Host`. Use this only behind a proxy that checks it, or web pages can reach the server by DNS
    /// rebinding.
    pub fn allow_any_host(mut self) -> Self {
        self.allowed.hosts = Names::Any;
        self
    }

    /// Allows web pages of an origin, such as `https://app.example.com`. Requests without an `Origin` header are always
    /// allowed.
    ///
    /// Browsers also require CORS headers before a page of another origin can read a response; add them with a layer: see
    /// [`cors`](crate::cors).
    pub fn allow_origin(mut self, origin: &str) -> Self {
        self.allowed.origins.add(origin);
        self
    }

    /// Allows web pages of any origin: every page that a user opens can use the server on their behalf.
    pub fn allow_any_origin(mut self) -> Self {
        self.allowed.origins = Names::Any;
        self
    }

    /// Sets the maximum size of a request body in bytes; larger ones get 413. Defaults to 4 MiB.
    ///
    /// [`HttpServer`](crate::HttpServer) discards the rest of the body, so that clients receive the response.
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// Sets how long a request body may take to arrive; slower ones get 408. Defaults to 30 seconds.
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.body_timeout = timeout;
        self
    }

    /// Sets the maximum number of request bodies that arrive slowly at the same time; more get 503. Defaults to 256.
    ///
    /// An incomplete body counts after one second or 16 KiB, so slow clients do not use up
    /// [`max_in_flight`](Self::max_in_flight).
    pub fn max_uploads(mut self, count: usize) -> Self {
        self.max_uploads = count;
        self
    }

    /// Sets the maximum number of requests in flight; more get 503. Defaults to 1,024.
    ///
    /// Each request of a batch counts, from when its body was read until its response was sent. Error responses to
    /// refused requests have a limit of their own, `count` or 64, whichever is greater: beyond it they have no body.
    ///
    /// [`HttpServer`](crate::HttpServer) accepts at most 100 concurrent requests per connection and
    /// [closes](crate::HttpServer::stall_timeout) responses that clients do not read. Other HTTP servers have to do both
    /// themselves.
    pub fn max_in_flight(mut self, count: usize) -> Self {
        self.max_in_flight = count;
        self
    }

    /// Sets the maximum number of requests in flight per [`Principal`](mcp_server::Principal); more get 429. Defaults to
    /// 256. No effect without a `Principal` in the request's extensions.
    pub fn max_in_flight_per_principal(mut self, count: usize) -> Self {
        self.max_in_flight_per_principal = count;
        self
    }

    /// Sets the maximum number of open listen streams; more get 503. Defaults to 1,024.
    ///
    /// These are the streams that stay open for notifications: `subscriptions/listen` of modern clients, GET streams of
    /// sessions, and HTTP+SSE streams.
    pub fn max_listen_streams(mut self, count: usize) -> Self {
        self.max_listen_streams = count;
        self
    }

    /// Sets the maximum number of open listen streams per [`Principal`](mcp_server::Principal); more get 429. Defaults to
    /// 16.
    pub fn max_listen_streams_per_principal(mut self, count: usize) -> Self {
        self.max_listen_streams_per_principal = count;
        self
    }

    /// Sets after how long without a message a comment is sent on an event stream. A response that is not an event stream
    /// yet becomes one. Defaults to 15 seconds; the minimum is 100 milliseconds.
    // H-21
    pub fn keep_alive_interval(mut self, interval: Duration) -> Self {
        self.keep_alive_interval = interval.max(Duration::from_millis(100));
        self
    }

    /// Sets the `Retry-After` of 429 and 503 responses, rounded down to seconds, at least one. Defaults to 1 second.
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = delay;
        self
    }

    /// Sets the lifetime, number and memory limits of sessions.
    pub fn session_options(mut self, options: SessionOptions) -> Self {
        self.session_options = options;
        self
    }

    /// Sets whether clients with sessions can resume event streams with `Last-Event-ID`. Defaults to `true`. The number
    /// of stored events is limited by the [event store](Self::event_store).
    pub fn resumable(mut self, resumable: bool) -> Self {
        self.resumable = resumable;
        self
    }

    /// Sets how long a request of a session continues after its client disconnected, which does not cancel it. Defaults
    /// to 5 minutes.
    // B-28
    pub fn orphaned_request_timeout(mut self, timeout: Duration) -> Self {
        self.orphaned_request_timeout = timeout;
        self
    }

    /// Sets the `retry` field of event streams in sessions: how long clients wait before they reconnect. Defaults to 1
    /// second.
    pub fn sse_retry(mut self, delay: Duration) -> Self {
        self.sse_retry = delay;
        self
    }

    /// Stores session records, so that another process with the same store can continue the sessions.
    ///
    /// A record expires `time_to_live` after the session was last used, or up to a tenth earlier. Each request of a
    /// session then costs one access to the store.
    pub fn session_store(mut self, store: Arc<dyn SessionStore>, time_to_live: Duration) -> Self {
        (self.session_store, self.record_ttl) = (Some(store), time_to_live);
        self
    }

    /// Stores the events of session streams, so that clients can resume them in another process. All processes need the
    /// same `key`.
    pub fn event_store(mut self, store: Arc<dyn EventStore>, key: EventIdKey) -> Self {
        (self.event_store, self.event_key) = (Some(store), Some(Arc::new(key)));
        self
    }

    /// Sets a function that is called when this process resumes a session from the [session store](Self::session_store): one
    /// of another process, or from before a restart. The session's values in memory are lost then. The function can supply
    /// them again, or refuse to resume the session, usually with [`Refusal::unknown_session`], so that the client starts a
    /// new one. By default all sessions are resumed.
    ///
    /// Requests of the session wait until the function has completed. It is called after
    /// [`select_server`](Self::select_server) and `ServerBuilder::on_initialize` have chosen the server, and before
    /// `ServerBuilder::on_subscription` and `on_session` are called. A session that is refused stays in the store, where
    /// another process may accept it. A DELETE resumes no session: one that is only in the store is deleted there.
    ///
    /// ```
    /// use mcp_transport_http::{HttpOptions, Refusal, SessionMigration};
    ///
    /// struct Basket(Vec<String>);
    ///
    /// # async fn load_basket(_: String) -> Option<Basket> { None }
    /// let options = HttpOptions::default().session_migration(async |session: SessionMigration| {
    ///     let basket = load_basket(session.id().to_string()).await.ok_or_else(Refusal::unknown_session)?;
    ///     // A session always has room for values.
    ///     if let Ok(scratch) = session.connection().scratch() {
    ///         scratch.insert(basket);
    ///     }
    ///     Ok(())
    /// });
    /// ```
    // S4.115
    pub fn session_migration<F, Fut>(mut self, migrate: F) -> Self
    where
        F: Fn(SessionMigration) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Refusal>> + Send + 'static,
    {
        self.session_migration = Some(Arc::new(move |migration| Box::pin(migrate(migration))));
        self
    }

    /// Selects the server for each request from its head, before the body is read, or refuses the request. Within a
    /// session it is called once, for `initialize`, and again by each process that resumes the session from the
    /// [session store](Self::session_store).
    ///
    /// To select the server of a session by what the client declares in `initialize`, use `ServerBuilder::on_initialize`.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use http::StatusCode;
    /// use http::request::Parts;
    /// use mcp_server::Server;
    /// use mcp_transport_http::{HttpOptions, Refusal};
    ///
    /// let (old, new) = (Server::builder("shop", "1.0").build()?, Server::builder("shop", "2.0").build()?);
    /// let options = HttpOptions::default().select_server(move |parts: Arc<Parts>| {
    ///     let server = match parts.headers.get("x-api-version").map(|version| version.as_bytes()) {
    ///         None | Some(b"1") => Ok(old.clone()),
    ///         Some(b"2") => Ok(new.clone()),
    ///         Some(_) => Err(Refusal::new(StatusCode::BAD_REQUEST, "`X-Api-Version` must be 1 or 2")),
    ///     };
    ///     std::future::ready(server)
    /// });
    /// # Ok::<(), mcp_server::BuildError>(())
    /// ```
    // S4.64, S4.65
    pub fn select_server<F, Fut>(mut self, select_server: F) -> Self
    where
        F: Fn(Arc<Parts>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Server, Refusal>> + Send + 'static,
    {
        self.select_server = Some(Arc::new(move |parts| Box::pin(select_server(parts))));
        self
    }
}

impl std::fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpOptions")
            .field("sessions", &self.sessions)
            .field("allowed", &self.allowed)
            .field("body_limit", &self.body_limit)
            .field("max_in_flight", &self.max_in_flight)
            .field("max_listen_streams", &self.max_listen_streams)
            .finish_non_exhaustive()
    }
}
