//! What becomes of the errors of handlers.

use std::error::Error;
use std::sync::{Arc, Mutex};

#[cfg(feature = "anyhow")]
use anyhow::Context as _;
use mcp_server::types::{ErrorObject, Revision};
use mcp_server::{
    AskError, ErrorText, HandlerError, NoArguments, RequestContext, Server, ServerBuilder, Tool, prompt, resource,
    template, tool,
};
use mcp_testkit::ScriptedClient;
use serde_json::{Value, json};

use crate::servers::{MODERN, server};
use crate::watching::{Fields, watch};

const ERAS: [Revision; 2] = [Revision::V2025_11_25, MODERN];

/// An error of an application, as most of them are written.
#[derive(Debug, thiserror::Error)]
enum StoreError {
    #[error("the store cannot ask")]
    Ask(#[from] AskError),
    #[error("the store refused")]
    Refused(#[from] ErrorObject),
    #[error("the store is closed")]
    Closed,
}

/// One that adds nothing to what it was created from.
#[derive(Debug, thiserror::Error)]
enum AppError {
    #[error("the application failed")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Refused(#[from] ErrorObject),
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    #[expect(dead_code, reason = "no answer ever comes")]
    name: String,
}

async fn ask(ctx: &RequestContext) -> Result<(), AskError> {
    ctx.elicit::<Name>("name", "Who?").await.map(drop)
}

async fn ask_store(ctx: &RequestContext) -> Result<(), StoreError> {
    Ok(ask(ctx).await?)
}

fn refuse() -> Result<(), ErrorObject> {
    Err(ErrorObject::invalid_params("no such account"))
}

fn refuse_store() -> Result<(), StoreError> {
    Ok(refuse()?)
}

type Boxed = Box<dyn Error + Send + Sync>;

/// Tools that ask a client that cannot be asked, with all kinds of errors.
fn asking() -> Vec<Tool> {
    vec![
        tool("ask", async |ctx, _: NoArguments| ask(&ctx).await),
        tool("enum", async |ctx, _: NoArguments| ask_store(&ctx).await),
        tool("nested", async |ctx, _: NoArguments| Ok::<_, AppError>(ask_store(&ctx).await?)),
        tool("transparent", async |ctx, _: NoArguments| Ok::<_, AppError>(ask(&ctx).await?)),
        tool("boxed", async |ctx, _: NoArguments| Ok::<_, Boxed>(ask(&ctx).await?)),
        tool("boxed nested", async |ctx, _: NoArguments| {
            Ok::<_, Boxed>(ask_store(&ctx).await.map_err(AppError::from)?)
        }),
        tool("handler", async |ctx, _: NoArguments| Ok::<_, HandlerError>(ask(&ctx).await?)),
        tool("handler nested", async |ctx, _: NoArguments| {
            Ok::<_, HandlerError>(ask_store(&ctx).await.map_err(AppError::from)?)
        }),
        #[cfg(feature = "anyhow")]
        tool("anyhow", async |ctx, _: NoArguments| anyhow::Ok(ask(&ctx).await?)),
        #[cfg(feature = "anyhow")]
        tool("anyhow nested", async |ctx, _: NoArguments| {
            let asked: anyhow::Result<()> = ask_store(&ctx).await.context("first").context("second");
            asked
        }),
        #[cfg(feature = "anyhow")]
        tool("anyhow in handler", async |ctx, _: NoArguments| {
            let asked = ask(&ctx).await.context("first").context("second");
            asked.map_err(HandlerError::new)
        }),
    ]
}

/// Tools that refuse with an error of the protocol.
fn refusing() -> Vec<Tool> {
    vec![
        tool("object", async |_, _: NoArguments| refuse()),
        tool("enum", async |_, _: NoArguments| refuse_store()),
        tool("nested", async |_, _: NoArguments| Ok::<_, AppError>(refuse_store()?)),
        tool("transparent", async |_, _: NoArguments| Ok::<_, AppError>(refuse()?)),
        tool("boxed transparent", async |_, _: NoArguments| Ok::<_, Boxed>(refuse().map_err(AppError::from)?)),
        tool("boxed", async |_, _: NoArguments| Ok::<_, Boxed>(refuse()?)),
        tool("boxed nested", async |_, _: NoArguments| Ok::<_, Boxed>(refuse_store().map_err(AppError::from)?)),
        tool("handler", async |_, _: NoArguments| Ok::<_, HandlerError>(refuse()?)),
        tool("handler nested", async |_, _: NoArguments| Ok::<_, HandlerError>(refuse_store()?)),
        #[cfg(feature = "anyhow")]
        tool("anyhow", async |_, _: NoArguments| anyhow::Ok(refuse()?)),
        #[cfg(feature = "anyhow")]
        tool("anyhow nested", async |_, _: NoArguments| {
            let refused: anyhow::Result<()> = refuse_store().context("first").context("second");
            refused
        }),
    ]
}

fn server_with(tools: Vec<Tool>) -> Server {
    server(|server| tools.into_iter().fold(server, ServerBuilder::tool))
}

fn names(tools: &[Tool]) -> Vec<String> {
    tools.iter().map(|tool| tool.name().to_owned()).collect()
}

/// A client that declared no elicitation gets -32021 through every type of error.
// covers: AUT-1
#[test]
fn aut_1_a_missing_capability_survives_every_error_type() {
    let (names, server) = (names(&asking()), server_with(asking()));
    for revision in ERAS {
        let mut client = ScriptedClient::new(&server, revision);
        for name in &names {
            let error = client.error("tools/call", json!({ "name": name }), -32021);
            assert_eq!(error["data"]["requiredCapabilities"], json!({ "elicitation": { "form": {} } }), "{name}");
        }
        client.assert_quiet();
    }
}

// covers: AUT-1
#[test]
fn aut_1_error_objects_survive_every_error_type() {
    let (names, server) = (names(&refusing()), server_with(refusing()));
    for revision in ERAS {
        let mut client = ScriptedClient::new(&server, revision);
        for name in &names {
            let error = client.error("tools/call", json!({ "name": name }), -32602);
            assert_eq!(error["message"], "no such account", "{name}");
        }
    }
}

/// All other errors are for the model to read: the text of the outermost.
// covers: AUT-1
#[test]
fn aut_1_other_errors_are_results() {
    let mut tools = vec![
        tool("text", async |_, _: NoArguments| Err::<(), _>("it failed")),
        tool("string", async |_, _: NoArguments| Err::<(), _>("it failed".to_owned())),
        tool("io", async |_, _: NoArguments| Err::<(), _>(std::io::Error::other("it failed"))),
        tool("boxed", async |_, _: NoArguments| Err::<(), Boxed>("it failed".into())),
        tool("handler", async |_, _: NoArguments| Err::<(), _>(HandlerError::new("it failed"))),
    ];
    #[cfg(feature = "anyhow")]
    tools.push(tool("anyhow", async |_, _: NoArguments| {
        let failed: anyhow::Result<()> = Err(StoreError::Closed).context("it failed");
        failed
    }));
    tools.push(tool("enum", async |_, _: NoArguments| Err::<(), _>(StoreError::Closed)));
    let (names, server) = (names(&tools), server_with(tools));
    for revision in ERAS {
        let mut client = ScriptedClient::new(&server, revision);
        for name in &names {
            let result = client.call_tool(name, json!({}));
            assert_eq!(result["isError"], true, "{name}");
            let expected = if name == "enum" { "the store is closed" } else { "it failed" };
            assert_eq!(result["content"][0]["text"], expected, "{name}");
        }
    }
}

/// A stateless legacy request cannot ask: the model reads that, and the log says why.
// covers: AUT-1
#[test]
fn aut_1_hints_go_to_the_log() {
    let (names, server) = (names(&asking()), server_with(asking()));
    for name in names {
        let mut client = ScriptedClient::on_connection(
            mcp_server::Connection::legacy_request(&server, Revision::V2025_11_25),
            Revision::V2025_11_25,
            json!({ "elicitation": {} }),
        );
        let mut result = Value::Null;
        let events = warnings(|| result = client.call_tool(&name, json!({})));
        let text = result["content"][0]["text"].as_str().expect("a text");
        assert!(result["isError"] == true && !text.contains("session"), "{name}: {text}");
        let [event] = &*events else { panic!("expected one warning, found {events:?}") };
        assert!(event["error"].contains("server-to-client requests need a session"), "{name}: {event:?}");
    }
}

/// The warnings while something runs.
fn warnings(run: impl FnOnce()) -> Vec<Fields> {
    let events = watch(run).events.into_iter().map(|(_, event)| event);
    events.filter(|event| event["level"] == "WARN").collect()
}

/// Handlers of all kinds that fail with a cause.
fn failing(build: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    server(|server| {
        build(server)
            .tool(tool("fail", async |_, _: NoArguments| Err::<(), _>(AppError::from(StoreError::Closed))))
            .prompt(prompt("fail", async |_, _: NoArguments| Err::<String, _>(AppError::from(StoreError::Closed))))
            .resource(resource("a:b", "fail", async |_| Err::<String, _>(AppError::from(StoreError::Closed))))
            .template(template("c:{d}", "fail", async |_, _| Err::<String, _>(AppError::from(StoreError::Closed))))
    })
}

const REQUESTS: [(&str, &str, &str); 4] = [
    ("tools/call", "name", "fail"),
    ("prompts/get", "name", "fail"),
    ("resources/read", "uri", "a:b"),
    ("resources/read", "uri", "c:e"),
];

/// The text that a client gets for the error of a handler.
fn told(client: &mut ScriptedClient, method: &str, params: Value) -> String {
    let text = if method == "tools/call" {
        client.result(method, params)["content"][0]["text"].take()
    } else {
        client.error(method, params, -32603)["message"].take()
    };
    text.as_str().expect("a text").to_owned()
}

// covers: AUT-1
#[test]
fn aut_1_causes_are_logged() {
    for revision in ERAS {
        let mut client = ScriptedClient::new(&failing(|server| server), revision);
        for (method, member, name) in REQUESTS {
            let mut text = String::new();
            let events = warnings(|| text = told(&mut client, method, json!({ member: name })));
            assert_eq!(text, "the application failed");
            let [event] = &*events else { panic!("expected one warning, found {events:?}") };
            assert_eq!(event["error"], "the application failed: the store is closed");
            assert_eq!((&*event["method"], &*event["name"]), (method, name));
        }
    }
}

/// One function sees all errors, and decides what clients get to know.
// covers: AUT-1
#[test]
fn aut_1_one_policy_for_all_handlers() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    let server = failing(|server| {
        server.on_handler_error(move |ctx, error| {
            let causes: Vec<_> = error.chain().map(ToString::to_string).collect();
            assert!(error.find::<StoreError>().is_some());
            notes.lock().expect("no panic").push((ctx.method().to_string(), causes));
            ErrorText::masked()
        })
    });
    for revision in ERAS {
        let mut client = ScriptedClient::new(&server, revision);
        for (method, member, name) in REQUESTS {
            let mut text = String::new();
            let events = warnings(|| text = told(&mut client, method, json!({ member: name })));
            assert_eq!(text, "the server failed to process the request");
            assert!(events.is_empty(), "{events:?}");
            let causes = ["the application failed".to_owned(), "the store is closed".to_owned()].to_vec();
            assert_eq!(seen.lock().unwrap().pop(), Some((method.to_owned(), causes)));
        }
    }
    assert!(seen.lock().unwrap().is_empty());
}

/// What an error tells developers about the server is not for models, wherever the error comes from.
// covers: AUT-1, AUT-10
#[test]
fn aut_1_advice_of_other_errors_stays_in_the_log() {
    let server = server(|server| {
        let scratch = tool("scratch", async |ctx: RequestContext, _: NoArguments| -> Result<(), HandlerError> {
            ctx.connection().scratch()?;
            Ok(())
        });
        let update = tool("update", async |ctx: RequestContext, _: NoArguments| -> Result<(), HandlerError> {
            Ok(ctx.server().update(|registry| registry.add_tool(tool("", async |_, _: NoArguments| ())))?)
        });
        server.tool(scratch).tool(update)
    });
    for name in ["scratch", "update"] {
        let connection = mcp_server::Connection::modern_request(&server);
        let mut client = ScriptedClient::on_connection(connection, MODERN, json!({}));
        let mut text = String::new();
        let events = warnings(|| text = told(&mut client, "tools/call", json!({ "name": name })));
        assert_eq!(text, "the server failed to process the request", "{name}");
        assert_eq!(events.len(), 1, "{name}: {events:?}");
    }
}

/// A policy does not mask errors of the protocol.
// covers: AUT-1
#[test]
fn aut_1_policies_leave_protocol_errors_alone() {
    let masked = |server: ServerBuilder| server.on_handler_error(|_, _| ErrorText::masked());
    let (names, server) =
        (names(&refusing()), server(|server| refusing().into_iter().fold(masked(server), ServerBuilder::tool)));
    let mut client = ScriptedClient::new(&server, MODERN);
    for name in names {
        client.error("tools/call", json!({ "name": name }), -32602);
    }
}

/// Without the feature, errors of the protocol in `anyhow::Error` would get lost.
// covers: AUT-1
#[cfg(not(feature = "anyhow"))]
#[test]
fn aut_1_anyhow_needs_its_feature() {
    use crate::servers::refused;

    fn fails() -> anyhow::Result<String> {
        Err(anyhow::anyhow!("no"))
    }
    let refusals = [
        refused(|server| server.tool(tool("a", async |_, _: NoArguments| fails()))),
        refused(|server| server.prompt(prompt("a", async |_, _: NoArguments| fails()))),
        refused(|server| server.resource(resource("a:b", "a", async |_| fails()))),
        refused(|server| server.template(template("a:{b}", "a", async |_, _| fails()))),
    ];
    for refusal in refusals {
        assert!(refusal.to_string().contains("enable the feature"), "{refusal}");
    }
}
