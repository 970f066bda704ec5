//! Clients that ask and do not read.

use std::time::Duration;

use mcp_server::Change;

use crate::arena::{Room, SMALL};
use crate::heap::alone;
use crate::mistreat::mistreat_once;
use crate::tally::repeated;
use crate::wire::{Raw, call, listen};

/// One that stops reading does not keep 1,000 others from hearing of every change, and costs no more than its limits.
#[test]
fn one_of_1000_does_not_read() {
    const OTHERS: usize = 1000;
    const CHANGES: usize = 5;
    let alone = alone();
    let room = Room { requests: 8, listeners: OTHERS + 1, connections: OTHERS + 64 };
    mistreat_once(&alone, "one of 1,000 does not read", room, async |arena| {
        let mut clients = Vec::new();
        for id in 0..OTHERS {
            let mut client = arena.connect().await;
            client.send(&listen(id, &["test:text"])).await;
            clients.push(client);
        }
        for client in &mut clients {
            assert_eq!(client.head().await.map(|head| head.status), Some(200));
            client.chunk().await.expect("an acknowledgement");
        }
        // Its socket is full before the others hear of anything.
        let mut stuck = arena.connect().await;
        stuck.send(&call(1, "flood", r#"{"messages":400,"bytes":50000}"#)).await;
        assert_eq!(stuck.head().await.map(|head| head.status), Some(200));
        let silent = arena.listener(OTHERS).await;
        for change in 0..CHANGES {
            arena.server.publish(&Change::Resource("test:text".to_owned()));
            for client in &mut clients {
                let event = client.chunk().await.expect("an event");
                assert!(event.starts_with(b"data: "), "{change}: {}", String::from_utf8_lossy(&event));
            }
            arena.honest().await;
        }
        drop((stuck, silent));
        repeated(OTHERS, "subscriptions")
    });
}

/// Large answers to nobody: what is made for one that does not read does not grow, and others are served.
#[test]
fn large_answers_that_nobody_reads() {
    const BYTES: usize = 4_000_000;
    let alone = alone();
    // Those that do not read take eight places.
    let room = Room { requests: 16, ..SMALL };
    mistreat_once(&alone, "large answers that nobody reads", room, async |arena| {
        let mut clients: Vec<Raw> = Vec::new();
        let before = arena.allocated();
        for id in 0..8 {
            let mut client = arena.connect().await;
            // The others are behind it, and are not worked on before it is read.
            client.send(&call(id, "big", &format!(r#"{{"bytes":{BYTES}}}"#)).repeat(3)).await;
            client.stream.readable().await.expect("an answer");
            clients.push(client);
        }
        for _ in 0..10 {
            arena.honest().await;
        }
        let kept = arena.allocated() - before;
        // One answer each, which is there twice at most while it is written.
        assert!(kept < 8 * 2 * BYTES + (4 << 20), "{kept} bytes are kept");
        let mut reader = clients.pop().expect("one of them");
        for _ in 0..3 {
            let answer = reader.answer().await.expect("an answer");
            assert!(answer.status == 200 && answer.body.len() > BYTES);
        }
        // The others never read.
        drop(clients);
        repeated(8 * 3, "requests")
    });
}

/// Progress that nobody reads is not made: a handler runs no faster than its client reads, and keeps its limits.
#[test]
fn progress_that_nobody_reads() {
    let alone = alone();
    // A response may be read a moment before its place is free.
    let room = Room { requests: 10, ..SMALL };
    mistreat_once(&alone, "progress that nobody reads", room, async |arena| {
        let before = arena.allocated();
        let mut clients = Vec::new();
        for id in 0..7 {
            let mut client = arena.connect().await;
            client.send(&call(id, "flood", r#"{"messages":300,"bytes":50000}"#)).await;
            assert_eq!(client.head().await.map(|head| head.status), Some(200));
            clients.push(client);
        }
        for _ in 0..10 {
            arena.honest().await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let kept = arena.allocated() - before;
        assert!(kept < 7 * (8 << 20), "{kept} bytes are kept");
        let mut reader = clients.pop().expect("one of them");
        arena.gate.open(1);
        let mut bytes = 0;
        while let Some(chunk) = reader.chunk().await {
            bytes += chunk.len();
        }
        assert!(bytes > 50_000, "{bytes} bytes were read");
        drop(clients);
        repeated(7, "requests")
    });
}
