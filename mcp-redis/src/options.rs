//! What can be set about a Redis server.

use std::time::Duration;

/// How Redis is used. All instances should be given the same.
///
/// | setting | default | more of it |
/// |---|---|---|
/// | [`prefix`](Self::prefix) | `mcp` | |
/// | [`command_limit`](Self::command_limit) | 2 s | lets requests wait for longer while Redis is away |
/// | [`queue_events`](Self::queue_events) | 8,192 | loses less while Redis is away |
/// | [`queue_bytes`](Self::queue_bytes) | 16 MiB | loses less while Redis is away, and takes so much memory here |
/// | [`remembered_streams`](Self::remembered_streams) | 65,536 | relies on events for longer while Redis is away, and takes up to 200 bytes each |
/// | [`stream_events`](Self::stream_events) | 1,024 | lets a client miss more |
/// | [`stream_bytes`](Self::stream_bytes) | 1 MiB | lets a client miss more, and larger messages |
/// | [`session_streams`](Self::session_streams) | 32 | lets a client come back to more streams |
/// | [`stream_time_to_live`](Self::stream_time_to_live) | 30 min | lets a client be away for longer |
///
/// So a session takes up to 32 MiB of Redis, for half an hour after its last event.
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
    /// What the names of all keys begin with; servers with different ones do not see each other.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How long a command may take, the connection included if there is none.
    #[must_use]
    pub fn command_limit(mut self, time: Duration) -> Self {
        self.command_limit = time;
        self
    }

    /// How many events may wait to be written; the next are dropped.
    #[must_use]
    pub fn queue_events(mut self, count: usize) -> Self {
        self.queue_events = count;
        self
    }

    /// How many bytes may wait to be written; what would be more is dropped.
    #[must_use]
    pub fn queue_bytes(mut self, bytes: usize) -> Self {
        self.queue_bytes = bytes;
        self
    }

    /// Of how many streams this process knows the last number, to notice what Redis has lost. And how many streams can lose
    /// events, and how many sessions can be forgotten, while Redis is away: when there are more, no stream that is in
    /// Redis by then is relied on any more, of whichever instance.
    #[must_use]
    pub fn remembered_streams(mut self, count: usize) -> Self {
        self.remembered_streams = count;
        self
    }

    /// How many events of a stream are kept, the newest.
    #[must_use]
    pub fn stream_events(mut self, count: usize) -> Self {
        self.stream_events = count;
        self
    }

    /// How many bytes of a stream are kept, the newest. A message that alone has more is not kept.
    #[must_use]
    pub fn stream_bytes(mut self, bytes: usize) -> Self {
        self.stream_bytes = bytes;
        self
    }

    /// How many streams of a session are kept, those last written to.
    #[must_use]
    pub fn session_streams(mut self, count: usize) -> Self {
        self.session_streams = count;
        self
    }

    /// For how long a stream is kept to which nothing is written.
    #[must_use]
    pub fn stream_time_to_live(mut self, time: Duration) -> Self {
        self.stream_time_to_live = time;
        self
    }
}
