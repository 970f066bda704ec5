//! Questions to clients that go away, do not answer, or ask several things at once.

use std::time::Duration;

use mcp_testkit::envelope::tool_text;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::raw_http::Post;
use crate::session_client::{Client, Events, NEWEST, Shop, metrics, pass, settle};

fn yes() -> Value {
    json!({ "action": "accept", "content": { "sure": true } })
}

/// A question is there for a client that comes back, and so is what came of the answer.
// covers: S4.33, S4.117, B-111
#[tokio::test]
async fn questions_wait_for_their_client() {
    let shop = Shop::default();
    let service = shop.service();
    let client = Client::open(&service, NEWEST).await;
    let mut stream = Events::of(client.tool("ask").to(&service).await);
    let id = stream.next().await.and_then(|event| event.id).expect("an id");
    let question = stream.message().await;
    drop(stream);
    settle().await;
    let mut stream = client.resume(&id).await;
    assert_eq!(stream.message().await, question);
    drop(stream);
    // The answer needs no stream.
    client.answer(&question, yes()).await;
    settle().await;
    let left = client.resume(&id).await.messages().await;
    assert_eq!((left.len(), &left[0], tool_text(&left[1])), (2, &question, "true"));
    assert_eq!(metrics(&service).active, 0);
}

/// A question that nobody hears or answers has an end, whether anybody waits for it or not.
// covers: S4.31, S4.32
#[tokio::test(start_paused = true)]
async fn questions_have_an_end() {
    let shop = Shop::default();
    let service = shop.service();
    let client = Client::open(&service, NEWEST).await;
    let start = Instant::now();
    for name in ["ping", "ask"] {
        let answer = Events::of(client.tool(name).to(&service).await).messages().await.pop().expect("an answer");
        assert!(answer["error"].is_object() || answer["result"]["isError"] == true, "{answer}");
    }
    assert_eq!(start.elapsed().as_secs(), 60 + 600, "a minute for a client, ten for a user");
    drop(client.begin("ping", 1).await);
    pass(Duration::from_secs(70)).await;
    assert_eq!(metrics(&service).active, 0, "long before anybody gives it up");
}

/// Whoever cancels a part of a batch gets the answers to the rest, and none if that is nothing.
// covers: B-109, B-110, S4.81
#[tokio::test]
async fn parts_of_batches_may_be_cancelled() {
    let shop = Shop::default();
    let service = shop.service();
    let client = Client::open(&service, "2025-03-26").await;
    let call =
        |id: u64, name: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": name } });
    let cancel = |id: u64| client.notify("notifications/cancelled", json!({ "requestId": id }));
    let batch = client.own(Post::message(json!([call(1, "wait"), call(2, "wait"), call(3, "hello")])));
    let mut pending = batch.send(&service);
    pending.starts().await;
    cancel(1).await;
    pending.starts().await;
    cancel(2).await;
    let answers = pending.poll().await.expect("the rest").json(200).await;
    assert_eq!((answers.as_array().map(Vec::len), &answers[0]["id"]), (Some(1), &json!(3)));
    let mut pending = client.own(Post::message(json!([call(4, "wait"), call(5, "wait")]))).send(&service);
    pending.starts().await;
    cancel(4).await;
    cancel(5).await;
    let mut reply = pending.poll().await.expect("an end");
    assert_eq!((reply.status.as_u16(), reply.rest().await.as_str()), (202, ""));
    assert_eq!(metrics(&service).active, 0);
}

/// Many calls ask at the same time, and each gets the answer to its own question, in any order.
// covers: S4.30, S4.33
#[tokio::test]
async fn answers_find_their_question() {
    let service = Shop::default().service();
    let client = Client::open(&service, NEWEST).await;
    let mut asking = Vec::new();
    for id in 0..20_u64 {
        let mut stream = Events::of(client.tool("ask").id(json!(id)).to(&service).await);
        let question = stream.message().await;
        asking.push((id, stream, question));
    }
    for (id, _, question) in asking.iter().rev() {
        let content = json!({ "sure": id % 2 == 0 });
        client.answer(question, json!({ "action": "accept", "content": content })).await;
    }
    for (id, stream, _) in asking {
        let left = stream.messages().await;
        assert_eq!((left.len(), &left[0]["id"]), (1, &json!(id)));
        assert_eq!(tool_text(&left[0]), (id % 2 == 0).to_string());
    }
}
