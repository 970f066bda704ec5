//! Calls that end before they are answered: by their time, by their caller, by the end of everything.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::types::{ElicitResult, ElicitValue, RequestMeta};
use mcp_client::{CallOptions, Client, CloseReason, Error, Limits, TransportKind};
use serde_json::json;

use crate::kit::{KINDS, Request, Scene, Task, builder, now, said};

fn scenes() -> Vec<(Client, Scene)> {
    let both = |kind| [Scene::modern(kind, builder()), Scene::legacy(kind, builder())];
    KINDS.into_iter().flat_map(both).collect()
}

fn progress(scene: &Scene, request: &Request, progress: u32) {
    let params = json!({ "progressToken": request.params["_meta"]["progressToken"], "progress": progress });
    scene.tell(request, "notifications/progress", params);
}

/// Silence ends a call, progress starts it anew, and the limit stays.
// covers: K-10..K-13
#[test]
fn progress_gives_more_time_up_to_the_limit() {
    for (client, mut scene) in scenes() {
        let seconds = Duration::from_secs;
        let call = || client.call_tool("t").idle_timeout(seconds(10)).time_limit(seconds(25));
        let mut silent = Task::new(call());
        let request = scene.request("tools/call");
        scene.advance(seconds(9));
        silent.waits();
        scene.advance(seconds(1));
        assert!(matches!(silent.done(), Err(Error::TimedOut)));
        scene.given_up(&request);
        let mut busy = Task::new(call());
        let request = scene.request("tools/call");
        for step in 1..=2 {
            scene.advance(seconds(9));
            progress(&scene, &request, step);
            busy.waits();
        }
        scene.advance(seconds(7));
        assert!(matches!(busy.done(), Err(Error::TimedOut)));
        scene.given_up(&request);
        scene.silence();
    }
}

/// Progress reaches the call that it belongs to, under the caller's own token if there is one.
// covers: P-1, P-2, IO-7
#[test]
fn progress_finds_its_call() {
    for (client, mut scene) in scenes() {
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
            Task::new(client.call_tool("a").meta(meta.clone()).on_progress(listener("a"))),
            Task::new(client.call_tool("b").meta(meta).on_progress(listener("b"))),
        ];
        let requests = [scene.request("tools/call"), scene.request("tools/call")];
        assert_ne!(requests[0].params["_meta"]["progressToken"], requests[1].params["_meta"]["progressToken"]);
        progress(&scene, &requests[1], 1);
        progress(&scene, &requests[0], 2);
        for (call, request) in calls.iter_mut().zip(&requests) {
            call.waits();
            scene.answer(request, said("done"));
            call.done().unwrap();
        }
        assert_eq!(*told.lock().unwrap(), [("a", 2.0, json!("mine")), ("b", 1.0, json!("mine"))]);
    }
}

/// Whoever wants to hear of progress does, also without a limit to silence.
// covers: P-1
#[test]
fn progress_comes_without_a_limit_to_silence() {
    let options = CallOptions::default().idle_timeout(None);
    let (client, mut scene) = Scene::modern(TransportKind::Pipe, builder().call_options(options));
    let told = Arc::new(Mutex::new(0));
    let count = Arc::clone(&told);
    let mut call = Task::new(client.call_tool("a").on_progress(move |_| *count.lock().unwrap() += 1));
    let request = scene.request("tools/call");
    progress(&scene, &request, 1);
    call.waits();
    assert_eq!(*told.lock().unwrap(), 1);
}

/// Dropping a call and its handle cancel it; what still comes changes nothing.
// covers: K-1..K-3, K-7, K-8, IO-8
#[test]
fn calls_are_cancelled_by_their_caller() {
    for (client, mut scene) in scenes() {
        let mut dropped = Task::new(client.call_tool("t"));
        let request = scene.request("tools/call");
        dropped.drop_future();
        scene.given_up(&request);
        scene.answer(&request, said("late"));
        let mut call = client.call_tool("t");
        let handle = call.cancel_handle();
        let mut cancelled = Task::new(call);
        let request = scene.request("tools/call");
        handle.cancel();
        assert!(matches!(cancelled.done(), Err(Error::Cancelled)));
        scene.given_up(&request);
        // What has ended is not cancelled.
        let mut call = client.call_tool("t");
        let handle = call.cancel_handle();
        let mut call = Task::new(call);
        let request = scene.request("tools/call");
        scene.answer(&request, said("done"));
        call.done().unwrap();
        handle.cancel();
        scene.silence();
    }
}

/// A call that was not made is not cancelled either.
// covers: K-3
#[test]
fn calls_that_were_not_made_are_not_cancelled() {
    let (client, mut scene) = Scene::modern(TransportKind::Pipe, builder());
    let mut call = client.call_tool("t");
    call.cancel_handle().cancel();
    assert!(matches!(now(call), Err(Error::Cancelled)));
    drop(client.call_tool("t"));
    scene.silence();
    let mut limits = Limits::default();
    limits.max_calls = 1;
    let (client, mut scene) = Scene::modern(TransportKind::Pipe, builder().limits(limits));
    let _first = Task::new(client.call_tool("t"));
    scene.request("tools/call");
    let mut waiting = Task::new(client.call_tool("t"));
    waiting.drop_future();
    scene.silence();
}

/// Between two rounds nothing is open, so nothing is cancelled; the one who is asked is let go.
// covers: K-3
#[test]
fn calls_are_cancelled_between_rounds() {
    for kind in KINDS {
        let at_work = Arc::new(());
        let asked = Arc::clone(&at_work);
        let builder = builder().on_form_elicitation(move |_| {
            let work = Arc::clone(&asked);
            async move {
                std::future::pending::<()>().await;
                drop(work);
                ElicitResult::accepted([("a", ElicitValue::from("b"))])
            }
        });
        let (client, mut scene) = Scene::modern(kind, builder);
        let question = json!({ "method": "elicitation/create", "params": {
            "message": "?", "requestedSchema": { "type": "object", "properties": {} },
        } });
        let mut call = Task::new(client.call_tool("t"));
        let request = scene.request("tools/call");
        let result = json!({ "resultType": "input_required", "inputRequests": { "q": question } });
        scene.answer(&request, result);
        call.waits();
        assert_eq!(Arc::strong_count(&at_work), 3);
        call.drop_future();
        assert_eq!(Arc::strong_count(&at_work), 2);
        // The same while it waits to ask again.
        let mut call = Task::new(client.call_tool("t"));
        let request = scene.request("tools/call");
        scene.answer(&request, json!({ "resultType": "input_required", "requestState": "s" }));
        call.waits();
        call.drop_future();
        scene.advance(Duration::from_secs(60));
        scene.silence();
    }
}

/// Calls wait for room, in order, and not for ever.
// covers: K-10, K-11
#[test]
fn calls_wait_for_room() {
    for kind in KINDS {
        let mut limits = Limits::default();
        limits.max_calls = 1;
        let (client, mut scene) = Scene::modern(kind, builder().limits(limits));
        let mut first = Task::new(client.call_tool("a"));
        let mut second = Task::new(client.call_tool("b"));
        let limit = Duration::from_secs(3);
        let mut hasty = Task::new(client.call_tool("c").time_limit(limit));
        let request = scene.request("tools/call");
        scene.silence();
        scene.advance(limit);
        assert!(matches!(hasty.done(), Err(Error::TimedOut)));
        second.waits();
        scene.answer(&request, said("done"));
        first.done().unwrap();
        second.waits();
        let request = scene.request("tools/call");
        assert_eq!(request.params["name"], "b");
        scene.answer(&request, said("done"));
        second.done().unwrap();
        let mut third = Task::new(client.call_tool("d"));
        let _open = scene.request("tools/call");
        let mut fourth = Task::new(client.call_tool("e"));
        scene.advance(Duration::from_secs(59));
        fourth.waits();
        third.waits();
    }
}

/// Calls wait while a transport does not take what there is to send.
// covers: K-10
#[test]
fn calls_wait_for_the_transport() {
    let mut limits = Limits::default();
    limits.max_outbox_messages = 1;
    let (client, mut scene) = Scene::modern(TransportKind::Pipe, builder().limits(limits));
    let _first = Task::new(client.call_tool("a"));
    let mut second = Task::new(client.call_tool("b"));
    assert_eq!(scene.request("tools/call").params["name"], "a");
    second.waits();
    assert_eq!(scene.request("tools/call").params["name"], "b");
}

/// Calls wait for a server that is started again; those that were open end, and say why.
// covers: IO-14, K-10
#[test]
fn calls_wait_for_a_new_server() {
    let (client, mut scene) = Scene::modern(TransportKind::Pipe, builder());
    let mut open = Task::new(client.call_tool("a"));
    scene.request("tools/call");
    let died = CloseReason::Exited { status: "signal: 9".to_owned() };
    assert_eq!(scene.handle.handle_disconnect(&died), mcp_client::ServerLossAction::MayRestart);
    assert!(matches!(open.done(), Err(Error::Interrupted(why)) if why.contains("signal: 9")));
    assert_eq!(client.revision(), None);
    let mut hasty = Task::new(client.call_tool("b").idle_timeout(Duration::from_secs(1)));
    let mut patient = Task::new(client.call_tool("c"));
    scene.advance(Duration::from_secs(1));
    assert!(matches!(hasty.done(), Err(Error::TimedOut)));
    patient.waits();
    scene.handle.handle_restart();
    patient.waits();
    let request = scene.request("tools/call");
    assert_eq!(request.params["name"], "c");
    scene.answer(&request, said("done"));
    patient.done().unwrap();
    assert!(client.server().capabilities.is_some(), "what it said when it was asked still holds");
}

/// Closing ends calls, waits for the transport, and is final.
// covers: S4.54
#[test]
fn closing_is_final() {
    for (client, mut scene) in scenes() {
        let mut open = Task::new(client.call_tool("a"));
        scene.request("tools/call");
        let closing = client.clone();
        let mut closing = Task::new(async move { closing.close().await });
        assert!(matches!(open.done(), Err(Error::Closed(CloseReason::ByClient))));
        assert!(scene.is_over());
        closing.waits();
        assert!(matches!(now(client.call_tool("b")), Err(Error::Closed(CloseReason::ByClient))));
        scene.end(CloseReason::Disconnected("whatever".to_owned()));
        assert_eq!(closing.done(), CloseReason::ByClient);
    }
}

/// Whoever waits hears why it is over, and so does who comes later.
// covers: S4.52, S4.54
#[test]
fn the_end_says_why() {
    for (client, scene) in scenes() {
        let waiting = client.clone();
        let mut waiting = Task::new(async move { waiting.closed().await });
        let mut open = Task::new(client.call_tool("a"));
        scene.end(CloseReason::Exited { status: "gone".to_owned() });
        assert_eq!(waiting.done(), CloseReason::Exited { status: "gone".to_owned() });
        let error = open.done().unwrap_err();
        assert!(error.to_string().contains("gone") && !error.is_remote(), "{error}");
        let error = now(client.call_tool("a")).unwrap_err();
        assert!(matches!(error, Error::Closed(CloseReason::Exited { .. })));
    }
}

/// The last handle closes the client, at whatever stage; calls are handles.
// covers: S4.54
#[test]
fn the_last_handle_closes() {
    for kind in KINDS {
        let (mut connecting, mut scene) = Scene::open(kind, builder());
        scene.request("server/discover");
        connecting.drop_future();
        assert!(scene.is_over());
        for (client, mut scene) in [Scene::modern(kind, builder()), Scene::legacy(kind, builder())] {
            let mut call = Task::new(client.call_tool("a"));
            let request = scene.request("tools/call");
            drop(client);
            assert!(!scene.is_over());
            call.drop_future();
            scene.given_up(&request);
            assert!(scene.is_over());
        }
    }
}

/// What waits for the end and goes away leaves nothing behind, however long the client lives.
#[test]
fn those_who_stop_waiting_are_forgotten() {
    let (client, scene) = Scene::modern(TransportKind::Pipe, builder());
    let handle = client.clone();
    let mut waiting = Task::new(async move { handle.closed().await });
    assert_eq!(waiting.wakers(), 1);
    waiting.drop_future();
    assert_eq!(waiting.wakers(), 0);
    let _ = scene.handle.handle_disconnect(&CloseReason::Disconnected("it died".to_owned()));
    let mut waiting = Task::new(client.call_tool("a"));
    assert!(waiting.wakers() > 0);
    waiting.drop_future();
    assert_eq!(waiting.wakers(), 0);
}

/// A transport that goes away without a word ends the client.
#[test]
fn a_transport_may_just_go() {
    let (client, scene) = Scene::modern(TransportKind::Pipe, builder());
    drop(scene);
    assert!(matches!(now(client.call_tool("a")), Err(Error::Closed(CloseReason::Disconnected(_)))));
}
