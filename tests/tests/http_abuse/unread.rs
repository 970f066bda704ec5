//! Clients of HTTP/2 that let the server send nothing of its responses, and answer its pings.

use std::time::Duration;

use h2::RecvStream;
use tokio::time::Instant;

use crate::arena::Room;
use crate::heap::alone;
use crate::http2::Streams;
use crate::mistreat::mistreat_stalled;
use crate::tally::repeated;
use crate::wire::within;

const CONNECTIONS: usize = 15;
const STREAMS: usize = 100;
const BYTES: usize = 20_000;

/// How long a client may read nothing here.
const STALL: Duration = Duration::from_secs(5);

const ROOM: Room = Room { requests: 64, listeners: 8, connections: 64 };

/// Calls `big` on every stream of all connections; returns the bodies of what was served, and how many were refused.
async fn ask(clients: &mut [Streams], bytes: usize) -> (Vec<RecvStream>, usize) {
    let (since, mut served, mut refused) = (Instant::now(), Vec::new(), Vec::new());
    for streams in clients {
        for id in 0..STREAMS {
            let answer = within(streams.call(id, "big", &format!(r#"{{"bytes":{bytes}}}"#)).await).await;
            let answer = answer.expect("an answer");
            match answer.status().as_u16() {
                200 => served.push(answer.into_body()),
                503 => refused.push(answer.into_body()),
                other => panic!("{other}"),
            }
            // Later some have been reset, and made room for others.
            let is_early = since.elapsed() < STALL;
            assert!(!is_early || served.len() <= ROOM.requests, "more responses are held than there may be in flight");
        }
    }
    let held = refused.iter().filter(|body: &&RecvStream| !body.is_end_stream()).count();
    assert!(since.elapsed() >= STALL || held <= ROOM.requests, "{held} refusals are held");
    (served, refused.len())
}

/// Responses that nobody lets the server send are bounded, and reset after a while; the connections go on.
// covers: SEC-4
#[test]
fn sec_4_windows_that_never_open() {
    let alone = alone();
    mistreat_stalled(&alone, "windows that never open", ROOM, STALL, async |arena| {
        let before = arena.allocated();
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            clients.push(Streams::with_window(arena.address, 0).await);
        }
        let (served, refused) = ask(&mut clients, BYTES).await;
        // Some may have been reset meanwhile, and made room for others.
        assert!(refused > 0 && served.len() + refused == CONNECTIONS * STREAMS, "{} {refused}", served.len());
        let kept = arena.allocated().saturating_sub(before);
        assert!(kept < ROOM.requests * 2 * BYTES + CONNECTIONS * STREAMS * (16 << 10), "{kept} bytes are kept");
        for mut body in served {
            let reset = within(body.data()).await.expect("more than nothing").expect_err("the window is closed");
            assert!(reset.is_reset() && reset.is_remote(), "{reset}");
        }
        // There is room again, also for those whose streams were reset.
        arena.honest().await;
        let again = within(clients[0].call(0, "big", r#"{"bytes":1}"#).await).await.expect("the connection goes on");
        assert_eq!(again.status(), 200);
        for streams in clients {
            streams.close().await;
        }
        repeated(CONNECTIONS * STREAMS, "streams")
    });
}

/// A window that is open by a crack takes a small response out of the reach of its stream: the connection ends then.
// covers: SEC-4
#[test]
fn sec_4_windows_of_one_byte() {
    let alone = alone();
    mistreat_stalled(&alone, "windows of one byte", ROOM, STALL, async |arena| {
        for bytes in [BYTES, 1000] {
            let mut clients = Vec::new();
            for _ in 0..CONNECTIONS {
                clients.push(Streams::with_window(arena.address, 1).await);
            }
            let (served, _) = ask(&mut clients, bytes).await;
            assert!(!served.is_empty());
            for mut body in served {
                while let Some(data) = within(body.data()).await {
                    match data {
                        Ok(data) => assert_eq!(data.len(), 1),
                        Err(_) => break,
                    }
                }
            }
            arena.honest().await;
            for streams in clients {
                streams.close().await;
            }
        }
        repeated(2 * CONNECTIONS * STREAMS, "streams")
    });
}

/// A stream of events that is not read ends alone: others of the same connection go on.
// covers: SEC-4
#[test]
fn sec_4_events_that_are_not_read() {
    let alone = alone();
    mistreat_stalled(&alone, "events that are not read", ROOM, STALL, async |arena| {
        let mut streams = Streams::with_window(arena.address, 100_000).await;
        let stuck = streams.call(1, "flood", r#"{"messages":100,"bytes":50000}"#).await;
        let mut stuck = within(stuck).await.expect("an answer").into_body();
        let quiet = within(streams.listen(2, &["test:text"]).await).await.expect("an answer");
        // What has been sent is there; then the stream is reset.
        let reset = loop {
            match within(stuck.data()).await.expect("no end") {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(reset.is_reset() && reset.is_remote(), "{reset}");
        let answer = within(streams.call(3, "echo", r#"{"text":"x"}"#).await).await.expect("an answer");
        assert_eq!(answer.status(), 200);
        drop((answer, quiet));
        streams.close().await;
        repeated(1, "streams")
    });
}

/// A response whose last bytes are not read is reset alone, too.
// covers: SEC-4
#[test]
fn sec_4_last_bytes_that_are_not_read() {
    let alone = alone();
    mistreat_stalled(&alone, "last bytes that are not read", ROOM, STALL, async |arena| {
        let mut streams = Streams::with_window(arena.address, 1).await;
        let stuck = streams.call(1, "big", &format!(r#"{{"bytes":{BYTES}}}"#)).await;
        let mut stuck = within(stuck).await.expect("an answer").into_body();
        let reset = loop {
            match within(stuck.data()).await.expect("no end") {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(reset.is_reset() && reset.is_remote(), "{reset}");
        let answer = within(streams.call(2, "echo", r#"{"text":"x"}"#).await).await.expect("the connection goes on");
        assert_eq!(answer.status(), 200);
        drop(answer);
        streams.close().await;
        repeated(1, "streams")
    });
}
