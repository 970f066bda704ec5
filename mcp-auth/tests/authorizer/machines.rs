//! Logins without a user.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use mcp_auth::Secret;
use mcp_auth::authorizer::{AssertionSource, OAuthError, PromptError, async_trait};
use mcp_auth::client::{AssertionKind, AssertionRequest, ClientAuthentication, PreRegistered};
use mcp_auth::jose::SigningKey;
use serde_json::json;
use tokio::time::Instant;

use crate::support::{Servers, claims};
use crate::{connect, oauth, ping};

fn machine() -> PreRegistered {
    PreRegistered::new("machine").client_secret("machine-hunter2")
}

// covers: EX-2
#[tokio::test]
async fn a_client_logs_in_as_itself_without_a_user_and_again_when_its_token_expires() {
    let servers = Servers::start().await;
    servers.ledger().lifetime = Duration::from_secs(2);
    let oauth = oauth(&servers).client(machine()).client_credentials().build().unwrap();
    assert!(oauth.is_logged_in().await.unwrap());
    let client = connect(&servers, &oauth).await.unwrap();
    for _ in 0..12 {
        assert_eq!(ping(&client).await.unwrap(), "pong");
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let logins = servers.ledger().logins;
    assert!((2..=4).contains(&logins), "{logins}");
}

#[tokio::test]
async fn a_client_authenticates_with_its_key() {
    let servers = Servers::start().await;
    let key = SigningKey::generate().unwrap().key_id("key 1");
    let registered = PreRegistered::new("machine").authentication(ClientAuthentication::PrivateKeyJwt);
    let oauth = oauth(&servers).client(registered).client_key(key).client_credentials().build().unwrap();
    ping(&connect(&servers, &oauth).await.unwrap()).await.unwrap();
    let ledger = servers.ledger();
    let assertion = claims(&ledger.assertions[0]["client_assertion"]);
    assert_eq!((&assertion["iss"], &assertion["sub"]), (&"machine".into(), &"machine".into()));
    assert_eq!(assertion["aud"], servers.url.as_str());
}

struct Platform;

#[async_trait]
impl AssertionSource for Platform {
    async fn assertion(&self, request: &AssertionRequest) -> Result<Secret, PromptError> {
        assert_eq!(request.kind, AssertionKind::Workload);
        Ok(Secret::new(format!("workload-hunter2 for {}", request.audience)))
    }
}

// covers: EX-5
#[tokio::test]
async fn a_workload_logs_in_with_what_its_platform_issued() {
    let servers = Servers::start().await;
    let oauth = oauth(&servers).client(PreRegistered::new("workload")).workload_identity(Platform).build().unwrap();
    ping(&connect(&servers, &oauth).await.unwrap()).await.unwrap();
    let ledger = servers.ledger();
    assert_eq!(ledger.assertions[0]["assertion"], format!("workload-hunter2 for {}", servers.url));
}

struct Silent;

#[async_trait]
impl AssertionSource for Silent {
    async fn assertion(&self, _: &AssertionRequest) -> Result<Secret, PromptError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_platform_that_does_not_respond_ends_the_login() {
    let servers = Servers::start().await;
    let limit = Duration::from_millis(100);
    let oauth = oauth(&servers).client(PreRegistered::new("workload")).workload_identity(Silent);
    let oauth = oauth.assertion_timeout(limit).build().unwrap();
    let login = tokio::time::timeout(Duration::from_secs(10), oauth.login());
    let error = login.await.unwrap().unwrap_err();
    assert!(matches!(error, OAuthError::AssertionTimedOut(timeout) if timeout == limit), "{error:?}");
    let error = connect(&servers, &oauth).await.unwrap_err();
    assert!(format!("{error} {error:?}").contains("tried again in"), "{error:?}");
}

/// A platform that panics the first time.
#[derive(Clone, Default)]
struct Panicking {
    was_asked: Arc<AtomicBool>,
}

#[async_trait]
impl AssertionSource for Panicking {
    async fn assertion(&self, _: &AssertionRequest) -> Result<Secret, PromptError> {
        assert!(self.was_asked.swap(true, Ordering::SeqCst), "the first time");
        Ok(Secret::new("workload-hunter2"))
    }
}

#[tokio::test]
async fn a_platform_that_panics_is_an_error_and_the_next_login_is_another() {
    let servers = Servers::start().await;
    let workload = |platform| {
        let oauth = oauth(&servers).client(PreRegistered::new("workload")).workload_identity(platform);
        oauth.build().unwrap()
    };
    let waited_for = workload(Panicking::default());
    let error = waited_for.login().await.unwrap_err();
    assert!(matches!(error, OAuthError::Panicked), "{error:?}");
    let error = connect(&servers, &waited_for).await.unwrap_err();
    assert!(error.to_string().contains("the login panicked; logging in is tried again in"), "{error}");
    waited_for.login().await.unwrap();

    // Nothing waits for this one when it panics.
    let platform = Panicking::default();
    let dropped = workload(platform.clone());
    assert!(tokio::time::timeout(Duration::ZERO, dropped.login()).await.is_err());
    while !platform.was_asked.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    dropped.login().await.unwrap();
    assert_eq!(ping(&connect(&servers, &dropped).await.unwrap()).await.unwrap(), "pong");
}

#[tokio::test]
async fn an_authorization_server_that_fails_is_left_alone_for_a_while() {
    let servers = Servers::start().await;
    servers.ledger().outage = Some((StatusCode::SERVICE_UNAVAILABLE, json!({})));
    let oauth = oauth(&servers).client(machine()).client_credentials().build().unwrap();
    let (start, mut calls, mut postponed) = (Instant::now(), 0, 0);
    while start.elapsed() < Duration::from_millis(1_200) {
        let error = connect(&servers, &oauth).await.unwrap_err();
        calls += 1;
        postponed += usize::from(format!("{error:?}").contains("tried again in"));
    }
    // At once, after at least half a second, and after at least one more.
    let requests = servers.ledger().token_requests;
    assert!((1..=2).contains(&requests), "{requests}");
    assert_eq!(calls - postponed, requests, "all other errors say when it is tried again");

    // An explicit login is tried at once, and resets the pause.
    servers.ledger().outage = None;
    oauth.login().await.unwrap();
    assert_eq!(servers.ledger().token_requests, requests + 1);
    assert_eq!(ping(&connect(&servers, &oauth).await.unwrap()).await.unwrap(), "pong");
}

#[tokio::test]
async fn logging_in_succeeds_by_itself_after_the_pause() {
    let servers = Servers::start().await;
    servers.ledger().outage = Some((StatusCode::BAD_REQUEST, json!({ "error": "invalid_client" })));
    let oauth = oauth(&servers).client(machine()).client_credentials().build().unwrap();
    connect(&servers, &oauth).await.unwrap_err();
    servers.ledger().outage = None;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(ping(&connect(&servers, &oauth).await.unwrap()).await.unwrap(), "pong");
}

#[tokio::test]
async fn a_client_with_a_refresh_token_that_is_refused_logs_in_again() {
    let servers = Servers::start().await;
    servers.ledger().refreshes_machines = true;
    let oauth = oauth(&servers).client(machine()).client_credentials().build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    ping(&client).await.unwrap();
    servers.ledger().end_logins();
    assert_eq!(ping(&client).await.unwrap(), "pong");
    let ledger = servers.ledger();
    assert_eq!((ledger.logins, ledger.refreshes), (2, 1));
}

// covers: AU-44
#[tokio::test]
async fn a_client_with_a_refresh_token_logs_in_for_more_scopes() {
    let servers = Servers::start().await;
    servers.ledger().refreshes_machines = true;
    let oauth = oauth(&servers).client(machine()).client_credentials().build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    servers.ledger().needed_scope = Some("books:write".to_owned());
    assert_eq!(ping(&client).await.unwrap(), "pong");
    assert_eq!(servers.ledger().assertions[1]["scope"], "books:write");
    oauth.login().await.unwrap();
    assert_eq!(ping(&client).await.unwrap(), "pong");
    let ledger = servers.ledger();
    assert_eq!((ledger.logins, ledger.refreshes), (3, 0), "a refresh obtains no other scopes");
}

// covers: AU-44
#[tokio::test]
async fn a_login_for_more_scopes_does_not_join_a_refresh() {
    let servers = Servers::start().await;
    servers.ledger().refreshes_machines = true;
    servers.ledger().lifetime = Duration::from_secs(4);
    let oauth = oauth(&servers).client(machine()).client_credentials().build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    servers.ledger().slow_down(Duration::from_millis(500));
    // The refresh ahead of expiry, which calls do not wait for.
    while servers.ledger().token_requests == 1 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        ping(&client).await.unwrap();
    }
    let refusals = servers.ledger().refusals;
    servers.ledger().needed_scope = Some("books:write".to_owned());
    assert_eq!(ping(&client).await.unwrap(), "pong");
    let ledger = servers.ledger();
    assert_eq!((ledger.logins, ledger.refreshes, ledger.reuses), (2, 1, 0));
    assert_eq!(ledger.refusals, refusals + 1, "the call is not repeated with the scopes that it had");
}
