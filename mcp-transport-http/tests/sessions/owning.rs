//! Whose a session is, and which server it is with.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::request::Parts;
use http::{Method as Verb, StatusCode};
use mcp_server::{Limits, NoArguments, Principal, RequestContext, Server, tool};
use mcp_session::{SessionError, SessionOptions, WrongOwnerPolicy};
use mcp_testkit::envelope::tool_text;
use mcp_transport_http::{HttpService, Refusal};
use serde_json::json;

use crate::demo::server;
use crate::raw_http::{LEGACY, Post};
use crate::session_client::{Client, Events, NEWEST, Shop, initialize, metrics, stateful, with};

fn ann() -> Principal {
    Principal::new(Some("https://id.example.com"), "ann")
}

/// Others than ann: somebody else, somebody of the same name elsewhere, and somebody whom nobody vouches for.
fn others() -> [Principal; 3] {
    [
        Principal::new(Some("https://id.example.com"), "bob"),
        Principal::new(Some("https://other.example.com"), "ann"),
        Principal::new(None, "ann"),
    ]
}

/// All that a client can ask for, in the name of somebody.
fn all(client: &Client, principal: Option<Principal>) -> Vec<Post> {
    let bare = |verb: Verb| Post::text("").verb(verb).without("content-type").header("accept", "text/event-stream");
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    let call = Post::legacy(None, "tools/call", json!({ "name": "hello" }));
    let all = [call, Post::message(notification), Post::message(response), bare(Verb::GET), bare(Verb::DELETE)];
    let own = |post: Post| {
        let post = post.header("mcp-session-id", &client.id);
        principal.iter().fold(post, |post, principal| post.extension(principal.clone()))
    };
    all.into_iter().map(own).collect()
}

/// A session is of whoever began it, and of nobody else who knows its name.
// covers: S4.69..S4.71, B-111, B-112, RB-64
#[tokio::test]
async fn a_session_has_an_owner() {
    let service = Shop::default().service();
    for version in LEGACY {
        let client = Client::open_as(&service, version, &ann()).await;
        for other in others().map(Some).into_iter().chain([None]) {
            for post in all(&client, other.clone()) {
                let answer = post.json(&service, 403).await;
                assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("another principal")));
            }
        }
        // A new token, for which the same one stands.
        for (post, status) in all(&client, Some(ann())).into_iter().zip([200, 202, 202, 200, 204]) {
            assert_eq!(post.to(&service).await.status, status);
        }
    }
    assert_eq!(metrics(&service).refused(SessionError::WrongOwner), 4 * 4 * 5);
}

/// Whoever asks for the session of somebody else need not be told that there is one.
// covers: S4.71, B-112
#[tokio::test]
async fn sessions_may_be_hidden() {
    let options = SessionOptions::default().wrong_owner(WrongOwnerPolicy::Hidden);
    let service = with(Shop::default().server(), options);
    let client = Client::open_as(&service, NEWEST, &ann()).await;
    let unknown = client.tool("hello").header("mcp-session-id", &"0".repeat(64)).json(&service, 404).await;
    for other in others().map(Some).into_iter().chain([None]) {
        for (number, post) in all(&client, other).into_iter().enumerate() {
            let answer = post.json(&service, 404).await;
            assert!(number > 0 || answer == unknown, "they look the same");
        }
    }
    assert_eq!(client.call("hello").await, "hello");
    assert_eq!(metrics(&service).refused(SessionError::WrongOwner), 20, "it is counted as what it was");
}

/// Without a principal a session is of whoever knows its name.
// covers: S4.72
#[tokio::test]
async fn a_session_may_have_no_owner() {
    let service = Shop::default().service();
    let client = Client::open(&service, NEWEST).await;
    for principal in others().map(Some).into_iter().chain([None]) {
        let post = all(&client, principal).swap_remove(0);
        assert_eq!(tool_text(&post.json(&service, 200).await), "hello");
    }
}

/// Handlers see who asks, in each request.
// covers: S4.69, RB-64
#[tokio::test]
async fn handlers_see_the_owner() {
    let service = HttpService::with_options(
        server(|builder| {
            builder.tool(tool("who", async |ctx: RequestContext, _: NoArguments| format!("{:?}", ctx.principal())))
        }),
        stateful(),
    );
    let client = Client::open_as(&service, NEWEST, &ann()).await;
    assert_eq!(client.call("who").await, format!("{:?}", Some(ann())));
    let modern = Post::tool("who", json!({})).header("mcp-session-id", &client.id);
    assert_eq!(tool_text(&modern.json(&service, 200).await), "None");
}

/// Whoever does not own a session does not get its events either, with any id.
// covers: S4.117, RB-12, RB-31, RB-55
#[tokio::test]
async fn events_have_the_same_owner() {
    let shop = Shop::default();
    let service = shop.service();
    let client = Client::open_as(&service, NEWEST, &ann()).await;
    shop.steps.allow(10);
    let events = Events::of(client.tool("step").token().to(&service).await).rest().await;
    let id = events[0].id.clone().expect("an id");
    for other in others().map(Some).into_iter().chain([None]) {
        let get = all(&client, other).swap_remove(3).header("last-event-id", &id);
        get.json(&service, 403).await;
    }
    assert_eq!(client.resume(&id).await.rest().await.len(), events.len() - 1);
}

fn saying(text: &'static str) -> Server {
    server(|builder| builder.tool(tool("say", move |_: RequestContext, _: NoArguments| std::future::ready(text))))
}

/// The hook runs once for a session, which stays with the server that it was given.
// covers: S4.34, S4.63..S4.65
#[tokio::test]
async fn the_hook_runs_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let (counter, old, new) = (Arc::clone(&asked), saying("old"), saying("new"));
    let options = stateful().select_server(move |parts: Arc<Parts>| {
        counter.fetch_add(1, Ordering::SeqCst);
        let server = match parts.headers.get("x-api").map(|value| value.as_bytes()) {
            None => Err(Refusal::new(StatusCode::UNAUTHORIZED, "which one?")),
            Some(b"old") => Ok(old.clone()),
            Some(_) => Ok(new.clone()),
        };
        async move { server }
    });
    let service = HttpService::with_options(saying("default"), options);
    let mut clients = Vec::new();
    for api in ["old", "new"] {
        let post = initialize(NEWEST, json!({})).header("x-api", api);
        clients.push((Client::open_by(&service, NEWEST, post, None).await, api));
    }
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    for (client, api) in &clients {
        assert_eq!(client.call("say").await, *api);
        assert_eq!(client.get().to(&service).await.status, 200);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 2, "nobody asks again");
    // The name of a session opens no way around it.
    let id = &clients[0].0.id;
    let modern = || Post::tool("say", json!({})).header("mcp-session-id", id);
    assert_eq!(modern().to(&service).await.status, 401);
    assert_eq!(tool_text(&modern().header("x-api", "new").json(&service, 200).await), "new");
    let unversioned = modern().header("x-api", "new").without("mcp-protocol-version");
    assert_eq!(unversioned.to(&service).await.status, 400);
    let again = initialize(NEWEST, json!({})).header("mcp-session-id", id).to(&service).await;
    assert!(again.header("mcp-session-id").is_none() && again.json(400).await["error"].is_object());
    assert_eq!(initialize(NEWEST, json!({})).to(&service).await.status, 401);
    assert_eq!(metrics(&service).created, 2);
}

/// A session goes on with its server also where the others speak other revisions.
// covers: S4.64
#[tokio::test]
async fn a_session_knows_its_server() {
    let old = server(|builder| {
        let builder = builder.revisions([mcp_types::Revision::V2025_06_18]);
        builder.tool(tool("say", async |_, _: NoArguments| "old"))
    });
    let new = server(|builder| builder.revisions([mcp_types::Revision::LATEST]).offers_tools());
    let options = stateful().select_server(move |_: Arc<Parts>| std::future::ready(Ok(old.clone())));
    let service = HttpService::with_options(new, options);
    let client = Client::open(&service, "2025-06-18").await;
    assert_eq!(client.call("say").await, "old");
    assert_eq!(client.tool("say").header("mcp-protocol-version", NEWEST).to(&service).await.status, 400);
}

/// What may be sent in a session, its own server says, whatever the others allow.
// covers: S4.64
#[tokio::test]
async fn a_session_has_the_limits_of_its_server() {
    let limited = |depth: usize| {
        let mut limits = Limits::default();
        limits.message = limits.message.max_depth(depth);
        server(|builder| builder.limits(limits).offers_tools())
    };
    for (own, status) in [(20, 200), (4, 400)] {
        let (own, other) = (limited(own), limited(if status == 200 { 4 } else { 20 }));
        let options = stateful().select_server(move |_: Arc<Parts>| std::future::ready(Ok(own.clone())));
        let service = HttpService::with_options(other, options);
        let client = Client::open_by(&service, NEWEST, initialize(NEWEST, json!({})), None).await;
        let deep = client.request("ping", json!({ "a": { "b": { "c": { "d": {} } } } }));
        assert_eq!(deep.to(&service).await.status, status);
    }
}
