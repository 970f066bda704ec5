//! One JSON object or a stream of events: which it is, and what is in it.

use std::task::Poll;
use std::time::Duration;

use mcp_server::types::RawObject;
use mcp_server::{HandlerError, Json, NoArguments, Progress, RequestContext, raw_tool, tool};
use mcp_testkit::envelope::{error_code, tool_text};
use mcp_transport_http::{HttpOptions, HttpService};
use serde_json::{Value, json};
use tokio::time::advance;

use crate::demo::{Demo, server};
use crate::raw_http::{Post, RequestBody};

/// What has nothing to say before its result is one object, at once.
// covers: H-14, S3.28, RB-68
#[tokio::test]
async fn a_result_alone_is_json() {
    let service = Demo::default().service();
    // Nobody asked for progress, so the tool that has some is the same.
    for name in ["hello", "report"] {
        let reply = Post::tool(name, json!({})).send(&service).poll().await.expect("an answer without waiting");
        assert!(reply.json(200).await["result"].is_object());
    }
}

/// It is one object also if the handler had to wait for a moment.
// covers: H-14, H-29
#[tokio::test]
async fn a_result_that_was_waited_for_is_json() {
    /// Ready when it is looked at for the second time.
    async fn moment() {
        let mut is_ready = false;
        std::future::poll_fn(|cx| {
            cx.waker().wake_by_ref();
            if std::mem::replace(&mut is_ready, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
    let pause = tool("pause", async |_, _: NoArguments| {
        moment().await;
        "paused"
    });
    let refuse = tool("refuse", async |ctx: RequestContext, _: NoArguments| {
        moment().await;
        ctx.list_roots("roots").await.map(|roots| roots.len().to_string()).map_err(HandlerError::from)
    });
    let service = HttpService::new(server(|builder| builder.tool(pause).tool(refuse)));
    assert_eq!(tool_text(&Post::tool("pause", json!({})).json(&service, 200).await), "paused");
    assert_eq!(error_code(&Post::tool("refuse", json!({})).json(&service, 400).await), -32021);
}

/// What is said before the result makes a stream, in one piece if it can be.
// covers: H-14, H-16, H-18, H-20, H-23, S3.24, S3.28, S3.29, S3.71, RB-22
#[tokio::test]
async fn what_is_said_before_the_result_makes_a_stream() {
    let service = Demo::default().service();
    let post = Post::tool("report", json!({})).token().id(json!("it"));
    let mut reply = post.send(&service).poll().await.expect("an answer without waiting");
    assert!(reply.is_stream());
    assert_eq!(reply.header("x-accel-buffering"), Some("no"));
    assert_eq!(reply.header("cache-control"), Some("no-cache"));
    assert_eq!(reply.header("content-length"), None);
    let whole = reply.frame().await.expect("events");
    assert_eq!(whole.matches("data: ").count(), 3, "{whole}");
    assert_eq!(reply.frame().await, None);
    assert!(whole.lines().all(|line| line.is_empty() || line.starts_with("data: ")), "{whole}");

    let mut reply = Post::tool("report", json!({})).token().id(json!("it")).to(&service).await;
    let events = reply.events().await;
    for (event, progress) in events.iter().zip([1, 2]) {
        assert_eq!(event["method"], "notifications/progress");
        assert_eq!(event["params"], json!({ "progressToken": "token", "progress": progress }));
        assert_eq!(event.get("id"), None, "nothing but notifications goes before");
    }
    assert_eq!((&events[2]["id"], tool_text(&events[2])), (&json!("it"), "reported"));
}

/// A stream begins when there is something to say, and ends with the result.
// covers: H-14, H-18, S3.29, S4.92
#[tokio::test]
async fn a_stream_follows_its_handler() {
    let demo = Demo::default();
    let service = demo.service();
    let mut reply = Post::tool("report_and_wait", json!({})).token().to(&service).await;
    assert_eq!(reply.event().await["method"], "notifications/progress");
    assert!(reply.poll_frame().await.is_pending());
    demo.gate.open();
    assert_eq!(tool_text(&reply.event().await), "waited");
    assert_eq!(reply.block().await, None);
}

/// While nothing is sent the status is open; afterwards errors are in the stream.
// covers: H-29, S3.37, S3.38
#[tokio::test]
async fn the_status_is_decided_late() {
    let service = Demo::default().service();
    let answer = Post::tool("ask", json!({})).token().json(&service, 400).await;
    assert_eq!(error_code(&answer), -32021);
    let mut reply = Post::tool("report_and_ask", json!({})).token().to(&service).await;
    let events = reply.events().await;
    assert_eq!((reply.status.as_u16(), events.len()), (200, 2));
    assert_eq!((error_code(&events[1]), &events[1]["id"]), (-32021, &json!(1)));
}

/// An answer that takes long becomes a stream, and says now and then that it is still there.
// covers: H-21, RB-32, RB-71
#[tokio::test(start_paused = true)]
async fn silence_makes_a_stream() {
    let demo = Demo::default();
    let service = demo.service();
    let mut pending = Post::tool("wait", json!({})).send(&service);
    pending.starts().await;
    advance(Duration::from_millis(14_900)).await;
    pending.starts().await;
    advance(Duration::from_millis(200)).await;
    let mut reply = pending.poll().await.expect("a stream");
    for _ in 0..3 {
        assert_eq!(reply.block().await.as_deref(), Some(":"));
        assert!(reply.poll_frame().await.is_pending());
        advance(Duration::from_secs(16)).await;
    }
    demo.gate.open();
    let events = reply.events().await;
    assert_eq!(tool_text(events.last().expect("an answer")), "waited");
    assert_eq!(events.iter().filter(|event| !event.is_null()).count(), 1);
}

/// What was said counts, so the next comment comes when nothing was said for as long.
// covers: H-21, S3.59
#[tokio::test(start_paused = true)]
async fn comments_fill_silence_only() {
    let demo = Demo::default();
    let options = HttpOptions::default().keep_alive_interval(Duration::from_secs(4));
    let service = HttpService::with_options(demo.server(), options);
    let mut reply = Post::tool("report_and_wait", json!({})).token().to(&service).await;
    assert_eq!(reply.event().await["method"], "notifications/progress");
    let begin = tokio::time::Instant::now();
    for count in 1..=3 {
        assert_eq!(reply.frame().await.as_deref(), Some(":\n\n"));
        assert_eq!(begin.elapsed().as_secs(), 4 * count);
    }
    demo.gate.open();
    assert_eq!(tool_text(&reply.event().await), "waited");
    assert_eq!(begin.elapsed().as_secs(), 12);
}

/// Sessions and event ids of others mean nothing here.
// covers: H-23, H-31, S3.35, S3.40, S3.F10, RB-31
#[tokio::test]
async fn foreign_sessions_mean_nothing() {
    let service = Demo::default().service();
    for (version, name) in
        [(None, "hello"), (None, "report"), (Some("2025-06-18"), "hello"), (Some("2025-03-26"), "report")]
    {
        let make = || match version {
            None => Post::tool(name, json!({})).token(),
            Some(_) => Post::legacy_tool(version, name).token(),
        };
        let plain = make().to(&service).await.rest().await;
        // `Reply` looks at the headers of every response.
        let marked = make().header("mcp-session-id", "abc").header("last-event-id", "7");
        assert_eq!(marked.to(&service).await.rest().await, plain);
    }
}

/// A question is a result that is not complete, and any machine can take the answer.
// covers: H-17, S3.27, S3.30, S3.31, S3.69, S4.24, DU-26, Z-3
#[tokio::test]
async fn questions_are_results() {
    let (here, there) = (server_with_keys(), server_with_keys());
    let call = || {
        Post::tool("ask", json!({})).meta("io.modelcontextprotocol/clientCapabilities", json!({ "elicitation": {} }))
    };
    let question = call().json(&here, 200).await["result"].take();
    assert_eq!(question["resultType"], "input_required", "{question}");
    let key = question["inputRequests"].as_object().and_then(|all| all.keys().next()).expect("a question").clone();
    let retry = Post::modern(
        "tools/call",
        json!({
            "name": "ask",
            "arguments": {},
            "requestState": question["requestState"].clone(),
            "inputResponses": { key: { "action": "accept", "content": { "sure": true } } },
        }),
    );
    let retry = retry.meta("io.modelcontextprotocol/clientCapabilities", json!({ "elicitation": {} }));
    let answer = retry.id(json!(2)).json(&there, 200).await;
    assert_eq!(tool_text(&answer), "true");
}

/// A result that asks for input ends its stream like any other.
// covers: R-24
#[tokio::test]
async fn questions_end_their_stream() {
    let post = Post::tool("report_and_ask", json!({})).token();
    let post = post.meta("io.modelcontextprotocol/clientCapabilities", json!({ "elicitation": {} }));
    let events = post.to(&server_with_keys()).await.events().await;
    assert_eq!(events[0]["method"], "notifications/progress");
    assert_eq!((events.len(), &events[1]["result"]["resultType"]), (2, &json!("input_required")));
}

/// Two machines that know the same secret.
fn server_with_keys() -> HttpService {
    let demo = Demo::default();
    let ring = || mcp_server::mrtr::KeyRing::new(mcp_server::mrtr::Key::new(1, [7; 32]));
    HttpService::new(server(|builder| demo.tools(builder).key_ring(ring())))
}

/// Each stream has what belongs to its request, also if others run at the same time.
// covers: H-16, RB-36, RB-58
#[tokio::test]
async fn streams_are_kept_apart() {
    let demo = Demo::default();
    let service = demo.service();
    let token = |token: &str| Post::tool("report_and_wait", json!({})).meta("progressToken", json!(token));
    let (mut one, mut two) = (token("one").to(&service).await, token("two").to(&service).await);
    demo.gate.open();
    for (reply, token) in [(&mut one, "one"), (&mut two, "two")] {
        let events: Vec<Value> = reply.events().await;
        assert_eq!(events[0]["params"]["progressToken"], token);
        assert_eq!((events.len(), tool_text(&events[1])), (2, "waited"));
    }
}

/// A message is one line, however a handler or a client wrote what is in it.
// covers: SEC-1, H-23, AMB-14
#[tokio::test]
async fn sec_1_a_message_is_one_line() {
    let schema = || serde_json::from_str::<RawObject>("{\"type\":\n\"object\"}").expect("a schema");
    let echo = raw_tool("echo", schema(), async |ctx: RequestContext, arguments: RawObject| {
        ctx.progress(Progress::new(1).message("two\nlines\r\nor three"));
        Json(arguments)
    });
    let service = HttpService::new(server(|builder| builder.tool(echo)));
    let call = Post::tool("echo", json!({})).token();
    let content = call.content().replace(r#""arguments":{}"#, "\"arguments\":{\r\n\"a\":\n[1,\r2]}");
    let mut reply = call.body(RequestBody::whole(content)).to(&service).await;
    let events = reply.events().await;
    assert_eq!(events[0]["params"]["message"], "two\nlines\r\nor three");
    assert_eq!(events[1]["result"]["structuredContent"], json!({ "a": [1, 2] }));
    let list = Post::modern("tools/list", json!({})).to(&service).await.rest().await;
    assert!(!list.contains(['\n', '\r']), "{list}");
}

/// Progress that nobody reads is dropped, and the result is not.
// covers: RB-14, RB-33, RB-59
#[tokio::test]
async fn progress_that_is_not_read_is_dropped() {
    let flood = tool("flood", async |ctx: RequestContext, _: NoArguments| {
        for done in 0..100_000 {
            ctx.progress(done);
        }
        "flooded"
    });
    let service = HttpService::new(server(|builder| builder.tool(flood)));
    let events = Post::tool("flood", json!({})).token().to(&service).await.events().await;
    assert!(events.len() <= 2048, "{}", events.len());
    assert_eq!(tool_text(events.last().expect("a result")), "flooded");
}
