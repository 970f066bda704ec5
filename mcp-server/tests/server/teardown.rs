//! What runs when a connection ends.

use std::future::{pending, ready};
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt;
use mcp_server::types::Revision;
use mcp_server::{Connection, ConnectionHandle, NoArguments, RequestContext, Server, tool};
use mcp_testkit::{Gate, Notes, ScriptedClient};
use serde_json::json;

use crate::servers::{MODERN, fails, server};

/// A server with a tool that leaves something to be done at the end.
fn leaving(leave: impl Fn(&ConnectionHandle, u64) + Send + Sync + 'static) -> Server {
    let leave = tool("leave", move |ctx: RequestContext, _: NoArguments| {
        leave(ctx.connection(), ctx.id().to_string().parse().unwrap_or_default());
        ready(())
    });
    server(|server| server.tool(leave))
}

/// What handlers left to be done is done at the end, the last first, each once.
// covers: S1.3, S1.16
#[test]
fn teardown_is_last_in_first_out() {
    for revision in Revision::ALL {
        let notes = Notes::default();
        let kept = notes.clone();
        let server = leaving(move |connection, number| {
            let notes = kept.clone();
            connection.on_close(move || async move { notes.add(number.to_string()) });
        });
        let mut client = ScriptedClient::new(&server, revision);
        let mut other = ScriptedClient::new(&server, revision);
        for _ in 0..3 {
            client.call_tool("leave", json!({}));
        }
        other.call_tool("leave", json!({}));
        assert_eq!(notes.take(), [""; 0]);
        client.connection.teardown(pending).now_or_never().expect("an end");
        assert_eq!(notes.take(), ["3", "2", "1"]);
        assert!(client.connection.is_closed());
        client.connection.teardown(pending).now_or_never().expect("an end");
        assert_eq!(notes.take(), [""; 0]);
        assert!(!other.connection.is_closed());
    }
}

/// One that panics, at once or later, does not keep the others from running.
// covers: S1.17
#[test]
fn teardown_may_panic() {
    let notes = Notes::default();
    let kept = notes.clone();
    let server = leaving(move |connection, _| {
        let notes = kept.clone();
        connection.on_close(move || async move { notes.add("first in") });
        connection.on_close(async || fails());
        connection.on_close(|| {
            fails();
            ready(())
        });
    });
    let mut client = ScriptedClient::new(&server, MODERN);
    client.call_tool("leave", json!({}));
    client.connection.teardown(pending).now_or_never().expect("an end");
    assert_eq!(notes.take(), ["first in"]);
}

/// One that takes too long is given up, and the time of the next begins anew.
// covers: S1.16, S1.17
#[test]
fn teardown_is_bounded() {
    let notes = Notes::default();
    let kept = notes.clone();
    let server = leaving(move |connection, _| {
        let notes = kept.clone();
        connection.on_close(move || async move { notes.add("first in") });
        connection.on_close(pending);
        connection.on_close(pending);
    });
    let mut client = ScriptedClient::new(&server, MODERN);
    client.call_tool("leave", json!({}));
    let gates = [Gate::default(), Gate::default(), Gate::default()];
    let mut bounds = gates.iter();
    let mut torn = Box::pin(client.connection.teardown(|| bounds.next().expect("a bound").wait()));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(torn.poll_unpin(&mut cx).is_pending());
    gates[0].open();
    assert!(torn.poll_unpin(&mut cx).is_pending());
    assert_eq!(notes.take(), [""; 0]);
    gates[1].open();
    assert_eq!(torn.poll_unpin(&mut cx), Poll::Ready(()));
    assert_eq!(notes.take(), ["first in"]);
}

/// What is left during the teardown is done as well, and the handlers are gone by then.
// covers: S1.16
#[test]
fn teardown_may_leave_more() {
    let notes = Notes::default();
    let kept = notes.clone();
    let server = leaving(move |connection, _| {
        let (notes, again) = (kept.clone(), connection.clone());
        connection.on_close(move || async move {
            let more = notes.clone();
            again.on_close(move || async move { more.add("second") });
            notes.add("first");
        });
    });
    let mut single = ScriptedClient::on_connection(Connection::modern_request(&server), MODERN, json!({}));
    single.call_tool("leave", json!({}));
    single.connection.teardown(pending).now_or_never().expect("an end");
    assert_eq!(notes.take(), ["first", "second"]);
}
