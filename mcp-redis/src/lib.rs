//! Session and event stores in Redis, for servers that run on several machines.
//!
//! See [`Redis`].

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

pub use events::RedisEvents;
pub use options::RedisOptions;
pub use sessions::RedisSessions;

use connection::Link;
use keys::Keys;
use mcp_session::StoreError;
use queue::{Queue, QueueLimits};
use writer::Writer;

/// A Redis server that several instances of a server keep their sessions in.
///
/// ```no_run
/// use mcp_redis::{Redis, RedisOptions};
///
/// # async fn example() -> Result<(), mcp_session::StoreError> {
/// let options = RedisOptions::default().prefix("shop");
/// let redis = Redis::connect("redis://127.0.0.1:6379/0", options).await?;
/// let (sessions, events) = (redis.sessions(), redis.events());
/// // At the end, so that what waits is written:
/// events.flush().await?;
/// # Ok(())
/// # }
/// ```
///
/// # What instances share, and what they do not
///
/// Instances that use the same server, database and prefix share the **records** of sessions: what one has saved, the
/// others load, and of two that save at once one learns that it was too late. They share the **events** that have been
/// written, so a client that lost its stream can have it replayed by any of them.
///
/// They do not share anything that runs. A request that an instance works on, the questions that it has asked the
/// client, and a stream that is open stay where they are, and end with their process. An event is sent before it is
/// written, a few milliseconds before as a rule: another instance may replay a stream without its very last events, and
/// what waited in a process that was killed is lost, without a trace if nothing of the same stream was written later.
/// An instance that wrote to a stream knows of everything that it could not write; then nobody gets what came before the
/// gap. A stream has one writer at a time, who has the greatest numbers: what others still write to it is lost.
///
/// What Redis itself loses is lost: without persistence all sessions, when it restarts; with a replica that takes over,
/// what was not replicated yet, which may bring an older version of a record back. Redis Cluster is not supported,
/// neither is TLS (`rediss:`); use a tunnel or a private network. Redis 6 or newer is needed, for its protocol RESP3.
///
/// # Who can read it
///
/// Ids of sessions are not in Redis, only their SHA-256. But records contain what clients say of themselves and whose
/// sessions they are, and events are all that was said. Whoever can read the database can read that, and whoever can
/// write to it can give a session to somebody else.
///
/// # When Redis is away
///
/// Every command has [a limit](RedisOptions::command_limit) and then fails with a [`StoreError`] that says why. The
/// connection is made anew by itself, with pauses of up to a second in between, during which commands fail at once.
/// Appending never fails and never waits, see [`RedisEvents`].
#[derive(Clone)]
pub struct Redis {
    shared: Arc<Shared>,
}

/// What all handles have in common.
struct Shared {
    /// For everything but the writing of events, so that no request waits behind those.
    commands: Link,
    keys: Keys,
    limit: Duration,
    queue: Arc<Queue>,
}

impl Redis {
    /// Connects to a server, for example `redis://user:password@host:6379/0` or `unix:///run/redis.sock`, and starts the
    /// task that writes events, in the runtime of the caller. It ends after the last handle is gone.
    ///
    /// # Errors
    ///
    /// Fails if the address is none, or if no Redis answers there within
    /// [the limit of a command](RedisOptions::command_limit).
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    pub async fn connect(url: &str, options: RedisOptions) -> Result<Self, StoreError> {
        let invalid = |error| StoreError(format!("the address of Redis cannot be used: {error}"));
        let info = url.into_connection_info().map_err(invalid)?;
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let client = Client::open(info.set_redis_settings(settings)).map_err(invalid)?;
        let link = || Link::new(client.clone(), options.command_limit);
        let commands = link();
        commands.one(|_| redis::cmd("PING")).await.map_err(StoreError::from)?;

        let keys = Keys::new(options.prefix.clone());
        let limits = QueueLimits {
            events: options.queue_events,
            bytes: options.queue_bytes,
            streams: options.remembered_streams,
        };
        let queue = Arc::new(Queue::new(limits));
        let writer = Writer { link: link(), queue: queue.clone(), keys: keys.clone(), limits: (&options).into() };
        tokio::spawn(writer.run());
        Ok(Self { shared: Arc::new(Shared { commands, keys, limit: options.command_limit, queue }) })
    }

    /// The records of sessions.
    #[must_use]
    pub fn sessions(&self) -> RedisSessions {
        RedisSessions { shared: self.shared.clone() }
    }

    /// The events of streams. All that come from one connection share a queue.
    #[must_use]
    pub fn events(&self) -> RedisEvents {
        RedisEvents { shared: self.shared.clone() }
    }
}

impl fmt::Debug for Redis {
    /// Without the address, which may have a password in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("keys", &self.shared.keys).finish_non_exhaustive()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// A time as Redis counts it. What is not nothing is at least one millisecond.
fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).min(FOREVER)
}

/// More than a thousand years; Redis refuses what does not fit into 63 bits when the date is added.
const FOREVER: u64 = 1 << 45;
