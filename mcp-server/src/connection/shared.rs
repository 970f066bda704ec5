//! The part of a connection that its driver and its handlers share.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use mcp_kernel::server::{Connection as Kernel, Principal, Route};
use mcp_kernel::{CallId, RequestKey};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{Method, RawObject};

use crate::asking::error::AskError;
use crate::asking::options::{AskOptions, ProgressHandler};
use crate::connection::Caller;
use crate::connection::listen_streams::ListenStreams;
use crate::connection::oneshot::{self, Receiver, Sender};
use crate::connection::request_origin::RequestOrigins;
use crate::connection::running::DriverWaker;
use crate::connection::scratch::Scratch;
use crate::connection::waiters::Waiters;
use crate::extensions::Extensions;
use crate::serve::endpoint::BoxFuture;
use crate::server::{Server, WeakServer};

/// The kernel of a connection, and the commands of its handlers.
///
/// The lock is held briefly, and never while a handler runs.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// The task that drives the connection, which is woken when a handler has sent something.
    pub(crate) driver: DriverWaker,
    /// Is called instead, if several tasks drive the connection.
    pub(crate) route_waker: OnceLock<RouteWaker>,
    /// Values that handlers keep from one request to the next; absent if there is no next one.
    pub(crate) scratch: Option<Scratch>,
    pub(crate) teardown: Mutex<Vec<Teardown>>,
    /// Whether the connection was added to the broadcast.
    pub(crate) has_joined: AtomicBool,
    server_request_count: AtomicU64,
    token: OnceLock<Box<str>>,
    /// The session id of the transport. It is formatted on request, as few handlers need it.
    pub(crate) session_id: OnceLock<Arc<dyn std::fmt::Display + Send + Sync>>,
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
    pub(crate) listen_streams: ListenStreams,
    /// What was fed through a port since the kernel's events were handled.
    pub(crate) inbox: Inbox,
    /// The extensions of requests that wait to be admitted.
    pub(crate) origins: RequestOrigins,
    /// Server-to-client requests for the driver to send, which alone knows the time.
    pub(crate) server_requests: VecDeque<QueuedServerRequest>,
    /// Server-to-client requests that wait for a response.
    pub(crate) open: Vec<PendingServerRequest>,
}

/// The number and size of messages.
#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

/// Wakes the task that drives a route, or with `None` any task that drives the connection.
pub type RouteWaker = Arc<dyn Fn(Option<Route>) + Send + Sync>;

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
        if has_joined.load(Ordering::Relaxed) && self.principal != caller.principal {
            self.principal.clone_from(&caller.principal);
        }
        self.note_listener(key, || caller.extensions.clone());
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
        let scratch = (!kernel.is_for_one_request()).then(Scratch::default);
        Self {
            state: Mutex::new(State {
                kernel,
                server: None,
                principal: None,
                listen_streams: ListenStreams::default(),
                inbox: Inbox::default(),
                origins: RequestOrigins::default(),
                server_requests: VecDeque::new(),
                open: Vec::new(),
            }),
            driver: DriverWaker::default(),
            route_waker: OnceLock::new(),
            scratch,
            teardown: Mutex::default(),
            has_joined: AtomicBool::new(false),
            server_request_count: AtomicU64::new(0),
            token: OnceLock::new(),
            session_id: OnceLock::new(),
            handshake_waiters: Waiters::default(),
        }
    }

    /// A unique name of the connection, which reveals nothing about the transport's session id.
    // S2.6, S4.103
    pub(crate) fn token(&self) -> &str {
        static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().build_hasher().finish());
        static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
        self.token.get_or_init(|| format!("{:016x}-{:x}", *PROCESS, CONNECTIONS.fetch_add(1, Ordering::Relaxed)).into())
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
            Some(wake) => wake(route),
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
    ) -> (u64, Receiver<ClientResponse>) {
        let number = self.server_request_count.fetch_add(1, Ordering::Relaxed);
        let (reply, response) = oneshot::channel();
        let mut state = self.lock();
        if !state.kernel.is_closed() {
            // On a closed connection the sender is dropped, which the receiver sees as a disconnect.
            state.server_requests.push_back(QueuedServerRequest { number, related, method, params, options, reply });
        }
        drop(state);
        self.wake(related.map(Route::Related));
        (number, response)
    }

    /// Cancels a server-to-client request; the client is notified if it was sent.
    pub(crate) fn withdraw(&self, number: u64) {
        let mut state = self.lock();
        let waiting = state.server_requests.iter().position(|request| request.number == number);
        let waiting = waiting.and_then(|index| state.server_requests.remove(index));
        let open = state.open.iter().position(|open| open.number == number);
        let open = open.map(|index| state.open.swap_remove(index));
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
