//! Answers of modern servers that are not what they should be: precise errors, bounded memory, no hang.

use std::time::Duration;

use mcp_client::{CloseReason, Error};
use mcp_testkit::envelope::tool_result;
use mcp_transport_http::HttpTransport;
use serde_json::json;

use crate::scripted::{Reply, Scripted, answer, builder, call, event, modern, text_of, within};

fn interrupted(outcome: Result<String, Error>) -> String {
    match outcome {
        Err(Error::Interrupted(why)) => why,
        other => panic!("not interrupted: {other:?}"),
    }
}

/// JSON and streams, with comments and in pieces, are both answers.
// covers: H-7, H-15, H-22
#[tokio::test]
async fn both_kinds_are_answers() {
    let server = Scripted::start(modern(|seen| match seen.body["params"]["name"].as_str() {
        Some("json") => Reply::json(&answer(seen, &tool_result("json"))),
        Some("odd") => Reply::new(
            200,
            &[("Content-Type", "Application/JSON;charset=utf-8")],
            &answer(seen, &tool_result("odd")).to_string(),
        ),
        Some("chunked") => {
            let body = answer(seen, &tool_result("chunked")).to_string();
            let (first, second) = body.split_at(10);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
            let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
            Reply::raw(format!("{head}{}{}0\r\n\r\n", chunk(first), chunk(second)))
        }
        // It never ends, although it is over.
        _ => Reply::open_events(&format!(": hi\r\n\r\n{}", event(&answer(seen, &tool_result("events"))))),
    }))
    .await;
    let client = server.client().await;
    for name in ["json", "odd", "chunked", "events"] {
        let result = within(client.call_tool(name).arguments(&json!({}))).await.unwrap();
        assert_eq!(text_of(&result), name);
    }
}

/// Lying or missing content types, and what is no answer, end the call with a text that says so.
#[tokio::test]
async fn lies_are_named() {
    let server = Scripted::start(modern(|seen| {
        let right = answer(seen, &tool_result("x")).to_string();
        match seen.body["params"]["name"].as_str().unwrap() {
            "html" => Reply::new(200, &[("content-type", "text/html")], "<html>"),
            "nothing" => Reply::new(200, &[], &right),
            "encoded" => Reply::new(200, &[("content-type", "application/json"), ("content-encoding", "br")], &right),
            "accepted" => Reply::status(202),
            "no content" => Reply::status(204),
            "not json" => Reply::new(200, &[("content-type", "application/json")], "<html>"),
            "empty" => Reply::new(200, &[("content-type", "application/json")], ""),
            "not events" => Reply::new(200, &[("content-type", "text/event-stream")], &right),
            other => panic!("{other}"),
        }
    }))
    .await;
    let client = server.client().await;
    for (name, what) in [
        ("html", "\"text/html\""),
        ("nothing", "no `Content-Type`"),
        ("encoded", "content encoding \"br\""),
        ("accepted", "without a response (202"),
        ("no content", "without a response (204"),
        ("not json", "without a response"),
        ("empty", "without a response"),
        ("not events", "without a response"),
    ] {
        let outcome = within(client.call_tool(name).arguments(&json!({}))).await;
        let why = interrupted(outcome.map(|result| text_of(&result)));
        assert!(why.contains(what), "{name}: {why}");
    }
}

/// Answers to other calls, and second answers, change nothing.
// covers: K-7, K-8, RB-36, RB-58
#[tokio::test]
async fn stray_answers_are_harmless() {
    let server = Scripted::start(modern(|seen| {
        let stray = json!({ "jsonrpc": "2.0", "id": 999_999, "result": tool_result("stray") });
        let right = answer(seen, &tool_result("right"));
        match seen.body["params"]["name"].as_str().unwrap() {
            "wrong" => Reply::json(&stray),
            _ => Reply::events(&format!("{}{}{}", event(&stray), event(&right), event(&right))),
        }
    }))
    .await;
    let client = server.client().await;
    let wrong = within(client.call_tool("wrong").arguments(&json!({}))).await.map(|result| text_of(&result));
    assert!(interrupted(wrong).contains("without a response"));
    for _ in 0..3 {
        assert_eq!(call(&client).await.unwrap(), "right");
    }
}

/// What is too long is refused before it is kept: bodies, with and without a length, and events.
// covers: RB-34, RB-62
#[tokio::test]
async fn nothing_is_kept_without_limit() {
    let server = Scripted::start(modern(|seen| match seen.body["params"]["name"].as_str().unwrap() {
        "length" => {
            Reply::raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1073741824\r\n\r\n{")
                .then_hang()
        }
        "body" => Reply::raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
            .then_repeat(&"x".repeat(1 << 16), 1 << 14),
        "event" => Reply::open_events("data: ").then_repeat(&"x".repeat(1 << 16), 1 << 14),
        _ => Reply::open_events("").then_repeat(&format!("data: {}\n", "x".repeat(1 << 16)), 1 << 14),
    }))
    .await;
    let client = server.connect(server.transport().body_limit(1 << 20).event_limit(1 << 20)).await.unwrap();
    for (name, what) in [("length", "response"), ("body", "response"), ("event", "event"), ("lines", "event")] {
        let outcome = within(client.call_tool(name).arguments(&json!({}))).await.map(|result| text_of(&result));
        let why = interrupted(outcome);
        assert!(why.contains(what) && why.contains("exceeds 1048576 bytes"), "{name}: {why}");
    }
}

/// A server that hangs, before the answer or in it, or says nothing without end, is not waited for.
// covers: K-10, S3.F14, RB-62
#[tokio::test]
async fn no_hang_outlasts_the_timeout() {
    let server = Scripted::start(modern(|seen| match seen.body["params"]["name"].as_str().unwrap() {
        "silent" => Reply::hang(),
        "head" => Reply::raw("HTTP/1.1 200 OK\r\ncontent-ty").then_hang(),
        "body" => {
            Reply::raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{").then_hang()
        }
        "events" => Reply::open_events("data: {"),
        _ => Reply::open_events("").then_repeat(": still here\n\n", 100),
    }))
    .await;
    let client = server.client().await;
    for name in ["silent", "head", "body", "events", "comments"] {
        let call = client.call_tool(name).arguments(&json!({})).idle_timeout(Duration::from_millis(50));
        assert!(matches!(within(call).await, Err(Error::TimedOut)), "{name}");
    }
    // DU-27: silence is not legacy.
    let server = Scripted::start(|_| Reply::hang()).await;
    let connecting = builder().handshake_timeout(Duration::from_millis(50)).connect(server.transport());
    let error = within(connecting).await.unwrap_err();
    assert!(error.to_string().contains("in time"), "{error}");
}

/// A server that dies in the middle says what broke; the next call finds the new one.
// covers: H-23, H-24
#[tokio::test]
async fn a_death_ends_the_call_alone() {
    let server = Scripted::start(modern(|seen| match seen.body["params"]["name"].as_str().unwrap() {
        "at once" => Reply::close(),
        "in the body" => {
            Reply::raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 90\r\n\r\n{").then_close()
        }
        // Without an id there is no way back, and in the modern era none with it (H-23, H-24).
        "in events" => Reply::events("id: 1\ndata: {\n\n"),
        _ => Reply::json(&answer(seen, &tool_result("alive"))),
    }))
    .await;
    let client = server.client().await;
    for (name, what) in
        [("at once", "the request failed"), ("in the body", "is incomplete"), ("in events", "without a response")]
    {
        let outcome = within(client.call_tool(name).arguments(&json!({}))).await.map(|result| text_of(&result));
        let why = interrupted(outcome);
        assert!(why.contains(what), "{name}: {why}");
        assert_eq!(call(&client).await.unwrap(), "alive");
    }
    assert!(server.seen_of("GET").is_empty());
}

/// A status instead of an answer is an error that names it, unless there is one in the body and it is not about
/// credentials, and ends nothing else.
// covers: H-58, DU-27
#[tokio::test]
async fn statuses_are_named() {
    let server = Scripted::start(modern(|seen| {
        let arguments = &seen.body["params"]["arguments"];
        let status = u16::try_from(arguments["status"].as_u64().unwrap()).unwrap();
        let error = json!({ "jsonrpc": "2.0", "id": seen.body["id"], "error": { "code": -1, "message": "no" } });
        match arguments["with"].as_str().unwrap() {
            "error" => Reply::new(status, &[("content-type", "application/json")], &error.to_string()),
            "page" => Reply::new(status, &[("content-type", "text/html")], "<html>"),
            _ => Reply::status(status),
        }
    }))
    .await;
    let client = server.client().await;
    for status in [400, 401, 403, 404, 405, 406, 413, 415, 429, 431, 500, 501, 503, 504] {
        for with in ["nothing", "page", "error"] {
            let error =
                within(client.call_tool("t").arguments(&json!({ "status": status, "with": with }))).await.unwrap_err();
            let is_named = match with {
                "error" if !matches!(status, 401 | 403) => {
                    matches!(&error, Error::Rejected(error) if error.message == "no")
                }
                _ => matches!(error, Error::Status { status: said, .. } if said == status),
            };
            assert!(is_named, "{status} {with}: {error:?}");
        }
    }
    assert_eq!(server.seen_of("server/discover").len(), 1);
}

/// A server that is not there says so.
#[tokio::test]
async fn nobody_there_is_said() {
    let error = within(builder().connect(HttpTransport::new("http://127.0.0.1:1/mcp").unwrap())).await.unwrap_err();
    assert!(matches!(error, Error::Closed(CloseReason::Disconnected(_))), "{error:?}");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
}

/// Redirects: within the origin, with the same method, they are followed; nothing else is.
#[tokio::test]
async fn redirects_stay_at_home() {
    let other = Scripted::start(|_| Reply::status(500)).await;
    let elsewhere = other.url();
    let server = Scripted::start(modern(move |seen| {
        if seen.path == "/moved" {
            return Reply::json(&answer(seen, &tool_result("moved")));
        }
        match seen.body["params"]["name"].as_str().unwrap() {
            "near" => Reply::new(307, &[("location", "/moved")], ""),
            "far" => Reply::new(308, &[("location", &elsewhere)], ""),
            "as get" => Reply::new(302, &[("location", "/moved")], ""),
            _ => Reply::new(307, &[("location", "/mcp")], ""),
        }
    }))
    .await;
    let client = server.connect(server.transport().bearer("secret").unwrap()).await.unwrap();
    let result = within(client.call_tool("near").arguments(&json!({}))).await.unwrap();
    assert_eq!(text_of(&result), "moved");
    for name in ["far", "as get", "round and round"] {
        let why =
            interrupted(within(client.call_tool(name).arguments(&json!({}))).await.map(|result| text_of(&result)));
        assert!(why.contains("which is not followed"), "{name}: {why}");
    }
    assert!(other.seen().is_empty());
    // A client that follows them anyway does not make the answer a trusted one, and the token stays at home.
    let transport = server.transport().configure_http_client(|own| own.redirect(reqwest::redirect::Policy::default()));
    let client = server.connect(transport.bearer("secret").unwrap()).await.unwrap();
    let why = interrupted(within(client.call_tool("far").arguments(&json!({}))).await.map(|result| text_of(&result)));
    assert!(why.contains("another origin"), "{why}");
    assert!(other.seen().iter().all(|seen| seen.header("authorization").is_none()));
}

/// Giving a call up closes its stream, and sends nothing.
// covers: K-2, S3.F14, RB-37
#[tokio::test]
async fn giving_up_closes_the_stream() {
    let server = Scripted::start(modern(|_| Reply::hang())).await;
    let client = server.client().await;
    let mut call = client.call_tool("t").arguments(&json!({}));
    let handle = call.cancel_handle();
    let waiting = tokio::spawn(call.into_future());
    server.until(|seen| seen.iter().any(|seen| seen.method() == "tools/call")).await;
    handle.cancel();
    assert!(matches!(within(waiting).await.unwrap(), Err(Error::Cancelled)));
    let closed = within(client.close()).await;
    assert_eq!(closed, CloseReason::ByClient);
    assert_eq!(server.methods(), ["server/discover", "tools/call"]);
}

/// Requests can be sent by a client that is set up elsewhere, or one of our own that is set up further; one that cannot be
/// built says so.
#[tokio::test]
async fn the_http_client_is_a_choice() {
    let server = Scripted::start(modern(|seen| Reply::json(&answer(seen, &tool_result("x"))))).await;
    server.connect(server.transport().configure_http_client(|own| own.user_agent("mine/1"))).await.unwrap();
    assert_eq!(server.seen().pop().unwrap().header("user-agent"), Some("mine/1"));
    let error =
        server.connect(server.transport().configure_http_client(|own| own.user_agent("a\nb"))).await.unwrap_err();
    assert!(error.to_string().contains("cannot create an HTTP client"), "{error}");
    let given = reqwest::Client::builder().user_agent("given/1").build().unwrap();
    server.connect(server.transport().http_client(given)).await.unwrap();
    assert_eq!(server.seen().pop().unwrap().header("user-agent"), Some("given/1"));
}

/// What a server says with a status reaches whoever has to do something about it, when connecting and afterwards.
// covers: INT-6
#[tokio::test]
async fn int_6_the_text_of_a_refusal_is_told() {
    let text = &[("content-type", "text/plain")][..];
    let problem = &[("content-type", "application/problem+json")][..];
    let rpc = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"host is not allowed"}}"#;
    for (headers, body, said) in [
        (text, "host is not allowed\r\n", "host is not allowed"),
        (problem, r#"{"title":"Forbidden","detail":"no more credit"}"#, "no more credit"),
        (&[("content-type", "application/json")][..], rpc, "host is not allowed"),
    ] {
        let server = Scripted::start(move |_| Reply::new(403, headers, body)).await;
        let error = server.connect(server.transport()).await.unwrap_err();
        assert_eq!(error.to_string(), format!("the server responded with HTTP status 403: {said}"));
    }
    let server = Scripted::start(modern(|_| {
        Reply::new(429, &[("content-type", "application/problem+json")], r#"{"detail":"no more\u001b[31m credit"}"#)
    }))
    .await;
    let client = server.client().await;
    let error = within(client.call_tool("t").arguments(&json!({}))).await.unwrap_err();
    assert!(matches!(&error, Error::Status { status: 429, reason: Some(_) }), "{error:?}");
    assert_eq!(error.to_string(), "the server responded with HTTP status 429: no more[31m credit");
}
