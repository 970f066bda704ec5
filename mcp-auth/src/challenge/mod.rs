//! `WWW-Authenticate`: what a server demands of requests (RFC 9110, 6750, 9449, 9728).

mod parse;
mod write;

use crate::{Scopes, challenge::parse::Parser};

/// The maximum length of the `WWW-Authenticate` header values that are read, in bytes. The rest is ignored.
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// The maximum number of challenges that are read. The rest is ignored.
const MAX_CHALLENGES: usize = 16;
/// The maximum number of parameters of one challenge that are read. The rest is ignored.
const MAX_PARAMETERS: usize = 32;

/// One challenge of a `WWW-Authenticate` header.
///
/// # Examples
///
/// A client reads challenges:
///
/// ```
/// use mcp_auth::Challenge;
///
/// let header = r#"Bearer scope="books:read", resource_metadata="https://example.com/metadata", Negotiate"#;
/// let challenges = Challenge::parse_all([header]);
/// assert_eq!(challenges.len(), 2);
/// assert!(challenges[0].is_bearer());
/// assert_eq!(challenges[0].resource_metadata(), Some("https://example.com/metadata"));
/// assert_eq!(challenges[0].scope().map(|scopes| scopes.to_string()).as_deref(), Some("books:read"));
/// ```
///
/// A server writes one:
///
/// ```
/// use mcp_auth::{Challenge, Scopes};
///
/// let challenge = Challenge::bearer().error("insufficient_scope").required_scope(&Scopes::from_iter(["books:write"]));
/// assert_eq!(challenge.to_string(), r#"Bearer error="insufficient_scope", scope="books:write""#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    scheme: String,
    parameters: Vec<(String, String)>,
}

impl Challenge {
    /// Reads all challenges of a response from the values of its `WWW-Authenticate` headers, in order.
    ///
    /// What cannot be read is skipped: a server that offers several schemes is not judged by the malformed one.
    pub fn parse_all<'a>(values: impl IntoIterator<Item = &'a str>) -> Vec<Self> {
        let mut challenges = Vec::new();
        let mut remaining = MAX_HEADER_BYTES;
        for value in values {
            // A value that is too long is cut; a character is cut off as a whole.
            let value = &value[..value.floor_char_boundary_at(remaining)];
            remaining -= value.len();
            Parser::new(value).parse_into(&mut challenges);
        }
        challenges
    }

    /// Returns the authentication scheme as the server wrote it. Schemes are compared without regard to case.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Whether the scheme is `Bearer`.
    #[must_use]
    pub fn is_bearer(&self) -> bool {
        self.scheme.eq_ignore_ascii_case("Bearer")
    }

    /// Whether the scheme is `DPoP`.
    #[must_use]
    pub fn is_dpop(&self) -> bool {
        self.scheme.eq_ignore_ascii_case("DPoP")
    }

    /// Returns the value of a parameter. Names are compared without regard to case; the first of several counts.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }

    /// Returns the address of the metadata of the resource, if the server named it (`resource_metadata`).
    #[must_use]
    pub fn resource_metadata(&self) -> Option<&str> {
        self.parameter("resource_metadata")
    }

    /// Returns the scopes that the request needs, if the server named them and they are well-formed (`scope`).
    #[must_use]
    pub fn scope(&self) -> Option<Scopes> {
        let scopes: Scopes = self.parameter("scope")?.parse().ok()?;
        (!scopes.is_empty()).then_some(scopes)
    }

    /// Returns the reason for the refusal (`error`), such as `invalid_token` or `insufficient_scope`.
    #[must_use]
    pub fn error_code(&self) -> Option<&str> {
        self.parameter("error")
    }

    /// Whether the token was valid but its scopes were too few.
    #[must_use]
    pub fn is_insufficient_scope(&self) -> bool {
        self.error_code() == Some("insufficient_scope")
    }

    /// Whether the proof has to be repeated with the nonce of the response (`use_dpop_nonce`).
    #[must_use]
    pub fn wants_dpop_nonce(&self) -> bool {
        self.error_code() == Some("use_dpop_nonce")
    }
}

/// Finds where a text can be cut (`str::floor_char_boundary` of newer versions of Rust).
trait CharBoundary {
    fn floor_char_boundary_at(&self, index: usize) -> usize;
}

impl CharBoundary for str {
    fn floor_char_boundary_at(&self, index: usize) -> usize {
        if index >= self.len() {
            return self.len();
        }
        (0..=index).rev().find(|&at| self.is_char_boundary(at)).unwrap_or(0)
    }
}
