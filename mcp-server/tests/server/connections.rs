//! What a connection knows about its client, and what it can send outside of a request.

use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use futures_util::FutureExt;
use mcp_server::types::{
    CreateMessageRequestParams, ElicitRequestFormParams, ElicitRequestUrlParams, LoggingLevel,
    LoggingMessageNotificationParams, NotificationMeta, OrderedMap, RawJson, RequestMeta, RequestedSchema, Revision,
    SamplingMessage,
};
use mcp_server::{
    AskError, ClientCapability, Connection, ConnectionClosed, ConnectionHandle, Elicited, MissingCapability,
    NoArguments, RequestContext, Server, tool,
};
use mcp_testkit::{Notes, ScriptedClient, WakeFlag};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::servers::{LEGACY, MODERN, server};

fn everything() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": {} })
}

fn plain() -> Server {
    server(|server| server)
}

/// A server whose tool `tell` describes the connection.
fn telling() -> Server {
    server(|server| {
        server.tool(tool("tell", async |ctx: RequestContext, _: NoArguments| {
            let connection = ctx.connection();
            let name = connection.client_info().map(|info| info.name);
            let supports = [ClientCapability::Roots, ClientCapability::SamplingTools, ClientCapability::ElicitationUrl]
                .map(|capability| connection.supports(capability));
            json!([
                name,
                connection.capabilities().map(|all| all.roots.is_some()),
                supports,
                connection.has_standalone_channel(),
                connection.initialized().now_or_never().is_some(),
            ])
            .to_string()
        }))
    })
}

fn told(client: &mut ScriptedClient) -> Value {
    serde_json::from_str(&client.call_tool_text("tell", json!({}))).expect("JSON")
}

/// A connection describes its client: by the handshake, or by the one request that it is for.
// covers: MIS-13, S1.3, S1.12, S1.14, S1.18, S1.19, S1.20, S1.25, S1.36, S1.37
#[test]
fn mis_13_a_connection_describes_its_client() {
    let server = telling();
    let declared = json!({ "roots": {}, "sampling": { "tools": {} } });
    for revision in LEGACY {
        let mut client = ScriptedClient::with_capabilities(&server, revision, declared.clone());
        assert_eq!(told(&mut client), json!(["test", true, [true, true, false], true, true]));
        // Nothing is known of a client without a session.
        let connection = Connection::legacy_request(&server, revision);
        let mut client = ScriptedClient::on_connection(connection, revision, declared.clone());
        assert_eq!(told(&mut client), json!([null, null, [false, false, false], false, true]));
    }
    let mut client = ScriptedClient::on_connection(Connection::modern_request(&server), MODERN, declared.clone());
    let handle = client.connection.handle();
    assert_eq!(told(&mut client), json!([null, true, [true, true, false], false, true]));
    assert_eq!(handle.capabilities(), None, "the request is over");
    // On a lasting connection each modern request describes its own client.
    let mut client = ScriptedClient::with_capabilities(&server, MODERN, declared);
    assert_eq!(told(&mut client), json!([null, null, [false, false, false], true, false]));
}

/// The channel ends with the connection.
// covers: MIS-13, S1.25
#[test]
fn mis_13_the_channel_ends_with_the_connection() {
    let mut client = ScriptedClient::new(&plain(), LEGACY[3]);
    let handle = client.connection.handle();
    assert!(handle.has_standalone_channel());
    assert_eq!(handle.session_id(), None);
    client.connection.handle_disconnect();
    assert!(!handle.has_standalone_channel());
}

/// A transport with sessions names them.
// covers: MIS-13, S1.24
#[test]
fn mis_13_a_connection_has_a_session_id() {
    let connection = Connection::long_lived(&plain()).session_id(Arc::new("abc"));
    assert_eq!(connection.handle().session_id().as_deref(), Some("abc"));
    assert!(!format!("{:?}", connection.handle()).contains("abc"));
}

/// The end of the handshake can be waited for, and so can an end before it.
// covers: MIS-13, S1.13, S1.14, S1.22
#[test]
fn mis_13_the_handshake_is_awaited() {
    for revision in LEGACY {
        let mut client = ScriptedClient::on_connection(Connection::long_lived(&plain()), revision, json!({}));
        let handle = client.connection.handle();
        let mut waiting = Box::pin(handle.initialized());
        assert_eq!((&mut waiting).now_or_never(), None);
        client.initialize();
        assert_eq!((&mut waiting).now_or_never(), None, "it was not said that it is complete");
        client.notify("notifications/initialized", json!({}));
        assert_eq!(waiting.now_or_never(), Some(Ok(())));
        client.connection.handle_disconnect();
        assert_eq!(handle.initialized().now_or_never(), Some(Ok(())), "it was complete");
    }
    for connection in [Connection::modern_request(&plain()), Connection::legacy_request(&plain(), LEGACY[0])] {
        assert_eq!(connection.handle().initialized().now_or_never(), Some(Ok(())));
    }
}

/// A task that waits for the handshake is woken by its end, by the end of the connection, and by another process.
// covers: MIS-13, S1.13
#[test]
fn mis_13_who_waits_for_the_handshake_is_woken() {
    let ends: [(fn(ScriptedClient), _); 3] = [
        (|mut client| client.notify("notifications/initialized", json!({})), Ok(())),
        (drop, Err(ConnectionClosed)),
        (
            |mut client| {
                let mut state = client.connection.session_state().expect("a session");
                state.is_ready = true;
                client.connection.refresh(state);
            },
            Ok(()),
        ),
    ];
    for (end, expected) in ends {
        let mut client = ScriptedClient::on_connection(Connection::long_lived(&plain()), LEGACY[2], json!({}));
        client.initialize();
        let handle = client.connection.handle();
        let woken = WakeFlag::default();
        let mut waiting = Box::pin(handle.initialized());
        let waker = woken.waker();
        assert!(waiting.poll_unpin(&mut Context::from_waker(&waker)).is_pending() && !woken.is_set());
        end(client);
        assert!(woken.take());
        assert_eq!(waiting.now_or_never(), Some(expected));
    }
}

/// A task that no longer waits for the handshake leaves nothing behind, and others still wait.
// covers: MIS-13, S1.13
#[test]
fn mis_13_who_gives_up_waiting_leaves_no_waker() {
    for revision in [MODERN, LEGACY[3]] {
        let mut client = ScriptedClient::on_connection(Connection::long_lived(&plain()), revision, json!({}));
        if revision == MODERN {
            client.result("server/discover", json!({}))
        } else {
            client.initialize()
        };
        let handle = client.connection.handle();
        let (patient, hasty) = (WakeFlag::default(), WakeFlag::default());
        let mut waiting = Box::pin(handle.initialized());
        assert!(waiting.poll_unpin(&mut Context::from_waker(&patient.waker())).is_pending());
        for _ in 0..10 {
            let mut given_up = Box::pin(handle.initialized());
            // A task may be polled with another waker each time.
            let other = WakeFlag::default();
            assert!(given_up.poll_unpin(&mut Context::from_waker(&other.waker())).is_pending());
            assert!(given_up.poll_unpin(&mut Context::from_waker(&hasty.waker())).is_pending());
            assert_eq!((other.waker_count(), hasty.waker_count()), (0, 1));
            drop(given_up);
            assert_eq!(hasty.waker_count(), 0);
        }
        assert_eq!(patient.waker_count(), 1);
        drop(client);
        assert!(patient.take() && !hasty.is_set());
        assert_eq!(waiting.now_or_never(), Some(Err(ConnectionClosed)));
    }
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Name {
    name: String,
}

fn message() -> CreateMessageRequestParams {
    CreateMessageRequestParams::new(vec![SamplingMessage::user("hi")], 10)
}

/// Polls a request, lets the client respond, and returns the outcome.
fn ask<T>(client: &mut ScriptedClient, asked: impl Future<Output = T>, method: &str, result: Value) -> (Value, T) {
    let mut asked = Box::pin(asked);
    assert!((&mut asked).now_or_never().is_none() && client.is_woken());
    let question = client.expect_message(method);
    client.respond(&question, result);
    (question, asked.now_or_never().expect("a response"))
}

/// Legacy clients get typed requests outside of any request, restricted to their revision.
// covers: MIS-13, S1.10, S1.27, S1.30, S1.31, S1.34
#[test]
fn mis_13_requests_outside_of_a_request_are_typed() {
    for revision in LEGACY {
        let mut client = ScriptedClient::with_capabilities(&plain(), revision, everything());
        let handle = client.connection.handle();
        let (_, pong) = ask(&mut client, handle.ping(), "ping", json!({}));
        assert_eq!(pong, Ok(()));
        let roots = json!({ "roots": [{ "uri": "file:///home" }] });
        let (_, roots) = ask(&mut client, handle.list_roots(), "roots/list", roots);
        assert_eq!(roots.expect("roots")[0].uri, "file:///home");
        let content = json!({ "type": "text", "text": "hello" });
        let response = json!({ "role": "assistant", "content": content, "model": "m" });
        let (_, sampled) = ask(&mut client, handle.sample(message()), "sampling/createMessage", response);
        assert_eq!(sampled.expect("a message").model, "m");
        if revision < Revision::V2025_06_18 {
            let refused = handle.elicit::<Name>("Who?").now_or_never().expect("a refusal");
            assert!(matches!(refused, Err(AskError::InvalidRequest(_))), "{refused:?}");
            continue;
        }
        let accepted = json!({ "action": "accept", "content": { "name": "Ann" } });
        let (question, named) = ask(&mut client, handle.elicit::<Name>("Who?"), "elicitation/create", accepted.clone());
        assert_eq!(named, Ok(Elicited::Accepted(Name { name: "Ann".to_owned() })));
        let has_mode = question["params"].get("mode").is_some();
        assert!(!has_mode || revision == Revision::V2025_11_25, "{question}");
        let form = ElicitRequestFormParams::new("Sure?", RequestedSchema::new(OrderedMap::new()));
        let declined = json!({ "action": "decline" });
        let (_, declined) = ask(&mut client, handle.elicit_form(form), "elicitation/create", declined);
        assert_eq!(declined, Ok(Elicited::Declined));
        // A response that does not fit the form is an error of its own.
        let wrong = json!({ "action": "accept", "content": {} });
        let (_, wrong) = ask(&mut client, handle.elicit::<Name>("Who?"), "elicitation/create", wrong);
        assert!(matches!(wrong, Err(AskError::InvalidResponse(_))), "{wrong:?}");
        if revision == Revision::V2025_11_25 {
            let url = ElicitRequestUrlParams::new("Log in", "https://example.com").elicitation_id("e1");
            let accepted = json!({ "action": "accept" });
            let (_, visited) = ask(&mut client, handle.elicit_url(url), "elicitation/create", accepted);
            assert_eq!(visited, Ok(Elicited::Accepted(())));
        }
        client.assert_quiet();
    }
}

/// Requests outside of a request need a channel, a handshake and a capability.
// covers: MIS-13, S1.8, S1.9, S1.13, S1.21, S1.29
#[test]
fn mis_13_requests_outside_of_a_request_are_refused() {
    let refusal = |client: &mut ScriptedClient| {
        let handle = client.connection.handle();
        let mut asked = Box::pin(handle.list_roots());
        assert!((&mut asked).now_or_never().is_none());
        client.assert_quiet();
        asked.now_or_never().expect("a refusal").expect_err("a refusal")
    };
    let mut modern = ScriptedClient::on_connection(Connection::modern_request(&plain()), MODERN, everything());
    assert!(matches!(refusal(&mut modern), AskError::NoBackChannel(_)));
    let connection = Connection::legacy_request(&plain(), LEGACY[3]);
    let mut stateless = ScriptedClient::on_connection(connection, LEGACY[3], everything());
    assert!(matches!(refusal(&mut stateless), AskError::NoBackChannel(_)));
    let mut early = ScriptedClient::on_connection(Connection::long_lived(&plain()), LEGACY[3], everything());
    early.initialize();
    assert!(matches!(refusal(&mut early), AskError::Refused(_)));
    let mut incapable = ScriptedClient::new(&plain(), LEGACY[3]);
    assert_eq!(refusal(&mut incapable), AskError::NotSupported(MissingCapability(ClientCapability::Roots)));
}

/// What a test does with the options of a request.
type WithOptions = fn(RequestContext, Notes) -> std::pin::Pin<Box<dyn Future<Output = String> + Send>>;

/// Options can be set on each kind of request: a time limit, a function for the progress, and metadata.
// covers: MIS-13, S1.28, S1.34
#[test]
fn mis_13_requests_have_options() {
    fn meta() -> RequestMeta {
        let mut meta = RequestMeta::default();
        meta.extra.insert("example.com/why".to_owned(), json!("test").into());
        meta
    }
    fn told<T>(outcome: Result<T, AskError>) -> String {
        outcome.map_or_else(|error| error.to_string(), |_| "answered".to_owned())
    }
    macro_rules! with_options {
        ($ctx:ident => $request:expr) => {
            (|$ctx, notes| {
                Box::pin(async move {
                    let on_progress = move |progress: mcp_server::types::ProgressNotificationParams| {
                        notes.add(progress.progress.to_string());
                    };
                    let limit = Duration::from_secs(5);
                    told($request.timeout(limit).idle_timeout(None).on_progress(on_progress).meta(meta()).await)
                })
            }) as WithOptions
        };
    }
    let requests: [(&str, WithOptions); 6] = [
        ("elicitation/create", with_options!(ctx => ctx.elicit::<Name>("a", "Who?"))),
        ("sampling/createMessage", with_options!(ctx => ctx.sample("a", message()))),
        ("roots/list", with_options!(ctx => ctx.list_roots("a"))),
        ("ping", with_options!(ctx => ctx.connection().ping())),
        ("roots/list", with_options!(ctx => ctx.connection().list_roots())),
        ("sampling/createMessage", with_options!(ctx => ctx.connection().sample(message()))),
    ];
    for (method, request) in requests {
        let notes = Notes::default();
        let heard = notes.clone();
        let server = server(|server| {
            server.tool(tool("ask", move |ctx: RequestContext, _: NoArguments| request(ctx, heard.clone())))
        });
        let mut client = ScriptedClient::with_capabilities(&server, Revision::V2025_11_25, everything());
        let id = client.start_tool("ask");
        let question = client.expect_message(method);
        let meta = &question["params"]["_meta"];
        assert_eq!(meta["example.com/why"], "test", "{question}");
        client.notify("notifications/progress", json!({ "progressToken": meta["progressToken"], "progress": 1 }));
        assert_eq!(notes.take(), ["1"], "{method}");
        client.advance(Duration::from_secs(4));
        client.assert_quiet();
        client.advance(Duration::from_secs(1));
        assert_eq!(client.expect_message("notifications/cancelled")["params"]["requestId"], question["id"]);
        let response = client.response_to(id);
        assert_eq!(response["result"]["content"][0]["text"], "the peer did not respond in time", "{method}");
    }
}

/// Modern clients are asked by the result, whatever the options say.
// covers: MIS-13
#[cfg(feature = "mrtr")]
#[test]
fn mis_13_options_do_not_concern_modern_clients() {
    let server = server(|server| {
        server.tool(tool("ask", async |ctx: RequestContext, _: NoArguments| {
            let asked = ctx.elicit::<Name>("who", "Who?").timeout(Duration::from_secs(1)).meta(RequestMeta::default());
            asked.await.map(|answer| format!("{answer:?}"))
        }))
    });
    let mut client = ScriptedClient::with_capabilities(&server, MODERN, everything());
    let asked = client.result("tools/call", json!({ "name": "ask" }));
    assert_eq!(asked["resultType"], "input_required");
    assert_eq!(asked["inputRequests"]["who"]["params"].get("_meta"), None);
    client.advance(Duration::from_secs(10));
    let responses = json!({ "who": { "action": "accept", "content": { "name": "Ann" } } });
    let params = json!({ "name": "ask", "inputResponses": responses, "requestState": asked["requestState"] });
    let result = client.result("tools/call", params);
    assert_eq!(result["content"][0]["text"], r#"Accepted(Name { name: "Ann" })"#);
}

/// A request that is dropped before it was polled is not sent.
// covers: MIS-13
#[test]
fn mis_13_a_request_is_sent_when_it_is_awaited() {
    let mut client = ScriptedClient::with_capabilities(&plain(), LEGACY[3], everything());
    let handle = client.connection.handle();
    let request = handle.ping();
    assert_eq!(format!("{request:?}"), "ServerRequest { is_sent: false, .. }");
    drop(request);
    client.assert_quiet();
}

/// Log messages outside of a request have a logger and metadata, and are for legacy clients only.
// covers: MIS-13, S1.35
#[test]
fn mis_13_log_messages_have_a_logger_and_meta() {
    let log = |handle: &ConnectionHandle| {
        handle.log_as("db", LoggingLevel::Error, "down");
        let mut meta = NotificationMeta::default();
        meta.extra.insert("example.com/shard".to_owned(), json!(3).into());
        let data = RawJson::new("slow").expect("JSON");
        handle.log_message(&LoggingMessageNotificationParams::new(LoggingLevel::Warning, data).meta(meta));
        handle.log(LoggingLevel::Debug, "not for this client");
    };
    for revision in LEGACY {
        let mut client = ScriptedClient::new(&plain(), revision);
        log(&client.connection.handle());
        let message = client.expect_message("notifications/message");
        assert_eq!(message["params"], json!({ "level": "error", "logger": "db", "data": "down" }));
        let message = client.expect_message("notifications/message");
        assert_eq!(message["params"]["_meta"], json!({ "example.com/shard": 3 }));
        client.assert_quiet();
    }
    let mut client = ScriptedClient::new(&plain(), MODERN);
    log(&client.connection.handle());
    client.assert_quiet();
}
