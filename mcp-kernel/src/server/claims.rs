//! Properties of a request that its transport carries outside of the body.

use mcp_types::jsonrpc::Request;
use mcp_types::{ErrorObject, ProtocolVersion};

/// The parts of a modern request that a transport repeats outside of the body, as HTTP does in headers.
///
/// The connection has them compared with the body where that belongs in the order of checks, so that a request with several
/// faults gets the error of the first one.
pub trait RequestClaims {
    /// Compares the protocol version, once `_meta` is valid.
    ///
    /// # Errors
    ///
    /// Returns the error for the client if another version is claimed. That none is claimed is an error of
    /// [`check_request`](Self::check_request).
    fn check_version(&self, version: &ProtocolVersion) -> Result<(), ErrorObject>;

    /// Compares everything else, once the version is known to be supported.
    ///
    /// # Errors
    ///
    /// Returns the error for the client if something is missing or differs.
    fn check_request(&self, request: &Request<'_>) -> Result<(), ErrorObject>;
}
