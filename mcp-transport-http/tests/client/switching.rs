//! An authorizer whose user changes while the client lives.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use mcp_client::types::SubscriptionFilter;
use mcp_client::{Client, CloseReason, Error, SavedSession, SessionLossAction, SessionLossReason};
use mcp_testkit::envelope::tool_result;
use mcp_transport_http::{AuthorizationError, Authorizer, Challenge, Credential, HttpTransport, async_trait};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::scripted::{Reply, Scripted, Seen, answer, call, event, legacy, legacy_builder, modern, within};

/// Shows the token of whoever uses the application at the moment.
#[derive(Clone, Default)]
struct Users {
    token: Arc<Mutex<String>>,
    /// Whether all tokens are of one user, who is named.
    is_one: bool,
}

impl Users {
    fn switch_to(&self, token: &str) {
        *self.token.lock().expect("nobody panicked") = token.to_owned();
    }

    fn starting_with(token: &str) -> Self {
        let users = Self::default();
        users.switch_to(token);
        users
    }
}

#[async_trait]
impl Authorizer for Users {
    async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
        let credential = Credential::bearer(&self.token.lock().expect("nobody panicked")).expect("a token");
        Ok(Some(if self.is_one { credential.subject("me") } else { credential }))
    }

    async fn challenged(&self, _: &Challenge) -> Result<Option<Credential>, AuthorizationError> {
        Ok(None)
    }
}

fn user_of(seen: &Seen) -> String {
    seen.header("authorization").unwrap_or("nobody").replace("Bearer ", "")
}

/// A modern server that shows everybody something else, for an hour.
fn personal() -> impl FnMut(&Seen) -> Reply + Send {
    modern(|seen| {
        let user = user_of(seen);
        let mut result = match seen.method() {
            "tools/list" => json!({ "tools": [{ "name": user, "inputSchema": { "type": "object" } }] }),
            "prompts/list" => json!({ "prompts": [{ "name": user }] }),
            "resources/list" => json!({ "resources": [{ "name": user, "uri": "test://a" }] }),
            "resources/templates/list" => {
                json!({ "resourceTemplates": [{ "name": user, "uriTemplate": "test://{a}" }] })
            }
            "resources/read" => json!({ "contents": [{ "uri": "test://a", "text": user }] }),
            _ => tool_result(&user),
        };
        for (name, value) in
            [("resultType", json!("complete")), ("ttlMs", json!(3_600_000)), ("cacheScope", json!("private"))]
        {
            result[name] = value;
        }
        Reply::json(&answer(seen, &result))
    })
}

/// Everything that a client may have in its cache.
async fn shown(client: &Client) -> Vec<String> {
    let read = within(client.read_resource("test://a")).await.expect("it works");
    let text =
        serde_json::to_value(&read).expect("it works")["contents"][0]["text"].as_str().expect("it works").to_owned();
    vec![
        within(client.tools().all()).await.expect("it works")[0].name.clone(),
        within(client.prompts().all()).await.expect("it works")[0].name.clone(),
        within(client.resources().all()).await.expect("it works")[0].name.clone(),
        within(client.resource_templates().all()).await.expect("it works")[0].name.clone(),
        text,
    ]
}

// covers: SEC-8
#[tokio::test]
async fn sec_8_private_results_are_not_served_to_another_user() {
    let server = Scripted::start(personal()).await;
    let users = Users::starting_with("alice");
    let client = server.connect(server.transport().authorizer(users.clone())).await.unwrap();
    for user in ["alice", "bob", "alice"] {
        users.switch_to(user);
        assert_eq!(shown(&client).await, vec![user; 5]);
        let asked = server.seen().len();
        // The first request after the switch is not kept, because it showed that there was one.
        assert_eq!(shown(&client).await, vec![user; 5]);
        assert!(server.seen().len() <= asked + 1);
        let asked = server.seen().len();
        assert_eq!(shown(&client).await, vec![user; 5]);
        assert_eq!(server.seen().len(), asked, "the cache is of no use");
    }
}

/// A call that finds out about another user, and is dropped before it is sent, makes nobody the owner of what others get.
// covers: SEC-8
#[tokio::test]
async fn sec_8_a_dropped_call_does_not_give_results_away() {
    let server = Scripted::start(personal()).await;
    let users = Users::starting_with("alice");
    let client = server.connect(server.transport().authorizer(users.clone())).await.unwrap();
    let listed = async || within(client.tools().all()).await.expect("it works")[0].name.clone();
    for _ in 0..2 {
        assert_eq!(listed().await, "alice");
    }
    users.switch_to("bob");
    let asked = server.seen().len();
    assert!(client.list_tools(None).into_future().now_or_never().is_none());
    users.switch_to("alice");
    assert_eq!(listed().await, "alice");
    assert_eq!(server.seen().len(), asked + 1, "what was dropped was sent");
    users.switch_to("bob");
    assert_eq!(listed().await, "bob");
}

// covers: SEC-8
#[tokio::test]
async fn sec_8_a_new_token_of_the_same_user_keeps_the_cache() {
    let server = Scripted::start(personal()).await;
    let users = Users { is_one: true, ..Users::starting_with("first") };
    let client = server.connect(server.transport().authorizer(users.clone())).await.unwrap();
    assert_eq!(shown(&client).await, vec!["first"; 5]);
    users.switch_to("second");
    assert_eq!(shown(&client).await, vec!["first"; 5]);
    assert_eq!(call(&client).await.unwrap(), "second");
    assert_eq!(shown(&client).await, vec!["first"; 5]);
}

// covers: SEC-8
#[tokio::test]
async fn sec_8_a_subscription_is_opened_again_for_another_user() {
    let server = Scripted::start(modern(|seen| {
        if seen.method() != "subscriptions/listen" {
            return Reply::json(&answer(seen, &tool_result("x")));
        }
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": seen.body["id"] });
        let params = json!({ "_meta": meta, "notifications": { "toolsListChanged": true } });
        let method = "notifications/subscriptions/acknowledged";
        Reply::open_events(&event(&json!({ "jsonrpc": "2.0", "method": method, "params": params })))
    }))
    .await;
    let users = Users::starting_with("alice");
    let client = server.connect(server.transport().authorizer(users.clone())).await.unwrap();
    let mut listener = within(client.listen(SubscriptionFilter::default().tools_list_changed(true))).await.unwrap();
    users.switch_to("bob");
    call(&client).await.unwrap();
    // What happened in the meantime is not known, so it is reported.
    within(listener.next()).await.unwrap().unwrap();
    let listens: Vec<_> = server.seen_of("subscriptions/listen").iter().map(user_of).collect();
    assert_eq!(listens, ["alice", "bob"]);
}

/// A legacy server that says which session a call came in, with a stream if that is wanted.
fn sessions(has_stream: bool) -> impl FnMut(&Seen) -> Reply + Send {
    legacy(move |seen| match seen.verb.as_str() {
        "POST" => Reply::json(&answer(seen, &tool_result(seen.header("mcp-session-id").unwrap_or("none")))),
        "GET" if has_stream => Reply::open_events(": hello\n\n"),
        _ => Reply::status(405),
    })
}

/// Which sessions each user was seen in.
fn seen_in(server: &Scripted) -> Vec<(String, String)> {
    let mut all: Vec<_> = server
        .seen()
        .iter()
        .filter_map(|seen| Some((user_of(seen), seen.header("mcp-session-id")?.to_owned())))
        .collect();
    all.sort();
    all.dedup();
    all
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(user, session)| ((*user).to_owned(), (*session).to_owned())).collect()
}

// covers: SEC-8
#[tokio::test]
async fn sec_8_a_legacy_session_is_not_used_by_another_user() {
    for has_stream in [false, true] {
        let server = Scripted::start(sessions(has_stream)).await;
        let users = Users::starting_with("alice");
        let client = within(legacy_builder().connect(server.transport().authorizer(users.clone()))).await.unwrap();
        assert_eq!(call(&client).await.unwrap(), "s1");
        users.switch_to("bob");
        assert_eq!(call(&client).await.unwrap(), "s2");
        // What is said without an answer is not said in it, either.
        users.switch_to("carol");
        within(client.notify("notifications/x", &json!({}))).await.unwrap();
        server.until(|seen| seen.iter().filter(|seen| seen.method() == "notifications/initialized").count() == 3).await;
        assert_eq!(call(&client).await.unwrap(), "s3");
        users.switch_to("dave");
        within(client.close()).await;
        assert_eq!(seen_in(&server), pairs(&[("alice", "s1"), ("bob", "s2"), ("carol", "s3")]));
    }
}

/// A client that is not to renew its session does not do so for another user, either.
// covers: MIS-12
#[tokio::test]
async fn mis_12_a_switch_of_users_may_be_the_end() {
    let server = Scripted::start(sessions(false)).await;
    let users = Users::starting_with("alice");
    let builder = legacy_builder().on_session_lost(SessionLossAction::Fail);
    let client = within(builder.connect(server.transport().authorizer(users.clone()))).await.unwrap();
    call(&client).await.unwrap();
    users.switch_to("bob");
    let error = call(&client).await.unwrap_err();
    let Error::Closed(CloseReason::SessionLost(loss)) = error else { panic!("{error:?}") };
    assert_eq!(loss.reason, SessionLossReason::CredentialsChanged);
    assert_eq!(seen_in(&server), pairs(&[("alice", "s1")]));
}

// covers: SEC-8
#[tokio::test]
async fn sec_8_a_new_token_of_the_same_user_keeps_the_session() {
    let server = Scripted::start(sessions(false)).await;
    let users = Users { is_one: true, ..Users::starting_with("first") };
    let client = within(legacy_builder().connect(server.transport().authorizer(users.clone()))).await.unwrap();
    users.switch_to("second");
    assert_eq!(call(&client).await.unwrap(), "s1");
}

// covers: SEC-8
#[tokio::test]
async fn sec_8_a_saved_session_is_not_resumed_by_another_user() {
    let server = Scripted::start(sessions(false)).await;
    let bearer = |token: &str| server.transport().end_session_on_close(false).bearer(token).unwrap();
    let client = within(legacy_builder().connect(bearer("alice"))).await.unwrap();
    let saved = serde_json::to_string(&client.save_session().unwrap()).unwrap();
    assert!(!saved.contains("alice"), "the token itself is not kept");
    within(client.close()).await;
    let resumed = |transport: HttpTransport| {
        let session: SavedSession = serde_json::from_str(&saved).unwrap();
        within(legacy_builder().resume_session(session).connect(transport))
    };
    assert_eq!(call(&resumed(bearer("alice")).await.unwrap()).await.unwrap(), "s1");
    assert_eq!(call(&resumed(bearer("bob")).await.unwrap()).await.unwrap(), "s2");
    assert_eq!(call(&resumed(server.transport()).await.unwrap()).await.unwrap(), "s3");
    assert_eq!(seen_in(&server), pairs(&[("alice", "s1"), ("bob", "s2"), ("nobody", "s3")]));
}

/// The address for messages of a server of HTTP+SSE belongs to whoever opened its stream.
// covers: SEC-8
#[tokio::test]
async fn sec_8_an_old_stream_is_not_used_by_another_user() {
    let (url, posts) = old_server().await;
    let users = Users::starting_with("alice");
    let transport = HttpTransport::new(&url).unwrap().authorizer(users.clone());
    let client = within(crate::scripted::builder().connect(transport)).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "alice");
    users.switch_to("bob");
    assert_eq!(call(&client).await.unwrap(), "bob");
    let posts = posts.lock().expect("nobody panicked").clone();
    assert!(posts.iter().all(|(owner, sender)| owner == sender), "{posts:?}");
}

type Posts = Arc<Mutex<Vec<(String, String)>>>;

/// A server of HTTP+SSE whose address for messages names the user; returns who posted to whose.
async fn old_server() -> (String, Posts) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("it works");
    let url = format!("http://{}/sse", listener.local_addr().expect("it works"));
    let posts = Posts::default();
    let (log, streams) = (Arc::clone(&posts), Arc::new(Mutex::new(std::collections::BTreeMap::new())));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (log, streams) = (Arc::clone(&log), Arc::clone(&streams));
            tokio::spawn(async move {
                let mut text = Vec::new();
                let (head, body) = loop {
                    if stream.read_buf(&mut text).await.unwrap_or(0) == 0 {
                        return;
                    }
                    let text = String::from_utf8_lossy(&text).into_owned();
                    if let Some((head, body)) = text.split_once("\r\n\r\n") {
                        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                        if body.len() >= length.map_or(0, |length| length.parse().expect("it works")) {
                            break (head.to_owned(), body.to_owned());
                        }
                    }
                };
                let user = head
                    .lines()
                    .find_map(|line| line.strip_prefix("authorization: Bearer "))
                    .expect("it works")
                    .to_owned();
                if head.starts_with("GET") {
                    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel::<String>();
                    streams.lock().expect("nobody panicked").insert(user.clone(), sender);
                    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                    let endpoint = format!("{head}event: endpoint\ndata: /m?of={user}\n\n");
                    stream.write_all(endpoint.as_bytes()).await.expect("it works");
                    while let Some(said) = receiver.recv().await {
                        if stream.write_all(said.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                    return;
                }
                let Some((_, rest)) = head.split_once("/m?of=") else {
                    let _ =
                        stream.write_all(b"HTTP/1.1 405 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
                    return;
                };
                let owner = rest.split(' ').next().expect("it works").to_owned();
                log.lock().expect("nobody panicked").push((owner.clone(), user));
                let message: serde_json::Value = serde_json::from_str(&body).expect("it works");
                let result = match message["method"].as_str() {
                    Some("initialize") => Some(json!({
                        "protocolVersion": "2024-11-05", "capabilities": {},
                        "serverInfo": { "name": "old", "version": "1" },
                    })),
                    Some("tools/call") => Some(tool_result(&owner)),
                    _ => None,
                };
                if let Some(result) = result {
                    let said = event(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
                    let sender = streams.lock().expect("nobody panicked").get(&owner).cloned();
                    let _ = sender.expect("it works").send(said);
                }
                let _ = stream.write_all(b"HTTP/1.1 202 Fine\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
            });
        }
    });
    (url, posts)
}
