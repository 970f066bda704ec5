//! The trait of stores for handles, which several processes can share.

use std::fmt;

use async_trait::async_trait;

/// The key of a record: a digest of a handle and of all that it is bound to.
///
/// A store does not learn the handles themselves, and has no record for a handle of another kind, server or principal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "bytes with a meaning")]
pub struct HandleKey(pub [u8; 32]);

/// The owner of records: a digest of a principal, a kind of handle and a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "bytes with a meaning")]
pub struct HandleOwner(pub [u8; 32]);

/// Shows only the beginning, which is enough to tell keys apart in logs.
impl fmt::Debug for HandleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, ..] = self.0;
        write!(f, "HandleKey({a:02x}{b:02x}{c:02x}..)")
    }
}

impl fmt::Debug for HandleOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, ..] = self.0;
        write!(f, "HandleOwner({a:02x}{b:02x}{c:02x}..)")
    }
}

/// What a store keeps of a handle.
#[derive(Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores construct it")]
pub struct HandleRecord {
    /// The owner, by which records are listed and counted; `None` for anonymous callers.
    pub owner: Option<HandleOwner>,
    /// The value, as opaque bytes.
    pub content: Vec<u8>,
    /// When the record expires, in seconds since the Unix epoch.
    pub expires: u64,
}

/// Does not show the content.
impl fmt::Debug for HandleRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandleRecord")
            .field("owner", &self.owner)
            .field("bytes", &self.content.len())
            .field("expires", &self.expires)
            .finish()
    }
}

/// A record with its version, which grows with each replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores construct it")]
pub struct VersionedHandle {
    /// The record.
    pub record: HandleRecord,
    /// The version: 1 at first.
    pub version: u64,
}

/// The outcome of [`HandleStore::replace`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are no other outcomes")]
pub enum ReplaceOutcome {
    /// The record was replaced, and has this version now.
    Replaced(u64),
    /// The version did not match. This is the record in the store, if there is one.
    Conflict(Option<VersionedHandle>),
}

/// The error of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandleStoreError {
    /// A limit of the store is reached; the text names it.
    #[error("the store of handles is full: {0}")]
    Full(String),
    /// The store does not respond, or has invalid data.
    #[error("the store of handles failed: {0}")]
    Failed(String),
}

/// A store for the values of handles, implemented with [`macro@async_trait`].
///
/// Times are in seconds since the Unix epoch, by the clock of the server; `now` is the current time. A record whose time is
/// over, `expires <= now`, is as good as removed. Implementations can be tested with `mcp_server::handles::store_tests`
/// (feature `store-tests`).
#[async_trait]
pub trait HandleStore: Send + Sync + 'static {
    /// Adds a record, as version 1. Keys are unique, as handles are random.
    ///
    /// # Errors
    ///
    /// Returns an error if a limit is reached, or if the store does not respond.
    async fn insert(&self, now: u64, key: HandleKey, record: HandleRecord) -> Result<(), HandleStoreError>;

    /// Returns a record.
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not respond, or has an invalid record.
    async fn load(&self, now: u64, key: HandleKey) -> Result<Option<VersionedHandle>, HandleStoreError>;

    /// Replaces a record if it has the version `read`; its owner stays the same.
    ///
    /// # Errors
    ///
    /// Returns an error if a limit is reached, or if the store does not respond. A version that does not match is not an
    /// error.
    async fn replace(
        &self,
        now: u64,
        key: HandleKey,
        record: HandleRecord,
        read: u64,
    ) -> Result<ReplaceOutcome, HandleStoreError>;

    /// Removes a record and returns it. Of concurrent calls, one gets the record.
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not respond, or has an invalid record.
    async fn take(&self, now: u64, key: HandleKey) -> Result<Option<HandleRecord>, HandleStoreError>;

    /// Returns the records of an owner, in any order.
    ///
    /// # Errors
    ///
    /// Returns an error if the store does not respond, or has an invalid record.
    async fn list(&self, now: u64, owner: HandleOwner) -> Result<Vec<(HandleKey, VersionedHandle)>, HandleStoreError>;
}
