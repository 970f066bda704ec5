//! The result of a login.

use std::fmt;

use super::redaction::KnownSecrets;
use super::{Registration, TokenType, Tokens};
use crate::Scopes;
use crate::address::shown;

/// The result of a login: tokens, and all that is needed to refresh and to revoke them.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// The issuer of the authorization server that issued the tokens.
    pub issuer: String,
    /// The identifier of the resource that the tokens are for.
    pub resource: String,
    /// Where tokens are refreshed.
    pub token_endpoint: String,
    /// Where tokens are revoked, if the authorization server can do that.
    pub revocation_endpoint: Option<String>,
    /// The client that the tokens were issued to.
    pub registration: Registration,
    /// The scopes that were requested. Later logins request them, too.
    pub requested_scopes: Scopes,
    /// The tokens.
    pub tokens: Tokens,
}

impl Grant {
    /// Whether the tokens are bound to a key.
    #[must_use]
    pub fn is_dpop_bound(&self) -> bool {
        self.tokens.token_type == TokenType::Dpop
    }

    /// Returns the grant as one that a login does not refresh.
    #[cfg(feature = "authorizer")]
    pub(crate) fn without_refresh_token(mut self) -> Self {
        self.tokens.refresh_token = None;
        self
    }

    /// Returns the secrets that the authorization server knows.
    pub(crate) fn secrets(&self) -> KnownSecrets {
        let mut secrets = KnownSecrets::default();
        secrets.add_query(&self.resource);
        secrets.add(&self.tokens.access_token);
        secrets.add_all(&self.tokens.refresh_token);
        secrets
    }

    /// Creates a grant, as a store does when it reads one.
    pub fn new(
        issuer: impl Into<String>,
        resource: impl Into<String>,
        token_endpoint: impl Into<String>,
        registration: Registration,
        tokens: Tokens,
    ) -> Self {
        let requested_scopes = tokens.scopes.clone();
        Self {
            issuer: issuer.into(),
            resource: resource.into(),
            token_endpoint: token_endpoint.into(),
            revocation_endpoint: None,
            registration,
            requested_scopes,
            tokens,
        }
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Addresses of a server can have a key in their query.
        f.debug_struct("Grant")
            .field("issuer", &self.issuer)
            .field("resource", &shown(&self.resource))
            .field("token_endpoint", &shown(&self.token_endpoint))
            .field("revocation_endpoint", &self.revocation_endpoint.as_deref().map(shown))
            .field("registration", &self.registration)
            .field("requested_scopes", &self.requested_scopes)
            .field("tokens", &self.tokens)
            .finish()
    }
}
