//! How logins start, and how they end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_auth::authorizer::{
    DevicePrompt, LoginPrompt, LoopbackListener, OAuthError, PendingLogin, PromptError, RedirectCheck, async_trait,
};
use mcp_auth::client::{DeviceCode, OpenBrowser, PreRegistered};
use mcp_auth::store::{FileStore, MemoryStore, StoreError, StoreKey, StoreLock, TokenStore};
use mcp_auth::{Scopes, Secret};

use crate::support::{Agreeing, Servers, claims, saved_resource};
use crate::{Directory, connect, oauth, ping};

// covers: AU-20, AU-40
#[tokio::test]
async fn a_server_that_demands_tokens_gets_them_after_a_login() {
    let servers = Servers::start().await;
    let oauth = oauth(&servers).prompt(Agreeing::default()).build().unwrap();
    assert!(!oauth.is_logged_in().await.unwrap());
    let client = connect(&servers, &oauth).await.unwrap();
    assert_eq!(ping(&client).await.unwrap(), "pong");
    assert!(oauth.is_logged_in().await.unwrap());
    let ledger = servers.ledger();
    assert_eq!((ledger.logins, ledger.registrations, ledger.refusals), (1, 1, 1));
}

#[tokio::test]
async fn a_login_is_kept_in_the_store_and_so_is_the_registration() {
    let servers = Servers::start().await;
    let directory = Directory::new("kept");
    for _ in 0..3 {
        let store = FileStore::new(directory.file());
        let oauth = oauth(&servers).prompt(Agreeing::default()).store(store).build().unwrap();
        ping(&connect(&servers, &oauth).await.unwrap()).await.unwrap();
    }
    assert_eq!(servers.counts(), (1, 1));
    // Another account is another login, of the same client.
    let store = FileStore::new(directory.file());
    let other = oauth(&servers).prompt(Agreeing::default()).store(store).account("bob").build().unwrap();
    ping(&connect(&servers, &other).await.unwrap()).await.unwrap();
    assert_eq!(servers.counts(), (2, 1));
}

#[tokio::test]
async fn many_calls_wait_for_one_login() {
    let servers = Servers::start().await;
    let agreeing = Agreeing { delay: Duration::from_millis(200), ..Agreeing::default() };
    let oauth = oauth(&servers).prompt(agreeing.clone()).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    servers.ledger().end_logins();
    let calls = (0..20).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { ping(&client).await })
    });
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap().unwrap(), "pong");
    }
    assert_eq!(*agreeing.asked.lock().unwrap(), 2, "one login to connect, and one for all calls");
}

#[tokio::test]
async fn a_login_is_cancelled_when_no_call_waits_for_it_any_more() {
    let servers = Servers::start().await;
    let slow = Agreeing { delay: Duration::from_millis(300), ..Agreeing::default() };
    let oauth = oauth(&servers).prompt(slow.clone()).build().unwrap();
    let (one, other) = (oauth.clone(), oauth.clone());
    let one = tokio::spawn(async move { one.login().await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let other = tokio::spawn(async move { other.login().await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    one.abort();
    other.await.unwrap().unwrap();
    assert_eq!((*slow.asked.lock().unwrap(), servers.ledger().logins), (1, 1), "the other call goes on with the login");

    servers.ledger().end_logins();
    let last = tokio::time::timeout(Duration::from_millis(100), oauth.login()).await;
    assert!(last.is_err());
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!((*slow.asked.lock().unwrap(), servers.ledger().logins), (2, 1), "a dropped login does not go on");
}

#[tokio::test]
async fn tokens_of_a_login_that_is_cancelled_after_they_were_requested_are_kept() {
    for device in [false, true] {
        let servers = Servers::start().await;
        servers.ledger().delay = Duration::from_millis(500);
        let store = MemoryStore::new();
        let agreeing = Agreeing::default();
        let login = || {
            let builder = oauth(&servers).store(store.clone());
            let builder =
                if device { builder.device_prompt(Device::default()) } else { builder.prompt(agreeing.clone()) };
            builder.build().unwrap()
        };
        let (first, waited) = (login(), servers.clone());
        let waiting = tokio::spawn({
            let first = first.clone();
            async move { first.login().await }
        });
        while waited.ledger().token_requests == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        assert_eq!(servers.ledger().logins, 0, "the tokens are not issued yet");
        tokio::time::sleep(Duration::from_millis(800)).await;
        assert_eq!(servers.ledger().logins, 1);
        assert!(first.is_logged_in().await.unwrap());
        // Another process has them, too.
        assert_eq!(ping(&connect(&servers, &login()).await.unwrap()).await.unwrap(), "pong");
        assert_eq!(servers.ledger().logins, 1, "no user has to log in again");
    }
}

#[tokio::test]
async fn a_login_that_takes_too_long_fails() {
    let servers = Servers::start().await;
    let slow = Agreeing { delay: Duration::from_secs(60), ..Agreeing::default() };
    let oauth = oauth(&servers).prompt(slow).login_timeout(Duration::from_millis(100)).build().unwrap();
    let error = oauth.login().await.unwrap_err();
    assert!(matches!(error, OAuthError::TimedOut(_)), "{error:?}");
}

#[tokio::test]
async fn without_a_prompt_the_error_says_how_to_log_in() {
    let servers = Servers::start().await;
    let oauth = oauth(&servers).login_hint("run `example login`").build().unwrap();
    let error = connect(&servers, &oauth).await.unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(text.contains("not logged in") && text.contains("run `example login`"), "{text}");
}

// covers: AU-44
#[tokio::test]
async fn a_call_that_needs_more_scopes_gets_them_and_is_repeated() {
    let servers = Servers::start().await;
    let oauth = oauth(&servers).prompt(Agreeing::default()).scopes(Scopes::from_iter(["books:read"])).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    servers.ledger().needed_scope = Some("books:write".to_owned());
    assert_eq!(ping(&client).await.unwrap(), "pong");
    assert_eq!(servers.ledger().logins, 2);
    // Both scopes are in the new token.
    servers.ledger().needed_scope = Some("books:read".to_owned());
    assert_eq!(ping(&client).await.unwrap(), "pong");
    assert_eq!(servers.ledger().logins, 2);
}

// covers: AU-44
#[tokio::test]
async fn step_ups_that_help_are_not_limited_and_those_in_vain_are() {
    let servers = Servers::start().await;
    let agreeing = Agreeing::default();
    let oauth = oauth(&servers).prompt(agreeing.clone()).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    for index in 0..8 {
        servers.ledger().needed_scope = Some(format!("scope:{index}"));
        assert_eq!(ping(&client).await.unwrap(), "pong", "{index}");
    }
    let asked = || *agreeing.asked.lock().unwrap();
    assert_eq!(asked(), 9);

    // The server does not accept what it demands.
    servers.ledger().granted_scope = Some("scope:0".to_owned());
    for _ in 0..5 {
        servers.ledger().needed_scope = Some("scope:more".to_owned());
        ping(&client).await.unwrap_err();
        // Other requests are accepted meanwhile.
        servers.ledger().needed_scope = None;
        ping(&client).await.unwrap();
    }
    assert_eq!(asked(), 9 + 2, "the user is not asked over and over");

    // A login by the user's own will is another matter.
    servers.ledger().granted_scope = None;
    oauth.login().await.unwrap();
    servers.ledger().needed_scope = Some("scope:new".to_owned());
    assert_eq!(ping(&client).await.unwrap(), "pong");
    assert_eq!(asked(), 9 + 2 + 2);
}

// covers: AU-44
#[tokio::test]
async fn calls_that_need_the_same_scopes_share_one_step_up() {
    let servers = Servers::start().await;
    let agreeing = Agreeing { delay: Duration::from_millis(300), ..Agreeing::default() };
    let oauth = oauth(&servers).prompt(agreeing.clone()).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    let call_many = async || {
        let calls = (0..8).map(|_| {
            let client = client.clone();
            tokio::spawn(async move { ping(&client).await })
        });
        let mut accepted = 0;
        for call in calls.collect::<Vec<_>>() {
            accepted += usize::from(call.await.unwrap().is_ok());
        }
        accepted
    };
    servers.ledger().needed_scope = Some("books:write".to_owned());
    assert_eq!(call_many().await, 8, "no call fails while the login that helps is in flight");
    assert_eq!(*agreeing.asked.lock().unwrap(), 2);

    // Calls in vain use up one attempt together, so there are others for other scopes.
    servers.ledger().granted_scope = Some("books:write".to_owned());
    servers.ledger().needed_scope = Some("books:delete".to_owned());
    assert_eq!(call_many().await, 0);
    servers.ledger().granted_scope = None;
    servers.ledger().needed_scope = Some("books:list".to_owned());
    assert_eq!(call_many().await, 8);
}

#[tokio::test]
async fn tokens_of_a_login_that_the_server_refuses_do_not_lead_to_another_login() {
    let servers = Servers::start().await;
    let agreeing = Agreeing::default();
    let oauth = oauth(&servers).prompt(agreeing.clone()).build().unwrap();
    servers.ledger().lifetime = Duration::ZERO;
    let error = connect(&servers, &oauth).await.unwrap_err();
    assert!(*agreeing.asked.lock().unwrap() <= 2, "{error:?}");
}

#[tokio::test]
async fn two_processes_ask_the_user_once() {
    let servers = Servers::start().await;
    let store = MemoryStore::new();
    let agreeing = Agreeing { delay: Duration::from_millis(100), ..Agreeing::default() };
    // As two processes: they share nothing but the store.
    let logins = (0..5).map(|_| {
        let oauth = oauth(&servers).prompt(agreeing.clone()).store(store.clone()).build().unwrap();
        let servers = servers.clone();
        tokio::spawn(async move { ping(&connect(&servers, &oauth).await.unwrap()).await.unwrap() })
    });
    for login in logins.collect::<Vec<_>>() {
        login.await.unwrap();
    }
    assert_eq!((*agreeing.asked.lock().unwrap(), servers.ledger().logins), (1, 1));
}

#[derive(Clone, Default)]
struct Device {
    shown: Arc<Mutex<Vec<DeviceCode>>>,
    declines: bool,
}

#[async_trait]
impl DevicePrompt for Device {
    async fn show(&self, code: &DeviceCode) -> Result<(), PromptError> {
        self.shown.lock().unwrap().push(code.clone());
        if self.declines { Err(PromptError::Declined) } else { std::future::pending().await }
    }
}

#[tokio::test]
async fn a_device_code_is_shown_until_the_login_is_over() {
    let servers = Servers::start().await;
    let device = Device::default();
    let oauth = oauth(&servers).device_prompt(device.clone()).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    assert_eq!(ping(&client).await.unwrap(), "pong");
    let shown = device.shown.lock().unwrap();
    assert_eq!((shown.len(), shown[0].user_code.as_str()), (1, "ABCD-EFGH"));
    drop(shown);
    assert_eq!(Arc::strong_count(&device.shown), 2, "the prompt is over: only the test and the authorizer have it");
}

/// A prompt that panics the first time.
#[derive(Clone, Default)]
struct Panicking(Agreeing);

#[async_trait]
impl LoginPrompt for Panicking {
    async fn begin(&self, earlier: Option<&str>) -> Result<Box<dyn PendingLogin>, PromptError> {
        let login = self.0.begin(earlier).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(*self.0.asked.lock().unwrap() > 1, "the first time");
        login
    }
}

#[tokio::test]
async fn a_prompt_that_panics_is_an_error_of_all_who_wait_and_the_next_login_is_another() {
    let servers = Servers::start().await;
    let oauth = oauth(&servers).prompt(Panicking::default()).build().unwrap();
    let (one, other) = tokio::join!(oauth.login(), oauth.login());
    assert!(matches!((&one, &other), (Err(OAuthError::Panicked), Err(OAuthError::Panicked))), "{one:?} {other:?}");
    oauth.login().await.unwrap();
}

#[tokio::test]
async fn a_user_who_declines_ends_the_login() {
    let servers = Servers::start().await;
    let oauth = oauth(&servers).device_prompt(Device { declines: true, ..Device::default() }).build().unwrap();
    let error = oauth.login().await.unwrap_err();
    assert!(matches!(error, OAuthError::Prompt(PromptError::Declined)), "{error:?}");
    assert_eq!(servers.ledger().logins, 0);
}

#[tokio::test]
async fn logging_out_revokes_and_forgets() {
    let servers = Servers::start().await;
    let directory = Directory::new("logout");
    let store = FileStore::new(directory.file());
    let agreeing = Agreeing::default();
    let oauth = oauth(&servers).prompt(agreeing.clone()).store(store).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    ping(&client).await.unwrap();
    oauth.logout().await.unwrap();
    assert_eq!(servers.ledger().revoked, ["refresh_token", "access_token"]);
    assert!(!oauth.is_logged_in().await.unwrap());
    let file = std::fs::read_to_string(directory.file()).unwrap();
    assert!(!file.contains("hunter2"), "{file}");
    oauth.logout().await.unwrap();
    assert_eq!(servers.ledger().revoked.len(), 2, "there is nothing to revoke any more");
    ping(&client).await.unwrap();
    assert_eq!(*agreeing.asked.lock().unwrap(), 2);
}

#[tokio::test]
async fn a_log_out_that_is_cancelled_still_revokes() {
    let servers = Servers::start().await;
    let oauth = oauth(&servers).prompt(Agreeing::default()).build().unwrap();
    oauth.login().await.unwrap();
    servers.ledger().revocation_delay = Duration::from_millis(100);
    let cancelled = tokio::time::timeout(Duration::from_millis(50), oauth.logout()).await;
    assert!(cancelled.is_err());
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(servers.ledger().revoked, ["refresh_token", "access_token"]);
}

#[tokio::test]
async fn a_log_out_revokes_the_tokens_of_a_login_in_flight() {
    let servers = Servers::start().await;
    servers.ledger().delay = Duration::from_millis(300);
    let store = MemoryStore::new();
    let oauth = oauth(&servers).prompt(Agreeing::default()).store(store.clone()).build().unwrap();
    for is_cancelled in [true, false] {
        let requests = servers.ledger().token_requests;
        let login = tokio::spawn({
            let oauth = oauth.clone();
            async move { oauth.login().await }
        });
        while servers.ledger().token_requests == requests {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        if is_cancelled {
            login.abort();
        }
        oauth.logout().await.unwrap();
        if is_cancelled {
            tokio::time::sleep(Duration::from_millis(800)).await;
        } else {
            let error = login.await.unwrap().unwrap_err();
            assert!(matches!(error, OAuthError::LoggedOut), "{error:?}");
        }
        assert!(!oauth.is_logged_in().await.unwrap());
        let key = StoreKey::login(&servers.server(), None);
        assert_eq!(store.load(&key).await.unwrap(), None);
        let revoked = std::mem::take(&mut servers.ledger().revoked);
        assert_eq!(revoked, ["refresh_token", "access_token"]);
    }
    // A login that starts after the log-out does not join one from before.
    servers.ledger().delay = Duration::ZERO;
    oauth.login().await.unwrap();
    assert!(oauth.is_logged_in().await.unwrap());
}

/// The tokens of a login are dropped if the next one is for another resource, but not if they belong to a login after a log-out.
#[tokio::test]
async fn a_login_from_before_a_log_out_forgets_nothing_of_a_later_one() {
    let servers = Servers::start().await;
    let store = MemoryStore::new();
    let one = oauth(&servers).prompt(Agreeing::default()).store(store.clone()).build().unwrap();
    one.login().await.unwrap();
    servers.ledger().resource = Some(servers.url.clone());
    servers.ledger().delay = Duration::from_millis(500);
    let requests = servers.ledger().token_requests;
    let login = tokio::spawn({
        let one = one.clone();
        async move { one.login().await }
    });
    while servers.ledger().token_requests == requests {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    one.logout().await.unwrap();
    (servers.ledger().resource, servers.ledger().delay) = (None, Duration::ZERO);
    let machine = PreRegistered::new("machine").client_secret("machine-hunter2");
    let other = oauth(&servers).client(machine).client_credentials().store(store.clone()).build().unwrap();
    other.login().await.unwrap();
    assert!(!login.is_finished(), "it still waits for its tokens");
    let error = login.await.unwrap().unwrap_err();
    assert!(matches!(error, OAuthError::LoggedOut), "{error:?}");
    assert_eq!(saved_resource(&store, &servers).await, Some(servers.server()));
    assert_eq!(servers.ledger().revoked.len(), 4, "those of both logins");
}

/// A store whose next record arrives late.
#[derive(Clone, Default)]
struct Late {
    store: MemoryStore,
    delay: Arc<Mutex<Option<Duration>>>,
}

#[async_trait]
impl TokenStore for Late {
    async fn load(&self, key: &StoreKey) -> Result<Option<Secret>, StoreError> {
        let record = self.store.load(key).await;
        let delay = self.delay.lock().unwrap().take();
        tokio::time::sleep(delay.unwrap_or_default()).await;
        record
    }

    async fn save(&self, key: &StoreKey, record: &Secret) -> Result<(), StoreError> {
        self.store.save(key, record).await
    }

    async fn remove(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.store.remove(key).await
    }

    async fn lock(&self, key: &StoreKey) -> Result<StoreLock, StoreError> {
        self.store.lock(key).await
    }
}

#[tokio::test]
async fn tokens_that_were_read_before_a_log_out_are_not_used_after_it() {
    let servers = Servers::start().await;
    let store = Late::default();
    let login = || oauth(&servers).prompt(Agreeing::default()).store(store.clone()).build().unwrap();
    let oauth = login();
    let client = connect(&servers, &oauth).await.unwrap();
    ping(&client).await.unwrap();
    // Another process has newer tokens.
    login().login().await.unwrap();
    servers.ledger().end_access_tokens();
    *store.delay.lock().unwrap() = Some(Duration::from_millis(300));
    let call = tokio::spawn(async move { ping(&client).await });
    while store.delay.lock().unwrap().is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    oauth.logout().await.unwrap();
    let error = call.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("logged out"), "{error}");
    assert!(!oauth.is_logged_in().await.unwrap());
}

/// A host that opens its own browser, which is sent back to a loopback port.
#[derive(Clone, Default)]
struct OwnBrowser {
    ports: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl LoginPrompt for OwnBrowser {
    async fn begin(&self, earlier: Option<&str>) -> Result<Box<dyn PendingLogin>, PromptError> {
        let listener = LoopbackListener::bind(earlier).await.map_err(|error| PromptError::failed(error.to_string()))?;
        self.ports.lock().unwrap().push(listener.redirect_uri().to_owned());
        Ok(Box::new(Window(listener)))
    }
}

struct Window(LoopbackListener);

#[async_trait]
impl PendingLogin for Window {
    fn redirect_uri(&self) -> &str {
        self.0.redirect_uri()
    }

    async fn authorize(&mut self, request: &OpenBrowser, check: RedirectCheck<'_>) -> Result<(), PromptError> {
        let url = request.url.clone();
        let forged = format!("{}?code=forged&state=forged", self.0.redirect_uri());
        let browser = tokio::spawn(async move {
            // A page of an attacker sends the browser to the port first.
            let status = reqwest::get(forged).await.unwrap().status();
            assert_eq!(status, 400);
            reqwest::get(url).await.unwrap().text().await.unwrap()
        });
        self.0.wait(check).await.map_err(|error| PromptError::failed(error.to_string()))?;
        assert!(browser.await.unwrap().contains("close this window"));
        Ok(())
    }
}

// covers: AU-39, AU-48
#[tokio::test]
async fn a_browser_is_sent_back_to_a_loopback_port_and_forged_redirects_are_ignored() {
    let servers = Servers::start().await;
    let browser = OwnBrowser::default();
    let oauth = oauth(&servers).prompt(browser.clone()).build().unwrap();
    let client = connect(&servers, &oauth).await.unwrap();
    assert_eq!(ping(&client).await.unwrap(), "pong");
    oauth.login().await.unwrap();
    let ports = browser.ports.lock().unwrap().clone();
    assert_eq!((ports.len(), &ports[0]), (2, &ports[1]), "the port of the registration is used again");
    assert_eq!(servers.counts(), (2, 1));
}

// covers: EX-5
#[tokio::test]
async fn tokens_are_bound_to_a_key_and_every_request_proves_it_with_the_nonces_of_both_servers() {
    let servers = Servers::start().await;
    servers.ledger().dpop_nonce = Some("nonce-1");
    servers.ledger().lifetime = Duration::from_secs(2);
    let directory = Directory::new("dpop");
    let login = |agreeing: &Agreeing| {
        let store = FileStore::new(directory.file());
        oauth(&servers).prompt(agreeing.clone()).store(store).dpop(true).build().unwrap()
    };
    let agreeing = Agreeing::default();
    let client = connect(&servers, &login(&agreeing)).await.unwrap();
    assert_eq!(ping(&client).await.unwrap(), "pong");
    // Another process refreshes with the same key, as the refresh token is bound to it, too.
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    servers.ledger().dpop_nonce = Some("nonce-2");
    let client = connect(&servers, &login(&agreeing)).await.unwrap();
    assert_eq!(ping(&client).await.unwrap(), "pong");
    assert_eq!(*agreeing.asked.lock().unwrap(), 1);

    let ledger = servers.ledger();
    assert_eq!((ledger.logins, ledger.refreshes, ledger.reuses), (1, 1, 0));
    let keys: std::collections::BTreeSet<_> = ledger.proofs.iter().map(|proof| proof.split('.').next()).collect();
    assert_eq!(keys.len(), 1, "one key for all");
    let ids: std::collections::BTreeSet<_> =
        ledger.proofs.iter().map(|proof| claims(proof)["jti"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), ledger.proofs.len(), "each proof is used once");
    let last = claims(ledger.proofs.last().unwrap());
    assert_eq!(
        (&last["htm"], &last["htu"], &last["nonce"]),
        (&"POST".into(), &servers.server().into(), &"nonce-2".into())
    );
    assert!(last["ath"].is_string(), "the proof is for the token");
}

#[tokio::test]
async fn a_public_server_cannot_name_addresses_inside() {
    let inside = Servers::start().await;
    // It is public by its name, and the client reaches it elsewhere.
    let oauth = mcp_auth::authorizer::OAuth::builder("https://public.example.com/mcp").prompt(Agreeing::default());
    let oauth = oauth.build().unwrap();
    let metadata = format!("Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"", inside.url);
    let challenge = mcp_transport_http::Challenge::new(401, [metadata]);
    let error = mcp_transport_http::Authorizer::challenged(&oauth, &challenge).await.unwrap_err();
    assert!(error.to_string().contains("private") || error.to_string().contains("cannot be used"), "{error}");
    assert_eq!(inside.counts(), (0, 0));
}
