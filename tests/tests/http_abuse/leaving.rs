//! Clients that go away, at every stage of a request.

use std::time::Duration;

use mcp_transport_http::HttpOptions;

use crate::arena::{Arena, Room, SMALL};
use crate::heap::alone;
use crate::mistreat::{mistreat, mistreat_with};
use crate::tally::repeated;
use crate::wire::{Raw, call, call_body, names, post, text};

/// How a client goes away.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// It closes the connection.
    Close,
    /// It breaks the connection off.
    Reset,
    /// It says that nothing more comes, and still reads.
    HalfClose,
}

const WAYS: [Way; 3] = [Way::Close, Way::Reset, Way::HalfClose];

/// How many clients go away together, where it does not matter.
const AT_ONCE: usize = SMALL.requests;

/// Goes away, and waits until the server has noticed.
async fn leave(arena: &Arena, client: Raw, way: Way) {
    leave_all(arena, vec![client], way).await;
}

async fn leave_all(arena: &Arena, clients: Vec<Raw>, way: Way) {
    for mut client in clients {
        match way {
            Way::Close => drop(client),
            Way::Reset => client.reset(),
            Way::HalfClose => {
                client.finish().await;
                client.is_closed().await;
            }
        }
    }
    arena.has_tasks(0).await;
    arena.gate.has_inside(0).await;
}

/// Before all of it is there: after every byte of the head, and some of the body.
#[test]
fn half_a_request() {
    let alone = alone();
    mistreat(&alone, "half a request", SMALL, async |arena| {
        let request = call(1, "wait", "{}");
        let body = call_body(1, "wait", "{}").len();
        let head = request.len() - body;
        let stages = (0..head).step_by(37).chain([head - 2, head - 1, head, head + 1, request.len() - 1]);
        let mut count = 0;
        for stage in stages {
            for way in WAYS {
                count += 1;
                let mut client = arena.connect().await;
                client.send(&request[..stage]).await;
                leave(arena, client, way).await;
            }
        }
        repeated(count, "requests")
    });
}

/// While a handler works: it is cancelled, whichever way the client goes.
///
/// A client that closes only its own half still wants an answer by the rules of HTTP. It is not told from one that is
/// gone: a server that waited would work for everybody who is gone, and hardly any client does it.
#[test]
fn while_a_handler_works() {
    let alone = alone();
    mistreat(&alone, "while a handler works", SMALL, async |arena| {
        for way in WAYS {
            let mut clients = Vec::new();
            for id in 0..AT_ONCE {
                let mut client = arena.connect().await;
                client.send(&call(id, "wait", "{}")).await;
                clients.push(client);
            }
            arena.gate.has_inside(AT_ONCE).await;
            leave_all(arena, clients, way).await;
        }
        repeated(WAYS.len() * AT_ONCE, "requests")
    });
}

/// While a handler works and other requests are behind it on the same connection: hyper does not look there for the end
/// as long as it has something to read, so it is found when there is something to write, a comment at the latest.
#[test]
fn while_requests_are_behind() {
    const CLIENTS: usize = 50;
    let alone = alone();
    let options = HttpOptions::default().keep_alive_interval(Duration::from_millis(5));
    let room = Room { requests: CLIENTS, ..SMALL };
    mistreat_with(&alone, "while requests are behind", room, options, async |arena| {
        for way in [Way::Close, Way::Reset] {
            let mut clients = Vec::new();
            for id in 0..CLIENTS {
                let mut client = arena.connect().await;
                client.send(&call(id, "wait", "{}").repeat(3)).await;
                clients.push(client);
            }
            arena.gate.has_inside(CLIENTS).await;
            leave_all(arena, clients, way).await;
        }
        repeated(2 * CLIENTS * 3, "requests")
    });
}

/// A request that is sent whole before the client goes is answered if its answer takes no time.
#[test]
fn right_after_sending() {
    let alone = alone();
    mistreat(&alone, "right after sending", SMALL, async |arena| {
        for _ in 0..50 {
            let mut client = arena.connect().await;
            client.send(&call(1, "echo", r#"{"text":"x"}"#)).await;
            client.finish().await;
            if let Some(answer) = client.answer().await {
                assert_eq!((answer.status, text(&answer.body).as_str()), (200, "x"));
            }
            let mut client = arena.connect().await;
            client.send(&call(1, "wait", "{}")).await;
            client.reset();
        }
        arena.has_tasks(0).await;
        arena.gate.has_inside(0).await;
        repeated(2 * 50, "requests")
    });
}

/// At the first byte of the answer, after its head, in the middle of its events.
#[test]
fn while_events_come() {
    let alone = alone();
    mistreat(&alone, "while events come", SMALL, async |arena| {
        for way in WAYS {
            let mut clients = vec![arena.listener(1).await];
            for stage in 0..3 {
                let mut client = arena.connect().await;
                client.send(&call(1, "flood", r#"{"messages":20,"bytes":10000}"#)).await;
                match stage {
                    0 => client.stream.readable().await.expect("it is open"),
                    1 => assert_eq!(client.head().await.map(|head| head.status), Some(200)),
                    _ => {
                        client.head().await.expect("an answer");
                        for _ in 0..3 {
                            client.chunk().await.expect("an event");
                        }
                    }
                }
                clients.push(client);
            }
            leave_all(arena, clients, way).await;
        }
        repeated(WAYS.len() * 4, "requests")
    });
}

/// In the middle of a large answer.
#[test]
fn in_the_middle_of_an_answer() {
    let alone = alone();
    mistreat(&alone, "in the middle of an answer", SMALL, async |arena| {
        for way in WAYS {
            let mut client = arena.connect().await;
            client.send(&call(1, "big", r#"{"bytes":8000000}"#)).await;
            client.head().await.expect("an answer");
            leave(arena, client, way).await;
        }
        repeated(WAYS.len(), "requests")
    });
}

/// In the middle of a body of every kind.
#[test]
fn in_the_middle_of_a_body() {
    let alone = alone();
    let names = names("tools/call", Some("echo"));
    let body = call_body(1, "echo", &format!(r#"{{"text":"{}"}}"#, "x".repeat(1_000_000)));
    let sized = post(&names, body.as_bytes());
    let chunked = String::from_utf8(post(&format!("{names}Transfer-Encoding: chunked\r\n"), b"")).expect("text");
    let chunked = chunked.replace("Content-Length: 0\r\n", "") + "fffff\r\n" + &body;
    mistreat(&alone, "in the middle of a body", SMALL, async |arena| {
        for request in [&sized[..], chunked.as_bytes()] {
            for part in [1_000, 70_000, 900_000] {
                for way in WAYS {
                    let mut client = arena.connect().await;
                    client.send(&request[..part]).await;
                    leave(arena, client, way).await;
                }
            }
        }
        repeated(2 * 3 * WAYS.len(), "requests")
    });
}

/// While a handler could go on, but nobody lets it: nothing is left of it either.
#[test]
fn before_a_handler_goes_on() {
    let alone = alone();
    mistreat(&alone, "before a handler goes on", SMALL, async |arena| {
        for _ in 0..10 {
            let mut clients = Vec::new();
            for id in 0..AT_ONCE {
                let mut client = arena.connect().await;
                client.send(&call(id, "flood", r#"{"messages":20,"bytes":10000}"#)).await;
                assert_eq!(client.head().await.map(|head| head.status), Some(200));
                clients.push(client);
            }
            leave_all(arena, clients, Way::Close).await;
        }
        repeated(10 * AT_ONCE, "requests")
    });
}
