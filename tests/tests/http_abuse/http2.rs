//! HTTP/2: many requests on one connection, and what else can be done with it.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http::Request;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::arena::{Room, SMALL};
use crate::heap::alone;
use crate::mistreat::mistreat;
use crate::tally::repeated;
use crate::wire::{call_body, listen_body, within};

/// As many as one connection may have.
const PER_CONNECTION: usize = 100;

/// Room for requests on some connections.
pub(crate) struct Streams {
    clients: Vec<SendRequest<Bytes>>,
    connections: JoinSet<Result<(), h2::Error>>,
    next: usize,
}

impl Streams {
    /// Connects as often as it takes for some requests at the same time.
    pub(crate) async fn connect(address: SocketAddr, count: usize) -> Self {
        let (mut clients, mut connections) = (Vec::new(), JoinSet::new());
        for _ in 0..count.div_ceil(PER_CONNECTION) {
            let stream = within(TcpStream::connect(address)).await.expect("it listens");
            stream.set_nodelay(true).expect("a socket");
            let (client, connection) = within(h2::client::handshake(stream)).await.expect("HTTP/2");
            connections.spawn(connection);
            clients.push(client);
        }
        Self { clients, connections, next: 0 }
    }

    /// Connects once, and lets the server send no more than so many bytes of an answer.
    pub(crate) async fn with_window(address: SocketAddr, bytes: u32) -> Self {
        let stream = within(TcpStream::connect(address)).await.expect("it listens");
        let mut builder = h2::client::Builder::new();
        let handshake = builder.initial_window_size(bytes).handshake(stream);
        let (client, connection) = within(handshake).await.expect("HTTP/2");
        let mut connections = JoinSet::new();
        connections.spawn(connection);
        Self { clients: vec![client], connections, next: 0 }
    }

    /// Begins a request, and leaves it open for a body.
    pub(crate) async fn begin(
        &mut self,
        request: Request<()>,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
        let at = self.next % self.clients.len();
        self.next += 1;
        let client = self.clients[at].clone();
        let mut client = within(client.ready()).await?;
        let begun = client.send_request(request, false);
        self.clients[at] = client;
        begun
    }

    pub(crate) async fn post(&mut self, method: &str, name: Option<&str>, body: String) -> ResponseFuture {
        let (answer, mut stream) = self.begin(request(method, name)).await.expect("it is open");
        stream.send_data(body.into(), true).expect("it is open");
        answer
    }

    pub(crate) async fn call(&mut self, id: usize, tool: &str, arguments: &str) -> ResponseFuture {
        self.post("tools/call", Some(tool), call_body(id, tool, arguments)).await
    }

    pub(crate) async fn listen(&mut self, id: usize, uris: &[&str]) -> ResponseFuture {
        self.post("subscriptions/listen", None, listen_body(id, uris)).await
    }

    /// Ends all connections.
    pub(crate) async fn close(mut self) {
        drop(self.clients);
        self.connections.shutdown().await;
    }
}

pub(crate) fn request(method: &str, name: Option<&str>) -> Request<()> {
    let mut request = Request::post("http://localhost/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if let Some(name) = name {
        request = request.header("mcp-name", name);
    }
    request.body(()).expect("a request")
}

/// Streams that are reset as soon as they are open: the connection is ended, others are not.
#[test]
fn rapid_resets() {
    let alone = alone();
    mistreat(&alone, "rapid resets", SMALL, async |arena| {
        let mut streams = Streams::connect(arena.address, 1).await;
        let mut opened = 0;
        for _ in 0..5000 {
            let Ok((answer, mut stream)) = streams.begin(request("tools/call", Some("wait"))).await else { break };
            stream.send_reset(Reason::CANCEL);
            opened += 1;
            drop(answer);
        }
        arena.honest().await;
        // A server that keeps up with them has no reason to end it.
        if let Ok((answer, mut stream)) = streams.begin(request("tools/call", Some("echo"))).await {
            let _ = stream.send_data(call_body(1, "echo", r#"{"text":"x"}"#).into(), true);
            match within(answer).await {
                Ok(answer) => assert_eq!(answer.status(), 200),
                Err(error) => assert_eq!(error.reason(), Some(Reason::ENHANCE_YOUR_CALM), "{error}"),
            }
        }
        streams.close().await;
        repeated(opened, "streams")
    });
}

/// The same without a client that waits for anything: one burst of frames.
#[test]
fn a_burst_of_resets() {
    let alone = alone();
    // All but the path is in the table of names that everybody has, or is written out.
    let mut block = vec![0x83, 0x86, 0x04, 4];
    block.extend(b"/mcp");
    block.extend([0x01, 9]);
    block.extend(b"localhost");
    let mut burst = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    burst.extend(frame(4, 0, 0, b""));
    for stream in (1..20_000_u32).step_by(2) {
        burst.extend(frame(1, 4, stream, &block));
        burst.extend(frame(3, 0, stream, &8_u32.to_be_bytes()));
    }
    mistreat(&alone, "a burst of resets", SMALL, async |arena| {
        let mut client = arena.connect().await;
        client.try_send(&burst).await;
        arena.honest().await;
        client.finish_quietly().await;
        client.is_closed().await;
        repeated(1, "connections")
    });
}

/// A handler whose stream is reset is cancelled, and the others of the connection go on.
#[test]
fn streams_that_are_reset() {
    let alone = alone();
    mistreat(&alone, "streams that are reset", SMALL, async |arena| {
        let mut streams = Streams::connect(arena.address, 1).await;
        // The place of a response is free a moment after its client has read it, so one is left over.
        let count = SMALL.requests - 1;
        for round in 0..10 {
            let mut open = Vec::new();
            for id in 0..count {
                open.push(streams.call(id, "wait", "{}").await);
            }
            arena.gate.has_inside(count).await;
            // Dropping both halves resets the stream.
            let kept = open.pop();
            drop(open);
            arena.gate.has_inside(1).await;
            arena.gate.open(1);
            let answer = within(kept.expect("one of them")).await.expect("an answer");
            assert_eq!(answer.status(), 200, "round {round}");
        }
        streams.close().await;
        repeated(10 * count, "streams")
    });
}

/// More streams than one connection may have: it is told to wait, and a client that does not is refused.
#[test]
fn more_streams_than_may_be() {
    let alone = alone();
    let room = Room { requests: 150, listeners: 8, connections: 64 };
    mistreat(&alone, "more streams than may be", room, async |arena| {
        let mut streams = Streams::connect(arena.address, 1).await;
        let mut open = Vec::new();
        for id in 0..PER_CONNECTION {
            open.push(streams.call(id, "wait", "{}").await);
        }
        arena.gate.has_inside(PER_CONNECTION).await;
        let (more, mut stream) = streams.begin(request("tools/call", Some("echo"))).await.expect("it is open");
        stream.send_data(call_body(1, "echo", r#"{"text":"x"}"#).into(), true).expect("it is open");
        arena.honest().await;
        arena.gate.has_inside(PER_CONNECTION).await;
        arena.gate.open(PER_CONNECTION);
        for answer in open {
            assert_eq!(within(answer).await.expect("an answer").status(), 200);
        }
        assert_eq!(within(more).await.expect("an answer").status(), 200);
        streams.close().await;
        repeated(PER_CONNECTION + 1, "streams")
    });
}

/// Headers that are too large, in one piece or in many.
#[test]
fn large_headers() {
    let alone = alone();
    mistreat(&alone, "large headers", SMALL, async |arena| {
        let mut streams = Streams::connect(arena.address, 1).await;
        let mut large = request("tools/call", Some("echo"));
        large.headers_mut().insert("x-large", "x".repeat(100_000).parse().expect("a value"));
        let (answer, mut stream) = streams.begin(large).await.expect("it is open");
        let _ = stream.send_data(Bytes::from_static(b"{}"), true);
        assert_eq!(within(answer).await.expect("an answer").status(), 431);
        // The connection lives on.
        let answer = streams.call(1, "echo", r#"{"text":"x"}"#).await;
        assert_eq!(within(answer).await.expect("an answer").status(), 200);
        let mut many = request("tools/call", Some("echo"));
        for n in 0..10_000 {
            let name: http::HeaderName = format!("x-{n}").parse().expect("a name");
            many.headers_mut().insert(name, "x".parse().expect("a value"));
        }
        let (answer, mut stream) = streams.begin(many).await.expect("it is open");
        let _ = stream.send_data(Bytes::from_static(b"{}"), true);
        match within(answer).await {
            Ok(answer) => assert_eq!(answer.status(), 431),
            Err(error) => assert_eq!(error.reason(), Some(Reason::ENHANCE_YOUR_CALM), "{error}"),
        }
        streams.close().await;
        repeated(3, "requests")
    });
}

/// Headers that never end: one piece after the other, each of them small.
#[test]
fn headers_without_end() {
    let alone = alone();
    let mut flood = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    flood.extend(frame(4, 0, 0, b""));
    flood.extend(frame(1, 0, 1, &[0x83, 0x86]));
    let field = [&[0x00, 1][..], b"x", &[100], &[b'y'; 100]].concat();
    for _ in 0..20_000 {
        flood.extend(frame(9, 0, 1, &field));
    }
    mistreat(&alone, "headers without end", SMALL, async |arena| {
        let before = arena.allocated();
        let mut client = arena.connect().await;
        client.try_send(&flood).await;
        client.is_closed().await;
        arena.honest().await;
        assert!(arena.allocated() < before + (1 << 20), "they are not kept");
        repeated(1, "connections")
    });
}

/// Frames that HTTP/2 does not allow, or that cost the server more than the client.
#[test]
fn frames_that_may_not_be() {
    let alone = alone();
    let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(4, 0, 0, b"")].concat();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("data on no stream", frame(0, 0, 0, b"x")),
        ("data on a stream that is not open", frame(0, 1, 7, b"x")),
        ("headers on an even stream", frame(1, 5, 2, &[0x83])),
        ("a name out of the table", frame(1, 5, 1, &[0xff, 0xff, 0xff, 0xff, 0x0f])),
        ("settings of half a setting", frame(4, 0, 0, b"xxx")),
        ("a window of more than there is", frame(8, 0, 0, &0x7fff_ffff_u32.to_be_bytes()).repeat(2)),
        ("a window of nothing", frame(8, 0, 0, &[0; 4])),
        ("a promise", frame(5, 4, 1, &[0, 0, 0, 2, 0x83])),
        ("a continuation of nothing", frame(9, 4, 1, &[0x83])),
        ("a frame that is too large", frame(0, 0, 1, &vec![0; 100_000])),
        ("padding of more than there is", frame(0, 8, 1, &[200, 1, 2])),
        ("a ping of the wrong size", frame(6, 0, 0, b"x")),
    ];
    mistreat(&alone, "frames that may not be", SMALL, async |arena| {
        for (case, frames) in &cases {
            let mut client = arena.connect().await;
            client.try_send(&[&begin[..], frames].concat()).await;
            let told = client.rest().await;
            // A frame of type 7 says goodbye.
            assert!(has_frame(&told, 7), "{case}: {told:?}");
        }
        // What is allowed, but only costs: pings, settings and empty data. Each is answered or ends the connection.
        for frames in [frame(6, 0, 0, &[0; 8]), frame(4, 0, 0, b"")] {
            let mut client = arena.connect().await;
            client.try_send(&[&begin[..], &frames.repeat(5000)].concat()).await;
            arena.honest().await;
            client.reset();
        }
        repeated(cases.len() + 2, "connections")
    });
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("small").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn has_frame(mut bytes: &[u8], kind: u8) -> bool {
    while let [a, b, c, this, ..] = *bytes {
        if this == kind {
            return true;
        }
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        bytes = bytes.get(9 + length..).unwrap_or_default();
    }
    false
}
