//! Where the messages of a client go.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use mcp_client::{Clock, Time};
use mcp_server::{Caller, Connection, ServerBuilder};

/// The way to a server.
pub(crate) trait Link {
    fn clock(&self) -> Clock;

    fn send(&mut self, message: &[u8]);

    /// Returns the next message of the server, or `None` if there is none before the deadline.
    fn receive(&mut self, deadline: Option<Time>) -> Option<Vec<u8>>;
}

/// A server in the same module.
pub(crate) struct LocalServer {
    connection: Connection,
    clock: Clock,
}

impl LocalServer {
    /// Starts a server with a clock that moves to a deadline when nothing else is left to do, and numbers that only a test
    /// may take for random.
    pub(crate) fn on_manual_clock(server: ServerBuilder) -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(0);
        let server = server.unix_clock(|| manual_time().duration_since(Time::EPOCH)).random_source(|bytes| {
            bytes.fill_with(|| NEXT.fetch_add(1, Ordering::Relaxed));
            true
        });
        Self::new(server, Arc::new(manual_time))
    }

    /// Starts a server with the clock and the random source of the system.
    pub(crate) fn on_system_clock(server: ServerBuilder) -> Self {
        Self::new(server, system_clock())
    }

    fn new(server: ServerBuilder, clock: Clock) -> Self {
        Self { connection: Connection::long_lived(&server.build().expect("the tools have valid schemas")), clock }
    }

    /// Serves the client on the standard streams.
    pub(crate) fn serve_streams(mut self) {
        for line in io::stdin().lines() {
            self.send(line.expect("the input is text").as_bytes());
            while let Some(message) = self.receive(None) {
                write_line(&message);
            }
        }
    }
}

impl Link for LocalServer {
    fn clock(&self) -> Clock {
        Arc::clone(&self.clock)
    }

    fn send(&mut self, message: &[u8]) {
        self.connection.feed((self.clock)(), message, &Caller::default());
    }

    fn receive(&mut self, deadline: Option<Time>) -> Option<Vec<u8>> {
        let _ = self.connection.poll(&mut Context::from_waker(Waker::noop()), (self.clock)());
        let transmit = self.connection.poll_transmit();
        if let (None, Some(deadline)) = (&transmit, deadline) {
            MANUAL_NANOS.store(deadline.duration_since(Time::EPOCH).as_nanos() as u64, Ordering::Relaxed);
        }
        transmit.map(|transmit| transmit.message.to_vec())
    }
}

/// A server at the other end of the standard streams.
pub(crate) struct Streams {
    clock: Clock,
}

impl Streams {
    pub(crate) fn new() -> Self {
        Self { clock: system_clock() }
    }
}

impl Link for Streams {
    fn clock(&self) -> Clock {
        Arc::clone(&self.clock)
    }

    fn send(&mut self, message: &[u8]) {
        write_line(message);
    }

    /// Waits for a line, however long that takes: reading blocks.
    fn receive(&mut self, _: Option<Time>) -> Option<Vec<u8>> {
        let line = io::stdin().lines().next().expect("the server is there").expect("the input is text");
        Some(line.into_bytes())
    }
}

fn write_line(message: &[u8]) {
    let mut output = io::stdout().lock();
    let written = output.write_all(message).and_then(|()| output.write_all(b"\n")).and_then(|()| output.flush());
    written.expect("the other side reads");
}

static MANUAL_NANOS: AtomicU64 = AtomicU64::new(0);

fn manual_time() -> Time {
    Time::since_epoch(Duration::from_nanos(MANUAL_NANOS.load(Ordering::Relaxed)))
}

#[expect(clippy::disallowed_methods, reason = "this is a driver")]
fn system_clock() -> Clock {
    let start = Instant::now();
    Arc::new(move || Time::from_instant(Instant::now(), start))
}
