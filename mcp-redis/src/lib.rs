//! Session and event stores in Redis, for servers of the Model Context Protocol with sessions (before 2026-07-28) that
//! run on several machines.
//!
//! Start with [`Redis::connect`]. [`Redis`] provides a [`SessionStore`](mcp_session::SessionStore) and an
//! [`EventStore`](mcp_session::EventStore) for `HttpOptions::session_store` and `HttpOptions::event_store` of
//! `mcp-transport-http`.

#![forbid(unsafe_code)]

mod connection;
mod events;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
mod keys;
mod options;
mod queue;
mod record;
mod script;
mod sessions;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Client, IntoConnectionInfo as _, ProtocolVersion};

pub use events::RedisEventStore;
pub use options::RedisOptions;
pub use sessions::RedisSessionStore;

use connection::Connection;
use keys::Keys;
use mcp_session::StoreError;
use queue::Queue;
use writer::Writer;

/// A connection to a Redis server, in which several instances of an MCP server keep their sessions.
///
/// # Examples
///
/// ```no_run
/// use mcp_redis::{Redis, RedisOptions};
///
/// # async fn example() -> Result<(), mcp_session::StoreError> {
/// let options = RedisOptions::default().prefix("shop");
/// let redis = Redis::connect("redis://127.0.0.1:6379/0", options).await?;
/// let (sessions, events) = (redis.sessions(), redis.events());
/// // Before the process exits, write the queued events:
/// events.flush().await?;
/// # Ok(())
/// # }
/// ```
///
/// # What instances share
///
/// Instances with the same Redis server, database and prefix share the **records** of sessions: each loads what another has
/// saved, and of two that save at once, one gets a conflict. They share the **events** that were written, so any of them can
/// replay a stream.
///
/// Instances do not share requests in flight, server-to-client requests or open streams; these end with their process. An
/// event is sent before it is written, usually by a few milliseconds. Another instance may therefore replay a stream
/// without its last events, and events in the queue of a process that is killed are lost. An instance records the events
/// that it could not write, and no instance replays the events before such a gap as complete. A stream has one writer at a
/// time; events with lower numbers than those in Redis are dropped.
///
/// Data that Redis loses is lost: without persistence all sessions, when it restarts; after a failover what was not
/// replicated, which may restore an older version of a record. Redis Cluster and TLS (`rediss:`) are not supported; use a
/// tunnel or a private network. Redis 6 or newer is required, for its protocol RESP3.
///
/// # Confidentiality
///
/// Redis has the SHA-256 of session ids, not the ids. But records contain the parameters of `initialize` and the owner, and
/// events contain the messages. Read access to the database reveals these, and write access allows changing the owner
/// of a session.
///
/// # When Redis is unavailable
///
/// Each command has a [timeout](RedisOptions::command_timeout), after which it fails with a [`StoreError`]. The connection is
/// re-established automatically, with a backoff of up to a second, during which commands fail at once. Appending events
/// never fails and never waits, see [`RedisEventStore`].
#[derive(Clone)]
pub struct Redis {
    shared: Arc<Shared>,
}

/// The part that all handles share.
struct Shared {
    /// A connection for everything but the writing of events, so that requests do not wait behind those.
    commands: Connection,
    keys: Keys,
    limit: Duration,
    queue: Arc<Queue>,
}

impl Redis {
    /// Connects to a server, for example `redis://user:password@host:6379/0` or `unix:///run/redis.sock`, and spawns the
    /// task that writes events. The task ends after the last handle is dropped.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL cannot be used, or if Redis does not respond within the
    /// [timeout](RedisOptions::command_timeout).
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    pub async fn connect(url: &str, options: RedisOptions) -> Result<Self, StoreError> {
        let invalid = |error| StoreError(format!("the URL of Redis cannot be used: {error}"));
        let info = url.into_connection_info().map_err(invalid)?;
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client = Client::open(info.set_redis_settings(settings)).map_err(invalid)?;
        let connect = || Connection::new(client.clone(), options.command_timeout);
        let commands = connect();
        commands.execute(|_| redis::cmd("PING")).await.map_err(StoreError::from)?;

        let keys = Keys { prefix: options.prefix.clone() };
        let (limit, queue) = (options.command_timeout, Arc::new(Queue::new(options.clone())));
        let writer = Writer { connection: connect(), queue: queue.clone(), keys: keys.clone(), options };
        tokio::spawn(writer.run());
        Ok(Self { shared: Arc::new(Shared { commands, keys, limit, queue }) })
    }

    /// Returns the session store.
    #[must_use]
    pub fn sessions(&self) -> RedisSessionStore {
        RedisSessionStore { shared: self.shared.clone() }
    }

    /// Returns the event store. All stores of one connection share a queue.
    #[must_use]
    pub fn events(&self) -> RedisEventStore {
        RedisEventStore { shared: self.shared.clone() }
    }
}

impl fmt::Debug for Redis {
    /// Omits the URL, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("keys", &self.shared.keys).finish_non_exhaustive()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// A duration in milliseconds, rounded up.
fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).min(FOREVER)
}

/// More than a thousand years. Redis refuses expiry times that do not fit into 63 bits.
const FOREVER: u64 = 1 << 45;
