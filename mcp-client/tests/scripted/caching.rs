//! Answers that may be used again.

use std::time::Duration;

use mcp_client::types::{RequestMeta, meta::TraceContext};
use mcp_client::{Client, CredentialFingerprint, TransportKind};
use mcp_testkit::envelope::tool_result;
use mcp_testkit::{ReceivedRequest, ScriptedServer, Task, expect_ready};
use serde_json::{Value, json};

use crate::fixtures::{KINDS, builder, heard, hearing, tools_filter};

fn tools(names: &[&str], next: Option<&str>, ttl: i64) -> Value {
    let tools: Vec<_> = names.iter().map(|name| json!({ "name": name, "inputSchema": { "type": "object" } })).collect();
    let mut result = json!({ "resultType": "complete", "tools": tools, "ttlMs": ttl, "cacheScope": "public" });
    if let Some(next) = next {
        result["nextCursor"] = json!(next);
    }
    result
}

fn contents(text: &str, ttl: i64, scope: &str) -> Value {
    let contents = json!([{ "uri": "test://a", "text": text }]);
    json!({ "resultType": "complete", "contents": contents, "ttlMs": ttl, "cacheScope": scope })
}

/// Reads a resource that has to be asked for, and answers.
fn read(client: &Client, server: &mut ScriptedServer, uri: &str, result: Value) -> ReceivedRequest {
    let mut reading = Task::start(client.read_resource(uri));
    let request = server.expect_request("resources/read");
    server.respond(&request, result);
    reading.finish().unwrap();
    request
}

/// The same question is answered from memory until its time is over; another one is not.
// covers: C-5, C-7..C-9
#[test]
fn answers_are_kept_by_what_was_asked() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        read(&client, &mut server, "test://a", contents("1", 1000, "public"));
        expect_ready(client.read_resource("test://a")).unwrap();
        read(&client, &mut server, "test://b", contents("2", 1000, "public"));
        server.advance(Duration::from_millis(999));
        expect_ready(client.read_resource("test://a")).unwrap();
        server.advance(Duration::from_millis(1));
        // Nothing is fetched before somebody asks.
        server.assert_quiet();
        read(&client, &mut server, "test://a", contents("3", 0, "public"));
        read(&client, &mut server, "test://a", contents("4", -1, "public"));
        read(&client, &mut server, "test://a", json!({ "resultType": "complete", "contents": [] }));
        read(&client, &mut server, "test://a", contents("5", 0, "public"));
    }
}

/// What comes later counts, also if it says that it is not to be kept.
// covers: C-7
#[test]
fn a_newer_answer_replaces_an_older_one() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    read(&client, &mut server, "test://a", contents("old", 60_000, "public"));
    let mut fresh = Task::start(client.read_resource("test://a").skip_cache());
    let request = server.expect_request("resources/read");
    server.respond(&request, contents("new", 0, "public"));
    fresh.finish().unwrap();
    read(&client, &mut server, "test://a", contents("newer", 0, "public"));
}

/// Where a call comes from does not matter to its answer; what its caller adds may.
// covers: C-5
#[test]
fn traces_do_not_keep_answers_from_being_used() {
    let trace = TraceContext::new("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01").unwrap();
    let (client, mut server) =
        ScriptedServer::modern(TransportKind::Pipe, builder().trace_context(move || Some(trace.clone())));
    let request = read(&client, &mut server, "test://a", contents("1", 1000, "public"));
    assert_eq!(request.params["_meta"]["traceparent"], "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01");
    expect_ready(client.read_resource("test://a")).unwrap();
    let _asks = Task::start(client.read_resource("test://a").meta(RequestMeta::default()));
    server.expect_request("resources/read");
}

/// What depended on answers of the user is not kept.
// covers: C-6, R-26
#[test]
fn what_was_asked_for_input_is_not_kept() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder().roots([]));
        for _ in 0..2 {
            let mut reading = Task::start(client.read_resource("test://a"));
            let request = server.expect_request("resources/read");
            let questions = json!({ "where": { "method": "roots/list" } });
            server.respond(&request, json!({ "resultType": "input_required", "inputRequests": questions }));
            reading.assert_pending();
            let request = server.expect_request("resources/read");
            server.respond(&request, contents("1", 60_000, "public"));
            reading.finish().unwrap();
        }
    }
}

/// Neither is what somebody asks again by hand.
// covers: C-6
#[test]
fn what_is_asked_again_by_hand_is_not_kept() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    for member in ["requestState", "inputResponses"] {
        for _ in 0..2 {
            let params = json!({ "uri": "test://a", member: "s" });
            let mut reading = Task::start(client.request::<Value>("resources/read", &params));
            let request = server.expect_request("resources/read");
            server.respond(&request, contents("1", 60_000, "public"));
            reading.finish().unwrap();
        }
    }
}

/// New credentials see nothing that was private, or did not say; also if it was on its way.
// covers: C-12, C-13, C-19, AMB-6
#[test]
fn private_answers_are_for_their_credentials() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let user = |number| CredentialFingerprint::new([0; 16], [number; 32]);
        server.handle.responses().set_credentials(user(1));
        read(&client, &mut server, "test://a", contents("1", 60_000, "private"));
        read(&client, &mut server, "test://b", contents("1", 60_000, "public"));
        read(&client, &mut server, "test://c", contents("1", 60_000, "whatever"));
        server.handle.responses().set_credentials(user(1));
        expect_ready(client.read_resource("test://a")).unwrap();
        let mut late = Task::start(client.read_resource("test://d"));
        let request = server.expect_request("resources/read");
        server.handle.responses().set_credentials(user(2));
        server.respond(&request, contents("1", 60_000, "private"));
        late.finish().unwrap();
        read(&client, &mut server, "test://a", contents("2", 0, "private"));
        expect_ready(client.read_resource("test://b")).unwrap();
        read(&client, &mut server, "test://c", contents("2", 0, "private"));
        read(&client, &mut server, "test://d", contents("2", 0, "private"));
    }
}

/// A change makes what it is about stale, and nothing else; also what is on its way.
// covers: C-14, C-20
#[test]
fn changes_make_answers_stale() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let listening = client.clone();
        let mut listening = Task::start(async move { listening.listen(tools_filter()).await });
        let listen = server.expect_request("subscriptions/listen");
        server.acknowledge(&listen, json!({ "toolsListChanged": true }));
        let mut listener = listening.finish().unwrap();

        read(&client, &mut server, "test://a", contents("1", 60_000, "public"));
        let mut listing = Task::start(client.list_tools(None));
        let request = server.expect_request("tools/list");
        server.notify_change(&listen, "tools/list_changed");
        server.respond(&request, tools(&["old"], None, 60_000));
        listing.finish().unwrap();
        assert_eq!(heard(&mut listener).len(), 1);
        for _ in 0..2 {
            let mut listing = Task::start(client.list_tools(None));
            let request = server.expect_request("tools/list");
            server.respond(&request, tools(&["new"], None, 60_000));
            listing.finish().unwrap();
            expect_ready(client.list_tools(None)).unwrap();
            server.notify_change(&listen, "tools/list_changed");
        }
        expect_ready(client.read_resource("test://a")).unwrap();
    }
}

/// What changed while nobody listened is not known, so what the listener is for is not used again.
// covers: C-14, L-13
#[test]
fn a_gap_makes_answers_stale() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::RequestPerCall, builder());
    let listening = client.clone();
    let mut listening = Task::start(async move { listening.listen(tools_filter()).await });
    let listen = server.expect_request("subscriptions/listen");
    server.acknowledge(&listen, json!({ "toolsListChanged": true }));
    let mut hearing = hearing(listening.finish().unwrap());
    hearing.assert_pending();
    let mut listing = Task::start(client.list_tools(None));
    let request = server.expect_request("tools/list");
    server.respond(&request, tools(&["old"], None, 60_000));
    listing.finish().unwrap();
    server.handle.responses().handle_stream_ended(listen.call, None);
    hearing.assert_pending();
    server.advance(Duration::from_secs(1));
    hearing.assert_pending();
    let listen = server.expect_request("subscriptions/listen");
    server.acknowledge(&listen, json!({ "toolsListChanged": true }));
    let (change, _listener) = hearing.finish();
    assert_eq!(change.unwrap().unwrap(), mcp_client::Change::Tools);
    let _listing = Task::start(client.list_tools(None));
    server.expect_request("tools/list");
}

/// Pages age by themselves, and a cursor that does not work any more begins the list anew.
// covers: C-16, C-17
#[test]
fn a_stale_cursor_begins_the_list_anew() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let mut listing = Task::start(client.tools().all());
        let request = server.expect_request("tools/list");
        server.respond(&request, tools(&["a"], Some("2"), 60_000));
        listing.assert_pending();
        let request = server.expect_request("tools/list");
        assert_eq!(request.params["cursor"], "2");
        server.respond(&request, tools(&["b"], None, 1000));
        assert_eq!(listing.finish().unwrap().len(), 2);
        server.advance(Duration::from_secs(2));
        let mut listing = Task::start(client.tools().all());
        let request = server.expect_request("tools/list");
        assert_eq!(request.params["cursor"], "2", "the first page is still good");
        server.respond_error(&request, -32602);
        listing.assert_pending();
        let request = server.expect_request("tools/list");
        assert_eq!(request.params.get("cursor"), None);
        server.respond(&request, tools(&["c"], None, 0));
        assert_eq!(listing.finish().unwrap()[0].name, "c");
    }
}

/// Also for those who take the items as they come, who cannot begin anew by themselves.
// covers: C-17
#[test]
fn a_stale_cursor_is_not_kept() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let mut listing = Task::start(client.list_tools(None));
    let request = server.expect_request("tools/list");
    server.respond(&request, tools(&["a"], Some("2"), 60_000));
    listing.finish().unwrap();
    let mut next = Task::start(client.list_tools(Some("2".to_owned())));
    let request = server.expect_request("tools/list");
    server.respond_error(&request, -32602);
    assert!(next.finish().is_err());
    let _listing = Task::start(client.list_tools(None));
    assert_eq!(server.expect_request("tools/list").params.get("cursor"), None);
}

/// So many are kept, and those that are due first go first. With 0, none are.
// covers: C-5
#[test]
fn what_is_kept_is_bounded() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder().max_cached_results(2));
    read(&client, &mut server, "test://a", contents("1", 1000, "public"));
    read(&client, &mut server, "test://b", contents("1", 500, "public"));
    read(&client, &mut server, "test://c", contents("1", 2000, "public"));
    expect_ready(client.read_resource("test://a")).unwrap();
    expect_ready(client.read_resource("test://c")).unwrap();
    // Nothing is fresh for ever.
    read(&client, &mut server, "test://e", contents("1", i64::MAX, "public"));
    expect_ready(client.read_resource("test://e")).unwrap();
    server.advance(Duration::from_secs(24 * 60 * 60));
    read(&client, &mut server, "test://e", contents("1", 0, "public"));
    read(&client, &mut server, "test://b", contents("1", 0, "public"));
    // More than a quarter of all is too much for one.
    read(&client, &mut server, "test://a/huge", contents(&"x".repeat(1_100_000), 1000, "public"));
    read(&client, &mut server, "test://a/huge", contents("1", 0, "public"));

    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder().max_cached_results(0));
    read(&client, &mut server, "test://a", contents("1", 1000, "public"));
    read(&client, &mut server, "test://a", contents("1", 1000, "public"));
}

/// What is done twice is done twice.
// covers: C-1, C-5
#[test]
fn calls_of_tools_are_never_kept() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    for _ in 0..2 {
        let mut calling = Task::start(client.call_tool("a"));
        let request = server.expect_request("tools/call");
        let mut result = tool_result("done");
        result["ttlMs"] = json!(60_000);
        server.respond(&request, result);
        calling.finish().unwrap();
    }
}
