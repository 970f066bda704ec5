//! What a connection's driver and its handlers both hold.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use mcp_kernel::server::Connection as Kernel;
use mcp_kernel::{CallId, RequestKey, Route};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{Method, RawObject};

use crate::asking::client_requests::AskError;
use crate::asking::options::{AskOptions, ProgressHandler};
use crate::connection::oneshot::{self, Receiver, Sender};
use crate::connection::request_origin::RequestOrigins;
use crate::connection::running::DriverWaker;
use crate::extensions::Extensions;
use crate::serve::endpoint::BoxFuture;

/// The kernel of a connection, and what its handlers leave there.
///
/// The lock is held for moments only, and never while a handler runs.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// The task that drives the connection: it has to look when a handler has something to say.
    pub(crate) driver: DriverWaker,
    /// Who is woken instead, where more than one task does.
    pub(crate) route_waker: OnceLock<RouteWaker>,
    /// What handlers keep from one request to the next.
    pub(crate) scratch: Mutex<Extensions>,
    pub(crate) teardown: Mutex<Vec<Teardown>>,
    /// Whether the connection hears of changes.
    pub(crate) has_joined: AtomicBool,
    asked: AtomicU64,
    token: OnceLock<String>,
}

pub(crate) struct State {
    pub(crate) kernel: Kernel,
    /// What came in by a port since the kernel's news were acted on.
    pub(crate) inbox: Inbox,
    /// Who sent the requests that wait.
    pub(crate) origins: RequestOrigins,
    /// Questions that the driver has to pass on: only it knows the time.
    pub(crate) client_requests: VecDeque<QueuedClientRequest>,
    /// Questions that the client has to answer.
    pub(crate) open: Vec<PendingClientRequest>,
    /// Requests whose round is over, because they asked something.
    #[cfg(feature = "mrtr")]
    pub(crate) suspended: Vec<RequestKey>,
}

/// How much came in, and how much that takes.
#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

/// Wakes the task that serves a route, or whichever serves the connection.
pub type RouteWaker = Arc<dyn Fn(Option<Route>) + Send + Sync>;

/// What runs when a connection ends.
pub(crate) type Teardown = Box<dyn FnOnce() -> BoxFuture<()> + Send>;

pub(crate) type ClientResponse = Result<PayloadBuf, AskError>;

/// A question to the client.
pub(crate) struct QueuedClientRequest {
    pub(crate) number: u64,
    pub(crate) related: Option<RequestKey>,
    pub(crate) method: Method,
    pub(crate) params: RawObject,
    pub(crate) options: AskOptions,
    pub(crate) reply: Sender<ClientResponse>,
}

pub(crate) struct PendingClientRequest {
    pub(crate) number: u64,
    pub(crate) call: CallId,
    pub(crate) watcher: Option<ProgressHandler>,
    pub(crate) reply: Sender<ClientResponse>,
}

impl Shared {
    pub(crate) fn new(kernel: Kernel) -> Self {
        Self {
            state: Mutex::new(State {
                kernel,
                inbox: Inbox::default(),
                origins: RequestOrigins::default(),
                client_requests: VecDeque::new(),
                open: Vec::new(),
                #[cfg(feature = "mrtr")]
                suspended: Vec::new(),
            }),
            driver: DriverWaker::default(),
            route_waker: OnceLock::new(),
            scratch: Mutex::default(),
            teardown: Mutex::default(),
            has_joined: AtomicBool::new(false),
            asked: AtomicU64::new(0),
            token: OnceLock::new(),
        }
    }

    /// A name for the connection that no other has; it says nothing about the transport's own.
    // S2.6, S4.103
    pub(crate) fn token(&self) -> &str {
        static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().build_hasher().finish());
        static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
        self.token.get_or_init(|| format!("{:016x}-{:x}", *PROCESS, CONNECTIONS.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has whoever drives the connection look at it, because there is something to do for a route, or for any.
    pub(crate) fn wake(&self, route: Option<Route>) {
        match self.route_waker.get() {
            Some(wake) => wake(route),
            None => self.driver.wake(),
        }
    }

    /// Gives the kernel a command about a request or the connection, and has the driver send what comes of it.
    pub(crate) fn tell<R>(&self, request: Option<RequestKey>, command: impl FnOnce(&mut Kernel) -> R) -> R {
        let outcome = command(&mut self.lock().kernel);
        self.wake(Some(request.map_or(Route::Standalone, Route::Related)));
        outcome
    }

    /// Leaves a question for the driver; dropping the receiver takes it back.
    pub(crate) fn ask(
        &self,
        related: Option<RequestKey>,
        method: Method,
        params: RawObject,
        options: AskOptions,
    ) -> (u64, Receiver<ClientResponse>) {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        let mut state = self.lock();
        if !state.kernel.is_closed() {
            // Nobody would pass it on otherwise; then the reply is dropped, which is an answer as well.
            state.client_requests.push_back(QueuedClientRequest { number, related, method, params, options, reply });
        }
        drop(state);
        self.wake(related.map(Route::Related));
        (number, answer)
    }

    /// Has the driver end the round of a request, with all that was asked by then.
    #[cfg(feature = "mrtr")]
    pub(crate) fn suspend(&self, request: RequestKey) {
        self.lock().suspended.push(request);
        self.wake(Some(Route::Related(request)));
    }

    /// Takes a question back that nobody waits for any more; the client is told.
    pub(crate) fn withdraw(&self, number: u64) {
        let mut state = self.lock();
        let waiting = state.client_requests.iter().position(|ask| ask.number == number);
        let waiting = waiting.and_then(|index| state.client_requests.remove(index));
        let open = state.open.iter().position(|open| open.number == number);
        let open = open.map(|index| state.open.swap_remove(index));
        if let Some(open) = &open {
            let _ = state.kernel.cancel(open.call);
        }
        drop(state);
        if open.is_some() {
            self.wake(None);
        }
        // Dropped without the lock, as that wakes whoever waits for them.
        drop((waiting, open));
    }
}
