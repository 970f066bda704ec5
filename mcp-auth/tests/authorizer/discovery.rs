//! How logins find the authorization server.

use mcp_auth::authorizer::OAuth;
use mcp_auth::client::PreRegistered;
use mcp_auth::store::MemoryStore;

use crate::support::{Agreeing, MetadataPlace, Servers, saved_resource};
use crate::{connect, oauth, ping};

// covers: AU-20, AU-21
#[tokio::test]
async fn a_login_before_any_challenge_finds_what_only_a_challenge_names() {
    let servers = Servers::start().await;
    servers.ledger().metadata = MetadataPlace::Named;
    servers.ledger().resource = Some(servers.url.clone());
    let machine = PreRegistered::new("machine").client_secret("machine-hunter2");
    let logins = [
        |servers: &Servers, _| oauth(servers).prompt(Agreeing::default()),
        |servers: &Servers, machine| oauth(servers).client(machine).client_credentials(),
    ];
    for login in logins {
        let store = MemoryStore::new();
        let oauth = login(&servers, machine.clone()).store(store.clone()).build().unwrap();
        oauth.login().await.unwrap();
        assert_eq!(saved_resource(&store, &servers).await.as_ref(), Some(&servers.url));
        assert_eq!(ping(&connect(&servers, &oauth).await.unwrap()).await.unwrap(), "pong");
    }
    // Without a challenge there are the well-known places.
    servers.ledger().metadata = MetadataPlace::WellKnown;
    let (url, requests) = (format!("{}/elsewhere", servers.url), servers.ledger().token_requests);
    OAuth::builder(url).prompt(Agreeing::default()).build().unwrap().login().await.unwrap();
    assert_eq!(servers.ledger().token_requests, requests + 1);
}

#[tokio::test]
async fn a_redirect_of_metadata_to_another_origin_is_not_followed_and_the_next_place_is_tried() {
    let (servers, elsewhere) = (Servers::start().await, Servers::start().await);
    servers.ledger().metadata = MetadataPlace::Redirected(elsewhere.url.clone());
    let oauth = oauth(&servers).prompt(Agreeing::default()).build().unwrap();
    assert_eq!(ping(&connect(&servers, &oauth).await.unwrap()).await.unwrap(), "pong");
    let followed = elsewhere.ledger().metadata_requests;
    assert_eq!((servers.ledger().metadata_requests, followed), (1, 0));
}
