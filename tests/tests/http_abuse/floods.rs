//! More than anybody needs.

use std::sync::Arc;

use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use mcp_server::Principal;
use mcp_transport_http::{HttpOptions, HttpService};
use tokio::runtime::Builder;
use tower_service::Service;

use crate::arena::{Gate, Room, SMALL, server};
use crate::heap::{allocated, alone};
use crate::http2::Streams;
use crate::mistreat::{compare, mistreat, mistreat_once, mistreat_with};
use crate::tally::repeated;
use crate::wire::{Raw, call, call_body, listen, listen_body, within};

/// 10,000 at the same time: as many as may be are worked on, all others are told at once, and nothing stays.
#[test]
fn ten_thousand_requests() {
    const ALL: usize = 10_000;
    let alone = alone();
    let room = Room { requests: 1024, listeners: 8, connections: 256 };
    mistreat_once(&alone, "10,000 requests", room, async |arena| {
        let mut streams = Streams::connect(arena.address, ALL).await;
        let mut waiting = Vec::new();
        for id in 0..room.requests {
            waiting.push(streams.call(id, "wait", "{}").await);
        }
        arena.gate.has_inside(room.requests).await;
        let mut refused = Vec::new();
        for id in room.requests..ALL {
            refused.push(streams.call(id, "wait", "{}").await);
        }
        for answer in refused {
            let answer = within(answer).await.expect("an answer");
            assert_eq!((answer.status().as_u16(), answer.headers().contains_key("retry-after")), (503, true));
        }
        arena.gate.has_inside(room.requests).await;
        // There is no place for an honest client now, and it is told so; when there is one, it is served.
        assert_eq!(arena.status(&call(1, "echo", r#"{"text":"x"}"#)).await, Some(503));
        // A response may be read a moment before its place is free.
        arena.gate.open(3);
        while arena.status(&call(1, "echo", r#"{"text":"x"}"#)).await == Some(503) {}
        arena.honest().await;
        arena.gate.open(room.requests - 3);
        for answer in waiting {
            assert_eq!(within(answer).await.expect("an answer").status(), 200);
        }
        streams.close().await;
        repeated(ALL, "requests")
    });
}

/// As many connections as may be: those beyond wait, and are served when there is a place.
#[test]
fn more_connections_than_may_be() {
    let alone = alone();
    mistreat(&alone, "more connections than may be", SMALL, async |arena| {
        let mut clients: Vec<Raw> = Vec::new();
        for id in 0..SMALL.connections * 2 {
            let mut client = arena.connect().await;
            client.send(&call(id, "echo", r#"{"text":"x"}"#)).await;
            clients.push(client);
        }
        let waiting = clients.split_off(SMALL.connections);
        for client in &mut clients {
            assert_eq!(client.answer().await.map(|answer| answer.status), Some(200));
        }
        assert!(arena.tasks() <= SMALL.connections + 1);
        drop(clients);
        for mut client in waiting {
            assert_eq!(client.answer().await.map(|answer| answer.status), Some(200));
        }
        repeated(SMALL.connections * 2, "connections")
    });
}

/// Connections that come and go without a word.
#[test]
fn connections_that_come_and_go() {
    let alone = alone();
    mistreat(&alone, "connections that come and go", SMALL, async |arena| {
        for round in 0..1000 {
            let client = arena.connect().await;
            if round % 2 == 0 {
                client.reset();
            }
        }
        arena.honest().await;
        repeated(1000, "connections")
    });
}

/// More listeners than may be: those beyond are told so, calls are served all the while.
#[test]
fn more_listeners_than_may_be() {
    let alone = alone();
    mistreat(&alone, "more listeners than may be", SMALL, async |arena| {
        let mut listening = Vec::new();
        for id in 0..SMALL.listeners {
            listening.push(arena.listener(id).await);
        }
        let mut client = arena.connect().await;
        for id in 0..500 {
            client.send(&listen(id, &["test:text"])).await;
            let answer = client.answer().await.expect("an answer");
            assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
            if id % 50 == 0 {
                arena.honest().await;
            }
        }
        drop(listening.pop());
        arena.has_tasks(SMALL.listeners).await;
        listening.push(arena.listener(1).await);
        repeated(500, "requests")
    });
}

/// Listeners that come and go leave nothing behind.
#[test]
fn listeners_that_come_and_go() {
    let alone = alone();
    mistreat(&alone, "listeners that come and go", SMALL, async |arena| {
        for _ in 0..10 {
            let mut listening = Vec::new();
            for id in 0..SMALL.listeners {
                listening.push(arena.listener(id).await);
            }
            drop(listening);
            arena.has_tasks(0).await;
        }
        repeated(10 * SMALL.listeners, "subscriptions")
    });
}

/// One user takes all of its places, and others have theirs. Who a client is, is found out in front of the service.
#[test]
fn more_than_one_principal_may() {
    let _alone = alone();
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(one_principal());
}

async fn one_principal() {
    let gate = Arc::<Gate>::default();
    let options = HttpOptions::default().max_in_flight_per_principal(4).max_listen_streams_per_principal(4);
    let service = HttpService::with_options(server(&gate), options);
    let ask = |who: &str, method: &str, name: &str, body: String| {
        let request = Request::post("/mcp")
            .header(HOST, "localhost")
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "*/*")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method)
            .header("mcp-name", name)
            .extension(Principal::new(None, who));
        service.clone().call(request.body(body).expect("a request"))
    };
    let listen = |who: &str, id: usize| ask(who, "subscriptions/listen", "", listen_body(id, &["test:text"]));
    let call = |who: &str, tool: &str| ask(who, "tools/call", tool, call_body(1, tool, r#"{"text":"x"}"#));
    let round = async || {
        let mut open = Vec::new();
        for id in 0..4 {
            open.push(within(listen("mallory", id)).await.expect("an answer"));
        }
        for id in 0..1000 {
            let answer = within(listen("mallory", id)).await.expect("an answer");
            assert_eq!((answer.status().as_u16(), answer.headers().contains_key("retry-after")), (429, true));
        }
        assert!(open.iter().all(|answer| answer.status() == 200));
        assert_eq!(within(listen("ann", 1)).await.expect("an answer").status(), 200);
        assert_eq!(within(call("mallory", "echo")).await.expect("an answer").status(), 200, "it may still call");
        drop(open);
        assert_eq!(within(listen("mallory", 1)).await.expect("an answer").status(), 200);
        // The same with calls.
        let waiting: Vec<_> = (0..4).map(|_| tokio::spawn(call("mallory", "wait"))).collect();
        gate.has_inside(4).await;
        assert_eq!(within(call("mallory", "echo")).await.expect("an answer").status(), 429);
        assert_eq!(within(call("ann", "echo")).await.expect("an answer").status(), 200);
        for task in waiting {
            task.abort();
        }
        gate.has_inside(0).await;
        assert_eq!(within(call("mallory", "echo")).await.expect("an answer").status(), 200);
        repeated(1005, "requests")
    };
    compare("more than one principal may", 2, async || allocated(), round).await;
}

/// A batch is no way around the limits.
#[test]
fn batches_and_notifications() {
    let alone = alone();
    let options = HttpOptions::default();
    mistreat_with(&alone, "notifications", SMALL, options, async |arena| {
        let told = br#"{"jsonrpc":"2.0","method":"notifications/nobody/knows"}"#;
        let mut client = arena.connect().await;
        for _ in 0..500 {
            client.send(&crate::wire::post("MCP-Protocol-Version: 2025-11-25\r\n", told)).await;
            let answer = client.answer().await.expect("an answer");
            assert_eq!((answer.status, answer.body.len()), (202, 0));
        }
        let wait = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}"#;
        let batch = format!("[{}]", vec![wait; 100].join(","));
        let mut refused = arena.connect().await;
        refused.send(&crate::wire::post("MCP-Protocol-Version: 2025-11-25\r\n", batch.as_bytes())).await;
        let answer = refused.answer().await.expect("an answer");
        assert_eq!(answer.status, 400, "{answer:?}");
        repeated(501, "requests")
    });
}
