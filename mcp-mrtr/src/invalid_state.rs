//! The reasons to reject a state.

use mcp_types::ErrorObject;

/// The reason for rejecting a state, for logs: clients get the same error for each ([`to_error_object`](Self::to_error_object)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidState {
    /// The state exceeds the size limit.
    #[error("the state is too large")]
    TooLarge,
    /// The state cannot be decoded.
    #[error("the state is malformed")]
    Malformed,
    /// The format version of the state is unknown.
    #[error("the state is of an unknown version")]
    UnknownVersion,
    /// The key that sealed the state is not in the key ring: it was removed, or belongs to another server.
    #[error("the state was sealed with an unknown key")]
    UnknownKey,
    /// The state was modified, or was not sealed by this server.
    #[error("the state is not authentic")]
    NotAuthentic,
    /// The lifetime of the state is over.
    #[error("the state has expired")]
    Expired,
    /// The state was sealed for another principal.
    #[error("the state belongs to another principal")]
    OtherPrincipal,
    /// The state was sealed by another server.
    #[error("the state belongs to another server")]
    OtherAudience,
    /// The state was sealed for another request.
    #[error("the state belongs to another request")]
    OtherRequest,
    /// The state was used before.
    #[error("the state was used before")]
    Replayed,
}

impl InvalidState {
    /// Returns the error for the client, which is the same for every reason so that it reveals nothing.
    //
    #[must_use]
    pub fn to_error_object(self) -> ErrorObject {
        ErrorObject::invalid_params("`requestState`: not valid; send the request again without it")
    }
}
