//! Questions in every era, from the same handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mcp_server::mrtr::{Key, KeyRing, MemoryReplayGuard};
use mcp_server::types::{
    CallToolResult, CreateMessageRequestParams, ElicitRequestFormParams, InputRequest, InputRequiredResult,
    ListRootsRequest, OrderedMap, RequestedSchema, Revision, SamplingContent, SamplingMessage,
};
use mcp_server::{
    Caller, Connection, HandlerError, Limits, NoArguments, Principal, RequestContext, RoundResult, Server,
    ServerBuilder, prompt, resource, tool,
};
use mcp_testkit::ScriptedClient;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::servers::{MODERN, server};

const ASKABLE: Revision = Revision::V2025_11_25;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Name {
    pub(crate) name: String,
}

pub(crate) fn everything() -> Value {
    json!({ "elicitation": {}, "sampling": {}, "roots": {} })
}

pub(crate) fn accepts(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

fn ring() -> KeyRing {
    KeyRing::new(Key::new(1, [7; 32]))
}

/// A handler with three questions, one after the other, and two steps between them that must not be repeated.
fn order(steps: &Arc<AtomicU32>) -> impl FnOnce(ServerBuilder) -> ServerBuilder {
    let steps = Arc::clone(steps);
    move |server| {
        let step =
            move |steps: Arc<AtomicU32>| async move { Ok::<_, HandlerError>(steps.fetch_add(1, Ordering::Relaxed)) };
        server.key_ring(ring()).tool(tool("order", move |ctx: RequestContext, _: NoArguments| {
            let steps = Arc::clone(&steps);
            async move {
                let first: Name = ctx.elicit("first", "Who?").await?.accepted()?;
                let one = ctx.once("one", || step(Arc::clone(&steps))).await?;
                let second: Name = ctx.elicit("second", format!("Who after {}?", first.name)).await?.accepted()?;
                let two = ctx.once("two", || step(Arc::clone(&steps))).await?;
                let third: Name = ctx.elicit("third", "And then?").await?.accepted()?;
                Ok::<_, HandlerError>(format!("{} {one} {} {two} {}", first.name, second.name, third.name))
            }
        }))
    }
}

/// The parameters of the next round: the answers to all questions, and the state.
pub(crate) fn retry(mut params: Value, asked: &Value, mut answer: impl FnMut(&str) -> Value) -> Value {
    let questions = asked["inputRequests"].as_object().expect("questions");
    let answers: serde_json::Map<_, _> = questions.keys().map(|key| (key.clone(), answer(key))).collect();
    params["inputResponses"] = answers.into();
    params["requestState"] = asked["requestState"].clone();
    params
}

/// The same handler, the same outcome, each step once, and each round served by another instance that shares nothing
/// but the keys.
// covers: R-11, R-28, S2.23, RB-24, RB-57, S3.25
#[test]
fn the_same_handler_asks_in_every_era() {
    let steps = Arc::new(AtomicU32::new(0));
    let mut client = ScriptedClient::with_capabilities(&server(order(&steps)), ASKABLE, everything());
    let id = client.start_tool("order");
    for name in ["ann", "bob", "cid"] {
        let question = client.expect_message("elicitation/create");
        client.respond(&question, accepts(name));
    }
    assert_eq!(client.response_to(id)["result"]["content"][0]["text"], "ann 0 bob 1 cid");

    steps.store(0, Ordering::Relaxed);
    let params = json!({ "name": "order" });
    let mut next = params.clone();
    for name in ["ann", "bob", "cid"] {
        let mut instance = ScriptedClient::with_capabilities(&server(order(&steps)), MODERN, everything());
        let asked = instance.result("tools/call", next);
        assert_eq!(asked["resultType"], "input_required");
        instance.assert_quiet();
        next = retry(params.clone(), &asked, |_| accepts(name));
    }
    let mut last = ScriptedClient::with_capabilities(&server(order(&steps)), MODERN, everything());
    assert_eq!(last.result("tools/call", next)["content"][0]["text"], "ann 0 bob 1 cid");
    assert_eq!(steps.load(Ordering::Relaxed), 2, "each step was taken once");
}

fn pair() -> Server {
    server(|server| {
        server.tool(tool("pair", async |ctx: RequestContext, _: NoArguments| {
            let (name, message) = (ctx.elicit::<Name>("name", "Who?"), ctx.sample("text", hello()));
            let (name, message) = futures_util::future::join(name, message).await;
            let message = message?;
            let text =
                message.content.as_slice().first().and_then(SamplingContent::as_text).unwrap_or_default().to_owned();
            let roots = ctx.list_roots("roots").await?;
            Ok::<_, HandlerError>(format!("{} {text} {}", name?.accepted()?.name, roots.len()))
        }))
    })
}

fn hello() -> CreateMessageRequestParams {
    CreateMessageRequestParams::new(vec![SamplingMessage::user(SamplingContent::text("hi"))], 5)
}

fn sampled() -> Value {
    json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "hello" } })
}

/// What is asked in the same moment travels together.
// covers: S3.30, R-4
#[test]
fn questions_of_one_moment_are_one_round() {
    let mut client = ScriptedClient::with_capabilities(&pair(), MODERN, everything());
    let params = json!({ "name": "pair" });
    let asked = client.result("tools/call", params.clone());
    let keys: Vec<_> = asked["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["name", "text"]);
    let next = retry(params.clone(), &asked, |key| if key == "name" { accepts("ann") } else { sampled() });
    let asked = client.result("tools/call", next);
    assert_eq!(asked["inputRequests"]["roots"]["method"], "roots/list");
    let next = retry(params, &asked, |_| json!({ "roots": [{ "uri": "file:///a" }] }));
    assert_eq!(client.result("tools/call", next)["content"][0]["text"], "ann hello 1");
    client.assert_quiet();
}

/// What is missing is asked again, what is too much is ignored.
// covers: R-13, R-14, S3.F12
#[test]
fn missing_answers_are_asked_again() {
    let mut client = ScriptedClient::with_capabilities(&pair(), MODERN, everything());
    let params = json!({ "name": "pair" });
    let asked = client.result("tools/call", params.clone());
    let mut next = retry(params, &asked, |_| accepts("ann"));
    next["inputResponses"] = json!({ "name": accepts("ann"), "nobody asked": accepts("x") });
    let asked = client.result("tools/call", next);
    let keys: Vec<_> = asked["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["text"]);
}

/// An answer that is none is refused; that a user declines is an answer.
// covers: R-12, EL-9, EL-20
#[test]
fn answers_are_checked() {
    let server = server(|server| {
        server.tool(tool("name", async |ctx: RequestContext, _: NoArguments| {
            Ok::<_, HandlerError>(format!(
                "{:?}",
                ctx.elicit::<Name>("name", "Who?").await?.accepted().map(|it| it.name)
            ))
        }))
    });
    let mut client = ScriptedClient::with_capabilities(&server, MODERN, everything());
    let params = json!({ "name": "name" });
    let asked = client.result("tools/call", params.clone());
    for (action, text) in [("decline", "Err(Declined)"), ("cancel", "Err(Cancelled)")] {
        let next = retry(params.clone(), &asked, |_| json!({ "action": action }));
        assert_eq!(client.result("tools/call", next)["content"][0]["text"], text);
    }
    for wrong in [json!({ "action": "perhaps" }), json!({}), json!(12345)] {
        let next = retry(params.clone(), &asked, |_| wrong.clone());
        client.error("tools/call", next, -32602);
    }
    let next = retry(params, &asked, |_| json!({ "action": "accept", "content": { "name": 1 } }));
    assert_eq!(client.result("tools/call", next)["isError"], true);
}

/// Whoever did not declare that it can be asked learns what is missing.
// covers: R-5, X-14, S3.27, S3.37, S3.F12
#[test]
fn only_what_was_declared_is_asked() {
    let mut client =
        ScriptedClient::with_capabilities(&server(order(&Arc::default())), MODERN, json!({ "sampling": {} }));
    let error = client.error("tools/call", json!({ "name": "order" }), -32021);
    assert_eq!(error["data"]["requiredCapabilities"], json!({ "elicitation": { "form": {} } }));
}

/// A state that was changed, or belongs elsewhere, is refused, always in the same way.
// covers: R-6..R-8, R-25, S2.26, S2.41, S3.F11
#[test]
fn states_are_good_for_their_own_request_alone() {
    let steps = Arc::new(AtomicU32::new(0));
    let both = |server: ServerBuilder| {
        let ask = async |ctx: RequestContext, _: NoArguments| {
            Ok::<_, HandlerError>(ctx.elicit::<Name>("first", "Who?").await?.accepted()?.name)
        };
        order(&steps)(server).tool(tool("other", ask))
    };
    let server = server(both);
    let mut client = ScriptedClient::with_capabilities(&server, MODERN, everything());
    let params = json!({ "name": "order" });
    let asked = client.result("tools/call", params.clone());
    let good = retry(params, &asked, |_| accepts("ann"));
    let state = asked["requestState"].as_str().unwrap();
    let mut wrong = vec![];
    for changed in [format!("{state}-TAMPERED"), state[1..].to_owned(), state.replace('A', "B"), String::new()] {
        let mut next = good.clone();
        next["requestState"] = changed.into();
        wrong.push(next);
    }
    let mut elsewhere = good.clone();
    elsewhere["name"] = "other".into();
    wrong.push(elsewhere);
    let mut arguments = good.clone();
    arguments["arguments"] = json!({ "more": 1 });
    wrong.push(arguments);
    let errors: Vec<_> = wrong.into_iter().map(|params| client.error("tools/call", params, -32602)).collect();
    assert!(errors.windows(2).all(|pair| pair[0] == pair[1]), "{errors:?}");
    assert_eq!(client.result("tools/call", good.clone())["resultType"], "input_required");

    let mut mallory = ScriptedClient::with_capabilities(&server, MODERN, everything());
    let caller = Caller::default().principal(Principal::new(None, "mallory"));
    let request = mallory.build_request("tools/call", good);
    mallory.connection.feed(mallory.now(), request.to_string().as_bytes(), &caller);
    mallory.run();
    let reply = mallory.response_to(request["id"].clone());
    assert_eq!(reply["error"], errors[0]);
}

/// With a replay guard each round is good once.
// covers: R-9, S3.F11, RB-56
#[test]
fn a_replay_guard_refuses_replays() {
    let steps = Arc::new(AtomicU32::new(0));
    let server = server(|server| order(&steps)(server).replay_guard(MemoryReplayGuard::new(10)));
    let mut client = ScriptedClient::with_capabilities(&server, MODERN, everything());
    let params = json!({ "name": "order" });
    let asked = client.result("tools/call", params.clone());
    let next = retry(params, &asked, |_| accepts("ann"));
    assert_eq!(client.result("tools/call", next.clone())["resultType"], "input_required");
    client.error("tools/call", next, -32602);
}

/// A state that is given out is taken back, whatever the limit; one that would not be ends the request instead.
// covers: R-6
#[test]
fn no_state_is_too_large_to_come_back() {
    const LIMIT: usize = 1024;
    let mut limits = Limits::default();
    limits.max_request_state_bytes = LIMIT;
    let server = server(|server| {
        server.limits(limits).tool(tool("long", async |ctx: RequestContext, Long { bytes }: Long| {
            let step = || async { Ok::<_, HandlerError>("x".repeat(bytes)) };
            let kept: String = ctx.once("step", step).await?;
            let answer: Name = ctx.elicit("name", "Who?").await?.accepted()?;
            Ok::<_, HandlerError>(format!("{} {}", answer.name, kept.len()))
        }))
    });
    let mut client = ScriptedClient::with_capabilities(&server, MODERN, everything());
    let (mut longest, mut refused) = (0, 0);
    for bytes in LIMIT / 2..LIMIT {
        let params = json!({ "name": "long", "arguments": { "bytes": bytes } });
        let reply = client.call("tools/call", params.clone());
        if reply["error"]["code"] == -32603 {
            refused += 1;
            continue;
        }
        let asked = &reply["result"];
        longest = longest.max(asked["requestState"].as_str().unwrap().len());
        let done = client.result("tools/call", retry(params, asked, |_| accepts("ann")));
        assert_eq!(done["content"][0]["text"], format!("ann {bytes}"));
    }
    assert!(refused > 0 && longest + 8 > LIMIT, "{longest} of {LIMIT}, {refused} refused");
}

#[derive(Deserialize, JsonSchema)]
struct Long {
    bytes: usize,
}

fn explicit() -> Server {
    let question = || {
        let schema =
            RequestedSchema::new(OrderedMap::new()).required_field("name", mcp_server::types::StringSchema::default());
        InputRequest::from(ElicitRequestFormParams::new("Who?", schema))
    };
    server(|server| {
        server
            .tool(tool("ask", move |ctx: RequestContext, _: NoArguments| async move {
                let Some(answer) = ctx.input_response_as::<Value>("who")? else {
                    let asks = InputRequiredResult::default()
                        .input_requests([("who", question()), ("roots", ListRootsRequest::default().into())])
                        .request_state("1");
                    return Ok(asks.into());
                };
                let state = ctx.request_state().unwrap_or_default();
                let text = format!("{} {state} {}", answer["content"]["name"], ctx.has_input_response("roots"));
                Ok::<_, HandlerError>(RoundResult::Complete(CallToolResult::text(text)))
            }))
            .tool(tool("endless", move |_: RequestContext, _: NoArguments| async move {
                InputRequiredResult::default().input_requests([("who", question())])
            }))
            .prompt(prompt("ask", move |ctx: RequestContext, _: NoArguments| async move {
                if ctx.is_retry() {
                    return RoundResult::Complete("thanks");
                }
                InputRequiredResult::default().input_requests([("who", question())]).into()
            }))
            .resource(resource("a:b", "ask", move |ctx: RequestContext| async move {
                if ctx.is_retry() {
                    return RoundResult::Complete("thanks");
                }
                InputRequiredResult::default().input_requests([("who", question())]).into()
            }))
    })
}

/// Questions that a handler returns are real requests to a legacy client, and the handler runs again.
// covers: DU-26
#[test]
fn explicit_questions_reach_legacy_clients() {
    let server = explicit();
    let mut client = ScriptedClient::with_capabilities(&server, ASKABLE, everything());
    let id = client.start_tool("ask");
    let question = client.expect_message("elicitation/create");
    client.respond(&question, accepts("ann"));
    let question = client.expect_message("roots/list");
    client.respond(&question, json!({ "roots": [] }));
    assert_eq!(client.response_to(id)["result"]["content"][0]["text"], "\"ann\" 1 true");

    for (method, params, member) in
        [("prompts/get", json!({ "name": "ask" }), "messages"), ("resources/read", json!({ "uri": "a:b" }), "contents")]
    {
        let id = client.start(method, params);
        let question = client.expect_message("elicitation/create");
        client.respond(&question, accepts("ann"));
        assert!(client.response_to(id)["result"][member].is_array());
    }
    client.assert_quiet();
    assert!(client.connection.is_idle());
}

/// A handler that asks without end is given up; a client that cannot be asked, or refuses, is told.
// covers: DU-26, R-23
#[test]
fn explicit_questions_have_an_end() {
    let server = explicit();
    let mut client = ScriptedClient::with_capabilities(&server, ASKABLE, everything());
    let id = client.start_tool("endless");
    for _ in 0..10 {
        let question = client.expect_message("elicitation/create");
        client.respond(&question, accepts("ann"));
    }
    assert_eq!(client.response_to(id)["error"]["code"], -32603);
    let mut unable = ScriptedClient::new(&server, ASKABLE);
    unable.error("tools/call", json!({ "name": "ask" }), -32021);
    unable.error("prompts/get", json!({ "name": "ask" }), -32021);
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26] {
        let mut old = ScriptedClient::with_capabilities(&server, revision, everything());
        assert_eq!(old.call_tool("ask", json!({}))["isError"], true, "{revision}");
        old.error("prompts/get", json!({ "name": "ask" }), -32603);
    }
}

/// What a handler asked or did before it returns questions would be asked and done again, so it is refused, in every
/// round and in either era.
// covers: RB-57
#[test]
fn a_handler_asks_in_one_style() {
    let steps = Arc::new(AtomicU32::new(0));
    let question = || ListRootsRequest::default();
    let server = server(|server| {
        let (first, later) = (Arc::clone(&steps), Arc::clone(&steps));
        server
            .tool(tool("at once", move |ctx: RequestContext, _: NoArguments| {
                let steps = Arc::clone(&first);
                async move {
                    ctx.once("step", || async { Ok::<_, HandlerError>(steps.fetch_add(1, Ordering::Relaxed)) }).await?;
                    Ok::<_, HandlerError>(InputRequiredResult::default().input_requests([("roots", question())]))
                }
            }))
            .tool(tool("later", move |ctx: RequestContext, _: NoArguments| {
                let steps = Arc::clone(&later);
                async move {
                    if ctx.is_retry() {
                        let step = || async { Ok::<_, HandlerError>(steps.fetch_add(1, Ordering::Relaxed)) };
                        ctx.once("step", step).await?;
                    }
                    Ok::<_, HandlerError>(InputRequiredResult::default().input_requests([("roots", question())]))
                }
            }))
            .tool(tool("asks", move |ctx: RequestContext, _: NoArguments| async move {
                ctx.elicit::<Name>("name", "Who?").await?.accepted()?;
                Ok::<_, HandlerError>(InputRequiredResult::default().input_requests([("roots", question())]))
            }))
    });
    let roots = || json!({ "roots": [] });
    let mut modern = ScriptedClient::with_capabilities(&server, MODERN, everything());
    modern.error("tools/call", json!({ "name": "at once" }), -32603);
    let later = json!({ "name": "later" });
    let asked = modern.result("tools/call", later.clone());
    modern.error("tools/call", retry(later, &asked, |_| roots()), -32603);
    let asks = json!({ "name": "asks" });
    let asked = modern.result("tools/call", asks.clone());
    modern.error("tools/call", retry(asks, &asked, |_| accepts("ann")), -32603);

    let mut legacy = ScriptedClient::with_capabilities(&server, ASKABLE, everything());
    legacy.error("tools/call", json!({ "name": "at once" }), -32603);
    let id = legacy.start_tool("later");
    let asked = legacy.expect_message("roots/list");
    legacy.respond(&asked, roots());
    assert_eq!(legacy.response_to(id)["error"]["code"], -32603);
    let id = legacy.start_tool("asks");
    let asked = legacy.expect_message("elicitation/create");
    legacy.respond(&asked, accepts("ann"));
    assert_eq!(legacy.response_to(id)["error"]["code"], -32603);
    assert_eq!(steps.load(Ordering::Relaxed), 4, "no step was repeated");
}

/// A cancelled round leaves nothing behind, in either era.
// covers: S1.20, K-5
#[test]
fn rounds_can_be_cancelled() {
    let server = explicit();
    let mut client = ScriptedClient::with_capabilities(&server, ASKABLE, everything());
    let id = client.start_tool("ask");
    client.expect_message("elicitation/create");
    client.cancel(id);
    client.expect_message("notifications/cancelled");
    client.assert_quiet();
    assert!(client.connection.is_idle());
    let mut alone = ScriptedClient::on_connection(Connection::modern_request(&pair()), MODERN, everything());
    let asked = alone.result("tools/call", json!({ "name": "pair" }));
    assert_eq!(asked["resultType"], "input_required");
    assert!(alone.connection.is_idle());
}

/// A handler that asks by hand can have its own state sealed, in either era.
// covers: S2.36, S2.37, R-7
#[test]
fn states_of_the_application_are_sealed() {
    let server = server(|server| {
        let question = || ElicitRequestFormParams::new("Who?", RequestedSchema::new(OrderedMap::new()));
        server.tool(tool("ask", move |ctx: RequestContext, _: NoArguments| async move {
            let Some(round) = ctx.sealed_state::<u32>().await? else {
                let asks =
                    ctx.input_required().input_request("who", question()).raw_state(ctx.seal_state(&7)?).build()?;
                return Ok(asks.into());
            };
            Ok::<_, HandlerError>(RoundResult::Complete(CallToolResult::text(round.to_string())))
        }))
    });
    let mut client = ScriptedClient::with_capabilities(&server, MODERN, everything());
    let params = json!({ "name": "ask" });
    let asked = client.result("tools/call", params.clone());
    let next = retry(params, &asked, |_| accepts("ann"));
    assert_eq!(client.result("tools/call", next.clone())["content"][0]["text"], "7");
    let mut forged = next;
    forged["requestState"] = "7".into();
    client.error("tools/call", forged, -32602);

    let mut legacy = ScriptedClient::with_capabilities(&server, ASKABLE, everything());
    let id = legacy.start_tool("ask");
    let question = legacy.expect_message("elicitation/create");
    legacy.respond(&question, accepts("ann"));
    assert_eq!(legacy.response_to(id)["result"]["content"][0]["text"], "7");

    let mut unable = ScriptedClient::new(&server, MODERN);
    unable.error("tools/call", json!({ "name": "ask" }), -32021);
}

/// What cannot come again takes its steps as they are.
// covers: R-2
#[test]
fn steps_need_no_second_round() {
    #[derive(Deserialize, JsonSchema)]
    struct Topic {
        #[serde(rename = "topic")]
        _topic: String,
    }
    let server = server(|server| {
        let topics = |ctx: RequestContext, _: mcp_server::CompletionInput| async move {
            let step = ctx.once("step", || async { Ok::<_, HandlerError>(String::from("roses")) }).await;
            step.into_iter().collect::<Vec<_>>()
        };
        server.prompt(prompt("write", async |_, _: Topic| "Write.").complete("topic", topics))
    });
    let params = json!({
        "ref": { "type": "ref/prompt", "name": "write" },
        "argument": { "name": "topic", "value": "r" },
    });
    for revision in [MODERN, ASKABLE] {
        let result = ScriptedClient::new(&server, revision).result("completion/complete", params.clone());
        assert_eq!(result["completion"]["values"], json!(["roses"]), "{revision}");
    }
}

/// A handler that asks by hand hears that a client cannot be asked, and can do without. Its state is a type.
// covers: MIS-17, DU-26, S2.37
#[test]
fn mis_17_a_question_that_cannot_be_asked_is_an_error_of_the_handler() {
    let server = server(|server| {
        let question = || ElicitRequestFormParams::new("Who?", RequestedSchema::new(OrderedMap::new()));
        server.tool(tool("ask", move |ctx: RequestContext, _: NoArguments| async move {
            if let Some((round, text)) = ctx.request_state_as::<(u32, String)>()? {
                return Ok(RoundResult::Complete(CallToolResult::text(format!("{round} {text}"))));
            }
            match ctx.input_required().input_request("who", question()).state(&(7, "x")).build() {
                Ok(asks) => Ok(asks.into()),
                Err(why) => {
                    Ok::<_, HandlerError>(RoundResult::Complete(CallToolResult::text(format!("without: {why}"))))
                }
            }
        }))
    });
    let mut modern = ScriptedClient::with_capabilities(&server, MODERN, everything());
    let params = json!({ "name": "ask" });
    let asked = modern.result("tools/call", params.clone());
    assert_eq!(asked["requestState"], r#"[7,"x"]"#);
    let next = retry(params, &asked, |_| accepts("ann"));
    assert_eq!(modern.result("tools/call", next)["content"][0]["text"], "7 x");
    let mut able = ScriptedClient::with_capabilities(&server, ASKABLE, everything());
    let id = able.start_tool("ask");
    let question = able.expect_message("elicitation/create");
    able.respond(&question, accepts("ann"));
    assert_eq!(able.response_to(id)["result"]["content"][0]["text"], "7 x");
    let mut old = ScriptedClient::with_capabilities(&server, Revision::V2025_03_26, everything());
    assert!(old.call_tool_text("ask", json!({})).starts_with("without: `elicitation/create`"));
    let stateless = Connection::legacy_request(&server, ASKABLE);
    let mut stateless = ScriptedClient::on_connection(stateless, ASKABLE, everything());
    assert!(stateless.call_tool_text("ask", json!({})).starts_with("without: "));
}
