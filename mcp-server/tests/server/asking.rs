//! Questions to the client while a request runs.

use std::time::Duration;

use mcp_server::types::{
    CreateMessageRequestParams, ElicitRequestFormParams, ElicitRequestUrlParams, Method, OrderedMap, RawObject,
    RequestedSchema, Revision, SamplingMessage,
};
use mcp_server::{
    AskError, Connection, ErrorText, HandlerError, MissingCapability, NoArguments, RequestContext, Server, tool,
};
use mcp_testkit::{Notes, ScriptedClient};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::servers::{LEGACY, MODERN, server};

/// The revisions in which the user can be asked.
const ELICITING: [Revision; 2] = [Revision::V2025_06_18, Revision::V2025_11_25];

/// A server with a tool `ask`.
pub(crate) fn asking<F, Fut>(ask: F) -> Server
where
    F: Fn(RequestContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, HandlerError>> + Send + 'static,
{
    // Tests also see the causes of errors, which the default does not show.
    let with_causes = |error: &HandlerError| error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ");
    server(|server| {
        let ask = tool("ask", move |ctx, _: NoArguments| ask(ctx));
        server.tool(ask).on_handler_error(move |_, error| ErrorText::new(with_causes(error)))
    })
}

const INVALID: &str = "the request to the client is not valid";

fn everything() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })
}

/// The text of the answer to a call.
fn text(reply: &Value) -> &str {
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {reply}"))
}

fn message() -> CreateMessageRequestParams {
    CreateMessageRequestParams::new(vec![SamplingMessage::user("hi")], 10)
}

/// The client's model is asked, and its answer is typed.
// covers: S1.30, S2.18, S2.28, S2.29
#[test]
fn a_model_is_asked() {
    let server = asking(async |ctx: RequestContext| {
        let answer = ctx.sample("hi", message()).await?;
        Ok(format!("{} says {}", answer.model, serde_json::to_string(&answer.content)?))
    });
    for revision in LEGACY {
        let mut client = ScriptedClient::with_capabilities(&server, revision, everything());
        let id = client.start_tool("ask");
        let question = client.expect_message("sampling/createMessage");
        assert_eq!(question["params"]["maxTokens"], 10);
        let content = json!({ "type": "text", "text": "hello" });
        client.respond(&question, json!({ "role": "assistant", "content": content, "model": "m" }));
        assert_eq!(text(&client.response_to(id)), r#"m says {"type":"text","text":"hello"}"#);
        assert!(client.connection.is_idle());
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "shown with `Debug`")]
struct Booking {
    name: String,
    #[serde(default = "one")]
    seats: u8,
    window: Option<bool>,
}

fn one() -> u8 {
    1
}

fn booking() -> Server {
    asking(async |ctx: RequestContext| Ok(format!("{:?}", ctx.elicit::<Booking>("book", "Who?").await?)))
}

/// The form follows from a type, and so does the answer; to decline is an answer.
// covers: S1.30, S2.19, S2.31, EL-20, EL-21
#[test]
fn a_user_fills_in_a_typed_form() {
    for revision in ELICITING {
        let mut client = ScriptedClient::with_capabilities(&booking(), revision, json!({ "elicitation": {} }));
        let mut answered = |answer: Value| {
            let id = client.start_tool("ask");
            let question = client.expect_message("elicitation/create");
            let schema = &question["params"]["requestedSchema"];
            // Defaults of numbers, and the mode, are left out where they are not known.
            let is_newest = revision == Revision::V2025_11_25;
            assert_eq!(schema["properties"]["seats"].get("default"), is_newest.then_some(&json!(1)));
            assert!(is_newest || question["params"].get("mode").is_none());
            assert_eq!(schema["required"], json!(["name"]));
            client.respond(&question, answer);
            text(&client.response_to(id)).to_owned()
        };
        assert_eq!(
            answered(json!({ "action": "accept", "content": { "name": "Ann" } })),
            r#"Accepted(Booking { name: "Ann", seats: 1, window: None })"#
        );
        assert_eq!(answered(json!({ "action": "decline" })), "Declined");
        assert_eq!(answered(json!({ "action": "cancel" })), "Cancelled");
        for content in [json!({ "seats": 2 }), json!({ "name": "Ann", "seats": "two" })] {
            let text = answered(json!({ "action": "accept", "content": content }));
            assert!(text.starts_with("the response of the client is not valid: "), "{text}");
        }
    }
}

/// What is not flat is not asked at all.
// covers: S2.32
#[test]
fn nested_forms_are_not_asked() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Trip {
        stops: Vec<Booking>,
    }
    let server = asking(async |ctx: RequestContext| Ok(format!("{:?}", ctx.elicit::<Trip>("trip", "Where?").await?)));
    let mut client = ScriptedClient::with_capabilities(&server, Revision::V2025_11_25, everything());
    let result = client.call_tool("ask", json!({}));
    assert_eq!(result["isError"], true);
    assert!(result["content"][0]["text"].as_str().unwrap().contains("stops"), "{result}");
}

/// A form may have a schema of its own.
// covers: S2.19, S2.30
#[test]
fn a_user_fills_in_any_form() {
    let server = asking(async |ctx: RequestContext| {
        let form = ElicitRequestFormParams::new("Sure?", RequestedSchema::new(OrderedMap::new()));
        Ok(format!("{:?}", ctx.elicit_form("sure", form).await?.accepted()))
    });
    let mut client = ScriptedClient::with_capabilities(&server, Revision::V2025_11_25, everything());
    let id = client.start_tool("ask");
    let question = client.expect_message("elicitation/create");
    assert_eq!(question["params"]["requestedSchema"]["type"], "object");
    client.respond(&question, json!({ "action": "decline" }));
    assert_eq!(text(&client.response_to(id)), "Err(Declined)");
}

fn visiting(url: &'static str, id: Option<&'static str>) -> Server {
    asking(move |ctx: RequestContext| async move {
        let mut question = ElicitRequestUrlParams::new("Log in", url);
        question.elicitation_id = id.map(str::to_owned);
        Ok(format!("{:?}", ctx.elicit_url("login", question).await?))
    })
}

/// A page is visited with all members that the revision wants.
// covers: S2.19, S2.33, EL-8
#[test]
fn a_user_visits_a_page() {
    let page = "https://example.com/login";
    let mut client =
        ScriptedClient::with_capabilities(&visiting(page, Some("e1")), Revision::V2025_11_25, everything());
    let id = client.start_tool("ask");
    let mut question = client.expect_message("elicitation/create");
    question["params"].as_object_mut().unwrap().remove("_meta");
    assert_eq!(question["params"], json!({ "mode": "url", "message": "Log in", "url": page, "elicitationId": "e1" }));
    client.respond(&question, json!({ "action": "accept" }));
    assert_eq!(text(&client.response_to(id)), "Accepted(())");
}

/// Without one of them, or with an address that is none, nothing is asked.
// covers: S2.33
#[test]
fn a_page_has_an_address() {
    let refusal = |server: &Server| {
        let mut client = ScriptedClient::with_capabilities(server, Revision::V2025_11_25, everything());
        let result = client.call_tool("ask", json!({}));
        assert_eq!(result["isError"], true, "{result}");
        client.assert_quiet();
        result["content"][0]["text"].as_str().unwrap().to_owned()
    };
    for url in ["example.com", "/login", "://x", "https://", "1a://x", "https://a b", "mailto:ann"] {
        assert_eq!(refusal(&visiting(url, Some("e1"))), format!("{INVALID}: `{url}` is not an absolute URL"));
    }
    assert_eq!(
        refusal(&visiting("https://example.com", None)),
        format!("{INVALID}: 2025-11-25 cannot express the request: ElicitRequestUrlParams.elicitationId")
    );
}

/// The folders of the client.
// covers: S1.30, S2.20, S2.34
#[test]
fn roots_are_listed() {
    let server = asking(async |ctx: RequestContext| Ok(ctx.list_roots("roots").await?[0].uri.clone()));
    for revision in LEGACY {
        let mut client = ScriptedClient::with_capabilities(&server, revision, json!({ "roots": {} }));
        let id = client.start_tool("ask");
        let question = client.expect_message("roots/list");
        client.respond(&question, json!({ "roots": [{ "uri": "file:///home" }] }));
        assert_eq!(text(&client.response_to(id)), "file:///home");
    }
}

/// A client is pinged, and asked what nobody defined.
// covers: S1.9, S1.10, S1.27, S1.31, S1.34, S4.48
#[test]
fn other_things_are_asked_of_the_connection() {
    let server = asking(async |ctx: RequestContext| {
        ctx.connection().ping().await?;
        let params = RawObject::new(&json!({ "of": "day" }))?;
        let weather: Value = ctx.connection().request(Method::from("x/weather"), &params).await?;
        Ok(weather["sky"].to_string())
    });
    for revision in LEGACY {
        let mut client = ScriptedClient::new(&server, revision);
        let id = client.start_tool("ask");
        let ping = client.expect_message("ping");
        client.respond(&ping, json!({}));
        let question = client.expect_message("x/weather");
        assert_eq!(question["params"]["of"], "day");
        client.respond(&question, json!({ "sky": "blue" }));
        assert_eq!(text(&client.response_to(id)), "\"blue\"");
    }
}

/// Asks everything, and tells how each went.
fn all_questions() -> Server {
    asking(async |ctx: RequestContext| {
        let url = ElicitRequestUrlParams::new("Log in", "https://example.com").elicitation_id("e1");
        let mut errors = vec![
            ctx.sample("a", message()).await.expect_err("a refusal"),
            ctx.elicit::<Booking>("b", "Who?").await.expect_err("a refusal"),
            ctx.elicit_url("c", url).await.expect_err("a refusal"),
            ctx.list_roots("d").await.expect_err("a refusal"),
        ];
        let kind = |error: AskError| {
            if let AskError::NotSupported(MissingCapability(capability)) = error {
                return capability.name().to_owned();
            }
            if let AskError::NoBackChannel(why) = error { why.to_string() } else { "other".to_owned() }
        };
        if ctx.is_stateless() {
            errors.push(ctx.connection().ping().await.expect_err("a refusal"));
        }
        Ok(errors.into_iter().map(kind).collect::<Vec<_>>().join(","))
    })
}

/// A client that declared nothing is not asked, in any revision.
// covers: S0.11, S1.36, S2.21, S2.28, S2.34, EL-2, RO-5
#[test]
fn questions_need_capabilities() {
    for revision in LEGACY {
        let mut client = ScriptedClient::new(&all_questions(), revision);
        assert_eq!(client.call_tool_text("ask", json!({})), "sampling,elicitation.form,elicitation.url,roots");
        client.assert_quiet();
    }
}

/// A handler that passes the refusal on answers with the error that names what is missing.
// covers: S0.11, S2.30, S2.33, E-14
#[test]
fn a_missing_capability_is_named() {
    let missing = |server: Server, revision: Revision, declared: Value| {
        let mut client = ScriptedClient::with_capabilities(&server, revision, declared);
        client.error("tools/call", json!({ "name": "ask" }), -32021)["data"]["requiredCapabilities"].take()
    };
    for revision in [Revision::V2025_11_25, MODERN] {
        assert_eq!(missing(booking(), revision, json!({})), json!({ "elicitation": { "form": {} } }));
        assert_eq!(
            missing(visiting("https://example.com", Some("e1")), revision, json!({ "elicitation": {} })),
            json!({ "elicitation": { "url": {} } })
        );
    }
}

/// A model with tools is another capability.
// covers: S1.37, S2.28
#[test]
fn a_model_with_tools_is_another_capability() {
    let server = asking(async |ctx: RequestContext| {
        ctx.sample("a", message().tools(Vec::new())).await?;
        Ok(String::new())
    });
    let mut client = ScriptedClient::with_capabilities(&server, Revision::V2025_11_25, everything());
    let error = client.error("tools/call", json!({ "name": "ask" }), -32021);
    assert_eq!(error["data"]["requiredCapabilities"], json!({ "sampling": { "tools": {} } }));
    let mut client =
        ScriptedClient::with_capabilities(&server, Revision::V2025_11_25, json!({ "sampling": { "tools": {} } }));
    client.start_tool("ask");
    client.expect_message("sampling/createMessage");
}

/// A modern client gets no request; it is asked by the result instead.
// covers: S1.8, S1.9, S1.20, S1.21, S1.25, S1.29, S2.18, S2.22, S2.23, S2.28
#[test]
fn modern_clients_get_no_requests() {
    let server = all_questions();
    for connection in [Connection::long_lived(&server), Connection::modern_request(&server)] {
        let mut client = ScriptedClient::on_connection(connection, MODERN, everything());
        let result = client.result("tools/call", json!({ "name": "ask" }));
        // Without the feature the handler gets an error instead.
        let kind = if cfg!(feature = "mrtr") { "input_required" } else { "complete" };
        assert_eq!(result["resultType"], kind, "{result}");
        client.assert_quiet();
    }
}

/// Without a session there is no way to ask, and that is what the handler hears.
// covers: S0.8, S0.28, S1.8
#[test]
fn clients_without_session_are_not_asked() {
    let server = all_questions();
    for revision in LEGACY {
        let mut client =
            ScriptedClient::on_connection(Connection::legacy_request(&server, revision), revision, json!({}));
        let expected = ["server-to-client requests need a session"; 5].join(",");
        assert_eq!(client.call_tool_text("ask", json!({})), expected);
        client.assert_quiet();
    }
}

/// Time is up when the limit says so, and the client is told to stop.
// covers: S1.28
#[test]
fn questions_have_an_end() {
    let server = asking(async |ctx: RequestContext| {
        let asked = ctx.connection().ping().idle_timeout(Duration::from_secs(5)).await;
        Ok(format!("{:?}", asked.expect_err("silence")))
    });
    let mut client = ScriptedClient::new(&server, Revision::V2025_06_18);
    let id = client.start_tool("ask");
    let question = client.expect_message("ping");
    assert!(client.connection.poll_timeout().is_some());
    client.advance(Duration::from_secs(4));
    client.assert_quiet();
    client.advance(Duration::from_secs(1));
    assert_eq!(client.expect_message("notifications/cancelled")["params"]["requestId"], question["id"]);
    assert_eq!(text(&client.response_to(id)), "NoResponse(TimedOut)");
    assert_eq!(client.connection.poll_timeout(), None);
    // A person may take longer, but not for ever.
    let mut client = ScriptedClient::with_capabilities(&booking(), Revision::V2025_06_18, everything());
    let id = client.start_tool("ask");
    client.expect_message("elicitation/create");
    client.advance(Duration::from_secs(599));
    client.assert_quiet();
    client.advance(Duration::from_secs(1));
    client.expect_message("notifications/cancelled");
    assert_eq!(text(&client.response_to(id)), "the peer did not respond in time");
}

/// Progress reaches whoever asked, until the question is over.
// covers: S1.28
#[test]
fn progress_of_a_question_is_heard() {
    let notes = Notes::default();
    let heard = notes.clone();
    let server = asking(move |ctx: RequestContext| {
        let heard = heard.clone();
        async move {
            let asked = ctx.connection().ping().timeout(None).on_progress(move |progress| {
                heard.add(format!("{} {:?}", progress.progress, progress.message));
                assert_ne!(progress.progress.as_f64(), 2.0, "this is what the test wants");
            });
            Ok(asked.await.is_ok().to_string())
        }
    });
    let mut client = ScriptedClient::new(&server, Revision::V2025_11_25);
    let id = client.start_tool("ask");
    let question = client.expect_message("ping");
    let token = &question["params"]["_meta"]["progressToken"];
    // The second is too much for the one who hears it, which is no reason for anything to end.
    for progress in 1..4 {
        let params = json!({ "progressToken": token, "progress": progress, "message": "on it" });
        client.notify("notifications/progress", params);
    }
    assert_eq!(notes.take(), [r#"1 Some("on it")"#, r#"2 Some("on it")"#]);
    client.respond(&question, json!({}));
    assert_eq!(text(&client.response_to(id)), "true");
}

/// Progress of the client keeps a question open.
// covers: S1.28
#[test]
fn progress_keeps_a_question_open() {
    let server = asking(async |ctx: RequestContext| Ok(format!("{:?}", ctx.connection().ping().await)));
    let mut client = ScriptedClient::new(&server, Revision::V2025_11_25);
    let id = client.start_tool("ask");
    let question = client.expect_message("ping");
    let token = &question["params"]["_meta"]["progressToken"];
    for progress in 1..5 {
        client.advance(Duration::from_secs(59));
        client.notify("notifications/progress", json!({ "progressToken": token, "progress": progress }));
    }
    client.assert_quiet();
    client.respond(&question, json!({}));
    assert_eq!(text(&client.response_to(id)), "Ok(())");
}
