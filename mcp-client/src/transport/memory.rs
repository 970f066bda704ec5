//! Connects a client to a server in the same process.

use std::any::Any;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_kernel::Time;
use mcp_server::{Caller, Connection, Principal, Server};
use tokio::time::{Instant, Sleep, sleep};

use super::{Clock, Transport, TransportCommand, TransportHandle, TransportKind};
use crate::close_reason::CloseReason;

/// Connects a client to a server in the same process, such as in tests or for built-in tools of an application.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use mcp_client::{Client, MemoryTransport};
/// use mcp_server::{NoArguments, Server, tool};
///
/// let hello = tool("hello", async |_, _: NoArguments| "Hello!");
/// let client = Client::connect(MemoryTransport::new(Server::builder("greeter", "1.0").tool(hello).build()?)).await?;
/// let result = client.call_tool("hello").await?;
/// assert_eq!(result.to_text(), "Hello!");
/// # Ok(())
/// # }
/// ```
///
/// Messages are encoded and decoded as with any other transport. Client and server run in one task of the tokio runtime in
/// which the client is connected.
#[derive(Clone, Debug)]
pub struct MemoryTransport {
    server: Server,
    caller: Caller,
}

/// How long each teardown callback of the server may take.
const TEARDOWN_TIMEOUT: Duration = Duration::from_secs(5);

impl MemoryTransport {
    /// Creates a transport to this server.
    #[must_use]
    pub fn new(server: Server) -> Self {
        Self { server, caller: Caller::default() }
    }

    /// Sets the authenticated user that handlers see, as a transport with authentication would.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use mcp_client::{Client, MemoryTransport};
    /// use mcp_server::{Principal, Server, tool_fn};
    ///
    /// let who_am_i = tool_fn("who_am_i", async |user: Principal| user.subject.to_string());
    /// let server = Server::builder("users", "1.0").tool(who_am_i).build()?;
    /// let ann = MemoryTransport::new(server).principal(Principal::new(None, "ann"));
    /// let result = Client::connect(ann).await?.call_tool("who_am_i").await?;
    /// assert_eq!(result.content[0].as_text(), Some("ann"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn principal(mut self, principal: Principal) -> Self {
        self.caller = self.caller.principal(principal);
        self
    }

    /// Attaches a value to each request, which handlers get by its type (`RequestContext::extension`), as a transport or a layer
    /// in front of it would.
    #[must_use]
    pub fn extension<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.caller = self.caller.extension(value);
        self
    }

    /// Sets the caller that handlers see: user and extensions together.
    #[must_use]
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }
}

impl Transport for MemoryTransport {
    fn kind(&self) -> TransportKind {
        TransportKind::Pipe
    }

    fn clock(&self) -> Clock {
        Arc::new(now)
    }

    fn start(self, handle: TransportHandle) {
        tokio::spawn(async move {
            let mut pair = Pair {
                connection: Connection::long_lived(&self.server),
                caller: self.caller,
                handle,
                wake_at: None,
                timer: None,
            };
            poll_fn(|cx| pair.poll(cx)).await;
            pair.connection.close();
            pair.connection.teardown(|| sleep(TEARDOWN_TIMEOUT)).await;
            pair.handle.close(CloseReason::Disconnected("the server closed the connection".to_owned()));
        });
    }
}

/// Returns the time of tokio's clock, which both sides use.
fn now() -> Time {
    static REFERENCE: LazyLock<Instant> = LazyLock::new(Instant::now);
    Time::from_instant(Instant::now().into_std(), REFERENCE.into_std())
}

/// The two sides of a connection.
struct Pair {
    connection: Connection,
    caller: Caller,
    handle: TransportHandle,
    /// The deadline of the client.
    wake_at: Option<Time>,
    timer: Option<(Time, Pin<Box<Sleep>>)>,
}

impl Pair {
    /// Makes progress on both sides; ready when the connection is closed.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut has_moved = false;
            loop {
                let command = if self.connection.wants_input() {
                    self.handle.poll_command(cx)
                } else {
                    self.handle.poll_blocked(cx)
                };
                match command {
                    Poll::Ready(Some(TransportCommand::Send(outgoing))) => {
                        self.connection.feed(now(), &outgoing.message, &self.caller);
                        has_moved = true;
                    }
                    Poll::Ready(Some(TransportCommand::WakeAt(at))) => self.wake_at = Some(at),
                    Poll::Ready(Some(TransportCommand::Abort { .. } | TransportCommand::Ready { .. })) => {}
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Pending => break,
                }
            }
            let _ = self.connection.poll(cx, now());
            while self.handle.wants_input()
                && let Some(transmit) = self.connection.poll_transmit()
            {
                self.handle.handle_message(&transmit.message);
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

    /// Polls the next deadline of either side; returns whether it has passed.
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
            self.handle.handle_timeout();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use mcp_server::extract::Extension;
    use mcp_server::tool_fn;
    use mcp_types::Revision;

    use super::*;
    use crate::Client;

    /// A test acts as a user, in all revisions.
    #[tokio::test]
    async fn handlers_see_the_caller() {
        struct Role(&'static str);

        let who = async |user: Option<Principal>, role: Option<Extension<Role>>| {
            let user = user.map_or_else(|| "a stranger".to_owned(), |user| user.subject.to_string());
            format!("{user}, {}", role.map_or("no role", |role| role.0.0))
        };
        let server = Server::builder("users", "1.0").tool(tool_fn("who", who)).build().unwrap();
        let transport = || MemoryTransport::new(server.clone());
        let ann = || Principal::new(None, "ann");
        for revision in Revision::ALL {
            for (transport, expected) in [
                (transport(), "a stranger, no role"),
                (transport().principal(ann()), "ann, no role"),
                (transport().extension(Role("editor")).principal(ann()), "ann, editor"),
                (transport().caller(Caller::default().principal(ann())).extension(Role("reader")), "ann, reader"),
            ] {
                let client = Client::builder("test", "1.0").revisions([revision]).connect(transport).await.unwrap();
                let result = client.call_tool("who").await.unwrap();
                assert_eq!(result.content[0].as_text(), Some(expected), "{revision}");
            }
        }
    }
}
