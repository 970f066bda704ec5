//! Gateways that start one server and pass on to it what several clients say.
#![cfg(feature = "server")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_server::types::LoggingLevel;
use mcp_server::{NoArguments, RequestContext, Server, tool};
use mcp_transport_stdio::{Line, LineReader, ServeOptions, StopReason, serve_io};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Longer than anything here takes on the slowest machine.
const LIMIT: Duration = Duration::from_secs(20);

async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(LIMIT, future).await.expect("within the limit of a test")
}

type Happened = Arc<Mutex<Vec<String>>>;

/// Counts calls for each connection, logs each of them, and notes when a connection ends.
fn server(happened: &Happened) -> Server {
    let happened = Arc::clone(happened);
    let count = tool("count", move |ctx: RequestContext, _: NoArguments| {
        let happened = Arc::clone(&happened);
        let calls = ctx
            .connection()
            .scratch()
            .expect("a lasting connection")
            .get_or_insert_with(|| AtomicU64::new(0))
            .fetch_add(1, Ordering::Relaxed)
            + 1;
        if calls == 1 {
            ctx.connection().on_close(async move || {
                sleep(Duration::from_millis(20)).await;
                happened.lock().expect("no panic").push("ended".to_owned());
            });
        }
        ctx.log(LoggingLevel::Debug, "counted");
        std::future::ready(calls.to_string())
    });
    Server::builder("test", "1.0")
        .tool(count)
        .tool(tool("hang", async |_, _: NoArguments| std::future::pending::<String>().await))
        .build()
        .expect("a server")
}

/// The gateway: one stream of lines in each direction.
struct Gateway {
    lines: LineReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
    served: JoinHandle<std::io::Result<StopReason>>,
    happened: Happened,
}

impl Gateway {
    fn start(options: ServeOptions) -> Self {
        let (ours, theirs) = duplex(64 * 1024);
        let (lines, writer) = split(ours);
        let (reader, output) = split(theirs);
        let happened = Happened::default();
        let server = server(&happened);
        let serve = async move { serve_io(&server, reader, output, &options, std::future::pending()).await };
        Self { lines: LineReader::new(lines, 100_000), writer, served: tokio::spawn(serve), happened }
    }

    async fn send(&mut self, message: Value) {
        within(self.writer.write_all(format!("{message}\n").as_bytes())).await.expect("it reads");
    }

    async fn recv(&mut self) -> Value {
        match within(self.lines.next()).await.expect("a stream") {
            Some(Line::Message(line)) => serde_json::from_slice(line).expect("JSON"),
            other => panic!("{other:?}"),
        }
    }

    async fn ask(&mut self, message: Value) -> Value {
        self.send(message).await;
        self.recv().await
    }

    async fn initialize(&mut self, name: &str, version: &str, capabilities: Value) -> Value {
        let client = json!({ "name": name, "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": client });
        let response = self.ask(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
        if response.get("result").is_some() {
            self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        }
        response
    }

    async fn count(&mut self) -> Value {
        let response = self.ask(call(1, "count")).await;
        response["result"]["content"][0]["text"].clone()
    }

    fn happened(&self) -> Vec<String> {
        self.happened.lock().expect("no panic").clone()
    }

    async fn finish(mut self) -> Vec<String> {
        within(self.writer.shutdown()).await.expect("it reads");
        assert_eq!(within(self.served).await.expect("no panic").expect("it ends well"), StopReason::InputClosed);
        self.happened.lock().expect("no panic").clone()
    }
}

fn call(id: u64, tool: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool } })
}

/// What gateways need by default: clients of one kind are all served, as one.
// covers: INT-1
#[tokio::test]
async fn int_1_the_same_handshake_again_changes_nothing() {
    let mut gateway = Gateway::start(ServeOptions::default());
    let first = gateway.initialize("first", "2025-06-18", json!({})).await;
    assert_eq!(first["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(gateway.count().await, "1");
    assert_eq!(gateway.initialize("second", "2025-06-18", json!({})).await, first);
    assert_eq!(gateway.count().await, "2");
    let refused = gateway.initialize("third", "2025-11-25", json!({})).await;
    assert_eq!(refused["error"]["code"], -32600);
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(message.contains("ServeOptions::shared_pipe"), "{message}");
    assert_eq!(gateway.count().await, "3");
    assert_eq!(gateway.happened(), [""; 0]);
    assert_eq!(gateway.finish().await, ["ended"]);
}

/// With the switch, each handshake begins a connection of its own, after the end of the one before.
// covers: INT-1
#[tokio::test]
async fn int_1_a_shared_pipe_begins_anew() {
    let mut gateway = Gateway::start(ServeOptions::default().shared_pipe(true));
    for (ends, (name, version)) in
        [("first", "2025-06-18"), ("second", "2025-11-25"), ("second", "2025-11-25")].into_iter().enumerate()
    {
        let response = gateway.initialize(name, version, json!({ "roots": {} })).await;
        assert_eq!(response["result"]["protocolVersion"], version);
        assert_eq!(gateway.happened().len(), ends, "what was before has ended");
        assert_eq!(gateway.count().await, "1");
        assert_eq!(gateway.count().await, "2");
        // Nothing of this is there for the next one.
        let params = json!({ "level": "debug" });
        gateway.ask(json!({ "jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": params })).await;
        gateway.send(call(3, "count")).await;
        let log = gateway.recv().await;
        assert_eq!(log["method"], "notifications/message", "{log}");
        assert_eq!(gateway.recv().await["id"], 3);
    }
    assert_eq!(gateway.finish().await, ["ended"; 3]);
}

/// What was said to the client before is still sent, even if the next handshake comes together with its last request.
// covers: INT-1
#[tokio::test]
async fn int_1_a_shared_pipe_sends_what_was_said_before() {
    let mut gateway = Gateway::start(ServeOptions::default().shared_pipe(true));
    gateway.initialize("first", "2025-06-18", json!({})).await;
    let client = json!({ "name": "second", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let next = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let both = format!("{}\n{next}\n", json!({ "jsonrpc": "2.0", "id": 5, "method": "ping" }));
    within(gateway.writer.write_all(both.as_bytes())).await.expect("it reads");
    assert_eq!(gateway.recv().await, json!({ "jsonrpc": "2.0", "id": 5, "result": {} }));
    assert_eq!(gateway.recv().await["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(gateway.finish().await, ["ended"; 0]);
}

/// The requests of one client are not given up for another, nor does a malformed handshake end anything.
// covers: INT-1
#[tokio::test]
async fn int_1_a_shared_pipe_waits_for_requests_in_flight() {
    let mut gateway = Gateway::start(ServeOptions::default().shared_pipe(true).drain_timeout(Duration::ZERO));
    let first = gateway.initialize("first", "2025-06-18", json!({})).await;
    assert_eq!(gateway.count().await, "1");
    let malformed = gateway.ask(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} })).await;
    assert_eq!(malformed["error"]["code"], -32602);
    assert_eq!(gateway.count().await, "2");
    gateway.send(call(7, "hang")).await;
    let refused = gateway.initialize("second", "2025-11-25", json!({})).await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    assert_eq!(gateway.initialize("second", "2025-06-18", json!({})).await, first, "the same is no matter");
    assert_eq!(gateway.count().await, "3");
    let params = json!({ "requestId": 7 });
    gateway.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
    let second = gateway.initialize("second", "2025-11-25", json!({})).await;
    assert_eq!(second["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(gateway.count().await, "1");
    assert_eq!(gateway.finish().await, ["ended"; 2]);
}
