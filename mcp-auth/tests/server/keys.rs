//! Keys that change, are away, or come from someone hostile.

use std::time::Duration;

use mcp_auth::server::{JwtVerifier, ProtectedResource, TokenError, TokenVerifier as _};
use serde_json::json;
use tokio::time::{advance, sleep};

use crate::issuer::{ChangingKeys, ISSUER, Key, RESOURCE, claims, jwks};
use crate::protected::Server;

fn unavailable<T>(result: Result<T, TokenError>) -> bool {
    matches!(result, Err(TokenError::Unavailable(_)))
}

fn invalid<T>(result: Result<T, TokenError>) -> bool {
    matches!(result, Err(TokenError::Invalid(_)))
}

#[tokio::test(start_paused = true)]
async fn a_new_key_is_loaded_when_it_is_needed() {
    let (old, new) = (Key::es256("old"), Key::es256("new"));
    let keys = ChangingKeys::new(jwks([&old]));
    let verifier = JwtVerifier::new(ISSUER, keys.clone());
    assert_eq!(keys.loads(), 0);
    assert!(verifier.verify(&old.sign(&claims())).await.is_ok());
    assert!(verifier.verify(&old.sign(&claims())).await.is_ok());
    assert_eq!(keys.loads(), 1);
    keys.set(Ok(jwks([&old, &new]))).await;
    advance(Duration::from_secs(31)).await;
    assert!(verifier.verify(&new.sign(&claims())).await.is_ok());
    assert_eq!(keys.loads(), 2);
    // The issuer withdraws the old key: that is noticed after an hour.
    keys.set(Ok(jwks([&new]))).await;
    advance(Duration::from_secs(3599)).await;
    assert!(verifier.verify(&old.sign(&claims())).await.is_ok());
    advance(Duration::from_secs(2)).await;
    assert!(verifier.verify(&old.sign(&claims())).await.is_ok(), "it is used while new ones are loaded");
    sleep(Duration::from_millis(10)).await;
    assert!(invalid(verifier.verify(&old.sign(&claims())).await));
    assert_eq!(keys.loads(), 3);
}

// covers: AU-4
#[tokio::test(start_paused = true)]
async fn a_flood_of_unknown_keys_causes_few_loads() {
    let (key, other) = (Key::es256("known"), Key::es256("x"));
    let keys = ChangingKeys::new(jwks([&key]));
    let server = Server::new(
        ProtectedResource::new(RESOURCE).authorization_server(ISSUER).verifier(JwtVerifier::new(ISSUER, keys.clone())),
    );
    assert!(server.accepts(&key.sign(&claims())).await);
    for minute in 0..3 {
        for index in 0..1000 {
            let header = json!({ "alg": "ES256", "kid": format!("{minute}-{index}") });
            assert!(!server.accepts(&other.sign_with(&header, &claims())).await);
        }
        assert!(server.accepts(&key.sign(&claims())).await, "others are not affected");
        assert_eq!(keys.loads(), 1 + minute, "the first load was a moment ago");
        advance(Duration::from_secs(60)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn all_wait_for_the_same_load_and_none_can_interrupt_it() {
    let key = Key::es256("a");
    let keys = ChangingKeys::new(jwks([&key]));
    let verifier = std::sync::Arc::new(JwtVerifier::new(ISSUER, keys.clone()));
    let pause = keys.pause().await;
    let token = key.sign(&claims());
    let start = || {
        let (verifier, token) = (verifier.clone(), token.clone());
        tokio::spawn(async move { verifier.verify(&token).await.is_ok() })
    };
    let first = start();
    sleep(Duration::from_millis(1)).await;
    first.abort();
    let waiting: Vec<_> = (0..100).map(|_| start()).collect();
    sleep(Duration::from_millis(1)).await;
    drop(pause);
    for task in waiting {
        assert!(task.await.unwrap());
    }
    assert_eq!(keys.loads(), 1);
}

#[tokio::test(start_paused = true)]
async fn old_keys_are_used_while_the_issuer_is_away_but_not_for_ever() {
    let key = Key::es256("a");
    let keys = ChangingKeys::new(jwks([&key]));
    let verifier = JwtVerifier::new(ISSUER, keys.clone()).max_key_age(Duration::from_secs(24 * 3600));
    let token = || key.sign(&claims());
    assert!(verifier.verify(&token()).await.is_ok());
    for away in [Err("away"), Err("panic"), Ok("{".to_owned()), Ok(r#"{"keys":[]}"#.to_owned())] {
        keys.set(away).await;
        advance(Duration::from_secs(5 * 3600)).await;
        assert!(verifier.verify(&token()).await.is_ok());
        sleep(Duration::from_millis(10)).await;
        assert!(verifier.verify(&token()).await.is_ok());
    }
    advance(Duration::from_secs(5 * 3600)).await;
    assert!(unavailable(verifier.verify(&token()).await), "they are too old");
    let loads = keys.loads();
    for _ in 0..100 {
        assert!(unavailable(verifier.verify(&token()).await));
    }
    assert_eq!(keys.loads(), loads, "it is not asked for each token");
    keys.set(Ok(jwks([&key]))).await;
    advance(Duration::from_secs(31)).await;
    assert!(verifier.verify(&token()).await.is_ok(), "it is back");
}

/// The token may be valid, so the client must not log in again.
// covers: AU-12
#[tokio::test(start_paused = true)]
async fn without_keys_the_server_is_unavailable() {
    let key = Key::es256("a");
    let keys = ChangingKeys::new(jwks([&key]));
    keys.set(Err("away")).await;
    let server = Server::new(
        ProtectedResource::new(RESOURCE).authorization_server(ISSUER).verifier(JwtVerifier::new(ISSUER, keys.clone())),
    );
    let answer = server.bearer(&key.sign(&claims())).await;
    assert_eq!((answer.status.as_u16(), answer.headers.get("www-authenticate")), (503, None));
    assert!(answer.headers.contains_key("retry-after"));
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_does_not_respond_is_waited_for_in_vain_only_briefly() {
    let key = Key::es256("a");
    let keys = ChangingKeys::new(jwks([&key]));
    let verifier = JwtVerifier::new(ISSUER, keys.clone());
    let pause = keys.pause().await;
    let start = tokio::time::Instant::now();
    assert!(unavailable(verifier.verify(&key.sign(&claims())).await));
    assert_eq!(start.elapsed().as_secs(), 10);
    drop(pause);
}

// covers: AU-4
#[tokio::test(start_paused = true)]
async fn huge_sets_of_keys_are_not_used() {
    let key = Key::es256("a");
    let many: Vec<_> = (0..101).map(|_| key.jwk()).collect();
    let long = format!(r#"{{"keys":[{}],"x":"{}"}}"#, key.jwk(), "x".repeat(256 * 1024));
    let deep = format!(r#"{{"keys":[{}]}}"#, "[".repeat(100_000));
    for hostile in [json!({ "keys": many }).to_string(), long, deep, "[]".to_owned(), "<html>".to_owned()] {
        let verifier = JwtVerifier::new(ISSUER, ChangingKeys::new(hostile));
        assert!(unavailable(verifier.verify(&key.sign(&claims())).await));
    }
    // Keys that cannot be read do not spoil the others.
    let mixed = json!({ "keys": [1, null, { "kty": "oct", "k": "AAAA", "kid": "a" }, { "kty": 7 }, key.jwk()] });
    let verifier = JwtVerifier::new(ISSUER, ChangingKeys::new(mixed.to_string()));
    assert!(verifier.verify(&key.sign(&claims())).await.is_ok());
}

#[tokio::test]
async fn scopes_and_clients_are_found_where_issuers_put_them() {
    let key = Key::es256("a");
    let verifier = JwtVerifier::new(ISSUER, ChangingKeys::new(jwks([&key]))).scope_claim("permissions");
    let mut claims = crate::issuer::claims_with(json!({ "scope": null, "client_id": null }));
    claims["scp"] = json!(["a", "b"]);
    claims["permissions"] = json!(["c"]);
    claims["azp"] = json!("web");
    claims["email"] = json!("alice@example.com");
    let auth = verifier.verify(&key.sign(&claims)).await.unwrap();
    assert_eq!(auth.scopes().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!((auth.client_id(), auth.subject(), auth.issuer()), (Some("web"), "alice", Some(ISSUER)));
    assert_eq!(auth.audience().collect::<Vec<_>>(), [RESOURCE]);
    assert_eq!(auth.claim::<String>("email").as_deref(), Some("alice@example.com"));
    assert!(auth.expires_at().is_some());
}

/// A runtime that has shut down drops new tasks at once, which ends their load: nothing may be locked then.
#[test]
fn loads_are_started_without_a_lock() {
    let key = Key::es256("a");
    let keys = ChangingKeys::new(jwks([&key]));
    let verifier = JwtVerifier::new(ISSUER, keys.clone());
    let token = key.sign(&claims());
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let handle = runtime.handle().clone();
        drop(runtime);
        let _context = handle.enter();
        let mut verifying = verifier.verify(&token);
        let polled = verifying.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        assert!(matches!(polled, std::task::Poll::Ready(Err(TokenError::Unavailable(_)))), "{polled:?}");
        done.send(()).expect("a receiver");
    });
    is_done.recv_timeout(Duration::from_secs(20)).expect("no deadlock");
    assert_eq!(keys.loads(), 0);
}
