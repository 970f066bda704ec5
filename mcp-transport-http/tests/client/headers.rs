//! What the headers of requests say.

use http::{HeaderName, HeaderValue};
use mcp_client::types::Revision;
use mcp_client::{DetectedRevision, Error};
use mcp_testkit::envelope::tool_result;
use serde_json::json;

use crate::scripted::{Reply, Scripted, answer, builder, call, legacy, legacy_builder, modern, shake_hands, within};

/// Modern requests repeat what they say, to the address as it is, with what the application adds.
// covers: H-8, H-9, H-40, H-41, H-46, H-47, H-49, S4.61, RB-42
#[tokio::test]
async fn modern_requests_repeat_what_they_say() {
    let server = Scripted::start(modern(|seen| Reply::json(&answer(seen, &tool_result("x"))))).await;
    let transport = mcp_transport_http::HttpTransport::new(format!("{}?tenant=1", server.origin())).unwrap();
    let own = (HeaderName::from_static("x-own"), HeaderValue::from_static("1"));
    let accept = (HeaderName::from_static("accept"), HeaderValue::from_static("text/html"));
    let client = server.connect(transport.header(own.0, own.1).header(accept.0, accept.1)).await.unwrap();
    for name in ["plain", "grüß"] {
        within(client.call_tool(name).arguments(&json!({}))).await.unwrap();
    }
    for seen in server.seen() {
        assert_eq!(seen.path, "/?tenant=1");
        assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"));
        assert_eq!(seen.header("content-type"), Some("application/json"));
        assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(seen.header("mcp-method"), seen.body["method"].as_str());
        assert_eq!(seen.header("mcp-session-id"), None);
        assert_eq!(seen.header("x-own"), Some("1"));
        assert_eq!(seen.body["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "test");
    }
    let names: Vec<_> = server.seen().iter().map(|seen| seen.header("mcp-name").map(str::to_owned)).collect();
    assert_eq!(names, [None, Some("plain".to_owned()), Some("=?base64?Z3LDvMOf?=".to_owned())]);
}

/// What the application adds is in every request of every kind; what the protocol says for itself it cannot say, not
/// even where the protocol says nothing.
// covers: S4.61
#[tokio::test]
async fn headers_of_the_protocol_are_its_own() {
    let ours = [
        "accept",
        "content-type",
        "content-length",
        "transfer-encoding",
        "last-event-id",
        "mcp-protocol-version",
        "mcp-session-id",
        "mcp-method",
        "mcp-name",
        "mcp-param-x",
    ];
    let with_all = |server: &Scripted| {
        let transport = server.transport().header(HeaderName::from_static("x-own"), HeaderValue::from_static("1"));
        ours.iter().fold(transport, |transport, name| {
            transport.header(HeaderName::from_static(name), HeaderValue::from_static("777"))
        })
    };
    let server = Scripted::start(legacy(|seen| match seen.verb.as_str() {
        "POST" => Reply::json(&answer(seen, &tool_result("x"))),
        _ => Reply::status(405),
    }))
    .await;
    let client = within(builder().connect(with_all(&server))).await.unwrap();
    call(&client).await.unwrap();
    server.until(|seen| seen.iter().any(|seen| seen.verb == "GET")).await;
    within(client.close()).await;
    let methods = server.methods();
    assert!(
        ["server/discover", "initialize", "GET", "DELETE"].iter().all(|method| methods.contains(&(*method).into()))
    );
    for seen in server.seen() {
        assert_eq!(seen.header("x-own"), Some("1"), "{seen:?}");
        assert!(seen.headers.values().all(|value| value != "777"), "{seen:?}");
    }
}

/// Tools that break the rules are left out; a server that wants other parameters in headers than it did is asked again
/// what it wants, once.
// covers: H-67, H-80, H-81, S3.F3
#[tokio::test]
async fn headers_follow_the_latest_tools() {
    let mut lists = 0;
    let server = Scripted::start(modern(move |seen| match seen.method() {
        "tools/list" => {
            lists += 1;
            let tool = |name: &str, kind: &str, header: &str| {
                let property = json!({ "type": kind, "x-mcp-header": header });
                json!({ "name": name, "inputSchema": { "type": "object", "properties": { "p": property } } })
            };
            let tools = [tool("t", "boolean", if lists == 1 { "Old" } else { "New" }), tool("bad", "object", "Bad")];
            let result = json!({ "resultType": "complete", "ttlMs": 60_000, "cacheScope": "private", "tools": tools });
            Reply::json(&answer(seen, &result))
        }
        _ if seen.body["params"]["arguments"]["p"] == true && seen.header("mcp-param-new") == Some("true") => {
            Reply::json(&answer(seen, &tool_result("x")))
        }
        _ => {
            let error = json!({ "code": -32020, "message": "headers" });
            let body = json!({ "jsonrpc": "2.0", "id": seen.body["id"], "error": error }).to_string();
            Reply::new(400, &[("content-type", "application/json")], &body)
        }
    }))
    .await;
    let client = server.client().await;
    let tools = within(client.tools().all()).await.unwrap();
    assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["t"]);
    within(client.call_tool("t").arguments(&json!({ "p": true }))).await.unwrap();
    assert_eq!(server.methods()[1..], ["tools/list", "tools/call", "tools/list", "tools/call"]);
    let error = within(client.call_tool("t").arguments(&json!({ "p": false }))).await.unwrap_err();
    assert!(
        matches!(&error, Error::Rejected(error) if error.code == mcp_client::types::ErrorCode::HEADER_MISMATCH),
        "{error:?}"
    );
    assert_eq!(server.methods()[5..], ["tools/call", "tools/list", "tools/call"]);
}

/// Parameters are repeated as their tool wants it.
// covers: H-61, H-70..H-73
#[tokio::test]
async fn parameters_are_repeated() {
    let server = Scripted::start(modern(|seen| match seen.method() {
        "tools/list" => {
            let marked = |kind: &str, name: &str| json!({ "type": kind, "x-mcp-header": name });
            let properties = json!({ "region": marked("string", "Region"), "n": marked("integer", "N") });
            let tool = json!({ "name": "t", "inputSchema": { "type": "object", "properties": properties } });
            let result = json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [tool] });
            Reply::json(&answer(seen, &result))
        }
        _ => Reply::json(&answer(seen, &tool_result("x"))),
    }))
    .await;
    let client = server.client().await;
    within(client.list_tools(None)).await.unwrap();
    within(client.call_tool("t").arguments(&json!({ "region": " eu\r\nx: y", "n": 7, "other": "z" }))).await.unwrap();
    let seen = server.seen().pop().unwrap();
    assert_eq!(seen.header("mcp-param-region"), Some("=?base64?IGV1DQp4OiB5?="));
    assert_eq!(seen.header("mcp-param-n"), Some("7"));
    assert_eq!(seen.headers.keys().filter(|name| name.starts_with("mcp-param-")).count(), 2);
}

/// Legacy requests name the session, and the revision if it has a header for that; the handshake names neither, and
/// nothing names what only modern servers know.
// covers: B-29, B-35, B-102, DU-44, S4.5, S4.50
#[tokio::test]
async fn legacy_requests_name_the_session() {
    for (revision, has_header) in
        [(Revision::V2025_03_26, false), (Revision::V2025_06_18, true), (Revision::V2025_11_25, true)]
    {
        let server = Scripted::start(legacy(|seen| match seen.verb.as_str() {
            "POST" => Reply::json(&answer(seen, &tool_result("x"))),
            _ => Reply::status(405),
        }))
        .await;
        let client = within(legacy_builder().revisions([revision]).connect(server.transport())).await.unwrap();
        assert_eq!(client.session_id().as_deref(), Some("s1"));
        call(&client).await.unwrap();
        server.until(|seen| seen.iter().any(|seen| seen.verb == "GET")).await;
        within(client.close()).await;
        let mut verbs = Vec::new();
        for seen in server.seen() {
            let is_handshake = seen.method() == "initialize";
            let version = (has_header && !is_handshake).then(|| revision.as_str());
            assert_eq!(seen.header("mcp-protocol-version"), version, "{seen:?}");
            assert_eq!(seen.header("mcp-session-id"), (!is_handshake).then_some("s1"), "{seen:?}");
            assert!(seen.header("mcp-method").is_none() && seen.header("mcp-name").is_none());
            verbs.push(seen.verb);
        }
        verbs.sort();
        assert_eq!(verbs, ["DELETE", "GET", "POST", "POST", "POST"]);
    }
}

/// What cannot be a header is an error that says so: ids of sessions from servers, or from somewhere else.
#[tokio::test]
async fn nothing_is_smuggled_into_headers() {
    let server = Scripted::start(|seen| {
        let kind = "content-type: application/json\r\nmcp-session-id: s\u{e9} 1\r\n";
        let body = shake_hands(seen).to_string();
        Reply::raw(format!("HTTP/1.1 200 OK\r\n{kind}content-length: {}\r\n\r\n{body}", body.len()))
    })
    .await;
    let error = within(legacy_builder().connect(server.transport())).await.unwrap_err();
    assert!(error.to_string().contains("not visible ASCII"), "{error}");

    let server = Scripted::start(legacy(|_| Reply::status(405))).await;
    let client = within(legacy_builder().connect(server.transport())).await.unwrap();
    let mut session = client.save_session().unwrap();
    session.id = "a\r\nx: y".to_owned();
    let before = server.seen().len();
    let refused = within(legacy_builder().resume_session(session).connect(server.transport())).await;
    // The client is ready without a word of the server, so the error may come with the first call.
    let error = match refused {
        Ok(client) => call(&client).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(error.to_string().contains("characters that are not allowed in a header"), "{error}");
    assert!(server.seen().len() <= before + 1, "nothing but the stream of the first client");

    let server = Scripted::start(modern(|seen| Reply::json(&answer(seen, &tool_result("x"))))).await;
    let client =
        within(builder().detected_revision(DetectedRevision::new(Revision::V2026_07_28)).connect(server.transport()))
            .await
            .unwrap();
    let error = within(client.request::<serde_json::Value>("a\r\nx: y", &json!({}))).await.unwrap_err();
    assert!(matches!(&error, Error::Interrupted(why) if why.contains("not allowed in a header")), "{error:?}");
    assert!(mcp_transport_http::HttpTransport::new("ftp://x").is_err());
    assert!(mcp_transport_http::HttpTransport::new("no address").is_err());
}
