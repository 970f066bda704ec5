//! Hearing of changes, and hearing of them again after a gap.

use std::time::Duration;

use mcp_client::types::SubscriptionFilter;
use mcp_client::{Change, Client, CloseReason, Error, Limits, ServerLossAction, Subscription, TransportKind};
use serde_json::{Value, json};

use crate::kit::{KINDS, Request, Scene, Task, builder, heard, hearing, tools_filter};

fn listening(client: &Client, filter: SubscriptionFilter) -> Task<Result<Subscription, Error>> {
    let client = client.clone();
    Task::new(async move { client.listen(filter).await })
}

fn uris(uris: &[&str]) -> SubscriptionFilter {
    SubscriptionFilter::default().resource_subscriptions(uris.iter().map(|uri| (*uri).to_owned()).collect::<Vec<_>>())
}

/// Listens to a modern server, which agrees to `filter`.
fn listen(client: &Client, scene: &mut Scene, wanted: SubscriptionFilter, filter: Value) -> (Subscription, Request) {
    let mut listening = listening(client, wanted);
    let listen = scene.request("subscriptions/listen");
    scene.acknowledge(&listen, filter);
    (listening.done().unwrap(), listen)
}

/// Listens to a legacy server, which agrees to all.
fn listen_legacy(client: &Client, scene: &mut Scene, filter: SubscriptionFilter) -> Subscription {
    let subscriptions = filter.resource_subscriptions.clone().unwrap_or_default();
    let client = client.clone();
    let (mut listening, listener) = Task::start(async move { client.listen(filter).await });
    if let Some(listener) = listener {
        return listener.unwrap();
    }
    for uri in subscriptions {
        let subscribe = scene.request("resources/subscribe");
        assert_eq!(subscribe.params["uri"], uri);
        scene.answer(&subscribe, json!({}));
        if let Some(listener) = listening.look() {
            return listener.unwrap();
        }
    }
    listening.done().unwrap()
}

/// Several subscriptions at once, each with what the server agreed to, and told apart by id.
// covers: L-2, L-5, L-6, L-8, L-9, IO-7
#[test]
fn subscriptions_are_told_apart() {
    for kind in KINDS {
        let (client, mut scene) = Scene::modern(kind, builder());
        let wanted = tools_filter().prompts_list_changed(true);
        let mut opening = listening(&client, wanted);
        let first = scene.request("subscriptions/listen");
        assert_eq!(first.params["notifications"], json!({ "toolsListChanged": true, "promptsListChanged": true }));
        scene.acknowledge(&first, json!({ "toolsListChanged": true }));
        let mut one = opening.done().unwrap();
        assert_eq!(*one.acknowledged(), tools_filter());
        let filter = json!({ "toolsListChanged": true });
        let (mut two, second) = listen(&client, &mut scene, tools_filter(), filter);
        scene.change(&first, "tools/list_changed");
        assert_eq!(heard(&mut one), [Change::Tools]);
        assert_eq!(heard(&mut two), []);
        scene.change(&second, "tools/list_changed");
        scene.change(&second, "tools/list_changed");
        assert_eq!(heard(&mut one), []);
        assert_eq!(heard(&mut two), [Change::Tools], "what changed twice is told once");
    }
}

/// Dropping a listener ends the subscription, in the way of the transport; also before it is acknowledged.
// covers: L-10
#[test]
fn dropping_a_listener_ends_its_subscription() {
    for kind in KINDS {
        let (client, mut scene) = Scene::modern(kind, builder());
        let (listener, open) = listen(&client, &mut scene, tools_filter(), json!({ "toolsListChanged": true }));
        drop(listener);
        scene.given_up(&open);
        let mut opening = listening(&client, tools_filter());
        let open = scene.request("subscriptions/listen");
        opening.drop_future();
        scene.given_up(&open);
        scene.silence();
    }
}

/// A subscription that is quiet is not late; one that is never acknowledged is.
// covers: K-15
#[test]
fn quiet_subscriptions_are_not_late() {
    for kind in KINDS {
        let (client, mut scene) = Scene::modern(kind, builder());
        let (listener, _) = listen(&client, &mut scene, tools_filter(), json!({ "toolsListChanged": true }));
        let mut hearing = hearing(listener);
        hearing.waits();
        scene.advance(Duration::from_secs(100_000));
        hearing.waits();
        scene.silence();
        let mut opening = listening(&client, tools_filter());
        let open = scene.request("subscriptions/listen");
        scene.advance(Duration::from_secs(60));
        assert!(matches!(opening.done(), Err(Error::TimedOut)));
        scene.given_up(&open);
    }
}

/// A subscription that ends is opened again, later each time, and all may have changed.
// covers: L-11..L-13, C-10
#[test]
fn a_subscription_that_ends_is_opened_again() {
    for kind in KINDS {
        let (client, mut scene) = Scene::modern(kind, builder());
        let filter = tools_filter().resource_subscriptions(vec!["test://a".to_owned()]);
        let agreed = json!({ "toolsListChanged": true, "resourceSubscriptions": ["test://a"] });
        let (listener, mut open) = listen(&client, &mut scene, filter, agreed.clone());
        let mut hears = hearing(listener);
        hears.waits();
        for longest in [500, 1000, 2000] {
            scene.answer(&open, json!({ "resultType": "complete" }));
            hears.waits();
            scene.advance(Duration::from_millis(longest / 2 - 1));
            hears.waits();
            scene.silence();
            scene.advance(Duration::from_millis(longest / 2 + 1));
            hears.waits();
            open = scene.request("subscriptions/listen");
            scene.acknowledge(&open, agreed.clone());
            let (change, mut listener) = hears.done();
            assert_eq!(change.unwrap().unwrap(), Change::Tools);
            assert_eq!(heard(&mut listener), [Change::Resource("test://a".to_owned())]);
            hears = hearing(listener);
            hears.waits();
        }
        // After a while that went well the wait is short again.
        scene.advance(Duration::from_secs(10));
        scene.answer(&open, json!({ "resultType": "complete" }));
        hears.waits();
        scene.advance(Duration::from_millis(500));
        hears.waits();
        scene.request("subscriptions/listen");
    }
}

/// An outage is waited for, however long; a refusal is the end.
// covers: L-12
#[test]
fn a_refusal_ends_a_listener() {
    for kind in KINDS {
        let (client, mut scene) = Scene::modern(kind, builder());
        let (listener, open) = listen(&client, &mut scene, tools_filter(), json!({ "toolsListChanged": true }));
        let mut hears = hearing(listener);
        hears.waits();
        scene.answer(&open, json!({ "resultType": "complete" }));
        hears.waits();
        if kind == TransportKind::RequestPerCall {
            for _ in 0..20 {
                scene.advance(Duration::from_secs(30));
                hears.waits();
                let open = scene.request("subscriptions/listen");
                scene.handle.responses().handle_status(open.call, 503, b"");
                hears.waits();
            }
        }
        scene.advance(Duration::from_secs(30));
        hears.waits();
        let open = scene.request("subscriptions/listen");
        scene.refuse(&open, -32601);
        let (refused, listener) = hears.done();
        assert!(refused.unwrap().unwrap_err().is_remote());
        assert!(hearing(listener).done().0.is_none());
    }
}

/// What is answered before it is acknowledged was never open.
// covers: L-3
#[test]
fn the_acknowledgement_comes_first() {
    for kind in KINDS {
        let (client, mut scene) = Scene::modern(kind, builder());
        let mut opening = listening(&client, tools_filter());
        let open = scene.request("subscriptions/listen");
        scene.change(&open, "tools/list_changed");
        scene.answer(&open, json!({ "resultType": "complete" }));
        assert!(matches!(opening.done(), Err(Error::InvalidResponse(_))));
    }
}

/// A server may end a subscription by a cancellation, too.
// covers: K-4, AMB-1
#[test]
fn a_server_may_cancel_a_subscription() {
    let (client, mut scene) = Scene::modern(TransportKind::Pipe, builder());
    let (listener, open) = listen(&client, &mut scene, tools_filter(), json!({ "toolsListChanged": true }));
    let mut hears = hearing(listener);
    hears.waits();
    scene.tell_all("notifications/cancelled", json!({ "requestId": open.id }));
    hears.waits();
    scene.advance(Duration::from_secs(1));
    hears.waits();
    scene.request("subscriptions/listen");
}

/// After a restart every subscription is opened again; what the server is, is known already.
// covers: IO-15, V-10
#[test]
fn a_new_server_is_listened_to() {
    let (client, mut scene) = Scene::modern(TransportKind::Pipe, builder());
    let (listener, _) = listen(&client, &mut scene, tools_filter(), json!({ "toolsListChanged": true }));
    let mut hears = hearing(listener);
    hears.waits();
    assert_eq!(
        scene.handle.handle_disconnect(&CloseReason::Disconnected("it died".to_owned())),
        ServerLossAction::MayRestart
    );
    hears.waits();
    scene.advance(Duration::from_secs(1));
    hears.waits();
    scene.silence();
    scene.handle.handle_restart();
    hears.waits();
    let open = scene.request("subscriptions/listen");
    scene.acknowledge(&open, json!({ "toolsListChanged": true }));
    assert_eq!(hears.done().0.unwrap().unwrap(), Change::Tools);
}

/// The end of the client is the end of its listeners, which say why.
// covers: S4.54
#[test]
fn listeners_end_with_the_client() {
    for kind in KINDS {
        let (client, mut scene) = Scene::modern(kind, builder());
        let (listener, _) = listen(&client, &mut scene, tools_filter(), json!({ "toolsListChanged": true }));
        let mut hears = hearing(listener);
        hears.waits();
        scene.end(CloseReason::Exited { status: "gone".to_owned() });
        let ended = hears.done().0.unwrap();
        assert!(matches!(ended, Err(Error::Closed(CloseReason::Exited { .. }))), "{ended:?}");
        let (client, mut scene) = Scene::legacy(kind, builder());
        let mut hears = hearing(listen_legacy(&client, &mut scene, uris(&["test://a"])));
        hears.waits();
        scene.end(CloseReason::Exited { status: "gone".to_owned() });
        assert!(hears.done().0.unwrap().is_err());
    }
}

/// Listeners wait for room like calls do.
// covers: L-18
#[test]
fn listeners_wait_for_room() {
    for kind in KINDS {
        let mut limits = Limits::default();
        limits.max_calls = 1;
        let (client, mut scene) = Scene::modern(kind, builder().limits(limits));
        let mut call = Task::new(client.call_tool("t"));
        let request = scene.request("tools/call");
        let mut opening = listening(&client, tools_filter());
        scene.silence();
        scene.answer(&request, crate::kit::said("done"));
        call.done().unwrap();
        opening.waits();
        let open = scene.request("subscriptions/listen");
        scene.acknowledge(&open, json!({ "toolsListChanged": true }));
        let _listener = opening.done().unwrap();
    }
}

/// A legacy server tells all on one stream; each listener hears what it wants, and what lies below it.
// covers: L-1, L-15, B-44
#[test]
fn legacy_changes_are_filtered() {
    for kind in KINDS {
        let (client, mut scene) = Scene::legacy(kind, builder());
        let mut lists = listen_legacy(&client, &mut scene, tools_filter());
        let mut resources = listen_legacy(&client, &mut scene, uris(&["test://a"]));
        scene.tell_all("notifications/tools/list_changed", json!({}));
        scene.tell_all("notifications/prompts/list_changed", json!({}));
        for uri in ["test://a/b", "test://ab", "test://a"] {
            scene.tell_all("notifications/resources/updated", json!({ "uri": uri }));
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
    let (client, mut scene) = Scene::legacy(TransportKind::Pipe, builder());
    let listener = listen_legacy(&client, &mut scene, tools_filter().prompts_list_changed(true));
    assert_eq!(*listener.acknowledged(), tools_filter());
    scene.silence();
}

/// Listeners to a legacy server share subscriptions; the last one ends them.
// covers: L-9, L-10
#[test]
fn the_last_listener_unsubscribes() {
    for kind in KINDS {
        let (client, mut scene) = Scene::legacy(kind, builder());
        let one = listen_legacy(&client, &mut scene, uris(&["test://a", "test://b"]));
        let two = listen_legacy(&client, &mut scene, uris(&["test://a"]));
        drop(one);
        assert_eq!(scene.request("resources/unsubscribe").params["uri"], "test://b");
        scene.silence();
        drop(two);
        assert_eq!(scene.request("resources/unsubscribe").params["uri"], "test://a");
        scene.silence();
    }
}

/// Also one that was given up while it was opened, or refused.
// covers: L-10
#[test]
fn unfinished_listeners_unsubscribe() {
    for kind in KINDS {
        let (client, mut scene) = Scene::legacy(kind, builder());
        let mut opening = listening(&client, uris(&["test://a"]));
        let subscribe = scene.request("resources/subscribe");
        opening.drop_future();
        scene.given_up(&subscribe);
        scene.request("resources/unsubscribe");
        let mut opening = listening(&client, uris(&["test://a", "test://b"]));
        let subscribe = scene.request("resources/subscribe");
        scene.answer(&subscribe, json!({}));
        opening.waits();
        let subscribe = scene.request("resources/subscribe");
        scene.refuse(&subscribe, -32602);
        assert!(opening.done().unwrap_err().is_remote());
        assert_eq!(scene.request("resources/unsubscribe").params["uri"], "test://a");
    }
}

/// A new session knows of no subscriptions, so they are made again, and all may have changed.
// covers: L-13, S4.53
#[test]
fn a_new_session_is_subscribed_to() {
    let (client, mut scene) = Scene::legacy(TransportKind::RequestPerCall, builder());
    let mut hears = hearing(listen_legacy(&client, &mut scene, uris(&["test://a"])));
    hears.waits();
    scene.handle.handle_session_lost(None, true, mcp_client::SessionLossReason::Unknown { status: 404 });
    scene.shake_hands("2025-11-25");
    hears.waits();
    scene.advance(Duration::from_secs(1));
    hears.waits();
    let subscribe = scene.request("resources/subscribe");
    scene.answer(&subscribe, json!({}));
    assert_eq!(hears.done().0.unwrap().unwrap(), Change::Resource("test://a".to_owned()));
}
