//! Tools, prompts and resources from raw definitions, with raw handlers.

use std::sync::{Arc, Mutex};

use mcp_server::types::{ErrorObject, RawObject, Revision};
use mcp_server::{
    BuildError, NoArguments, Outcome, Prompt, Registry, RequestContext, Resource, Response, Server, Template, Tool,
    middleware, tool,
};
use mcp_testkit::{Notes, ScriptedClient};
use serde_json::{Value, json};

use crate::servers::{LEGACY, MODERN, refused, server};
use crate::visibility::{client_of, principal};

fn raw(value: &Value) -> RawObject {
    RawObject::new(value).expect("an object")
}

type Params = Arc<Mutex<Vec<Value>>>;

/// A handler that keeps its parameters, and returns a result.
fn returns(
    result: Value,
    params: &Params,
) -> impl Fn(RequestContext, RawObject) -> std::future::Ready<Result<RawObject, ErrorObject>> + Send + Sync + use<> {
    let params = Arc::clone(params);
    move |_, given| {
        params.lock().expect("no panic").push(given.to_value().expect("JSON"));
        std::future::ready(Ok(raw(&result)))
    }
}

/// The definition of a tool of another server, with members of several revisions and one of none.
fn definition() -> Value {
    json!({ "x-rank": 1, "name": "search", "title": "Search", "inputSchema": { "type": "object", "z": 1, "a": 2 },
        "annotations": { "readOnlyHint": true, "x-hint": 1 }, "execution": { "taskSupport": "optional" },
        "icons": [{ "src": "https://example.com/a.png", "x": 1 }], "_meta": { "com.example/a": 1 } })
}

/// What of the definition a revision has.
fn known(revision: Revision) -> Value {
    let mut expected = definition();
    let mut without = |members: &[&str]| {
        for member in members {
            expected.as_object_mut().expect("an object").remove(*member);
        }
    };
    match revision {
        Revision::V2024_11_05 => without(&["title", "annotations", "execution", "icons", "_meta"]),
        Revision::V2025_03_26 => without(&["title", "execution", "icons", "_meta"]),
        Revision::V2025_06_18 => without(&["execution", "icons"]),
        Revision::V2025_11_25 => {}
        Revision::V2026_07_28 | _ => without(&["execution"]),
    }
    expected
}

fn everything(params: &Params) -> Server {
    let content = json!({ "content": [{ "type": "text", "text": "hi", "x": 1 }], "y": 2, "_meta": {} });
    let messages =
        json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "hi", "x": 1 } }], "y": 2 });
    let contents =
        json!({ "contents": [{ "uri": "a:b", "text": "hi", "x": 1 }], "y": 2, "ttlMs": 7, "cacheScope": "public" });
    server(|server| {
        server
            .tool(Tool::from_raw(raw(&definition()), returns(content, params)))
            .tool(tool("typed", async |_, _: NoArguments| "done"))
            .prompt(Prompt::from_raw(
                raw(&json!({ "name": "ask", "arguments": [{ "name": "a", "required": true, "x": 1 }], "y": 2 })),
                returns(messages, params),
            ))
            .resource(Resource::from_raw(
                raw(&json!({ "name": "b", "uri": "a:b", "x": 1 })),
                returns(contents.clone(), params),
            ))
            .template(Template::from_raw(
                raw(&json!({ "name": "t", "uriTemplate": "t:{id}", "x": 1 })),
                returns(contents, params),
            ))
    })
}

/// Definitions are listed with all that they had, as far as the revision allows.
// covers: GW-9
#[test]
fn gw_9_definitions_keep_unknown_members() {
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let server = everything(&Params::default());
        let mut client = ScriptedClient::new(&server, revision);
        let result = client.result("tools/list", json!({}));
        assert_eq!(result["tools"][0], known(revision), "{revision}");
        assert_eq!(result["tools"][1]["name"], "typed");
        assert_eq!(result.get("ttlMs").is_some(), revision == MODERN);
        assert_eq!(result.get("resultType").is_some(), revision == MODERN);
        assert_eq!(result.get("_meta").is_some(), revision == MODERN, "{result}");
        for (method, member, expected) in [
            (
                "prompts/list",
                "prompts",
                json!({ "name": "ask", "arguments": [{ "name": "a", "required": true, "x": 1 }], "y": 2 }),
            ),
            ("resources/list", "resources", json!({ "name": "b", "uri": "a:b", "x": 1 })),
            ("resources/templates/list", "resourceTemplates", json!({ "name": "t", "uriTemplate": "t:{id}", "x": 1 })),
        ] {
            assert_eq!(client.result(method, json!({}))[member], json!([expected]), "{revision}: {method}");
        }
    }
}

/// Handlers get the parameters as they were sent, and their results are sent as they are, with what the revision demands.
// covers: GW-9
#[test]
fn gw_9_requests_and_results_are_forwarded() {
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let params = Params::default();
        let server = everything(&params);
        let mut client = ScriptedClient::new(&server, revision);
        for (method, sent, member, cached) in [
            ("tools/call", json!({ "name": "search", "arguments": { "q": 1.50 }, "x": [null] }), "content", false),
            ("prompts/get", json!({ "name": "ask", "y": 1 }), "messages", false),
            ("resources/read", json!({ "uri": "a:b", "x": 1 }), "contents", true),
            ("resources/read", json!({ "uri": "t:1" }), "contents", true),
        ] {
            let result = client.result(method, sent.clone());
            let mut given = params.lock().unwrap().pop().unwrap();
            assert_eq!(given.as_object_mut().unwrap().remove("_meta").is_some(), revision == MODERN);
            assert_eq!(given, sent);
            assert!(result[member][0].to_string().contains(r#""x":1"#), "{result}");
            assert_eq!(result["y"], 2);
            let is_modern = revision == MODERN;
            assert_eq!(result.get("_meta").is_some(), is_modern, "nothing is left of empty metadata: {result}");
            assert_eq!(result.get("resultType"), is_modern.then_some(&json!("complete")));
            assert_eq!(result.get("ttlMs"), (is_modern && cached).then_some(&json!(7)), "{revision} {method}");
        }
    }
}

/// A resource that does not exist elsewhere has the code of the client's era.
// covers: GW-9
#[test]
fn gw_9_not_found_is_translated() {
    for made_for in [Revision::V2025_06_18, MODERN] {
        let server = server(|server| {
            let missing = move |_: RequestContext, _: RawObject| {
                std::future::ready(Err(ErrorObject::resource_not_found(made_for, "t:1")))
            };
            server.template(Template::from_raw(raw(&json!({ "name": "t", "uriTemplate": "t:{id}" })), missing))
        });
        for (revision, code) in LEGACY.map(|revision| (revision, -32002)).into_iter().chain([(MODERN, -32602)]) {
            let error = ScriptedClient::new(&server, revision).error("resources/read", json!({ "uri": "t:1" }), code);
            assert_eq!(error["data"], json!({ "uri": "t:1" }));
        }
    }
}

/// Setters, prefixes and predicates hold for raw definitions, too.
// covers: GW-9
#[test]
fn gw_9_raw_items_can_be_changed() {
    let params = Params::default();
    let search = Tool::from_raw(raw(&definition()), returns(json!({ "content": [] }), &params)).description("Searches");
    let contents = json!({ "contents": [{ "uri": "a:b", "text": "" }], "cacheScope": "public", "ttlMs": 5 });
    let resource = Resource::from_raw(raw(&json!({ "name": "b", "uri": "a:b" })), returns(contents, &params));
    let resource = resource.mime_type("text/plain").visible(|viewer| viewer.principal() == Some(&principal("alice")));
    let server = server(|server| server.mount("web_", Registry::new().tool(search).resource(resource)));
    for revision in [Revision::V2025_11_25, MODERN] {
        let mut client = client_of(&server, revision, "alice");
        let mut expected = known(revision);
        (expected["name"], expected["description"]) = (json!("web_search"), json!("Searches"));
        assert_eq!(client.result("tools/list", json!({}))["tools"], json!([expected]));
        client.call_tool("web_search", json!({}));
        assert_eq!(params.lock().unwrap().pop().unwrap()["name"], "web_search");
        let read = client.result("resources/read", json!({ "uri": "a:b" }));
        assert_eq!(read.get("cacheScope"), (revision == MODERN).then_some(&json!("private")));
        assert_eq!(read["contents"][0]["mimeType"], "text/plain");
        client_of(&server, revision, "bob").call("resources/read", json!({ "uri": "a:b" }))["error"]
            .as_object()
            .unwrap();
    }
}

/// Input requests of a modern server reach clients of both eras, and so do their responses reach the server.
// covers: GW-9
#[test]
fn gw_9_input_requests_are_forwarded() {
    let input = json!({ "method": "elicitation/create", "params": { "mode": "form", "message": "Who?",
        "requestedSchema": { "type": "object", "properties": {} } } });
    let asks =
        json!({ "resultType": "input_required", "inputRequests": { "who": input }, "requestState": "s", "x": 1 });
    let params = Params::default();
    let kept = Arc::clone(&params);
    let server = server(|server| {
        let handler = move |_: RequestContext, given: RawObject| {
            let given = given.to_value().unwrap();
            let done = given.get("inputResponses").is_some();
            kept.lock().unwrap().push(given);
            let result = if done { json!({ "content": [] }) } else { asks.clone() };
            std::future::ready(Ok(raw(&result)))
        };
        server.tool(Tool::from_raw(raw(&definition()), handler))
    });
    let accepted = json!({ "action": "accept", "content": {} });
    let capabilities = json!({ "elicitation": { "form": {} } });
    let mut modern = ScriptedClient::with_capabilities(&server, MODERN, capabilities.clone());
    let asked = modern.result("tools/call", json!({ "name": "search" }));
    assert_eq!((&asked["resultType"], &asked["x"]), (&json!("input_required"), &json!(1)));
    let retry = json!({ "name": "search", "inputResponses": { "who": accepted }, "requestState": "s" });
    assert_eq!(modern.result("tools/call", retry)["content"], json!([]));
    let mut legacy = ScriptedClient::with_capabilities(&server, Revision::V2025_11_25, capabilities);
    let id = legacy.start("tools/call", json!({ "name": "search" }));
    let request = legacy.expect_message("elicitation/create");
    legacy.respond(&request, accepted.clone());
    assert_eq!(legacy.response_to(id)["result"]["content"], json!([]));
    let last = params.lock().unwrap().pop().unwrap();
    assert_eq!((&last["inputResponses"]["who"], &last["requestState"]), (&accepted, &json!("s")));
}

/// What only some users can read is not cached for others, with and without middleware, and whether or not it has the type of
/// its method.
// covers: GW-9
#[test]
fn gw_9_restricted_contents_are_private() {
    let contents = json!({ "contents": [{ "uri": "a:b", "text": "" }], "cacheScope": "public", "ttlMs": 5 });
    for result in [contents, json!({ "contents": 7, "cacheScope": "public", "ttlMs": 5 }), json!({ "y": 2 })] {
        let params = Params::default();
        let server = server(|server| {
            let passing = || middleware::from_fn(async |ctx, next| next.run(ctx).await);
            let resource = |uri: &str| {
                Resource::from_raw(raw(&json!({ "name": "b", "uri": uri })), returns(result.clone(), &params))
                    .visible(|viewer| viewer.principal().is_some())
            };
            let template = |uri: &str| {
                Template::from_raw(raw(&json!({ "name": "t", "uriTemplate": uri })), returns(result.clone(), &params))
                    .visible(|viewer| viewer.principal().is_some())
            };
            server
                .resources([resource("a:b"), resource("a:c").layer(passing())])
                .templates([template("t:{id}"), template("u:{id}").layer(passing())])
        });
        for revision in LEGACY.into_iter().chain([MODERN]) {
            let mut client = client_of(&server, revision, "alice");
            for uri in ["a:b", "a:c", "t:1", "u:1"] {
                let read = client.result("resources/read", json!({ "uri": uri }));
                let scope = (revision == MODERN).then_some("private");
                assert_eq!(read.get("cacheScope").and_then(Value::as_str), scope, "{revision} {uri}: {result}");
            }
        }
    }
}

/// Input requests of raw handlers are checked as those of others are.
// covers: GW-9
#[test]
fn gw_9_input_requests_are_checked() {
    let serving = |asks: Value| {
        server(|server| server.tool(Tool::from_raw(raw(&definition()), returns(asks, &Params::default()))))
    };
    let capabilities = json!({ "elicitation": { "form": {} } });
    let input = json!({ "method": "elicitation/create", "params": { "mode": "form", "message": "Who?",
        "requestedSchema": { "type": "object", "properties": {} } } });
    let server = serving(json!({ "resultType": "input_required", "inputRequests": { "who": input } }));
    let error = ScriptedClient::new(&server, MODERN).error("tools/call", json!({ "name": "search" }), -32021);
    assert_eq!(error["data"]["requiredCapabilities"], capabilities);
    let empty = serving(json!({ "resultType": "input_required" }));
    let mut client = ScriptedClient::with_capabilities(&empty, MODERN, capabilities.clone());
    client.error("tools/call", json!({ "name": "search" }), -32603);
    let invalid = serving(json!({ "resultType": "input_required", "inputRequests": 7 }));
    for revision in [Revision::V2025_11_25, MODERN] {
        let mut client = ScriptedClient::with_capabilities(&invalid, revision, capabilities.clone());
        client.error("tools/call", json!({ "name": "search" }), -32603);
    }
}

/// Layers see typed lists and results of raw items, and the outcomes that they mean.
// covers: GW-9
#[test]
fn gw_9_layers_see_typed_responses() {
    let notes = Notes::default();
    let server = server(|server| {
        let named = |name: &str, result: Value| {
            let definition = json!({ "name": name, "inputSchema": { "type": "object" }, "x": 1 });
            Tool::from_raw(raw(&definition), returns(result, &Params::default()))
        };
        let kept = notes.clone();
        let watching = middleware::from_fn(move |ctx: RequestContext, next: middleware::Next| {
            let (kept, ended) = (kept.clone(), kept.clone());
            async move {
                ctx.on_end(move |outcome| ended.add(format!("ended {}", outcome.as_str())));
                let mut served = next.run(ctx).await;
                kept.add(Outcome::of(&served).as_str());
                if let Ok(Response::Tools(list)) = &mut served {
                    list.tools.retain(|tool| !tool.name.starts_with("hidden"));
                }
                if let Ok(Response::ToolCall(result)) = &mut served {
                    result.extra.remove("secret");
                }
                served
            }
        });
        server
            .tool(named("hidden", json!({ "content": [] })))
            .tool(named("good", json!({ "content": [], "secret": 1, "y": 2 })))
            .tool(named("bad", json!({ "content": [], "isError": true, "y": 2 })))
            .tool(named("other", json!({ "resultType": "com.example/other", "y": 2 })))
            .tool(named("hidden asks", json!({ "resultType": "input_required", "requestState": "s" })))
            .layer(watching)
    });
    for revision in LEGACY.into_iter().chain([MODERN]) {
        let mut client = ScriptedClient::new(&server, revision);
        notes.take();
        let list = client.result("tools/list", json!({}));
        let names: Vec<_> = list["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| (tool["name"].as_str().unwrap(), tool["x"].as_i64()))
            .collect();
        assert_eq!(names, ["good", "bad", "other"].map(|name| (name, Some(1))));
        assert_eq!(notes.take(), ["completed", "ended completed"]);
        for (name, outcome) in [("good", "completed"), ("bad", "failed"), ("other", "completed")] {
            let result = client.result("tools/call", json!({ "name": name }));
            assert_eq!((result.get("secret"), &result["y"]), (None, &json!(2)), "{revision} {name}");
            assert_eq!(notes.take(), [outcome.to_owned(), format!("ended {outcome}")], "{revision} {name}");
        }
    }
    // A legacy client gets requests instead.
    ScriptedClient::new(&server, MODERN).result("tools/call", json!({ "name": "hidden asks" }));
    assert_eq!(notes.take(), ["input_required", "ended input_required"]);
}

/// Definitions that are none are errors with the name, as far as there is one.
// covers: GW-9
#[test]
fn gw_9_invalid_definitions_are_refused() {
    let nothing = |_: RequestContext, _: RawObject| std::future::ready(Ok(RawObject::empty()));
    let text = |error: BuildError| error.to_string();
    let tool =
        text(refused(|server| server.tool(Tool::from_raw(raw(&json!({ "name": "a", "inputSchema": 7 })), nothing))));
    assert!(tool.starts_with("the tool `a`: the definition is not valid: ") && tool.contains("inputSchema"), "{tool}");
    let prompt = text(refused(|server| server.prompt(Prompt::from_raw(RawObject::empty(), nothing))));
    assert!(prompt.contains("name"), "{prompt}");
    let resource = text(refused(|server| server.resource(Resource::from_raw(raw(&json!({ "uri": "a:b" })), nothing))));
    assert!(resource.starts_with("the resource `a:b`"), "{resource}");
    let template = json!({ "name": "t", "uriTemplate": "t:{" });
    let template = text(refused(|server| server.template(Template::from_raw(raw(&template), nothing))));
    assert!(template.starts_with("the template `t:{`"), "{template}");
}
