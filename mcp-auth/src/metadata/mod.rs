//! The documents by which resources and authorization servers describe themselves (RFC 9728, RFC 8414, OpenID Connect Discovery),
//! and the addresses that they are published at.

mod authorization_server;
mod protected_resource;
pub mod well_known;

pub use authorization_server::AuthorizationServerMetadata;
pub use protected_resource::ProtectedResourceMetadata;

pub use crate::address::{Address, UnsafeAddress};

/// The maximum length of a metadata document, in bytes.
pub const MAX_METADATA_BYTES: usize = 256 * 1024;

/// The error of a metadata document that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidMetadata {
    /// The document is longer than [`MAX_METADATA_BYTES`].
    #[error("it is longer than {MAX_METADATA_BYTES} bytes")]
    TooLong,
    /// The document is not a JSON object.
    #[error("it is not a JSON object")]
    NotJson,
    /// A member of the document is missing or has the wrong type.
    #[error("a member is missing or has the wrong type, at line {line}, column {column}")]
    Member {
        /// The line of the document.
        line: usize,
        /// The column in that line.
        column: usize,
    },
}

/// Reads a document that a peer sent.
fn parse<'a, T: serde::Deserialize<'a>>(document: &'a [u8]) -> Result<T, InvalidMetadata> {
    if document.len() > MAX_METADATA_BYTES {
        return Err(InvalidMetadata::TooLong);
    }
    // Only an object is a document at all: pages of HTML at a well-known address mean that there is none.
    if document.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(InvalidMetadata::NotJson);
    }
    serde_json::from_slice(document).map_err(|error| {
        if error.is_data() {
            InvalidMetadata::Member { line: error.line(), column: error.column() }
        } else {
            InvalidMetadata::NotJson
        }
    })
}
