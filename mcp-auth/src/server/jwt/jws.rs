//! Signed tokens in the compact form (RFC 7515).

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::algorithm::SignatureAlgorithm;
use super::public_key::{Jwk, PublicKey};

/// A signed token whose header was read. Its claims can be read only after its signature was verified.
pub(crate) struct Jws<'a> {
    pub(crate) header: Header,
    pub(crate) algorithm: SignatureAlgorithm,
    /// Header and payload, as they were signed.
    signed: &'a str,
    payload: &'a str,
    signature: &'a str,
}

#[derive(Deserialize)]
pub(crate) struct Header {
    alg: String,
    pub(crate) typ: Option<String>,
    pub(crate) kid: Option<String>,
    /// Extensions that must be understood, none of which are.
    crit: Option<serde::de::IgnoredAny>,
    /// The key of a DPoP proof.
    pub(crate) jwk: Option<Jwk>,
}

impl<'a> Jws<'a> {
    /// Reads the header.
    pub(crate) fn parse(token: &'a str, allowed: &[SignatureAlgorithm]) -> Result<Self, &'static str> {
        let (signed, signature) = token.rsplit_once('.').ok_or("it is not a JWT")?;
        let (header, payload) = signed.split_once('.').ok_or("it is not a JWT")?;
        if payload.contains('.') || signature.is_empty() {
            return Err("it is not a signed JWT");
        }
        let header = text_of(header).and_then(|text| serde_json::from_str::<Header>(&text).ok());
        let header = header.ok_or("its header cannot be read")?;
        if header.crit.is_some() {
            return Err("its header has critical extensions");
        }
        let algorithm = SignatureAlgorithm::parse(&header.alg).ok_or("its algorithm is not supported")?;
        if !allowed.contains(&algorithm) {
            return Err("its algorithm is not allowed");
        }
        Ok(Self { header, algorithm, signed, payload, signature })
    }

    /// Verifies the signature, and returns the text of the claims.
    pub(crate) fn verify(&self, key: &PublicKey) -> Result<String, &'static str> {
        if !key.verifies(self.algorithm, self.signed, self.signature) {
            return Err("its signature is wrong");
        }
        text_of(self.payload).ok_or("its claims cannot be read")
    }

    /// Whether the media type of the header is one of these, with or without the prefix `application/`.
    pub(crate) fn has_type(&self, types: &[&str]) -> bool {
        let Some(typ) = self.header.typ.as_deref() else { return false };
        let prefix = "application/";
        let typ = match typ.split_at_checked(prefix.len()) {
            Some((start, rest)) if start.eq_ignore_ascii_case(prefix) => rest,
            _ => typ,
        };
        types.iter().any(|expected| typ.eq_ignore_ascii_case(expected))
    }
}

/// Returns the issuer that a token names, which is not verified: it only decides whose keys the token has to be verified with.
pub(crate) fn unverified_issuer(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Claims {
        iss: String,
    }
    let payload = text_of(token.split('.').nth(1)?)?;
    serde_json::from_str(&payload).ok().map(|Claims { iss }| iss)
}

fn text_of(part: &str) -> Option<String> {
    String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}
