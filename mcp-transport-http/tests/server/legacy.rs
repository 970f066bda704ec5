//! Legacy clients without sessions: each request alone.

use http::Method;
use mcp_server::types::LoggingLevel;
use mcp_server::{Change, NoArguments, RequestContext, tool};
use mcp_testkit::envelope::{error_code, tool_text};
use mcp_transport_http::HttpService;
use serde_json::json;

use crate::demo::{Demo, server};
use crate::raw_http::{LEGACY, Post};

fn initialize(header: Option<&str>, version: &str) -> Post {
    let client = json!({ "name": "old", "version": "1" });
    let params = json!({ "protocolVersion": version, "capabilities": { "sampling": {} }, "clientInfo": client });
    Post::legacy(header, "initialize", params)
}

fn batch(header: Option<&str>, text: &str) -> Post {
    header.into_iter().fold(Post::text(text.to_owned()), |post, header| post.header("mcp-protocol-version", header))
}

/// Every revision is served by what its header says, and without one it is 2025-03-26.
// covers: H-43, DU-12, DU-17, S3.60, S3.61, S4.2, S4.4, B-29..B-31
#[tokio::test]
async fn the_header_names_the_revision() {
    let service = Demo::default().service();
    for version in LEGACY {
        let answer = Post::legacy_tool(Some(version), "revision").json(&service, 200).await;
        assert_eq!(tool_text(&answer), version);
        assert_eq!(answer["result"].get("resultType"), None, "{version} has none");
    }
    let answer = Post::legacy_tool(None, "revision").json(&service, 200).await;
    assert_eq!(tool_text(&answer), "2025-03-26");
    let answer = Post::tool("revision", json!({})).json(&service, 200).await;
    assert_eq!(tool_text(&answer), "2026-07-28");
    let answer = Post::legacy_tool(Some("2024-01-01"), "revision").json(&service, 400).await;
    assert_eq!(error_code(&answer), -32022);
}

/// The handshake is answered for each revision, without a session, and nothing depends on it.
// covers: DU-11, S3.61, S4.13, S4.16
#[tokio::test]
async fn the_handshake_is_answered() {
    let service = Demo::default().service();
    for version in LEGACY {
        for header in [None, Some(version)] {
            let answer = initialize(header, version).json(&service, 200).await;
            assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
            assert_eq!(answer["result"]["serverInfo"]["name"], "demo");
            let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            let told = Post::message(told);
            let told = header.into_iter().fold(told, |told, header| told.header("mcp-protocol-version", header));
            let mut reply = told.to(&service).await;
            assert_eq!((reply.status.as_u16(), reply.rest().await.as_str()), (202, ""));
        }
    }
    // What is not known gets a counter-offer.
    let answer = initialize(None, "1999-01-01").json(&service, 200).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    Post::legacy(Some("2025-06-18"), "ping", json!({})).json(&service, 200).await;
}

/// There is nothing to GET and nothing to DELETE, with or without a session id.
// covers: H-30, DU-19, S3.40, S4.16, B-21, B-100, RB-31
#[tokio::test]
async fn only_posts_are_served() {
    let service = Demo::default().service();
    for verb in [Method::GET, Method::DELETE, Method::PUT, Method::OPTIONS, Method::HEAD, Method::PATCH] {
        for post in [Post::legacy(Some("2025-06-18"), "ping", json!({})), Post::tool("hello", json!({}))] {
            let post = post.verb(verb.clone()).header("mcp-session-id", "abc").header("accept", "text/event-stream");
            let reply = post.header("last-event-id", "1").to(&service).await;
            assert_eq!((reply.status.as_u16(), reply.header("allow")), (405, Some("POST")), "{verb}");
        }
    }
}

/// Batches are served where the revision has them, and their answers are an array.
// covers: B-109, B-110, DU-20, RB-6
#[tokio::test]
async fn batches_are_served_where_they_exist() {
    let service = Demo::default().service();
    let text = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},
        {"jsonrpc":"2.0","method":"notifications/initialized"},
        {"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"hello"}},
        {"jsonrpc":"2.0","id":3,"method":"no/such"}]"#;
    for header in [None, Some("2025-03-26")] {
        let answers = batch(header, text).json(&service, 200).await;
        let mut ids: Vec<String> =
            answers.as_array().expect("an array").iter().map(|one| one["id"].to_string()).collect();
        ids.sort_unstable();
        assert_eq!(ids, ["\"b\"", "1", "3"], "{answers}");
        let silent = r#"[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","method":"x"}]"#;
        let mut reply = batch(header, silent).to(&service).await;
        assert_eq!((reply.status.as_u16(), reply.rest().await.as_str()), (202, ""));
        assert_eq!(error_code(&batch(header, "[]").json(&service, 400).await), -32600);
    }
    for header in ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let answer = batch(Some(header), text).json(&service, 400).await;
        assert_eq!(error_code(&answer), -32600, "{header}");
    }
    let modern = Post::tool("hello", json!({})).content();
    for mixed in [format!("[{modern}]"), format!(r#"[{{"jsonrpc":"2.0","id":9,"method":"ping"}},{modern}]"#)] {
        let answer = batch(None, &mixed).json(&service, 400).await;
        assert_eq!(error_code(&answer), -32600, "no modern request travels in a batch");
    }
}

/// What is said while a batch is worked on makes a stream, which ends with all of its answers.
// covers: B-109, B-110
#[tokio::test]
async fn batches_may_be_streams() {
    let demo = Demo::default();
    let service = demo.service();
    let call = |id: u8, name: &str| {
        let params = json!({ "name": name, "_meta": { "progressToken": id } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let text = json!([call(1, "report"), call(2, "wait"), call(3, "hello")]).to_string();
    let mut reply = batch(None, &text).to(&service).await;
    for _ in 0..2 {
        assert_eq!(reply.event().await["params"]["progressToken"], 1);
    }
    assert!(reply.poll_frame().await.is_pending(), "one is still at work");
    demo.gate.open();
    let events = reply.events().await;
    let answers: usize = events.iter().map(|event| event.as_array().map_or(1, Vec::len)).sum();
    assert_eq!(answers, 3, "{events:?}");
}

/// A client without a session is not asked, and whoever wrote the tool is told why.
// covers: H-17, S4.3, S4.17, S4.22, DU-26
#[tokio::test]
async fn nobody_is_asked() {
    let asking = tool("ask_all", async |ctx: RequestContext, _: NoArguments| {
        let ping = ctx.connection().ping().await.expect_err("no session");
        let roots = ctx.list_roots("roots").await.expect_err("no session");
        format!("{ping:?}|{roots:?}")
    });
    let demo = Demo::default();
    let service = HttpService::new(server(|builder| demo.tools(builder).tool(asking)));
    for version in LEGACY {
        let answer = Post::legacy_tool(Some(version), "ask_all").json(&service, 200).await;
        let reasons = tool_text(&answer).matches("server-to-client requests need a session").count();
        assert_eq!(reasons, 2, "{answer}");
        let answer = Post::legacy_tool(Some(version), "ask").json(&service, 200).await;
        assert!(answer.to_string().contains("no request can be sent to the client"), "{answer}");
    }
}

/// Two requests share nothing but the server, whatever one says before the other.
// covers: S3.1, S3.20, S4.14, S4.19, S4.20, DU-12, RB-42, Z-3
#[tokio::test]
async fn requests_share_nothing() {
    let count = tool("count", |ctx: RequestContext, _: NoArguments| {
        let seen = ctx.connection().scratch().is_ok();
        let caps = serde_json::to_value(ctx.capabilities()).expect("JSON");
        std::future::ready(format!("{seen} {caps} {}", ctx.client_info().is_some()))
    });
    let service = HttpService::new(server(|builder| builder.tool(count)));
    initialize(None, "2025-11-25").json(&service, 200).await;
    for _ in 0..3 {
        let answer = Post::legacy_tool(Some("2025-11-25"), "count").json(&service, 200).await;
        assert_eq!(tool_text(&answer), "false {} false", "neither the handshake nor the call before is known");
        let modern =
            Post::tool("count", json!({})).meta("io.modelcontextprotocol/clientCapabilities", json!({ "roots": {} }));
        assert_eq!(tool_text(&modern.json(&service, 200).await), r#"false {"roots":{}} false"#);
    }
}

/// Without a session there is nowhere to keep a level: logging is not declared, and a level is not taken.
// covers: MIS-11, Y-1, B-41
#[tokio::test]
async fn mis_11_there_is_no_logging_without_a_session() {
    let log = tool("log", async |ctx: RequestContext, _: NoArguments| {
        ctx.log(LoggingLevel::Emergency, "nobody asked");
        "logged"
    });
    let service = HttpService::new(server(|builder| builder.tool(log)));
    for version in LEGACY {
        let declared = initialize(None, version).json(&service, 200).await["result"]["capabilities"].take();
        assert!(declared["tools"].is_object() && declared["logging"].is_null(), "{declared}");
        let level = Post::legacy(Some(version), "logging/setLevel", json!({ "level": "debug" }));
        let refused = level.to(&service).await.rest().await;
        assert!(refused.contains("-32601") && refused.contains("session"), "{refused}");
        let answer = Post::legacy_tool(Some(version), "log").json(&service, 200).await;
        assert_eq!(tool_text(&answer), "logged", "it is one object, without a log message before it");
    }
}

/// Without a session nobody is told of changes unasked.
// covers: S4.3, S4.18, DU-25
#[tokio::test]
async fn nobody_is_told_unasked() {
    let demo = Demo::default();
    let server = demo.server();
    let service = HttpService::new(server.clone());
    let mut pending = Post::legacy_tool(Some("2025-06-18"), "wait").send(&service);
    pending.starts().await;
    server.publish(&Change::Tools);
    pending.starts().await;
    demo.gate.open();
    assert_eq!(tool_text(&pending.reply().await.json(200).await), "waited");
}

/// Legacy requests get JSON or streams as modern ones do, with the statuses of their era.
// covers: H-14, S3.28, DU-12, DU-25
#[tokio::test]
async fn answers_follow_their_era() {
    let service = Demo::default().service();
    for version in LEGACY {
        let mut reply = Post::legacy_tool(Some(version), "report").token().to(&service).await;
        assert_eq!(reply.events().await.len(), 3, "{version}");
        let answer = Post::legacy(Some(version), "no/such", json!({})).json(&service, 200).await;
        assert_eq!(error_code(&answer), -32601, "404 would say that a session is gone");
        let answer = Post::legacy(Some(version), "tools/call", json!({})).json(&service, 200).await;
        assert_eq!(error_code(&answer), -32602);
    }
    let (one, two) = tokio::join!(
        Post::legacy(Some("2025-06-18"), "no/such", json!({})).to(&service),
        Post::modern("no/such", json!({})).to(&service)
    );
    assert_eq!((one.status.as_u16(), two.status.as_u16()), (200, 404));
}

/// Metadata that is not the envelope's does not make a request modern.
// covers: DU-13, DU-17
#[tokio::test]
async fn other_metadata_is_legacy() {
    let service = Demo::default().service();
    let post =
        Post::legacy_tool(Some("2025-06-18"), "revision").meta("io.modelcontextprotocol/clientCapabilities", json!({}));
    assert_eq!(tool_text(&post.json(&service, 200).await), "2025-06-18");
    let post = Post::legacy_tool(Some("2025-06-18"), "revision").header("mcp-method", "something/else");
    assert_eq!(tool_text(&post.json(&service, 200).await), "2025-06-18", "headers of another era mean nothing");
}
