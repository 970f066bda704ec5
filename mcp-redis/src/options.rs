//! Options of the stores.

use std::time::Duration;

/// Options of the stores in Redis. All instances should use the same ones.
///
/// | setting | default | a greater value |
/// |---|---|---|
/// | [`prefix`](Self::prefix) | `mcp` | |
/// | [`command_timeout`](Self::command_timeout) | 2 s | lets requests wait longer while Redis is unavailable |
/// | [`max_queued_events`](Self::max_queued_events) | 8,192 | loses fewer events while Redis is unavailable |
/// | [`max_queued_bytes`](Self::max_queued_bytes) | 16 MiB | loses fewer events while Redis is unavailable, and takes this memory |
/// | [`max_tracked_streams`](Self::max_tracked_streams) | 65,536 | keeps events replayable longer while Redis is unavailable, and takes up to 200 bytes each |
/// | [`max_stream_events`](Self::max_stream_events) | 1,024 | lets a client miss more events |
/// | [`max_stream_bytes`](Self::max_stream_bytes) | 1 MiB | lets a client miss more and larger messages |
/// | [`max_session_streams`](Self::max_session_streams) | 32 | lets a client resume more streams |
/// | [`stream_timeout`](Self::stream_timeout) | 30 min | lets a client be disconnected longer |
/// | [`max_queued_changes`](Self::max_queued_changes) | 1,024 | loses fewer changes while Redis is unavailable |
/// | [`max_handles`](Self::max_handles) | 100,000 | takes more memory in Redis |
/// | [`max_handles_per_principal`](Self::max_handles_per_principal) | 100 | lets one user take more of it |
/// | [`max_used_states`](Self::max_used_states) | 100,000 | takes more memory in Redis, about 100 bytes each |
/// | [`max_used_proofs`](Self::max_used_proofs) | 100,000 | takes more memory in Redis, about 250 bytes each |
///
/// With the defaults, a session takes up to 32 MiB in Redis, for half an hour after its last event.
#[derive(Clone, Debug)]
#[must_use]
pub struct RedisOptions {
    pub(crate) prefix: String,
    pub(crate) command_timeout: Duration,
    pub(crate) max_queued_events: usize,
    pub(crate) max_queued_bytes: usize,
    pub(crate) max_tracked_streams: usize,
    pub(crate) max_stream_events: usize,
    pub(crate) max_stream_bytes: usize,
    pub(crate) max_session_streams: usize,
    pub(crate) stream_timeout: Duration,
    pub(crate) max_queued_changes: usize,
    pub(crate) max_handles: usize,
    pub(crate) max_handles_per_principal: usize,
    pub(crate) max_used_states: usize,
    pub(crate) max_used_proofs: usize,
    #[cfg(feature = "tls")]
    pub(crate) tls: crate::tls::TlsOptions,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            prefix: "mcp".to_owned(),
            command_timeout: Duration::from_secs(2),
            max_queued_events: 8192,
            max_queued_bytes: 16 * 1024 * 1024,
            max_tracked_streams: 65_536,
            max_stream_events: 1024,
            max_stream_bytes: 1024 * 1024,
            max_session_streams: 32,
            stream_timeout: Duration::from_secs(30 * 60),
            max_queued_changes: 1024,
            max_handles: 100_000,
            max_handles_per_principal: 100,
            max_used_states: 100_000,
            max_used_proofs: 100_000,
            #[cfg(feature = "tls")]
            tls: crate::tls::TlsOptions::default(),
        }
    }
}

impl RedisOptions {
    /// Sets the prefix of all keys. Servers with different prefixes do not share sessions.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the timeout of a command, including the time to connect if necessary.
    pub fn command_timeout(mut self, time: Duration) -> Self {
        self.command_timeout = time;
        self
    }

    /// Sets the certificates of the authorities, as PEM, that may have issued the certificate of Redis. Defaults to those of the
    /// operating system. For URLs with `rediss:`.
    #[cfg(feature = "tls")]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.tls.root_certificates = Some(pem.into());
        self
    }

    /// Sets the certificate of this client and its key, as PEM, for a Redis with `tls-auth-clients`. Defaults to none.
    #[cfg(feature = "tls")]
    pub fn client_certificate(mut self, certificate_pem: impl Into<Vec<u8>>, key_pem: impl Into<Vec<u8>>) -> Self {
        self.tls.client_certificate = Some((certificate_pem.into(), key_pem.into()));
        self
    }

    /// Sets the maximum number of events in the queue; further events are dropped.
    pub fn max_queued_events(mut self, count: usize) -> Self {
        self.max_queued_events = count;
        self
    }

    /// Sets the maximum number of bytes in the queue; events beyond it are dropped. Each queue of a change bus has this limit, too.
    pub fn max_queued_bytes(mut self, bytes: usize) -> Self {
        self.max_queued_bytes = bytes;
        self
    }

    /// Sets the maximum number of streams whose last event number this process tracks, to detect events that Redis
    /// lost.
    ///
    /// While Redis is unavailable, it is also the maximum number of streams with dropped events, and of removed
    /// sessions. Beyond it, all instances treat all streams in Redis as incomplete.
    pub fn max_tracked_streams(mut self, count: usize) -> Self {
        self.max_tracked_streams = count;
        self
    }

    /// Sets the maximum number of events of a stream; the oldest are evicted.
    pub fn max_stream_events(mut self, count: usize) -> Self {
        self.max_stream_events = count;
        self
    }

    /// Sets the maximum number of bytes of a stream; the oldest events are evicted. A message that is larger is not stored.
    pub fn max_stream_bytes(mut self, bytes: usize) -> Self {
        self.max_stream_bytes = bytes;
        self
    }

    /// Sets the maximum number of streams of a session; the least recently written are evicted.
    pub fn max_session_streams(mut self, count: usize) -> Self {
        self.max_session_streams = count;
        self
    }

    /// Sets how long a stream is stored after its last event.
    pub fn stream_timeout(mut self, time: Duration) -> Self {
        self.stream_timeout = time;
        self
    }

    /// Sets the maximum number of changes that wait to be published in Redis, and of those of other instances that wait to be
    /// delivered. Beyond it, the clients of the instances that miss changes are notified that everything may have changed.
    pub fn max_queued_changes(mut self, count: usize) -> Self {
        self.max_queued_changes = count;
        self
    }

    /// Sets the maximum number of handles in the store; beyond it, no handles are minted until others expire.
    pub fn max_handles(mut self, count: usize) -> Self {
        self.max_handles = count;
        self
    }

    /// Sets the maximum number of handles of one kind that a principal has. Anonymous callers share
    /// [`max_handles`](Self::max_handles).
    pub fn max_handles_per_principal(mut self, count: usize) -> Self {
        self.max_handles_per_principal = count;
        self
    }

    /// Sets the maximum number of request states that are recorded as used; beyond it, further ones are refused until others
    /// expire.
    pub fn max_used_states(mut self, count: usize) -> Self {
        self.max_used_states = count;
        self
    }

    /// Sets the maximum number of DPoP proofs that are recorded as used; beyond it, further ones are refused until others
    /// expire. One key can have at most a 32nd of them, but at least one.
    pub fn max_used_proofs(mut self, count: usize) -> Self {
        self.max_used_proofs = count;
        self
    }
}
