//! Where it is served, and where not.

use std::net::SocketAddr;
use std::time::Duration;

use mcp_testkit::Notes;
use mcp_testkit::envelope::request;
use mcp_testkit::envelope::tool_text;
use mcp_transport_http::{HttpOptions, HttpServer, HttpService, LegacySseError, LegacySseService, SessionMode};
use mcp_types::Revision;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::client::{both, call, get, message_of, send};
use crate::demo::{Demo, server};
use crate::raw_http::Post;

/// How long a test waits for what takes no time.
const PATIENCE: Duration = Duration::from_secs(10);

/// Without sessions, or without anybody to serve, there is no such service, and the error says what to do.
// covers: S4.16, S4.109, S4.110
#[test]
fn it_needs_sessions() {
    for mode in [SessionMode::Stateless, SessionMode::Off] {
        let service = HttpService::with_options(Demo::default().server(), HttpOptions::default().sessions(mode));
        let refused = service.legacy_sse().expect_err("no sessions");
        assert_eq!(refused, LegacySseError::NoSessions(mode));
        let text = refused.to_string();
        assert!(text.contains("`HttpOptions::sessions`") && text.contains("`SessionMode::Stateful`"), "{text}");
    }
    let modern = server(|builder| builder.revisions([Revision::V2026_07_28]));
    let service = HttpService::with_options(modern, HttpOptions::default().sessions(SessionMode::Stateful));
    let refused = service.legacy_sse().expect_err("nobody to serve");
    assert!(refused == LegacySseError::NoLegacyRevision && refused.to_string().contains("revision"), "{refused}");
    let (_, sse) = both(Demo::default().server(), HttpOptions::default());
    assert!(format!("{sse:?}").contains("streams: 0"));
}

/// A server that the hook chooses for one stream has to have something for it.
// covers: MIS-7
#[tokio::test]
async fn mis_7_the_server_of_a_stream_is_checked() {
    let options = HttpOptions::default().select_server(|parts: std::sync::Arc<http::request::Parts>| async move {
        let is_modern = parts.headers.contains_key("x-modern");
        Ok(server(|builder| if is_modern { builder.revisions([Revision::V2026_07_28]) } else { builder }))
    });
    let (_, sse) = both(Demo::default().server(), options);
    assert_eq!(send(get(), &sse).await.status.as_u16(), 200);
    let answer = send(get().header("x-modern", "1"), &sse).await.json(500).await;
    let text = answer["error"]["message"].as_str().expect("a text");
    assert!(text.contains("`HttpService::legacy_sse`") && text.contains("`ServerBuilder::revisions`"), "{text}");
}

struct Socket {
    stream: TcpStream,
    read: String,
}

impl Socket {
    async fn open(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.expect("a connection"), read: String::new() }
    }

    async fn send(&mut self, line: &str, body: &str) {
        let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        let kind = "content-type: application/json\r\naccept: application/json, text/event-stream\r\n";
        let text = format!("{line} HTTP/1.1\r\nhost: localhost\r\n{kind}{length}\r\n{body}");
        self.stream.write_all(text.as_bytes()).await.expect("a connection");
    }

    /// Reads until a text comes; returns everything up to it.
    async fn until(&mut self, end: &str) -> String {
        let mut buffer = [0; 4096];
        loop {
            if let Some((before, rest)) = self.read.split_once(end) {
                let (before, rest) = (before.to_owned(), rest.to_owned());
                self.read = rest;
                return before;
            }
            let count = timeout(PATIENCE, self.stream.read(&mut buffer)).await.expect("no more waiting");
            let count = count.expect("a connection");
            assert!(count > 0, "no `{end}`: {}", self.read);
            self.read.push_str(std::str::from_utf8(&buffer[..count]).expect("text"));
        }
    }

    async fn status(&mut self) -> String {
        self.until("\r\n\r\n").await[9..12].to_owned()
    }

    /// The next message of the stream, with the chunk that it comes in.
    async fn message(&mut self) -> Value {
        let chunk = self.until("\n\n").await;
        message_of(&chunk[chunk.find("event: ").expect("an event")..])
    }
}

/// Waits until a number of streams is open.
async fn streams(sse: &LegacySseService, count: usize) {
    let waited = async {
        while sse.streams() != count {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, waited).await.unwrap_or_else(|_| panic!("{} streams", sse.streams()));
}

async fn noted(notes: &Notes, expected: &str) {
    let waited = async {
        while notes.take() != [expected] {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, waited).await.expect("a note");
}

/// A raw POST to an address of its own connection; returns its status.
async fn post(address: SocketAddr, path: &str, message: &Value) -> String {
    let mut socket = Socket::open(address).await;
    socket.send(&format!("POST {path}"), &message.to_string()).await;
    socket.status().await
}

/// Nobody is there unless told.
// covers: S4.10, S4.95
#[tokio::test]
async fn it_is_off_by_default() {
    let (service, _sse) = both(Demo::default().server(), HttpOptions::default());
    let listener = HttpServer::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.address();
    let running = tokio::spawn(listener.serve(service, std::future::pending()));
    let mut socket = Socket::open(address).await;
    socket.send("GET /sse", "").await;
    assert_eq!(socket.status().await, "404");
    assert_eq!(post(address, "/message?sessionId=1", &call(1, "hello")).await, "404");
    running.abort();
}

/// Over sockets both transports are next to each other, hanging up ends the session, and the end of the server ends the
/// streams.
// covers: S4.12, S4.111, B-106, B-107
#[tokio::test]
async fn both_are_next_to_each_other() {
    let demo = Demo::default();
    let (service, sse) = both(demo.server(), HttpOptions::default());
    let listener = HttpServer::bind("127.0.0.1:0").await.expect("a port").legacy_sse(sse.clone());
    let (address, (stop, stopped)) = (listener.address(), oneshot::channel::<()>());
    let running = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        listener.serve(service, stopped).await
    });
    // A client that knows both tries the other one first, and learns that it is not there.
    assert_eq!(post(address, "/sse", &call(1, "hello")).await, "405");
    let initialize =
        json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": { "name": "old", "version": "1" } });
    let initialize = request(0, "initialize", initialize);
    for hangs_up in [true, false] {
        let mut stream = Socket::open(address).await;
        stream.send("GET /sse", "").await;
        assert_eq!(stream.status().await, "200");
        let first = stream.until("\n\n").await;
        let (_, endpoint) = first.split_once("event: endpoint\ndata: ").expect("the endpoint");
        assert!(endpoint.starts_with("/message?sessionId="));
        let mut socket = Socket::open(address).await;
        socket.send(&format!("GET {endpoint}"), "").await;
        assert_eq!(socket.status().await, "405");
        assert_eq!(post(address, endpoint, &initialize).await, "202");
        assert_eq!(stream.message().await["result"]["protocolVersion"], "2024-11-05");
        assert_eq!(
            post(address, endpoint, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await,
            "202"
        );
        assert_eq!(post(address, endpoint, &call(1, "hello")).await, "202");
        assert_eq!(tool_text(&stream.message().await), "hello");
        assert_eq!(post(address, endpoint, &call(2, "wait")).await, "202");
        noted(&demo.notes, "began").await;
        // The other endpoint answers meanwhile, clients of both eras.
        let modern = Post::tool("hello", json!({}));
        let mut socket = Socket::open(address).await;
        let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: hello";
        let content = modern.content();
        socket.send(&format!("POST /mcp HTTP/1.1\r\n{headers}\r\nx: "), &content).await;
        assert_eq!(socket.status().await, "200");
        if hangs_up {
            drop(stream);
            noted(&demo.notes, "dropped").await;
            streams(&sse, 0).await;
            assert_eq!(post(address, endpoint, &call(3, "hello")).await, "404");
        } else {
            demo.gate.open();
            assert_eq!(tool_text(&stream.message().await), "waited");
            let _ = stop.send(());
            stream.until("0\r\n\r\n").await;
            break;
        }
    }
    let drained = timeout(PATIENCE, running).await.expect("no more waiting").expect("an end");
    assert_eq!((drained.finished, drained.aborted, sse.streams()), (1, 0, 0));
}

/// Streams end with the server, also if they belong to another service than the one beside them.
// covers: S4.84, S4.113
#[tokio::test]
async fn streams_end_with_the_server() {
    let (service, _) = both(Demo::default().server(), HttpOptions::default());
    let (_other, sse) = both(Demo::default().server(), HttpOptions::default());
    let told = sse.clone().message_path(http::uri::PathAndQuery::from_static("/say"));
    let listener = HttpServer::bind("127.0.0.1:0").await.expect("a port").legacy_sse(told);
    let (address, (stop, stopped)) = (listener.address(), oneshot::channel::<()>());
    let running = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        listener.serve(service, stopped).await
    });
    let mut stream = Socket::open(address).await;
    stream.send("GET /sse", "").await;
    let (head, first) = (stream.until("\r\n\r\n").await, stream.until("\n\n").await);
    let (_, endpoint) = first.split_once("data: ").unwrap_or_else(|| panic!("{head}"));
    assert!(endpoint.starts_with("/say?sessionId="));
    assert_eq!(post(address, endpoint, &call(1, "hello")).await, "202");
    stream.message().await;
    streams(&sse, 1).await;
    let _ = stop.send(());
    stream.until("0\r\n\r\n").await;
    let drained = timeout(PATIENCE, running).await.expect("no more waiting").expect("an end");
    assert_eq!((drained.finished, drained.aborted, sse.streams()), (1, 0, 0));
}

/// A stream that stops reading over a socket holds its own requests back, and nobody else's.
// covers: S4.94
#[tokio::test]
async fn a_socket_that_is_not_read_is_bounded() {
    let (service, sse) = both(Demo::default().server(), HttpOptions::default());
    let listener = HttpServer::bind("127.0.0.1:0").await.expect("a port").legacy_sse(sse.clone());
    let address = listener.address();
    let running = tokio::spawn(listener.serve(service, std::future::pending()));
    let mut stream = Socket::open(address).await;
    stream.send("GET /sse", "").await;
    stream.status().await;
    let first = stream.until("\n\n").await;
    let (_, endpoint) = first.split_once("data: ").expect("the endpoint");
    // Errors repeat the id, so each answer is large.
    let long = request("x".repeat(1000), "ping", json!({})).to_string();
    let mut writer = Socket::open(address).await;
    let mut refused = 0;
    for _ in 0..40_000 {
        writer.send(&format!("POST {endpoint}"), &long).await;
        let head = writer.until("\r\n\r\n").await;
        if head.contains(" 503 ") {
            refused += 1;
            break;
        }
        assert!(head.contains(" 202 "), "{head}");
    }
    assert_eq!(refused, 1, "something is kept for ever");
    let mut other = Socket::open(address).await;
    other.send("GET /sse", "").await;
    assert_eq!(other.status().await, "200");
    drop(stream);
    drop(other);
    streams(&sse, 0).await;
    running.abort();
}
