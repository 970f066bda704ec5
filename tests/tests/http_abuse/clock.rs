//! Clients that take their time, with a clock that jumps to whatever is waited for next.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mcp_transport_http::{HttpOptions, HttpServer, HttpService};
use tokio::runtime::{Builder, Handle};
use tokio::time::Instant;

use crate::arena::{Gate, server};
use crate::heap::{Alone, allocated, alone};
use crate::mistreat::compare;
use crate::tally::{Repeated, repeated};
use crate::wire::{Raw, call, call_body, names, post, text};

/// Serves within the test. Whenever nobody has anything to do, the next time that somebody waits for has come.
fn serve(_: &Alone, name: &str, options: HttpOptions, connections: usize, abuse: impl AsyncFn(SocketAddr) -> Repeated) {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let listener = HttpServer::bind("127.0.0.1:0").await.expect("a free port");
        let (address, listener) = (listener.address(), listener.max_connections(connections));
        let service = HttpService::with_options(server(&Arc::<Gate>::default()), options);
        tokio::spawn(listener.serve(service, std::future::pending()));
        honest(address).await;
        let at_rest = async || {
            while Handle::current().metrics().num_alive_tasks() > 1 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            allocated()
        };
        let round = async || {
            let repeated = abuse(address).await;
            honest(address).await;
            repeated
        };
        compare(name, 2, at_rest, round).await;
    });
}

async fn honest(address: SocketAddr) {
    let mut client = Raw::connect(address).await;
    client.send(&call(1, "echo", r#"{"text":"x"}"#)).await;
    let answer = client.answer().await.expect("an answer");
    assert_eq!((answer.status, text(&answer.body).as_str()), (200, "x"), "{answer:?}");
}

/// Whatever is sent of a head, be it nothing, or the beginning of HTTP/2: the connection is closed after a minute.
#[test]
fn heads_that_do_not_come() {
    let alone = alone();
    let request = call(1, "echo", r#"{"text":"x"}"#);
    serve(&alone, "heads that do not come", HttpOptions::default(), 100, async |address| {
        for begin in [&b""[..], b"P", b"PRI", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", b"POST", &request[..100]] {
            let mut client = Raw::connect(address).await;
            client.send(begin).await;
            let since = Instant::now();
            assert!(client.is_closed().await);
            assert!(since.elapsed() <= Duration::from_secs(61), "{:?} {:?}", begin, since.elapsed());
        }
        repeated(6, "connections")
    });
}

/// A head that comes byte by byte is given no more time than one that does not come.
#[test]
fn heads_that_trickle() {
    let alone = alone();
    let request = call(1, "echo", r#"{"text":"x"}"#);
    serve(&alone, "heads that trickle", HttpOptions::default(), 100, async |address| {
        for bytes in [&request[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
            let mut client = Raw::connect(address).await;
            for byte in bytes.chunks(1).take(70) {
                client.try_send(byte).await;
                tokio::time::sleep(Duration::from_secs(4)).await;
                honest(address).await;
            }
            assert!(client.is_closed().await);
        }
        repeated(70 + 24, "bytes sent one by one")
    });
}

/// As many clients as there may be say nothing: others wait for them to be sent away, and are served then.
#[test]
fn places_that_are_taken() {
    let alone = alone();
    serve(&alone, "places that are taken", HttpOptions::default(), 10, async |address| {
        let mut idle = Vec::new();
        for _ in 0..10 {
            idle.push(Raw::connect(address).await);
        }
        honest(address).await;
        for mut client in idle {
            assert!(client.is_closed().await);
        }
        repeated(10, "connections")
    });
}

/// Between two requests nobody may take longer either.
#[test]
fn silence_between_requests() {
    let alone = alone();
    serve(&alone, "silence between requests", HttpOptions::default(), 100, async |address| {
        let mut client = Raw::connect(address).await;
        client.send(&call(1, "echo", r#"{"text":"x"}"#)).await;
        assert!(client.answer().await.is_some());
        assert!(client.is_closed().await);
        repeated(1, "connections")
    });
}

/// A body that comes byte by byte is refused after its time, and takes a place until then; a body that comes with its
/// head needs none, nor does one that comes soon after it.
#[test]
fn bodies_that_trickle() {
    let alone = alone();
    let options = HttpOptions::default().max_uploads(3).body_timeout(Duration::from_secs(10));
    let body = call_body(1, "echo", r#"{"text":"x"}"#);
    let request = post(&names("tools/call", Some("echo")), body.as_bytes());
    let head = request.len() - body.len();
    serve(&alone, "bodies that trickle", options, 100, async |address| {
        let mut slow = Vec::new();
        for _ in 0..3 {
            let mut client = Raw::connect(address).await;
            client.send(&request[..=head]).await;
            slow.push(client);
        }
        let mut another = Raw::connect(address).await;
        another.send(&request[..head + 5]).await;
        let answer = another.answer().await.expect("an answer");
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
        // Who is a bit late is not slow.
        let mut late = Raw::connect(address).await;
        late.send(&request[..head]).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        late.send(&request[head..]).await;
        assert_eq!(late.answer().await.map(|answer| answer.status), Some(200));
        for byte in request[head + 1..].chunks(1).take(9) {
            for client in &mut slow {
                client.send(byte).await;
            }
            honest(address).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        for mut client in slow {
            assert_eq!(client.answer().await.map(|answer| answer.status), Some(408));
            assert!(client.is_closed().await);
        }
        // There is room again.
        let mut client = Raw::connect(address).await;
        client.send(&request[..head]).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.send(&request[head..]).await;
        assert_eq!(client.answer().await.map(|answer| answer.status), Some(200));
        repeated(6, "requests")
    });
}

/// An answer that nobody reads is given up.
#[test]
fn answers_that_nobody_reads() {
    let alone = alone();
    serve(&alone, "answers that nobody reads", HttpOptions::default(), 100, async |address| {
        let mut client = Raw::connect(address).await;
        client.send(&call(1, "big", r#"{"bytes":20000000}"#)).await;
        client.stream.readable().await.expect("it is open");
        // Nothing else is asked of the runtime, so the clock jumps.
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!(client.answer().await.is_none(), "it was broken off");
        repeated(1, "requests")
    });
}

/// Events that nobody reads are given up too, and with them the place of their request.
#[test]
fn events_that_nobody_reads() {
    let alone = alone();
    serve(&alone, "events that nobody reads", HttpOptions::default().max_in_flight(1), 100, async |address| {
        let mut client = Raw::connect(address).await;
        client.send(&call(1, "flood", r#"{"messages":400,"bytes":50000}"#)).await;
        assert_eq!(client.head().await.map(|head| head.status), Some(200));
        let mut another = Raw::connect(address).await;
        another.send(&call(1, "echo", r#"{"text":"x"}"#)).await;
        assert_eq!(another.answer().await.map(|answer| answer.status), Some(503));
        tokio::time::sleep(Duration::from_secs(100)).await;
        honest(address).await;
        // What is left of it breaks off, maybe within an event.
        client.rest().await;
        repeated(1, "requests")
    });
}
