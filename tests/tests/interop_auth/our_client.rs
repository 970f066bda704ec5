//! Our client logs in, to our server and to those of the official packages.

use std::time::Duration;

use mcp_auth::Secret;
use mcp_auth::authorizer::{OAuth, OAuthBuilder};
use mcp_auth::client::{ClientAuthentication, PreRegistered};
use mcp_auth::jose::SigningKey;
use mcp_auth::server::{HttpIntrospection, IntrospectionVerifier};
use mcp_client::{Client, Error, Mode};
use mcp_transport_http::HttpTransport;

use crate::our_server::{OurServer, with_jwts};
use crate::person::Person;
use crate::program::{ALONE, Program};
use crate::watched_store::WatchedStore;

const READ: &str = "notes:read";
const BOTH: &str = "notes:read notes:write";

/// Seconds that tokens live where they are refreshed.
const LIFETIME: u64 = 6;

async fn connect(server: &str, oauth: &OAuth, mode: Mode) -> Result<Client, Error> {
    let transport = HttpTransport::new(server).expect("the address is valid").authorizer(oauth.clone());
    Client::builder("interop", "1.0").mode(mode).connect(transport).await
}

async fn call(client: &Client, tool: &str) -> String {
    let result = client.call_tool(tool).await.unwrap_or_else(|error| panic!("{tool}: {error}"));
    result.to_text()
}

fn build(builder: OAuthBuilder) -> OAuth {
    builder.client_name("interop").build().expect("the settings are valid")
}

/// Logs in, gets more scopes for a tool that needs them, and refreshes the tokens.
async fn log_in_step_up_and_refresh(provider: &Program, server: &str, mode: Mode) {
    let (person, store) = (Person::named("alice"), WatchedStore::default());
    let oauth = build(OAuth::builder(server).prompt(person.clone()).store(store.clone()));
    let client = connect(server, &oauth, mode).await.expect("the login succeeds");
    assert_eq!(call(&client, "whoami").await, format!("alice {READ}"));
    assert_eq!(person.logins(), 1);
    // All endpoints were discovered, the client registered itself, and the token is for this server only.
    assert_eq!(provider.events("registered native").await.len(), 1);
    let granted = provider.events("granted authorization_code").await;
    assert!(granted.iter().all(|event| event.ends_with(&format!("resource={server}"))), "{granted:?}");

    assert_eq!(call(&client, "write").await, "written");
    assert_eq!(call(&client, "whoami").await, format!("alice {BOTH}"));
    assert_eq!(person.logins(), 2, "more scopes need another login");
    assert_eq!(provider.events("registered").await.len(), 1, "the client is registered once");

    tokio::time::sleep(Duration::from_secs(LIFETIME + 1)).await;
    assert_eq!(call(&client, "whoami").await, format!("alice {BOTH}"));
    assert_eq!(person.logins(), 2, "tokens are refreshed without a person");
    assert!(!provider.events("granted refresh_token").await.is_empty());

    // Another process with the same store.
    let other = build(OAuth::builder(server).store(store));
    let client = connect(server, &other, mode).await.expect("the login is kept");
    assert_eq!(call(&client, "whoami").await, format!("alice {BOTH}"));
    assert_eq!(provider.events("refused").await, [""; 0], "no refresh token was used twice");
}

// covers: AU-22, AU-28, AU-33, AU-44, AU-46
#[tokio::test]
async fn logs_in_steps_up_and_refreshes() {
    let _alone = ALONE.lock().await;
    let provider = Program::provider(&["--lifetime", &LIFETIME.to_string()]).await;
    let server = OurServer::start(&provider.url, with_jwts(&provider.url)).await;
    log_in_step_up_and_refresh(&provider, &server.url, Mode::Modern).await;
}

#[tokio::test]
async fn logs_in_steps_up_and_refreshes_in_a_session() {
    let _alone = ALONE.lock().await;
    let provider = Program::provider(&["--lifetime", &LIFETIME.to_string(), "--algorithm", "RS256"]).await;
    let server = OurServer::start(&provider.url, with_jwts(&provider.url)).await;
    log_in_step_up_and_refresh(&provider, &server.url, Mode::Legacy).await;
}

#[tokio::test]
async fn logs_in_to_a_typescript_server() {
    let _alone = ALONE.lock().await;
    let provider = Program::provider(&["--lifetime", &LIFETIME.to_string()]).await;
    let server = Program::typescript(&provider.url).await;
    log_in_step_up_and_refresh(&provider, &server.url, Mode::Auto).await;
}

#[tokio::test]
async fn logs_in_to_a_typescript_server_with_a_session() {
    let _alone = ALONE.lock().await;
    let provider = Program::provider(&["--lifetime", &LIFETIME.to_string()]).await;
    let server = Program::typescript(&provider.url).await;
    log_in_step_up_and_refresh(&provider, &server.url, Mode::Legacy).await;
}

#[tokio::test]
async fn logs_in_to_a_python_server() {
    let _alone = ALONE.lock().await;
    let provider = Program::provider(&["--opaque"]).await;
    let server = Program::python(&provider.url).await;
    let (person, store) = (Person::named("bob"), WatchedStore::default());
    for (mode, logins) in [(Mode::Auto, 1), (Mode::Legacy, 1)] {
        let oauth = build(OAuth::builder(&*server.url).prompt(person.clone()).store(store.clone()));
        let client = connect(&server.url, &oauth, mode).await.expect("the login succeeds");
        assert_eq!(call(&client, "whoami").await, format!("bob {READ}"));
        assert_eq!(person.logins(), logins);
    }
}

#[tokio::test]
async fn a_person_declines() {
    let _alone = ALONE.lock().await;
    let provider = Program::provider(&[]).await;
    let server = OurServer::start(&provider.url, with_jwts(&provider.url)).await;
    let person = Person::who_declines("mallory");
    let oauth = build(OAuth::builder(&*server.url).prompt(person.clone()));
    let error = connect(&server.url, &oauth, Mode::Auto).await.expect_err("there is no login");
    assert!(error.to_string().contains("access_denied"), "{error}");
    assert_eq!(person.logins(), 1);
    assert_eq!(provider.events("granted").await, [""; 0]);
}

/// An attacker uses a refresh token that our client has used before: the authorization server ends the login.
#[tokio::test]
async fn reuse_of_a_refresh_token_ends_the_login() {
    let _alone = ALONE.lock().await;
    let provider = Program::provider(&["--lifetime", "3"]).await;
    let server = OurServer::start(&provider.url, with_jwts(&provider.url)).await;
    let (person, store) = (Person::named("alice"), WatchedStore::default());
    let oauth = build(OAuth::builder(&*server.url).prompt(person.clone()).store(store.clone()));
    let client = connect(&server.url, &oauth, Mode::Modern).await.expect("the login succeeds");
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(call(&client, "whoami").await, format!("alice {READ}"));
    let [stolen, ..] = &*store.values("refresh_token") else { panic!("there are no refresh tokens") };
    let [client_id, ..] = &*store.values("client_id") else { panic!("there is no client") };
    let form = [("grant_type", "refresh_token"), ("refresh_token", stolen), ("client_id", client_id)];
    let body = url_encoded(&form);
    let request = reqwest::Client::new().post(format!("{}/token", provider.url)).body(body);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    assert_eq!(request.send().await.expect("there is a response").status(), 400);
    assert_eq!(provider.events("revoked").await.len(), 1);

    // Without a person there is an error that says what to do.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let unattended = build(OAuth::builder(&*server.url).store(store).login_hint("run `interop login`"));
    let error = connect(&server.url, &unattended, Mode::Modern).await.expect_err("the login has ended");
    assert!(error.to_string().contains("run `interop login`"), "{error}");
    // With one there is a new login.
    assert_eq!(call(&client, "whoami").await, format!("alice {READ}"));
    assert_eq!(person.logins(), 2);
}

fn url_encoded(form: &[(&str, &str)]) -> String {
    form.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

#[tokio::test]
async fn a_person_enters_the_code_of_a_device() {
    let _alone = ALONE.lock().await;
    let provider = Program::provider(&[]).await;
    let server = OurServer::start(&provider.url, with_jwts(&provider.url)).await;
    let person = Person::named("carol");
    let oauth = build(OAuth::builder(&*server.url).device_prompt(person.clone()));
    let client = connect(&server.url, &oauth, Mode::Auto).await.expect("the login succeeds");
    assert_eq!(call(&client, "whoami").await, format!("carol {READ}"));
    assert_eq!(person.logins(), 1);
    assert_eq!(provider.events("granted urn:ietf:params:oauth:grant-type:device_code").await.len(), 1);
}

/// Tokens that mean nothing to the server are introspected, and revoked when the user logs out.
// covers: AU-6
#[tokio::test]
async fn logging_out_revokes_tokens() {
    let _alone = ALONE.lock().await;
    let provider = Program::provider(&["--opaque"]).await;
    let introspection = HttpIntrospection::new(
        format!("{}/token/introspection", provider.url),
        "resource-server",
        &Secret::new("the secret of a resource server"),
    );
    let verifier = IntrospectionVerifier::new(&*provider.url, introspection).remember_for(Duration::ZERO);
    let server = OurServer::start(&provider.url, |resource| resource.verifier(verifier)).await;
    let store = WatchedStore::default();
    let oauth = build(OAuth::builder(&*server.url).prompt(Person::named("alice")).store(store.clone()));
    let client = connect(&server.url, &oauth, Mode::Auto).await.expect("the login succeeds");
    assert_eq!(call(&client, "whoami").await, format!("alice {READ}"));

    let [token] = &*store.values("access_token") else { panic!("there is one access token") };
    let as_thief = || HttpTransport::new(&server.url).expect("it is valid").bearer(token).expect("it is a token");
    let thief = Client::builder("thief", "1.0").connect(as_thief()).await.expect("the token is valid");
    assert_eq!(call(&thief, "whoami").await, format!("alice {READ}"));
    oauth.logout().await.expect("the tokens are revoked");
    assert_eq!(provider.events("revoked").await.len(), 1);
    let error = thief.call_tool("whoami").await.expect_err("the token is revoked");
    assert!(error.to_string().contains("401"), "{error}");
    assert!(!oauth.is_logged_in().await.expect("the store works"));
}

async fn prove_possession(provider: &Program, server: &OurServer, mode: Mode) {
    let (person, store) = (Person::named("alice"), WatchedStore::default());
    let oauth = build(OAuth::builder(&*server.url).prompt(person).store(store.clone()).require_dpop());
    let client = connect(&server.url, &oauth, mode).await.expect("the login succeeds");
    assert_eq!(call(&client, "whoami").await, format!("alice {READ}"));
    tokio::time::sleep(Duration::from_secs(LIFETIME + 1)).await;
    assert_eq!(call(&client, "whoami").await, format!("alice {READ}"));
    assert!(!provider.events("granted refresh_token").await.is_empty(), "the key signs refreshes, too");
    // The token alone is of no use.
    let tokens = store.values("access_token");
    let token = tokens.last().expect("there is an access token");
    for scheme in ["Bearer", "DPoP"] {
        let request = reqwest::Client::new().post(&server.url).header("authorization", format!("{scheme} {token}"));
        let response = request.header("content-type", "application/json").body("{}").send().await;
        assert_eq!(response.expect("there is a response").status(), 401, "{scheme}");
    }
}

#[tokio::test]
async fn proves_possession_of_a_key() {
    let _alone = ALONE.lock().await;
    let provider = Program::provider(&["--lifetime", &LIFETIME.to_string()]).await;
    let protect = with_jwts(&provider.url);
    let server = OurServer::start(&provider.url, |resource| protect(resource).require_dpop()).await;
    prove_possession(&provider, &server, Mode::Modern).await;
}

#[tokio::test]
async fn proves_possession_of_a_key_with_nonces() {
    let _alone = ALONE.lock().await;
    let provider = Program::provider(&["--dpop-nonce", "--lifetime", &LIFETIME.to_string()]).await;
    let protect = with_jwts(&provider.url);
    let server = OurServer::start(&provider.url, |resource| protect(resource).require_dpop().dpop_nonces()).await;
    prove_possession(&provider, &server, Mode::Legacy).await;
    assert!(!provider.events("refused authorization_code use_dpop_nonce").await.is_empty());
}

#[tokio::test]
async fn machines_log_in_with_a_secret_or_a_key() {
    let key = SigningKey::generate().expect("there is randomness");
    let public = serde_json::to_string(key.public_jwk()).expect("keys are JSON");
    let provider = Program::provider(&["--lifetime", "3", "--machine-key", &public]).await;
    let server = OurServer::start(&provider.url, with_jwts(&provider.url)).await;
    let machine = PreRegistered::new("machine").client_secret("the secret: of a machine");
    let with_key = PreRegistered::new("machine-with-key").authentication(ClientAuthentication::PrivateKeyJwt);
    for (name, client, key) in [("machine", machine, None), ("machine-with-key", with_key, Some(key))] {
        let builder = OAuth::builder(&*server.url).client_credentials().client(client.issuer(&*provider.url));
        let builder = match key {
            Some(key) => builder.client_key(key),
            None => builder,
        };
        let oauth = build(builder);
        let client = connect(&server.url, &oauth, Mode::Auto).await.expect("the login succeeds");
        assert_eq!(call(&client, "whoami").await, format!("{name} {READ}"));
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(call(&client, "whoami").await, format!("{name} {READ}"), "there is a new token");
    }
}

/// A token for another resource of the same issuer is of no use here.
// covers: AU-5
#[tokio::test]
async fn tokens_of_another_audience_are_refused() {
    let provider = Program::provider(&[]).await;
    let ours = OurServer::start(&provider.url, with_jwts(&provider.url)).await;
    let other = OurServer::start(&provider.url, with_jwts(&provider.url)).await;
    let store = WatchedStore::default();
    let machine = PreRegistered::new("machine").client_secret("the secret: of a machine");
    let oauth = build(OAuth::builder(&*other.url).client_credentials().client(machine).store(store.clone()));
    let client = connect(&other.url, &oauth, Mode::Auto).await.expect("the login succeeds");
    assert_eq!(call(&client, "whoami").await, format!("machine {READ}"));
    let [token] = &*store.values("access_token") else { panic!("there is one access token") };
    let transport = HttpTransport::new(&ours.url).expect("it is valid").bearer(token).expect("it is a token");
    let error = Client::builder("thief", "1.0").connect(transport).await.expect_err("the token is for the other");
    assert!(error.to_string().contains("401"), "{error}");
}
