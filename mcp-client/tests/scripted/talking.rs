//! What is said beside calls and their results, and what results mean.

use std::sync::{Arc, Mutex};
use std::task::Context;

use futures_util::future::Abortable;
use mcp_client::types::meta::TraceContext;
use mcp_client::types::{ElicitAction, ElicitResult, LoggingLevel, RequestMeta, Revision, SubscriptionFilter};
use mcp_client::{
    Change, Client, CloseReason, CommandError, Error, Mode, SavedSession, TransportHandle, TransportKind,
};
use mcp_testkit::envelope::{discover_result, initialize_result, tool_result};
use mcp_testkit::{ScriptedServer, Task, WakeFlag, envelope, expect_ready};
use serde_json::{Value, json};

use crate::fixtures::{KINDS, builder, connected, heard};

fn servers() -> Vec<(Client, ScriptedServer)> {
    KINDS
        .into_iter()
        .flat_map(|kind| [ScriptedServer::modern(kind, builder()), ScriptedServer::legacy(kind, builder())])
        .collect()
}

/// Every modern request says what it is written in; no legacy one does.
// covers: V-1, DU-44, X-7, IO-1
#[test]
fn requests_say_what_they_are_written_in() {
    for kind in KINDS {
        for (client, mut server, revision) in [
            (ScriptedServer::modern(kind, builder()), Revision::V2026_07_28),
            (ScriptedServer::legacy(kind, builder()), Revision::V2025_11_25),
        ]
        .map(|((client, server), revision)| (client, server, revision))
        {
            for meta in [None, Some(RequestMeta::default())] {
                let call = client.call_tool("t").arguments(&json!({ "a": 1 }));
                let mut call = Task::start(if let Some(meta) = meta { call.meta(meta) } else { call });
                let request = server.expect_request("tools/call");
                call.cancel();
                server.expect_cancelled(&request);
                assert_eq!(request.revision, Some(revision));
                let version = &request.params["_meta"]["io.modelcontextprotocol/protocolVersion"];
                if revision == Revision::V2026_07_28 {
                    assert_eq!(*version, revision.as_str());
                } else {
                    assert!(!request.text.contains("io.modelcontextprotocol"), "{}", request.text);
                }
                assert!(!request.text.contains('\n'), "a message is a line");
            }
        }
    }
}

/// An unknown server is asked what it is, with a method that changes nothing; what it says is known afterwards, and
/// nobody is asked twice.
// covers: DU-30, DU-31, DU-35, DU-40, V-4, V-5, IO-16, S3.13, S3.63, S3.64
#[test]
fn an_unknown_server_is_asked_once() {
    for kind in KINDS {
        let (mut connecting, mut server) = ScriptedServer::connect(kind, builder());
        let probe = server.expect_request("server/discover");
        assert_eq!(probe.params["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        let mut found = discover_result(ScriptedServer::capabilities());
        found["instructions"] = json!("Be kind");
        server.respond(&probe, found);
        let client = connecting.finish().unwrap();
        assert_eq!(client.server().instructions.as_deref(), Some("Be kind"));
        assert!(client.server().capabilities.is_some());
        assert_eq!(client.detected_revision().unwrap().revision, Revision::V2026_07_28);
        assert_eq!(client.session_id(), None);
        server.assert_quiet();
    }
}

/// An error that no modern server sends means legacy, whichever it is; the handshake offers the newest of those, and
/// takes what the server has.
// covers: DU-33, DU-39, DU-43, IO-17, S3.65
#[test]
fn a_legacy_server_is_found() {
    for kind in KINDS {
        for code in [-32601, -32600, -32602, -32000, 7] {
            let (mut connecting, mut server) = ScriptedServer::connect(kind, builder());
            let probe = server.expect_request("server/discover");
            server.respond_error(&probe, code);
            let initialize = server.expect_request("initialize");
            assert_eq!(initialize.params["protocolVersion"], "2025-11-25");
            assert_eq!(initialize.revision, None);
            server.respond(&initialize, initialize_result("2024-11-05", ScriptedServer::capabilities()));
            server.expect_notification("notifications/initialized");
            let client = connecting.finish().unwrap();
            assert_eq!(client.revision(), Some(Revision::V2024_11_05));
        }
    }
}

/// A counter-offer that nobody knows ends it.
// covers: DU-43
#[test]
fn a_strange_offer_ends_it() {
    for kind in KINDS {
        let (mut connecting, mut server) = ScriptedServer::connect(kind, builder().mode(Mode::Legacy));
        let initialize = server.expect_request("initialize");
        server.respond(&initialize, initialize_result("1999-01-01", ScriptedServer::capabilities()));
        let error = connecting.finish().unwrap_err();
        assert!(error.to_string().contains("1999-01-01"), "{error}");
        assert!(server.is_closed());
    }
}

/// A refused version shows a modern server, which is not offered a handshake that it did not ask for.
// covers: DU-32, S3.62, S3.65
#[test]
fn a_refused_probe_stays_modern() {
    for kind in KINDS {
        let (mut connecting, mut server) = ScriptedServer::connect(kind, builder());
        let probe = server.expect_request("server/discover");
        let data = json!({ "requested": "2026-07-28", "supported": ["2099-01-01"] });
        server.respond_error_object(&probe, json!({ "code": -32022, "message": "no", "data": data }));
        let error = connecting.finish().unwrap_err();
        assert!(error.to_string().contains("2099-01-01"), "{error}");
        server.assert_quiet();
    }
}

/// Over HTTP statuses are evidence, but for outages and missing tokens.
// covers: DU-27, DU-36, DU-37, S3.62
#[test]
fn statuses_are_evidence() {
    for status in [400, 404, 405, 406, 415] {
        let (mut connecting, mut server) = ScriptedServer::connect(TransportKind::RequestPerCall, builder());
        let probe = server.expect_request("server/discover");
        server.handle.responses().handle_status(probe.call, status, b"what?");
        server.handshake("2025-11-25");
        connecting.finish().unwrap();
    }
    for status in [401, 403, 500, 503] {
        let (mut connecting, mut server) = ScriptedServer::connect(TransportKind::RequestPerCall, builder());
        let probe = server.expect_request("server/discover");
        server.handle.responses().handle_status(probe.call, status, b"");
        let error = connecting.finish().unwrap_err();
        assert!(error.to_string().contains(&status.to_string()), "{error}");
    }
}

/// A kind of result that is not known is no result; a legacy server may call a member as it likes.
// covers: M-8, M-9
#[test]
fn strange_results_are_refused() {
    for (client, mut server) in servers() {
        let is_modern = client.revision() == Some(Revision::V2026_07_28);
        for kind in ["task", "surprise"] {
            let mut call = Task::start(client.call_tool("t"));
            let request = server.expect_request("tools/call");
            server.respond(&request, json!({ "resultType": kind, "content": [] }));
            assert_eq!(matches!(call.finish(), Err(Error::InvalidResponse(_))), is_modern);
        }
        // What lacks what it needs is none either.
        let mut call = Task::start(client.list_tools(None));
        let request = server.expect_request("tools/list");
        server.respond(&request, json!({ "resultType": "complete" }));
        let error = call.finish().unwrap_err();
        assert!(matches!(&error, Error::InvalidResponse(why) if why.contains("tools")), "{error}");
        assert!(error.is_remote());
    }
}

/// Answers are matched by id, whatever comes in between, and once.
// covers: IO-7
#[test]
fn answers_are_matched_by_id() {
    for (client, mut server) in servers() {
        let mut calls = ["a", "b"].map(|name| Task::start(client.call_tool(name)));
        let requests = [server.expect_request("tools/call"), server.expect_request("tools/call")];
        for id in [json!(4711), json!("1"), format!("0{}", requests[0].id).into()] {
            server.send(&envelope::response(id, tool_result("wrong")));
        }
        server.handle.handle_message(b"this is no message");
        for (request, name) in requests.iter().zip(["a", "b"]).rev() {
            server.respond(request, tool_result(name));
            server.respond(request, tool_result("again"));
        }
        for (call, name) in calls.iter_mut().zip(["a", "b"]) {
            assert_eq!(call.finish().unwrap().content[0].as_text(), Some(name));
        }
    }
}

/// Log messages are asked for in the way of the era.
// covers: Y-2, Y-3, Y-6, X-10
#[test]
fn log_levels_are_set_in_both_eras() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder().log_level(LoggingLevel::Error));
        let level = |server: &mut ScriptedServer, client: &Client| {
            let _call = Task::start(client.call_tool("t"));
            server.expect_request("tools/call").params["_meta"]["io.modelcontextprotocol/logLevel"].clone()
        };
        assert_eq!(level(&mut server, &client), "error");
        server.poll();
        let handle = client.clone();
        expect_ready(async move { handle.set_log_level(LoggingLevel::Debug).await }).unwrap();
        let (client, mut server) = ScriptedServer::legacy(kind, builder());
        let handle = client.clone();
        let mut setting = Task::start(async move { handle.set_log_level(LoggingLevel::Debug).await });
        let request = server.expect_request("logging/setLevel");
        assert_eq!(request.params["level"], "debug");
        server.respond(&request, json!({}));
        setting.finish().unwrap();
    }
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let handle = client.clone();
    expect_ready(async move { handle.set_log_level(LoggingLevel::Debug).await }).unwrap();
    let _call = Task::start(client.call_tool("t"));
    let meta = &server.expect_request("tools/call").params["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/logLevel"], "debug");
}

/// Log messages and what the protocol does not know reach those who want to hear of them.
// covers: Y-9
#[test]
fn messages_are_handed_on() {
    for kind in KINDS {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (logs, others) = (Arc::clone(&heard), Arc::clone(&heard));
        let builder = builder()
            .on_log(move |_, log| logs.lock().unwrap().push(log.data.as_str().to_owned()))
            .on_notification(move |_, method, params| {
                others.lock().unwrap().push(format!("{method} {}", params.as_str()));
            });
        let (client, mut server) = ScriptedServer::modern(kind, builder);
        let _call = Task::start(client.call_tool("t"));
        let request = server.expect_request("tools/call");
        server.notify_on(&request, "notifications/message", json!({ "level": "info", "data": null }));
        server.notify_on(&request, "notifications/x", json!({ "y": 1 }));
        server.poll();
        assert_eq!(*heard.lock().unwrap(), ["null", r#"notifications/x {"y":1}"#]);
    }
}

/// What nobody looks at is bounded, and the newest of it stays.
// covers: P-7
#[test]
fn what_nobody_looks_at_is_bounded() {
    let (seen, told) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
    let (progressed, count) = (Arc::clone(&seen), Arc::clone(&told));
    let builder = builder().on_notification(move |_, _, _| *count.lock().unwrap() += 1);
    let (client, mut server) = ScriptedServer::legacy(TransportKind::Pipe, builder);
    let mut call = Task::start(client.call_tool("t").on_progress(move |progress| {
        progressed.lock().unwrap().push(progress.progress.as_f64());
    }));
    let request = server.expect_request("tools/call");
    let filter = SubscriptionFilter::default().resource("test://");
    let mut listening = Task::start(async move { client.listen(filter).await });
    let subscribe = server.expect_request("resources/subscribe");
    server.respond(&subscribe, json!({}));
    let mut listener = listening.finish().unwrap();
    for number in 1..=5000 {
        let token = &request.params["_meta"]["progressToken"];
        server.notify_on(&request, "notifications/progress", json!({ "progressToken": token, "progress": number }));
        server.notify("notifications/resources/updated", json!({ "uri": format!("test://{number}") }));
        server.notify("notifications/x", json!({}));
    }
    call.assert_pending();
    let seen = seen.lock().unwrap().clone();
    assert_eq!((seen.len(), seen.last()), (64, Some(&5000.0)));
    let changes = heard(&mut listener);
    assert_eq!((changes.len(), changes.last()), (1024, Some(&Change::Resource("test://5000".to_owned()))));
    server.poll();
    assert_eq!(*told.lock().unwrap(), 1024);
}

/// What nobody looks at is bounded by its size, too: a few large messages are as bad as many small ones.
// covers: SEC-7
#[test]
fn sec_7_what_nobody_looks_at_is_bounded_in_bytes() {
    const LARGE: usize = 100_000;
    let large = "x".repeat(LARGE);
    let told = Arc::new(Mutex::new((0, 0, 0)));
    let (progressed, notified, logged) = (Arc::clone(&told), Arc::clone(&told), Arc::clone(&told));
    let builder = builder()
        .on_notification(move |_, _, params| notified.lock().unwrap().1 += params.as_str().len())
        .on_log(move |_, log| logged.lock().unwrap().2 += log.data.as_str().len());
    let (client, mut server) = ScriptedServer::legacy(TransportKind::Pipe, builder);
    let mut call = Task::start(client.call_tool("t").on_progress(move |progress| {
        progressed.lock().unwrap().0 += progress.message.unwrap_or_default().len();
    }));
    let request = server.expect_request("tools/call");
    let filter = SubscriptionFilter::default().resource("test://");
    let mut listening = Task::start(async move { client.listen(filter).await });
    let subscribe = server.expect_request("resources/subscribe");
    server.respond(&subscribe, json!({}));
    let mut listener = listening.finish().unwrap();
    for number in 1..=60 {
        let token = &request.params["_meta"]["progressToken"];
        let progress = json!({ "progressToken": token, "progress": number, "message": large });
        server.notify_on(&request, "notifications/progress", progress);
        server.notify("notifications/resources/updated", json!({ "uri": format!("test://{number}/{large}") }));
        server.notify("notifications/x", json!({ "large": large }));
        server.notify("notifications/message", json!({ "level": "info", "data": large }));
    }
    call.assert_pending();
    server.poll();
    let (progress, notifications, logs) = *told.lock().unwrap();
    assert!((LARGE..=512 * 1024).contains(&progress), "{progress} bytes of progress");
    assert!((LARGE..=4 * 1024 * 1024).contains(&(notifications + logs)), "{notifications} and {logs} bytes");
    let changes = heard(&mut listener);
    assert!((1..=10).contains(&changes.len()), "{} changes", changes.len());
    assert!(matches!(changes.last(), Some(Change::Resource(uri)) if uri.starts_with("test://60/")));
}

/// The name of a notification counts as well.
// covers: SEC-7
#[test]
fn sec_7_names_of_notifications_are_bounded_in_bytes() {
    let told = Arc::new(Mutex::new(0));
    let count = Arc::clone(&told);
    let builder = builder().on_notification(move |_, method, _| *count.lock().unwrap() += method.as_str().len());
    let (_client, mut server) = ScriptedServer::legacy(TransportKind::Pipe, builder);
    for _ in 0..60 {
        server.notify(&format!("notifications/{}", "x".repeat(100_000)), json!({}));
    }
    server.poll();
    let bytes = *told.lock().unwrap();
    assert!((100_000..=4 * 1024 * 1024).contains(&bytes), "{bytes} bytes");
}

/// Does something, and returns whether that woke a transport without anything to do.
fn is_woken_by<T>(server: &mut ScriptedServer, work: impl FnOnce(&TransportHandle) -> T) -> (bool, T) {
    server.poll();
    let woken = WakeFlag::default();
    assert!(server.handle.poll_command(&mut Context::from_waker(&woken.waker())).is_pending());
    let done = work(&server.handle);
    (woken.is_set(), done)
}

/// A transport that waits is woken by whatever there is for it to do.
#[test]
fn transports_are_woken() {
    let (answer, answered) = futures_util::future::AbortHandle::new_pair();
    let answered = Arc::new(Mutex::new(Some(answered)));
    let builder = builder().on_form_elicitation(move |_, _| {
        let waiting = Abortable::new(std::future::pending::<()>(), answered.lock().unwrap().take().unwrap());
        async move {
            let _ = waiting.await;
            ElicitResult::new(ElicitAction::Cancel)
        }
    });
    let (client, mut server) = ScriptedServer::legacy(TransportKind::Pipe, builder);
    let (is_woken, call) = is_woken_by(&mut server, |_| Task::start(client.call_tool("t")));
    assert!(is_woken, "by a call");
    assert!(is_woken_by(&mut server, |_| drop(call)).0, "by its end");
    let handle = client.clone();
    let telling = async move { handle.notify("notifications/x", &json!({})).await };
    assert!(is_woken_by(&mut server, |_| expect_ready(telling).unwrap()).0, "by a notification");
    let form = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
    server.send_request("x", "elicitation/create", form);
    assert!(is_woken_by(&mut server, |_| answer.abort()).0, "by an answer");
    assert!(
        is_woken_by(&mut server, |handle| handle.handle_message(br#"{"jsonrpc":"2.0","method":"x"}"#)).0,
        "by a message"
    );
    let _ = server.handle.handle_disconnect(&CloseReason::Disconnected("it died".to_owned()));
    let (is_woken, call) = is_woken_by(&mut server, |_| Task::start(client.call_tool("t")));
    assert!(is_woken, "by somebody who waits");
    assert!(is_woken_by(&mut server, |_| drop((call, client))).0, "by the last handle");
}

/// Calls say where they come from, unless they say something else themselves; retries do, too.
// covers: X-15
#[test]
fn calls_say_where_they_come_from() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    const OWN: &str = "00-1af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    for kind in KINDS {
        let trace = || TraceContext::new(PARENT);
        for (client, mut server) in [
            ScriptedServer::modern(kind, builder().roots([]).trace_context(trace)),
            ScriptedServer::legacy(kind, builder().trace_context(trace)),
        ] {
            let mut call = Task::start(client.call_tool("t").arguments(&json!({ "a": 1 })));
            let request = server.expect_request("tools/call");
            assert_eq!(request.params["_meta"]["traceparent"], PARENT);
            assert_eq!(request.params["arguments"], json!({ "a": 1 }));
            if client.revision() == Some(Revision::V2026_07_28) {
                let questions = json!({ "q": { "method": "roots/list" } });
                server.respond(&request, json!({ "resultType": "input_required", "inputRequests": questions }));
                call.assert_pending();
                assert_eq!(server.expect_request("tools/call").params["_meta"]["traceparent"], PARENT);
            }
            let mut meta = RequestMeta::default();
            meta.set_trace_context(&TraceContext::new(OWN).unwrap());
            let _call = Task::start(client.call_tool("t").meta(meta));
            assert_eq!(server.expect_request("tools/call").params["_meta"]["traceparent"], OWN);
        }
    }
}

/// A session is saved, survives being written down, and is gone on with without a handshake.
// covers: S4.51, S4.57, S4.58, S4.60
#[test]
fn sessions_are_resumed() {
    let (mut connecting, mut server) =
        ScriptedServer::connect(TransportKind::RequestPerCall, builder().mode(Mode::Legacy));
    let initialize = server.expect_request("initialize");
    let mut result = initialize_result("2025-11-25", ScriptedServer::capabilities());
    result["instructions"] = json!("Be kind");
    server.respond(&initialize, result);
    let client = connecting.finish().unwrap();
    assert!(client.save_session().is_none(), "a server without a session");
    server.handle.responses().set_session(Some("secret".to_owned()), None);
    assert_eq!(client.session_id().as_deref(), Some("secret"));
    let saved = client.save_session().unwrap();
    assert!(!format!("{saved:?}").contains("secret"), "it is like a password");
    let text = serde_json::to_string(&saved).unwrap();
    let read: SavedSession = serde_json::from_str(&text).unwrap();
    assert_eq!(read, saved);
    let (client, mut server) = connected(TransportKind::RequestPerCall, builder().resume_session(read));
    assert_eq!(server.handle.session_id().as_deref(), Some("secret"));
    assert_eq!(client.revision(), Some(Revision::V2025_11_25));
    assert_eq!(client.server().instructions.as_deref(), Some("Be kind"));
    let mut call = Task::start(client.call_tool("t"));
    let request = server.expect_request("tools/call");
    // A session that is not there any more is replaced.
    server.handle.handle_session_lost(Some(request.call), true, mcp_client::SessionLossReason::Unknown { status: 404 });
    call.assert_pending();
    server.handshake("2025-11-25");
    call.assert_pending();
    let request = server.expect_request("tools/call");
    server.respond(&request, tool_result("done"));
    call.finish().unwrap();
    let unknown = text.replace("2025-11-25", "1999-01-01");
    assert!(serde_json::from_str::<SavedSession>(&unknown).is_err());
}

/// `null` is a value, and another one than none.
// covers: TL-8
#[test]
fn structured_results_may_be_anything() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let mut ask = |content: Option<Value>| {
        let mut call = Task::start(client.call_tool("t").structured::<Value>());
        let request = server.expect_request("tools/call");
        let mut result = tool_result("text");
        if let Some(content) = content {
            result["structuredContent"] = content;
        }
        server.respond(&request, result);
        call.finish()
    };
    for content in [json!(null), json!([1]), json!("a"), json!({ "a": 1 })] {
        assert_eq!(ask(Some(content.clone())).unwrap(), content);
    }
    assert!(matches!(ask(None), Err(Error::InvalidResponse(_))));
}

/// A tool that failed says so in its result; reading it as a type makes it an error.
// covers: TL-16, TL-17
#[test]
fn tools_fail_in_their_results() {
    for (client, mut server) in servers() {
        let mut result = tool_result("too hot");
        result["isError"] = json!(true);
        let mut call = Task::start(client.call_tool("t"));
        let request = server.expect_request("tools/call");
        server.respond(&request, result.clone());
        assert_eq!(call.finish().unwrap().is_error, Some(true));
        let mut call = Task::start(client.call_tool("t").structured::<Value>());
        let request = server.expect_request("tools/call");
        server.respond(&request, result);
        let error = call.finish().unwrap_err();
        assert!(error.is_remote() && error.to_string().contains("too hot"), "{error}");
    }
}

/// Errors tell what the server said from what happened here, and what there is to do.
#[test]
fn errors_say_who_and_what() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::RequestPerCall, builder());
    let mut call = Task::start(client.call_tool("t"));
    let request = server.expect_request("tools/call");
    server.handle.responses().handle_status(request.call, 429, b"slow down");
    let error = call.finish().unwrap_err();
    assert!(matches!(error, Error::Status { status: 429, .. }) && error.is_remote());
    // A status whose body is an error says what the error says.
    let mut call = Task::start(client.call_tool("t"));
    let request = server.expect_request("tools/call");
    let body = br#"{"jsonrpc":"2.0","error":{"code":-32602,"message":"unknown tool"}}"#;
    server.handle.responses().handle_status(request.call, 400, body);
    assert!(call.finish().unwrap_err().to_string().contains("unknown tool"));
    let error = expect_ready(client.ping()).unwrap_err();
    assert!(matches!(&error, Error::Command(CommandError::NotInRevision { .. })) && !error.is_remote(), "{error}");
    let error = expect_ready(client.call_tool("t").arguments(&1)).unwrap_err();
    assert!(matches!(error, Error::InvalidParams(_)) && !error.is_remote());
    server.assert_quiet();
}

/// A server that cannot be reached says why.
// covers: DU-6
#[test]
fn connecting_fails_with_a_reason() {
    let (mut connecting, server) = ScriptedServer::connect(TransportKind::RequestPerCall, builder());
    server.close(CloseReason::Disconnected("connection refused".to_owned()));
    assert!(connecting.finish().unwrap_err().to_string().contains("connection refused"));
    let (mut connecting, mut server) = ScriptedServer::connect(TransportKind::RequestPerCall, builder());
    let probe = server.expect_request("server/discover");
    server.handle.responses().handle_stream_ended(probe.call, Some("no such host".to_owned()));
    assert!(connecting.finish().unwrap_err().to_string().contains("no such host"));
    let (mut connecting, mut server) = ScriptedServer::connect(TransportKind::Pipe, builder().mode(Mode::Legacy));
    server.expect_request("initialize");
    assert_eq!(
        server.handle.handle_disconnect(&CloseReason::Exited { status: "exit status: 3".to_owned() }),
        mcp_client::ServerLossAction::Close
    );
    assert!(connecting.finish().unwrap_err().to_string().contains("exit status: 3"));
}
