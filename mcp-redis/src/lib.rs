//! What the instances of a server of the Model Context Protocol share, in Redis.
//!
//! Start with [`Redis::connect`]. [`Redis`] provides:
//!
//! | | for | feature |
//! |---|---|---|
//! | [`sessions`](Redis::sessions), [`events`](Redis::events) | `HttpOptions::session_store` and `HttpOptions::event_store` of `mcp-transport-http` | |
//! | `change_bus` | `ServerBuilder::change_bus` of `mcp-server` | `server` |
//! | `handles` | `Handles::stored` of `mcp-server` | `server` |
//! | `replay_guard` | `ServerBuilder::replay_guard` and `Handles::replay_guard` of `mcp-server` | `server` |
//! | `tasks` | `Tasks::new` of `mcp-tasks` | `tasks` |
//! | `proof_ledger` | `ProtectedResource::proof_ledger` of `mcp-auth` | `auth` |
//!
//! # Keys
//!
//! All keys begin with [`RedisOptions::prefix`].
//!
//! | key | type | content |
//! |---|---|---|
//! | `<prefix>:session:<hash>` | hash | `version` and `record` of a session |
//! | `<prefix>:events:<hash>` | sorted set | the streams of a session, by their last use; a string once it has ended |
//! | `<prefix>:events:<hash>:<stream>` | stream | the events of a stream, by their numbers |
//! | `<prefix>:events:<hash>:<stream>:meta` | hash | what is known of the stream |
//! | `<prefix>:events:epoch` | string | changes when all streams become incomplete |
//! | `<prefix>:bus` | channel | messages about changes: number, origin, content |
//! | `<prefix>:bus:number` | string | the number of the last message |
//! | `<prefix>:handle:<digest>` | hash | `version`, `owner`, `content` and `expires` of a handle |
//! | `<prefix>:handles` | sorted set | the digests of all handles, by expiry |
//! | `<prefix>:handles:<owner>` | sorted set | the digests of the handles of one owner, by expiry |
//! | `<prefix>:states` | sorted set | the nonces of request states and sealed handles that were used, by expiry |
//! | `<prefix>:proofs` | sorted set | the DPoP proofs that were used, by expiry |
//! | `<prefix>:proofs:<hash>` | sorted set | those of one key or one user, by expiry |
//! | `<prefix>:task:<id>` | hash | `version`, `run`, `expires` and `content`, and the nonces of the `first` and the `last` write |
//! | `<prefix>:tasks:queue` | stream | the ids of tasks that are queued or claimed; the group `workers` has those that are claimed as pending entries, whose idle time is the age of the lease |
//! | `<prefix>:tasks:expiry` | sorted set | all ids, by the time of their expiry |
//! | `<prefix>:tasks:index` | hash | by id, as MessagePack: `owner`, `tool`, `finished`, `bytes`, `dies` (the time of expiry), `entry` (the id in the queue), `held` (the token of its run, if it is claimed) and `worker` |
//! | `<prefix>:tasks:counts` | hash | the numbers that are limited: `kept`, `unfinished`, `bytes`, and by owner and tool; the `number` of the last task; the `cursor` of the search for expired leases |
//! | `<prefix>:tasks:owner:<owner>` | sorted set | the ids of the tasks of an owner, by their numbers |
//! | `<prefix>:tasks:changes` | channel | the ids of tasks that have changed, and `queued` |
//!
//! Keys of different prefixes never collide, whatever the prefixes contain. A hash tag in the prefix puts all keys into one slot of a
//! cluster; [`Redis::connect_cluster`] adds one.

#![forbid(unsafe_code)]

#[cfg(feature = "server")]
mod bus;
mod connection;
mod endpoint;
mod events;
#[cfg(feature = "server")]
mod handles;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
mod keys;
mod options;
#[cfg(feature = "auth")]
mod proofs;
mod queue;
mod record;
#[cfg(feature = "server")]
mod replay_guard;
mod script;
mod sessions;
#[cfg(feature = "tasks")]
mod tasks;
#[cfg(feature = "tls")]
mod tls;
#[cfg(any(feature = "auth", feature = "server"))]
mod used;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "server")]
pub use bus::RedisChangeBus;
pub use events::RedisEventStore;
#[cfg(feature = "server")]
pub use handles::RedisHandleStore;
pub use options::RedisOptions;
#[cfg(feature = "auth")]
pub use proofs::RedisProofLedger;
#[cfg(feature = "server")]
pub use replay_guard::RedisReplayGuard;
pub use sessions::RedisSessionStore;
#[cfg(feature = "tasks")]
pub use tasks::RedisTaskStore;

use connection::Connection;
use endpoint::Endpoint;
use keys::Keys;
use mcp_session::StoreError;
use queue::Queue;
use writer::Writer;

/// A connection to a Redis server, in which several instances of an MCP server keep what they share.
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
/// replicated, which may restore an older version of a record. TLS (`rediss:`) needs the feature `tls`. It uses the
/// cryptography provider of the process (`rustls::crypto::CryptoProvider`), and installs `aws-lc-rs` if there is none yet: an
/// application with another one installs it first.
/// Redis 6 or newer is required, for its protocol RESP3.
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
    #[cfg(any(feature = "auth", feature = "server"))]
    options: RedisOptions,
    #[cfg(any(feature = "server", feature = "tasks"))]
    endpoint: Endpoint,
}

impl Redis {
    /// Connects to a server, for example `redis://user:password@host:6379/0`, `rediss://host:6380/0` for TLS (feature `tls`) or
    /// `unix:///run/redis.sock`, and spawns the task that writes events. The task ends after the last handle is dropped.
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
        Self::connect_to(Endpoint::single(url, &options)?, options).await
    }

    /// Connects to the master that one of several Sentinels names, also after a failover. The host of `master` is the name of
    /// the master, as in `redis://user:password@mymaster/0`; the rest is how to log in to it. Otherwise it does the same as
    /// [`connect`](Self::connect).
    ///
    /// # Errors
    ///
    /// The same as those of [`connect`](Self::connect).
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    pub async fn connect_sentinels(
        sentinels: &[&str],
        master: &str,
        options: RedisOptions,
    ) -> Result<Self, StoreError> {
        Self::connect_to(Endpoint::sentinels(sentinels, master, &options)?, options).await
    }

    /// Connects to a Redis Cluster, of which `nodes` are some. All keys of a prefix are in one slot, because the prefix is a hash
    /// tag: it becomes `{mcp}`, unless it has braces already. So one master has all of them; use several prefixes to divide the
    /// load. Otherwise it does the same as [`connect`](Self::connect).
    ///
    /// # Errors
    ///
    /// The same as those of [`connect`](Self::connect).
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    pub async fn connect_cluster(nodes: &[&str], mut options: RedisOptions) -> Result<Self, StoreError> {
        if !options.prefix.contains('{') {
            options.prefix = format!("{{{}}}", options.prefix);
        }
        let tag = options.prefix.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        if tag.is_none_or(|(tag, _)| tag.is_empty()) {
            return Err(StoreError("the prefix for a cluster needs a hash tag that is not empty".to_owned()));
        }
        let endpoint = Endpoint::cluster(nodes, options.prefix.clone(), &options)?;
        Self::connect_to(endpoint, options).await
    }

    async fn connect_to(endpoint: Endpoint, options: RedisOptions) -> Result<Self, StoreError> {
        let connect = || Connection::new(endpoint.clone(), options.command_timeout);
        let commands = connect();
        commands.execute(|_| redis::cmd("PING")).await.map_err(StoreError::from)?;

        let keys = Keys { prefix: options.prefix.clone() };
        let (limit, queue) = (options.command_timeout, Arc::new(Queue::new(options.clone())));
        let writer =
            Writer { connection: connect(), queue: queue.clone(), keys: keys.clone(), options: options.clone() };
        tokio::spawn(writer.run());
        let shared = Shared {
            commands,
            keys,
            limit,
            queue,
            #[cfg(any(feature = "auth", feature = "server"))]
            options,
            #[cfg(any(feature = "server", feature = "tasks"))]
            endpoint,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns the session store.
    #[must_use]
    pub fn sessions(&self) -> RedisSessionStore {
        RedisSessionStore { shared: self.shared.clone() }
    }

    /// Returns a store of tasks with these limits, and spawns the task that receives changes. It ends after the last clone of
    /// the store is dropped.
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    #[cfg(feature = "tasks")]
    #[must_use]
    pub fn tasks(&self, limits: mcp_tasks::TaskLimits) -> RedisTaskStore {
        RedisTaskStore::new(self.shared.clone(), limits)
    }

    /// Returns the event store. All stores of one connection share a queue.
    #[must_use]
    pub fn events(&self) -> RedisEventStore {
        RedisEventStore { shared: self.shared.clone() }
    }

    /// Connects a bus for `ServerBuilder::change_bus` to the channel of the prefix, and spawns the tasks that send and
    /// receive. They end after the last handle and the last server with it are dropped.
    ///
    /// Each bus has two connections. Call this once, and use clones for further servers of the process.
    ///
    /// # Errors
    ///
    /// Returns an error if Redis does not respond within the [timeout](RedisOptions::command_timeout).
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    #[cfg(feature = "server")]
    pub async fn change_bus(&self) -> Result<RedisChangeBus, StoreError> {
        RedisChangeBus::connect(&self.shared).await
    }

    /// Returns the store for `Handles::stored`.
    #[cfg(feature = "server")]
    #[must_use]
    pub fn handles(&self) -> RedisHandleStore {
        RedisHandleStore { shared: self.shared.clone() }
    }

    /// Returns the replay guard for `ServerBuilder::replay_guard` and `Handles::replay_guard`.
    #[cfg(feature = "server")]
    #[must_use]
    pub fn replay_guard(&self) -> RedisReplayGuard {
        RedisReplayGuard { shared: self.shared.clone() }
    }

    /// Returns the ledger of DPoP proofs for `ProtectedResource::proof_ledger`.
    #[cfg(feature = "auth")]
    #[must_use]
    pub fn proof_ledger(&self) -> RedisProofLedger {
        RedisProofLedger { shared: self.shared.clone() }
    }
}

#[cfg(feature = "server")]
impl Shared {
    /// A further connection.
    fn connect(&self) -> Connection {
        Connection::new(self.endpoint.clone(), self.limit)
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
