//! What an access token allows: who sends a request, and which scopes it needs.

pub(crate) mod info;
pub(crate) mod insufficient_scope;
pub(crate) mod renewal;
pub(crate) mod required_scopes;
