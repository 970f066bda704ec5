//! Functions that take what they need, in any order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mcp_server::extract::{Extension, FromContext, ProgressReporter, Requirements, Session, State};
use mcp_server::types::Revision;
use mcp_server::{
    AuthInfo, Caller, Connection, ConnectionHandle, ErrorText, HandlerError, Json, NoSession, Principal,
    RequestContext, Server, UriVariables, prompt_fn, resource_fn, template_fn, tool_fn,
};
use mcp_testkit::ScriptedClient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::servers::{LEGACY, MODERN, refused, server};
use crate::watching::{Fields, watch};

const ERAS: [Revision; 2] = [Revision::V2025_11_25, MODERN];

struct Store {
    name: &'static str,
}

struct Limit(usize);

#[derive(Deserialize, JsonSchema)]
struct Find {
    /// What to look for.
    word: String,
}

#[derive(Serialize, JsonSchema)]
struct Found {
    text: String,
}

async fn args_first(Find { word }: Find, State(store): State<Store>, ctx: RequestContext) -> String {
    format!("{word} in {} by {}", store.name, ctx.method())
}

async fn args_last(ctx: RequestContext, limit: State<Limit>, store: State<Store>, find: Find) -> Json<Found> {
    Json(Found { text: format!("{} in {} up to {} by {}", find.word, store.name, limit.0.0, ctx.method()) })
}

async fn nothing() -> &'static str {
    "nothing"
}

async fn only_args(Find { word }: Find) -> Result<String, HandlerError> {
    if word.is_empty() { Err(HandlerError::new("no word")) } else { Ok(word) }
}

#[expect(clippy::too_many_arguments, reason = "as many as there can be")]
async fn everything(
    server: Server,
    user: Option<Principal>,
    note: Option<Extension<String>>,
    connection: ConnectionHandle,
    Find { word }: Find,
    progress: ProgressReporter,
    State(store): State<Store>,
    ctx: RequestContext,
) -> String {
    progress.report(1);
    assert_eq!(connection.token(), ctx.connection().token());
    let (name, user, note) = (&server.info().name, user.is_some(), note.is_some());
    format!("{name} {user} {note} {word} {}", store.name)
}

fn built() -> Server {
    server(|server| {
        server
            .state(Store { name: "store" })
            .state(Limit(3))
            .tool(tool_fn("args_first", args_first))
            .tool(tool_fn("args_last", args_last))
            .tool(tool_fn("nothing", nothing))
            .tool(tool_fn("only_args", only_args))
            .tool(tool_fn("everything", everything))
            .tool(tool_fn("closure", async |State(store): State<Store>| store.name))
    })
}

// covers: AUT-6
#[test]
fn aut_6_parameters_come_in_any_order() {
    let server = built();
    for revision in ERAS {
        let mut client = ScriptedClient::new(&server, revision);
        let word = json!({ "word": "rust" });
        assert_eq!(client.call_tool_text("args_first", word.clone()), "rust in store by tools/call");
        let found = client.call_tool("args_last", word.clone());
        assert_eq!(found["structuredContent"]["text"], "rust in store up to 3 by tools/call");
        assert_eq!(client.call_tool_text("nothing", json!({})), "nothing");
        assert_eq!(client.call_tool_text("only_args", word.clone()), "rust");
        assert_eq!(client.call_tool_text("closure", json!({})), "store");
        let params = json!({ "name": "everything", "arguments": word, "_meta": { "progressToken": 1 } });
        let id = client.start("tools/call", params);
        client.expect_message("notifications/progress");
        assert_eq!(client.response_to(id)["result"]["content"][0]["text"], "demo false false rust store");
    }
}

// covers: AUT-6
#[test]
fn aut_6_arguments_are_described_and_checked_as_ever() {
    let server = built();
    for revision in ERAS {
        let mut client = ScriptedClient::new(&server, revision);
        let listed = client.result("tools/list", json!({}));
        let tool = |name: &str| {
            let tools = listed["tools"].as_array().expect("a list").iter();
            tools.clone().find(|tool| tool["name"] == name).cloned().expect("the tool")
        };
        assert_eq!(tool("args_first")["inputSchema"]["properties"]["word"]["description"], "What to look for.");
        assert_eq!(tool("nothing")["inputSchema"], json!({ "type": "object", "additionalProperties": false }));
        assert!(tool("args_last")["outputSchema"].is_object() && tool("args_first").get("outputSchema").is_none());
        let wrong = client.call_tool("args_first", json!({ "word": 1 }));
        assert_eq!(wrong["isError"], true);
        assert!(wrong["content"][0]["text"].as_str().unwrap().contains("`word`"), "{wrong}");
        let failed = client.call_tool("only_args", json!({ "word": "" }));
        assert_eq!((&failed["isError"], &failed["content"][0]["text"]), (&json!(true), &json!("no word")));
    }
}

#[derive(Deserialize, JsonSchema)]
struct Review {
    #[expect(dead_code, reason = "only its name matters")]
    language: String,
    lines: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Text,
    Short,
}

#[derive(Deserialize)]
struct Day {
    day: u16,
    format: Option<Format>,
}

// covers: AUT-6
#[test]
fn aut_6_prompts_and_resources_take_them_too() {
    let day = async |State(store): State<Store>, Day { day, format }: Day| match format {
        Some(Format::Short) => format!("{day}"),
        Some(Format::Text) | None => format!("day {day} of {}", store.name),
    };
    let server = server(|server| {
        server
            .state(Store { name: "store" })
            .prompt(prompt_fn("review", async |State(store): State<Store>, review: Review| {
                format!("Review {} lines of {}.", review.lines, store.name)
            }))
            .resource(resource_fn("a:b", "store", async |_: RequestContext, store: State<Store>| store.name))
            .template(template_fn("logs://{day}{?format}", "log", day))
            .template(template_fn("raw://{day}", "raw", async |variables: UriVariables, ctx: RequestContext| {
                format!("{} by {}", variables.get("day").unwrap_or_default(), ctx.method())
            }))
    });
    for revision in ERAS {
        let mut client = ScriptedClient::new(&server, revision);
        let review = json!({ "name": "review", "arguments": { "language": "Rust", "lines": "7" } });
        let made = client.result("prompts/get", review);
        assert_eq!(made["messages"][0]["content"]["text"], "Review 7 lines of store.");
        let wrong = json!({ "name": "review", "arguments": { "language": "Rust", "lines": "many" } });
        assert!(client.error("prompts/get", wrong, -32602)["message"].as_str().unwrap().contains("`lines`"));
        let listed = client.result("prompts/list", json!({}));
        assert_eq!(listed["prompts"][0]["arguments"][0]["name"], "language");
        for (uri, text) in [
            ("a:b", "store"),
            ("logs://7", "day 7 of store"),
            ("logs://7?format=short", "7"),
            ("raw://x", "x by resources/read"),
        ] {
            let read = client.result("resources/read", json!({ "uri": uri }));
            assert_eq!(read["contents"][0]["text"], text);
        }
        // What does not fit the struct is no resource.
        let code = if revision == MODERN { -32602 } else { -32002 };
        for uri in ["logs://monday", "logs://7?format=long", "logs://70000"] {
            client.error("resources/read", json!({ "uri": uri }), code);
        }
    }
}

/// A user of the application's own.
struct User(String);

impl FromContext for User {
    fn require(requirements: &mut Requirements) {
        requirements.state::<Store>();
    }

    async fn from_context(ctx: &RequestContext) -> Result<Self, HandlerError> {
        let principal = Principal::from_context(ctx).await?;
        let State(store) = State::<Store>::from_context(ctx).await?;
        if &*principal.subject == "eve" {
            return Err(HandlerError::new("eve is not welcome"));
        }
        Ok(Self(format!("{} of {}", principal.subject, store.name)))
    }
}

/// Calls a tool of a server as a user, with a note attached to the request.
fn call_as(server: &Server, revision: Revision, tool: &str, caller: &Caller) -> Value {
    let mut client = ScriptedClient::new(server, revision);
    let request = client.build_request("tools/call", json!({ "name": tool })).to_string();
    let now = client.now();
    client.connection.feed(now, request.as_bytes(), caller);
    client.run();
    client.next_routed().1
}

fn caller(subject: &str) -> Caller {
    Caller::default().principal(Principal::new(None, subject))
}

// covers: AUT-6
#[test]
fn aut_6_users_and_extensions_are_taken_from_the_request() {
    let server = server(|server| {
        server
            .state(Store { name: "store" })
            .tool(tool_fn("who", async |user: Principal| user.subject.to_string()))
            .tool(tool_fn("user", async |User(name): User| name))
            .tool(tool_fn("note", async |Extension(note): Extension<String>| (*note).clone()))
    });
    for revision in ERAS {
        let text = |reply: &Value| reply["result"]["content"][0]["text"].as_str().map(str::to_owned);
        let ann = caller("ann");
        assert_eq!(text(&call_as(&server, revision, "who", &ann)).as_deref(), Some("ann"));
        assert_eq!(text(&call_as(&server, revision, "user", &ann)).as_deref(), Some("ann of store"));
        // Without a user there is no call.
        let stranger = Caller::default();
        for tool in ["who", "user"] {
            let refused = call_as(&server, revision, tool, &stranger);
            assert_eq!(refused["error"]["code"], -32600, "{refused}");
        }
        let eve = call_as(&server, revision, "user", &caller("eve"));
        assert_eq!((&eve["result"]["isError"], text(&eve).as_deref()), (&json!(true), Some("eve is not welcome")));
        // What no layer attached is a mistake of the server, which the model need not read about.
        let missing = call_as(&server, revision, "note", &ann);
        assert_eq!(text(&missing).as_deref(), Some("the server is not set up for this request"));
        let noted = caller("ann").extension("a note".to_owned());
        assert_eq!(text(&call_as(&server, revision, "note", &noted)).as_deref(), Some("a note"));
    }
}

/// What the token says is a parameter, and the user follows from it.
// covers: AU-15
#[test]
fn mis_2_handlers_take_what_the_token_says() {
    let server = server(|server| {
        server
            .tool(tool_fn("may", async |auth: AuthInfo, user: Principal| {
                assert_eq!((auth.principal(), auth.client_id()), (&user, Some("editor")));
                auth.scopes().collect::<Vec<_>>().join(",")
            }))
            .tool(tool_fn("optional", async |auth: Option<AuthInfo>| auth.is_some().to_string()))
            .tool(
                tool_fn("hidden", async || "seen")
                    .visible(|viewer| viewer.auth_info().is_some_and(|auth| auth.has_scope("books:write"))),
            )
    });
    let auth = |scope: &str| {
        let auth = AuthInfo::builder(Principal::new(Some("https://issuer.example"), "ann"));
        Caller::default().auth_info(Arc::new(auth.client_id("editor").scopes([scope, "a"]).build()))
    };
    for revision in ERAS {
        let text = |reply: &Value| reply["result"]["content"][0]["text"].as_str().map(str::to_owned);
        let ann = auth("books:write");
        assert_eq!(text(&call_as(&server, revision, "may", &ann)).as_deref(), Some("a,books:write"));
        assert_eq!(text(&call_as(&server, revision, "optional", &ann)).as_deref(), Some("true"));
        assert_eq!(text(&call_as(&server, revision, "hidden", &ann)).as_deref(), Some("seen"));
        let stranger = Caller::default();
        assert_eq!(call_as(&server, revision, "may", &stranger)["error"]["code"], -32600);
        assert_eq!(text(&call_as(&server, revision, "optional", &stranger)).as_deref(), Some("false"));
        for caller in [stranger, auth("books:read")] {
            assert_eq!(call_as(&server, revision, "hidden", &caller)["error"]["code"], -32602);
        }
    }
}

/// Counts the calls of a session.
fn count(session: &Session) -> String {
    let calls = session.scratch().get_or_insert_with(AtomicU32::default);
    format!("{:?} {}", session.id(), calls.fetch_add(1, Ordering::Relaxed) + 1)
}

fn counting() -> Server {
    server(|server| {
        server
            .tool(tool_fn("count", async |session: Session| count(&session)))
            .tool(tool_fn("may_count", async |session: Option<Session>| {
                session.map_or_else(|| "no session".to_owned(), |session| count(&session))
            }))
            .tool(tool_fn("same", async |session: Session, ctx: RequestContext, connection: ConnectionHandle| {
                let is_same = session.connection().token() == connection.token();
                assert!(is_same && Session::of_request(&ctx).is_ok());
            }))
    })
}

/// The session of a legacy client: its connection on stdio, and what the transport keeps over HTTP.
#[test]
fn sessions_are_taken_from_the_request() {
    let server = counting();
    for revision in LEGACY {
        let mut client = ScriptedClient::new(&server, revision);
        assert_eq!(client.call_tool_text("count", json!({})), "None 1");
        assert_eq!(client.call_tool_text("may_count", json!({})), "None 2");
        client.call_tool("same", json!({}));
        // Another session has values of its own, and over HTTP an id.
        let connection = Connection::long_lived(&server).session_id(Arc::new("abc"));
        let mut client = ScriptedClient::on_connection(connection, revision, json!({}));
        client.initialize();
        client.notify("notifications/initialized", json!({}));
        assert_eq!(client.call_tool_text("count", json!({})), "Some(\"abc\") 1");
    }
}

/// The refusal is for the client, and what to do about it for the developer.
#[test]
fn requests_without_a_session_are_refused() {
    let server = counting();
    let clients = || {
        let stateless = Connection::legacy_request(&server, Revision::V2025_11_25);
        [
            ScriptedClient::new(&server, MODERN),
            ScriptedClient::on_connection(Connection::modern_request(&server), MODERN, json!({})),
            ScriptedClient::on_connection(stateless, Revision::V2025_11_25, json!({})),
        ]
    };
    for mut client in clients() {
        let mut refused = Value::Null;
        let seen = watch(|| refused = client.call_tool("count", json!({})));
        assert_eq!(refused["isError"], true);
        assert_eq!(refused["content"][0]["text"], "this request needs a session, and the client has none");
        let told = |(_, event): &(_, Fields)| event.get("error").is_some_and(|error| error.contains("`Handles`"));
        assert!(seen.events.iter().any(told), "the log names handles");
    }
    for mut client in clients() {
        assert_eq!(client.call_tool_text("may_count", json!({})), "no session");
    }
}

/// A policy finds the refusal by its type.
#[test]
fn a_missing_session_has_a_type() {
    let server = server(|server| {
        server.tool(tool_fn("count", async |_: Session| ())).on_handler_error(|_, error| {
            ErrorText::new(if error.find::<NoSession>().is_some() { "open a session first" } else { "failed" })
        })
    });
    let mut client = ScriptedClient::new(&server, MODERN);
    assert_eq!(client.call_tool("count", json!({}))["content"][0]["text"], "open a session first");
}

/// A forgotten state is told when the server is built, with the handler that needs it.
// covers: AUT-6
#[test]
fn aut_6_a_forgotten_state_is_a_build_error() {
    let read = async |_: State<Store>| "";
    let refusals = [
        ("tool `find`", refused(|server| server.tool(tool_fn("find", args_first)))),
        ("prompt `find`", refused(|server| server.prompt(prompt_fn("find", read)))),
        ("resource `a:b`", refused(|server| server.resource(resource_fn("a:b", "find", read)))),
        ("template `a:{b}`", refused(|server| server.template(template_fn("a:{b}", "find", read)))),
        ("tool `user`", refused(|server| server.tool(tool_fn("user", async |_: User| "")))),
    ];
    for (handler, refusal) in refusals {
        let expected = format!("the {handler} needs a state of the type `");
        let text = refusal.to_string();
        assert!(text.starts_with(&expected) && text.contains("Store`: add it with `ServerBuilder::state`"), "{text}");
    }
    // The order does not matter.
    let find = || tool_fn("find", args_first);
    let server = server(|server| server.tool(find()).state(Store { name: "store" }));
    let limited = server.update(|registry| registry.add_tool(tool_fn("limited", args_last)));
    assert!(limited.unwrap_err().to_string().contains("the tool `limited` needs a state of the type `"));
    server.update(|registry| registry.add_tool(tool_fn("again", args_first))).unwrap();
}

/// The first parameter that cannot be made decides: a user can be refused before arguments are decoded.
#[test]
fn parameters_are_made_in_their_order() {
    let server = server(|server| {
        server
            .tool(tool_fn("user_first", async |_: Principal, _: Find| ""))
            .tool(tool_fn("arguments_first", async |_: Find, _: Principal| ""))
    });
    for revision in Revision::ALL {
        let mut client = ScriptedClient::new(&server, revision);
        client.error("tools/call", json!({ "name": "user_first", "arguments": {} }), -32600);
        let refused = client.call("tools/call", json!({ "name": "arguments_first", "arguments": {} })).to_string();
        assert!(refused.contains("word"), "{refused}");
    }
}

/// An `Arc` of a state is a state of another type, and the error says so.
#[test]
fn a_state_behind_an_arc_is_named_by_the_build_error() {
    let shared = || Arc::new(Store { name: "shared" });
    let text = refused(|server| server.state(shared()).tool(tool_fn("find", async |_: State<Store>| ""))).to_string();
    let store = std::any::type_name::<Store>();
    let remedy = format!("`{store}`: there is a state of the type `Arc<{store}>`: take `State<Arc<{store}>>`");
    assert!(text.ends_with(&remedy), "{text}");
    let name = async |store: State<Arc<Store>>| store.name;
    let server = server(|server| server.state(shared()).tool(tool_fn("name", name)));
    for revision in Revision::ALL {
        assert_eq!(ScriptedClient::new(&server, revision).call_tool_text("name", json!({})), "shared");
    }
}

// covers: AUT-6
#[test]
fn aut_6_one_struct_of_arguments_only() {
    let refusal = refused(|server| server.tool(tool_fn("both", async |_: Find, _: Review| "")));
    let text = refusal.to_string();
    assert!(
        text.starts_with("the tool `both`: ") && text.contains("Find` and `") && text.contains("one struct"),
        "{text}"
    );
}
