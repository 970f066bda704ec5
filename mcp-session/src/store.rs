//! Where sessions and their events are kept, so that another process can go on with them.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use mcp_kernel::server::Principal;
use mcp_types::{LoggingLevel, RawObject, Revision};

use crate::SessionId;

/// A future of something, wherever it runs.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What there is to know about a session, to go on with it elsewhere.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionRecord {
    /// The parameters of `initialize`: who the client is, and what it can do.
    pub initialize: RawObject,
    /// The revision that was agreed on.
    pub revision: Revision,
    /// Whether the client has confirmed the handshake.
    pub is_ready: bool,
    /// The least that the client wants to see of the log.
    pub log_level: LoggingLevel,
    /// The resources that the client has subscribed to.
    pub subscriptions: Vec<String>,
    /// Whose session it is, if anybody's.
    pub principal: Option<Principal>,
}

impl SessionRecord {
    /// Describes a session in which nothing but the handshake has happened.
    #[must_use]
    pub fn new(initialize: RawObject, revision: Revision, principal: Option<Principal>) -> Self {
        let (is_ready, log_level, subscriptions) = (false, LoggingLevel::Info, Vec::new());
        Self { initialize, revision, is_ready, log_level, subscriptions, principal }
    }
}

/// How often a record was saved: whoever saves has to name the one that it has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "it is a number with a meaning")]
pub struct Version(pub u64);

impl Version {
    /// That of a record which is not there yet.
    pub const NONE: Self = Self(0);
}

/// A record as it was found.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing else to find")]
pub struct Versioned {
    /// What was saved.
    pub record: SessionRecord,
    /// How often.
    pub version: Version,
}

/// What became of saving a record.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "it was saved or it was not")]
pub enum Saved {
    /// It is there now.
    As(Version),
    /// Somebody else was faster; this is what there is, if anything.
    Not(Option<Box<Versioned>>),
}

/// A place to keep sessions that does not answer, or answers nonsense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store of sessions failed: {0}")]
#[expect(clippy::exhaustive_structs, reason = "whoever writes a store makes them")]
pub struct StoreError(pub String);

/// Keeps the records of sessions.
///
/// A record goes by itself when nobody has touched it for its time to live.
pub trait SessionStore: Send + Sync + 'static {
    /// Finds the record of a session.
    fn load(&self, id: SessionId) -> BoxFuture<Result<Option<Versioned>, StoreError>>;

    /// Saves a record, if the one that is there has the version `read`, or if there is none and that is
    /// [`Version::NONE`].
    fn save(
        &self,
        id: SessionId,
        record: SessionRecord,
        read: Version,
        time_to_live: Duration,
    ) -> BoxFuture<Result<Saved, StoreError>>;

    /// Says that a session is in use; returns whether there is a record of it.
    fn touch(&self, id: SessionId, time_to_live: Duration) -> BoxFuture<Result<bool, StoreError>>;

    /// Forgets a session; returns whether there was a record of it.
    fn remove(&self, id: SessionId) -> BoxFuture<Result<bool, StoreError>>;
}

/// One event of a stream, as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an event has no more than a place and a content")]
pub struct StoredEvent {
    /// Its number in the stream; they grow, but need not be without gaps.
    pub number: u64,
    /// The message.
    pub message: Bytes,
}

/// What is left of a stream, for a client that comes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "whoever writes a store makes them")]
pub struct Replay {
    /// The events after the one that the client has seen, oldest first.
    pub events: Vec<StoredEvent>,
    /// Whether these are known to be all. If not, a client is still better off with the rest, which may end with the
    /// answer that it waits for.
    pub is_whole: bool,
}

/// Keeps what was sent on the streams of sessions, for clients that come back for what they missed.
///
/// What is kept is bounded, by count, bytes and age; the oldest goes first.
pub trait EventStore: Send + Sync + 'static {
    /// Keeps an event. This does not wait: what cannot be kept is lost, and counted.
    fn append(&self, session: SessionId, stream: u64, event: StoredEvent);

    /// The events of a stream after a number, as far as they are there; of a stream that is not known, nothing is.
    fn replay(&self, session: SessionId, stream: u64, after: u64) -> BoxFuture<Result<Replay, StoreError>>;

    /// Forgets all streams of a session, which has ended: events that are appended later, for example by a process that has
    /// not heard of it yet, are not kept.
    fn forget(&self, session: SessionId);
}
