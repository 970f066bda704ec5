//! Measures what tokens cost a server: verified once, and remembered.
//!
//! ```console
//! $ cargo run --release -p mcp-auth --features server --example verification_cost
//! ```
//!
//! With a number as its argument, it sends only that many requests with a remembered token, or with `none` in addition that
//! many without the layer, for tools that count instructions.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io::{self, Write};
use std::task::{Context, Poll};
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use mcp_auth::server::{
    BytesBody, InvalidResource, JwtVerifier, ProtectLayer, ProtectedResource, StaticKeys, TokenVerifier as _,
};
use serde_json::{Value, json};
use tokio::time::Instant;
use tower_layer::Layer as _;
use tower_service::Service;

const ISSUER: &str = "https://issuer.example.com";
const RESOURCE: &str = "https://api.example.com/mcp";
const ROUNDS: u32 = 2000;

#[derive(Clone)]
struct Hello;

impl Service<Request<()>> for Hello {
    type Response = Response<BytesBody>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new(BytesBody::from(Bytes::new()))))
    }
}

/// A key, as it is published, and a function that signs with it.
type Key = (&'static str, Value, Box<dyn Fn(&[u8]) -> Vec<u8>>);

fn ec_key() -> Result<Key, Box<dyn std::error::Error>> {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)?;
    let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
    let jwk = json!({ "kid": "ES256", "kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y) });
    let sign = move |text: &[u8]| pair.sign(&SystemRandom::new(), text).expect("a signature").as_ref().to_vec();
    Ok(("ES256", jwk, Box::new(sign)))
}

fn rsa_key() -> Result<Key, Box<dyn std::error::Error>> {
    let pair = RsaKeyPair::generate(KeySize::Rsa2048)?;
    let (n, e) = (pair.public_key().modulus(), pair.public_key().exponent());
    let (n, e) = (n.big_endian_without_leading_zero(), e.big_endian_without_leading_zero());
    let jwk = json!({ "kid": "RS256", "kty": "RSA", "n": encode(n), "e": encode(e) });
    let sign = move |text: &[u8]| {
        let mut signature = vec![0; pair.public_modulus_len()];
        pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text, &mut signature).expect("a signature");
        signature
    };
    Ok(("RS256", jwk, Box::new(sign)))
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn token((algorithm, _, sign): &Key) -> String {
    let header = json!({ "alg": algorithm, "kid": algorithm, "typ": "at+jwt" });
    let claims = json!({
        "iss": ISSUER, "sub": "248289761001", "aud": RESOURCE, "client_id": "s6BhdRkqt3", "exp": 9_999_999_999_u64,
        "iat": 1_500_000_000, "jti": "dbe39bf3a3ba4238a513f51d6e1691c4", "scope": "books:read books:write",
    });
    let text = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
    let signature = encode(sign(text.as_bytes()));
    format!("{text}.{signature}")
}

fn verifier<'a>(keys: impl IntoIterator<Item = &'a Key>) -> JwtVerifier {
    let keys: Vec<_> = keys.into_iter().map(|(_, jwk, _)| jwk).collect();
    JwtVerifier::new(ISSUER, StaticKeys::new(json!({ "keys": keys }).to_string()))
}

fn layer<'a>(keys: impl IntoIterator<Item = &'a Key>) -> Result<ProtectLayer, InvalidResource> {
    ProtectedResource::new(RESOURCE).authorization_server(ISSUER).verifier(verifier(keys)).layer()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let request = |token: &HeaderValue| Request::post("/mcp").header("authorization", token).body(());
    let mut arguments = std::env::args().skip(1);
    if let Some(count) = arguments.next().and_then(|count| count.parse::<u32>().ok()) {
        let key = ec_key()?;
        let mut service = layer([&key])?.layer(Hello);
        let token = HeaderValue::try_from(format!("Bearer {}", token(&key)))?;
        service.call(request(&token)?).await?;
        let without = arguments.next().is_some();
        for _ in 0..count {
            match without {
                true => Hello.call(request(&token)?).await?,
                false => service.call(request(&token)?).await?,
            };
        }
        return Ok(());
    }
    let keys = [ec_key()?, rsa_key()?];
    let mut service = layer(&keys)?.layer(Hello);
    let verifier = verifier(&keys);
    let mut output = io::stdout();
    for key in &keys {
        let token = token(key);
        verifier.verify(&token).await?;
        let start = Instant::now();
        for _ in 0..ROUNDS {
            verifier.verify(&token).await?;
        }
        report(&mut output, &format!("{} verified ({} bytes)", key.0, token.len()), start.elapsed())?;
        let token = HeaderValue::try_from(format!("Bearer {token}"))?;
        service.call(request(&token)?).await?;
        let start = Instant::now();
        for _ in 0..ROUNDS {
            service.call(request(&token)?).await?;
        }
        report(&mut output, &format!("{} remembered", key.0), start.elapsed())?;
    }
    Ok(())
}

fn report(output: &mut impl Write, what: &str, elapsed: Duration) -> io::Result<()> {
    writeln!(output, "{what}: {:.2} microseconds", elapsed.as_secs_f64() * 1e6 / f64::from(ROUNDS))
}
