//! Middleware from functions, around all requests or around one item.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use mcp_server::middleware::{self, Middleware};
use mcp_server::types::{CallToolResult, ErrorObject, RawObject, ResourceContents, Revision};
use mcp_server::{
    Caller, HandlerError, NoArguments, Outcome, Principal, RequestContext, Response, Target, UriVariables, prompt,
    raw_tool, resource, template, text_resource, tool,
};
use mcp_testkit::{Gate, Notes, ScriptedClient};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[cfg(feature = "validate")]
use crate::servers::refused;
use crate::servers::{MODERN, server};

const LEGACY: Revision = Revision::V2025_11_25;

fn noting(name: &'static str, notes: &Notes) -> impl Middleware + use<> {
    let notes = notes.clone();
    middleware::from_fn(move |ctx, next| {
        let notes = notes.clone();
        async move {
            notes.add(format!("{name} {:?}", ctx.target()));
            let response = next.run(ctx).await;
            notes.add(format!("{name} {}", Outcome::of(&response).as_str()));
            response
        }
    })
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

/// A closure needs no types; it lets requests pass, or responds by itself, or changes the response.
// covers: AUT-5
#[test]
fn aut_5_functions_are_middleware() {
    let server = server(|server| {
        server
            .tool(tool("say", async |_, Text { text }| text))
            .tool(tool("secret", async |_, _: NoArguments| "secret"))
            .layer(middleware::from_fn(async |ctx, next| {
                let mut response = next.run(ctx).await?;
                if let Response::ToolCall(result) = &mut response {
                    result.content.push("seen".into());
                }
                Ok(response)
            }))
            .layer(middleware::from_fn(async |ctx, next| match ctx.tool_name() {
                Some("secret") => Err(ErrorObject::invalid_request("members only")),
                Some("mocked") => Ok(Response::ToolCall(CallToolResult::text("mocked"))),
                _ => next.run(ctx).await,
            }))
    });
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        let said = client.call_tool("say", json!({ "text": "hello" }));
        assert_eq!(said["content"], json!([{ "type": "text", "text": "hello" }, { "type": "text", "text": "seen" }]));
        assert_eq!(client.error("tools/call", json!({ "name": "secret" }), -32600)["message"], "members only");
        assert_eq!(client.call_tool_text("mocked", json!({})), "mocked");
        assert_eq!(client.result("tools/list", json!({}))["tools"].as_array().unwrap().len(), 2);
    }
}

/// The target is the name as the client meant it, whatever it wrote.
// covers: AUT-5
#[test]
fn aut_5_the_context_knows_the_target() {
    let notes = Notes::default();
    let server = server(|server| {
        server.tool(tool("say \"a\"", async |_, _: NoArguments| ())).offers_prompts().resource_subscriptions().layer({
            let notes = notes.clone();
            middleware::from_fn(move |ctx, next| {
                notes.add(format!("{:?} {:?}", ctx.target(), ctx.tool_name()));
                assert_eq!(ctx.target(), ctx.clone().target());
                next.run(ctx)
            })
        })
    });
    let mut client = ScriptedClient::new(&server, LEGACY);
    client.call("tools/call", json!({ "name": "say" }));
    client.call_tool("say \"a\"", json!({}));
    client.call("tools/call", json!({ "name": 1 }));
    client.call("tools/call", json!({}));
    client.call("prompts/get", json!({ "name": "p" }));
    client.call("resources/read", json!({ "uri": "a:b" }));
    client.call("resources/subscribe", json!({ "uri": "a:b" }));
    client.call("tools/list", json!({ "name": "no" }));
    let expected = [
        r#"Some(Tool("say")) Some("say")"#,
        r#"Some(Tool("say \"a\"")) Some("say \"a\"")"#,
        "None None",
        "None None",
        r#"Some(Prompt("p")) None"#,
        r#"Some(Resource("a:b")) None"#,
        r#"Some(Resource("a:b")) None"#,
        "None None",
    ];
    assert_eq!(notes.take(), expected);
}

#[derive(Deserialize, JsonSchema)]
struct Page {
    #[schemars(range(min = 1))]
    #[expect(dead_code, reason = "it is only checked")]
    number: u32,
}

/// Middleware of an item sees its requests before the arguments are looked at, and the refusal of those that are not valid.
#[test]
fn middleware_of_items_sees_invalid_arguments() {
    let notes = Notes::default();
    let only_ann = middleware::from_fn(async |ctx, next| match ctx.principal() {
        Some(_) => next.run(ctx).await,
        None => Err(ErrorObject::invalid_request("log in first")),
    });
    let schema = RawObject::new(&json!({ "type": "object", "required": ["number"] })).unwrap();
    let server = server(|server| {
        let (first, second) = (noting("first", &notes), noting("second", &notes));
        let page = tool("page", async |_, _: Page| "read").layer(second).layer(first).layer(only_ann.clone());
        let raw = raw_tool("raw", schema, async |_, _| "read").layer(noting("raw", &notes)).layer(only_ann.clone());
        let review = prompt("review", async |_, Text { text }| text).layer(noting("prompt", &notes)).layer(only_ann);
        server.tool(page).tool(raw).prompt(review)
    });
    for revision in [LEGACY, MODERN] {
        let mut client = ScriptedClient::new(&server, revision);
        let page = |number: serde_json::Value| json!({ "name": "page", "arguments": { "number": number } });
        // A refusal comes before the arguments, which would tell a stranger about the tool.
        client.error("tools/call", page(json!("one")), -32600);
        client.error("tools/call", page(json!(0)), -32600);
        client.error("tools/call", json!({ "name": "raw" }), -32600);
        client.error("prompts/get", json!({ "name": "review" }), -32600);
        assert!(notes.take().is_empty());

        client.caller = Caller::default().principal(Principal::new(None, "ann"));
        assert_eq!(client.result("tools/call", page(json!("one")))["isError"], true);
        let page_seen = r#"Some(Tool("page"))"#;
        let both = |outcome: &str| {
            [
                format!("first {page_seen}"),
                format!("second {page_seen}"),
                format!("second {outcome}"),
                format!("first {outcome}"),
            ]
        };
        assert_eq!(notes.take(), both("failed"));
        // Constraints and the schemas of raw tools are enforced with the feature only.
        let outcome = if cfg!(feature = "validate") { "failed" } else { "completed" };
        client.result("tools/call", page(json!(0)));
        assert_eq!(notes.take(), both(outcome));
        client.result("tools/call", json!({ "name": "raw" }));
        assert_eq!(notes.take(), [r#"raw Some(Tool("raw"))"#.to_owned(), format!("raw {outcome}")]);
        let missing = client.error("prompts/get", json!({ "name": "review" }), -32602);
        assert_eq!(missing["message"], "missing argument `text`");
        assert_eq!(notes.take(), [r#"prompt Some(Prompt("review"))"#, "prompt failed"]);

        assert_eq!(client.result("tools/call", page(json!(1)))["content"][0]["text"], "read");
        assert_eq!(notes.take(), both("completed"));
        // What is not a call of the tool at all is refused before.
        client.error("tools/call", json!({ "name": "page", "arguments": [] }), -32602);
        assert!(notes.take().is_empty());
    }
}

/// A schema that cannot be used is refused, with middleware as without.
#[cfg(feature = "validate")]
#[test]
fn middleware_does_not_hide_invalid_schemas() {
    let schema = || RawObject::new(&json!({ "type": "object", "$ref": "https://example.com/a.json" })).unwrap();
    let raw = || raw_tool("raw", schema(), async |_, _| "read");
    let without = refused(|server| server.tool(raw()));
    let with = refused(|server| server.tool(raw().layer(noting("raw", &Notes::default()))));
    assert_eq!(with, without);
}

/// Middleware of an item is around that item alone, inside of the server's.
// covers: AUT-5
#[test]
fn aut_5_items_have_middleware_of_their_own() {
    let notes = Notes::default();
    let noted = |name| noting(name, &notes);
    let server = server(|server| {
        let read = async |_: RequestContext, variables: UriVariables| variables.get("a").map(str::to_owned);
        server
            .tool(tool("typed", async |_, Text { text }| text).layer(noted("first")).layer(noted("second")))
            .tool(raw_tool("raw", schema(), async |_, raw: RawObject| raw.as_str().to_owned()).layer(noted("raw")))
            .tool(tool("other", async |_, _: NoArguments| "other"))
            .prompt(prompt("prompt", async |_, Text { text }| text).layer(noted("prompt")))
            .resource(text_resource("a:fixed", "fixed", "text").layer(noted("resource")))
            .template(template("a:t/{a}", "template", read).layer(noted("template")).mime_type("text/x"))
            .layer(noted("server"))
    });
    for revision in [MODERN, LEGACY] {
        let mut client = ScriptedClient::new(&server, revision);
        assert_eq!(client.call_tool_text("typed", json!({ "text": "hello" })), "hello");
        let expected = [
            r#"server Some(Tool("typed"))"#,
            r#"second Some(Tool("typed"))"#,
            r#"first Some(Tool("typed"))"#,
            "first completed",
            "second completed",
            "server completed",
        ];
        assert_eq!(notes.take(), expected);
        assert_eq!(client.call_tool_text("other", json!({})), "other");
        assert_eq!(notes.take().len(), 2);
        assert_eq!(client.call_tool_text("raw", json!({ "text": "x" })), r#"{"text":"x"}"#);
        assert_eq!(notes.take()[1], r#"raw Some(Tool("raw"))"#);
        assert_eq!(client.call_tool("typed", json!({ "text": 1 }))["isError"], true);
        assert_eq!(notes.take()[3], "first failed");

        let got = client.result("prompts/get", json!({ "name": "prompt", "arguments": { "text": "hi" } }));
        assert_eq!(got["messages"][0]["content"]["text"], "hi");
        assert_eq!(notes.take()[1], r#"prompt Some(Prompt("prompt"))"#);
        let read = client.result("resources/read", json!({ "uri": "a:fixed" }));
        assert_eq!(read["contents"][0], json!({ "uri": "a:fixed", "mimeType": "text/plain", "text": "text" }));
        assert_eq!(notes.take()[1], r#"resource Some(Resource("a:fixed"))"#);
        let read = client.result("resources/read", json!({ "uri": "a:t/7" }));
        assert_eq!(read["contents"][0], json!({ "uri": "a:t/7", "mimeType": "text/x", "text": "7" }));
        assert_eq!(notes.take()[1], r#"template Some(Resource("a:t/7"))"#);
    }
}

fn schema() -> RawObject {
    RawObject::parse(r#"{"type":"object","properties":{"text":{"type":"string"}}}"#).expect("an object")
}

/// What middleware of a resource responds is completed like the contents of the handler.
// covers: AUT-5
#[test]
fn aut_5_middleware_may_read() {
    let cached = middleware::from_fn(async |ctx: RequestContext, _| {
        let Some(Target::Resource(uri)) = ctx.target() else { return Err(ErrorObject::internal_error("no URI")) };
        Ok(Response::Contents(mcp_server::types::ReadResourceResult::new(vec![ResourceContents::text(uri, "cached")])))
    });
    let read = resource("a:b", "b", async |_: RequestContext| "read").layer(cached).mime_type("text/x");
    let server = server(|server| server.resource(read));
    let read = ScriptedClient::new(&server, MODERN).result("resources/read", json!({ "uri": "a:b" }));
    assert_eq!(read["contents"][0], json!({ "uri": "a:b", "mimeType": "text/x", "text": "cached" }));
}

/// Input requests of one poll travel together through middleware of a tool and of the server.
// covers: AUT-2, AUT-5
#[cfg(feature = "mrtr")]
#[test]
fn aut_5_middleware_of_a_tool_sees_the_end_of_a_round() {
    let notes = Notes::default();
    let pair = tool("pair", async |ctx: RequestContext, _: NoArguments| {
        let (a, b) = futures_util::future::join(ctx.list_roots("a"), ctx.list_roots("b")).await;
        Ok::<_, mcp_server::AskError>(format!("{} {}", a?.len(), b?.len()))
    });
    let server = server(|server| server.tool(pair.layer(noting("tool", &notes))).layer(noting("server", &notes)));
    let mut client = ScriptedClient::with_capabilities(&server, MODERN, json!({ "roots": {} }));
    let asked = client.result("tools/call", json!({ "name": "pair" }));
    assert_eq!(asked["inputRequests"].as_object().unwrap().len(), 2);
    assert_eq!(notes.take()[2..], ["tool input_required", "server input_required"]);
    let roots = json!({ "roots": [] });
    let retry =
        json!({ "name": "pair", "inputResponses": { "a": roots, "b": roots }, "requestState": asked["requestState"] });
    assert_eq!(client.result("tools/call", retry)["content"][0]["text"], "0 0");
}

/// `next` can be run again.
// covers: AUT-5
#[test]
fn aut_5_middleware_may_try_again() {
    let tries = Arc::new(AtomicU32::new(0));
    let flaky = {
        let tries = Arc::clone(&tries);
        tool("flaky", move |_, _: NoArguments| {
            let tries = tries.fetch_add(1, Ordering::Relaxed);
            async move { if tries < 2 { Err("not yet") } else { Ok("done") } }
        })
    };
    let retry = middleware::from_fn(async |ctx, next| {
        let mut response = next.clone().run(ctx.clone()).await;
        while Outcome::of(&response) == Outcome::Failed {
            response = next.clone().run(ctx.clone()).await;
        }
        response
    });
    let server = server(|server| server.tool(flaky.layer(retry)));
    assert_eq!(ScriptedClient::new(&server, LEGACY).call_tool_text("flaky", json!({})), "done");
    assert_eq!(tries.load(Ordering::Relaxed), 3);
}

/// Middleware that runs the rest of the chain on a thread of its own, and notes its outcome.
#[expect(clippy::disallowed_methods, reason = "a task of another thread, as a runtime has them")]
fn spawning(notes: &Notes) -> impl Middleware + use<> {
    let notes = notes.clone();
    middleware::from_fn(move |ctx, next| {
        let (notes, done, served) = (notes.clone(), Gate::default(), Arc::new(Mutex::new(None)));
        let (open, slot) = (done.clone(), Arc::clone(&served));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            *slot.lock().expect("no panic") = Some(runtime.block_on(next.run(ctx)));
            open.open();
        });
        async move {
            done.wait().await;
            let served = served.lock().expect("no panic").take().expect("a response");
            notes.add(Outcome::of(&served).as_str());
            served
        }
    })
}

/// Runs a client until it has a response.
fn wait_for(client: &mut ScriptedClient, id: i64) -> serde_json::Value {
    while client.unread() == 0 {
        std::thread::yield_now();
        client.run();
    }
    client.response_to(id)
}

/// Middleware that awaits its chain in another task sees its end, also if the chain requests input while the connection is
/// polled.
// covers: AUT-2
#[test]
fn aut_2_a_spawned_chain_ends_before_its_middleware() {
    let (notes, asked, polled) = (Notes::default(), Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (asks, goes_on) = (Arc::clone(&asked), Arc::clone(&polled));
    let ask = move |ctx: RequestContext, _: NoArguments| {
        let (asks, goes_on) = (Arc::clone(&asks), Arc::clone(&goes_on));
        async move {
            let mut asking = pin!(ctx.elicit::<Text>("text", "Which?").into_future());
            let mut is_first = true;
            let response = poll_fn(|cx| {
                let polled = asking.as_mut().poll(cx);
                if polled.is_pending() && std::mem::take(&mut is_first) {
                    // Within this poll, the connection is polled by the other thread.
                    asks.wait();
                    goes_on.wait();
                }
                polled
            });
            let Text { text } = response.await?.accepted()?;
            Ok::<_, HandlerError>(text)
        }
    };
    let server = server(|server| server.tool(tool("ask", ask)).layer(spawning(&notes)));
    let mut client = ScriptedClient::with_capabilities(&server, MODERN, json!({ "elicitation": {} }));
    for _ in 0..20 {
        let id = client.start_tool("ask");
        asked.wait();
        client.run();
        client.run();
        polled.wait();
        let response = wait_for(&mut client, id);
        assert_eq!(response["result"]["resultType"], "input_required", "{response}");
        assert_eq!(notes.take(), ["input_required"]);
        let mut retry = json!({ "name": "ask", "requestState": response["result"]["requestState"] });
        retry["inputResponses"] = json!({ "text": { "action": "accept", "content": { "text": "this" } } });
        let id = client.start("tools/call", retry);
        assert_eq!(wait_for(&mut client, id)["result"]["content"][0]["text"], "this");
        assert_eq!(notes.take(), ["completed"]);
    }
}

/// A chain that was spawned is not dropped with its request: it learns of the end, and what it does is discarded.
// covers: AUT-2
#[test]
fn aut_2_a_spawned_chain_outlives_its_request() {
    for revision in [MODERN, LEGACY] {
        let (notes, gate) = (Notes::default(), Gate::default());
        let handler = {
            let (notes, gate) = (notes.clone(), gate.clone());
            move |ctx: RequestContext, _: NoArguments| {
                let (notes, gate) = (notes.clone(), gate.clone());
                async move {
                    ctx.cancelled().await;
                    gate.wait().await;
                    let asked = ctx.elicit::<Text>("text", "Which?").await;
                    notes.add(format!("asked {}", asked.is_ok()));
                    "too late"
                }
            }
        };
        let server = server(|server| server.tool(tool("wait", handler)).layer(spawning(&notes)));
        let mut client = ScriptedClient::with_capabilities(&server, revision, json!({ "elicitation": {} }));
        let id = client.start_tool("wait");
        client.cancel(id);
        client.assert_quiet();
        gate.open();
        let noted = loop {
            client.run();
            let noted = notes.take();
            if !noted.is_empty() {
                break noted;
            }
            std::thread::yield_now();
        };
        assert_eq!(noted, ["asked false"], "the middleware was dropped");
        client.assert_quiet();
    }
}
