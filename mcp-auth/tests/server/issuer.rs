//! An issuer of tokens, with keys of all kinds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
    RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair,
};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use mcp_auth::server::{KeySource, KeySourceError, async_trait};
use serde_json::{Value, json};
use tokio::sync::Mutex;

pub(crate) const ISSUER: &str = "https://issuer.example.com";
pub(crate) const RESOURCE: &str = "https://api.example.com/mcp";

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn now() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "tokens are judged by the wall clock")]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).expect("a valid value").as_secs()
}

/// A key that signs tokens.
pub(crate) struct Key {
    pub(crate) kid: &'static str,
    pair: Pair,
}

enum Pair {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Rsa(RsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Key {
    pub(crate) fn es256(kid: &'static str) -> Self {
        Self { kid, pair: Pair::P256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a valid value")) }
    }

    pub(crate) fn es384(kid: &'static str) -> Self {
        Self { kid, pair: Pair::P384(EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).expect("a valid value")) }
    }

    pub(crate) fn rsa(kid: &'static str) -> Self {
        Self { kid, pair: Pair::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).expect("a valid value")) }
    }

    pub(crate) fn ed25519(kid: &'static str) -> Self {
        Self { kid, pair: Pair::Ed25519(Ed25519KeyPair::generate().expect("a valid value")) }
    }

    /// The algorithm that the key signs with, unless a header says another.
    pub(crate) fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::P256(_) => "ES256",
            Pair::P384(_) => "ES384",
            Pair::Rsa(_) => "RS256",
            Pair::Ed25519(_) => "EdDSA",
        }
    }

    /// The public key, without its name.
    pub(crate) fn public(&self) -> Value {
        let point = |pair: &EcdsaKeyPair, curve: &str| {
            let point = &pair.public_key().as_ref()[1..];
            let (x, y) = point.split_at(point.len() / 2);
            json!({ "kty": "EC", "crv": curve, "x": encode(x), "y": encode(y) })
        };
        match &self.pair {
            Pair::P256(pair) => point(pair, "P-256"),
            Pair::P384(pair) => point(pair, "P-384"),
            Pair::Rsa(pair) => {
                let key = pair.public_key();
                let (n, e) = (key.modulus(), key.exponent());
                let (n, e) = (n.big_endian_without_leading_zero(), e.big_endian_without_leading_zero());
                json!({ "kty": "RSA", "n": encode(n), "e": encode(e) })
            }
            Pair::Ed25519(pair) => json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key()) }),
        }
    }

    /// The public key as an issuer publishes it.
    pub(crate) fn jwk(&self) -> Value {
        let mut jwk = self.public();
        jwk["kid"] = json!(self.kid);
        jwk["use"] = json!("sig");
        jwk
    }

    /// The thumbprint of RFC 7638: members in order, without white space, which is how `serde_json` writes them here.
    pub(crate) fn thumbprint(&self) -> String {
        let members: std::collections::BTreeMap<String, Value> =
            serde_json::from_value(self.public()).expect("a valid value");
        encode(aws_lc_rs::digest::digest(
            &aws_lc_rs::digest::SHA256,
            &serde_json::to_vec(&members).expect("a valid value"),
        ))
    }

    pub(crate) fn sign_text(&self, text: &str, algorithm: &str) -> String {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::P256(pair) | Pair::P384(pair) => encode(pair.sign(&random, text.as_bytes()).expect("a valid value")),
            Pair::Ed25519(pair) => encode(pair.sign(text.as_bytes())),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                let padding: &'static dyn aws_lc_rs::signature::RsaEncoding =
                    if algorithm == "PS256" { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
                pair.sign(padding, &random, text.as_bytes(), &mut signature).expect("a valid value");
                encode(signature)
            }
        }
    }

    /// Signs a token with a header of its own.
    pub(crate) fn sign_with(&self, header: &Value, claims: &Value) -> String {
        let text = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = self.sign_text(&text, header["alg"].as_str().unwrap_or_default());
        format!("{text}.{signature}")
    }

    /// Signs an access token.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.sign_with(&json!({ "alg": self.algorithm(), "kid": self.kid, "typ": "at+jwt" }), claims)
    }
}

/// The claims of a token that is valid here.
pub(crate) fn claims() -> Value {
    let now = now();
    json!({
        "iss": ISSUER, "sub": "alice", "aud": RESOURCE, "client_id": "editor", "scope": "books:read books:write",
        "iat": now, "exp": now + 600,
    })
}

/// The same with other members; `null` removes one.
pub(crate) fn claims_with(members: Value) -> Value {
    let mut claims = claims();
    for (name, value) in members.as_object().expect("a valid value") {
        if value.is_null() {
            claims.as_object_mut().expect("a valid value").remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

pub(crate) fn jwks<'a>(keys: impl IntoIterator<Item = &'a Key>) -> String {
    json!({ "keys": keys.into_iter().map(Key::jwk).collect::<Vec<_>>() }).to_string()
}

/// Keys that can change, and how often they were loaded.
#[derive(Clone)]
pub(crate) struct ChangingKeys(Arc<Inner>);

struct Inner {
    next: Mutex<Result<Vec<u8>, &'static str>>,
    loads: AtomicUsize,
}

impl ChangingKeys {
    pub(crate) fn new(jwks: impl Into<Vec<u8>>) -> Self {
        Self(Arc::new(Inner { next: Mutex::new(Ok(jwks.into())), loads: AtomicUsize::new(0) }))
    }

    pub(crate) async fn set(&self, next: Result<String, &'static str>) {
        *self.0.next.lock().await = next.map(String::into_bytes);
    }

    pub(crate) fn loads(&self) -> usize {
        self.0.loads.load(Ordering::SeqCst)
    }

    /// Makes loads wait until the guard is dropped.
    pub(crate) async fn pause(&self) -> impl Drop + '_ {
        self.0.next.lock().await
    }
}

#[async_trait]
impl KeySource for ChangingKeys {
    async fn load(&self) -> Result<Vec<u8>, KeySourceError> {
        self.0.loads.fetch_add(1, Ordering::SeqCst);
        let next = self.0.next.lock().await.clone();
        next.map_err(
            |reason| if reason == "panic" { panic!("a source that panics") } else { KeySourceError::new(reason) },
        )
    }
}
