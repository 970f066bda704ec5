//! Tokens that are bound to a key of the client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_auth::UnixTime;
use mcp_auth::server::{MemoryProofLedger, ProtectedResource};
use serde_json::{Value, json};

use crate::issuer::{Key, RESOURCE, claims, claims_with, encode, now};
use crate::protected::{Answer, Server, resource};

struct Client {
    issuer: Key,
    key: Key,
    token: String,
    next: AtomicU64,
}

impl Client {
    fn new() -> Self {
        let (issuer, key) = (Key::es256("a"), Key::es256("proof"));
        let token = issuer.sign(&claims_with(json!({ "cnf": { "jkt": key.thumbprint() } })));
        Self { issuer, key, token, next: AtomicU64::new(0) }
    }

    fn resource(&self) -> ProtectedResource {
        resource(&self.issuer)
    }

    /// The claims of a proof; `null` removes one.
    fn claims(&self, members: Value) -> Value {
        let ath = encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, self.token.as_bytes()));
        let id = self.next.fetch_add(1, Ordering::SeqCst).to_string();
        let mut claims = json!({ "jti": id, "htm": "POST", "htu": RESOURCE, "iat": now(), "ath": ath });
        for (name, value) in members.as_object().expect("a valid value") {
            if value.is_null() {
                claims.as_object_mut().expect("a valid value").remove(name);
            } else {
                claims[name] = value.clone();
            }
        }
        claims
    }

    fn header(key: &Key) -> Value {
        json!({ "typ": "dpop+jwt", "alg": key.algorithm(), "jwk": key.public() })
    }

    fn proof(&self, members: Value) -> String {
        self.key.sign_with(&Self::header(&self.key), &self.claims(members))
    }

    async fn send(&self, server: &Server, proof: &str) -> Answer {
        server.post(&[("authorization", &format!("DPoP {}", self.token)), ("dpop", proof)]).await
    }

    async fn accepts(&self, server: &Server, proof: &str) -> bool {
        let answer = self.send(server, proof).await;
        let passed = server.recorder.take();
        if answer.status == 200 {
            assert_eq!(passed.len(), 1);
            assert!(!passed[0].0.contains_key("dpop") && !passed[0].0.contains_key("authorization"));
            return true;
        }
        assert_eq!((passed.len(), answer.refusal()), (0, (401, Some("invalid_dpop_proof".to_owned()))));
        assert!(
            answer.challenge().is_dpop()
                && answer.challenge().parameter("algs").expect("a valid value").contains("ES256")
        );
        false
    }
}

// covers: EX-5, AU-4
#[tokio::test]
async fn a_bound_token_is_accepted_with_its_proof_and_each_proof_once() {
    let client = Client::new();
    let server = Server::new(client.resource());
    let proof = client.proof(json!({}));
    assert!(client.accepts(&server, &proof).await);
    assert!(!client.accepts(&server, &proof).await, "a replayed proof");
    for _ in 0..3 {
        assert!(client.accepts(&server, &client.proof(json!({}))).await);
    }
    // Another key may use the same id.
    let other = Client::new();
    let server = Server::new(other.resource());
    assert!(other.accepts(&server, &other.proof(json!({ "jti": "1" }))).await);
    assert!(!other.accepts(&server, &other.proof(json!({ "jti": "1" }))).await);
}

// covers: EX-5, AU-4
#[tokio::test]
async fn a_stolen_bound_token_is_worthless() {
    let client = Client::new();
    let server = Server::new(client.resource());
    // It is remembered, which must not help.
    assert!(client.accepts(&server, &client.proof(json!({}))).await);
    assert!(!server.accepts(&client.token).await, "as a bearer token");
    let without = server.post(&[("authorization", &format!("DPoP {}", client.token))]).await;
    assert_eq!(without.refusal(), (401, Some("invalid_dpop_proof".to_owned())));
    let thief = Key::es256("thief");
    let claims = client.claims(json!({}));
    assert!(!client.accepts(&server, &thief.sign_with(&Client::header(&thief), &claims)).await, "with another key");
    assert!(
        !client.accepts(&server, &thief.sign_with(&Client::header(&client.key), &claims)).await,
        "with a wrong signature"
    );
    let proof = client.proof(json!({}));
    let authorization = format!("DPoP {}", client.token);
    let two = server.post(&[("authorization", &authorization), ("dpop", &proof), ("dpop", &proof)]).await;
    assert_eq!(two.refusal(), (400, Some("invalid_request".to_owned())));
    assert!(server.recorder.take().is_empty());
}

// covers: EX-5
#[tokio::test]
async fn proofs_of_other_requests_are_refused() {
    let client = Client::new();
    let server = Server::new(client.resource());
    for wrong in [
        json!({ "htm": "GET" }),
        json!({ "htm": "post" }),
        json!({ "htm": null }),
        json!({ "htu": "https://api.example.com/other" }),
        json!({ "htu": "https://other.example.com/mcp" }),
        json!({ "htu": "http://api.example.com/mcp" }),
        json!({ "htu": "https://api.example.com:444/mcp" }),
        json!({ "htu": "https://api.example.com@evil.example/mcp" }),
        json!({ "htu": "/mcp" }),
        json!({ "htu": null }),
        json!({ "ath": null }),
        json!({ "ath": encode([0; 32]) }),
        json!({ "iat": now() - 90 }),
        json!({ "iat": now() + 90 }),
        json!({ "iat": null }),
        json!({ "iat": "now" }),
        json!({ "jti": null }),
        json!({ "jti": "" }),
        json!({ "jti": "x".repeat(300) }),
        json!({ "jti": 7 }),
    ] {
        assert!(!client.accepts(&server, &client.proof(wrong.clone())).await, "{wrong}");
    }
    for right in [
        json!({ "htu": "https://api.example.com:443/mcp" }),
        json!({ "htu": "HTTPS://API.EXAMPLE.COM/mcp?a=b#c" }),
        json!({ "iat": now() - 30 }),
        json!({ "iat": now() + 30 }),
    ] {
        assert!(client.accepts(&server, &client.proof(right.clone())).await, "{right}");
    }
}

// covers: EX-5
#[tokio::test]
async fn proofs_with_other_headers_are_refused() {
    let client = Client::new();
    let server = Server::new(client.resource());
    let mut private = client.key.public();
    private["d"] = json!(encode([1; 32]));
    let public = client.key.public();
    for header in [
        json!({ "typ": "JWT", "alg": "ES256", "jwk": public }),
        json!({ "alg": "ES256", "jwk": public }),
        json!({ "typ": "dpop+jwt", "alg": "ES256" }),
        json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": private }),
        json!({ "typ": "dpop+jwt", "alg": "none", "jwk": public }),
        json!({ "typ": "dpop+jwt", "alg": "HS256", "jwk": public }),
        json!({ "typ": "dpop+jwt", "alg": "ES384", "jwk": public }),
        json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": public, "crit": ["x"] }),
    ] {
        assert!(!client.accepts(&server, &client.key.sign_with(&header, &client.claims(json!({})))).await, "{header}");
    }
    for nonsense in ["", "a", "a.b.c", "..", &"a".repeat(10_000)] {
        assert!(!client.accepts(&server, nonsense).await, "{nonsense}");
    }
    assert!(client.accepts(&server, &client.proof(json!({}))).await);
}

// covers: EX-5
#[tokio::test]
async fn unbound_tokens_prove_nothing() {
    let client = Client::new();
    let unbound = Client { token: client.issuer.sign(&claims()), ..Client::new() };
    let server = Server::new(client.resource());
    let refused = unbound.send(&server, &unbound.proof(json!({}))).await;
    assert_eq!(refused.refusal(), (401, Some("invalid_token".to_owned())));
    assert!(server.accepts(&unbound.token).await, "it is good as a bearer token");
    let strict = Server::new(client.resource().require_dpop());
    for _ in 0..2 {
        let refused = strict.bearer(&unbound.token).await;
        assert_eq!(refused.refusal(), (401, Some("invalid_token".to_owned())));
        assert!(refused.challenge().is_dpop());
    }
    assert!(client.accepts(&strict, &client.proof(json!({}))).await);
    assert!(strict.post(&[]).await.challenge().is_dpop());
}

// covers: EX-5
#[tokio::test]
async fn nonces_are_demanded_and_renewed() {
    let client = Client::new();
    let time = Arc::new(AtomicU64::new(now()));
    let clock = Arc::clone(&time);
    let resource = client.resource().dpop_nonces().clock(move || UnixTime::from_secs(clock.load(Ordering::SeqCst)));
    let server = Server::new(resource.proof_window(Duration::from_secs(1000)));
    let asked = client.send(&server, &client.proof(json!({}))).await;
    assert_eq!(asked.refusal(), (401, Some("use_dpop_nonce".to_owned())));
    let nonce = asked.headers["dpop-nonce"].to_str().unwrap().to_owned();
    let proof = || client.proof(json!({ "nonce": nonce }));
    let allowed = client.send(&server, &proof()).await;
    assert_eq!((allowed.status.as_u16(), allowed.headers.get("dpop-nonce")), (200, None));
    time.fetch_add(200, Ordering::SeqCst);
    let renewed = client.send(&server, &proof()).await;
    assert_eq!(renewed.status, 200);
    assert_ne!(renewed.headers["dpop-nonce"], *nonce);
    time.fetch_add(200, Ordering::SeqCst);
    let expired = client.send(&server, &proof()).await;
    assert_eq!(expired.refusal(), (401, Some("use_dpop_nonce".to_owned())));
    let forged = client.send(&server, &client.proof(json!({ "nonce": "abc" }))).await;
    assert_eq!(forged.refusal(), (401, Some("use_dpop_nonce".to_owned())));
    // Instances with the same key accept the nonces of each other.
    let instance = || Server::new(client.resource().dpop_nonces_with_key([7; 32]));
    let (one, two) = (instance(), instance());
    let nonce = client.send(&one, &client.proof(json!({}))).await.headers["dpop-nonce"].clone();
    assert!(client.accepts(&two, &client.proof(json!({ "nonce": nonce.to_str().unwrap() }))).await);
}

/// A token that is bound to something else as well is refused, as that cannot be checked.
// covers: EX-5
#[tokio::test]
async fn tokens_with_other_bindings_are_refused() {
    let mut client = Client::new();
    let server = Server::new(client.resource());
    let jkt = client.key.thumbprint();
    for (cnf, expected) in [
        (json!({ "jkt": jkt }), 200),
        (json!({ "jkt": jkt, "x5t#S256": "abc" }), 401),
        (json!({ "jkt": jkt, "unknown": null }), 401),
        (json!({ "jkt": [jkt] }), 401),
        (json!({}), 401),
        (json!([jkt]), 401),
    ] {
        client.token = client.issuer.sign(&claims_with(json!({ "cnf": cnf })));
        assert_eq!(client.send(&server, &client.proof(json!({}))).await.status, expected, "{cnf}");
    }
}

/// A full ledger refuses what it cannot decide.
// covers: EX-5
#[tokio::test]
async fn a_full_ledger_lets_nothing_in() {
    let client = Client::new();
    let server = Server::new(client.resource().proof_ledger(MemoryProofLedger::new(1)));
    assert!(client.accepts(&server, &client.proof(json!({}))).await);
    assert!(!client.accepts(&server, &client.proof(json!({}))).await);
}

/// A client that sends as many proofs as it can does not lock out others.
// covers: EX-5
#[tokio::test]
async fn one_key_does_not_fill_the_ledger() {
    let client = Client::new();
    let server = Server::new(client.resource().proof_ledger(MemoryProofLedger::new(320)));
    let mut accepted = 0;
    while client.accepts(&server, &client.proof(json!({}))).await {
        accepted += 1;
    }
    assert_eq!(accepted, 10);
    let key = Key::es256("another");
    let token = client.issuer.sign(&claims_with(json!({ "cnf": { "jkt": key.thumbprint() } })));
    let other = Client { issuer: client.issuer, key, token, next: AtomicU64::new(0) };
    assert!(other.accepts(&server, &other.proof(json!({}))).await);
}
