//! Parameters that are repeated in headers.

use mcp_server::types::RawObject;
use mcp_server::types::meta::key::CLIENT_CAPABILITIES;
use mcp_server::{Principal, RequestContext, Server, ServerBuilder, Tool, raw_tool};
use mcp_testkit::envelope::{error_code, tool_text};
use mcp_transport_http::HttpService;
use serde_json::{Value, json};

use crate::demo::server;
use crate::raw_http::Post;

fn schema(properties: Value) -> RawObject {
    serde_json::from_value(json!({ "type": "object", "properties": properties })).expect("a schema")
}

fn query(properties: Value) -> Tool {
    raw_tool("query", schema(properties), async |_: RequestContext, _: RawObject| "done")
}

fn regional() -> Server {
    let properties = json!({
        "region": { "type": "string", "x-mcp-header": "Region" },
        "limits": { "type": "object", "properties": { "rows": { "type": "integer", "x-mcp-header": "Rows" } } },
        "dry": { "type": "boolean", "x-mcp-header": "Dry" },
        "text": { "type": "string" },
    });
    server(|builder| builder.tool(query(properties)))
}

fn call(arguments: Value, headers: &[(&str, &str)]) -> Post {
    let post = Post::tool("query", arguments);
    headers.iter().fold(post, |post, (name, value)| post.header(&format!("mcp-param-{name}"), value))
}

/// A marked parameter is in its header, or the call is refused.
// covers: H-53, H-54, H-60, H-70, H-74, H-75, H-77..H-79, S3.F3
#[tokio::test]
async fn marked_parameters_are_repeated() {
    let service = HttpService::new(regional());
    for (arguments, headers) in [
        (json!({}), &[][..]),
        (json!({ "region": null, "text": "x" }), &[]),
        (json!({ "region": "eu" }), &[("Region", "eu")]),
        (json!({ "region": "grün" }), &[("Region", "=?base64?Z3LDvG4=?=")]),
        (json!({ "limits": { "rows": 42 } }), &[("rows", "42.0")]),
        (json!({ "dry": true, "region": "" }), &[("DRY", "true"), ("region", "")]),
        (json!({ "region": "eu" }), &[("region", "eu"), ("other", "unknown ones are ignored")]),
    ] {
        // Whether the tool likes its arguments is another matter.
        assert!(call(arguments, headers).json(&service, 200).await["result"].is_object());
    }
    for (arguments, headers) in [
        (json!({ "region": "eu" }), &[][..]),
        (json!({ "region": "eu" }), &[("region", "us")]),
        (json!({ "region": "eu" }), &[("region", "=?base64?ZXU?=")]),
        (json!({ "region": "grün" }), &[("region", "gr\u{fc}n")]),
        (json!({}), &[("region", "eu")]),
        (json!({ "limits": { "rows": 42 } }), &[("rows", "43")]),
        (json!({ "dry": false }), &[("dry", "0")]),
    ] {
        let answer = call(arguments, headers).id(json!("q")).json(&service, 400).await;
        assert_eq!((error_code(&answer), &answer["id"]), (-32020, &json!("q")));
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("Mcp-Param-")), "{answer}");
    }
}

/// What is wrong otherwise is refused for that, and legacy clients know no such headers.
// covers: S3.F3, H-55
#[tokio::test]
async fn parameters_are_looked_at_last() {
    let service = HttpService::new(regional());
    let wrong = || call(json!({ "region": "eu" }), &[]);
    assert_eq!(error_code(&wrong().meta(CLIENT_CAPABILITIES, Value::Null).json(&service, 400).await), -32602);
    assert_eq!(error_code(&wrong().header("mcp-protocol-version", "v999").json(&service, 400).await), -32020);
    let named = wrong().header("mcp-name", "other").json(&service, 400).await;
    assert!(named["error"]["message"].as_str().is_some_and(|text| text.contains("Mcp-Name")), "{named}");
    let legacy =
        Post::legacy(Some("2025-11-25"), "tools/call", json!({ "name": "query", "arguments": { "region": "eu" } }));
    assert_eq!(tool_text(&legacy.json(&service, 200).await), "done");
}

/// What counts is the tool as it is now.
// covers: S3.F3
#[tokio::test]
async fn changes_of_tools_count_at_once() {
    let server = regional();
    let service = HttpService::new(server.clone());
    let plain = || call(json!({ "region": "eu" }), &[]);
    plain().json(&service, 400).await;
    let replace = |properties: Value| {
        let updated = server.update(|registry| {
            registry.remove_tool("query");
            registry.add_tool(query(properties))
        });
        updated.expect("an update");
    };
    replace(json!({ "region": { "type": "string" } }));
    assert_eq!(tool_text(&plain().json(&service, 200).await), "done");
    replace(json!({ "region": { "type": "string", "x-mcp-header": "Place" } }));
    plain().json(&service, 400).await;
    assert_eq!(tool_text(&plain().header("mcp-param-place", "eu").json(&service, 200).await), "done");
}

/// A tool with a header that cannot be is not taken.
// covers: H-83
#[test]
fn impossible_headers_are_not_taken() {
    for name in ["", "a b", "gr\u{fc}n", "a:b"] {
        let properties = json!({ "region": { "type": "string", "x-mcp-header": name } });
        let built = Server::builder("demo", "1.0").tool(query(properties)).build();
        assert!(built.is_err(), "{name:?}");
    }
}

/// Arguments in which the value is hard to find are no way around the check.
// covers: S3.F3, H-77
#[tokio::test]
async fn the_check_fails_closed() {
    let service = HttpService::new(regional());
    let mut crowded = serde_json::Map::new();
    crowded.extend((0..2000).map(|number| (format!("x{number}"), json!(0))));
    crowded.insert("region".into(), json!("eu"));
    let answer = call(crowded.clone().into(), &[]).json(&service, 400).await;
    assert_eq!(error_code(&answer), -32020);
    let answer = call(crowded.into(), &[("region", "eu")]).json(&service, 200).await;
    assert!(answer["result"].is_object(), "{answer}");
}

/// The parameters of a tool that a user cannot see are not compared, so that their headers do not reveal it. For those who can
/// see it, they are.
// covers: AUT-4, H-77
#[tokio::test]
async fn aut_4_parameters_do_not_reveal_hidden_tools() {
    let alice = Principal::new(None, "alice");
    let properties = json!({ "region": { "type": "string", "x-mcp-header": "Region" } });
    let visible = alice.clone();
    let secret = query(properties).visible(move |viewer| viewer.principal() == Some(&visible));
    let with = HttpService::new(server(|builder| builder.offers_tools().tool(secret)));
    let without = HttpService::new(server(ServerBuilder::offers_tools));
    for headers in [&[][..], &[("region", "us")], &[("region", "eu")]] {
        let call = || call(json!({ "region": "eu" }), headers);
        let hidden = call().json(&with, 200).await;
        assert_eq!(hidden, call().json(&without, 200).await, "the same response as if there was no such tool");
        assert_eq!(error_code(&hidden), -32602);
        let fits = headers == [("region", "eu")];
        let seen = call().extension(alice.clone()).json(&with, if fits { 200 } else { 400 }).await;
        if fits {
            assert_eq!(tool_text(&seen), "done");
        } else {
            assert_eq!(error_code(&seen), -32020);
        }
    }
}
