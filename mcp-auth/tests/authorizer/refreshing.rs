//! Tokens that are never lost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use mcp_auth::Secret;
use mcp_auth::authorizer::async_trait;
use mcp_auth::store::{FileStore, MemoryStore, StoreError, StoreKey, StoreLock, TokenStore};
use mcp_testkit::Recorder;
use mcp_transport_http::Authorizer as _;
use serde_json::json;

use crate::support::{Agreeing, Servers};
use crate::{Directory, connect, oauth, ping};

/// Waits until a token with a lifetime of two seconds has expired.
async fn expire() {
    tokio::time::sleep(Duration::from_millis(2_100)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_with_an_expired_token_refresh_it_once() {
    let servers = Servers::start().await;
    servers.ledger().lifetime = Duration::from_secs(2);
    let recorder = Recorder::default();
    let oauth = oauth(&servers).prompt(Agreeing::default()).observer(recorder.observer()).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    assert_eq!(recorder.take(), ["Login { is_successful: true }"]);
    expire().await;
    servers.ledger().slow_down(Duration::from_millis(100));
    let calls = (0..50).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { ping(&client).await })
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap().unwrap(), "pong");
    }
    let ledger = servers.ledger();
    assert_eq!((ledger.refreshes, ledger.logins, ledger.reuses), (1, 1, 0));
    assert_eq!(recorder.take(), ["TokenRefresh { is_successful: true }"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authorizers_that_share_a_file_refresh_once() {
    let servers = Servers::start().await;
    servers.ledger().lifetime = Duration::from_secs(2);
    let directory = Directory::new("share");
    let mut clients = Vec::new();
    for _ in 0..6 {
        let store = FileStore::new(directory.file());
        let oauth = oauth(&servers).prompt(Agreeing::default()).store(store).build().unwrap();
        clients.push(connect(&servers, &oauth).await.unwrap());
    }
    expire().await;
    // On a slow machine, the tokens have expired before all were connected.
    let before = servers.ledger().refreshes;
    servers.ledger().slow_down(Duration::from_millis(100));
    let calls = clients.into_iter().map(|client| tokio::spawn(async move { ping(&client).await }));
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap().unwrap(), "pong");
    }
    let ledger = servers.ledger();
    assert_eq!((ledger.refreshes - before, ledger.logins, ledger.reuses), (1, 1, 0));
}

#[tokio::test]
async fn tokens_are_refreshed_ahead_of_expiry_while_calls_go_on_with_the_old_ones() {
    let servers = Servers::start().await;
    servers.ledger().lifetime = Duration::from_secs(4);
    let oauth = oauth(&servers).prompt(Agreeing::default()).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    let refused = servers.ledger().refusals;
    servers.ledger().delay = Duration::from_millis(300);
    let mut slowest = Duration::ZERO;
    let end = tokio::time::Instant::now() + Duration::from_secs(9);
    while tokio::time::Instant::now() < end {
        let start = tokio::time::Instant::now();
        ping(&client).await.unwrap();
        slowest = slowest.max(start.elapsed());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let ledger = servers.ledger();
    assert!((2..=6).contains(&ledger.refreshes), "{}", ledger.refreshes);
    assert_eq!(ledger.refusals, refused, "no request was sent with an expired token");
    assert!(slowest < Duration::from_millis(300), "no call waited for the refresh: {slowest:?}");
}

#[tokio::test]
async fn a_failure_of_the_network_keeps_the_refresh_token() {
    let servers = Servers::start().await;
    servers.ledger().lifetime = Duration::from_secs(2);
    let agreeing = Agreeing::default();
    let oauth = oauth(&servers).prompt(agreeing.clone()).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    expire().await;
    for status in [StatusCode::SERVICE_UNAVAILABLE, StatusCode::BAD_GATEWAY, StatusCode::TOO_MANY_REQUESTS] {
        servers.ledger().refusal = Some((status, json!({ "error": "temporarily_unavailable" })));
        let error = ping(&client).await.unwrap_err();
        assert!(error.to_string().contains("/token"), "{error}");
    }
    servers.ledger().refusal = None;
    assert_eq!(ping(&client).await.unwrap(), "pong");
    assert_eq!((*agreeing.asked.lock().unwrap(), servers.ledger().logins), (1, 1));
}

#[tokio::test]
async fn a_token_that_is_still_valid_is_used_while_the_network_fails() {
    let servers = Servers::start().await;
    servers.ledger().lifetime = Duration::from_secs(6);
    let oauth = oauth(&servers).prompt(Agreeing::default()).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    servers.ledger().refusal = Some((StatusCode::SERVICE_UNAVAILABLE, json!({})));
    // From 4.5 to 5.25 seconds on the token is refreshed ahead of its expiry.
    tokio::time::sleep(Duration::from_millis(4_600)).await;
    for _ in 0..7 {
        assert_eq!(ping(&client).await.unwrap(), "pong");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(
        servers.ledger().refreshes <= 2,
        "failures are not repeated with each call: {}",
        servers.ledger().refreshes
    );
}

#[tokio::test]
async fn only_invalid_grant_gives_the_refresh_token_up_and_the_user_logs_in_again() {
    let servers = Servers::start().await;
    servers.ledger().lifetime = Duration::from_secs(2);
    let agreeing = Agreeing::default();
    let oauth = oauth(&servers).prompt(agreeing.clone()).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    expire().await;
    servers.ledger().end_logins();
    assert_eq!(ping(&client).await.unwrap(), "pong");
    let ledger = servers.ledger();
    assert_eq!((*agreeing.asked.lock().unwrap(), ledger.logins, ledger.refreshes), (2, 2, 1));
}

#[tokio::test]
async fn a_login_that_has_ended_is_an_error_that_says_why_and_what_to_do() {
    let servers = Servers::start().await;
    servers.ledger().lifetime = Duration::from_secs(2);
    let store = MemoryStore::new();
    let login = oauth(&servers).prompt(Agreeing::default()).store(store.clone()).build().unwrap();
    login.login().await.unwrap();
    let oauth = oauth(&servers).store(store).login_hint("run `example login`").build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    expire().await;
    servers.ledger().end_logins();
    for _ in 0..2 {
        let error = ping(&client).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("invalid_grant") && text.contains("run `example login`"), "{text}");
    }
    assert_eq!(servers.ledger().refreshes, 1, "the refresh token was given up");
}

#[tokio::test]
async fn a_refused_token_is_refreshed_before_a_user_is_asked() {
    let servers = Servers::start().await;
    let agreeing = Agreeing::default();
    let oauth = oauth(&servers).prompt(agreeing.clone()).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    servers.ledger().end_access_tokens();
    assert_eq!(ping(&client).await.unwrap(), "pong");
    assert_eq!((*agreeing.asked.lock().unwrap(), servers.ledger().refreshes), (1, 1));
}

#[tokio::test]
async fn a_call_that_is_dropped_in_the_middle_of_a_refresh_does_not_lose_the_login() {
    let servers = Servers::start().await;
    servers.ledger().lifetime = Duration::from_secs(2);
    let agreeing = Agreeing::default();
    let oauth = oauth(&servers).prompt(agreeing.clone()).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    expire().await;
    servers.ledger().slow_down(Duration::from_millis(300));
    let dropped = tokio::time::timeout(Duration::from_millis(100), oauth.credential()).await;
    assert!(dropped.is_err());
    assert_eq!(ping(&client).await.unwrap(), "pong");
    let ledger = servers.ledger();
    assert_eq!((ledger.refreshes, ledger.reuses, ledger.logins), (1, 0, 1));
}

/// A store of a process that is slow: what was saved before it got a lock has expired when it goes on.
#[derive(Clone)]
struct Slow {
    store: MemoryStore,
    servers: Servers,
}

#[async_trait]
impl TokenStore for Slow {
    async fn load(&self, key: &StoreKey) -> Result<Option<Secret>, StoreError> {
        self.store.load(key).await
    }

    async fn save(&self, key: &StoreKey, record: &Secret) -> Result<(), StoreError> {
        self.store.save(key, record).await
    }

    async fn remove(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.store.remove(key).await
    }

    async fn lock(&self, key: &StoreKey) -> Result<StoreLock, StoreError> {
        let lock = self.store.lock(key).await?;
        if self.servers.ledger().logins > 0 {
            expire().await;
        }
        Ok(lock)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_of_another_process_that_has_expired_is_refreshed() {
    let servers = Servers::start().await;
    servers.ledger().lifetime = Duration::from_secs(2);
    let store = MemoryStore::new();
    let agreeing = Agreeing { delay: Duration::from_secs(1), ..Agreeing::default() };
    let first = oauth(&servers).prompt(agreeing.clone()).store(store.clone()).build().unwrap();
    let first = tokio::spawn({
        let servers = servers.clone();
        async move { connect(&servers, &first).await.map(drop) }
    });
    while *agreeing.asked.lock().unwrap() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // It waits for the login of the first one.
    let slow = Slow { store, servers: servers.clone() };
    let second = oauth(&servers).prompt(agreeing.clone()).store(slow).build().unwrap();
    let client = connect(&servers, &second).await.unwrap();
    assert_eq!(ping(&client).await.unwrap(), "pong");
    first.await.unwrap().unwrap();
    let ledger = servers.ledger();
    assert_eq!((ledger.logins, ledger.reuses, *agreeing.asked.lock().unwrap()), (1, 0, 1));
}

/// A store that records what was saved at each time, and can fail.
#[derive(Clone, Default)]
struct Watched {
    store: MemoryStore,
    saved: Arc<Mutex<Vec<String>>>,
    failures: Arc<Mutex<usize>>,
}

#[async_trait]
impl TokenStore for Watched {
    async fn load(&self, key: &StoreKey) -> Result<Option<Secret>, StoreError> {
        self.store.load(key).await
    }

    async fn save(&self, key: &StoreKey, record: &Secret) -> Result<(), StoreError> {
        let must_fail = {
            let mut failures = self.failures.lock().unwrap();
            let must_fail = *failures > 0;
            *failures = failures.saturating_sub(1);
            must_fail
        };
        if must_fail {
            return Err(StoreError::unavailable("the disk", std::io::Error::other("it is full")));
        }
        // A crash before this line loses tokens that were not used yet.
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.store.save(key, record).await?;
        self.saved.lock().unwrap().push(record.expose().to_owned());
        Ok(())
    }

    async fn remove(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.store.remove(key).await
    }

    async fn lock(&self, key: &StoreKey) -> Result<StoreLock, StoreError> {
        self.store.lock(key).await
    }
}

#[tokio::test]
async fn refreshed_tokens_are_saved_before_they_are_used() {
    let servers = Servers::start().await;
    servers.ledger().lifetime = Duration::from_secs(2);
    let watched = Watched::default();
    let oauth = oauth(&servers).prompt(Agreeing::default()).store(watched.clone()).build().unwrap();
    oauth.login().await.unwrap();
    for _ in 0..2 {
        expire().await;
        let credential = oauth.credential().await.unwrap().unwrap();
        let saved = watched.saved.lock().unwrap().last().cloned().unwrap();
        assert!(saved.contains(credential.token()), "the store has the token that is used");
    }
}

#[tokio::test]
async fn tokens_that_cannot_be_saved_are_used_and_saved_with_the_next_refresh() {
    let servers = Servers::start().await;
    servers.ledger().lifetime = Duration::from_secs(2);
    let watched = Watched::default();
    let agreeing = Agreeing::default();
    let oauth = oauth(&servers).prompt(agreeing.clone()).store(watched.clone()).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    expire().await;
    *watched.failures.lock().unwrap() = 4;
    assert_eq!(ping(&client).await.unwrap(), "pong");
    expire().await;
    assert_eq!(ping(&client).await.unwrap(), "pong");
    let ledger = servers.ledger();
    assert_eq!((ledger.refreshes, ledger.reuses, ledger.logins, *agreeing.asked.lock().unwrap()), (2, 0, 1, 1));
    assert_eq!(*watched.failures.lock().unwrap(), 0);
}

#[tokio::test]
async fn a_login_that_cannot_be_saved_is_used_and_saved_with_the_next_refresh() {
    let servers = Servers::start().await;
    servers.ledger().lifetime = Duration::from_secs(2);
    let watched = Watched::default();
    // The registration and the tokens are saved four times each.
    *watched.failures.lock().unwrap() = 8;
    let agreeing = Agreeing::default();
    let oauth = oauth(&servers).prompt(agreeing.clone()).store(watched.clone()).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    assert_eq!(ping(&client).await.unwrap(), "pong");
    assert_eq!((*watched.failures.lock().unwrap(), watched.saved.lock().unwrap().len()), (0, 0));
    expire().await;
    assert_eq!(ping(&client).await.unwrap(), "pong");
    let (logins, _) = servers.counts();
    assert_eq!((servers.ledger().refreshes, logins, *agreeing.asked.lock().unwrap()), (1, 1, 1));
    let credential = oauth.credential().await.unwrap().unwrap();
    assert!(watched.saved.lock().unwrap().last().unwrap().contains(credential.token()));
}

#[tokio::test]
async fn a_log_out_revokes_a_login_that_could_not_be_saved() {
    let servers = Servers::start().await;
    let watched = Watched::default();
    *watched.failures.lock().unwrap() = 8;
    let oauth = oauth(&servers).prompt(Agreeing::default()).store(watched).build().unwrap();
    oauth.login().await.unwrap();
    oauth.logout().await.unwrap();
    assert_eq!(servers.ledger().revoked, ["refresh_token", "access_token"]);
    assert!(!oauth.is_logged_in().await.unwrap());
}

#[tokio::test]
async fn a_damaged_store_is_an_error_that_names_the_file() {
    let servers = Servers::start().await;
    let directory = Directory::new("damaged");
    std::fs::create_dir_all(&directory.0).unwrap();
    std::fs::write(directory.file(), "{").unwrap();
    let agreeing = Agreeing::default();
    let oauth = oauth(&servers).prompt(agreeing.clone()).store(FileStore::new(directory.file())).build().unwrap();
    let error = connect(&servers, &oauth).await.unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(text.contains("logins.json") && text.contains("damaged"), "{text}");
    assert_eq!(*agreeing.asked.lock().unwrap(), 0);
    assert_eq!(std::fs::read_to_string(directory.file()).unwrap(), "{");
}

#[tokio::test]
async fn a_refresh_that_is_refused_for_another_reason_keeps_the_tokens_and_lets_the_user_log_in() {
    let servers = Servers::start().await;
    servers.ledger().lifetime = Duration::from_secs(2);
    let (agreeing, store) = (Agreeing::default(), MemoryStore::new());
    let oauth = oauth(&servers).prompt(agreeing.clone()).store(store.clone()).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    let key = StoreKey::login(&servers.server(), None);
    let before = store.load(&key).await.unwrap().unwrap();
    expire().await;
    servers.ledger().refusal = Some((StatusCode::BAD_REQUEST, json!({ "error": "unauthorized_client" })));
    oauth.credential().await.unwrap();
    assert_eq!(store.load(&key).await.unwrap(), Some(before), "only `invalid_grant` gives tokens up");
    assert_eq!(ping(&client).await.unwrap(), "pong");
    assert_eq!(*agreeing.asked.lock().unwrap(), 2);
}
