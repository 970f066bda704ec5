//! Assertions that a client authenticates with.

use std::time::Duration;

use serde::Serialize;

use super::jwt::{Header, sign};
use super::{SigningError, SigningKey};
use crate::{Secret, UnixTime};

/// What an assertion of a client says (RFC 7523, section 3): that it is the client, to one authorization server.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the claims are those of RFC 7523, and callers state all of them")]
pub struct AssertionClaims<'a> {
    /// The identifier of the client.
    pub client_id: &'a str,
    /// The authorization server that the assertion is for, usually its issuer.
    pub audience: &'a str,
    /// A unique identifier.
    pub id: &'a str,
    /// The current time.
    pub issued_at: UnixTime,
    /// How long the assertion is valid.
    pub lifetime: Duration,
}

#[derive(Serialize)]
struct Payload<'a> {
    iss: &'a str,
    sub: &'a str,
    aud: &'a str,
    jti: &'a str,
    iat: u64,
    exp: u64,
}

impl AssertionClaims<'_> {
    /// Signs an assertion.
    ///
    /// # Errors
    ///
    /// Returns an error if the key cannot sign.
    pub fn sign(&self, key: &SigningKey) -> Result<Secret, SigningError> {
        let payload = Payload {
            iss: self.client_id,
            sub: self.client_id,
            aud: self.audience,
            jti: self.id,
            iat: self.issued_at.as_secs(),
            exp: self.issued_at.after(self.lifetime).as_secs(),
        };
        let header = Header { typ: "JWT", alg: key.algorithm().as_str(), kid: key.kid(), jwk: None };
        sign(key, &header, &payload).map(Secret::new)
    }
}
