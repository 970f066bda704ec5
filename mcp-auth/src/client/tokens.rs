//! What a token endpoint issues.

use std::fmt;

use crate::{Scopes, Secret, UnixTime};

/// The tokens of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tokens {
    /// The token that requests are sent with.
    pub access_token: Secret,
    /// How the access token is presented.
    pub token_type: TokenType,
    /// The token that is exchanged for new ones, if the authorization server issued one.
    pub refresh_token: Option<Secret>,
    /// When the access token expires, if the authorization server said so.
    pub expires_at: Option<UnixTime>,
    /// The scopes that were granted.
    pub scopes: Scopes,
}

/// How an access token is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenType {
    /// By itself.
    Bearer,
    /// With a proof that the client has the private key that the token is bound to (RFC 9449).
    Dpop,
}

impl fmt::Display for TokenType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bearer => "Bearer",
            Self::Dpop => "DPoP",
        })
    }
}

impl Tokens {
    /// Creates bearer tokens from an access token.
    pub fn bearer(access_token: impl Into<Secret>) -> Self {
        let (refresh_token, expires_at, scopes) = (None, None, Scopes::new());
        Self { access_token: access_token.into(), token_type: TokenType::Bearer, refresh_token, expires_at, scopes }
    }
}
