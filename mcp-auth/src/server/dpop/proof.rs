//! Checking proofs.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use mcp_server::Principal;
use serde::Deserialize;
use url::Url;

use super::ledger::{ProofLedger, UsedProof};
use super::nonce::{NonceAge, Nonces};
use crate::UnixTime;
use crate::server::jwt::TokenAlgorithm;
use crate::server::jwt::claims::seconds;
use crate::server::jwt::jws::Jws;
use crate::server::jwt::public_key::PublicKey;

/// The rules for proofs.
pub(crate) struct ProofPolicy {
    pub(crate) ledger: Arc<dyn ProofLedger>,
    /// Nonces that proofs must contain, if they must.
    pub(crate) nonces: Option<Nonces>,
    /// By how much the time of a proof may differ from that of the server.
    pub(crate) window: Duration,
}

/// What a proof has to fit.
pub(crate) struct ProofCheck<'a> {
    pub(crate) method: &'a http::Method,
    /// The addresses that the request may have been sent to, as the client sees it.
    pub(crate) urls: [&'a Url; 2],
    pub(crate) token: &'a str,
    /// The thumbprint of the key that the token is bound to.
    pub(crate) key: &'a str,
    /// The user of the token.
    pub(crate) principal: &'a Principal,
    pub(crate) now: UnixTime,
}

/// Why a proof is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvalidProof {
    /// The client has to repeat the request with the nonce of the response.
    Nonce,
    /// The proof is not one for this request, for a reason that is only logged.
    Invalid(&'static str),
}

impl From<&'static str> for InvalidProof {
    fn from(reason: &'static str) -> Self {
        Self::Invalid(reason)
    }
}

#[derive(Deserialize)]
struct Claims {
    jti: String,
    htm: String,
    htu: String,
    iat: f64,
    ath: Option<String>,
    nonce: Option<String>,
}

/// The maximum length of a proof, in bytes. One with an RSA key of 8,192 bits has less than 5 KiB.
const MAX_PROOF_BYTES: usize = 8 * 1024;
/// The maximum length of the id of a proof, in bytes.
const MAX_ID_BYTES: usize = 256;

impl ProofPolicy {
    /// Checks a proof; returns whether the client should get a new nonce.
    pub(crate) async fn check(&self, proof: &str, request: &ProofCheck<'_>) -> Result<Option<NonceAge>, InvalidProof> {
        let (id, age) = self.check_claims(proof, request)?;
        // Last, so that only proofs of clients with a token and its key take room. It can be sent until it leaves the window.
        let expires = request.now.after(self.window).after(self.window).after(Duration::from_secs(1));
        let (key, principal, now) = (request.key, request.principal, request.now);
        match self.ledger.claim(UsedProof { id, key, principal, expires, now }).await {
            true => Ok(age),
            false => Err(InvalidProof::Invalid("it was used before")),
        }
    }

    /// Checks all but whether the proof was used before; returns its id.
    fn check_claims(
        &self,
        proof: &str,
        request: &ProofCheck<'_>,
    ) -> Result<([u8; 32], Option<NonceAge>), InvalidProof> {
        if proof.len() > MAX_PROOF_BYTES {
            return Err("it is too long".into());
        }
        let mut jws = Jws::parse(proof, &TokenAlgorithm::ALL)?;
        if !jws.has_type(&["dpop+jwt"]) {
            return Err("it has another type".into());
        }
        let key = jws.header.jwk.take().and_then(PublicKey::new).ok_or("it has no public key")?;
        // Before the signature, which costs more.
        if key.thumbprint() != request.key {
            return Err("it was signed with another key than that of the token".into());
        }
        let claims: Claims = serde_json::from_str(&jws.verify(&key)?).map_err(|_| "its claims cannot be read")?;
        if claims.htm != request.method.as_str() {
            return Err("it is for another method".into());
        }
        let url = Url::parse(&claims.htu).map_err(|_| "its URL cannot be read")?;
        if !request.urls.iter().any(|expected| is_same_resource(&url, expected)) {
            return Err("it is for another URL".into());
        }
        if claims.ath.as_deref() != Some(&*BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, request.token.as_bytes()))) {
            return Err("it is for another token".into());
        }
        let issued_at = seconds(claims.iat).ok_or("its time cannot be read")?;
        if issued_at.since(request.now) > self.window || request.now.since(issued_at) > self.window {
            return Err("it is too old, or from the future".into());
        }
        if claims.jti.is_empty() || claims.jti.len() > MAX_ID_BYTES {
            return Err("it has no id, or one that is too long".into());
        }
        let age = match &self.nonces {
            Some(nonces) => {
                let nonce = claims.nonce.as_deref().ok_or(InvalidProof::Nonce)?;
                Some(nonces.check(nonce, request.now).ok_or(InvalidProof::Nonce)?)
            }
            None => None,
        };
        // Ids are unique for a client only.
        let mut id = [0; 32];
        id.copy_from_slice(digest(&SHA256, format!("{}.{}", request.key, claims.jti).as_bytes()).as_ref());
        Ok((id, age))
    }
}

/// Whether two addresses are the same, without query and fragment. The parser has normalized both.
fn is_same_resource(url: &Url, expected: &Url) -> bool {
    url.origin() == expected.origin()
        && url.path() == expected.path()
        && url.username().is_empty()
        && url.password().is_none()
}
