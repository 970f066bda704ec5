//! Keys, assertions and DPoP proofs, verified by another implementation.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like one")]

use std::time::Duration;

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::jwk::{Jwk, ThumbprintHash};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use mcp_auth::jose::{AssertionClaims, DpopClaims, InvalidKey, KeyAlgorithm, SigningKey};
use mcp_auth::{Secret, UnixTime};
use serde_json::{Value, json};

const NOW: UnixTime = UnixTime::from_secs(1_800_000_000);

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64_STANDARD.encode(der))
}

fn keys() -> Vec<(SigningKey, Algorithm)> {
    let rsa = RsaKeyPair::generate(KeySize::Rsa2048).unwrap().as_der().unwrap().as_ref().to_vec();
    let ed25519 = Ed25519KeyPair::generate().unwrap();
    let ed25519_v2 = ed25519.to_pkcs8().unwrap().as_ref().to_vec();
    let ed25519_v1 = ed25519.to_pkcs8v1().unwrap().as_ref().to_vec();
    vec![
        (SigningKey::generate().unwrap(), Algorithm::ES256),
        (SigningKey::from_pem(&pem("PRIVATE KEY", &rsa)).unwrap(), Algorithm::RS256),
        (SigningKey::from_pem(&pem("PRIVATE KEY", &ed25519_v2)).unwrap(), Algorithm::EdDSA),
        (SigningKey::from_pem(&pem("PRIVATE KEY", &ed25519_v1)).unwrap(), Algorithm::EdDSA),
    ]
}

fn public(key: &SigningKey) -> Jwk {
    serde_json::from_value(serde_json::to_value(key.public_jwk()).unwrap()).unwrap()
}

fn verified(token: &str, key: &SigningKey, algorithm: Algorithm) -> Value {
    let mut validation = Validation::new(algorithm);
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation.required_spec_claims.clear();
    decode::<Value>(token, &DecodingKey::from_jwk(&public(key)).unwrap(), &validation).unwrap().claims
}

#[test]
fn assertions_of_every_algorithm_verify() {
    for (key, algorithm) in keys() {
        let key = key.key_id("key 1");
        let (id, lifetime) = ("unique", Duration::from_secs(60));
        let claims = AssertionClaims { client_id: "client", audience: "https://as", id, issued_at: NOW, lifetime };
        let token = claims.sign(&key).unwrap();
        let expected = json!({
            "iss": "client", "sub": "client", "aud": "https://as", "jti": "unique",
            "iat": 1_800_000_000, "exp": 1_800_000_060,
        });
        assert_eq!(verified(token.expose(), &key, algorithm), expected);
        let header = decode_header(token.expose()).unwrap();
        assert_eq!((header.typ.as_deref(), header.kid.as_deref()), (Some("JWT"), Some("key 1")));
        assert_eq!(format!("{:?}", key.algorithm()).to_uppercase(), key.algorithm().as_str().to_uppercase());
    }
}

#[test]
fn a_proof_names_the_request_without_its_query_the_token_by_its_digest_and_the_nonce() {
    for (key, algorithm) in keys() {
        // The token and its digest are those of RFC 9449, section 7.1.
        let access_token = Secret::new("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU");
        let claims = DpopClaims {
            method: "POST",
            url: "https://server/mcp?secret=1#x",
            access_token: Some(&access_token),
            nonce: Some("n-1"),
            id: "unique",
            issued_at: NOW,
        };
        let proof = claims.sign(&key).unwrap();
        let expected = json!({
            "jti": "unique", "htm": "POST", "htu": "https://server/mcp", "iat": 1_800_000_000, "nonce": "n-1",
            "ath": "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo",
        });
        assert_eq!(verified(&proof, &key, algorithm), expected);
        let header = decode_header(&proof).unwrap();
        assert_eq!((header.typ.as_deref(), header.kid), (Some("dpop+jwt"), None));
        assert_eq!(header.jwk.unwrap(), public(&key), "the proof has the public key");
    }
}

#[test]
fn a_proof_for_the_token_endpoint_has_no_digest_of_a_token() {
    let key = SigningKey::generate().unwrap();
    let (method, url, id) = ("POST", "https://as/token", "unique");
    let claims = DpopClaims { method, url, access_token: None, nonce: None, id, issued_at: NOW };
    let expected = json!({ "jti": "unique", "htm": "POST", "htu": "https://as/token", "iat": 1_800_000_000 });
    assert_eq!(verified(&claims.sign(&key).unwrap(), &key, Algorithm::ES256), expected);
}

#[test]
fn thumbprints_agree_with_another_implementation() {
    for (key, _) in keys() {
        assert_eq!(key.thumbprint(), public(&key).thumbprint(ThumbprintHash::SHA256).unwrap());
    }
}

#[test]
fn a_generated_key_can_be_saved_and_restored() {
    let key = SigningKey::generate().unwrap();
    let restored = SigningKey::from_pem(key.to_pem().expose()).unwrap();
    assert_eq!((restored.thumbprint(), restored.algorithm()), (key.thumbprint(), KeyAlgorithm::Es256));
}

#[test]
fn texts_that_are_no_supported_key_are_refused() {
    assert_eq!(SigningKey::from_pem("no key").unwrap_err(), InvalidKey::NoKey);
    let certificate = pem("CERTIFICATE", b"certificate");
    assert_eq!(SigningKey::from_pem(&certificate).unwrap_err(), InvalidKey::NoKey);
    for label in ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"] {
        assert_eq!(SigningKey::from_pem(&pem(label, b"not a key")).unwrap_err(), InvalidKey::Unsupported, "{label}");
    }
}

// covers: AU-14
#[test]
fn no_private_key_is_in_debug_output() {
    let key = SigningKey::generate().unwrap();
    let shown = format!("{key:?} {key:#?}");
    let body: String = key.to_pem().expose().lines().filter(|line| !line.starts_with('-')).collect();
    let der = BASE64_STANDARD.decode(&body).unwrap();
    assert!(shown.contains(key.thumbprint()));
    assert!(!shown.contains(&body) && !shown.contains(&BASE64_URL_SAFE_NO_PAD.encode(der)));
}
