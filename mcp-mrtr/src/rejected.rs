//! Why a state is not taken.

use mcp_types::ErrorObject;

/// Why a state was refused: for the operator. Whoever sent it learns only that it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Rejected {
    /// It is longer than any that is given out.
    #[error("the state is too large")]
    TooLarge,
    /// It does not have the form of a state.
    #[error("the state is malformed")]
    Malformed,
    /// It has a form that this version does not know.
    #[error("the state is of an unknown version")]
    UnknownVersion,
    /// It was sealed with a key that is not in the ring: a retired one, or somebody else's.
    #[error("the state was sealed with an unknown key")]
    UnknownKey,
    /// It was changed, or is not one of ours.
    #[error("the state is not authentic")]
    NotAuthentic,
    /// Its time is over.
    #[error("the state has expired")]
    Expired,
    /// It was given to somebody else.
    #[error("the state belongs to another principal")]
    OtherPrincipal,
    /// It was given out by another server.
    #[error("the state belongs to another server")]
    OtherAudience,
    /// It was given out for another request.
    #[error("the state belongs to another request")]
    OtherRequest,
    /// It was used before.
    #[error("the state was used before")]
    Replayed,
}

impl Rejected {
    /// What the client is told: the same for every reason, so that it learns nothing from trying.
    //
    #[must_use]
    pub fn to_error_object(self) -> ErrorObject {
        ErrorObject::invalid_params("`requestState`: not valid; send the request again without it")
    }
}
