//! What a handler knows: about its request, its client, its server.

use std::sync::atomic::{AtomicU32, Ordering};

use mcp_server::types::{
    ElicitRequest, ElicitRequestFormParams, Era, InputRequest, InputRequests, InputRequiredResult, OrderedMap,
    RequestedSchema, Revision,
};
use mcp_server::{
    Caller, ClientCapability, Connection, HandlerError, Limits, NoArguments, Principal, RequestContext, RoundResult,
    Server, prompt, resource, tool,
};
use mcp_testkit::{Gate, ScriptedClient};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::servers::{LEGACY, MODERN, server};

/// A server with a tool that tells what it knows.
fn telling(tell: impl Fn(RequestContext) -> Value + Clone + Send + Sync + 'static) -> Server {
    server(|server| {
        server
            .state(String::from("of the application"))
            .tool(tool("tell", move |ctx, _: NoArguments| std::future::ready(tell(ctx).to_string())))
    })
}

fn told(client: &mut ScriptedClient) -> Value {
    told_with(client, json!({}))
}

fn told_with(client: &mut ScriptedClient, mut params: Value) -> Value {
    params["name"] = json!("tell");
    let result = client.result("tools/call", params);
    serde_json::from_str(result["content"][0]["text"].as_str().expect("a text")).expect("JSON")
}

/// A request knows its revision, era and id, and whether it can ask back.
// covers: S0.19, S1.5, S1.6, S1.11, S2.1, S2.2, S2.7, S2.22
#[test]
fn a_request_knows_its_revision() {
    let server = telling(|ctx| {
        let negotiated = ctx.connection().negotiated().map(|revision| revision.as_str());
        let is_modern = ctx.era() == Era::Modern;
        json!([ctx.revision().as_str(), negotiated, is_modern, ctx.is_stateless(), ctx.id(), ctx.method().as_str()])
    });
    for revision in LEGACY {
        let version = revision.as_str();
        let mut client = ScriptedClient::new(&server, revision);
        assert_eq!(told(&mut client), json!([version, version, false, false, 1, "tools/call"]));
        let mut single =
            ScriptedClient::on_connection(Connection::legacy_request(&server, revision), revision, json!({}));
        assert_eq!(told(&mut single), json!([version, version, false, true, 1, "tools/call"]));
    }
    let expected = json!(["2026-07-28", null, true, true, 1, "tools/call"]);
    assert_eq!(told(&mut ScriptedClient::new(&server, MODERN)), expected);
    assert_eq!(
        told(&mut ScriptedClient::on_connection(Connection::modern_request(&server), MODERN, json!({}))),
        expected
    );
}

/// Requests of both eras run on one connection without flipping each other.
// covers: S0.9, S2.8
#[test]
fn eras_do_not_flip_each_other() {
    let gate = Gate::default();
    let waiting = gate.clone();
    let slow = tool("slow", move |ctx: RequestContext, _: NoArguments| {
        let gate = waiting.clone();
        async move {
            let before = ctx.revision();
            gate.wait().await;
            format!("{before} {} {}", ctx.revision(), ctx.supports(ClientCapability::Roots))
        }
    });
    let server = server(|server| server.tool(slow));
    let mut client = ScriptedClient::with_capabilities(&server, Revision::V2025_06_18, json!({ "roots": {} }));
    let legacy = client.start_tool("slow");
    let mut stranger = ScriptedClient::on_connection(Connection::modern_request(&server), MODERN, json!({}));
    let mut modern = stranger.build_request("tools/call", json!({ "name": "slow" }));
    modern["id"] = json!("modern");
    client.send(&modern);
    client.run();
    gate.open();
    client.run();
    assert_eq!(client.response_to(legacy)["result"]["content"][0]["text"], "2025-06-18 2025-06-18 true");
    assert_eq!(client.response_to("modern")["result"]["content"][0]["text"], "2026-07-28 2026-07-28 false");
}

/// What the client is and can do, as the handshake or the request says.
// covers: S0.10, S1.3, S1.12, S1.19, S1.36, S1.37, S2.21
#[test]
fn a_request_knows_its_client() {
    let server = telling(|ctx| {
        let url = ctx.supports(ClientCapability::ElicitationUrl);
        let form = ctx.supports(ClientCapability::ElicitationForm);
        json!([ctx.client_info().map(|info| &info.name), form, url, ctx.capabilities().roots.is_some()])
    });
    let declared = json!({ "elicitation": { "form": {} } });
    for revision in LEGACY {
        let mut client = ScriptedClient::with_capabilities(&server, revision, declared.clone());
        assert_eq!(told(&mut client), json!(["test", true, false, false]));
    }
    let mut client = ScriptedClient::with_capabilities(&server, MODERN, declared);
    assert_eq!(told(&mut client), json!([null, true, false, false]));
    let info = json!({ "io.modelcontextprotocol/clientInfo": { "name": "me", "version": "1" } });
    assert_eq!(told_with(&mut client, json!({ "_meta": info })), json!(["me", true, false, false]));
}

/// What handlers keep stays with the client, from one request to the next, and nowhere else.
// covers: S0.1, S0.2, S0.6, S1.1..S1.3, S1.15, S2.5
#[test]
fn state_stays_with_the_connection() {
    let server = telling(|ctx| {
        let count = ctx.connection().get_or_insert_with(AtomicU32::default).fetch_add(1, Ordering::Relaxed);
        let before = ctx.connection().get::<String>().map(|text| text.to_string());
        ctx.connection().insert(format!("set by {}", ctx.id()));
        json!([count, before, ctx.state::<String>(), ctx.state::<u8>().is_some()])
    });
    for revision in Revision::ALL {
        let mut first = ScriptedClient::new(&server, revision);
        let mut second = ScriptedClient::new(&server, revision);
        assert_eq!(told(&mut first), json!([0, null, "of the application", false]));
        assert_eq!(told(&mut first), json!([1, "set by 1", "of the application", false]));
        assert_eq!(told(&mut second), json!([0, null, "of the application", false]));
    }
    // S0.6, S1.2: without a session it is there as well, and lasts for the request.
    for _ in 0..2 {
        let mut single = ScriptedClient::on_connection(Connection::modern_request(&server), MODERN, json!({}));
        assert_eq!(told(&mut single)[0], 0);
    }
}

/// What a transport knows about a request.
struct Address(&'static str);

fn caller(principal: Option<&str>, address: Option<&'static str>) -> Caller {
    let mut caller = Caller::default();
    caller.principal = principal.map(|subject| Principal::new(Some("issuer"), subject));
    if let Some(address) = address {
        caller.extensions.insert(Address(address));
    }
    caller
}

fn who(ctx: &RequestContext) -> Value {
    let address = ctx.extension::<Address>().map(|address| address.0);
    json!([ctx.principal().map(|principal| &*principal.subject), address])
}

/// Who is behind a request is what the transport says of this request, and nobody on stdio.
// covers: S2.4, S2.27, S4.74
#[test]
fn a_request_knows_who_is_behind_it() {
    let server = telling(|ctx| who(&ctx));
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        assert_eq!(told(&mut client), json!([null, null]));
        client.caller = caller(Some("ann"), Some("10.0.0.1"));
        assert_eq!(told(&mut client), json!(["ann", "10.0.0.1"]));
        client.caller = caller(Some("ben"), None);
        assert_eq!(told(&mut client), json!(["ben", null]));
    }
}

/// It stays so for a request that has to wait for its turn, whoever makes room for it.
// covers: S2.4
#[test]
fn waiting_requests_keep_their_caller() {
    for revision in Revision::ALL {
        let gate = Gate::default();
        let waiting = gate.clone();
        let slow = tool("slow", move |ctx: RequestContext, _: NoArguments| {
            let gate = waiting.clone();
            async move {
                gate.wait().await;
                who(&ctx).to_string()
            }
        });
        let mut limits = Limits::default();
        limits.max_in_flight = 1;
        let server = server(|server| server.limits(limits).tool(slow));
        let mut client = ScriptedClient::new(&server, revision);
        let ask = |client: &mut ScriptedClient, name, address| {
            client.caller = caller(Some(name), address);
            client.start_tool("slow")
        };
        let first = ask(&mut client, "ann", Some("10.0.0.1"));
        let others = [
            (ask(&mut client, "ben", Some("10.0.0.2")), json!(["ben", "10.0.0.2"])),
            (ask(&mut client, "cleo", None), json!(["cleo", null])),
            (ask(&mut client, "dora", Some("10.0.0.4")), json!(["dora", "10.0.0.4"])),
        ];
        client.caller = caller(Some("eve"), Some("10.0.0.5"));
        client.start("ping", json!({}));
        client.cancel(first);
        gate.open();
        client.run();
        for (id, expected) in others {
            assert_eq!(client.response_to(id)["result"]["content"][0]["text"], expected.to_string(), "{revision}");
        }
    }
}

/// A request knows its place in a distributed trace, in every revision.
// covers: S4.102, S3.F18
#[test]
fn a_request_knows_its_trace() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let server = telling(|ctx| {
        let trace = ctx.trace_context();
        json!([trace.traceparent(), trace.tracestate(), trace.baggage()])
    });
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        assert_eq!(told(&mut client), json!([null, null, null]));
        let meta = json!({ "traceparent": parent, "tracestate": "a=b", "baggage": "c=d" });
        assert_eq!(told_with(&mut client, json!({ "_meta": meta })), json!([parent, "a=b", "c=d"]));
    }
}

#[derive(Debug, Deserialize)]
struct Round {
    round: u32,
}

/// What a retry brings along, typed and as it is.
// covers: S2.2, S2.24..S2.26, S2.35, S2.36, S2.38, S2.39
#[test]
fn a_retry_brings_answers_and_state() {
    let server = telling(|ctx| {
        json!({
            "keys": ctx.input_responses().iter().map(|(key, _)| key).collect::<Vec<_>>(),
            "has": ctx.has_input_response("a"),
            "round": ctx.input_response_as::<Round>("a").map(|round| round.map(|round| round.round)).ok(),
            "state": ctx.request_state(),
            "typed": ctx.request_state_as::<Round>().map(|round| round.map(|round| round.round)).ok(),
            "again": ctx.is_retry(),
        })
    });
    let first = json!({ "keys": [], "has": false, "round": null, "state": null, "typed": null, "again": false });
    let mut client = ScriptedClient::new(&server, MODERN);
    assert_eq!(told(&mut client), first);
    let retry = json!({ "inputResponses": { "a": { "round": 1 } }, "requestState": r#"{"round":2}"# });
    assert_eq!(
        told_with(&mut client, retry.clone()),
        json!({ "keys": ["a"], "has": true, "round": 1, "state": r#"{"round":2}"#, "typed": 2, "again": true })
    );
    // A retry after load shedding has a state and no answers; a state of somebody else is not believed.
    let shed = told_with(&mut client, json!({ "requestState": "not ours" }));
    assert_eq!((&shed["again"], &shed["typed"], &shed["state"]), (&json!(true), &Value::Null, &json!("not ours")));
    client.error("tools/call", json!({ "name": "tell", "inputResponses": 1 }), -32602);
    // Legacy has none of this, whatever a client sends.
    for revision in LEGACY {
        assert_eq!(told_with(&mut ScriptedClient::new(&server, revision), retry.clone()), first);
    }
}

fn question() -> InputRequiredResult {
    let form = ElicitRequestFormParams::new("Sure?", RequestedSchema::new(OrderedMap::new()));
    let mut questions = InputRequests::new();
    questions.insert("sure", InputRequest::from(ElicitRequest::new(form)));
    InputRequiredResult::default().input_requests(questions).request_state(r#"{"round":1}"#)
}

/// Tools, prompts and resources may answer with questions, which modern clients get as they are.
// covers: S2.23, S2.37, C-4, R-2
#[test]
fn handlers_may_answer_with_questions() {
    let server = server(|server| {
        server
            .tool(tool("ask", async |ctx: RequestContext, _: NoArguments| {
                if ctx.is_retry() {
                    return Ok(RoundResult::Complete(mcp_server::types::CallToolResult::text("thanks")));
                }
                Ok::<_, HandlerError>(RoundResult::InputRequired(Box::new(question())))
            }))
            .prompt(prompt("ask", async |_, _: NoArguments| question()))
            .resource(resource("a:b", "ask", async |_| question()))
    });
    let asked = [
        ("tools/call", json!({ "name": "ask" })),
        ("prompts/get", json!({ "name": "ask" })),
        ("resources/read", json!({ "uri": "a:b" })),
    ];
    for (method, params) in asked {
        let mut client = ScriptedClient::with_capabilities(&server, MODERN, json!({ "elicitation": {} }));
        let result = client.result(method, params.clone());
        assert_eq!(result["resultType"], "input_required");
        assert_eq!(result["inputRequests"]["sure"]["method"], "elicitation/create");
        assert_eq!(result["requestState"], r#"{"round":1}"#);
        assert_eq!(result.get("ttlMs"), None);
    }
    let mut client = ScriptedClient::with_capabilities(&server, MODERN, json!({ "elicitation": {} }));
    let retry = json!({ "name": "ask", "inputResponses": { "sure": { "action": "accept" } } });
    assert_eq!(client.result("tools/call", retry)["content"][0]["text"], "thanks");
}

/// A connection has a name, the same for all its requests and no other's.
// covers: S2.6
#[test]
fn connections_have_names_of_their_own() {
    let server = telling(|ctx| json!(ctx.connection().token()));
    let (mut one, mut other) = (ScriptedClient::new(&server, MODERN), ScriptedClient::new(&server, MODERN));
    let name = told(&mut one);
    assert!(name.as_str().is_some_and(|name| !name.is_empty()));
    assert_eq!(told(&mut one), name);
    assert_ne!(told(&mut other), name);
}

/// A value that looks at where it was kept when it goes.
struct Looks(Box<dyn Fn() + Send + Sync>);

impl Drop for Looks {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn looks(ctx: &RequestContext) -> Looks {
    let ctx = ctx.clone();
    Looks(Box::new(move || {
        drop((ctx.extension::<Looks>(), ctx.connection().get::<Looks>()));
        assert!(ctx.server().update(|_| Ok(())).is_ok());
    }))
}

/// What is dropped may do anything, so no lock is held then: it would wait for itself.
// covers: SEC-6
#[test]
#[expect(clippy::disallowed_methods, reason = "a thread that waits for itself must not be the one of the test")]
fn sec_6_values_are_dropped_without_a_lock() {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let server = server(|server| {
            server.tool(tool("drop", async |ctx: RequestContext, _: NoArguments| {
                ctx.insert_extension(looks(&ctx));
                ctx.insert_extension(looks(&ctx));
                ctx.connection().get_or_insert_with(|| {
                    // Somebody else is faster.
                    ctx.connection().insert(looks(&ctx));
                    looks(&ctx)
                });
                ctx.connection().insert(looks(&ctx));
                let kept = looks(&ctx);
                let other = tool("other", move |_, _: NoArguments| {
                    let _ = &kept;
                    std::future::ready("other")
                });
                let added = ctx.server().update(|registry| registry.add_tool(other));
                let removed = ctx.server().update(|registry| {
                    registry.remove_tool("other");
                    Ok(())
                });
                if added.and(removed).is_ok() { "dropped" } else { "refused" }
            }))
        });
        let _ = sender.send(ScriptedClient::new(&server, MODERN).call_tool_text("drop", json!({})));
    });
    assert_eq!(receiver.recv_timeout(std::time::Duration::from_secs(20)).unwrap(), "dropped");
}
