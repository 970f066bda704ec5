//! The revision in which every request stands for itself.

use std::time::Duration;

use rmcp::ClientLifecycleMode;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ElicitationAction, GetPromptRequestParams, InputRequiredResult,
    RequestMetaObject, ServerNotification, SubscriptionFilter,
};
use rmcp::service::Subscription;
use serde_json::{Value, json};

use crate::common;
use crate::host::{Heard, ROOTS, SAMPLED};
use crate::report::{Checked, Report, equal, expect, until};
use crate::session::{QUIET, Session, refused, text_of, version};

const REVISION: &str = "2026-07-28";
const WATCHED: &str = "test://watched-resource";

/// What a client declares that can do everything.
pub(crate) const EVERYTHING: &str =
    r#"{ "sampling": {}, "elicitation": { "form": {} }, "roots": { "listChanged": true } }"#;

pub(crate) async fn drive(report: &Report, url: &str) {
    let all = serde_json::from_str(EVERYTHING).unwrap_or_default();
    match open(report, url, all).await {
        Ok(session) => {
            discover(&session).await;
            common::check(&session, "modern").await;
            tools(&session).await;
            logging(&session).await;
            input(&session).await;
            input_by_hand(&session).await;
            asking(&session).await;
            listen(&session).await;
            listen_in_part(&session).await;
            removed(&session).await;
            cancellation(&session).await;
            session.check_wire().await;
            session.close().await;
        }
        Err(fault) => report.fail(&format!("{REVISION}/connection"), &fault.to_string()),
    }
    few_capabilities(report, url).await;
    auto(report, url).await;
}

async fn open<'a>(report: &'a Report, url: &str, capabilities: Value) -> Checked<Session<'a>> {
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![version(REVISION)?] };
    Session::open(report, url, REVISION, lifecycle, capabilities).await
}

async fn discover(session: &Session<'_>) {
    session
        .check("discover", async {
            let methods: Vec<_> = session.wire.posts().iter().map(|post| post.message["method"].clone()).collect();
            equal(methods, vec![json!("server/discover")], "messages")?;
            let server = session.client.peer_info().ok_or("nothing is known of the server")?;
            equal(server.protocol_version.clone(), version(REVISION)?, "version")?;
            expect(server.server_info.is_some(), "no serverInfo")
        })
        .await;
    session
        .check("discover-capabilities", async {
            let server = session.client.peer_info().ok_or("nothing is known of the server")?;
            let offered = serde_json::to_value(&server.capabilities)?;
            for kind in ["tools", "prompts", "resources"] {
                equal(&offered[kind]["listChanged"], &json!(true), kind)?;
            }
            equal(&offered["resources"]["subscribe"], &json!(true), "resources.subscribe")?;
            expect(offered["completions"].is_object(), "completions is not declared")
        })
        .await;
}

async fn tools(session: &Session<'_>) {
    session
        .check("tool/test_custom_header", async {
            let text = session.text("test_custom_header", json!({ "value": "interop-value" })).await?;
            expect(text.contains("interop-value"), format!("the value is not in {text:?}"))?;
            let posts = session.wire.posts();
            let header = posts.last().and_then(|post| post.header("mcp-param-value"));
            equal(header, Some("interop-value"), "header")
        })
        .await;
    for tool in ["test_missing_capability", "test_streaming_elicitation"] {
        session.check(&format!("tool/{tool}"), async { session.call(tool, Value::Null).await.map(drop) }).await;
    }
}

async fn logging(session: &Session<'_>) {
    let levels =
        [("only-if-asked", None, 0), ("messages-arrive", Some("debug"), 3), ("level-is-respected", Some("error"), 0)];
    for (name, level, expected) in levels {
        session
            .check(&format!("logging/{name}"), async {
                session.host.forget();
                let meta = level.map(|level| json!({ "io.modelcontextprotocol/logLevel": level }));
                let meta: Option<RequestMetaObject> = meta.map(serde_json::from_value).transpose()?;
                session.start("test_tool_with_logging", Value::Null, meta).await?.await_response().await?;
                tokio::time::sleep(QUIET).await;
                equal(session.host.heard(Heard::Log).len(), expected, "messages")
            })
            .await;
    }
}

/// Results that ask for input first; the client answers and calls again.
async fn input(session: &Session<'_>) {
    let asked = || [Heard::Form, Heard::Prompt, Heard::Roots].map(|kind| session.host.heard(kind).len());
    let every = [
        ("elicitation", "test_input_required_result_elicitation", [1, 0, 0], 2, "interop-name"),
        ("sampling", "test_input_required_result_sampling", [0, 1, 0], 2, SAMPLED),
        ("roots", "test_input_required_result_list_roots", [0, 0, 1], 2, ROOTS[1]),
        ("request-state", "test_input_required_result_request_state", [1, 0, 0], 2, "state-ok: confirmed"),
        ("multiple", "test_input_required_result_multiple_inputs", [1, 1, 1], 2, SAMPLED),
        ("multi-round", "test_input_required_result_multi_round", [2, 0, 0], 3, "interop-name; interop-color"),
    ];
    for (name, tool, questions, calls, part) in every {
        session
            .check(&format!("input/{name}"), async {
                session.host.forget();
                let mark = session.wire.posts().len();
                let text = session.text(tool, Value::Null).await?;
                expect(text.contains(part), format!("{part:?} is not in {text:?}"))?;
                equal(asked(), questions, "forms, prompts, lists of roots")?;
                equal(session.wire.posts().len() - mark, calls, "calls")
            })
            .await;
    }
    session
        .check("input/prompt", async {
            let params = GetPromptRequestParams::new("test_input_required_result_prompt");
            let text = serde_json::to_string(&session.client.get_prompt(params).await?.messages)?;
            expect(text.contains("interop-context"), format!("the answer is not in {text}"))
        })
        .await;
}

async fn input_by_hand(session: &Session<'_>) {
    let accepted =
        |key: &str, content: Value| serde_json::from_value(json!({ key: { "action": "accept", "content": content } }));
    session
        .check("input/asks-again", async {
            let params = CallToolRequestParams::new("test_input_required_result_elicitation");
            let first = questions(session.client.call_tool_once(params.clone()).await?)?;
            let keys: Vec<_> = first.input_requests.iter().flat_map(|all| all.keys().cloned()).collect();
            equal(keys, vec!["user_name".to_owned()], "keys")?;
            let again = params.with_input_responses(accepted("other", json!({ "name": "x" }))?);
            questions(session.client.call_tool_once(again).await?).map(drop)
        })
        .await;
    session
        .check("input/tampered-state", async {
            let params = CallToolRequestParams::new("test_input_required_result_tampered_state");
            let first = questions(session.client.call_tool_once(params.clone()).await?)?;
            let state = first.request_state.ok_or("no requestState")?;
            let again = params
                .with_input_responses(accepted("confirm", json!({ "ok": true }))?)
                .with_request_state(format!("{state}-TAMPERED"));
            match session.client.call_tool_once(again).await {
                Err(rmcp::ServiceError::McpError(_)) => Ok(()),
                other => Err(format!("expected an error, got {other:?}").into()),
            }
        })
        .await;
}

fn questions(response: CallToolResponse) -> Checked<InputRequiredResult> {
    let CallToolResponse::InputRequired(result) = response else {
        return Err(format!("input was not required: {response:?}").into());
    };
    Ok(result)
}

/// Tools that ask in every era from one source.
async fn asking(session: &Session<'_>) {
    let host = &session.host;
    session
        .check("ask/one-by-one", async {
            host.forget();
            let text = session.text("test_ask_both_eras", json!({ "call": "rmcp" })).await?;
            equal(text.as_str(), "interop-name likes interop-colour; steps taken: 1", "text")?;
            equal(host.heard(Heard::Form).len(), 2, "forms")
        })
        .await;
    session
        .check("ask/two-at-once", async {
            host.forget();
            let text = session.text("test_ask_two_at_once", Value::Null).await?;
            equal(text, format!("interop-name: {SAMPLED}"), "text")?;
            equal([host.heard(Heard::Form).len(), host.heard(Heard::Prompt).len()], [1, 1], "questions")
        })
        .await;
    let others = [(ElicitationAction::Decline, "the user declined"), (ElicitationAction::Cancel, "the user cancelled")];
    for (action, why) in others {
        session
            .check(&format!("ask/{why}"), async {
                host.answer_forms_with(action);
                let result = session.result("test_ask_both_eras", json!({ "call": why })).await;
                host.answer_forms_with(ElicitationAction::Accept);
                let result = result?;
                equal((result.is_error, text_of(&result).as_str()), (Some(true), why), "result")
            })
            .await;
    }
}

fn filter(filter: Value) -> serde_json::Result<SubscriptionFilter> {
    serde_json::from_value(filter)
}

fn everything() -> Value {
    json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourcesListChanged": true,
        "resourceSubscriptions": [WATCHED],
    })
}

/// The methods of what comes until nothing more does.
async fn told(subscription: &mut Subscription) -> Checked<Vec<Value>> {
    let mut methods = Vec::new();
    while let Ok(next) = tokio::time::timeout(Duration::from_secs(1), subscription.next()).await {
        let next: ServerNotification = next?.ok_or("the stream ended")?;
        methods.push(serde_json::to_value(&next)?["method"].clone());
    }
    methods.sort_by_key(Value::to_string);
    Ok(methods)
}

async fn listen(session: &Session<'_>) {
    let client = &session.client;
    session
        .check("listen/nothing-unasked", async {
            session.host.forget();
            session.call("test_trigger_changes", Value::Null).await?;
            tokio::time::sleep(QUIET).await;
            equal(session.host.heard(Heard::Change), vec![], "changes that nobody listens to")
        })
        .await;
    session
        .check("listen/acknowledged", async {
            let mut subscription = client.listen(filter(everything())?).await?;
            equal(serde_json::to_value(subscription.acknowledged())?, everything(), "filter")?;
            subscription.cancel().await.map_err(Into::into)
        })
        .await;
    let [tools, prompts, resources] =
        ["tools", "prompts", "resources"].map(|kind| json!(format!("notifications/{kind}/list_changed")));
    let updated = json!("notifications/resources/updated");
    let every = [
        ("tools", "test_trigger_tool_change", vec![tools.clone()]),
        ("prompts", "test_trigger_prompt_change", vec![prompts.clone()]),
        ("all", "test_trigger_changes", vec![prompts, resources, updated, tools]),
    ];
    for (name, tool, expected) in every {
        session
            .check(&format!("listen/changes-{name}"), async {
                let mut subscription = client.listen(filter(everything())?).await?;
                session.call(tool, Value::Null).await?;
                equal(told(&mut subscription).await?, expected, "changes")?;
                subscription.cancel().await.map_err(Into::into)
            })
            .await;
    }
}

async fn listen_in_part(session: &Session<'_>) {
    let client = &session.client;
    let parts = [
        ("filter", json!({ "promptsListChanged": true }), vec![json!("notifications/prompts/list_changed")]),
        ("other-resource", json!({ "resourceSubscriptions": ["test://static-text"] }), vec![]),
    ];
    for (name, part, expected) in parts {
        session
            .check(&format!("listen/{name}"), async {
                let mut subscription = client.listen(filter(part)?).await?;
                session.call("test_trigger_changes", Value::Null).await?;
                equal(told(&mut subscription).await?, expected, "changes")?;
                subscription.cancel().await.map_err(Into::into)
            })
            .await;
    }
    session
        .check("listen/two-streams", async {
            // The package refuses notifications with another id than that of the stream.
            let tools = filter(json!({ "toolsListChanged": true }))?;
            let (mut one, mut two) = (client.listen(tools.clone()).await?, client.listen(tools).await?);
            session.call("test_trigger_tool_change", Value::Null).await?;
            equal([told(&mut one).await?.len(), told(&mut two).await?.len()], [1, 1], "changes")?;
            one.cancel().await?;
            session.call("test_trigger_tool_change", Value::Null).await?;
            equal(told(&mut two).await?.len(), 1, "changes on the other")?;
            two.cancel().await.map_err(Into::into)
        })
        .await;
}

async fn removed(session: &Session<'_>) {
    let every = [
        ("ping", json!({})),
        ("logging/setLevel", json!({ "level": "info" })),
        ("resources/subscribe", json!({ "uri": WATCHED })),
        ("resources/unsubscribe", json!({ "uri": WATCHED })),
    ];
    for (method, params) in every {
        session
            .check(&format!("removed/{method}"), async {
                refused(session.request(method, params).await?, -32601).map(drop)
            })
            .await;
    }
}

async fn cancellation(session: &Session<'_>) {
    session
        .check("cancellation/stops-the-tool", async {
            session.host.forget();
            let call = session.start("test_slow", json!({ "seconds": 60 }), None).await?;
            until(|| session.host.heard(Heard::Progress).len() >= 2).await;
            call.cancel(None).await?;
            session.nothing_under_way().await
        })
        .await;
    session
        .check("cancellation/by-closing", async {
            let is_posted = |post: &crate::wire::Post| post.method() == Some("notifications/cancelled");
            expect(!session.wire.posts().iter().any(is_posted), "the cancellation was posted as well")
        })
        .await;
}

async fn few_capabilities(report: &Report, url: &str) {
    report
        .check(&format!("{REVISION}/without-capability"), async {
            let session = open(report, url, json!({})).await?;
            let error = refused(session.result("test_missing_capability", Value::Null).await, -32021)?;
            equal(error.data, Some(json!({ "requiredCapabilities": { "sampling": {} } })), "data")?;
            session.close().await;
            Ok(())
        })
        .await;
    report
        .check(&format!("{REVISION}/input/only-what-the-client-can"), async {
            let session = open(report, url, json!({ "sampling": {} })).await?;
            let params = CallToolRequestParams::new("test_input_required_result_capabilities");
            let first = questions(session.client.call_tool_once(params).await?)?;
            let asked = serde_json::to_value(&first.input_requests)?;
            let methods: Vec<_> =
                asked.as_object().into_iter().flatten().map(|(_, one)| one["method"].clone()).collect();
            equal(methods, vec![json!("sampling/createMessage")], "questions")?;
            session.close().await;
            Ok(())
        })
        .await;
}

/// A client that finds out by itself what the server speaks.
async fn auto(report: &Report, url: &str) {
    report
        .check("both-eras/auto", async {
            let lifecycle =
                ClientLifecycleMode::Auto { preferred_versions: vec![version(REVISION)?], legacy_version: None };
            let session = Session::open(report, url, REVISION, lifecycle, json!({})).await?;
            expect(!session.wire.posts().iter().any(|post| post.method() == Some("initialize")), "it fell back")?;
            session.call("test_simple_text", Value::Null).await?;
            session.close().await;
            Ok(())
        })
        .await;
    report
        .check("both-eras/no-common-version", async {
            // A server that names its versions is modern, so the package does not fall back.
            let lifecycle = ClientLifecycleMode::Auto {
                preferred_versions: vec![version("2099-01-01")?],
                legacy_version: Some(version("2025-11-25")?),
            };
            let opened = Session::open(report, url, REVISION, lifecycle, json!({})).await;
            let why = opened.err().ok_or("there is a common version")?.to_string();
            expect(why.starts_with("no compatible protocol version") && why.contains(REVISION), why)
        })
        .await;
}
