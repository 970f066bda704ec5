//! Credentials of each call, for users who share a client.

use mcp_client::{CallExtensions, Client, Error};
use mcp_testkit::envelope::tool_result;
use mcp_transport_http::{Authorizer, Challenge, Credential, async_trait};
use serde_json::json;

use crate::scripted::{Reply, Scripted, Seen, answer, legacy, legacy_builder, modern, text_of, within};

/// The user of a call.
struct User(&'static str);

/// Sends the name of the user as the token, and `gateway` for requests of none.
struct PerCall;

#[async_trait]
impl Authorizer for PerCall {
    async fn credential(&self) -> Option<Credential> {
        Credential::bearer("gateway").ok()
    }

    async fn credential_for(&self, call: &CallExtensions) -> Option<Credential> {
        match call.get::<User>() {
            Some(User(name)) => Credential::bearer(name).ok(),
            None => self.credential().await,
        }
    }

    async fn challenged(&self, challenge: &Challenge) -> Option<Credential> {
        let User(name) = challenge.call.get()?;
        (challenge.refused == Credential::bearer(name).ok()).then(|| Credential::bearer(&format!("new {name}")).ok())?
    }
}

fn user_of(seen: &Seen) -> String {
    seen.header("authorization").unwrap_or("none").replace("Bearer ", "")
}

/// A modern server whose results contain the user, privately for an hour.
fn personal() -> impl FnMut(&Seen) -> Reply + Send {
    modern(|seen| {
        let user = user_of(seen);
        let result = match seen.method() {
            "tools/list" => json!({
                "tools": [{ "name": user, "inputSchema": { "type": "object" } }],
                "resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "private",
            }),
            _ => tool_result(&user),
        };
        Reply::json(&answer(seen, &result))
    })
}

async fn listed(client: &Client, user: &'static str) -> String {
    within(client.tools().extension(User(user)).all()).await.expect("a list")[0].name.clone()
}

/// Each call is sent with the credential of its user, and other requests with that of the client.
// covers: GW-6
#[tokio::test]
async fn gw_6_calls_have_their_own_credentials() {
    let server = Scripted::start(personal()).await;
    let client = server.connect(server.transport().authorizer(PerCall)).await.unwrap();
    let call = |user: Option<&'static str>| {
        let call = client.call_tool("who");
        let call = match user {
            Some(user) => call.extension(User(user)),
            None => call,
        };
        async move { text_of(&within(call).await.expect("a result")) }
    };
    assert_eq!(user_of(&server.seen()[0]), "gateway");
    let called = tokio::join!(call(Some("ada")), call(Some("bob")), call(None), call(Some("ada")));
    assert_eq!(called, ("ada".to_owned(), "bob".to_owned(), "gateway".to_owned(), "ada".to_owned()));
}

/// What is private is cached for its user, and served to no other one.
// covers: GW-6, SEC-8
#[tokio::test]
async fn gw_6_private_results_are_cached_for_each_user() {
    let server = Scripted::start(personal()).await;
    let client = server.connect(server.transport().authorizer(PerCall)).await.unwrap();
    for user in ["ada", "bob"] {
        assert_eq!(listed(&client, user).await, user);
    }
    let own = async || within(client.tools().all()).await.expect("a list")[0].name.clone();
    assert_eq!(own().await, "gateway");
    let sent = server.seen().len();
    for user in ["bob", "ada", "bob"] {
        assert_eq!(listed(&client, user).await, user);
        assert_eq!(own().await, "gateway");
    }
    assert_eq!(server.seen().len(), sent, "the cache is of no use");
    assert_eq!(listed(&client, "eve").await, "eve");
}

/// A challenge names the call, so that its own credential is replaced.
// covers: GW-6
#[tokio::test]
async fn gw_6_challenges_name_the_call() {
    let server = Scripted::start(modern(|seen| match user_of(seen) {
        user if seen.method() == "tools/call" && !user.starts_with("new ") => Reply::status(401),
        user => Reply::json(&answer(seen, &tool_result(&user))),
    }))
    .await;
    let client = server.connect(server.transport().authorizer(PerCall)).await.unwrap();
    let result = within(client.call_tool("who").extension(User("ada"))).await.expect("a result");
    assert_eq!(text_of(&result), "new ada");
    let refused = within(client.call_tool("who")).await;
    assert!(matches!(refused, Err(Error::Status { status: 401, .. })), "{refused:?}");
}

/// The session of a legacy server is not used by another user, and is not lost because of one.
// covers: GW-6
#[tokio::test]
async fn gw_6_legacy_sessions_have_one_user() {
    let server = Scripted::start(legacy(|seen| Reply::json(&answer(seen, &tool_result(&user_of(seen)))))).await;
    let transport = server.transport().authorizer(PerCall);
    let client = within(legacy_builder().connect(transport)).await.unwrap();
    let refused = within(client.call_tool("who").extension(User("ada"))).await;
    let text = refused.expect_err("it is not sent").to_string();
    assert!(text.contains("one client for each user"), "{text}");
    // A value that does not change the credential is no obstacle.
    let result = within(client.call_tool("who").extension(7_u8)).await.expect("a result");
    assert_eq!(text_of(&result), "gateway");
    assert_eq!(server.seen_of("initialize").len(), 1);
}
