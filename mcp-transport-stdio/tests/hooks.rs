//! Code of the application at the beginning of a connection, and for as long as it lasts.
#![cfg(feature = "server")]

use std::future::pending;
use std::time::Duration;

use mcp_server::types::{ErrorObject, LoggingLevel};
use mcp_server::{ClientCapability, Handshake, NoArguments, RequestContext, Server, SessionContext, tool};
use mcp_testkit::envelope::{initialize, initialized, modern_request, request, response, tool_text};
use mcp_testkit::{Gate, Notes};
use mcp_transport_stdio::{Line, LineReader, ServeOptions, StopReason, serve_io};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer than anything here takes on the slowest machine.
const LIMIT: Duration = Duration::from_secs(20);

struct Client {
    lines: LineReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
    served: JoinHandle<std::io::Result<StopReason>>,
}

impl Client {
    fn connect(server: &Server, options: ServeOptions) -> Self {
        let (ours, theirs) = duplex(64 * 1024);
        let ((lines, writer), (reader, output), server) = (split(ours), split(theirs), server.clone());
        let serve = async move { serve_io(&server, reader, output, &options, pending()).await };
        Self { lines: LineReader::new(lines, 100_000), writer, served: tokio::spawn(serve) }
    }

    /// Sends messages all at once.
    async fn send(&mut self, messages: &[Value]) {
        let text: String = messages.iter().map(|message| format!("{message}\n")).collect();
        timeout(LIMIT, self.writer.write_all(text.as_bytes())).await.expect("it reads").expect("it is open");
    }

    async fn recv(&mut self) -> Value {
        match timeout(LIMIT, self.lines.next()).await.expect("a message").expect("a stream") {
            Some(Line::Message(line)) => serde_json::from_slice(line).expect("JSON"),
            other => panic!("{other:?}"),
        }
    }

    async fn finish(mut self) {
        self.writer.shutdown().await.expect("it is open");
        let ended = timeout(LIMIT, self.served).await.expect("it ends");
        assert_eq!(ended.expect("no panic").expect("it ends well"), StopReason::InputClosed);
    }
}

fn call(id: u64) -> Value {
    request(id, "tools/call", json!({ "name": "name" }))
}

fn named(name: &'static str) -> Server {
    let tell = move |_: RequestContext, _: NoArguments| std::future::ready(name);
    Server::builder(name, "1.0").tool(tool("name", tell)).build().expect("a server")
}

/// A server that leaves clients with roots to another one and refuses those with sampling, when the gate is open.
fn choosing(gate: &Gate) -> Server {
    let (gate, rooted) = (gate.clone(), named("rooted"));
    Server::builder("first", "1.0")
        .tool(tool("name", async |_, _: NoArguments| "first"))
        .on_initialize(move |handshake: Handshake| {
            let (gate, rooted) = (gate.clone(), rooted.clone());
            async move {
                gate.wait().await;
                if handshake.supports(ClientCapability::Sampling) {
                    return Err(ErrorObject::invalid_request("no sampling"));
                }
                let is_rooted = handshake.supports(ClientCapability::Roots);
                Ok(if is_rooted { rooted } else { handshake.server().clone() })
            }
        })
        .build()
        .expect("a server")
}

/// What is sent together with the handshake waits for the decision, and is served by the server that was chosen.
// covers: GW-5
#[tokio::test]
async fn gw_5_messages_wait_for_the_decision() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let gate = Gate::default();
        let mut client = Client::connect(&choosing(&gate), ServeOptions::default());
        client.send(&[initialize(1, version, json!({ "roots": {} })), initialized(), call(2)]).await;
        assert!(timeout(Duration::from_millis(50), client.lines.next()).await.is_err(), "nothing is decided yet");
        gate.open();
        let welcome = client.recv().await;
        assert_eq!((&welcome["id"], &welcome["result"]["serverInfo"]["name"]), (&json!(1), &json!("rooted")));
        assert_eq!(tool_text(&client.recv().await), "rooted");
        client.finish().await;
    }
}

/// A client that is refused may try again, and modern clients are not asked about.
// covers: GW-5
#[tokio::test]
async fn gw_5_a_client_is_refused() {
    let gate = Gate::default();
    gate.open();
    let mut client = Client::connect(&choosing(&gate), ServeOptions::default());
    client.send(&[modern_request(1, "tools/call", json!({ "name": "name" }))]).await;
    assert_eq!(tool_text(&client.recv().await), "first");
    client.send(&[initialize(2, "2025-11-25", json!({ "sampling": {} })), call(3)]).await;
    assert_eq!(client.recv().await["error"]["message"], "no sampling");
    assert!(client.recv().await.get("error").is_some(), "there is no handshake");
    client.send(&[initialize(4, "2025-11-25", json!({})), initialized(), call(5)]).await;
    assert_eq!(client.recv().await["result"]["serverInfo"]["name"], "first");
    assert_eq!(tool_text(&client.recv().await), "first");
    client.finish().await;
}

/// The next client on a shared pipe is decided about by the server that all of them connect to.
// covers: GW-5, INT-1
#[tokio::test]
async fn gw_5_clients_of_a_shared_pipe_are_decided_about_one_by_one() {
    let gate = Gate::default();
    gate.open();
    let mut client = Client::connect(&choosing(&gate), ServeOptions::default().shared_pipe(true));
    for (capabilities, name) in
        [(json!({ "roots": {} }), "rooted"), (json!({}), "first"), (json!({ "roots": {} }), "rooted")]
    {
        client.send(&[initialize(1, "2025-11-25", capabilities), initialized()]).await;
        assert_eq!(client.recv().await["result"]["serverInfo"]["name"], name);
        client.send(&[call(2)]).await;
        assert_eq!(tool_text(&client.recv().await), name);
    }
    client.finish().await;
}

/// A server whose decision takes until the gate is open, and notes when it is dropped.
fn undecided(notes: &Notes, gate: &Gate) -> Server {
    let (notes, gate) = (notes.clone(), gate.clone());
    Server::builder("first", "1.0")
        .tool(tool("name", async |_, _: NoArguments| "first"))
        .on_initialize(move |handshake: Handshake| {
            let (dropped, gate) = (notes.on_drop("dropped"), gate.clone());
            async move {
                let _dropped = dropped;
                gate.wait().await;
                Ok(handshake.server().clone())
            }
        })
        .build()
        .expect("a server")
}

/// A client that leaves while the application decides about it is noticed, whatever it sent before: the decision is dropped
/// after the time that handlers have, too.
// covers: GW-5
#[tokio::test(start_paused = true)]
async fn gw_5_a_client_leaves_before_the_decision() {
    let long = format!("{}\n", call(3)).repeat(1000);
    for rest in ["", "{\"jsonrpc\"", long.as_str()] {
        let notes = Notes::default();
        let options = ServeOptions::default().drain_timeout(Duration::from_secs(3)).line_limit(100_000);
        let mut client = Client::connect(&undecided(&notes, &Gate::default()), options);
        client.send(&[initialize(1, "2025-11-25", json!({}))]).await;
        client.writer.write_all(rest.as_bytes()).await.expect("it reads");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(notes.take(), [""; 0], "it waits for as long as the client does");
        let start = tokio::time::Instant::now();
        client.finish().await;
        assert_eq!((notes.take(), start.elapsed().as_secs()), (vec!["dropped".to_owned()], 3));
    }
}

/// What was piped into a server is responded to, although its input has ended before the decision.
// covers: GW-5
#[tokio::test(start_paused = true)]
async fn gw_5_piped_messages_wait_for_the_decision() {
    let (notes, gate) = (Notes::default(), Gate::default());
    let mut client = Client::connect(&undecided(&notes, &gate), ServeOptions::default());
    client.send(&[initialize(1, "2025-11-25", json!({})), initialized(), call(2), call(3)]).await;
    client.writer.shutdown().await.expect("it is open");
    tokio::time::sleep(Duration::from_secs(1)).await;
    gate.open();
    assert_eq!(client.recv().await["result"]["serverInfo"]["name"], "first");
    assert_eq!(tool_text(&client.recv().await), "first");
    assert_eq!(tool_text(&client.recv().await), "first");
    client.finish().await;
}

/// A server that is stopped after that does not wait any longer.
// covers: GW-5
#[tokio::test(start_paused = true)]
async fn gw_5_a_stop_drops_the_decision() {
    let (notes, (ours, theirs)) = (Notes::default(), duplex(1024));
    let server = undecided(&notes, &Gate::default());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = tokio::spawn(async move {
        let (reader, writer) = split(theirs);
        let stopped = async { drop(stopped.await) };
        serve_io(&server, reader, writer, &ServeOptions::default(), stopped).await
    });
    let (_reader, mut writer) = split(ours);
    writer.write_all(format!("{}\n", initialize(1, "2025-11-25", json!({}))).as_bytes()).await.expect("it reads");
    writer.shutdown().await.expect("it is open");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let start = tokio::time::Instant::now();
    stop.send(()).expect("it runs");
    assert_eq!(served.await.expect("no panic").expect("it ends well"), StopReason::InputClosed);
    assert_eq!((notes.take(), start.elapsed()), (vec!["dropped".to_owned()], Duration::ZERO));
}

fn living(notes: &Notes) -> Server {
    let notes = notes.clone();
    Server::builder("test", "1.0")
        .on_session(move |session: SessionContext| {
            let (notes, dropped, closed) = (notes.clone(), notes.on_drop("dropped"), notes.clone());
            async move {
                let _dropped = dropped;
                session.connection().on_close(move || async move { closed.add("closed") });
                session.connection().initialized().await.expect("a handshake");
                session.connection().log(LoggingLevel::Error, "welcome");
                let roots = session.connection().list_roots().await.expect("roots");
                notes.add(format!("{} roots", roots.len()));
                tokio::time::sleep(Duration::from_millis(10)).await;
                session.connection().log(LoggingLevel::Error, "still there");
                pending::<()>().await;
            }
        })
        .build()
        .expect("a server")
}

/// The code of a session runs while its client is silent, and ends before the callbacks of the connection.
// covers: MIS-4, S4.66
#[tokio::test]
async fn mis_4_code_runs_for_the_life_of_a_connection() {
    let notes = Notes::default();
    let server = living(&notes);
    let mut client = Client::connect(&server, ServeOptions::default().shared_pipe(true));
    for _ in 0..2 {
        client.send(&[initialize(1, "2025-11-25", json!({ "roots": {} })), initialized()]).await;
        assert!(client.recv().await.get("result").is_some());
        assert_eq!(client.recv().await["params"]["data"], "welcome");
        let question = client.recv().await;
        assert_eq!(question["method"], "roots/list");
        client.send(&[response(question["id"].clone(), json!({ "roots": [] }))]).await;
        assert_eq!(client.recv().await["params"]["data"], "still there");
        assert_eq!(notes.take().last().map(String::as_str), Some("0 roots"));
    }
    client.finish().await;
    assert_eq!(notes.take(), ["dropped", "closed"]);
}

/// A modern client has no session.
// covers: MIS-4
#[tokio::test]
async fn mis_4_modern_clients_have_no_session() {
    let notes = Notes::default();
    let mut client = Client::connect(&living(&notes), ServeOptions::default());
    client.send(&[modern_request(1, "server/discover", json!({}))]).await;
    assert!(client.recv().await.get("result").is_some());
    client.finish().await;
    assert_eq!(notes.take(), [""; 0]);
}
