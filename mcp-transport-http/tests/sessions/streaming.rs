//! The streams of a session: which message travels on which of them.

use mcp_server::{Change, NoArguments, tool};
use mcp_testkit::envelope::{error_code, tool_text};
use serde_json::{Value, json};
use tokio::task::yield_now;

use crate::raw_http::{LEGACY, Post};
use crate::session_client::{Client, Events, NEWEST, Shop, kinds, settle, steps};

/// A result that is there at once is one JSON object, in every revision.
// covers: S4.30, RB-68
#[tokio::test]
async fn a_result_alone_is_no_stream() {
    let service = Shop::default().service();
    for version in LEGACY {
        let client = Client::open(&service, version).await;
        let answer = client.tool("hello").id(json!("one")).json(&service, 200).await;
        assert_eq!((tool_text(&answer), &answer["id"]), ("hello", &json!("one")));
        assert_eq!(error_code(&client.request("nothing", json!({})).json(&service, 200).await), -32601);
    }
}

/// Progress and log messages come before the result, in their order, and the stream ends with it.
// covers: S4.30, RB-10, B-23
#[tokio::test]
async fn what_belongs_to_a_call_travels_with_it() {
    let shop = Shop::default();
    let service = shop.service();
    shop.steps.allow(10);
    for version in LEGACY {
        let client = Client::open(&service, version).await;
        let mut listener = client.listen().await;
        let messages = Events::of(client.tool("step").token().to(&service).await).messages().await;
        assert_eq!(steps(&messages), (1..=10).collect::<Vec<_>>());
        assert_eq!(tool_text(messages.last().expect("a result")), "ten steps");
        let messages = Events::of(client.tool("log").to(&service).await).messages().await;
        assert_eq!(kinds(&messages).last(), Some(&"result"));
        assert!(messages.len() > 1, "log messages come before: {messages:?}");
        assert_eq!(listener.there().await, (vec![], false), "and nowhere else");
    }
}

/// A question travels on the stream of its call, and the answer finds the handler that asked.
// covers: S4.26, S4.30, S4.33, DU-26
#[tokio::test]
async fn questions_travel_with_their_call() {
    let service = Shop::default().service();
    let accepted = json!({ "action": "accept", "content": { "sure": true } });
    let sampled = json!({ "role": "assistant", "content": { "type": "text", "text": "hi" }, "model": "m" });
    let rooted = json!({ "roots": [{ "uri": "file:///x" }, { "uri": "file:///y" }] });
    for version in LEGACY {
        let client = Client::open(&service, version).await;
        let mut listener = client.listen().await;
        for (name, method, answer, expected) in [
            ("ask", "elicitation/create", &accepted, "true"),
            ("sample", "sampling/createMessage", &sampled, "m"),
            ("roots", "roots/list", &rooted, "2"),
        ] {
            if name == "ask" && version < "2025-06-18" {
                // It is not there yet.
                let answer = client.tool(name).json(&service, 200).await;
                assert!(answer["error"].is_object() || answer["result"]["isError"] == true, "{answer}");
                continue;
            }
            let mut call = Events::of(client.tool(name).to(&service).await);
            let question = call.message().await;
            assert_eq!(question["method"], method);
            yield_now().await;
            client.answer(&question, answer.clone()).await;
            let messages = call.messages().await;
            assert_eq!((messages.len(), tool_text(&messages[0])), (1, expected));
        }
        assert_eq!(listener.there().await, (vec![], false));
    }
}

/// What the server asks outside of a call travels on the stream of the session.
// covers: S4.31
#[tokio::test]
async fn other_questions_travel_on_the_stream_of_the_session() {
    let service = Shop::default().service();
    let client = Client::open(&service, NEWEST).await;
    let mut listener = client.listen().await;
    let mut call = client.begin("ping", 1).await;
    let ping = listener.message().await;
    assert_eq!(ping["method"], "ping");
    client.answer(&ping, json!({})).await;
    let answer = call.poll().await.expect("an answer").json(200).await;
    assert_eq!(tool_text(&answer), "pong");
}

/// An answer to nothing harms nobody, nor does one that comes twice or is of somebody else.
// covers: S4.33, DU-21, RB-3, B-33
#[tokio::test]
async fn stray_answers_harm_nobody() {
    let service = Shop::default().service();
    let (client, other) = (Client::open(&service, NEWEST).await, Client::open(&service, NEWEST).await);
    let mut call = Events::of(client.tool("ask").to(&service).await);
    let question = call.message().await;
    let refused = json!({ "action": "decline" });
    for id in [json!(4711), json!("x"), json!(-1), json!(null)] {
        let response = client.own(Post::message(json!({ "jsonrpc": "2.0", "id": id, "result": refused })));
        assert_eq!(response.to(&service).await.status, if id.is_null() { 400 } else { 202 });
    }
    client.say(json!({ "jsonrpc": "2.0", "id": 99, "error": { "code": 1, "message": "no" } })).await;
    other.answer(&question, refused).await;
    let accepted = json!({ "action": "accept", "content": { "sure": true } });
    client.answer(&question, accepted).await;
    client.answer(&question, json!({ "action": "decline" })).await;
    assert_eq!(tool_text(&call.messages().await[0]), "true");
    let stateless = Post::message(json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    assert_eq!(stateless.header("mcp-protocol-version", "2026-07-28").to(&service).await.status, 400);
}

/// What belongs to no call travels on the stream of the session, if there is one.
// covers: S4.26, S4.31, S4.32
#[tokio::test]
async fn unasked_messages_need_a_stream() {
    let service = Shop::default().service();
    for version in LEGACY {
        let client = Client::open(&service, version).await;
        let dropped_messages = || service.session_metrics().expect("sessions").dropped_messages;
        let before = dropped_messages();
        assert_eq!(client.call("tell").await, "told", "nobody hears it: the answer is still alone");
        assert_eq!(dropped_messages() - before, 2, "but it is counted");
        let mut listener = client.listen().await;
        assert_eq!(listener.there().await, (vec![], false), "what was said before is gone");
        assert_eq!(client.call("tell").await, "told");
        let (messages, _) = listener.there().await;
        assert_eq!(kinds(&messages), ["notifications/message", "notifications/custom"]);
        drop(listener);
        assert_eq!(client.call("tell").await, "told");
    }
}

/// Clients hear of changed lists without asking, and of changed resources that they subscribed to.
// covers: S4.26, DU-25
#[tokio::test]
async fn changes_are_heard() {
    let shop = Shop::default();
    let server = shop.server();
    let service = mcp_transport_http::HttpService::with_options(server.clone(), crate::session_client::stateful());
    for version in LEGACY {
        let (one, two) = (Client::open(&service, version).await, Client::open(&service, version).await);
        let (mut first, mut second) = (one.listen().await, two.listen().await);
        let address = json!({ "uri": "file:///a" });
        assert!(one.request("resources/subscribe", address.clone()).json(&service, 200).await["result"].is_object());
        for uri in ["file:///a", "file:///b"] {
            server.publish(&Change::Resource(uri.to_owned()));
        }
        let (messages, _) = first.there().await;
        assert_eq!(kinds(&messages), ["notifications/resources/updated"]);
        assert_eq!(messages[0]["params"]["uri"], "file:///a");
        assert_eq!(second.there().await, (vec![], false));
        server.update(|registry| registry.add_tool(tool("new", async |_, _: NoArguments| "new"))).expect("a tool");
        server
            .update(|registry| {
                registry.remove_tool("new");
                Ok(())
            })
            .expect("no tool");
        for stream in [&mut first, &mut second] {
            let (messages, _) = stream.there().await;
            assert!(!messages.is_empty() && kinds(&messages).iter().all(|kind| kind.ends_with("tools/list_changed")));
        }
        one.request("resources/unsubscribe", address).json(&service, 200).await;
        server.publish(&Change::Resource("file:///a".to_owned()));
        assert_eq!(first.there().await, (vec![], false));
    }
}

/// Each session has its own level for log messages.
// covers: S4.27
#[tokio::test]
async fn each_session_has_its_level() {
    let service = Shop::default().service();
    let (loud, quiet) = (Client::open(&service, NEWEST).await, Client::open(&service, NEWEST).await);
    for (client, level) in [(&loud, "debug"), (&quiet, "error")] {
        let set = client.request("logging/setLevel", json!({ "level": level })).json(&service, 200).await;
        assert!(set["result"].is_object());
    }
    for (client, expected) in [(&loud, &["debug", "info", "error"][..]), (&quiet, &["error"][..])] {
        let messages = Events::of(client.tool("log").to(&service).await).messages().await;
        let levels: Vec<&Value> = messages.iter().map(|it| &it["params"]["level"]).filter(|it| !it.is_null()).collect();
        assert_eq!(levels, expected);
    }
}

/// A second stream takes the place of the first, which ends; nothing is lost or told twice.
// covers: S4.47
#[tokio::test]
async fn a_second_stream_takes_over() {
    let service = Shop::default().service();
    for version in LEGACY {
        let client = Client::open(&service, version).await;
        let mut first = client.listen().await;
        assert_eq!(first.there().await, (vec![], false));
        // Said to the first, which does not read it any more.
        client.call("tell").await;
        let mut second = client.listen().await;
        let (messages, is_over) = first.there().await;
        assert_eq!((messages.len(), is_over), (0, true));
        assert_eq!(second.there().await.0.len(), 2);
        client.call("tell").await;
        assert_eq!(second.there().await.0.len(), 2);
        drop(first);
        client.call("tell").await;
        assert_eq!(second.there().await.0.len(), 2, "the end of the first is none of its business");
    }
}

/// Batches are for sessions of the only revision that has them.
// covers: B-109, B-110, DU-20
#[tokio::test]
async fn batches_belong_to_one_revision() {
    let shop = Shop::default();
    let service = shop.service();
    let call = |id: u64, name: &str| {
        let params = json!({ "name": name, "_meta": { "progressToken": id } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    for version in LEGACY {
        let client = Client::open(&service, version).await;
        let batch = |messages: Value| client.own(Post::message(messages));
        let mixed = batch(json!([call(1, "hello"), notification, call(2, "revision")])).to(&service).await;
        if version != "2025-03-26" {
            assert_eq!(mixed.status, 400, "{version}");
            assert_eq!(batch(json!([notification])).to(&service).await.status, 400, "{version}");
            continue;
        }
        let answers = mixed.json(200).await;
        let mut ids: Vec<u64> =
            answers.as_array().expect("a batch").iter().filter_map(|it| it["id"].as_u64()).collect();
        ids.sort_unstable();
        assert_eq!(ids, [1, 2]);
        assert_eq!(
            batch(json!([notification, { "jsonrpc": "2.0", "id": 9, "result": {} }])).to(&service).await.status,
            202
        );
        assert_eq!(batch(json!([])).to(&service).await.status, 400);
        // What is said before makes it a stream, which is open until all is answered.
        let mut stream = Events::of(batch(json!([call(1, "report_and_wait"), call(2, "hello")])).to(&service).await);
        assert_eq!(stream.message().await["params"]["progressToken"], 1);
        settle().await;
        shop.demo.gate.open();
        let left = stream.messages().await;
        let text = serde_json::to_string(&left).expect("JSON");
        assert!(text.contains("waited") && text.contains("hello"), "{text}");
    }
}

/// The same id in two sessions is two requests; twice in one it is refused, and the first goes on.
// covers: RB-2, RB-36, RB-58
#[tokio::test]
async fn ids_belong_to_their_session() {
    let shop = Shop::default();
    let service = shop.service();
    let (one, two) = (Client::open(&service, NEWEST).await, Client::open(&service, NEWEST).await);
    let first = tokio::spawn(one.tool("wait").send(&service).reply());
    let second = tokio::spawn(two.tool("wait").send(&service).reply());
    settle().await;
    let again = one.tool("hello").to(&service).await;
    assert!(again.status.is_client_error(), "{}", again.status);
    assert_eq!(two.tool("hello").id(json!("1")).json(&service, 200).await["id"], "1", "a text is no number");
    one.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    settle().await;
    shop.demo.gate.open();
    assert_eq!(tool_text(&second.await.expect("an answer").json(200).await), "waited");
    assert_eq!(first.await.expect("no answer").rest().await, "");
}
