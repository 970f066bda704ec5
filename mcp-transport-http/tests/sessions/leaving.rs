//! What becomes of requests whose client goes away, or does not want them any more.

use std::time::Duration;

use mcp_server::{NoArguments, RequestContext, tool};
use mcp_session::{EndReason, SessionOptions};
use mcp_testkit::Notes;
use mcp_testkit::envelope::{error_code, tool_text};
use mcp_transport_http::{HttpService, ResponseStream};
use serde_json::json;

use crate::demo::server;
use crate::raw_http::{LEGACY, Post};
use crate::session_client::{Client, Events, NEWEST, Shop, metrics, pass, settle, stateful, with};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Whoever stops waiting has not cancelled: the handler finishes, and nothing is left.
// covers: S4.78, S4.96, RB-61, DU-25
#[tokio::test(start_paused = true)]
async fn who_goes_away_has_not_cancelled() {
    for version in LEGACY {
        let shop = Shop::default();
        let service = shop.service();
        let client = Client::open(&service, version).await;
        // Before there is a response, and while it is a stream.
        let pending = client.begin("wait", 1).await;
        let mut stream = Events::of(client.tool("report_and_wait").id(json!(2)).token().to(&service).await);
        stream.message().await;
        drop((pending, stream));
        pass(seconds(60)).await;
        assert_eq!(metrics(&service).active, 1, "it is not idle");
        shop.demo.gate.open();
        settle().await;
        assert_eq!(shop.demo.notes.take(), ["began", "began"], "nobody was dropped");
        let metrics = metrics(&service);
        assert_eq!((metrics.active, metrics.idle), (0, 1), "nobody uses it any more");
        assert_eq!(tool_text(&client.tool("wait").json(&service, 200).await), "waited");
    }
}

/// At the same endpoint, a modern client that goes away has cancelled.
// covers: S4.100, DU-25
#[tokio::test]
async fn modern_clients_cancel_by_leaving() {
    let shop = Shop::default();
    let service = shop.service();
    let client = Client::open(&service, NEWEST).await;
    let legacy = client.begin("wait", 1).await;
    let mut modern = Post::tool("wait", json!({})).header("mcp-session-id", &client.id).send(&service);
    modern.starts().await;
    assert_eq!(shop.demo.notes.take(), ["began", "began"]);
    drop(modern);
    assert_eq!(shop.demo.notes.take(), ["dropped"]);
    drop(legacy);
    settle().await;
    assert_eq!(shop.demo.notes.take(), [""; 0]);
}

/// A client cancels by saying so; then there is no answer, and nothing is left of the request.
// covers: S4.81
#[tokio::test]
async fn a_notification_cancels() {
    for version in LEGACY {
        let shop = Shop::default();
        let service = shop.service();
        let client = Client::open(&service, version).await;
        let mut pending = client.begin("wait", 1).await;
        let mut stream = Events::of(client.tool("report_and_wait").id(json!("2")).token().to(&service).await);
        stream.message().await;
        for unknown in [json!(7), json!("1"), json!(2), json!("")] {
            client.notify("notifications/cancelled", json!({ "requestId": unknown })).await;
        }
        pending.starts().await;
        client.notify("notifications/cancelled", json!({ "requestId": 1, "reason": "enough" })).await;
        client.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
        assert_eq!(shop.demo.notes.take(), ["began", "began", "dropped"]);
        let mut reply = pending.poll().await.expect("an end");
        assert_eq!((reply.status.as_u16(), reply.rest().await.as_str()), (202, ""));
        client.notify("notifications/cancelled", json!({ "requestId": "2" })).await;
        assert_eq!(stream.rest().await, [], "it ends without a result");
        assert_eq!(shop.demo.notes.take(), ["dropped"]);
        assert_eq!(metrics(&service).active, 0);
        assert_eq!(client.tool("hello").json(&service, 200).await["id"], 1, "the id can be used again");
    }
}

/// Nobody cancels what is of another session, or of no session.
// covers: S4.81
#[tokio::test]
async fn others_are_not_cancelled() {
    let shop = Shop::default();
    let service = shop.service();
    let (one, two) = (Client::open(&service, NEWEST).await, Client::open(&service, NEWEST).await);
    let mut pending = one.begin("wait", 1).await;
    let mut modern = Post::tool("wait", json!({})).send(&service);
    modern.starts().await;
    two.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    let stray = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let stray = Post::message(stray).header("mcp-protocol-version", "2026-07-28").header("mcp-method", "x");
    stray.header("mcp-session-id", &one.id).to(&service).await;
    pending.starts().await;
    modern.starts().await;
    assert_eq!(shop.demo.notes.take(), ["began", "began"]);
    shop.demo.gate.open();
    for pending in [pending, modern] {
        assert_eq!(tool_text(&pending.reply().await.json(200).await), "waited");
    }
}

/// Nobody works for ever for a client that does not come back.
// covers: RB-61, S4.96
#[tokio::test(start_paused = true)]
async fn patience_has_an_end() {
    for grace in [1, 60, 3600] {
        let shop = Shop::default();
        let service = HttpService::with_options(shop.server(), stateful().orphaned_request_timeout(seconds(grace)));
        let client = Client::open(&service, NEWEST).await;
        drop(client.begin("wait", 1).await);
        pass(seconds(grace) - Duration::from_millis(500)).await;
        assert_eq!(shop.demo.notes.take(), ["began"]);
        pass(seconds(6)).await;
        assert_eq!(shop.demo.notes.take(), ["dropped"]);
        assert_eq!(metrics(&service).active, 0);
        assert_eq!(client.call("hello").await, "hello", "the session goes on");
    }
}

/// A client that is back in time is waited for again, and then for as long as it stays.
// covers: RB-61
#[tokio::test(start_paused = true)]
async fn who_comes_back_is_waited_for() {
    let shop = Shop::default();
    let service = HttpService::with_options(shop.server(), stateful().orphaned_request_timeout(seconds(60)));
    let client = Client::open(&service, NEWEST).await;
    shop.steps.allow(1);
    let mut stream = Events::of(client.tool("step").token().to(&service).await);
    let id = stream.next().await.and_then(|event| event.id).expect("an id");
    drop(stream);
    for _ in 0..5 {
        pass(seconds(50)).await;
        let mut stream = client.resume(&id).await;
        assert_eq!(stream.message().await["params"]["progress"], 1);
        tokio::select! {
            event = stream.next() => panic!("what is {event:?}?"),
            () = tokio::time::sleep(seconds(100)) => {}
        }
    }
    shop.steps.allow(10);
    assert_eq!(tool_text(client.resume(&id).await.messages().await.last().expect("a result")), "ten steps");
}

/// A request whose client is gone still takes the room that it takes.
// covers: RB-52, S4.97
#[tokio::test(start_paused = true)]
async fn who_goes_away_does_not_make_room() {
    let shop = Shop::default();
    let service =
        HttpService::with_options(shop.server(), stateful().max_in_flight(2).orphaned_request_timeout(seconds(60)));
    let client = Client::open(&service, NEWEST).await;
    for id in 1..=2 {
        drop(client.begin("wait", id).await);
    }
    client.tool("hello").json(&service, 503).await;
    pass(seconds(70)).await;
    assert_eq!(client.call("hello").await, "hello");
    assert_eq!(shop.demo.notes.take(), ["began", "began", "dropped", "dropped"]);
}

/// What others wait for comes through, however much there is to do.
// covers: RB-52, S4.33
#[tokio::test]
async fn answers_take_no_room() {
    let shop = Shop::default();
    let service = HttpService::with_options(shop.server(), stateful().max_in_flight(2));
    let client = Client::open(&service, NEWEST).await;
    let mut asking = Events::of(client.tool("ask").to(&service).await);
    let question = asking.message().await;
    let waiting = client.begin("wait", 2).await;
    client.tool("hello").id(json!(3)).json(&service, 503).await;
    client.answer(&question, json!({ "action": "accept", "content": { "sure": true } })).await;
    assert_eq!(tool_text(&asking.messages().await[0]), "true");
    let another = client.begin("wait", 3).await;
    client.notify("notifications/cancelled", json!({ "requestId": 2 })).await;
    assert_eq!(waiting.reply().await.status, 202);
    shop.demo.gate.open();
    assert_eq!(tool_text(&another.reply().await.json(200).await), "waited");
    assert_eq!(client.call("hello").await, "hello");
}

/// A session that nobody uses ends after a while, and what it held with it.
// covers: S4.35, S4.36, S4.38, S4.42
#[tokio::test(start_paused = true)]
async fn idle_sessions_end() {
    let shop = Shop::default();
    let service = with(shop.server(), SessionOptions::default().idle_timeout(Some(seconds(600))));
    let (client, busy) = (Client::open(&service, NEWEST).await, Client::open(&service, NEWEST).await);
    client.call("leave").await;
    for _ in 0..3 {
        pass(seconds(400)).await;
        busy.call("hello").await;
    }
    assert_eq!(shop.demo.notes.take(), ["closed"]);
    assert_eq!(client.tool("hello").to(&service).await.status, 404);
    let metrics = metrics(&service);
    assert_eq!((metrics.live, metrics.ended(EndReason::Idle)), (1, 1));
}

/// Whoever waits for an answer or listens is not idle, however silent it is.
// covers: S4.37, RB-13, RB-32
#[tokio::test(start_paused = true)]
async fn silence_is_not_idleness() {
    let shop = Shop::default();
    let options = SessionOptions::default().idle_timeout(Some(seconds(60)));
    let service = HttpService::with_options(
        shop.server(),
        stateful().session_options(options).orphaned_request_timeout(seconds(10_000)),
    );
    let [waiting, listening, gone, idle] = [
        Client::open(&service, NEWEST).await,
        Client::open(&service, "2024-11-05").await,
        Client::open(&service, NEWEST).await,
        Client::open(&service, NEWEST).await,
    ];
    let call = tokio::spawn(waiting.tool("wait").send(&service).reply());
    let mut stream = listening.listen().await;
    drop(gone.begin("wait", 1).await);
    pass(seconds(3_600)).await;
    assert_eq!(idle.tool("hello").to(&service).await.status, 404);
    listening.call("tell").await;
    assert_eq!(stream.there().await.0.len(), 2);
    gone.tool("hello").id(json!(2)).json(&service, 200).await;
    shop.demo.gate.open();
    // It became a stream, because it was silent.
    let reply = call.await.expect("an answer");
    assert_eq!(tool_text(&Events::of(reply).messages().await[0]), "waited");
    drop(stream);
    pass(seconds(70)).await;
    assert_eq!(metrics(&service).live, 0, "now they are idle");
}

/// Sessions may last for ever; those that were never used last as long, as some clients take their time.
// covers: MIS-10, S4.39, RB-53
#[tokio::test(start_paused = true)]
async fn mis_10_unused_sessions_last_as_long() {
    let service = with(Shop::default().server(), SessionOptions::default().idle_timeout(None));
    let used = Client::open(&service, NEWEST).await;
    let post = crate::session_client::initialize(NEWEST, json!({}));
    let unused = Client::shake_hands(&service, NEWEST, post, None).await;
    pass(seconds(1_000_000)).await;
    assert_eq!(used.call("hello").await, "hello");
    assert_eq!(unused.call("hello").await, "hello");
    let service = with(Shop::default().server(), SessionOptions::default());
    let post = crate::session_client::initialize(NEWEST, json!({}));
    let unused = Client::shake_hands(&service, NEWEST, post, None).await;
    pass(seconds(7190)).await;
    assert_eq!(metrics(&service).live, 1);
    pass(seconds(20)).await;
    assert_eq!(metrics(&service).ended(EndReason::NeverUsed), 1);
    assert_eq!(unused.tool("hello").to(&service).await.status, 404);
}

/// Beyond a limit the oldest of those that are idle end; active ones never do.
// covers: S4.40..S4.42, RB-15, RB-53
#[tokio::test(start_paused = true)]
async fn there_are_so_many_sessions() {
    let shop = Shop::default();
    let service = with(shop.server(), SessionOptions::default().idle_limit(3));
    let active = Client::open(&service, NEWEST).await;
    let _stream = active.listen().await;
    let mut clients = Vec::new();
    for _ in 0..10 {
        let client = Client::open(&service, NEWEST).await;
        client.call("leave").await;
        clients.push(client);
        pass(seconds(1)).await;
    }
    pass(seconds(70)).await;
    assert_eq!(active.call("hello").await, "hello");
    let statuses = statuses(&clients, &service).await;
    assert_eq!(statuses, [404, 404, 404, 404, 404, 404, 404, 200, 200, 200]);
    assert_eq!(metrics(&service).ended(EndReason::Evicted), 7);
    assert_eq!(shop.demo.notes.take(), ["closed"; 7]);
}

async fn statuses(clients: &[Client], service: &HttpService) -> Vec<u16> {
    let mut statuses = Vec::new();
    for client in clients {
        statuses.push(client.tool("hello").to(service).await.status.as_u16());
    }
    statuses
}

/// One principal cannot take all sessions; its own idle ones make room, its active ones do not.
// covers: RB-15, RB-53, RB-64
#[tokio::test]
async fn one_principal_has_so_many_sessions() {
    let (ann, bob) = (mcp_server::Principal::new(None, "ann"), mcp_server::Principal::new(None, "bob"));
    let service = with(Shop::default().server(), SessionOptions::default().limit_per_principal(2));
    let other = Client::open_as(&service, NEWEST, &bob).await;
    let first = Client::open_as(&service, NEWEST, &ann).await;
    let second = Client::open_as(&service, NEWEST, &ann).await;
    let stream = second.listen().await;
    let third = Client::open_as(&service, NEWEST, &ann).await;
    assert_eq!(first.tool("hello").to(&service).await.status, 404, "it made room");
    let another = third.listen().await;
    let refused = crate::session_client::initialize(NEWEST, json!({})).extension(ann.clone()).to(&service).await;
    assert_eq!((refused.status.as_u16(), refused.header("mcp-session-id")), (429, None));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(other.call("hello").await, "hello");
    assert_eq!(metrics(&service).live, 3);
    drop((stream, another));
    Client::open_as(&service, NEWEST, &ann).await;
}

/// There is room for so many streams, of all and of one.
// covers: RB-15, RB-52
#[tokio::test]
async fn there_are_so_many_streams() {
    let options = stateful().max_listen_streams(2).max_listen_streams_per_principal(1);
    let service = HttpService::with_options(Shop::default().server(), options);
    let ann = mcp_server::Principal::new(None, "ann");
    let (one, two) = (Client::open_as(&service, NEWEST, &ann).await, Client::open_as(&service, NEWEST, &ann).await);
    let (three, four) = (Client::open(&service, NEWEST).await, Client::open(&service, NEWEST).await);
    let stream = one.listen().await;
    assert_eq!(two.get().to(&service).await.status, 429);
    let _other = three.listen().await;
    assert_eq!(four.get().to(&service).await.status, 503);
    drop(stream);
    drop(two.listen().await);
    four.listen().await;
}

/// A stream lasts as long as the permission to listen.
// covers: RB-63
#[tokio::test(start_paused = true)]
async fn permission_to_listen_may_end() {
    let service = Shop::default().service();
    let client = Client::open(&service, NEWEST).await;
    let until = mcp_transport_http::ValidUntil((tokio::time::Instant::now() + seconds(60)).into_std());
    let stream = Events::of(client.get().extension(until).to(&service).await);
    let begin = tokio::time::Instant::now();
    assert_eq!(stream.messages().await.len(), 0);
    assert_eq!(begin.elapsed().as_secs(), 60);
    assert_eq!(client.call("hello").await, "hello");
}

/// With DELETE, what is pending is cancelled, answered, and what was left to be done is done.
// covers: S4.38, S4.42, S4.78, S4.83
#[tokio::test]
async fn the_end_of_a_session_cancels() {
    for version in LEGACY {
        let shop = Shop::default();
        let service = shop.service();
        let client = Client::open(&service, version).await;
        client.call("leave").await;
        let listener = client.listen().await;
        let pending = client.begin("wait", 1).await;
        drop(client.begin("wait", 2).await);
        let mut stream = Events::of(client.tool("report_and_wait").id(json!(3)).token().to(&service).await);
        stream.message().await;
        assert_eq!(client.delete().to(&service).await.status, 204);
        settle().await;
        let mut notes = shop.demo.notes.take();
        notes.sort_unstable();
        assert_eq!(notes, ["began", "began", "began", "closed", "dropped", "dropped", "dropped"]);
        let answer = pending.reply().await.json(200).await;
        assert_eq!((error_code(&answer), &answer["id"]), (-32603, &json!(1)));
        let last = stream.messages().await;
        assert_eq!((last.len(), error_code(&last[0]), &last[0]["id"]), (1, -32603, &json!(3)));
        assert_eq!(listener.messages().await.len(), 0);
        assert_eq!((metrics(&service).live, metrics(&service).active), (0, 0));
    }
}

/// What a handler has spawned hears of the end of the session.
// covers: S4.78, S4.83
#[tokio::test]
async fn what_was_spawned_hears_of_the_end() {
    let notes = Notes::default();
    let handler_notes = notes.clone();
    let server = server(|builder| {
        builder.tool(tool("spawn", move |ctx: RequestContext, _: NoArguments| {
            let guard = handler_notes.on_drop("gone");
            let notes = handler_notes.clone();
            tokio::spawn(async move {
                ctx.cancelled().await;
                notes.add("cancelled");
            });
            async move {
                let _guard = guard;
                std::future::pending::<&str>().await
            }
        }))
    });
    let service = HttpService::with_options(server, stateful());
    let client = Client::open(&service, NEWEST).await;
    drop(client.begin("spawn", 1).await);
    settle().await;
    assert_eq!(notes.take(), [""; 0]);
    client.delete().to(&service).await;
    settle().await;
    let mut all = notes.take();
    all.sort_unstable();
    assert_eq!(all, ["cancelled", "gone"]);
}

/// A handler that lets its client go runs at least until the client was asked to come back, and patience is over.
// covers: MIS-6
#[tokio::test(start_paused = true)]
async fn mis_6_closed_streams_are_waited_for_as_long_as_the_client_was_told() {
    let minutes = |count: u64| seconds(60 * count);
    // What the handler wants, how long it takes, when the client comes back, and whether there is an answer.
    for (retry, work, back, is_there) in [
        (minutes(10), minutes(8), minutes(10), true),
        (minutes(10), minutes(14), minutes(15) - seconds(10), true),
        (minutes(10), minutes(16), minutes(17), false),
        (Duration::MAX, minutes(5), minutes(10), true),
        (Duration::ZERO, minutes(6), minutes(7), false),
    ] {
        let notes = Notes::default();
        let noting = notes.clone();
        let server = server(|builder| {
            builder.tool(tool("work", move |ctx: RequestContext, _: NoArguments| {
                let dropped = noting.on_drop("dropped");
                async move {
                    if let Some(stream) = ctx.extension::<ResponseStream>() {
                        stream.close(retry);
                    }
                    tokio::time::sleep(work).await;
                    std::mem::forget(dropped);
                    "worked"
                }
            }))
        });
        let service = HttpService::with_options(server, stateful().orphaned_request_timeout(minutes(5)));
        let client = Client::open(&service, NEWEST).await;
        let events = Events::of(client.tool("work").to(&service).await).rest().await;
        let id = events.iter().find_map(|event| event.id.clone()).expect("an id");
        let told = retry.min(ResponseStream::MAX_RETRY);
        assert_eq!(events.last().and_then(|event| event.retry).map(Duration::from_millis), Some(told));
        pass(back).await;
        assert_eq!(notes.take().is_empty(), is_there, "{retry:?} {work:?}");
        let answers = client.resume(&id).await.messages().await;
        assert_eq!(answers.iter().map(tool_text).collect::<Vec<_>>(), if is_there { vec!["worked"] } else { vec![] });
    }
}
