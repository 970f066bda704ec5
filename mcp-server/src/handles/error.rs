//! The errors of handles.

use crate::handles::store::HandleStoreError;

/// An error of minting or using a handle.
///
/// The texts are for the model: they do not reveal why a handle is not valid. What concerns the author of the server is the
/// [source](std::error::Error::source).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandleError {
    /// The handle is unknown, expired, revoked, used up, of another kind, or of another user.
    #[error("this is not a valid {kind} handle: it may have expired. {hint}")]
    Invalid {
        /// The name of the kind that was expected.
        kind: &'static str,
        /// How to get a handle.
        hint: &'static str,
    },
    /// The value was changed again and again by other calls.
    #[error("the {kind} was changed by other calls at the same time: try again")]
    Conflict {
        /// The name of the kind.
        kind: &'static str,
    },
    /// The value is larger than the handles of this kind allow.
    #[error("the {kind} is too large")]
    TooLarge {
        /// The name of the kind.
        kind: &'static str,
        /// The size and the limit.
        #[source]
        cause: HandleTooLarge,
    },
    /// The store has no room for another handle, or for a larger value.
    #[error("there is no room for another {kind} now")]
    Full {
        /// The name of the kind.
        kind: &'static str,
        /// The limit.
        #[source]
        cause: HandleStoreError,
    },
    /// The store does not respond.
    #[error("the server cannot access its {kind} handles now: try again later")]
    Unavailable {
        /// The name of the kind.
        kind: &'static str,
        /// The cause.
        #[source]
        cause: HandleStoreError,
    },
    /// The server is not set up for this.
    #[error("the server cannot do this with {kind} handles")]
    NotSupported {
        /// The name of the kind.
        kind: &'static str,
        /// What to change in the server.
        #[source]
        cause: HandleMisuse,
    },
}

/// The size of a value that exceeds the limit of its handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has {found} bytes, which exceeds the limit of {limit} (`Handles::max_bytes`)")]
#[non_exhaustive]
pub struct HandleTooLarge {
    /// The size in bytes.
    pub found: usize,
    /// The limit in bytes.
    pub limit: usize,
}

/// An operation that the handles of a kind do not support as they are set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandleMisuse {
    /// The server has no handles of this type.
    #[error("the server has no `Handles` of this type: add them with `ServerBuilder::handles`")]
    NotRegistered,
    /// Sealed handles without a replay guard cannot be revoked or taken.
    #[error("sealed handles cannot be revoked or taken without `Handles::replay_guard`; stored ones can")]
    NoReplayGuard,
    /// The replay guard did not record that the handle was revoked.
    #[error("the replay guard of the handles is full or not available")]
    ReplayGuardFull,
    /// Sealed handles cannot be listed.
    #[error("sealed handles are not stored, so they cannot be listed; stored ones can")]
    NotStored,
    /// The handles of anonymous callers cannot be listed, as each of them would see those of all others.
    #[error("handles of anonymous callers cannot be listed: there is no `Principal`")]
    Anonymous,
    /// There is no clock by which handles expire.
    #[error("handles need a clock: set `ServerBuilder::unix_clock` on this platform")]
    NoClock,
    /// The random source failed.
    #[error("handles need randomness, and its source failed (see `ServerBuilder::random_source`)")]
    NoRandomness,
    /// The value cannot be serialized.
    #[error("the value cannot be serialized as JSON")]
    Unserializable,
}
