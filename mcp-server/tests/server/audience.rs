//! Changes that some clients are notified of, and notices of their subscriptions.

use std::sync::{Arc, Mutex};

use mcp_server::types::Revision;
use mcp_server::{Audience, Change, Connection, NoArguments, Server, SubscriptionEvent, text_resource, tool};
use mcp_testkit::ScriptedClient;
use serde_json::json;

use crate::servers::{MODERN, fails, server};
use crate::visibility::{client_of, heard, principal, subscribe};

const ERAS: [Revision; 3] = [Revision::V2025_03_26, Revision::V2025_11_25, MODERN];

fn with_inbox() -> Server {
    server(|server| {
        server.resource_subscriptions().offers_tools().resource(text_resource("inbox:unread", "unread", "3 messages"))
    })
}

fn inbox() -> Change {
    Change::Resource("inbox:unread".into())
}

/// Users who subscribed to resources with the same URI are notified of their own only.
// covers: AUT-3
#[test]
fn aut_3_changes_reach_their_audience() {
    for revision in ERAS {
        let server = with_inbox();
        let mut alice = client_of(&server, revision, "alice");
        let mut other = client_of(&server, revision, "alice");
        let mut bob = client_of(&server, revision, "bob");
        for client in [&mut alice, &mut other, &mut bob] {
            subscribe(client, revision, &["inbox:unread"]);
        }
        let mut quiet = client_of(&server, revision, "alice");
        let connection = alice.connection.handle();
        let mut counts = |what: &str, expected: [usize; 3]| {
            let counts = [&mut alice, &mut other, &mut bob].map(|client| heard(client).len());
            assert_eq!(counts, expected, "{revision}: {what}");
        };
        server.publish(&inbox());
        counts("all", [1, 1, 1]);
        server.publish_to(&Audience::all(), &inbox());
        counts("all, explicitly", [1, 1, 1]);
        server.publish_to(&Audience::principal(principal("alice")), &inbox());
        counts("one user", [1, 1, 0]);
        server.publish_to(&Audience::principal(principal("carol")), &inbox());
        counts("an unknown user", [0, 0, 0]);
        server.publish_to(&Audience::matching(|viewer| viewer.principal() == Some(&principal("bob"))), &inbox());
        counts("a predicate", [0, 0, 1]);
        server.publish_to(&Audience::connection(&connection), &inbox());
        counts("a connection", [1, 0, 0]);
        connection.publish(&inbox());
        counts("a connection, by its handle", [1, 0, 0]);
        with_inbox().publish_to(&Audience::connection(&connection), &inbox());
        counts("a connection of another server", [0, 0, 0]);
        connection.publish(&Change::Resource("inbox:all".into()));
        counts("something else", [0, 0, 0]);
        server.publish_to(
            &Audience::matching(|_| {
                fails();
                true
            }),
            &inbox(),
        );
        counts("a predicate that panics", [0, 0, 0]);
        let audience = Audience::principal(principal("bob"));
        server.update_for(&audience, |registry| registry.add_tool(tool("a", async |_, _: NoArguments| ""))).unwrap();
        counts("an update", [0, 0, 1]);
        assert!(!heard(&mut quiet).contains(&"resources/updated".to_owned()));
    }
}

/// On one connection, each listen stream belongs to the user of its request.
// covers: AUT-3
#[test]
fn aut_3_listen_streams_have_users_of_their_own() {
    let server = with_inbox();
    let mut client = client_of(&server, MODERN, "alice");
    subscribe(&mut client, MODERN, &["inbox:unread"]);
    client.caller.principal = Some(principal("bob"));
    subscribe(&mut client, MODERN, &["inbox:unread"]);
    server.publish_to(&Audience::principal(principal("alice")), &inbox());
    assert_eq!(heard(&mut client).len(), 1);
    server.publish(&inbox());
    assert_eq!(heard(&mut client).len(), 2);
}

/// A session that is resumed belongs to its user before the user sends a message.
// covers: AUT-3
#[test]
fn aut_3_resumed_sessions_have_users() {
    let server = with_inbox();
    let mut first = client_of(&server, Revision::V2025_11_25, "alice");
    subscribe(&mut first, Revision::V2025_11_25, &["inbox:unread"]);
    let (state, params) =
        (first.connection.session_state().unwrap(), first.connection.port().initialize_params().unwrap());
    let resumed = Connection::resume(&server, params, state).unwrap().principal(Some(principal("alice")));
    drop(first);
    let mut second = ScriptedClient::on_connection(resumed, Revision::V2025_11_25, json!({}));
    server.publish_to(&Audience::principal(principal("bob")), &inbox());
    assert!(heard(&mut second).is_empty());
    server.publish_to(&Audience::principal(principal("alice")), &inbox());
    assert_eq!(heard(&mut second), ["resources/updated"]);
}

/// A weak handle does not keep the values of a connection, and ends with it.
// covers: GW-8
#[test]
fn gw_8_weak_handles_end_with_their_connection() {
    for revision in ERAS {
        let server = with_inbox();
        let mut client = client_of(&server, revision, "alice");
        let (value, handle) = (Arc::new(()), client.connection.handle());
        handle.scratch().unwrap().insert(Arc::clone(&value));
        let weak = handle.downgrade();
        assert!(weak.upgrade().is_some_and(|upgraded| upgraded.token() == handle.token()));
        client.connection.handle_disconnect();
        assert!(weak.upgrade().is_none(), "the connection is closed");
        drop(client);
        assert_eq!(Arc::strong_count(&value), 2, "the strong handle keeps it");
        drop(handle);
        assert_eq!(Arc::strong_count(&value), 1);
        // The handle of a connection that is gone does nothing.
        assert!(weak.upgrade().is_none());
    }
}

/// A handle in the state of the server does not keep the server in memory.
// covers: GW-8
#[test]
fn gw_8_handles_do_not_keep_the_server() {
    type Handles = Arc<Mutex<Vec<mcp_server::ConnectionHandle>>>;
    let (handles, value) = (Handles::default(), Arc::new(()));
    let server = server(|server| server.state(Arc::clone(&handles)).state(Arc::clone(&value)).resource_subscriptions());
    let client = ScriptedClient::new(&server, MODERN);
    let handle = client.connection.handle();
    handles.lock().unwrap().push(handle.clone());
    drop((client, server));
    assert_eq!(Arc::strong_count(&value), 1);
    handle.publish(&inbox());
}

type Log = Arc<Mutex<Vec<String>>>;

/// A server that logs subscriptions.
fn with_log() -> (Server, Log) {
    let log = Log::default();
    let kept = Arc::clone(&log);
    let server = server(|server| {
        server.offers_tools().resource_subscriptions().on_subscription(move |event: &SubscriptionEvent<'_>| {
            // No lock is held.
            event.viewer.server().publish(&Change::Tools);
            assert!(!event.viewer.connection().token().is_empty());
            let user = event.viewer.principal().map_or("unknown", |principal| &*principal.subject);
            let sign = if event.is_active { '+' } else { '-' };
            kept.lock().expect("no panic").push(format!("{sign}{user}:{}", event.uris().collect::<Vec<_>>().join(",")));
        })
    });
    (server, log)
}

fn logged(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().expect("no panic"))
}

/// The application is notified of subscriptions of legacy clients: once for each, and also at a disconnect.
// covers: GW-8
#[test]
fn gw_8_legacy_subscriptions_begin_and_end() {
    for revision in [Revision::V2024_11_05, Revision::V2025_11_25] {
        let (server, log) = with_log();
        let mut client = client_of(&server, revision, "alice");
        subscribe(&mut client, revision, &["a:1", "a:2", "a:1", "a:3"]);
        assert_eq!(logged(&log), ["+alice:a:1", "+alice:a:2", "+alice:a:3"]);
        for _ in 0..2 {
            client.result("resources/unsubscribe", json!({ "uri": "a:1" }));
        }
        assert_eq!(logged(&log), ["-alice:a:1"]);
        client.connection.handle_disconnect();
        assert_eq!(logged(&log), ["-alice:a:2", "-alice:a:3"]);
        drop(client);
        let mut client = client_of(&server, revision, "bob");
        subscribe(&mut client, revision, &["a:1"]);
        drop(client);
        assert_eq!(logged(&log), ["+bob:a:1", "-bob:a:1"], "a connection that is dropped");
    }
}

/// The application is notified of listen streams: those that are cancelled, that the server ends, and those of clients that
/// disconnect.
// covers: GW-8
#[test]
fn gw_8_listen_streams_begin_and_end() {
    let (server, log) = with_log();
    let mut client = client_of(&server, MODERN, "alice");
    let listen = |client: &mut ScriptedClient, uris: &[&str]| {
        client.start("subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": uris } }))
    };
    let first = listen(&mut client, &["a:1", "a:2"]);
    listen(&mut client, &["a:1"]);
    assert_eq!(logged(&log), ["+alice:a:1,a:2", "+alice:a:1"]);
    client.cancel(first);
    assert_eq!(logged(&log), ["-alice:a:1,a:2"]);
    client.connection.drain();
    assert_eq!(logged(&log), ["-alice:a:1"]);
    drop(client);
    let mut one = ScriptedClient::on_connection(Connection::modern_request(&server), MODERN, json!({}));
    listen(&mut one, &["a:4"]);
    drop(one);
    assert_eq!(logged(&log), ["+unknown:a:4", "-unknown:a:4"], "a connection that is dropped");
}

/// Sessions that are resumed elsewhere begin there with their subscriptions.
// covers: GW-8
#[test]
fn gw_8_resumed_sessions_begin_with_their_subscriptions() {
    let (server, log) = with_log();
    let mut client = client_of(&server, Revision::V2025_11_25, "alice");
    subscribe(&mut client, Revision::V2025_11_25, &["a:1"]);
    let (state, params) =
        (client.connection.session_state().unwrap(), client.connection.port().initialize_params().unwrap());
    drop(client);
    logged(&log);
    let mut resumed = Connection::resume(&server, params, state.clone()).unwrap().principal(Some(principal("alice")));
    let mut other = state;
    other.subscriptions = vec!["a:2".into()];
    resumed.refresh(other);
    assert_eq!(logged(&log), ["+alice:a:1", "-alice:a:1", "+alice:a:2"]);
    drop(resumed);
    assert_eq!(logged(&log), ["-alice:a:2"]);
}

/// A panic of the callback ends nothing.
// covers: GW-8
#[test]
fn gw_8_a_callback_may_panic() {
    let server = server(|server| server.resource_subscriptions().on_subscription(|_| fails()));
    for revision in ERAS {
        let mut client = client_of(&server, revision, "alice");
        subscribe(&mut client, revision, &["a:1"]);
        server.publish(&Change::Resource("a:1".into()));
        assert_eq!(heard(&mut client), ["resources/updated"]);
    }
}
