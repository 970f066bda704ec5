//! Tasks of the extension, from their creation to their end.

use std::time::Duration;

use mcp_client::types::{ErrorCode, Method, RawObject, RequestMeta, tasks};
use mcp_client::{CloseReason, Error, TaskError, TransportKind};
use mcp_testkit::{ScriptedServer, Task};
use serde_json::{Value, json};

use super::{SECOND, answer_first, completed, create, created, expect_task_cancelled, polled, started, task};
use crate::fixtures::{KINDS, builder};

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A call is polled as often as the server wants, which may change, until the task has ended.
// covers: TK-1, TK-5, TK-18, TK-34
#[test]
fn tk_5_a_call_follows_its_task() {
    for kind in KINDS {
        let (_client, mut server, mut call) = started(kind, builder());
        server.advance(SECOND / 2);
        call.assert_pending();
        server.assert_quiet();
        let first = polled(&mut server, &mut call, SECOND / 2);
        assert_eq!(first.params["taskId"], "t1");
        assert_eq!(first.params["_meta"][CAPABILITIES]["extensions"], json!({ tasks::EXTENSION: {} }));
        let name = (kind == TransportKind::RequestPerCall).then_some("t1");
        assert_eq!(first.headers.name.as_deref(), name);
        answer_first(&mut server, &mut call, &first, task("working", json!({ "pollIntervalMs": 3000 })));
        server.advance(SECOND * 2);
        call.assert_pending();
        server.assert_quiet();
        let second = polled(&mut server, &mut call, SECOND);
        server.respond(&second, completed("done"));
        assert_eq!(call.finish().unwrap().to_text(), "done");
        server.assert_quiet();
        assert_eq!(call.waker_count(), 0);
    }
}

/// A server that wants no interval is polled less and less often; a task that has ended when it is created at once.
// covers: TK-18
#[test]
fn tk_18_without_an_interval_polls_get_rarer() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let mut call = Task::start(client.call_tool("render"));
    let unhurried = |state: &mut Value| drop(state.as_object_mut().unwrap().remove("pollIntervalMs"));
    let (mut first, mut working) = (created(), task("working", json!({})));
    unhurried(&mut first);
    unhurried(&mut working);
    create(&mut server, first);
    call.assert_pending();
    let poll = polled(&mut server, &mut call, SECOND / 2);
    answer_first(&mut server, &mut call, &poll, working.clone());
    for millis in [1000, 2000, 4000, 5000, 5000] {
        server.advance(Duration::from_millis(millis - 1));
        call.assert_pending();
        server.assert_quiet();
        let poll = polled(&mut server, &mut call, Duration::from_millis(1));
        server.respond(&poll, working.clone());
        call.assert_pending();
    }

    let mut call = Task::start(client.call_tool("render"));
    create(&mut server, task("completed", json!({ "resultType": "task" })));
    let poll = polled(&mut server, &mut call, Duration::ZERO);
    server.respond(&poll, completed("at once"));
    assert_eq!(call.finish().unwrap().to_text(), "at once");
}

/// The end of a task is that of the call: its result, also of a tool that failed, its error, or that it was cancelled.
#[test]
fn tk_15_the_end_of_a_task_is_the_end_of_the_call() {
    let end = |state: Result<Value, i64>| {
        let (_client, mut server, mut call) = started(TransportKind::Pipe, builder());
        let poll = polled(&mut server, &mut call, SECOND);
        match state {
            Ok(state) => server.respond(&poll, state),
            Err(code) => server.respond_error(&poll, code),
        }
        let end = call.finish();
        server.assert_quiet();
        end
    };
    let failed = json!({ "result": { "content": [], "isError": true } });
    assert_eq!(end(Ok(task("completed", failed))).unwrap().is_error, Some(true));
    let error = json!({ "error": { "code": -32000, "message": "it broke" } });
    let Err(Error::Rejected(error)) = end(Ok(task("failed", error))) else { panic!("no error") };
    assert_eq!((error.code, &*error.message), (ErrorCode::new(-32000), "it broke"));
    let Err(Error::Task(TaskError::Cancelled { message })) =
        end(Ok(task("cancelled", json!({ "statusMessage": "by the operator" }))))
    else {
        panic!("not cancelled")
    };
    assert_eq!(message.as_deref(), Some("by the operator"));
    assert!(matches!(end(Err(-32602)), Err(Error::Task(TaskError::Unknown))));
}

/// Tasks are for tool calls, and for requests that declare the extension.
// covers: TK-4, TK-6
#[test]
fn tk_6_a_task_for_another_request_is_invalid() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let mut call = Task::start(client.read_resource("a://b"));
        let request = server.expect_request("resources/read");
        server.respond(&request, created());
        let error = call.finish().unwrap_err();
        assert!(matches!(&error, Error::InvalidResponse(why) if why.contains("resources/read")), "{error}");

        // A gateway declares what its own client has.
        let mut meta = RequestMeta::default();
        meta.client_capabilities = Some(Box::default());
        let mut call = Task::start(client.call_tool("t").meta(meta));
        create(&mut server, created());
        let error = call.finish().unwrap_err();
        assert!(matches!(&error, Error::InvalidResponse(why) if why.contains("did not declare")), "{error}");

        let (client, mut server) = ScriptedServer::modern(kind, builder().without_tasks());
        let mut call = Task::start(client.call_tool("t"));
        let request = server.expect_request("tools/call");
        assert_eq!(request.params["_meta"][CAPABILITIES], json!({}));
        server.respond(&request, created());
        assert!(matches!(call.finish(), Err(Error::InvalidResponse(_))));
        server.assert_quiet();
    }
}

/// An application that declares the extension itself gets the task as it is.
#[test]
fn applications_may_follow_tasks_themselves() {
    let builder = builder().without_tasks().extension(tasks::EXTENSION, RawObject::empty());
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder);
    let params = json!({ "name": "render" });
    let mut call = Task::start(client.request::<tasks::CreateTaskResult>(Method::TOOLS_CALL, &params));
    create(&mut server, created());
    assert_eq!(call.finish().unwrap().task_id, "t1");
    drop(client);
    assert!(server.is_closed());
}

/// A call that is dropped or cancelled cancels its task, after what is in flight for it.
#[test]
fn dropping_a_call_cancels_its_task() {
    for kind in KINDS {
        let (client, mut server, call) = started(kind, builder());
        drop(call);
        let cancel = server.expect_request("tasks/cancel");
        let name = (kind == TransportKind::RequestPerCall).then_some("t1");
        assert_eq!((&cancel.params["taskId"], cancel.headers.name.as_deref()), (&json!("t1"), name));
        server.respond_error(&cancel, -32602);

        let mut call = client.call_tool("render");
        let cancel = call.cancel_handle();
        let mut call = Task::start(call);
        create(&mut server, created());
        call.assert_pending();
        let poll = polled(&mut server, &mut call, SECOND);
        cancel.cancel();
        assert!(matches!(call.finish(), Err(Error::Cancelled)));
        server.expect_cancelled(&poll);
        expect_task_cancelled(&mut server);
    }
}

/// The values of a call go with all requests for its task, the last one included, and are dropped with it.
#[test]
fn the_requests_for_a_task_have_the_credentials_of_its_call() {
    use mcp_client::TransportCommand;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    struct User(#[expect(dead_code, reason = "only its end matters")] Arc<()>);

    let (client, mut server) = ScriptedServer::modern(TransportKind::RequestPerCall, builder());
    let user = Arc::new(());
    let mut call = Task::start(client.call_tool("render").extension(User(Arc::clone(&user))));
    create(&mut server, created());
    call.assert_pending();
    drop(call);
    let mut cx = Context::from_waker(Waker::noop());
    let mut cancelled = None;
    while let Poll::Ready(Some(command)) = server.handle.poll_command(&mut cx) {
        if let TransportCommand::Send(outgoing) = command {
            assert!(outgoing.extensions.get::<User>().is_some());
            assert_eq!(outgoing.method, Some(Method::TASKS_CANCEL));
            cancelled = outgoing.call;
        }
    }
    assert!(Arc::strong_count(&user) > 1);
    server.handle.responses().handle_stream_ended(cancelled.unwrap(), None);
    assert_eq!(Arc::strong_count(&user), 1);
}

/// The total timeout of a call is also that of its task.
#[test]
fn the_timeout_of_a_call_covers_its_task() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let mut call = Task::start(client.call_tool("render").total_timeout(SECOND * 3));
        create(&mut server, created());
        call.assert_pending();
        let poll = polled(&mut server, &mut call, SECOND);
        answer_first(&mut server, &mut call, &poll, task("working", json!({ "pollIntervalMs": 1500 })));
        let poll = polled(&mut server, &mut call, SECOND * 3 / 2);
        server.advance(SECOND / 2);
        assert!(matches!(call.finish(), Err(Error::TimedOut)));
        server.expect_cancelled(&poll);
        expect_task_cancelled(&mut server);
    }
}

/// Outages are waited out, longer and longer, and not for ever.
#[test]
fn outages_are_waited_out() {
    let limits = mcp_client::FollowLimits::default().max_failures(3);
    for gives_up in [false, true] {
        let (_client, mut server, mut call) = started(TransportKind::RequestPerCall, builder().follow_limits(limits));
        let mut poll = polled(&mut server, &mut call, SECOND);
        for failure in 0..3 {
            match failure {
                0 => server.handle.responses().handle_status(poll.call, 503, b""),
                1 => server.handle.responses().handle_stream_ended(poll.call, Some("reset".to_owned())),
                _ => server.respond_error(&poll, -32603),
            }
            call.assert_pending();
            // At least one half of the delay, and at most all of it; then the interval of the server.
            let delay = Duration::from_millis(500) * (1 << failure);
            server.advance(delay / 2 - Duration::from_millis(1));
            call.assert_pending();
            server.assert_quiet();
            server.advance(delay / 2 + Duration::from_millis(1));
            call.assert_pending();
            if failure == 0 {
                let listen = server.expect_request("subscriptions/listen");
                server.respond_error(&listen, -32601);
                call.assert_pending();
            }
            poll = polled(&mut server, &mut call, SECOND);
        }
        if gives_up {
            server.respond_error(&poll, -32603);
            assert!(matches!(call.finish(), Err(Error::Rejected(_))));
        } else {
            server.respond(&poll, completed("after all"));
            assert_eq!(call.finish().unwrap().to_text(), "after all");
        }
    }
}

/// A server that is started again, and remembers its tasks, is asked again.
#[test]
fn a_task_survives_the_restart_of_its_server() {
    let (_client, mut server, mut call) = started(TransportKind::Pipe, builder());
    polled(&mut server, &mut call, SECOND);
    let died = CloseReason::Disconnected("it died".to_owned());
    let _ = server.handle.handle_disconnect(&died);
    call.assert_pending();
    server.handle.handle_restart();
    server.poll();
    server.advance(SECOND);
    call.assert_pending();
    let listen = server.expect_request("subscriptions/listen");
    server.respond_error(&listen, -32601);
    call.assert_pending();
    let poll = polled(&mut server, &mut call, SECOND);
    server.respond(&poll, completed("survived"));
    assert_eq!(call.finish().unwrap().to_text(), "survived");
    server.assert_quiet();
}

/// What repeating would not change ends the call.
#[test]
fn other_errors_end_the_call() {
    let (_client, mut server, mut call) = started(TransportKind::RequestPerCall, builder());
    let poll = polled(&mut server, &mut call, SECOND);
    server.handle.responses().handle_status(poll.call, 401, b"");
    assert!(matches!(call.finish(), Err(Error::Status { status: 401, .. })));
    expect_task_cancelled(&mut server);
    let (client, _server, mut call) = started(TransportKind::Pipe, builder());
    let mut closing = Task::start(async move { client.close().await });
    closing.assert_pending();
    assert!(matches!(call.finish(), Err(Error::Closed(CloseReason::ByClient))));
}
