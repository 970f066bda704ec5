//! Timeouts that stand still while the transport waits for something else than the server.

use std::time::Duration;

use mcp_client::{CallId, CallOptions, Client, CloseReason, ConnectError, Error, Limits, Mode, TransportKind};
use mcp_testkit::envelope::tool_result;
use mcp_testkit::{ScriptedServer, Task};

use crate::fixtures::{builder, tools_filter};

const KIND: TransportKind = TransportKind::RequestPerCall;
const LONG: Duration = Duration::from_secs(3600);
const STEP: Duration = Duration::from_secs(1);

fn servers(limits: &Limits) -> [(Client, ScriptedServer); 2] {
    let builder = || builder().limits(limits.clone());
    [ScriptedServer::modern(KIND, builder()), ScriptedServer::legacy(KIND, builder())]
}

fn paused(server: &mut ScriptedServer, call: Option<CallId>) {
    let pause = server.handle.responses().pause_timeouts(call);
    server.advance(LONG);
    drop(pause);
}

/// Neither timeout of a call runs while it is paused; both continue with what was left.
#[test]
fn a_paused_call_does_not_time_out() {
    for (client, mut server) in servers(&Limits::default()) {
        for (idle, total) in [(Some(STEP * 10), None), (None, Some(STEP * 10))] {
            let call = || client.call_tool("t").idle_timeout(idle).total_timeout(total);
            let (mut one, mut other) = (Task::start(call()), Task::start(call()));
            let (request, second) = (server.expect_request("tools/call"), server.expect_request("tools/call"));
            server.advance(STEP * 4);
            paused(&mut server, Some(request.call));
            assert!(matches!(other.finish(), Err(Error::TimedOut)), "another call is not paused");
            server.expect_cancelled(&second);
            server.advance(STEP * 5);
            one.assert_pending();
            server.advance(STEP);
            assert!(matches!(one.finish(), Err(Error::TimedOut)));
            server.expect_cancelled(&request);
        }
    }
}

/// A call that is paused can complete, be dropped, and be closed with its client.
#[test]
fn a_paused_call_can_end() {
    for (client, mut server) in servers(&Limits::default()) {
        let mut completed = Task::start(client.call_tool("t"));
        let request = server.expect_request("tools/call");
        let pause = server.handle.responses().pause_timeouts(Some(request.call));
        server.advance(LONG);
        server.respond(&request, tool_result("late"));
        completed.finish().unwrap();
        drop(pause);

        let mut dropped = Task::start(client.call_tool("t"));
        let request = server.expect_request("tools/call");
        let pause = server.handle.responses().pause_timeouts(Some(request.call));
        dropped.assert_pending();
        drop(dropped);
        server.expect_cancelled(&request);
        drop(pause);

        let mut closed = Task::start(client.call_tool("t"));
        let request = server.expect_request("tools/call");
        let _pause = server.handle.responses().pause_timeouts(Some(request.call));
        let mut closing = Task::start({
            let client = client.clone();
            async move { client.close().await }
        });
        closing.assert_pending();
        assert!(matches!(closed.finish(), Err(Error::Closed(CloseReason::ByClient))));
    }
}

/// A pause of no call in particular is one of all, also of those that are made in it.
#[test]
fn all_calls_can_be_paused() {
    for (client, mut server) in servers(&Limits::default()) {
        let call = || client.call_tool("t").idle_timeout(STEP * 2);
        let mut before = Task::start(call());
        let first = server.expect_request("tools/call");
        server.advance(STEP);
        let pause = server.handle.responses().pause_timeouts(None);
        let mut within = Task::start(call());
        let second = server.expect_request("tools/call");
        server.advance(LONG);
        drop(pause);
        server.advance(STEP);
        assert!(matches!(before.finish(), Err(Error::TimedOut)));
        server.expect_cancelled(&first);
        within.assert_pending();
        server.advance(STEP);
        assert!(matches!(within.finish(), Err(Error::TimedOut)));
        server.expect_cancelled(&second);
    }
}

/// A call that waits to be sent does not time out because the calls before it are paused.
#[test]
fn a_call_that_waits_is_paused_too() {
    let mut limits = Limits::default();
    limits.max_calls = 1;
    for (client, mut server) in servers(&limits) {
        let mut first = Task::start(client.call_tool("t").idle_timeout(None).total_timeout(None));
        let request = server.expect_request("tools/call");
        let mut second = Task::start(client.call_tool("t").idle_timeout(STEP * 10));
        server.advance(STEP * 4);
        paused(&mut server, Some(request.call));
        server.advance(STEP * 5);
        second.assert_pending();
        paused(&mut server, Some(request.call));
        second.assert_pending();
        server.advance(STEP);
        assert!(matches!(second.finish(), Err(Error::TimedOut)));
        server.respond(&request, tool_result("done"));
        first.finish().unwrap();
        server.assert_quiet();
    }
}

/// The handshake can be paused in either era, and then fails in its own time.
#[test]
fn a_paused_handshake_does_not_time_out() {
    for (mode, method) in
        [(Mode::Modern, "server/discover"), (Mode::Auto, "server/discover"), (Mode::Legacy, "initialize")]
    {
        let builder = builder().mode(mode).handshake_timeout(STEP * 10);
        let (mut connecting, mut server) = ScriptedServer::connect(KIND, builder);
        let request = server.expect_request(method);
        server.advance(STEP * 4);
        paused(&mut server, Some(request.call));
        server.advance(STEP * 5);
        connecting.assert_pending();
        server.advance(STEP);
        let error = connecting.finish().unwrap_err();
        let expected = matches!(error, Error::Closed(CloseReason::ConnectFailed(ConnectError::TimedOut)));
        assert!(expected, "{error:?}");
    }
}

/// A subscription that is not acknowledged is paused as a call is.
#[test]
fn a_paused_subscription_does_not_time_out() {
    let options = CallOptions::default().idle_timeout(Some(STEP * 10));
    let (client, mut server) = ScriptedServer::modern(KIND, builder().call_options(options));
    let mut opening = Task::start(client.listen(tools_filter()));
    let request = server.expect_request("subscriptions/listen");
    server.advance(STEP * 4);
    paused(&mut server, Some(request.call));
    server.advance(STEP * 5);
    opening.assert_pending();
    server.advance(STEP);
    assert!(matches!(opening.finish(), Err(Error::TimedOut)));
    server.expect_cancelled(&request);
    server.assert_quiet();
}
