//! The traits of stores, which several processes can share.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use mcp_kernel::observe::MetricSource;
use mcp_kernel::server::Principal;
use mcp_types::{LoggingLevel, RawObject, Revision};

use crate::SessionId;

/// The record of a session, with which another process can resume it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionRecord {
    /// The parameters of `initialize`.
    pub initialize: RawObject,
    /// The negotiated revision.
    pub revision: Revision,
    /// Whether the client has sent `notifications/initialized`.
    pub is_ready: bool,
    /// The minimum level of log messages for the client.
    pub log_level: LoggingLevel,
    /// The URIs of the resources that the client has subscribed to.
    pub subscriptions: Vec<String>,
    /// The owner, if there is one.
    pub principal: Option<Principal>,
}

impl SessionRecord {
    /// Creates the record of a session right after `initialize`.
    #[must_use]
    pub fn new(initialize: RawObject, revision: Revision, principal: Option<Principal>) -> Self {
        let (is_ready, log_level, subscriptions) = (false, LoggingLevel::Info, Vec::new());
        Self { initialize, revision, is_ready, log_level, subscriptions, principal }
    }
}

/// The version of a record, for optimistic concurrency: how often it was saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a number with a meaning")]
pub struct RecordVersion(pub u64);

impl RecordVersion {
    /// The version of a record that does not exist yet.
    pub const NONE: Self = Self(0);
}

/// A record with its version.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing else to load")]
pub struct VersionedRecord {
    /// The record.
    pub record: SessionRecord,
    /// Its version.
    pub version: RecordVersion,
}

/// The outcome of [`SessionStore::save`].
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there are no other outcomes")]
pub enum SaveOutcome {
    /// The record was saved, and has this version now.
    Saved(RecordVersion),
    /// The version did not match. This is the record in the store, if there is one.
    Conflict(Option<Box<VersionedRecord>>),
}

/// The error of a store: it does not respond, or has invalid data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store of sessions failed: {0}")]
#[expect(clippy::exhaustive_structs, reason = "implementations of stores construct it")]
pub struct StoreError(pub String);

/// A store for the records of sessions, implemented with [`macro@async_trait`].
///
/// A record expires when it was neither saved nor touched for its time to live. Neither of both shortens its life: processes
/// with different times to live may share a record, and the longest counts. Implementations can be tested with
/// `mcp_session::store_tests` (feature `store-tests`).
///
/// # Examples
///
/// A store that adds a prefix to the errors of another one:
///
/// ```
/// use std::time::Duration;
///
/// use mcp_session::{RecordVersion, SaveOutcome, SessionId, SessionRecord, SessionStore, StoreError, VersionedRecord, async_trait};
///
/// struct Prefixed<S>(S);
///
/// fn prefix(error: StoreError) -> StoreError {
///     StoreError(format!("sessions: {}", error.0))
/// }
///
/// #[async_trait]
/// impl<S: SessionStore> SessionStore for Prefixed<S> {
///     async fn load(&self, id: SessionId) -> Result<Option<VersionedRecord>, StoreError> {
///         self.0.load(id).await.map_err(prefix)
///     }
///
///     async fn save(
///         &self,
///         id: SessionId,
///         record: SessionRecord,
///         read: RecordVersion,
///         time_to_live: Duration,
///     ) -> Result<SaveOutcome, StoreError> {
///         self.0.save(id, record, read, time_to_live).await.map_err(prefix)
///     }
///
///     async fn touch(&self, id: SessionId, time_to_live: Duration) -> Result<bool, StoreError> {
///         self.0.touch(id, time_to_live).await.map_err(prefix)
///     }
///
///     async fn remove(&self, id: SessionId) -> Result<bool, StoreError> {
///         self.0.remove(id).await.map_err(prefix)
///     }
/// }
/// ```
#[async_trait]
pub trait SessionStore: Send + Sync + 'static {
    /// Loads the record of a session.
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not respond, or has an invalid record.
    async fn load(&self, id: SessionId) -> Result<Option<VersionedRecord>, StoreError>;

    /// Saves a record if the one in the store has the version `read`, or if there is none and `read` is
    /// [`RecordVersion::NONE`]. Its life is extended as by [`touch`](Self::touch).
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not respond. A version that does not match is not an error.
    async fn save(
        &self,
        id: SessionId,
        record: SessionRecord,
        read: RecordVersion,
        time_to_live: Duration,
    ) -> Result<SaveOutcome, StoreError>;

    /// Extends the life of a record, unless it lives longer than `time_to_live` already; returns whether there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not respond.
    async fn touch(&self, id: SessionId, time_to_live: Duration) -> Result<bool, StoreError>;

    /// Removes a record; returns whether there was one.
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not respond.
    async fn remove(&self, id: SessionId) -> Result<bool, StoreError>;
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an event has nothing else")]
pub struct StoredEvent {
    /// The number of the event in its stream. Numbers increase, and may have gaps.
    pub number: u64,
    /// The message.
    pub message: Bytes,
}

/// The events of a stream that a client missed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "implementations of stores construct it")]
pub struct Replay {
    /// The events after the last one that the client received, oldest first.
    pub events: Vec<StoredEvent>,
    /// Whether no event is missing. Otherwise, `events` has the remaining ones, which may include the response.
    pub is_whole: bool,
}

/// A store for the events of streams, for clients that reconnect and resume; implemented with [`macro@async_trait`].
///
/// The events are limited by number, bytes and age; the oldest are evicted first.
#[async_trait]
pub trait EventStore: Send + Sync + 'static {
    /// Appends an event. This does not wait: events that cannot be stored are dropped, and counted.
    fn append(&self, session: SessionId, stream: u64, event: StoredEvent);

    /// Returns the stored events of a stream after a number; none of an unknown stream.
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not respond, or has invalid data.
    async fn replay(&self, session: SessionId, stream: u64, after: u64) -> Result<Replay, StoreError>;

    /// Removes all streams of a session that has ended. Events that are appended later, for example by a process that does not
    /// know of the end yet, are dropped.
    fn forget(&self, session: SessionId);

    /// Returns the source of the number of events that were dropped, such as that of [`DroppedEvents`](crate::DroppedEvents),
    /// for the observer of a server that uses the store. It is always the same source. Defaults to none.
    fn metrics(&self) -> Option<Arc<dyn MetricSource>> {
        None
    }
}
