//! Handlers that panic, and clients that use the same ids.

use mcp_testkit::envelope::{error_code, tool_text};
use mcp_transport_http::{HttpOptions, HttpService};
use serde_json::json;

use crate::demo::Demo;
use crate::raw_http::Post;

/// A handler that panics answers with an internal error, without its text, and everything else goes on.
// covers: RB-1, S4.76
#[tokio::test]
async fn a_panic_is_an_answer() {
    let demo = Demo::default();
    let service = HttpService::with_options(demo.server(), HttpOptions::default().max_in_flight(2));
    let mut other = Post::tool("wait", json!({})).send(&service);
    other.starts().await;
    for post in [Post::tool("fail", json!({})), Post::legacy_tool(None, "fail"), Post::tool("fail", json!({}))] {
        let answer = post.id(json!("p")).json(&service, 200).await;
        assert_eq!((error_code(&answer), &answer["id"]), (-32603, &json!("p")));
        assert!(!answer.to_string().contains("what the test wants"), "{answer}");
    }
    demo.gate.open();
    assert_eq!(tool_text(&other.reply().await.json(200).await), "waited");
    assert_eq!(tool_text(&Post::tool("hello", json!({})).json(&service, 200).await), "hello");
}

/// Clients that use the same id at the same time are not mixed up, and neither are those of both eras.
// covers: RB-2, RB-36, RB-58, S3.F7
#[tokio::test]
async fn the_same_id_is_nobody_elses() {
    let demo = Demo::default();
    let service = demo.service();
    let id = || json!(7);
    let mut waiting = [
        Post::tool("wait", json!({})).id(id()).send(&service),
        Post::tool("wait", json!({})).id(id()).send(&service),
        Post::legacy_tool(None, "wait").id(id()).send(&service),
    ];
    for pending in &mut waiting {
        pending.starts().await;
    }
    assert_eq!(tool_text(&Post::tool("hello", json!({})).id(id()).json(&service, 200).await), "hello");
    let [one, two, three] = waiting;
    drop(two);
    assert_eq!(demo.notes.take(), ["began", "began", "began", "dropped"]);
    demo.gate.open();
    for pending in [one, three] {
        let answer = pending.reply().await.json(200).await;
        assert_eq!((tool_text(&answer), &answer["id"]), ("waited", &id()));
    }
}

/// In one batch, where ids could be mixed up, the second use of an id is refused.
// covers: RB-2
#[tokio::test]
async fn an_id_is_used_once_in_a_batch() {
    let demo = Demo::default();
    let service = demo.service();
    demo.gate.open();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}"#;
    let answers = Post::text(format!("[{call},{call}]")).json(&service, 200).await;
    let answers = answers.as_array().expect("an array");
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| answer["error"]["code"] == -32600).count(), 1, "{answers:?}");
}

/// Whatever comes first harms nobody.
// covers: RB-3, RB-4
#[tokio::test]
async fn strange_messages_harm_nobody() {
    let service = Demo::default().service();
    for (text, status) in [
        ("{", 400),
        (r#"{"jsonrpc":"2.0","method":"notifications/strange"}"#, 202),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 400),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#, 400),
        ("null", 400),
        ("\u{feff}{}", 400),
    ] {
        assert_eq!(Post::text(text).to(&service).await.status, status, "{text}");
        assert_eq!(tool_text(&Post::tool("hello", json!({})).json(&service, 200).await), "hello");
    }
    let bytes = Post::text(vec![0xff, 0xfe, 0x00]).json(&service, 400).await;
    assert_eq!(error_code(&bytes), -32700);
}
