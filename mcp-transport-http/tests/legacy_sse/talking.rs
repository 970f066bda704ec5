//! What is said, and where.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use http::request::Parts;
use http::uri::PathAndQuery;
use mcp_server::{NoArguments, Principal, RequestContext, tool};
use mcp_testkit::envelope::request;
use mcp_testkit::envelope::{error_code, tool_text};
use mcp_transport_http::{HttpOptions, Refusal, ValidUntil};
use serde_json::json;
use tokio::time::Instant;

use crate::client::{Client, both, call, get, message_of, send, sse};
use crate::demo::{Demo, server};
use crate::raw_http::{MODERN, Post};

/// The first event names the address with the session, POSTs are answered with nothing, and what there is to say comes
/// on the stream.
// covers: B-14, B-106, S4.111, S4.112
#[tokio::test]
async fn answers_come_on_the_stream() {
    let sse = sse(&Demo::default());
    let reply = send(get(), &sse).await;
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    assert_eq!(reply.header("cache-control"), Some("no-cache"));
    let mut client = Client::open(&sse).await;
    let id = client.endpoint.strip_prefix("/message?sessionId=").expect("the session is in the query");
    assert!(id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    client.shake_hands("2024-11-05").await;
    client.tell(call(1, "hello")).await;
    assert_eq!(tool_text(&client.message().await), "hello");
    client.tell(request("p", "ping", json!({}))).await;
    assert_eq!(client.message().await, json!({ "jsonrpc": "2.0", "id": "p", "result": {} }));
    let mut report = call(2, "report");
    report["params"]["_meta"] = json!({ "progressToken": "t" });
    client.tell(report).await;
    for progress in [1, 2] {
        assert_eq!(client.message().await["params"]["progress"], progress);
    }
    assert_eq!(tool_text(&client.message().await), "reported");
    client.works().await;
}

/// It is a session whatever the legacy revision, in which nothing comes before the handshake and the client can be
/// asked.
// covers: S4.109
#[tokio::test]
async fn the_session_is_a_real_one() {
    let sse = sse(&Demo::default());
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::open(&sse).await;
        client.tell(call(0, "hello")).await;
        assert_eq!(client.message().await["error"]["code"], -32600, "{version}");
        client.shake_hands(version).await;
        client.tell(call(1, "revision")).await;
        assert_eq!(tool_text(&client.message().await), version);
    }
    let mut client = Client::open(&sse).await;
    client.shake_hands("2025-06-18").await;
    client.tell(call(1, "ask")).await;
    let asked = client.message().await;
    assert_eq!(asked["method"], "elicitation/create");
    let answer = json!({ "action": "accept", "content": { "sure": true } });
    client.tell(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer })).await;
    assert_eq!(tool_text(&client.message().await), "true");
}

/// The same handshake again, as from a gateway with several clients, gets the same response and changes nothing; a
/// different one is refused.
// covers: INT-1, S0.14
#[tokio::test]
async fn int_1_the_same_handshake_again_changes_nothing() {
    let sse = sse(&Demo::default());
    let mut client = Client::open(&sse).await;
    client.shake_hands("2025-06-18").await;
    client.shake_hands("2025-06-18").await;
    let other =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    client.tell(request(1, "initialize", other)).await;
    let refused = client.message().await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    client.tell(call(2, "revision")).await;
    assert_eq!(tool_text(&client.message().await), "2025-06-18");
}

/// What nobody asked for comes on the stream, too.
// covers: S4.111
#[tokio::test]
async fn changes_are_pushed() {
    let server = server(|builder| builder.tool(tool("hello", async |_, _: NoArguments| "hello")));
    let (_service, sse) = both(server.clone(), HttpOptions::default());
    let mut client = Client::ready(&sse).await;
    client.works().await;
    server.update(|registry| registry.add_tool(tool("more", async |_, _: NoArguments| "more"))).expect("a change");
    assert_eq!(client.message().await["method"], "notifications/tools/list_changed");
}

/// A modern request belongs to the other endpoint, and is told which versions a handshake can be for.
// covers: S4.109
#[tokio::test]
async fn modern_requests_are_turned_away() {
    let sse = sse(&Demo::default());
    let mut client = Client::ready(&sse).await;
    let refused = send(Post::tool("hello", json!({})).uri(&client.endpoint), &sse).await.json(400).await;
    assert_eq!((error_code(&refused), &refused["id"]), (-32022, &json!(1)));
    assert_eq!(refused["error"]["data"]["requested"], MODERN);
    assert_eq!(refused["error"]["data"]["supported"], json!(["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]));
    client.works().await;
}

/// Where the stream is decides where messages go, and headers do not.
// covers: S4.111
#[tokio::test]
async fn nothing_is_reflected() {
    let sse = sse(&Demo::default());
    let elsewhere = get().uri("/old/sse?x=1").header("x-forwarded-host", "evil").header("x-forwarded-prefix", "/evil");
    let first = send(elsewhere, &sse).await.block().await.expect("an event");
    assert!(first.starts_with("event: endpoint\ndata: /old/message?sessionId="), "{first}");
    let told = sse.message_path(PathAndQuery::from_static("/api/say"));
    let first = send(get(), &told).await.block().await.expect("an event");
    assert!(first.starts_with("event: endpoint\ndata: /api/say?sessionId="), "{first}");
}

/// The hook runs for the stream alone, and may refuse it; handlers see the POST, and who sent it.
// covers: S4.114
#[tokio::test]
async fn the_hook_runs_with_the_stream() {
    let asked = Arc::new(AtomicUsize::new(0));
    let look = tool("look", async |ctx: RequestContext, _: NoArguments| {
        let parts = ctx.extension::<Parts>().expect("the request");
        format!("{} {}", parts.method, ctx.principal().map_or("nobody", |principal| &*principal.subject))
    });
    let (chosen, counter) = (server(|builder| builder.tool(look)), Arc::clone(&asked));
    let options = HttpOptions::default().select_server(move |parts: Arc<Parts>| {
        counter.fetch_add(1, Ordering::SeqCst);
        let is_refused = parts.headers.contains_key("x-refused");
        let chosen = chosen.clone();
        async move {
            tokio::task::yield_now().await;
            if is_refused { Err(Refusal::new(StatusCode::UNAUTHORIZED, "a token is needed")) } else { Ok(chosen) }
        }
    });
    let (_service, sse) = both(Demo::default().server(), options);
    send(get().header("x-refused", "1"), &sse).await.json(401).await;
    assert_eq!((asked.load(Ordering::SeqCst), sse.streams()), (1, 0));
    let mut client = Client::open_as(&sse, Some(&Principal::new(None, "ann"))).await;
    client.shake_hands("2024-11-05").await;
    client.tell(call(1, "look")).await;
    assert_eq!(tool_text(&client.message().await), "POST ann");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

/// A silent stream gets comments, and lasts as long as the client keeps it.
// covers: H-21, S4.113
#[tokio::test(start_paused = true)]
async fn the_stream_lasts() {
    let sse = sse(&Demo::default());
    let mut client = Client::ready(&sse).await;
    for _ in 0..1000 {
        assert_eq!(client.stream.block().await.as_deref(), Some(":"));
    }
    client.tell(call(1, "hello")).await;
    assert_eq!(tool_text(&client.message().await), "hello");
}

/// A question that nobody answers is given up, although nothing comes from the client.
// covers: S4.109
#[tokio::test(start_paused = true)]
async fn questions_of_streams_have_an_end() {
    let sse = sse(&Demo::default());
    let mut client = Client::open(&sse).await;
    client.shake_hands("2025-06-18").await;
    client.tell(call(1, "ask")).await;
    assert_eq!(client.message().await["method"], "elicitation/create");
    for _ in 0..100 {
        let block = client.stream.block().await.expect("an event");
        if block != ":" && message_of(&block)["id"] == 1 {
            return;
        }
    }
    panic!("the handler still waits");
}

/// A stream ends when its client's permission does.
// covers: RB-63
#[tokio::test(start_paused = true)]
async fn a_stream_may_expire() {
    let sse = sse(&Demo::default());
    let begin = Instant::now();
    let valid = ValidUntil((begin + Duration::from_secs(5)).into_std());
    let mut reply = send(get().extension(valid), &sse).await;
    reply.block().await.expect("the endpoint");
    assert_eq!(reply.block().await, None);
    assert_eq!((begin.elapsed().as_secs(), sse.streams()), (5, 0));
}

/// Nothing is lost or mixed up when many talk at the same time, on many threads.
// covers: S4.111
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_talk_at_the_same_time() {
    const CALLS: u64 = 100;
    let (_service, sse) = both(Demo::default().server(), HttpOptions::default().max_in_flight(16 * CALLS as usize));
    let clients = (0..16_u64).map(|number| {
        let sse = sse.clone();
        tokio::spawn(async move {
            let mut client = Client::ready(&sse).await;
            let posts: Vec<Post> = (0..CALLS).map(|id| client.post(call(number * CALLS + id, "hello"))).collect();
            let writing = tokio::spawn(async move {
                for post in posts {
                    assert_eq!(send(post, &sse).await.status, 202);
                }
            });
            let mut ids = Vec::new();
            for _ in 0..CALLS {
                let answer = client.message().await;
                assert_eq!(tool_text(&answer), "hello");
                ids.push(answer["id"].as_u64().expect("a number"));
            }
            writing.await.expect("all are accepted");
            ids.sort_unstable();
            assert!(ids.into_iter().eq(number * CALLS..(number + 1) * CALLS));
        })
    });
    for client in clients.collect::<Vec<_>>() {
        tokio::time::timeout(Duration::from_secs(20), client).await.expect("no more waiting").expect("a client");
    }
    assert_eq!(sse.streams(), 0);
}
