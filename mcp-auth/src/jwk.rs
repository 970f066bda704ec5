//! Public keys as JSON.

#![cfg_attr(not(feature = "jose"), expect(unreachable_pub, reason = "only `jose` has it in its API"))]

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Serialize;

/// A public key as a JSON Web Key (RFC 7517), with the required members only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PublicJwk {
    // In lexicographic order, which makes the serialized form the input of the thumbprint (RFC 7638).
    #[serde(skip_serializing_if = "Option::is_none")]
    crv: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    e: Option<String>,
    kty: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    y: Option<String>,
}

impl PublicJwk {
    /// Creates the key of a point on a curve such as P-256, from its coordinates in full length.
    pub(crate) fn elliptic(curve: &'static str, x: &[u8], y: &[u8]) -> Self {
        let (crv, x, y) = (Some(curve), Some(encode(x)), Some(encode(y)));
        Self { crv, e: None, kty: "EC", n: None, x, y }
    }

    /// Creates the key of a point on the curve Ed25519.
    pub(crate) fn ed25519(x: &[u8]) -> Self {
        Self { crv: Some("Ed25519"), e: None, kty: "OKP", n: None, x: Some(encode(x)), y: None }
    }

    /// Creates an RSA key from its modulus and exponent, big-endian without leading zeros.
    pub(crate) fn rsa(modulus: &[u8], exponent: &[u8]) -> Self {
        Self { crv: None, e: Some(encode(exponent)), kty: "RSA", n: Some(encode(modulus)), x: None, y: None }
    }

    /// Returns the SHA-256 thumbprint of the key (RFC 7638), which tokens that are bound to it have as `cnf.jkt`.
    #[must_use]
    pub fn thumbprint(&self) -> String {
        let json = serde_json::to_vec(self).expect("a struct of texts is valid JSON");
        encode(digest(&SHA256, &json).as_ref())
    }
}

fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7638, section 3.1.
    #[test]
    fn the_thumbprint_is_that_of_the_rfc() {
        let modulus = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMs\
            tn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbI\
            SD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
        let modulus = BASE64_URL_SAFE_NO_PAD.decode(modulus).unwrap();
        let key = PublicJwk::rsa(&modulus, &[1, 0, 1]);
        assert_eq!(key.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    }

    /// The example of RFC 8037, appendix A.3.
    #[test]
    fn the_thumbprint_of_an_edwards_key_is_that_of_the_rfc() {
        let x = BASE64_URL_SAFE_NO_PAD.decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").unwrap();
        assert_eq!(PublicJwk::ed25519(&x).thumbprint(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    }
}
