//! A server in the same process.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_kernel::Time;
use mcp_server::{Caller, Connection, Server};
use tokio::time::{Instant, Sleep, sleep};

use super::{Clock, Link, Order, Transport, TransportKind};
use crate::closed::Closed;

/// Connects a client with a server in the same process: for tests, and for tools that come with an application.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use mcp_client::{Client, Memory};
/// use mcp_server::{NoArguments, Server, tool};
///
/// let hello = tool("hello", async |_, _: NoArguments| "Hello!");
/// let client = Client::connect(Memory::new(Server::builder("greeter", "1.0").tool(hello).build()?)).await?;
/// let result = client.call_tool_without_arguments("hello").await?;
/// assert_eq!(result.content[0].as_text(), Some("Hello!"));
/// # Ok(())
/// # }
/// ```
///
/// Messages are written and read as on any other way, so that what works here works elsewhere. Both sides run in one task
/// of the tokio runtime in which the client is connected.
#[derive(Clone, Debug)]
pub struct Memory {
    server: Server,
    caller: Caller,
}

/// How long what a server does at the end of a connection may take.
const TEARDOWN: Duration = Duration::from_secs(5);

impl Memory {
    /// Connects with this server.
    #[must_use]
    pub fn new(server: Server) -> Self {
        Self { server, caller: Caller::default() }
    }

    /// Says who the client is, as a transport with authentication would.
    #[must_use]
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }
}

impl Transport for Memory {
    fn kind(&self) -> TransportKind {
        TransportKind::Pipe
    }

    fn clock(&self) -> Clock {
        Arc::new(now)
    }

    fn start(self, link: Link) {
        tokio::spawn(async move {
            let mut pair = Pair {
                connection: Connection::long_lived(&self.server),
                caller: self.caller,
                link,
                wake_at: None,
                timer: None,
            };
            poll_fn(|cx| pair.poll(cx)).await;
            pair.connection.close();
            pair.connection.teardown(|| sleep(TEARDOWN)).await;
            pair.link.closed(Closed::Lost("the server closed the connection".to_owned()));
        });
    }
}

/// The time of tokio's clock, which both sides wait by.
fn now() -> Time {
    static REFERENCE: LazyLock<Instant> = LazyLock::new(Instant::now);
    Time::from_instant(Instant::now().into_std(), REFERENCE.into_std())
}

/// Both ends of a connection.
struct Pair {
    connection: Connection,
    caller: Caller,
    link: Link,
    /// When the client wants to be woken.
    wake_at: Option<Time>,
    timer: Option<(Time, Pin<Box<Sleep>>)>,
}

impl Pair {
    /// Goes on as far as it can without waiting; ready when it is all over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut has_moved = false;
            loop {
                let order =
                    if self.connection.wants_input() { self.link.poll_next(cx) } else { self.link.poll_blocked(cx) };
                match order {
                    Poll::Ready(Some(Order::Send(outgoing))) => {
                        self.connection.feed(now(), &outgoing.message, &self.caller);
                        has_moved = true;
                    }
                    Poll::Ready(Some(Order::WakeAt(at))) => self.wake_at = Some(at),
                    Poll::Ready(Some(Order::Abort { .. } | Order::Ready { .. })) => {}
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Pending => break,
                }
            }
            let _ = self.connection.poll(cx, now());
            while self.link.wants_input()
                && let Some(transmit) = self.connection.poll_transmit()
            {
                self.link.message(&transmit.message);
                has_moved = true;
            }
            if self.connection.is_closed() {
                return Poll::Ready(());
            }
            if !self.poll_timer(cx) && !has_moved {
                return Poll::Pending;
            }
        }
    }

    /// Waits for the next deadline of either side; returns whether it was over.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> bool {
        let server = self.connection.poll_timeout().map(|deadline| deadline.at);
        let Some(due) = server.into_iter().chain(self.wake_at).min() else {
            self.timer = None;
            return false;
        };
        let (_, sleep) = match &mut self.timer {
            Some(timer) if timer.0 == due => timer,
            timer => timer.insert((due, Box::pin(sleep(due.duration_since(now()))))),
        };
        if sleep.as_mut().poll(cx).is_pending() {
            return false;
        }
        self.timer = None;
        let now = now().max(due);
        self.connection.handle_timeout(now);
        if self.wake_at.take_if(|at| *at <= now).is_some() {
            self.link.timeout();
        }
        true
    }
}
