//! Hearing of changes, and hearing of them again after a gap.

use std::time::Duration;

use mcp_client::types::SubscriptionFilter;
use mcp_client::{Change, Client, CloseReason, Error, Limits, Mode, ServerLossAction, Subscription, TransportKind};
use mcp_testkit::{ReceivedRequest, ScriptedServer, Task, envelope};
use serde_json::{Value, json};

use crate::fixtures::{KINDS, builder, heard, hearing, tools_filter};

fn listening(client: &Client, filter: SubscriptionFilter) -> Task<Result<Subscription, Error>> {
    let client = client.clone();
    Task::start(async move { client.listen(filter).await })
}

fn uris(uris: &[&str]) -> SubscriptionFilter {
    SubscriptionFilter::default().resources(uris.iter().copied())
}

/// Listens to a modern server, which agrees to `filter`.
fn listen(
    client: &Client,
    server: &mut ScriptedServer,
    wanted: SubscriptionFilter,
    filter: Value,
) -> (Subscription, ReceivedRequest) {
    let mut listening = listening(client, wanted);
    let listen = server.expect_request("subscriptions/listen");
    server.acknowledge(&listen, filter);
    (listening.finish().unwrap(), listen)
}

/// Listens to a legacy server, which agrees to all.
fn listen_legacy(client: &Client, server: &mut ScriptedServer, filter: SubscriptionFilter) -> Subscription {
    let subscriptions = filter.resource_subscriptions.clone().unwrap_or_default();
    let client = client.clone();
    let mut listening = Task::new(async move { client.listen(filter).await });
    if let Some(listener) = listening.poll() {
        return listener.unwrap();
    }
    for uri in subscriptions {
        let subscribe = server.expect_request("resources/subscribe");
        assert_eq!(subscribe.params["uri"], uri);
        server.respond(&subscribe, json!({}));
        if let Some(listener) = listening.poll() {
            return listener.unwrap();
        }
    }
    listening.finish().unwrap()
}

/// Several subscriptions at once, each with what the server agreed to, and told apart by id.
// covers: L-2, L-5, L-6, L-8, L-9, IO-7
#[test]
fn subscriptions_are_told_apart() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let wanted = tools_filter().prompts_list_changed(true);
        let mut opening = listening(&client, wanted);
        let first = server.expect_request("subscriptions/listen");
        assert_eq!(first.params["notifications"], json!({ "toolsListChanged": true, "promptsListChanged": true }));
        server.acknowledge(&first, json!({ "toolsListChanged": true }));
        let mut one = opening.finish().unwrap();
        assert_eq!(*one.acknowledged(), tools_filter());
        let filter = json!({ "toolsListChanged": true });
        let (mut two, second) = listen(&client, &mut server, tools_filter(), filter);
        server.notify_change(&first, "tools/list_changed");
        assert_eq!(heard(&mut one), [Change::Tools]);
        assert_eq!(heard(&mut two), []);
        server.notify_change(&second, "tools/list_changed");
        server.notify_change(&second, "tools/list_changed");
        assert_eq!(heard(&mut one), []);
        assert_eq!(heard(&mut two), [Change::Tools], "what changed twice is told once");
    }
}

/// Dropping a listener ends the subscription, in the way of the transport; also before it is acknowledged.
// covers: L-10
#[test]
fn dropping_a_listener_ends_its_subscription() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let (listener, open) = listen(&client, &mut server, tools_filter(), json!({ "toolsListChanged": true }));
        drop(listener);
        server.expect_cancelled(&open);
        let mut opening = listening(&client, tools_filter());
        let open = server.expect_request("subscriptions/listen");
        opening.cancel();
        server.expect_cancelled(&open);
        server.assert_quiet();
    }
}

/// A subscription that is quiet is not late; one that is never acknowledged is.
// covers: K-15
#[test]
fn quiet_subscriptions_are_not_late() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let (listener, _) = listen(&client, &mut server, tools_filter(), json!({ "toolsListChanged": true }));
        let mut hearing = hearing(listener);
        hearing.assert_pending();
        server.advance(Duration::from_secs(100_000));
        hearing.assert_pending();
        server.assert_quiet();
        let mut opening = listening(&client, tools_filter());
        let open = server.expect_request("subscriptions/listen");
        server.advance(Duration::from_secs(60));
        assert!(matches!(opening.finish(), Err(Error::TimedOut)));
        server.expect_cancelled(&open);
    }
}

/// A subscription that ends is opened again, later each time, and all may have changed.
// covers: L-11..L-13, C-10
#[test]
fn a_subscription_that_ends_is_opened_again() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let filter = tools_filter().resource("test://a");
        let agreed = json!({ "toolsListChanged": true, "resourceSubscriptions": ["test://a"] });
        let (listener, mut open) = listen(&client, &mut server, filter, agreed.clone());
        let mut hears = hearing(listener);
        hears.assert_pending();
        for longest in [500, 1000, 2000] {
            server.respond(&open, json!({ "resultType": "complete" }));
            hears.assert_pending();
            server.advance(Duration::from_millis(longest / 2 - 1));
            hears.assert_pending();
            server.assert_quiet();
            server.advance(Duration::from_millis(longest / 2 + 1));
            hears.assert_pending();
            open = server.expect_request("subscriptions/listen");
            server.acknowledge(&open, agreed.clone());
            let (change, mut listener) = hears.finish();
            assert_eq!(change.unwrap().unwrap(), Change::Tools);
            assert_eq!(heard(&mut listener), [Change::Resource("test://a".to_owned())]);
            hears = hearing(listener);
            hears.assert_pending();
        }
        // After a while that went well the wait is short again.
        server.advance(Duration::from_secs(10));
        server.respond(&open, json!({ "resultType": "complete" }));
        hears.assert_pending();
        server.advance(Duration::from_millis(500));
        hears.assert_pending();
        server.expect_request("subscriptions/listen");
    }
}

/// An outage is waited for, however long; a refusal is the end.
// covers: L-12
#[test]
fn a_refusal_ends_a_listener() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let (listener, open) = listen(&client, &mut server, tools_filter(), json!({ "toolsListChanged": true }));
        let mut hears = hearing(listener);
        hears.assert_pending();
        server.respond(&open, json!({ "resultType": "complete" }));
        hears.assert_pending();
        if kind == TransportKind::RequestPerCall {
            for _ in 0..20 {
                server.advance(Duration::from_secs(30));
                hears.assert_pending();
                let open = server.expect_request("subscriptions/listen");
                server.handle.responses().handle_status(open.call, 503, b"");
                hears.assert_pending();
            }
        }
        server.advance(Duration::from_secs(30));
        hears.assert_pending();
        let open = server.expect_request("subscriptions/listen");
        server.respond_error(&open, -32601);
        let (refused, listener) = hears.finish();
        assert!(refused.unwrap().unwrap_err().is_remote());
        assert!(hearing(listener).finish().0.is_none());
    }
}

/// What is answered before it is acknowledged was never open.
// covers: L-3
#[test]
fn the_acknowledgement_comes_first() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let mut opening = listening(&client, tools_filter());
        let open = server.expect_request("subscriptions/listen");
        server.notify_change(&open, "tools/list_changed");
        server.respond(&open, json!({ "resultType": "complete" }));
        assert!(matches!(opening.finish(), Err(Error::InvalidResponse(_))));
    }
}

/// A server may end a subscription by a cancellation, too.
// covers: K-4, AMB-1
#[test]
fn a_server_may_cancel_a_subscription() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let (listener, open) = listen(&client, &mut server, tools_filter(), json!({ "toolsListChanged": true }));
    let mut hears = hearing(listener);
    hears.assert_pending();
    server.notify("notifications/cancelled", json!({ "requestId": open.id }));
    hears.assert_pending();
    server.advance(Duration::from_secs(1));
    hears.assert_pending();
    server.expect_request("subscriptions/listen");
}

/// After a restart every subscription is opened again; what the server is, is known already.
// covers: IO-15, V-10
#[test]
fn a_new_server_is_listened_to() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let (listener, _) = listen(&client, &mut server, tools_filter(), json!({ "toolsListChanged": true }));
    let mut hears = hearing(listener);
    hears.assert_pending();
    assert_eq!(
        server.handle.handle_disconnect(&CloseReason::Disconnected("it died".to_owned())),
        ServerLossAction::MayRestart
    );
    hears.assert_pending();
    server.advance(Duration::from_secs(1));
    hears.assert_pending();
    server.assert_quiet();
    server.handle.handle_restart();
    hears.assert_pending();
    let open = server.expect_request("subscriptions/listen");
    server.acknowledge(&open, json!({ "toolsListChanged": true }));
    assert_eq!(hears.finish().0.unwrap().unwrap(), Change::Tools);
}

/// The end of the client is the end of its listeners, which say why.
// covers: S4.54
#[test]
fn listeners_end_with_the_client() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let (listener, _) = listen(&client, &mut server, tools_filter(), json!({ "toolsListChanged": true }));
        let mut hears = hearing(listener);
        hears.assert_pending();
        server.close(CloseReason::Exited { status: "gone".to_owned() });
        let ended = hears.finish().0.unwrap();
        assert!(matches!(ended, Err(Error::Closed(CloseReason::Exited { .. }))), "{ended:?}");
        let (client, mut server) = ScriptedServer::legacy(kind, builder());
        let mut hears = hearing(listen_legacy(&client, &mut server, uris(&["test://a"])));
        hears.assert_pending();
        server.close(CloseReason::Exited { status: "gone".to_owned() });
        assert!(hears.finish().0.unwrap().is_err());
    }
}

/// Listeners wait for room like calls do.
// covers: L-18
#[test]
fn listeners_wait_for_room() {
    for kind in KINDS {
        let mut limits = Limits::default();
        limits.max_calls = 1;
        let (client, mut server) = ScriptedServer::modern(kind, builder().limits(limits));
        let mut call = Task::start(client.call_tool("t"));
        let request = server.expect_request("tools/call");
        let mut opening = listening(&client, tools_filter());
        server.assert_quiet();
        server.respond(&request, envelope::tool_result("done"));
        call.finish().unwrap();
        opening.assert_pending();
        let open = server.expect_request("subscriptions/listen");
        server.acknowledge(&open, json!({ "toolsListChanged": true }));
        let _listener = opening.finish().unwrap();
    }
}

/// A legacy server tells all on one stream; each listener hears what it wants, and what lies below it.
// covers: L-1, L-15, B-44
#[test]
fn legacy_changes_are_filtered() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::legacy(kind, builder());
        let mut lists = listen_legacy(&client, &mut server, tools_filter());
        let mut resources = listen_legacy(&client, &mut server, uris(&["test://a"]));
        server.notify("notifications/tools/list_changed", json!({}));
        server.notify("notifications/prompts/list_changed", json!({}));
        for uri in ["test://a/b", "test://ab", "test://a"] {
            server.notify("notifications/resources/updated", json!({ "uri": uri }));
        }
        assert_eq!(heard(&mut lists), [Change::Tools]);
        let expected = ["test://a/b", "test://a"].map(|uri| Change::Resource(uri.to_owned()));
        assert_eq!(heard(&mut resources), expected);
    }
}

/// What a legacy server does not offer is not acknowledged, and not asked for.
// covers: L-6
#[test]
fn legacy_servers_tell_what_they_offer() {
    let (mut connecting, mut server) = ScriptedServer::connect(TransportKind::Pipe, builder().mode(Mode::Legacy));
    let initialize = server.expect_request("initialize");
    let offers = json!({ "tools": { "listChanged": true } });
    server.respond(&initialize, envelope::initialize_result("2025-11-25", offers));
    server.expect_notification("notifications/initialized");
    let client = connecting.finish().unwrap();
    let listener = listen_legacy(&client, &mut server, tools_filter().prompts_list_changed(true));
    assert_eq!(*listener.acknowledged(), tools_filter());
    server.assert_quiet();
}

/// Listeners to a legacy server share subscriptions; the last one ends them.
// covers: L-9, L-10
#[test]
fn the_last_listener_unsubscribes() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::legacy(kind, builder());
        let one = listen_legacy(&client, &mut server, uris(&["test://a", "test://b"]));
        let two = listen_legacy(&client, &mut server, uris(&["test://a"]));
        drop(one);
        assert_eq!(server.expect_request("resources/unsubscribe").params["uri"], "test://b");
        server.assert_quiet();
        drop(two);
        assert_eq!(server.expect_request("resources/unsubscribe").params["uri"], "test://a");
        server.assert_quiet();
    }
}

/// Also one that was given up while it was opened, or refused.
// covers: L-10
#[test]
fn unfinished_listeners_unsubscribe() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::legacy(kind, builder());
        let mut opening = listening(&client, uris(&["test://a"]));
        let subscribe = server.expect_request("resources/subscribe");
        opening.cancel();
        server.expect_cancelled(&subscribe);
        server.expect_request("resources/unsubscribe");
        let mut opening = listening(&client, uris(&["test://a", "test://b"]));
        let subscribe = server.expect_request("resources/subscribe");
        server.respond(&subscribe, json!({}));
        opening.assert_pending();
        let subscribe = server.expect_request("resources/subscribe");
        server.respond_error(&subscribe, -32602);
        assert!(opening.finish().unwrap_err().is_remote());
        assert_eq!(server.expect_request("resources/unsubscribe").params["uri"], "test://a");
    }
}

/// A new session knows of no subscriptions, so they are made again, and all may have changed.
// covers: L-13, S4.53
#[test]
fn a_new_session_is_subscribed_to() {
    let (client, mut server) = ScriptedServer::legacy(TransportKind::RequestPerCall, builder());
    let mut hears = hearing(listen_legacy(&client, &mut server, uris(&["test://a"])));
    hears.assert_pending();
    server.handle.handle_session_lost(None, true, mcp_client::SessionLossReason::Unknown { status: 404 });
    server.handshake("2025-11-25");
    hears.assert_pending();
    server.advance(Duration::from_secs(1));
    hears.assert_pending();
    let subscribe = server.expect_request("resources/subscribe");
    server.respond(&subscribe, json!({}));
    assert_eq!(hears.finish().0.unwrap().unwrap(), Change::Resource("test://a".to_owned()));
}
