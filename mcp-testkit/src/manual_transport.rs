//! A transport whose work is done by the test.

use std::fmt;
use std::sync::{Arc, Mutex};

use mcp_client::{Transport, TransportHandle, TransportKind};

use crate::Clock;

/// A transport that does nothing: the test takes its [`TransportHandle`] and executes the commands.
///
/// [`ScriptedServer`](crate::ScriptedServer) does that for most tests.
#[derive(Clone)]
pub struct ManualTransport {
    kind: TransportKind,
    clock: Clock,
    handle: Arc<Mutex<Option<TransportHandle>>>,
}

impl ManualTransport {
    /// Creates a transport of a kind, whose client measures time with this clock.
    #[must_use]
    pub fn new(kind: TransportKind, clock: &Clock) -> Self {
        Self { kind, clock: clock.clone(), handle: Arc::default() }
    }

    /// Returns the handle, once a client was connected with a clone of this transport.
    ///
    /// # Panics
    ///
    /// Panics if the transport was not started, or if the handle was taken before.
    #[must_use]
    #[track_caller]
    pub fn take_handle(&self) -> TransportHandle {
        self.handle.lock().expect("no panic at the start").take().expect("the transport was started")
    }
}

impl Transport for ManualTransport {
    fn kind(&self) -> TransportKind {
        self.kind
    }

    fn clock(&self) -> mcp_client::Clock {
        let clock = self.clock.clone();
        Arc::new(move || clock.now())
    }

    fn start(self, handle: TransportHandle) {
        *self.handle.lock().expect("no panic at the start") = Some(handle);
    }
}

impl fmt::Debug for ManualTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualTransport").field("kind", &self.kind).finish_non_exhaustive()
    }
}
