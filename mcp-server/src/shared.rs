//! What a connection's driver and its handlers both hold.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot;
use futures_util::future::BoxFuture;
use futures_util::task::AtomicWaker;
use mcp_kernel::server::Connection as Kernel;
use mcp_kernel::{CallId, CallOptions, RequestKey};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{Method, RawObject};

use crate::ask::AskError;
use crate::extensions::Extensions;

/// The kernel of a connection, and what its handlers leave there.
///
/// The lock is held for moments only, and never while a handler runs.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// The task that drives the connection: it has to look when a handler has something to say.
    pub(crate) driver: AtomicWaker,
    /// What handlers keep from one request to the next.
    pub(crate) scratch: Mutex<Extensions>,
    pub(crate) teardown: Mutex<Vec<Teardown>>,
    /// Whether the connection hears of changes.
    pub(crate) has_joined: AtomicBool,
    asked: AtomicU64,
}

pub(crate) struct State {
    pub(crate) kernel: Kernel,
    /// Questions that the driver has to pass on: only it knows the time.
    pub(crate) asks: VecDeque<Ask>,
    /// Questions that the client has to answer.
    pub(crate) open: Vec<OpenAsk>,
}

/// What runs when a connection ends.
pub(crate) type Teardown = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

pub(crate) type Reply = oneshot::Sender<Result<PayloadBuf, AskError>>;

/// A question to the client.
pub(crate) struct Ask {
    pub(crate) number: u64,
    pub(crate) related: Option<RequestKey>,
    pub(crate) method: Method,
    pub(crate) params: RawObject,
    pub(crate) options: CallOptions,
    pub(crate) reply: Reply,
}

pub(crate) struct OpenAsk {
    pub(crate) number: u64,
    pub(crate) call: CallId,
    pub(crate) reply: Reply,
}

impl Shared {
    pub(crate) fn new(kernel: Kernel) -> Self {
        Self {
            state: Mutex::new(State { kernel, asks: VecDeque::new(), open: Vec::new() }),
            driver: AtomicWaker::new(),
            scratch: Mutex::default(),
            teardown: Mutex::default(),
            has_joined: AtomicBool::new(false),
            asked: AtomicU64::new(0),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the kernel a command, and has the driver send what comes of it.
    pub(crate) fn tell<R>(&self, command: impl FnOnce(&mut Kernel) -> R) -> R {
        let outcome = command(&mut self.lock().kernel);
        self.driver.wake();
        outcome
    }

    /// Leaves a question for the driver; dropping the receiver takes it back.
    pub(crate) fn ask(
        &self,
        related: Option<RequestKey>,
        method: Method,
        params: RawObject,
        options: CallOptions,
    ) -> (u64, oneshot::Receiver<Result<PayloadBuf, AskError>>) {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        let mut state = self.lock();
        if !state.kernel.is_closed() {
            // Nobody would pass it on otherwise; then the reply is dropped, which is an answer as well.
            state.asks.push_back(Ask { number, related, method, params, options, reply });
        }
        drop(state);
        self.driver.wake();
        (number, answer)
    }

    /// Takes a question back that nobody waits for any more; the client is told.
    pub(crate) fn take_back(&self, number: u64) {
        let mut state = self.lock();
        state.asks.retain(|ask| ask.number != number);
        let open = state.open.iter().position(|open| open.number == number);
        if let Some(open) = open.map(|index| state.open.swap_remove(index)) {
            let _ = state.kernel.cancel(open.call);
            drop(state);
            self.driver.wake();
        }
    }
}
