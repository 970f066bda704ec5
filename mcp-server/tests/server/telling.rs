//! What a handler tells its client while it works: progress, log messages, and what extensions define.

use mcp_server::types::meta::key::LOG_LEVEL;
use mcp_server::types::{LoggingLevel, Method, Number, Revision};
use mcp_server::{Connection, NoArguments, Progress, RequestContext, Server, tool};
use mcp_testkit::{Notes, ScriptedClient};
use serde_json::{Value, json};

use crate::servers::{LEGACY, MODERN, server};

fn working() -> Server {
    let work = tool("work", async |ctx: RequestContext, _: NoArguments| {
        ctx.progress(0.5);
        ctx.progress(0.5);
        ctx.progress(0.25);
        ctx.progress((1, 4));
        ctx.progress(Progress::new(2).total(4.5).message("copying"));
        ctx.progress(3_u64);
        ctx.progress_token().map(|token| format!("{token:?}")).unwrap_or_default()
    });
    server(|server| server.tool(work))
}

/// Without a token nobody hears of progress.
// covers: S2.12
#[test]
fn progress_needs_a_token() {
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&working(), revision);
        assert_eq!(client.call_tool_text("work", json!({})), "");
        client.assert_quiet();
    }
}

/// Progress grows, in whole numbers and fractions, with what the revision knows, ahead of the answer.
// covers: S2.12, S2.13
#[test]
fn progress_grows() {
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&working(), revision);
        let id = client.start("tools/call", json!({ "name": "work", "_meta": { "progressToken": "tok" } }));
        let mut heard = Vec::new();
        for _ in 0..4 {
            let mut params = client.expect_message("notifications/progress")["params"].take();
            assert_eq!(params["progressToken"], "tok");
            params.as_object_mut().unwrap().remove("progressToken");
            heard.push(params);
        }
        let mut copying = json!({ "progress": 2, "total": 4.5 });
        if revision >= Revision::V2025_03_26 {
            copying["message"] = json!("copying");
        }
        let expected =
            [json!({ "progress": 0.5 }), json!({ "progress": 1, "total": 4 }), copying, json!({ "progress": 3 })];
        assert_eq!(heard, expected, "{revision}");
        client.response_to(id);
        client.assert_quiet();
    }
    assert_eq!(Progress::from((1, 2)), Progress::new(Number::from(1)).total(2));
}

fn logging() -> Server {
    let log = tool("log", async |ctx: RequestContext, _: NoArguments| {
        ctx.log(LoggingLevel::Debug, "fine print");
        ctx.log(LoggingLevel::Info, &json!({ "step": 1 }));
        ctx.log_as("disk", LoggingLevel::Error, &Value::Null);
        ctx.connection().log(LoggingLevel::Alert, "for all");
    });
    server(|server| server.tool(log))
}

fn logged(client: &mut ScriptedClient) -> Vec<Value> {
    let mut logged = Vec::new();
    while client.unread() > 0 {
        logged.push(client.expect_message("notifications/message")["params"].take());
    }
    logged
}

/// A modern request sets its own level; without one there is no log at all.
// covers: S0.18, S1.35, S2.14..S2.17, Y-2, Y-3, S3.23, RB-18
#[test]
fn modern_requests_set_their_level() {
    let mut client = ScriptedClient::new(&logging(), MODERN);
    client.call_tool("log", json!({}));
    client.assert_quiet();
    let mut with_level = |level: &str| {
        client.result("tools/call", json!({ "name": "log", "_meta": { LOG_LEVEL: level } }));
        logged(&mut client)
    };
    let info = json!({ "level": "info", "data": { "step": 1 } });
    let error = json!({ "level": "error", "logger": "disk", "data": null });
    assert_eq!(with_level("debug"), [json!({ "level": "debug", "data": "fine print" }), info.clone(), error.clone()]);
    assert_eq!(with_level("info"), [info, error.clone()]);
    assert_eq!(with_level("error"), [error]);
    assert_eq!(with_level("critical"), [Value::Null; 0]);
    client.error("tools/call", json!({ "name": "log", "_meta": { LOG_LEVEL: "loud" } }), -32602);
}

/// A legacy client sets the level of its connection, which starts at `info`.
// covers: S0.18, S0.23, S1.35, S2.15
#[test]
fn legacy_clients_set_the_level_of_the_connection() {
    for revision in LEGACY {
        let mut client = ScriptedClient::new(&logging(), revision);
        let mut levels = || {
            client.call_tool("log", json!({}));
            logged(&mut client).iter().map(|params| params["level"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(levels(), ["info", "error", "alert"]);
        client.result("logging/setLevel", json!({ "level": "debug" }));
        let mut levels = || {
            client.call_tool("log", json!({}));
            logged(&mut client).len()
        };
        assert_eq!(levels(), 4);
        client.result("logging/setLevel", json!({ "level": "emergency" }));
        client.call_tool("log", json!({}));
        client.assert_quiet();
        client.error("logging/setLevel", json!({ "level": "loud" }), -32602);
    }
}

/// A server that does not declare logging does not log.
// covers: S2.15, Y-1
#[test]
fn silent_servers_do_not_log() {
    let log = tool("log", async |ctx: RequestContext, _: NoArguments| ctx.log(LoggingLevel::Emergency, "fire"));
    let server = server(|server| server.without_logging().tool(log));
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        client.result("tools/call", json!({ "name": "log", "_meta": { LOG_LEVEL: "debug" } }));
        client.assert_quiet();
    }
}

/// Notifications of an extension go with the request or the connection; without a way they vanish.
// covers: S1.1, S1.7, S1.10, S1.21, S1.33, S2.3
#[test]
fn anything_can_be_told() {
    let notes = Notes::default();
    let kept = notes.clone();
    let tell = tool("tell", move |ctx: RequestContext, _: NoArguments| {
        let notes = kept.clone();
        async move {
            let (news, own) = (Method::from("notifications/news"), Method::NOTIFICATIONS_PROGRESS);
            notes.add(ctx.notify(&news, &json!({ "of": "the request" })).to_string());
            notes.add(ctx.notify(&own, &json!({})).to_string());
            notes.add(ctx.notify(&news, &json!([])).to_string());
            ctx.connection().notify(&news, &json!({ "of": "the connection" }));
            ctx.connection().notify(&own, &json!({}));
            ctx.connection().notify(&news, &json!(1));
        }
    });
    let server = server(|server| server.tool(tell));
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        client.start("tools/call", json!({ "name": "tell" }));
        assert_eq!(client.expect_message("notifications/news")["params"], json!({ "of": "the request" }));
        if revision != MODERN {
            assert_eq!(client.expect_message("notifications/news")["params"], json!({ "of": "the connection" }));
        }
        assert_eq!(client.methods(), ["response"], "{revision}");
        assert_eq!(notes.take(), ["true", "false", "false"]);
    }
    let mut single =
        ScriptedClient::on_connection(Connection::legacy_request(&server, LEGACY[0]), LEGACY[0], json!({}));
    single.start("tools/call", json!({ "name": "tell" }));
    assert_eq!(single.methods(), ["notifications/news", "response"]);
}
