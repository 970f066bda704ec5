//! Options of the stores.

use std::time::Duration;

/// Options of the stores in Redis. All instances should have the same.
///
/// | setting | default | a greater value |
/// |---|---|---|
/// | [`prefix`](Self::prefix) | `mcp` | |
/// | [`command_limit`](Self::command_limit) | 2 s | lets requests wait longer while Redis is unavailable |
/// | [`queue_events`](Self::queue_events) | 8,192 | loses fewer events while Redis is unavailable |
/// | [`queue_bytes`](Self::queue_bytes) | 16 MiB | loses fewer events while Redis is unavailable, and takes this memory |
/// | [`remembered_streams`](Self::remembered_streams) | 65,536 | keeps events replayable longer while Redis is unavailable, and takes up to 200 bytes each |
/// | [`stream_events`](Self::stream_events) | 1,024 | lets a client miss more events |
/// | [`stream_bytes`](Self::stream_bytes) | 1 MiB | lets a client miss more and larger messages |
/// | [`session_streams`](Self::session_streams) | 32 | lets a client resume more streams |
/// | [`stream_time_to_live`](Self::stream_time_to_live) | 30 min | lets a client be disconnected longer |
///
/// With the defaults, a session takes up to 32 MiB in Redis, for half an hour after its last event.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    pub(crate) prefix: String,
    pub(crate) command_limit: Duration,
    pub(crate) queue_events: usize,
    pub(crate) queue_bytes: usize,
    pub(crate) remembered_streams: usize,
    pub(crate) stream_events: usize,
    pub(crate) stream_bytes: usize,
    pub(crate) session_streams: usize,
    pub(crate) stream_time_to_live: Duration,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            prefix: "mcp".to_owned(),
            command_limit: Duration::from_secs(2),
            queue_events: 8192,
            queue_bytes: 16 * 1024 * 1024,
            remembered_streams: 65_536,
            stream_events: 1024,
            stream_bytes: 1024 * 1024,
            session_streams: 32,
            stream_time_to_live: Duration::from_secs(30 * 60),
        }
    }
}

impl RedisOptions {
    /// Sets the prefix of all keys. Servers with different prefixes do not share sessions.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the timeout of a command, including the time to connect if necessary.
    #[must_use]
    pub fn command_limit(mut self, time: Duration) -> Self {
        self.command_limit = time;
        self
    }

    /// Sets the maximum number of events in the queue; further events are dropped.
    #[must_use]
    pub fn queue_events(mut self, count: usize) -> Self {
        self.queue_events = count;
        self
    }

    /// Sets the maximum number of bytes in the queue; events beyond it are dropped.
    #[must_use]
    pub fn queue_bytes(mut self, bytes: usize) -> Self {
        self.queue_bytes = bytes;
        self
    }

    /// Sets the maximum number of streams whose last event number this process tracks, to notice what Redis has lost. It also
    /// limits how many streams can lose events, and how many sessions can be removed, while Redis is unavailable: beyond
    /// that, all streams that are in Redis are treated as incomplete, in all instances.
    #[must_use]
    pub fn remembered_streams(mut self, count: usize) -> Self {
        self.remembered_streams = count;
        self
    }

    /// Sets the maximum number of events of a stream; the oldest are evicted.
    #[must_use]
    pub fn stream_events(mut self, count: usize) -> Self {
        self.stream_events = count;
        self
    }

    /// Sets the maximum number of bytes of a stream; the oldest events are evicted. A message that is larger is not stored.
    #[must_use]
    pub fn stream_bytes(mut self, bytes: usize) -> Self {
        self.stream_bytes = bytes;
        self
    }

    /// Sets the maximum number of streams of a session; the least recently written are evicted.
    #[must_use]
    pub fn session_streams(mut self, count: usize) -> Self {
        self.session_streams = count;
        self
    }

    /// Sets how long a stream is stored after its last event.
    #[must_use]
    pub fn stream_time_to_live(mut self, time: Duration) -> Self {
        self.stream_time_to_live = time;
        self
    }
}
