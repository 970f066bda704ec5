//! Proofs that a client has the key that its tokens are bound to.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Serialize;

use super::jwt::{Header, sign};
use super::{SigningError, SigningKey};
use crate::{Secret, UnixTime};

/// What a DPoP proof is about (RFC 9449, section 4.2): one request.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the claims are those of RFC 9449, and callers state all of them")]
pub struct DpopClaims<'a> {
    /// The HTTP method of the request.
    pub method: &'a str,
    /// The URL of the request. Its query and fragment are not part of the proof.
    pub url: &'a str,
    /// The access token that the request is sent with; none at the token endpoint.
    pub access_token: Option<&'a Secret>,
    /// The latest nonce of the server, if it sent one.
    pub nonce: Option<&'a str>,
    /// A unique identifier.
    pub id: &'a str,
    /// The current time.
    pub issued_at: UnixTime,
}

#[derive(Serialize)]
struct Payload<'a> {
    jti: &'a str,
    htm: &'a str,
    htu: &'a str,
    iat: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ath: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<&'a str>,
}

impl DpopClaims<'_> {
    /// Signs a proof, which is the value of the `DPoP` header of the request.
    ///
    /// # Errors
    ///
    /// Returns an error if the key cannot sign.
    pub fn sign(&self, key: &SigningKey) -> Result<String, SigningError> {
        let htu = self.url.find(['?', '#']).map_or(self.url, |end| &self.url[..end]);
        let hash = |token: &Secret| BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, token.expose().as_bytes()));
        let payload = Payload {
            jti: self.id,
            htm: self.method,
            htu,
            iat: self.issued_at.as_secs(),
            ath: self.access_token.map(hash),
            nonce: self.nonce,
        };
        let header = Header { typ: "dpop+jwt", alg: key.algorithm().as_str(), kid: None, jwk: Some(key.public_jwk()) };
        sign(key, &header, &payload)
    }
}
