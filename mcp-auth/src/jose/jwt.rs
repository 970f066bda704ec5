//! Signed tokens in the compact form.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Serialize;

use super::{PublicJwk, SigningError, SigningKey};

/// The header of a signed token.
#[derive(Serialize)]
pub(super) struct Header<'a> {
    pub(super) typ: &'a str,
    pub(super) alg: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) jwk: Option<&'a PublicJwk>,
}

/// Signs claims as a compact token (RFC 7515).
pub(super) fn sign(key: &SigningKey, header: &Header<'_>, claims: &impl Serialize) -> Result<String, SigningError> {
    let header = serde_json::to_vec(header).map_err(|_| SigningError)?;
    let claims = serde_json::to_vec(claims).map_err(|_| SigningError)?;
    let mut token = BASE64_URL_SAFE_NO_PAD.encode(header);
    token.push('.');
    BASE64_URL_SAFE_NO_PAD.encode_string(claims, &mut token);
    let signature = key.sign(token.as_bytes())?;
    token.push('.');
    BASE64_URL_SAFE_NO_PAD.encode_string(signature, &mut token);
    Ok(token)
}
