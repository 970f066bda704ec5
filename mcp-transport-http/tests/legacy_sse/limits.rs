//! Too much to do: no POST waits for its answer, so something else has to hold clients back.

use mcp_server::Principal;
use mcp_testkit::envelope::{error_code, tool_text};
use mcp_transport_http::HttpOptions;
use serde_json::{Value, json};

use crate::client::{Client, both, call, get, message_of, send, sse};
use crate::demo::Demo;

/// Requests take room until their answer is there, although their POSTs are over.
// covers: S4.94, RB-52
#[tokio::test]
async fn handlers_are_bounded() {
    let demo = Demo::default();
    let (service, sse) = both(demo.server(), HttpOptions::default().max_in_flight(3));
    let (mut one, mut two) = (Client::ready(&sse).await, Client::ready(&sse).await);
    for id in 0..3 {
        one.tell(call(id, "wait")).await;
    }
    one.works().await;
    for client in [&one, &two] {
        let reply = client.send(call("me", "hello")).await;
        assert_eq!(reply.header("retry-after"), Some("1"));
        let answer = reply.json(503).await;
        assert_eq!((error_code(&answer), &answer["id"]), (-32603, &json!("me")));
    }
    crate::raw_http::Post::tool("hello", json!({})).json(&service, 503).await;
    demo.gate.open();
    for _ in 0..3 {
        assert_eq!(tool_text(&one.message().await), "waited");
    }
    two.tell(call(1, "hello")).await;
    assert_eq!(tool_text(&two.message().await), "hello");
    crate::raw_http::Post::tool("hello", json!({})).json(&service, 200).await;
}

/// One user cannot take everything, and what is cancelled gives its room back.
// covers: S4.94, RB-52
#[tokio::test]
async fn one_user_is_bounded() {
    let demo = Demo::default();
    let (_service, sse) = both(demo.server(), HttpOptions::default().max_in_flight_per_principal(1));
    let (ann, bob) = (Principal::new(None, "ann"), Principal::new(None, "bob"));
    let mut hers = Client::open_as(&sse, Some(&ann)).await;
    let mut his = Client::open_as(&sse, Some(&bob)).await;
    hers.shake_hands("2024-11-05").await;
    his.shake_hands("2024-11-05").await;
    hers.tell(call(1, "wait")).await;
    hers.works().await;
    hers.send(call(2, "hello")).await.json(429).await;
    his.tell(call(1, "hello")).await;
    assert_eq!(tool_text(&his.message().await), "hello");
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    hers.tell(cancelled).await;
    hers.works().await;
    assert_eq!(demo.notes.take(), ["began", "dropped"]);
    hers.tell(call(2, "hello")).await;
    assert_eq!(tool_text(&hers.message().await), "hello");
}

/// A handler that asks something gets its answer, however much is at work.
// covers: S4.94
#[tokio::test]
async fn answers_need_no_room() {
    let (_service, sse) = both(Demo::default().server(), HttpOptions::default().max_in_flight(1));
    let mut client = Client::open(&sse).await;
    client.shake_hands("2025-06-18").await;
    client.tell(call(1, "ask")).await;
    let id = client.message().await["id"].clone();
    client.send(call(2, "hello")).await.json(503).await;
    let answer = json!({ "action": "accept", "content": { "sure": false } });
    client.tell(json!({ "jsonrpc": "2.0", "id": id, "result": answer })).await;
    assert_eq!(tool_text(&client.message().await), "false");
}

/// One stream has as many requests at work as the server lets a connection have; more are refused on the stream.
// covers: S4.94
#[tokio::test]
async fn a_stream_is_bounded() {
    let demo = Demo::default();
    let sse = sse(&demo);
    let mut client = Client::ready(&sse).await;
    for id in 0..300 {
        client.tell(call(id, "wait")).await;
        if let std::task::Poll::Ready(Some(frame)) = client.stream.poll_frame().await {
            let refused = message_of(frame.trim_end());
            assert!(id >= 164 && refused["id"] == id && refused["error"].is_object(), "{refused}");
        } else {
            assert!(id < 164, "{id}");
        }
    }
    assert_eq!(demo.notes.take().len(), 100);
    demo.gate.open();
    for _ in 0..164 {
        assert_eq!(tool_text(&client.message().await), "waited");
    }
    client.works().await;
}

/// Large requests are not collected without end, whatever their number.
// covers: S4.94, RB-52
#[tokio::test]
async fn bytes_are_bounded() {
    let demo = Demo::default();
    let sse = sse(&demo);
    let mut client = Client::ready(&sse).await;
    let large = |id: u32| {
        let mut large = call(id, "wait");
        large["params"]["x"] = json!("y".repeat(3_900_000));
        large
    };
    for id in 0..4 {
        client.tell(large(id)).await;
    }
    let reply = client.send(large(4)).await;
    assert_eq!(reply.header("retry-after"), Some("1"));
    reply.json(503).await;
    client.tell(call(5, "hello")).await;
    assert_eq!(tool_text(&client.message().await), "hello");
    demo.gate.open();
    assert_eq!(tool_text(&client.message().await), "waited");
    client.tell(large(6)).await;
    for _ in 0..4 {
        assert_eq!(tool_text(&client.message().await), "waited");
    }
    client.works().await;
}

/// Streams are counted, with all others that stay open, in total and for each user.
// covers: S4.113, RB-52
#[tokio::test]
async fn streams_are_bounded() {
    let options = HttpOptions::default().max_listen_streams(2).max_listen_streams_per_principal(1);
    let (_service, sse) = both(Demo::default().server(), options);
    let ann = Principal::new(None, "ann");
    let first = Client::open_as(&sse, Some(&ann)).await;
    let refused = send(get().extension(ann.clone()), &sse).await;
    assert_eq!(refused.header("retry-after"), Some("1"));
    refused.json(429).await;
    let second = Client::open(&sse).await;
    send(get(), &sse).await.json(503).await;
    drop(first);
    let third = Client::open_as(&sse, Some(&ann)).await;
    assert_eq!(sse.streams(), 2);
    drop((second, third));
    assert_eq!(sse.streams(), 0);
}

/// Whoever does not read cannot make the server keep more than it wants to, and can go on when it reads.
// covers: S4.94, L-18
#[tokio::test]
async fn who_does_not_read_is_held_back() {
    let sse = sse(&Demo::default());
    let mut client = Client::ready(&sse).await;
    let mut other = Client::ready(&sse).await;
    let (mut taken, mut refused) = (0, 0);
    while refused < 3 && taken < 5000 {
        // Nobody polls the stream, as if its socket were full.
        let reply = client.send(call(taken, "hello")).await;
        match reply.status.as_u16() {
            202 => taken += 1,
            503 => {
                assert_eq!(reply.header("retry-after"), Some("1"));
                refused += 1;
            }
            status => panic!("{status}"),
        }
    }
    assert!((1000..2000).contains(&taken), "{taken}");
    other.tell(call(1, "hello")).await;
    assert_eq!(tool_text(&other.message().await), "hello");
    let mut answers: Vec<Value> = Vec::new();
    while answers.len() < taken {
        answers.push(client.message().await);
    }
    assert_eq!(answers.iter().filter(|answer| answer["result"].is_object()).count(), 164);
    client.tell(call("again", "hello")).await;
    assert_eq!(client.message().await["id"], "again");
}
