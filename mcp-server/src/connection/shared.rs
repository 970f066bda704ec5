//! The part of a connection that its driver and its handlers share.

use std::any::Any;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use mcp_kernel::observe::{Network, Observer};
use mcp_kernel::server::{Connection as Kernel, Principal, Route};
use mcp_kernel::{CallId, RequestKey};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{Method, RawObject};
use tracing::Span;

use crate::asking::error::AskError;
use crate::asking::options::{AskOptions, ProgressHandler};
use crate::auth::info::AuthInfo;
use crate::connection::Caller;
use crate::connection::listen_streams::ListenStreams;
use crate::connection::oneshot::{self, Receiver, Sender};
use crate::connection::request_origin::RequestOrigins;
use crate::connection::running::DriverWaker;
use crate::connection::scratch::Scratch;
use crate::connection::waiters::Waiters;
use crate::extensions::Extensions;
use crate::serve::endpoint::BoxFuture;
use crate::serve::observed;
use crate::serve::telemetry::Stopwatch;
use crate::server::{Server, WeakServer};

/// The kernel of a connection, and the commands of its handlers.
///
/// The lock is held briefly, and never while a handler runs.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// The task that drives the connection, which is woken when a handler has sent something.
    pub(crate) driver: DriverWaker,
    /// Is called instead, if several tasks drive the connection.
    pub(crate) route_waker: OnceLock<Arc<dyn RouteWaker>>,
    /// Whether there may be a next request, so that handlers can keep values.
    is_lasting: bool,
    /// Whether the connection was added to the broadcast.
    pub(crate) has_joined: AtomicBool,
    /// How messages travel, for metrics.
    network: AtomicU8,
    /// The session id of the transport. It is formatted on request, as few handlers need it.
    pub(crate) session_id: OnceLock<Arc<dyn std::fmt::Display + Send + Sync>>,
    /// Allocated on first use, which few connections get to.
    rare: OnceLock<Box<Rare>>,
}

/// What few connections need. There are many idle sessions, and many connections for one request.
#[derive(Default)]
pub(crate) struct Rare {
    /// Values that handlers keep from one request to the next.
    scratch: Scratch,
    teardown: Mutex<Vec<Teardown>>,
    server_request_count: AtomicU64,
    token: OnceLock<Box<str>>,
    /// The observer that knows of the connection, and its duration.
    observed: OnceLock<(Arc<dyn Observer>, Stopwatch)>,
    /// Measures the time since the last message was fed through a port, if that is reported.
    received: Mutex<Option<Stopwatch>>,
    /// What failed, if the connection does not end as intended.
    end_error: OnceLock<&'static str>,
    /// The span of a connection for many requests, until its end.
    session_span: Mutex<Option<Span>>,
    /// The last length of the queue of requests that was reported.
    queued: AtomicUsize,
    /// Tasks that wait for the end of the handshake.
    pub(crate) handshake_waiters: Waiters,
}

pub(crate) struct State {
    pub(crate) kernel: Kernel,
    /// The server whose changes are published to the connection, which the handshake may replace. Weak, as the application
    /// may keep handles of connections in the state of the server.
    pub(crate) server: Option<WeakServer>,
    /// The user of the last message, on connections that can be notified of changes.
    pub(crate) principal: Option<Principal>,
    /// What the access token of that message says.
    pub(crate) auth: Option<Arc<AuthInfo>>,
    pub(crate) listen_streams: ListenStreams,
    /// What was fed through a port since the kernel's events were handled.
    pub(crate) inbox: Inbox,
    /// The extensions of requests that wait to be admitted.
    pub(crate) origins: RequestOrigins,
    /// Allocated for the first one, as few connections have any.
    pub(crate) server_requests: Option<Box<ServerRequests>>,
}

/// The server-to-client requests of a connection.
#[derive(Default)]
pub(crate) struct ServerRequests {
    /// Those for the driver to send, which alone knows the time.
    pub(crate) queued: VecDeque<QueuedServerRequest>,
    /// Those that wait for a response.
    pub(crate) open: Vec<PendingServerRequest>,
}

impl ServerRequests {
    /// Removes a request that waits for a response.
    pub(crate) fn close(&mut self, is_it: impl Fn(&PendingServerRequest) -> bool) -> Option<PendingServerRequest> {
        let index = self.open.iter().position(is_it)?;
        Some(self.open.swap_remove(index))
    }
}

/// The number and size of messages.
#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

/// Wakes the tasks that drive a connection, for transports where there are several.
pub trait RouteWaker: Send + Sync {
    /// Wakes the task that drives a route, or with `None` any task that drives the connection.
    fn wake_route(&self, route: Option<Route>);
}

/// A callback at the end of a connection.
pub(crate) type Teardown = Box<dyn FnOnce() -> BoxFuture<()> + Send>;

pub(crate) type ClientResponse = Result<PayloadBuf, AskError>;

/// A server-to-client request that was not sent yet.
pub(crate) struct QueuedServerRequest {
    pub(crate) number: u64,
    pub(crate) related: Option<RequestKey>,
    pub(crate) method: Method,
    pub(crate) params: RawObject,
    pub(crate) options: AskOptions,
    pub(crate) reply: Sender<ClientResponse>,
    pub(crate) span: Span,
}

pub(crate) struct PendingServerRequest {
    pub(crate) number: u64,
    pub(crate) call: CallId,
    pub(crate) watcher: Option<ProgressHandler>,
    pub(crate) reply: Sender<ClientResponse>,
}

impl State {
    /// Remembers who sent a message, for predicates of later notifications. `has_joined` tells whether the connection can be
    /// notified outside of listen streams.
    pub(crate) fn note_caller(&mut self, key: Option<RequestKey>, caller: &Caller, has_joined: &AtomicBool) {
        if has_joined.load(Ordering::Relaxed) {
            if self.principal != caller.principal {
                self.principal.clone_from(&caller.principal);
            }
            self.auth = caller.extensions.share();
        }
        self.note_listener(key, || caller.extensions.clone());
    }

    /// Returns a server-to-client request that waits for a response.
    pub(crate) fn pending_request(&mut self, call: CallId) -> Option<&mut PendingServerRequest> {
        self.server_requests.as_mut()?.open.iter_mut().find(|open| open.call == call)
    }

    /// Remembers a listen stream that the kernel has just opened.
    pub(crate) fn note_listener(&mut self, key: Option<RequestKey>, extensions: impl FnOnce() -> Extensions) {
        if let Some(scope) = key.and_then(|key| self.kernel.listen_scope(key)) {
            self.listen_streams.insert(scope, extensions());
        }
    }
}

impl Shared {
    // Inlined with the constructors of the kernel, so that the state is not copied from one to the other.
    #[inline(always)]
    pub(crate) fn new(kernel: Kernel) -> Self {
        let is_lasting = !kernel.is_for_one_request();
        Self {
            state: Mutex::new(State {
                kernel,
                server: None,
                principal: None,
                auth: None,
                listen_streams: ListenStreams::default(),
                inbox: Inbox::default(),
                origins: RequestOrigins::default(),
                server_requests: None,
            }),
            driver: DriverWaker::default(),
            route_waker: OnceLock::new(),
            is_lasting,
            has_joined: AtomicBool::new(false),
            network: AtomicU8::new(0),
            session_id: OnceLock::new(),
            rare: OnceLock::new(),
        }
    }

    /// Returns what few connections need, and allocates it if necessary.
    pub(crate) fn rare(&self) -> &Rare {
        self.rare.get_or_init(Box::default)
    }

    /// Returns the values that handlers keep, unless there is no next request.
    pub(crate) fn scratch(&self) -> Option<&Scratch> {
        self.is_lasting.then(|| &self.rare().scratch)
    }

    /// Returns a value that a handler kept.
    pub(crate) fn kept<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.rare.get()?.scratch.get()
    }

    /// Returns whether there may be a next request.
    pub(crate) fn is_lasting(&self) -> bool {
        self.is_lasting
    }

    /// Measures the duration of the connection from now on, for an observer.
    pub(crate) fn set_observer(&self, observer: Arc<dyn Observer>) {
        let _ = self.rare().observed.set((observer, Stopwatch::start()));
    }

    /// Returns the observer that knows of the connection, and its duration.
    pub(crate) fn observer(&self) -> Option<&(Arc<dyn Observer>, Stopwatch)> {
        self.rare.get()?.observed.get()
    }

    /// Measures the time since a message was fed through a port.
    pub(crate) fn set_received(&self, received: Stopwatch) {
        *self.rare().received.lock().unwrap_or_else(PoisonError::into_inner) = Some(received);
    }

    pub(crate) fn received(&self) -> Option<Stopwatch> {
        *self.rare.get()?.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what failed, if the connection is observed.
    pub(crate) fn set_end_error(&self, error: &'static str) {
        if let Some(rare) = self.rare.get() {
            let _ = rare.end_error.set(error);
        }
    }

    pub(crate) fn end_error(&self) -> Option<&'static str> {
        self.rare.get()?.end_error.get().copied()
    }

    /// Keeps the span of the connection until its end.
    pub(crate) fn set_session_span(&self, span: Span) {
        *self.rare().session_span.lock().unwrap_or_else(PoisonError::into_inner) = Some(span);
    }

    pub(crate) fn take_session_span(&self) -> Option<Span> {
        self.rare.get()?.session_span.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Sets the length of the queue of requests, and returns the difference to the last one.
    pub(crate) fn queue_change(&self, length: usize) -> i64 {
        let before = self.rare().queued.swap(length, Ordering::Relaxed);
        length as i64 - before as i64
    }

    /// Returns the length of the queue of requests that was reported.
    pub(crate) fn reported_queue(&self) -> usize {
        self.rare.get().map_or(0, |rare| rare.queued.load(Ordering::Relaxed))
    }

    /// Returns how messages travel, for metrics.
    pub(crate) fn network(&self) -> Network {
        observed::network_of(self.network.load(Ordering::Relaxed))
    }

    pub(crate) fn set_network(&self, network: Network) {
        self.network.store(observed::number_of(network), Ordering::Relaxed);
    }

    /// Adds a callback at the end of the connection.
    pub(crate) fn push_teardown(&self, teardown: Teardown) {
        self.rare().teardown.lock().unwrap_or_else(PoisonError::into_inner).push(teardown);
    }

    /// Takes the callback that was added last.
    pub(crate) fn pop_teardown(&self) -> Option<Teardown> {
        self.rare.get()?.teardown.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Returns whether there is a callback at the end of the connection.
    pub(crate) fn has_teardown(&self) -> bool {
        let is_empty = |rare: &Rare| rare.teardown.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        self.rare.get().is_some_and(|rare| !is_empty(rare))
    }

    /// Wakes tasks that wait for the end of the handshake.
    pub(crate) fn wake_handshake_waiters(&self) {
        if let Some(rare) = self.rare.get() {
            rare.handshake_waiters.wake_all();
        }
    }

    /// A unique name of the connection, which reveals nothing about the transport's session id.
    // S2.6, S4.103
    pub(crate) fn token(&self) -> &str {
        static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().build_hasher().finish());
        static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
        let token = &self.rare().token;
        token.get_or_init(|| format!("{:016x}-{:x}", *PROCESS, CONNECTIONS.fetch_add(1, Ordering::Relaxed)).into())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the server whose changes are published to the connection, if there is one.
    pub(crate) fn server(&self) -> Option<Server> {
        self.lock().server.as_ref().and_then(WeakServer::upgrade)
    }

    /// Returns whether the changes of a server are published to the connection.
    pub(crate) fn is_served_by(&self, server: &Server) -> bool {
        self.lock().server.as_ref().is_some_and(|own| own.is(server))
    }

    /// Wakes the task that drives a route, or any that drives the connection.
    pub(crate) fn wake(&self, route: Option<Route>) {
        match self.route_waker.get() {
            Some(waker) => waker.wake_route(route),
            None => self.driver.wake(),
        }
    }

    /// Runs a command of the kernel, and wakes the driver to send the messages that result from it.
    pub(crate) fn run_command<R>(&self, request: Option<RequestKey>, command: impl FnOnce(&mut Kernel) -> R) -> R {
        let outcome = command(&mut self.lock().kernel);
        self.wake(Some(request.map_or(Route::Standalone, Route::Related)));
        outcome
    }

    /// Queues a server-to-client request for the driver.
    pub(crate) fn ask(
        &self,
        related: Option<RequestKey>,
        method: Method,
        params: RawObject,
        options: AskOptions,
        span: Span,
    ) -> (u64, Receiver<ClientResponse>) {
        let number = self.rare().server_request_count.fetch_add(1, Ordering::Relaxed);
        let (reply, response) = oneshot::channel();
        let mut state = self.lock();
        if !state.kernel.is_closed() {
            // On a closed connection the sender is dropped, which the receiver sees as a disconnect.
            let request = QueuedServerRequest { number, related, method, params, options, reply, span };
            state.server_requests.get_or_insert_default().queued.push_back(request);
        }
        drop(state);
        self.wake(related.map(Route::Related));
        (number, response)
    }

    /// Cancels a server-to-client request; the client is notified if it was sent.
    pub(crate) fn withdraw(&self, number: u64) {
        let mut state = self.lock();
        let Some(requests) = &mut state.server_requests else { return };
        let waiting = requests.queued.iter().position(|request| request.number == number);
        let waiting = waiting.and_then(|index| requests.queued.remove(index));
        let open = requests.close(|open| open.number == number);
        if let Some(open) = &open {
            let _ = state.kernel.cancel(open.call);
        }
        drop(state);
        if open.is_some() {
            self.wake(None);
        }
        // Dropped without the lock, as that wakes the receiver.
        drop((waiting, open));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There is one for each session, of which most are idle, and for each request without a session.
    #[cfg(target_pointer_width = "64")]
    #[test]
    fn connections_are_small() {
        assert!(size_of::<Shared>() <= 528, "{}", size_of::<Shared>());
    }
}
