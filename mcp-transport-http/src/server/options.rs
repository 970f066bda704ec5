//! How a server behaves over HTTP.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use mcp_server::{BoxFuture, Server};
use mcp_session::{EventKey, EventStore, SessionOptions, SessionStore};

use super::refusal::Refusal;
use crate::rules::hosts::AllowList;

/// How legacy clients are served; modern ones need no session, and are always served without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionMode {
    /// Each request alone, in the revision that its header names: tools, prompts and resources work, and any machine
    /// can answer. Clients cannot be asked anything, hear of no changes, and are not offered subscriptions.
    #[default]
    Stateless,
    /// With a session each, which begins with `initialize`: clients can be asked something while a tool runs, hear of
    /// changes, and come back for what they missed. All requests of a client must reach this process.
    Stateful,
    /// Not at all.
    Off,
}

/// How a server behaves over HTTP: whom it answers, how much it takes on, how long it waits.
///
/// The defaults are for a server that is used from the machine on which it runs.
///
/// | setting | default | more of it |
/// |---|---|---|
/// | [`sessions`](Self::sessions) | [`Stateless`](SessionMode::Stateless) | gives legacy clients sessions |
/// | [`allow_host`](Self::allow_host), [`allow_origin`](Self::allow_origin) | this machine | lets names and pages of others in; without a check, any page in a browser on this machine can use the server |
/// | [`body_limit`](Self::body_limit) | 4 MiB | takes more memory for each request |
/// | [`body_timeout`](Self::body_timeout) | 30 s | lets slow clients keep what they have sent so far in memory for longer |
/// | [`max_uploads`](Self::max_uploads) | 256 | lets more bodies come in bit by bit at the same time |
/// | [`max_in_flight`](Self::max_in_flight) | 1,024 | works on more requests at the same time, and keeps more responses that are not sent yet |
/// | [`max_in_flight_per_principal`](Self::max_in_flight_per_principal) | 256 | lets one user take more of these |
/// | [`max_listen_streams`](Self::max_listen_streams) | 1,024 | keeps more streams open for changes |
/// | [`max_listen_streams_per_principal`](Self::max_listen_streams_per_principal) | 16 | lets one user take more of these |
/// | [`keep_alive_interval`](Self::keep_alive_interval) | 15 s | costs less, but proxies may close what is silent |
/// | [`retry_after`](Self::retry_after) | 1 s | keeps clients away for longer when there is too much to do |
#[derive(Clone)]
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
    pub(crate) event_key: Option<Arc<EventKey>>,
    pub(crate) record_ttl: Duration,
    pub(crate) select_server: Option<SelectServer>,
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
        }
    }
}

impl HttpOptions {
    /// Sets how legacy clients are served. Defaults to [`SessionMode::Stateless`].
    ///
    /// A server that [requires sessions](mcp_server::ServerBuilder::requires_sessions) is refused with anything but
    /// [`SessionMode::Stateful`], when the service is made, and likewise where [`select_server`](Self::select_server) chooses one.
    #[must_use]
    pub fn sessions(mut self, sessions: SessionMode) -> Self {
        self.sessions = sessions;
        self
    }

    /// Answers requests for a host: the name or address by which clients reach the server, with a port if only that one
    /// is meant. This machine's own names are always allowed.
    #[must_use]
    pub fn allow_host(mut self, host: &str) -> Self {
        self.allowed.add_host(host);
        self
    }

    /// Answers requests for whatever host they name. Something in front of the server must have checked it, or else
    /// pages in a browser can reach what only this machine can (DNS rebinding).
    #[must_use]
    pub fn allow_any_host(mut self) -> Self {
        self.allowed.allow_any_host();
        self
    }

    /// Answers pages of an origin, such as `https://app.example.com`. Requests that come from no page name none, and
    /// need no permission.
    ///
    /// A browser wants more before it lets a page of another origin read an answer: the headers of CORS, which a layer
    /// such as that of `tower-http` adds.
    #[must_use]
    pub fn allow_origin(mut self, origin: &str) -> Self {
        self.allowed.add_origin(origin);
        self
    }

    /// Answers pages of every origin: whatever a user has open in a browser can use the server in their name.
    #[must_use]
    pub fn allow_any_origin(mut self) -> Self {
        self.allowed.allow_any_origin();
        self
    }

    /// Sets the maximum number of bytes of a request's body; more get 413. [`HttpServer`](crate::HttpServer) reads on, so
    /// that clients see that.
    #[must_use]
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// How long a body may take to arrive; what takes longer is answered with 408.
    #[must_use]
    pub fn body_timeout(mut self, time: Duration) -> Self {
        self.body_timeout = time;
        self
    }

    /// How many bodies may be on their way at the same time; more are answered with 503. A body counts once it has taken
    /// a second, or more than 16 KiB of it have come and not the rest, so slow clients cannot keep others out.
    #[must_use]
    pub fn max_uploads(mut self, count: usize) -> Self {
        self.max_uploads = count;
        self
    }

    /// Sets the maximum number of requests in flight; more get 503. Each request of a batch counts, from when it was read
    /// until its response was sent. As many refusals, and at least 64, may be unsent; further ones have a status and no text.
    ///
    /// [`HttpServer`](crate::HttpServer) takes at most 100 at a time of one connection, and ends what clients
    /// [do not read](crate::HttpServer::stall_timeout). Other servers have to do both themselves.
    #[must_use]
    pub fn max_in_flight(mut self, count: usize) -> Self {
        self.max_in_flight = count;
        self
    }

    /// How many of them may be of one principal; more are answered with 429. It is known if something in front of the
    /// service puts a [`Principal`](mcp_server::Principal) into the extensions of a request.
    #[must_use]
    pub fn max_in_flight_per_principal(mut self, count: usize) -> Self {
        self.max_in_flight_per_principal = count;
        self
    }

    /// How many streams may be open for changes at the same time; more are answered with 503.
    #[must_use]
    pub fn max_listen_streams(mut self, count: usize) -> Self {
        self.max_listen_streams = count;
        self
    }

    /// How many of them may be of one principal; more are answered with 429.
    #[must_use]
    pub fn max_listen_streams_per_principal(mut self, count: usize) -> Self {
        self.max_listen_streams_per_principal = count;
        self
    }

    /// How long an answer may be silent. Then it becomes a stream, if it is none yet, and gets a comment that clients
    /// ignore. At least a tenth of a second.
    // H-21
    #[must_use]
    pub fn keep_alive_interval(mut self, time: Duration) -> Self {
        self.keep_alive_interval = time.max(Duration::from_millis(100));
        self
    }

    /// When clients that were turned away are asked to come back.
    #[must_use]
    pub fn retry_after(mut self, time: Duration) -> Self {
        self.retry_after = time;
        self
    }

    /// Sets how long sessions last, how many there may be, and how much memory idle ones may take.
    #[must_use]
    pub fn session_options(mut self, options: SessionOptions) -> Self {
        self.session_options = options;
        self
    }

    /// Whether clients with sessions can come back for events that they missed; so they can unless told. What is kept
    /// for them is bounded.
    #[must_use]
    pub fn resumable(mut self, resumable: bool) -> Self {
        self.resumable = resumable;
        self
    }

    /// How long a request of a session goes on after its client has gone, 5 min unless told: disconnecting is not
    /// cancelling there.
    // B-28
    #[must_use]
    pub fn orphaned_request_timeout(mut self, time: Duration) -> Self {
        self.orphaned_request_timeout = time;
        self
    }

    /// When clients that lost a stream are to come back for it, 1 s unless told.
    #[must_use]
    pub fn sse_retry(mut self, time: Duration) -> Self {
        self.sse_retry = time;
        self
    }

    /// Keeps the records of sessions in a store, for `time_to_live` after they were last used, or up to a tenth less:
    /// another process with the same store goes on with them. Each request of a session then asks the store once.
    #[must_use]
    pub fn session_store(mut self, store: Arc<dyn SessionStore>, time_to_live: Duration) -> Self {
        (self.session_store, self.record_ttl) = (Some(store), time_to_live);
        self
    }

    /// Keeps the events of streams in a store, so that clients find them again in another process. All processes need
    /// the same `key`.
    #[must_use]
    pub fn event_store(mut self, store: Arc<dyn EventStore>, key: EventKey) -> Self {
        (self.event_store, self.event_key) = (Some(store), Some(Arc::new(key)));
        self
    }

    /// Looks at each request before its body is read, and says which server answers it, or why none does. A client with
    /// a session is looked at once, when the session begins.
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
    #[must_use]
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
