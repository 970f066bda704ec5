//! Lists in pages.

use std::time::Duration;

use mcp_client::{Client, Error, ListLimitExceeded, ListLimits, TransportKind};
use mcp_testkit::{ScriptedServer, Task, expect_ready};
use serde_json::{Value, json};

use crate::fixtures::{KINDS, builder};

fn page(name: &str, next: Value) -> Value {
    let tool = json!({ "name": name, "inputSchema": { "type": "object" } });
    json!({ "resultType": "complete", "tools": [tool], "nextCursor": next, "ttlMs": 0, "cacheScope": "private" })
}

fn servers() -> Vec<(Client, ScriptedServer)> {
    KINDS
        .into_iter()
        .flat_map(|kind| [ScriptedServer::modern(kind, builder()), ScriptedServer::legacy(kind, builder())])
        .collect()
}

/// A cursor is repeated as it is, also an empty one; no cursor, or `null`, is the end.
// covers: G-1..G-4, G-7, B-67
#[test]
fn cursors_are_repeated_as_they_are() {
    for (client, mut server) in servers() {
        let mut listing = Task::start(client.tools().all());
        let request = server.expect_request("tools/list");
        assert_eq!(request.params.get("cursor"), None);
        server.respond(&request, page("a", json!("")));
        for (cursor, next) in [("", json!(" {\"x\"} ")), (" {\"x\"} ", Value::Null)] {
            listing.assert_pending();
            let request = server.expect_request("tools/list");
            assert_eq!(request.params["cursor"], cursor);
            server.respond(&request, page("b", next));
        }
        assert_eq!(listing.finish().unwrap().len(), 3);
        server.assert_quiet();
    }
}

/// A stream fetches a page when it is needed, and ends after an error.
// covers: G-4
#[test]
fn streams_fetch_what_is_looked_at() {
    for (client, mut server) in servers() {
        let mut pages = client.tools();
        let mut first = Task::start(async move { (pages.next().await, pages) });
        let request = server.expect_request("tools/list");
        server.respond(&request, page("a", json!("2")));
        let (tool, mut pages) = first.finish();
        assert_eq!(tool.unwrap().unwrap().name, "a");
        server.assert_quiet();
        let mut second = Task::start(async move { (pages.next().await, pages) });
        let request = server.expect_request("tools/list");
        server.respond_error(&request, -32603);
        let (error, mut pages) = second.finish();
        assert!(error.unwrap().is_err());
        assert!(expect_ready(async move { pages.next().await }).is_none());
    }
}

/// Who has looked at some items can still have the rest of them at once, wherever the list has got to.
// covers: G-4
#[test]
fn the_rest_of_a_list_is_what_was_not_taken() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let mut pages = client.tools();
    let mut first = Task::start(async move { (pages.next().await, pages) });
    let request = server.expect_request("tools/list");
    let mut two = page("a", json!("2"));
    two["tools"].as_array_mut().unwrap().push(json!({ "name": "b", "inputSchema": { "type": "object" } }));
    server.respond(&request, two);
    let (_, pages) = first.finish();
    let mut rest = Task::start(pages.all());
    let request = server.expect_request("tools/list");
    server.respond(&request, page("c", Value::Null));
    let names: Vec<_> = rest.finish().unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["b", "c"]);
    // A page that is on its way is not forgotten either.
    let mut pages = client.tools();
    assert!(futures_util::FutureExt::now_or_never(pages.next()).is_none());
    let request = server.expect_request("tools/list");
    let mut rest = Task::start(pages.all());
    server.respond(&request, page("a", Value::Null));
    assert_eq!(rest.finish().unwrap().len(), 1);
}

/// A list that goes round in circles is noticed.
// covers: G-2, RB-20
#[test]
fn a_circle_is_no_list() {
    for (client, mut server) in servers() {
        let mut listing = Task::start(client.tools().all());
        for next in ["1", "2", "1"] {
            listing.poll();
            let request = server.expect_request("tools/list");
            server.respond(&request, page("a", json!(next)));
        }
        assert!(matches!(listing.finish(), Err(Error::EndlessList)));
        server.assert_quiet();
    }
}

/// A list that does not end is noticed, too.
// covers: G-1
#[test]
fn lists_end() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let mut listing = Task::start(client.tools().all());
    for number in 1..=10_000 {
        let request = server.expect_request("tools/list");
        server.respond(&request, page("a", json!(number.to_string())));
        if let Some(outcome) = listing.poll() {
            assert!(matches!(outcome, Err(Error::ListTooLong(ListLimitExceeded::Pages(10_000)))));
            assert_eq!(number, 10_000);
            return;
        }
    }
    unreachable!("there is no end to it");
}

/// All four lists come in pages.
// covers: G-6, PR-7
#[test]
fn all_lists_have_pages() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder());
    let end = |member: &str| json!({ "resultType": "complete", member: [], "ttlMs": 0, "cacheScope": "private" });
    let mut follow = |method: &str, member: &str, look: &mut dyn FnMut() -> bool| {
        let request = server.expect_request(method);
        let mut first = end(member);
        first["nextCursor"] = json!("2");
        server.respond(&request, first);
        assert!(!look());
        let request = server.expect_request(method);
        assert_eq!(request.params["cursor"], "2");
        server.respond(&request, end(member));
        assert!(look());
    };
    let mut prompts = Task::start(client.prompts().all());
    follow("prompts/list", "prompts", &mut || prompts.poll().is_some());
    let mut resources = Task::start(client.resources().all());
    follow("resources/list", "resources", &mut || resources.poll().is_some());
    let mut templates = Task::start(client.resource_templates().all());
    follow("resources/templates/list", "resourceTemplates", &mut || templates.poll().is_some());
}

/// Lists that fit page by page do not fit as a whole, whether they are collected or looked at.
// covers: SEC-7
#[test]
fn sec_7_lists_are_bounded_in_items_and_bytes() {
    let long = "x".repeat(1000);
    for (limits, expected) in [
        (ListLimits::default().max_items(5), ListLimitExceeded::Items(5)),
        (ListLimits::default().max_bytes(5000), ListLimitExceeded::Bytes(5000)),
        (ListLimits::default().max_pages(5), ListLimitExceeded::Pages(5)),
    ] {
        for collects in [true, false] {
            let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder().list_limits(limits));
            let mut pages = client.tools();
            let mut listing = Task::start(async move {
                if collects {
                    return pages.all().await.map(drop);
                }
                while let Some(item) = pages.next().await {
                    item?;
                }
                Ok(())
            });
            let mut fetched = 0;
            let outcome = loop {
                let request = server.expect_request("tools/list");
                fetched += 1;
                server.respond(&request, page(&long, json!(fetched.to_string())));
                if let Some(outcome) = listing.poll() {
                    break outcome;
                }
            };
            let Err(Error::ListTooLong(exceeded)) = outcome else { panic!("{outcome:?}") };
            assert_eq!(exceeded, expected);
            let is_pages = matches!(expected, ListLimitExceeded::Pages(_));
            assert!(fetched <= 6 && (fetched == 5 || !is_pages), "{fetched} pages were fetched");
        }
    }
}

/// A list of as many pages as there may be is complete.
#[test]
fn a_list_may_have_as_many_pages_as_its_limit() {
    let limits = ListLimits::default().max_pages(2);
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder().list_limits(limits));
    let mut listing = Task::start(client.tools().all());
    for next in [json!("2"), Value::Null] {
        let request = server.expect_request("tools/list");
        server.respond(&request, page("t", next));
        if listing.poll().is_some_and(|outcome| outcome.unwrap().len() == 2) {
            return;
        }
    }
    unreachable!("the list is not complete");
}

/// Items take many times the memory of the shortest text of one, so a page is not decoded before they are counted.
// covers: SEC-7
#[test]
fn sec_7_a_page_has_no_more_items_than_a_list() {
    let limits = ListLimits::default().max_items(1000);
    let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder().list_limits(limits));
    for (count, fits) in [(1000, true), (1001, false)] {
        let mut listing = Task::start(client.list_prompts(None));
        let request = server.expect_request("prompts/list");
        let prompts = vec![json!({ "name": "" }); count];
        server.respond(
            &request,
            json!({ "resultType": "complete", "prompts": prompts, "ttlMs": 0, "cacheScope": "private" }),
        );
        match listing.finish() {
            Ok(result) => assert!(fits && result.prompts.len() == count),
            Err(error) => {
                assert!(!fits && matches!(error, Error::ListTooLong(ListLimitExceeded::Items(1000))), "{error}")
            }
        }
    }
}

/// A server that refuses headers makes the client list its tools: once for all calls, and not without end.
// covers: SEC-7
#[test]
fn sec_7_one_list_serves_all_calls_whose_headers_are_refused() {
    let (client, mut server) = ScriptedServer::modern(TransportKind::RequestPerCall, builder());
    let mut calls: Vec<_> = (0..5).map(|_| Task::start(client.call_tool("t").arguments(&json!({})))).collect();
    let requests: Vec<_> = (0..5).map(|_| server.expect_request("tools/call")).collect();
    for (call, request) in calls.iter_mut().zip(&requests) {
        server.respond_error(request, -32020);
        call.assert_pending();
    }
    let list = server.expect_request("tools/list");
    server.assert_quiet();
    server.respond(&list, page("t", Value::Null));
    for call in &mut calls {
        call.assert_pending();
        let request = server.expect_request("tools/call");
        server.respond_error(&request, -32020);
        assert_eq!(call.finish().unwrap_err().as_rejection().unwrap().code.get(), -32020);
    }
    server.assert_quiet();
    // Whoever lists may be dropped: then it is the turn of the next.
    let mut calls: Vec<_> = (0..2).map(|_| Task::start(client.call_tool("t").arguments(&json!({})))).collect();
    let requests: Vec<_> = (0..2).map(|_| server.expect_request("tools/call")).collect();
    for (call, request) in calls.iter_mut().zip(&requests) {
        server.respond_error(request, -32020);
        call.assert_pending();
    }
    let first = server.expect_request("tools/list");
    calls[0].cancel();
    server.expect_cancelled(&first);
    calls[1].assert_pending();
    for number in 1..=100 {
        let list = server.expect_request("tools/list");
        server.respond(&list, page("t", json!(number.to_string())));
        if let Some(outcome) = calls[1].poll() {
            assert_eq!(outcome.unwrap_err().as_rejection().unwrap().code.get(), -32020);
            assert_eq!(number, 100);
            return;
        }
    }
    unreachable!("the list has no end");
}

/// A list that fails does so for all calls that wait for it: they do not try one after the other.
// covers: SEC-7
#[test]
fn sec_7_a_list_that_fails_is_not_tried_by_each_call() {
    for stalls in [true, false] {
        let (client, mut server) = ScriptedServer::modern(TransportKind::RequestPerCall, builder());
        let mut calls: Vec<_> = (0..5).map(|_| Task::start(client.call_tool("t").arguments(&json!({})))).collect();
        let requests: Vec<_> = (0..5).map(|_| server.expect_request("tools/call")).collect();
        for (call, request) in calls.iter_mut().zip(&requests) {
            server.respond_error(request, -32020);
            call.assert_pending();
        }
        let list = server.expect_request("tools/list");
        if stalls {
            server.advance(Duration::from_secs(60));
        } else {
            server.respond_error(&list, -32603);
        }
        for call in &mut calls {
            assert_eq!(call.finish().unwrap_err().as_rejection().unwrap().code.get(), -32020);
        }
        if stalls {
            server.expect_cancelled(&list);
        }
        server.assert_quiet();
    }
}
