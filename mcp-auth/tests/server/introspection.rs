//! Tokens that the authorization server is asked about.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use mcp_auth::server::{
    IntrospectionEndpoint, IntrospectionVerifier, ProtectedResource, TokenError, TokenVerifier as _, async_trait,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::issuer::{ISSUER, RESOURCE, now};
use crate::protected::Server;

/// An endpoint whose responses are the tokens themselves, without their padding.
#[derive(Clone, Default)]
struct Endpoint {
    calls: Arc<AtomicUsize>,
    delay: Duration,
    is_down: Arc<AtomicBool>,
}

#[async_trait]
impl IntrospectionEndpoint for Endpoint {
    async fn introspect(&self, token: &str) -> Result<Vec<u8>, TokenError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        sleep(self.delay).await;
        if token.starts_with("away") || self.is_down.load(Ordering::SeqCst) {
            return Err(TokenError::unavailable("away"));
        }
        assert_ne!(token, "panic", "an endpoint that panics");
        use base64::Engine as _;
        Ok(base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(token).expect("a valid value"))
    }
}

fn active(members: Value) -> String {
    let mut response =
        json!({ "active": true, "sub": "alice", "aud": RESOURCE, "scope": "a b", "client_id": "editor" });
    for (name, value) in members.as_object().expect("a valid value") {
        response[name] = value.clone();
    }
    crate::issuer::encode(response.to_string())
}

fn server(endpoint: &Endpoint) -> Server {
    let verifier = IntrospectionVerifier::new(ISSUER, endpoint.clone());
    Server::new(ProtectedResource::new(RESOURCE).authorization_server(ISSUER).verifier(verifier))
}

// covers: AU-4, AU-5, AU-6
#[tokio::test]
async fn the_response_decides() {
    let endpoint = Endpoint::default();
    let server = server(&endpoint);
    for right in [
        json!({}),
        json!({ "exp": now() + 60, "iss": ISSUER }),
        json!({ "aud": ["x", RESOURCE] }),
        json!({ "token_type": "bearer" }),
        json!({ "token_type": "DPoP", "nbf": now() }),
    ] {
        assert!(server.accepts(&active(right.clone())).await, "{right}");
    }
    for wrong in [
        json!({ "active": false }),
        json!({ "active": "true" }),
        json!({ "active": null }),
        json!({ "exp": now() - 1 }),
        json!({ "exp": now() + 60, "nbf": now() + 30 }),
        json!({ "nbf": now() + 30 }),
        json!({ "nbf": "soon" }),
        json!({ "token_type": "refresh_token" }),
        json!({ "token_type": "N_A" }),
        json!({ "token_type": 1 }),
        json!({ "iss": "https://other.example.com" }),
        json!({ "aud": "https://other.example.com" }),
        json!({ "aud": null }),
        json!({ "sub": null, "client_id": null }),
    ] {
        assert!(!server.accepts(&active(wrong.clone())).await, "{wrong}");
    }
    for failure in ["away".to_owned(), crate::issuer::encode("[]"), crate::issuer::encode("x".repeat(6000))] {
        assert_eq!(server.bearer(&failure).await.status, 503);
    }
    let auth = server.bearer(&active(json!({ "username": "Alice" }))).await;
    assert_eq!(auth.status, 200);
    let (_, auth) = server.recorder.take().pop().unwrap();
    let auth = auth.unwrap();
    assert_eq!((auth.issuer(), auth.subject(), auth.client_id()), (Some(ISSUER), "alice", Some("editor")));
    assert!(auth.has_scope("b") && auth.claim::<String>("username").is_some());
}

#[tokio::test]
async fn responses_are_remembered() {
    let endpoint = Endpoint::default();
    let server = server(&endpoint);
    let (valid, inactive) = (active(json!({})), active(json!({ "active": false })));
    for _ in 0..5 {
        assert!(server.accepts(&valid).await && !server.accepts(&inactive).await);
    }
    assert_eq!(endpoint.calls.load(Ordering::SeqCst), 2);
}

/// A flood of tokens does not become a flood of requests to the authorization server.
#[tokio::test(start_paused = true)]
async fn requests_at_the_same_time_are_limited() {
    let endpoint = Endpoint { delay: Duration::from_secs(1), ..Endpoint::default() };
    let verifier = Arc::new(IntrospectionVerifier::new(ISSUER, endpoint.clone()));
    let tasks: Vec<_> = (0..200)
        .map(|index| {
            let (verifier, token) = (verifier.clone(), active(json!({ "jti": index })));
            tokio::spawn(async move { verifier.verify(&token).await })
        })
        .collect();
    let mut refused = 0;
    for task in tasks {
        refused += usize::from(matches!(task.await.unwrap(), Err(TokenError::Unavailable(_))));
    }
    assert_eq!((refused, endpoint.calls.load(Ordering::SeqCst)), (136, 64));
}

/// Requests with the same token wait for one introspection, also if the first of them was dropped.
#[tokio::test(start_paused = true)]
async fn one_request_for_each_token() {
    let endpoint = Endpoint { delay: Duration::from_secs(1), ..Endpoint::default() };
    let verifier = Arc::new(IntrospectionVerifier::new(ISSUER, endpoint.clone()));
    for (token, is_active) in [(active(json!({})), true), (active(json!({ "active": false })), false)] {
        let before = endpoint.calls.load(Ordering::SeqCst);
        let tasks: Vec<_> = (0..1000)
            .map(|_| {
                let (verifier, token) = (verifier.clone(), token.clone());
                tokio::spawn(async move { verifier.verify(&token).await.is_ok() })
            })
            .collect();
        sleep(Duration::from_millis(500)).await;
        tasks[0].abort();
        for task in tasks.into_iter().skip(1) {
            assert_eq!(task.await.unwrap(), is_active);
        }
        assert_eq!(endpoint.calls.load(Ordering::SeqCst) - before, 1);
    }
    let panics = verifier.verify("panic").await.unwrap_err();
    assert!(matches!(panics, TokenError::Unavailable(_)), "{panics}");
}

/// An endpoint that fails gets few requests, and as many as before once it works again.
#[tokio::test(start_paused = true)]
async fn a_failing_endpoint_gets_few_requests() {
    let endpoint = Endpoint::default();
    let verifier = IntrospectionVerifier::new(ISSUER, endpoint.clone());
    for index in 0..6000 {
        assert!(matches!(verifier.verify(&format!("away{index}")).await, Err(TokenError::Unavailable(_))));
        sleep(Duration::from_millis(100)).await;
    }
    // Five at once, with pauses of 1, 2, 4, 8 and 16 seconds, and then every 30.
    assert_eq!(endpoint.calls.load(Ordering::SeqCst), 5 + 5 + 18);
    sleep(Duration::from_secs(30)).await;
    for index in 0..10 {
        assert!(verifier.verify(&active(json!({ "jti": index }))).await.is_ok());
    }
}

/// Requests that fail together are one failure: an endpoint that restarts is used again at once.
#[tokio::test(start_paused = true)]
async fn concurrent_failures_count_once() {
    let endpoint = Endpoint { delay: Duration::from_secs(1), ..Endpoint::default() };
    let verifier = Arc::new(IntrospectionVerifier::new(ISSUER, endpoint.clone()));
    for round in 0..4 {
        let tasks: Vec<_> = (0..64)
            .map(|index| {
                let (verifier, token) = (verifier.clone(), format!("away{round}-{index}"));
                tokio::spawn(async move { verifier.verify(&token).await })
            })
            .collect();
        for task in tasks {
            assert!(matches!(task.await.unwrap(), Err(TokenError::Unavailable(_))));
        }
        assert_eq!(endpoint.calls.load(Ordering::SeqCst), 64 * (round + 1));
    }
    assert!(verifier.verify(&active(json!({}))).await.is_ok());
}

/// Unknown tokens that make the endpoint fail cause no pauses for tokens that have been active before.
#[tokio::test(start_paused = true)]
async fn unknown_tokens_cause_no_pauses_for_known_ones() {
    let endpoint = Endpoint::default();
    let verifier = IntrospectionVerifier::new(ISSUER, endpoint.clone());
    let token = active(json!({}));
    assert!(verifier.verify(&token).await.is_ok());
    for round in 0..3 {
        endpoint.calls.store(0, Ordering::SeqCst);
        for index in 0..100 {
            let junk = verifier.verify(&format!("away{round}-{index}")).await;
            assert!(matches!(junk, Err(TokenError::Unavailable(_))));
        }
        assert_eq!(endpoint.calls.load(Ordering::SeqCst), 5, "the failures cause pauses");
        assert!(verifier.verify(&token).await.is_ok());
        let other = verifier.verify(&active(json!({ "jti": round }))).await;
        assert!(other.is_ok(), "an introspection that succeeds ends the pauses");
    }
    // An endpoint that fails for known tokens gets few requests, too.
    endpoint.is_down.store(true, Ordering::SeqCst);
    endpoint.calls.store(0, Ordering::SeqCst);
    for _ in 0..100 {
        assert!(matches!(verifier.verify(&token).await, Err(TokenError::Unavailable(_))));
    }
    assert_eq!(endpoint.calls.load(Ordering::SeqCst), 5);
}

/// A token that is longer than endpoints may accept is not sent to them.
#[tokio::test]
async fn long_tokens_are_not_introspected() {
    let endpoint = Endpoint::default();
    let verifier = IntrospectionVerifier::new(ISSUER, endpoint.clone());
    for (length, calls) in [(8 * 1024, 1), (8 * 1024 + 1, 1)] {
        let refused = verifier.verify(&format!("{:a<length$}", "away")).await.unwrap_err();
        assert_eq!(matches!(refused, TokenError::Invalid(_)), length > 8 * 1024, "{refused}");
        assert_eq!(endpoint.calls.load(Ordering::SeqCst), calls);
    }
}

/// A client without a valid token cannot make the endpoint look as if it failed, nor fill the memory.
#[tokio::test(start_paused = true)]
async fn tokens_that_are_not_active_are_no_failures() {
    let endpoint = Endpoint::default();
    let verifier = IntrospectionVerifier::new(ISSUER, endpoint.clone());
    for index in 0..5000 {
        let token = active(json!({ "active": false, "jti": index }));
        assert!(matches!(verifier.verify(&token).await, Err(TokenError::Invalid(_))));
    }
    assert!(verifier.verify(&active(json!({}))).await.is_ok());
}
