//! What a call mends by itself, once each.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::types::Revision;
use mcp_client::{CloseReason, DetectedRevision, Error, Mode, RevisionCache, TransportKind};
use mcp_testkit::envelope::{discover_result, tool_result};
use mcp_testkit::{Clock, ScriptedServer, Task, expect_ready};
use serde_json::{Value, json};

use crate::fixtures::{KINDS, builder, connected, tools_filter};

/// A tool whose parameter `a` is repeated in a header.
fn marked(header: &str) -> Value {
    let property = json!({ "type": "string", "x-mcp-header": header });
    let tool = json!({ "name": "t", "inputSchema": { "type": "object", "properties": { "a": property } } });
    json!({ "resultType": "complete", "tools": [tool], "ttlMs": 60_000, "cacheScope": "public" })
}

/// A refused version is replaced by one that both have; a second refusal is final.
// covers: V-3, V-12, S3.12
#[test]
fn a_refused_version_is_replaced_once() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let error = json!({
            "code": -32022, "message": "no", "data": { "requested": "2026-07-28", "supported": ["2026-07-28"] },
        });
        let mut calling = Task::start(client.call_tool("t"));
        let first = server.expect_request("tools/call");
        server.respond_error_object(&first, error.clone());
        calling.assert_pending();
        let second = server.expect_request("tools/call");
        assert_ne!(first.id, second.id);
        server.respond_error_object(&second, error);
        assert_eq!(calling.finish().unwrap_err().as_rejection().unwrap().code.get(), -32022);
        server.assert_quiet();
    }
}

/// The one that both have may be a legacy one; whoever called meanwhile is served, too.
// covers: V-3, AMB-8
#[test]
fn a_refused_version_may_lead_to_the_other_era() {
    for kind in KINDS {
        let (client, mut server) = ScriptedServer::modern(kind, builder());
        let error = json!({
            "code": -32022, "message": "no", "data": { "requested": "2026-07-28", "supported": ["2025-06-18"] },
        });
        let mut calls = [1, 2].map(|_| Task::start(client.call_tool("t")));
        let requests = [1, 2].map(|_| server.expect_request("tools/call"));
        for (call, request) in calls.iter_mut().zip(&requests) {
            server.respond_error_object(request, error.clone());
            call.assert_pending();
        }
        server.handshake("2025-06-18");
        for call in &mut calls {
            call.assert_pending();
            let request = server.expect_request("tools/call");
            assert_eq!(request.revision, Some(Revision::V2025_06_18));
            server.respond(&request, tool_result("done"));
            call.finish().unwrap();
        }
        assert_eq!(client.detected_revision().unwrap().revision, Revision::V2025_06_18);
    }
}

/// Without a common version the refusal is what the caller gets.
// covers: V-3
#[test]
fn no_common_version_is_an_error() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    for data in [json!({ "requested": "2026-07-28", "supported": ["2099-01-01"] }), json!({ "nothing": "here" })] {
        let mut calling = Task::start(client.call_tool("t"));
        let request = server.expect_request("tools/call");
        server.respond_error_object(&request, json!({ "code": -32022, "message": "no", "data": data }));
        assert!(calling.finish().unwrap_err().is_remote());
        server.assert_quiet();
    }
}

/// Headers follow from the newest schema; when they do not fit, it is fetched again, once.
// covers: H-61, H-80, H-81
#[test]
fn headers_that_do_not_fit_are_made_anew_once() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::RequestPerCall, builder());
    let mut calling = Task::start(client.call_tool("t").arguments(&json!({ "a": "x" })));
    let request = server.expect_request("tools/call");
    assert_eq!(request.headers.name.as_deref(), Some("t"));
    assert_eq!(request.headers.params, [], "nobody saw the schema");
    server.respond_error(&request, -32020);
    calling.assert_pending();
    let list = server.expect_request("tools/list");
    server.respond(&list, marked("New"));
    calling.assert_pending();
    let request = server.expect_request("tools/call");
    assert_eq!(request.headers.params, [("New".to_owned(), "x".to_owned())]);
    server.respond_error(&request, -32020);
    assert_eq!(calling.finish().unwrap_err().as_rejection().unwrap().code.get(), -32020);
    server.assert_quiet();
    // The next call begins with what is known, and lists anew although a list is kept.
    let mut calling = Task::start(client.call_tool("t").arguments(&json!({ "a": "x" })));
    let request = server.expect_request("tools/call");
    assert_eq!(request.headers.params, [("New".to_owned(), "x".to_owned())]);
    server.respond_error(&request, -32020);
    calling.assert_pending();
    let list = server.expect_request("tools/list");
    server.respond(&list, marked("Newest"));
    calling.assert_pending();
    let request = server.expect_request("tools/call");
    assert_eq!(request.headers.params, [("Newest".to_owned(), "x".to_owned())]);
    server.respond(&request, tool_result("done"));
    calling.finish().unwrap();
    // What the newest schema does not want any more is not sent.
    let mut listing = Task::start(client.list_tools(None).skip_cache());
    let list = server.expect_request("tools/list");
    let tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
    server.respond(&list, json!({ "resultType": "complete", "tools": [tool], "ttlMs": 0, "cacheScope": "public" }));
    listing.finish().unwrap();
    let _calling = Task::start(client.call_tool("t").arguments(&json!({ "a": "x" })));
    assert_eq!(server.expect_request("tools/call").headers.params, []);
}

/// A list that cannot be fetched leaves the error as it was.
// covers: H-80
#[test]
fn headers_cannot_be_made_anew_without_a_list() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::RequestPerCall, builder());
    let mut calling = Task::start(client.call_tool("t").arguments(&json!({ "a": "x" })));
    let request = server.expect_request("tools/call");
    server.respond_error(&request, -32020);
    calling.assert_pending();
    let list = server.expect_request("tools/list");
    server.respond_error(&list, -32603);
    assert_eq!(calling.finish().unwrap_err().as_rejection().unwrap().code.get(), -32020);
    server.assert_quiet();
}

/// Where there are no headers, or none that the era knows, a call is not made twice because of them.
// covers: H-69, H-80
#[test]
fn where_there_are_no_headers_they_do_not_fit_either() {
    let scenes = [
        ScriptedServer::modern(TransportKind::Pipe, builder()),
        ScriptedServer::legacy(TransportKind::Pipe, builder()),
        ScriptedServer::legacy(TransportKind::RequestPerCall, builder()),
    ];
    for (client, mut server) in scenes {
        let mut calling = Task::start(client.call_tool("t").arguments(&json!({ "a": "x" })));
        let request = server.expect_request("tools/call");
        server.respond_error(&request, -32020);
        assert_eq!(calling.finish().unwrap_err().as_rejection().unwrap().code.get(), -32020);
        server.assert_quiet();
    }
}

/// Tools that break the rules for headers are dropped where there are headers.
// covers: H-67, H-69..H-71, H-81
#[test]
fn tools_with_wrong_headers_are_dropped() {
    let property = |kind: &str, header: &str| json!({ "type": kind, "x-mcp-header": header });
    let nested = json!({ "type": "object", "properties": { "n": property("integer", "N") } });
    let good = json!({ "type": "object", "properties": {
        "s": property("string", "S"), "b": property("boolean", "B"), "o": nested, "z": property("string", "Z"),
    } });
    let bad = json!({ "type": "object", "properties": { "a": property("number", "A") } });
    let list = json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "public",
        "tools": [{ "name": "good", "inputSchema": good }, { "name": "bad", "inputSchema": bad }],
    });
    let scenes = [
        (ScriptedServer::modern(TransportKind::RequestPerCall, builder()), 1),
        (ScriptedServer::modern(TransportKind::Pipe, builder()), 2),
        (ScriptedServer::legacy(TransportKind::RequestPerCall, builder()), 2),
    ];
    for ((client, mut server), count) in scenes {
        let mut listing = Task::start(client.tools().all());
        let request = server.expect_request("tools/list");
        server.respond(&request, list.clone());
        assert_eq!(listing.finish().unwrap().len(), count);
        let arguments = json!({ "s": "t", "b": true, "o": { "n": 7 }, "z": null });
        let _calling = Task::start(client.call_tool("good").arguments(&arguments));
        let request = server.expect_request("tools/call");
        if count == 1 {
            let mut params = request.headers.params;
            params.sort();
            let expected = [("B", "true"), ("N", "7"), ("S", "t")].map(|(k, v)| (k.to_owned(), v.to_owned()));
            assert_eq!(params, expected);
        } else {
            assert_eq!(request.headers.params, []);
        }
    }
}

/// A tool that is dropped is warned of, by its name, with the reason.
// covers: H-68
#[test]
fn dropped_tools_are_warned_of() {
    let told = Arc::new(Mutex::new(String::new()));
    tracing::subscriber::with_default(Warnings(Arc::clone(&told)), || {
        let (client, mut server) = ScriptedServer::modern(TransportKind::RequestPerCall, builder());
        let mut listing = Task::start(client.tools().all());
        let request = server.expect_request("tools/list");
        server.respond(&request, marked("not a token"));
        assert_eq!(listing.finish().unwrap().len(), 0);
    });
    let told = told.lock().unwrap();
    assert!(told.contains("tool=\"t\"") && told.contains("x-mcp-header"), "{told}");
}

/// Takes down what is warned of.
struct Warnings(Arc<Mutex<String>>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::Id {
        tracing::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::Id, _: &tracing::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut told = self.0.lock().unwrap();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            told.push_str(&format!("{field}={value:?} "));
        });
    }

    fn enter(&self, _: &tracing::Id) {}

    fn exit(&self, _: &tracing::Id) {}
}

/// What a call is about is there for its headers, as it is; how it is written is the transport's.
// covers: RS-14, H-47, PR-2
#[test]
fn calls_name_what_they_are_about() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::RequestPerCall, builder());
    let _reading = Task::start(client.read_resource(" test://\u{e9} "));
    assert_eq!(server.expect_request("resources/read").headers.name.as_deref(), Some(" test://\u{e9} "));
    let _filling = Task::start(client.get_prompt("p").argument("a", "b"));
    let request = server.expect_request("prompts/get");
    assert_eq!(request.headers.name.as_deref(), Some("p"));
    assert_eq!(request.params["arguments"], json!({ "a": "b" }));
    let _listing = Task::start(client.list_tools(None));
    assert_eq!(server.expect_request("tools/list").headers.name, None);
}

/// A server that was modern may be legacy now; all calls find out together, and are made again.
// covers: DU-41, V-5, V-11
#[test]
fn a_modern_detected_revision_may_be_wrong() {
    for kind in KINDS {
        let (client, mut server) =
            connected(kind, builder().detected_revision(DetectedRevision::new(Revision::V2026_07_28)));
        let mut calls = [1, 2].map(|_| Task::start(client.call_tool("t")));
        let requests = [1, 2].map(|_| server.expect_request("tools/call"));
        for (call, request) in calls.iter_mut().zip(&requests) {
            server.respond_error(request, -32600);
            call.assert_pending();
        }
        let probe = server.expect_request("server/discover");
        server.respond_error(&probe, -32601);
        server.handshake("2025-11-25");
        for call in &mut calls {
            call.assert_pending();
            let request = server.expect_request("tools/call");
            assert_eq!(
                request.params.get("_meta").and_then(|meta| meta.get("io.modelcontextprotocol/protocolVersion")),
                None
            );
            server.respond(&request, tool_result("done"));
            call.finish().unwrap();
        }
        assert_eq!(client.detected_revision().unwrap().revision, Revision::V2025_11_25);
    }
}

/// Also if the first thing that is done is to listen.
// covers: DU-41
#[test]
fn listeners_find_out_about_a_wrong_detected_revision_too() {
    for kind in KINDS {
        let (client, mut server) =
            connected(kind, builder().detected_revision(DetectedRevision::new(Revision::V2026_07_28)));
        let listening = client.clone();
        let mut listening = Task::start(async move { listening.listen(tools_filter()).await });
        let listen = server.expect_request("subscriptions/listen");
        server.respond_error(&listen, -32601);
        listening.assert_pending();
        let probe = server.expect_request("server/discover");
        server.respond_error(&probe, -32601);
        server.handshake("2025-11-25");
        assert_eq!(listening.finish().unwrap().acknowledged().tools_list_changed, Some(true));
    }
}

/// A detected revision that holds is not doubted twice, and the error of the call is what its caller gets.
// covers: DU-41
#[test]
fn a_modern_detected_revision_may_be_right() {
    for kind in KINDS {
        let (client, mut server) =
            connected(kind, builder().detected_revision(DetectedRevision::new(Revision::V2026_07_28)));
        let mut call = Task::start(client.call_tool("nothing"));
        let request = server.expect_request("tools/call");
        server.respond_error(&request, -32602);
        call.assert_pending();
        let probe = server.expect_request("server/discover");
        server.respond(&probe, discover_result(ScriptedServer::capabilities()));
        assert_eq!(call.finish().unwrap_err().as_rejection().unwrap().code.get(), -32602);
        let mut call = Task::start(client.call_tool("nothing"));
        let request = server.expect_request("tools/call");
        server.respond_error(&request, -32602);
        assert!(call.finish().is_err());
        server.assert_quiet();
    }
}

/// An outage says nothing about the era, and neither does a missing token.
// covers: DU-27, DU-41
#[test]
fn outages_say_nothing_about_a_detected_revision() {
    for status in [401, 403, 503] {
        let detected = DetectedRevision::new(Revision::V2026_07_28);
        let (client, mut server) = connected(TransportKind::RequestPerCall, builder().detected_revision(detected));
        let mut call = Task::start(client.call_tool("t"));
        let request = server.expect_request("tools/call");
        server.handle.responses().handle_status(request.call, status, b"");
        assert!(matches!(call.finish(), Err(Error::Status { status: received, .. }) if received == status));
        server.assert_quiet();
    }
}

/// A server that was legacy may be modern now.
// covers: DU-41
#[test]
fn a_legacy_detected_revision_may_be_wrong() {
    for kind in KINDS {
        let (mut connecting, mut server) =
            ScriptedServer::connect(kind, builder().detected_revision(DetectedRevision::new(Revision::V2025_11_25)));
        let initialize = server.expect_request("initialize");
        server.respond_error(&initialize, -32601);
        connecting.assert_pending();
        let probe = server.expect_request("server/discover");
        server.respond(&probe, discover_result(ScriptedServer::capabilities()));
        let client = connecting.finish().unwrap();
        assert_eq!(client.revision(), Some(Revision::V2026_07_28));
    }
}

/// While one call has the server asked again, what others are answered is read as before.
// covers: M-8, DU-41
#[test]
fn questions_come_through_while_a_detected_revision_is_checked() {
    for kind in KINDS {
        let detected = DetectedRevision::new(Revision::V2026_07_28);
        let (client, mut server) = connected(kind, builder().roots([]).detected_revision(detected));
        let (mut wrong, mut asked) = (Task::start(client.call_tool("a")), Task::start(client.call_tool("b")));
        let (first, second) = (server.expect_request("tools/call"), server.expect_request("tools/call"));
        server.respond_error(&first, -32602);
        wrong.assert_pending();
        let probe = server.expect_request("server/discover");
        let questions = json!({ "where": { "method": "roots/list" } });
        server.respond(&second, json!({ "resultType": "input_required", "inputRequests": questions }));
        asked.assert_pending();
        server.respond(&probe, discover_result(ScriptedServer::capabilities()));
        assert!(wrong.finish().is_err());
        asked.assert_pending();
        let retry = server.expect_request("tools/call");
        assert_eq!(retry.params["inputResponses"]["where"], json!({ "roots": [] }));
        server.respond(&retry, tool_result("done"));
        asked.finish().unwrap();
    }
}

/// A call that met a lost session is made again in a new one, once; its stream that breaks is another matter.
// covers: S4.53
#[test]
fn a_lost_session_is_renewed_once() {
    let (client, mut server) = ScriptedServer::legacy(TransportKind::RequestPerCall, builder());
    server.handle.responses().set_session(Some("one".to_owned()), None);
    let mut call = Task::start(client.call_tool("t"));
    let request = server.expect_request("tools/call");
    server.handle.handle_session_lost(Some(request.call), true, mcp_client::SessionLossReason::Unknown { status: 404 });
    assert_eq!(client.session_id(), None);
    call.assert_pending();
    server.handshake("2025-11-25");
    call.assert_pending();
    let request = server.expect_request("tools/call");
    server.handle.handle_session_lost(Some(request.call), true, mcp_client::SessionLossReason::Unknown { status: 404 });
    let error = call.finish().unwrap_err();
    assert!(matches!(&error, Error::Interrupted(why) if why.contains("session")), "{error}");
    assert!(server.is_closed(), "a server that forgets at once is given up");
    assert!(expect_ready(async move { client.closed().await }).to_string().contains("does not know the session"));
}

/// Never twice in one call, also if something else was answered in between.
// covers: S4.53
#[test]
fn a_call_is_not_made_in_a_third_session() {
    let (client, mut server) = ScriptedServer::legacy(TransportKind::RequestPerCall, builder());
    let mut call = Task::start(client.call_tool("t"));
    let request = server.expect_request("tools/call");
    server.handle.handle_session_lost(Some(request.call), true, mcp_client::SessionLossReason::Unknown { status: 404 });
    call.assert_pending();
    server.handshake("2025-11-25");
    call.assert_pending();
    let request = server.expect_request("tools/call");
    let mut other = Task::start(client.call_tool("u"));
    let another = server.expect_request("tools/call");
    server.respond(&another, tool_result("done"));
    other.finish().unwrap();
    server.handle.handle_session_lost(Some(request.call), true, mcp_client::SessionLossReason::Unknown { status: 404 });
    assert!(matches!(call.finish(), Err(Error::Interrupted(_))));
    // The session is renewed for those who come next.
    server.handshake("2025-11-25");
    server.assert_quiet();
}

/// What became of a call whose stream broke is not known, so it is not made again.
// covers: S4.53
#[test]
fn a_broken_stream_is_no_lost_session() {
    for (client, mut server) in [
        ScriptedServer::legacy(TransportKind::RequestPerCall, builder()),
        ScriptedServer::modern(TransportKind::RequestPerCall, builder()),
    ] {
        let mut call = Task::start(client.call_tool("t"));
        let request = server.expect_request("tools/call");
        server.handle.responses().handle_stream_ended(request.call, Some("the network is away".to_owned()));
        let error = call.finish().unwrap_err();
        assert!(matches!(&error, Error::Interrupted(why) if why.contains("the network is away")), "{error}");
        assert!(!error.is_remote());
        server.assert_quiet();
    }
}

/// A server that died of the probe is legacy; the next one is spoken to in that way.
// covers: IO-19, DU-34
#[test]
fn a_server_that_died_of_the_probe_is_not_probed_again() {
    let (mut connecting, mut server) = ScriptedServer::connect(TransportKind::Pipe, builder());
    server.expect_request("server/discover");
    let died = CloseReason::Exited { status: "exit status: 1".to_owned() };
    assert_eq!(server.handle.handle_disconnect(&died), mcp_client::ServerLossAction::RestartWithoutProbe);
    connecting.assert_pending();
    server.handle.handle_restart();
    server.handshake("2025-11-25");
    let client = connecting.finish().unwrap();
    assert_eq!(client.detected_revision().unwrap().revision, Revision::V2025_11_25);
    // One that dies of the handshake, too, is given up.
    let (mut connecting, mut server) = ScriptedServer::connect(TransportKind::Pipe, builder());
    assert_eq!(server.handle.handle_disconnect(&died), mcp_client::ServerLossAction::RestartWithoutProbe);
    server.handle.handle_restart();
    server.expect_request("initialize");
    assert_eq!(server.handle.handle_disconnect(&died), mcp_client::ServerLossAction::Close);
    assert!(matches!(connecting.finish(), Err(Error::Closed(CloseReason::Exited { .. }))));
}

/// A client that is set to be modern probes, too, and does not fall back.
// covers: DU-42, IO-18, S3.66
#[test]
fn a_modern_client_does_not_fall_back() {
    for kind in KINDS {
        let (mut connecting, mut server) = ScriptedServer::connect(kind, builder().mode(Mode::Modern));
        let probe = server.expect_request("server/discover");
        server.respond_error(&probe, -32601);
        let error = connecting.finish().unwrap_err();
        assert!(error.to_string().contains("does not support a modern revision"), "{error}");
        assert!(server.is_closed());
    }
}

/// Silence is legacy behind a pipe, and an outage elsewhere.
// covers: DU-27, DU-33, S4.62, INT-7
#[test]
fn silence_is_legacy_behind_a_pipe() {
    let (mut connecting, mut server) = ScriptedServer::connect(TransportKind::Pipe, builder());
    server.expect_request("server/discover");
    server.advance(Duration::from_millis(999));
    server.assert_quiet();
    server.advance(Duration::from_millis(1));
    server.handshake("2025-11-25");
    connecting.finish().unwrap();
    let (mut connecting, mut server) = ScriptedServer::connect(TransportKind::RequestPerCall, builder());
    let probe = server.expect_request("server/discover");
    server.advance(Duration::from_secs(59));
    server.assert_quiet();
    server.advance(Duration::from_secs(1));
    server.expect_cancelled(&probe);
    let error = connecting.finish().unwrap_err();
    assert!(matches!(&error, Error::Closed(CloseReason::ConnectFailed(_))), "{error}");
}

/// What one client finds out, the next goes by; after a while it is checked without anybody waiting for it.
// covers: INT-7
#[test]
fn int_7_detected_revisions_are_shared() {
    let revisions = RevisionCache::default();
    let connect = || ScriptedServer::connect(TransportKind::Pipe, builder().revision_cache(&revisions, "server"));
    let (mut connecting, mut server) = connect();
    let probe = server.expect_request("server/discover");
    server.respond_error(&probe, -32601);
    server.handshake("2025-11-25");
    connecting.finish().unwrap();
    let (mut connecting, mut server) = connect();
    server.handshake("2025-11-25");
    connecting.finish().unwrap();
    // The next client comes later, and finds that the server has become modern.
    let later = builder().revision_cache(&revisions, "server");
    let clock = Clock::new();
    clock.advance(Duration::from_secs(3600));
    let (mut connecting, mut server) = ScriptedServer::connect_at(TransportKind::Pipe, later, &clock);
    let probe = server.expect_request("server/discover");
    server.expect_request("initialize");
    server.respond(&probe, discover_result(ScriptedServer::capabilities()));
    let client = connecting.finish().unwrap();
    assert_eq!(client.detected_revision().unwrap().revision, Revision::V2026_07_28);
    server.assert_quiet();
    let (client, _server) = connected(TransportKind::Pipe, builder().revision_cache(&revisions, "server"));
    assert_eq!(client.revision(), Some(Revision::V2026_07_28));
    // Another server is another matter.
    let (_, mut server) = ScriptedServer::connect(TransportKind::Pipe, builder().revision_cache(&revisions, "other"));
    server.expect_request("server/discover");
}
