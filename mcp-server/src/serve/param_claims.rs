//! Parameters of a tool call that its transport repeats outside of the body.

use std::sync::Arc;

use mcp_types::{ErrorObject, HeaderParam};

/// Compares parameters of a tool call with what the transport carries outside of the body, as HTTP does in headers.
///
/// Whether a tool with a predicate ([`Tool::visible`](crate::Tool::visible)) exists for a client is not known when a message
/// is fed, and an error about its parameters would reveal it. The transport adds this to the extensions of the
/// [`Caller`](crate::Caller) instead, if [`Server::defers_header_params`](crate::Server::defers_header_params), and the
/// comparison happens once the tool is known to be visible.
#[derive(Clone)]
pub struct ParamClaims(Arc<Compare>);

type Compare = dyn Fn(&HeaderParam, &str) -> Result<(), ErrorObject> + Send + Sync;

impl ParamClaims {
    /// Creates claims from a function that compares one parameter, given the arguments of the call as text.
    #[must_use]
    pub fn new(compare: impl Fn(&HeaderParam, &str) -> Result<(), ErrorObject> + Send + Sync + 'static) -> Self {
        Self(Arc::new(compare))
    }

    pub(crate) fn check(&self, params: &[HeaderParam], arguments: &str) -> Result<(), ErrorObject> {
        params.iter().try_for_each(|param| (self.0)(param, arguments))
    }
}

impl std::fmt::Debug for ParamClaims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParamClaims").finish_non_exhaustive()
    }
}
