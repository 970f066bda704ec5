//! Threads that serve, and a handler that blocks one of them.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_server::{NoArguments, Server, tool};
use tokio::runtime::{Builder, Runtime};

use crate::demo::server;

/// How many threads serve.
pub(crate) const WORKERS: usize = 4;

/// How long a test waits for anything before it fails.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A server whose tool `block` holds its thread until the test lets it go.
pub(crate) struct Blocking {
    pub(crate) server: Server,
    has_begun: Receiver<()>,
    release: Option<Sender<()>>,
}

impl Blocking {
    pub(crate) fn new() -> Self {
        let (begun, has_begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let server = server(|builder| {
            builder.tool(tool("hello", async |_, _: NoArguments| "hello")).tool(tool(
                "block",
                move |_, _: NoArguments| {
                    let (begun, released) = (begun.clone(), Arc::clone(&released));
                    async move {
                        let _ = begun.send(());
                        // Nothing is ever sent: the other end is dropped.
                        let end = released.lock().map(|released| released.recv_timeout(LIMIT));
                        if matches!(end, Ok(Err(RecvTimeoutError::Disconnected))) { "released" } else { "stuck" }
                    }
                },
            ))
        });
        Self { server, has_begun, release: Some(release) }
    }

    pub(crate) fn begins(&self) {
        self.has_begun.recv_timeout(LIMIT).expect("the handler begins");
    }

    pub(crate) fn release(&mut self) {
        self.release = None;
    }
}

pub(crate) fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build().expect("a runtime")
}

/// Runs a future on the threads that serve. Its outcome is waited for elsewhere, as they may all be blocked.
pub(crate) fn spawn<T: Send + 'static>(
    runtime: &Runtime,
    future: impl Future<Output = T> + Send + 'static,
) -> Receiver<T> {
    let (sender, receiver) = mpsc::channel();
    runtime.spawn(async move {
        let _ = sender.send(future.await);
    });
    receiver
}

pub(crate) fn wait<T>(outcome: &Receiver<T>, what: &str) -> T {
    outcome.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("{what} takes too long"))
}
