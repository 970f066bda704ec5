//! Credentials of each call, for users who share a client.

use futures_util::future::join_all;
use mcp_client::types::SubscriptionFilter;
use mcp_client::{CallExtensions, Change, Client, Error};
use mcp_testkit::envelope::tool_result;
use mcp_transport_http::{AuthorizationError, Authorizer, Challenge, Credential, async_trait};
use serde_json::json;

use crate::scripted::{Reply, Scripted, Seen, answer, event, legacy, legacy_builder, modern, text_of, within};

/// The user of a call.
struct User(&'static str);

/// Sends the name of the user as the token, and `gateway` for requests of none.
struct PerCall;

#[async_trait]
impl Authorizer for PerCall {
    async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
        Ok(Some(Credential::bearer("gateway")?))
    }

    async fn credential_for(&self, call: &CallExtensions) -> Result<Option<Credential>, AuthorizationError> {
        match call.get::<User>() {
            Some(User(name)) => Ok(Some(Credential::bearer(name)?)),
            None => self.credential().await,
        }
    }

    async fn challenged(&self, challenge: &Challenge) -> Result<Option<Credential>, AuthorizationError> {
        let Some(User(name)) = challenge.call.get() else { return Ok(None) };
        let is_first = challenge.refused == Some(Credential::bearer(name)?);
        Ok(Some(Credential::bearer(&format!("new {name}"))?).filter(|_| is_first))
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

/// A modern server with a tool whose parameter is in a header that is different for each user.
fn personal_headers() -> impl FnMut(&Seen) -> Reply + Send {
    modern(|seen| {
        let user = user_of(seen);
        if seen.method() == "tools/list" {
            let property = json!({ "type": "string", "x-mcp-header": user });
            let tool = json!({ "name": "t", "inputSchema": { "type": "object", "properties": { "p": property } } });
            let result = json!({ "tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
            return Reply::json(&answer(seen, &result));
        }
        let params: Vec<_> = seen.headers.keys().filter_map(|name| name.strip_prefix("mcp-param-")).collect();
        if params == [user.as_str()] {
            return Reply::json(&answer(seen, &tool_result(&user)));
        }
        let error = json!({ "code": -32020, "message": "headers" });
        let body = json!({ "jsonrpc": "2.0", "id": seen.body["id"], "error": error }).to_string();
        Reply::new(400, &[("content-type", "application/json")], &body)
    })
}

/// Each call has the headers that the tools of its user ask for, and a list is requested again by the user who needs it.
// covers: GW-6, H-80
#[tokio::test]
async fn gw_6_tool_headers_are_those_of_the_user() {
    let server = Scripted::start(personal_headers()).await;
    let client = server.connect(server.transport().authorizer(PerCall)).await.unwrap();
    let call = || client.call_tool("t").arguments(&json!({ "p": "x" }));
    let requests = || {
        let seen = server.seen().into_iter().skip(1);
        seen.map(|seen| format!("{} {}", user_of(&seen), seen.method().trim_start_matches("tools/")))
            .collect::<Vec<_>>()
    };
    for user in ["ada", "bob"] {
        listed(&client, user).await;
    }
    within(client.tools().all()).await.unwrap();
    for user in ["ada", "bob", "ada"] {
        assert_eq!(text_of(&within(call().extension(User(user))).await.unwrap()), user);
    }
    assert_eq!(text_of(&within(call()).await.unwrap()), "gateway");
    let first = ["ada list", "bob list", "gateway list", "ada call", "bob call", "ada call", "gateway call"];
    assert_eq!(requests(), first);
    // The list of others says nothing about the tools of a new user.
    assert_eq!(text_of(&within(call().extension(User("eve"))).await.unwrap()), "eve");
    assert_eq!(requests()[first.len()..], ["eve call", "eve list", "eve call"]);
}

/// Users whose calls are refused at the same time do not share the list that one of them requests.
// covers: GW-6, H-80
#[tokio::test]
async fn gw_6_tools_are_refreshed_for_each_user() {
    let server = Scripted::start(personal_headers()).await;
    let client = server.connect(server.transport().authorizer(PerCall)).await.unwrap();
    let users = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let calls = users.map(|user| {
        let call = client.call_tool("t").arguments(&json!({ "p": "x" })).extension(User(user));
        async move { text_of(&within(call).await.expect("the headers of the user")) }
    });
    assert_eq!(join_all(calls).await, users);
}

/// A subscription is opened with the credential of its user, and does not end because requests have others.
// covers: GW-6
#[tokio::test]
async fn gw_6_subscriptions_have_their_own_credentials() {
    let server = Scripted::start(modern(|seen| {
        if seen.method() != "subscriptions/listen" {
            return Reply::json(&answer(seen, &tool_result(&user_of(seen))));
        }
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": seen.body["id"] });
        let uri = format!("test://{}", user_of(seen));
        let tell = |method: &str, params: &mut serde_json::Value| {
            params["_meta"] = meta.clone();
            event(&json!({ "jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params }))
        };
        let filter = json!({ "resourceSubscriptions": ["test://"] });
        let acknowledged = tell("subscriptions/acknowledged", &mut json!({ "notifications": filter }));
        let changed = tell("resources/updated", &mut json!({ "uri": uri }));
        Reply::open_events(&format!("{acknowledged}{changed}"))
    }))
    .await;
    let client = server.connect(server.transport().authorizer(PerCall)).await.unwrap();
    let filter = || SubscriptionFilter::default().resource("test://");
    let mut of_ada = within(client.listen(filter()).extension(User("ada"))).await.unwrap();
    let mut of_gateway = within(client.listen(filter())).await.unwrap();
    for user in [None, Some("bob"), None] {
        let mut call = client.call_tool("who");
        if let Some(user) = user {
            call = call.extension(User(user));
        }
        within(call).await.unwrap();
    }
    for (subscription, user) in [(&mut of_ada, "ada"), (&mut of_gateway, "gateway")] {
        let change = within(subscription.next()).await.unwrap().unwrap();
        assert_eq!(change, Change::Resource(format!("test://{user}")));
        let more = tokio::time::timeout(std::time::Duration::from_millis(50), subscription.next()).await;
        assert!(more.is_err(), "it was opened again: {more:?}");
    }
    assert_eq!(server.seen_of("subscriptions/listen").iter().map(user_of).collect::<Vec<_>>(), ["ada", "gateway"]);
}

/// The stream of a legacy session tells the changes of its user only.
// covers: GW-6
#[tokio::test]
async fn gw_6_legacy_subscriptions_are_those_of_the_session() {
    let server = Scripted::start(legacy(|seen| Reply::json(&answer(seen, &json!({}))))).await;
    let client = within(legacy_builder().connect(server.transport().authorizer(PerCall))).await.unwrap();
    let filter = || SubscriptionFilter::default().tools_list_changed(true);
    let refused = within(client.listen(filter()).extension(User("ada"))).await;
    let text = refused.expect_err("it is another user").to_string();
    assert!(text.contains("one client for each user"), "{text}");
    drop(within(client.listen(filter()).extension(7_u8)).await.expect("it is the same user"));
}
