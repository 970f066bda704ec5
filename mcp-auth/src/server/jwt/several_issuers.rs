//! Tokens of several issuers.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use mcp_server::AuthInfo;

use super::jws::unverified_issuer;
use super::verifier::JwtVerifier;
use crate::server::protected_resource::InvalidResource;
use crate::server::verifier::{TokenError, TokenVerifier};

/// Verifies access tokens of several issuers, such as one for each tenant, each with the keys of its own issuer.
///
/// The claim `iss` of a token decides which verifier it is for, and that verifier accepts it only if it is signed with a key of
/// that very issuer. Users of different issuers are different `Principal`s, whatever their subjects are.
///
/// # Examples
///
/// ```
/// use mcp_auth::server::{JwtVerifier, JwtVerifiers, StaticKeys};
///
/// # let (staff_jwks, partner_jwks) = (r#"{"keys":[]}"#, r#"{"keys":[]}"#);
/// let verifier = JwtVerifiers::new([
///     JwtVerifier::new("https://staff.example.com", StaticKeys::new(staff_jwks)),
///     JwtVerifier::new("https://partners.example.com", StaticKeys::new(partner_jwks)).scope_claim("permissions"),
/// ])?;
/// # Ok::<(), mcp_auth::server::InvalidResource>(())
/// ```
#[must_use]
pub struct JwtVerifiers(Vec<JwtVerifier>);

impl JwtVerifiers {
    /// Creates a verifier of the tokens of several issuers.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidResource::DuplicateIssuer`] if there are two verifiers of one issuer.
    pub fn new(verifiers: impl IntoIterator<Item = JwtVerifier>) -> Result<Self, InvalidResource> {
        let mut all: Vec<JwtVerifier> = Vec::new();
        for verifier in verifiers {
            if all.iter().any(|other| other.issuer() == verifier.issuer()) {
                return Err(InvalidResource::DuplicateIssuer(verifier.issuer().to_owned()));
            }
            all.push(verifier);
        }
        Ok(Self(all))
    }
}

#[async_trait]
impl TokenVerifier for JwtVerifiers {
    async fn verify(&self, token: &str) -> Result<AuthInfo, TokenError> {
        let issuer = unverified_issuer(token).ok_or_else(|| TokenError::invalid("it is not a JWT of an issuer"))?;
        let verifier = self.0.iter().find(|verifier| verifier.issuer() == issuer);
        // The verifier checks the issuer again, in the claims that were signed.
        verifier.ok_or_else(|| TokenError::invalid("it is from another issuer"))?.verify(token).await
    }

    /// Returns the shortest time of all verifiers.
    fn remember_for(&self) -> Duration {
        self.0.iter().map(TokenVerifier::remember_for).min().unwrap_or_default()
    }
}

impl fmt::Debug for JwtVerifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}
