//! Calls that end before they are answered: by their time, by their caller, by the end of everything.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::types::{ElicitResult, ElicitValue, RequestMeta};
use mcp_client::{CallOptions, Client, CloseReason, Error, Limits, TransportKind};
use mcp_testkit::envelope::tool_result;
use mcp_testkit::{ReceivedRequest, ScriptedServer, Task, expect_ready};
use serde_json::json;

use crate::fixtures::{KINDS, builder};

fn servers() -> Vec<(Client, ScriptedServer)> {
    let both = |kind| [ScriptedServer::modern(kind, builder()), ScriptedServer::legacy(kind, builder())];
    KINDS.into_iter().flat_map(both).collect()
}

fn progress(server: &ScriptedServer, request: &ReceivedRequest, progress: u32) {
    let params = json!({ "progressToken": request.params["_meta"]["progressToken"], "progress": progress });
    server.notify_on(request, "notifications/progress", params);
}

/// Silence ends a call, progress starts it anew, and the limit stays.
// covers: K-10..K-13
#[test]
fn progress_gives_more_time_up_to_the_limit() {
    for (client, mut server) in servers() {
        let seconds = Duration::from_secs;
        let call = || client.call_tool("t").idle_timeout(seconds(10)).total_timeout(seconds(25));
        let mut silent = Task::start(call());
        let request = server.expect_request("tools/call");
        server.advance(seconds(9));
        silent.assert_pending();
        server.advance(seconds(1));
        assert!(matches!(silent.finish(), Err(Error::TimedOut)));
        server.expect_cancelled(&request);
        let mut busy = Task::start(call());
        let request = server.expect_request("tools/call");
        for step in 1..=2 {
            server.advance(seconds(9));
            progress(&server, &request, step);
            busy.assert_pending();
        }
        server.advance(seconds(7));
        assert!(matches!(busy.finish(), Err(Error::TimedOut)));
        server.expect_cancelled(&request);
        server.assert_quiet();
    }
}

/// Progress reaches the call that it belongs to, under the caller's own token if there is one.
// covers: P-1, P-2, IO-7
#[test]
fn progress_finds_its_call() {
    for (client, mut server) in servers() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let listener = |name: &'static str| {
            let told = Arc::clone(&told);
            move |progress: mcp_client::types::ProgressNotificationParams| {
                let token = serde_json::to_value(&progress.progress_token).unwrap();
                told.lock().unwrap().push((name, progress.progress.as_f64(), token));
            }
        };
        let mut meta = RequestMeta::default();
        meta.progress_token = Some("mine".into());
        let mut calls = [
            Task::start(client.call_tool("a").meta(meta.clone()).on_progress(listener("a"))),
            Task::start(client.call_tool("b").meta(meta).on_progress(listener("b"))),
        ];
        let requests = [server.expect_request("tools/call"), server.expect_request("tools/call")];
        assert_ne!(requests[0].params["_meta"]["progressToken"], requests[1].params["_meta"]["progressToken"]);
        progress(&server, &requests[1], 1);
        progress(&server, &requests[0], 2);
        for (call, request) in calls.iter_mut().zip(&requests) {
            call.assert_pending();
            server.respond(request, tool_result("done"));
            call.finish().unwrap();
        }
        assert_eq!(*told.lock().unwrap(), [("a", 2.0, json!("mine")), ("b", 1.0, json!("mine"))]);
    }
}

/// Whoever wants to hear of progress does, also without a limit to silence.
// covers: P-1
#[test]
fn progress_comes_without_a_limit_to_silence() {
    let options = CallOptions::default().idle_timeout(None);
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder().call_options(options));
    let told = Arc::new(Mutex::new(0));
    let count = Arc::clone(&told);
    let mut call = Task::start(client.call_tool("a").on_progress(move |_| *count.lock().unwrap() += 1));
    let request = server.expect_request("tools/call");
    progress(&server, &request, 1);
    call.assert_pending();
    assert_eq!(*told.lock().unwrap(), 1);
}

/// Dropping a call and its handle cancel it; what still comes changes nothing.
// covers: K-1..K-3, K-7, K-8, IO-8
#[test]
fn calls_are_cancelled_by_their_caller() {
    for (client, mut server) in servers() {
        let mut dropped = Task::start(client.call_tool("t"));
        let request = server.expect_request("tools/call");
        dropped.cancel();
        server.expect_cancelled(&request);
        server.respond(&request, tool_result("late"));
        let mut call = client.call_tool("t");
        let handle = call.cancel_handle();
        let mut cancelled = Task::start(call);
        let request = server.expect_request("tools/call");
        handle.cancel();
        assert!(matches!(cancelled.finish(), Err(Error::Cancelled)));
        server.expect_cancelled(&request);
        // What has ended is not cancelled.
        let mut call = client.call_tool("t");
        let handle = call.cancel_handle();
        let mut call = Task::start(call);
        let request = server.expect_request("tools/call");
        server.respond(&request, tool_result("done"));
        call.finish().unwrap();
        handle.cancel();
        server.assert_quiet();
    }
}

/// A call that was not made is not cancelled either.
// covers: K-3
#[test]
fn calls_that_were_not_made_are_not_cancelled() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let mut call = client.call_tool("t");
    call.cancel_handle().cancel();
    assert!(matches!(expect_ready(call), Err(Error::Cancelled)));
    drop(client.call_tool("t"));
    server.assert_quiet();
    let mut limits = Limits::default();
    limits.max_calls = 1;
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder().limits(limits));
    let _first = Task::start(client.call_tool("t"));
    server.expect_request("tools/call");
    let mut waiting = Task::start(client.call_tool("t"));
    waiting.cancel();
    server.assert_quiet();
}

/// Between two rounds nothing is open, so nothing is cancelled; the one who is asked is let go.
// covers: K-3
#[test]
fn calls_are_cancelled_between_rounds() {
    for kind in KINDS {
        let at_work = Arc::new(());
        let asked = Arc::clone(&at_work);
        let builder = builder().on_form_elicitation(move |_, _| {
            let work = Arc::clone(&asked);
            async move {
                std::future::pending::<()>().await;
                drop(work);
                ElicitResult::accepted([("a", ElicitValue::from("b"))])
            }
        });
        let (client, mut server) = ScriptedServer::modern(kind, builder);
        let question = json!({ "method": "elicitation/create", "params": {
            "message": "?", "requestedSchema": { "type": "object", "properties": {} },
        } });
        let mut call = Task::start(client.call_tool("t"));
        let request = server.expect_request("tools/call");
        let result = json!({ "resultType": "input_required", "inputRequests": { "q": question } });
        server.respond(&request, result);
        call.assert_pending();
        assert_eq!(Arc::strong_count(&at_work), 3);
        call.cancel();
        assert_eq!(Arc::strong_count(&at_work), 2);
        // The same while it waits to ask again.
        let mut call = Task::start(client.call_tool("t"));
        let request = server.expect_request("tools/call");
        server.respond(&request, json!({ "resultType": "input_required", "requestState": "s" }));
        call.assert_pending();
        call.cancel();
        server.advance(Duration::from_secs(60));
        server.assert_quiet();
    }
}

/// Calls wait for room, in order, and not for ever.
// covers: K-10, K-11
#[test]
fn calls_wait_for_room() {
    for kind in KINDS {
        let mut limits = Limits::default();
        limits.max_calls = 1;
        let (client, mut server) = ScriptedServer::modern(kind, builder().limits(limits));
        let mut first = Task::start(client.call_tool("a"));
        let mut second = Task::start(client.call_tool("b"));
        let limit = Duration::from_secs(3);
        let mut hasty = Task::start(client.call_tool("c").total_timeout(limit));
        let request = server.expect_request("tools/call");
        server.assert_quiet();
        server.advance(limit);
        assert!(matches!(hasty.finish(), Err(Error::TimedOut)));
        second.assert_pending();
        server.respond(&request, tool_result("done"));
        first.finish().unwrap();
        second.assert_pending();
        let request = server.expect_request("tools/call");
        assert_eq!(request.params["name"], "b");
        server.respond(&request, tool_result("done"));
        second.finish().unwrap();
        let mut third = Task::start(client.call_tool("d"));
        let _open = server.expect_request("tools/call");
        let mut fourth = Task::start(client.call_tool("e"));
        server.advance(Duration::from_secs(59));
        fourth.assert_pending();
        third.assert_pending();
    }
}

/// Calls wait while a transport does not take what there is to send.
// covers: K-10
#[test]
fn calls_wait_for_the_transport() {
    let mut limits = Limits::default();
    limits.max_outbox_messages = 1;
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder().limits(limits));
    let _first = Task::start(client.call_tool("a"));
    let mut second = Task::start(client.call_tool("b"));
    assert_eq!(server.expect_request("tools/call").params["name"], "a");
    second.assert_pending();
    assert_eq!(server.expect_request("tools/call").params["name"], "b");
}

/// Calls wait for a server that is started again; those that were open end, and say why.
// covers: IO-14, K-10
#[test]
fn calls_wait_for_a_new_server() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let mut open = Task::start(client.call_tool("a"));
    server.expect_request("tools/call");
    let died = CloseReason::Exited { status: "signal: 9".to_owned() };
    assert_eq!(server.handle.handle_disconnect(&died), mcp_client::ServerLossAction::MayRestart);
    assert!(matches!(open.finish(), Err(Error::Interrupted(why)) if why.contains("signal: 9")));
    assert_eq!(client.revision(), None);
    let mut hasty = Task::start(client.call_tool("b").idle_timeout(Duration::from_secs(1)));
    let mut patient = Task::start(client.call_tool("c"));
    server.advance(Duration::from_secs(1));
    assert!(matches!(hasty.finish(), Err(Error::TimedOut)));
    patient.assert_pending();
    server.handle.handle_restart();
    patient.assert_pending();
    let request = server.expect_request("tools/call");
    assert_eq!(request.params["name"], "c");
    server.respond(&request, tool_result("done"));
    patient.finish().unwrap();
    assert!(client.server().capabilities.is_some(), "what it said when it was asked still holds");
}

/// Closing ends calls, waits for the transport, and is final.
// covers: S4.54
#[test]
fn closing_is_final() {
    for (client, mut server) in servers() {
        let mut open = Task::start(client.call_tool("a"));
        server.expect_request("tools/call");
        let closing = client.clone();
        let mut closing = Task::start(async move { closing.close().await });
        assert!(matches!(open.finish(), Err(Error::Closed(CloseReason::ByClient))));
        assert!(server.is_closed());
        closing.assert_pending();
        assert!(matches!(expect_ready(client.call_tool("b")), Err(Error::Closed(CloseReason::ByClient))));
        server.close(CloseReason::Disconnected("whatever".to_owned()));
        assert_eq!(closing.finish(), CloseReason::ByClient);
    }
}

/// Whoever waits hears why it is over, and so does who comes later.
// covers: S4.52, S4.54
#[test]
fn the_end_says_why() {
    for (client, server) in servers() {
        let waiting = client.clone();
        let mut waiting = Task::start(async move { waiting.closed().await });
        let mut open = Task::start(client.call_tool("a"));
        server.close(CloseReason::Exited { status: "gone".to_owned() });
        assert_eq!(waiting.finish(), CloseReason::Exited { status: "gone".to_owned() });
        let error = open.finish().unwrap_err();
        assert!(error.to_string().contains("gone") && !error.is_remote(), "{error}");
        let error = expect_ready(client.call_tool("a")).unwrap_err();
        assert!(matches!(error, Error::Closed(CloseReason::Exited { .. })));
    }
}

/// The last handle closes the client, at whatever stage; calls are handles.
// covers: S4.54
#[test]
fn the_last_handle_closes() {
    for kind in KINDS {
        let (mut connecting, mut server) = ScriptedServer::connect(kind, builder());
        server.expect_request("server/discover");
        connecting.cancel();
        assert!(server.is_closed());
        for (client, mut server) in [ScriptedServer::modern(kind, builder()), ScriptedServer::legacy(kind, builder())] {
            let mut call = Task::start(client.call_tool("a"));
            let request = server.expect_request("tools/call");
            drop(client);
            assert!(!server.is_closed());
            call.cancel();
            server.expect_cancelled(&request);
            assert!(server.is_closed());
        }
    }
}

/// What waits for the end and goes away leaves nothing behind, however long the client lives.
#[test]
fn those_who_stop_waiting_are_forgotten() {
    let (client, server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let handle = client.clone();
    let mut waiting = Task::start(async move { handle.closed().await });
    assert_eq!(waiting.waker_count(), 1);
    waiting.cancel();
    assert_eq!(waiting.waker_count(), 0);
    let _ = server.handle.handle_disconnect(&CloseReason::Disconnected("it died".to_owned()));
    let mut waiting = Task::start(client.call_tool("a"));
    assert!(waiting.waker_count() > 0);
    waiting.cancel();
    assert_eq!(waiting.waker_count(), 0);
}

/// A transport that goes away without a word ends the client.
#[test]
fn a_transport_may_just_go() {
    let (client, server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    drop(server);
    assert!(matches!(expect_ready(client.call_tool("a")), Err(Error::Closed(CloseReason::Disconnected(_)))));
}
