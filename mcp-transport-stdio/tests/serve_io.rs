//! One client on streams that a test holds in its hands.
#![cfg(feature = "server")]

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_server::types::{Method, RawObject};
use mcp_server::{ConnectionHandle, Limits, NoArguments, RequestContext, Server, ServerBuilder, tool};
use mcp_testkit::envelope;
use mcp_transport_stdio::{ServeOptions, StopReason, serve_io};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf, duplex};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Longer than anything here takes; where the clock of a test stands still, it takes no time.
const LIMIT: Duration = Duration::from_secs(20);

/// The handshake of a legacy client, and the call of a tool.
fn script(tool: &str) -> String {
    [
        envelope::initialize(1, "2025-11-25", json!({ "roots": {} })).to_string(),
        envelope::initialized().to_string(),
        envelope::request(2, "tools/call", json!({ "name": tool })).to_string(),
        String::new(),
    ]
    .join("\n")
}

fn builder() -> ServerBuilder {
    Server::builder("test", "1.0")
}

/// Each deadline is kept, even if nothing else happens: nobody reads, and nobody whom the driver runs waits.
#[tokio::test(start_paused = true)]
async fn one_deadline_after_the_other() {
    let limits = [100, 200, 300].map(Duration::from_millis);
    let (sender, mut given_up) = mpsc::unbounded_channel();
    let ask = tool("ask", move |ctx: RequestContext, _: NoArguments| {
        for limit in limits {
            let (connection, sender) = (ctx.connection().clone(), sender.clone());
            tokio::spawn(async move {
                let asked =
                    connection.request::<RawObject>(Method::ROOTS_LIST, &RawObject::empty()).timeout(limit).await;
                assert!(asked.is_err(), "nobody answers");
                let _ = sender.send(limit);
            });
        }
        std::future::ready("x".repeat(100_000))
    });
    let server = builder().tool(ask).build().expect("a server");
    // All of it is written, and nothing is read.
    let (mut client, ours) = duplex(1000);
    let (reader, writer) = tokio::io::split(ours);
    client.write_all(script("ask").as_bytes()).await.expect("there is room");
    let options = ServeOptions::default();
    let serve = serve_io(&server, reader, writer, &options, std::future::pending());
    let wait = async {
        for limit in limits {
            assert_eq!(timeout(LIMIT, given_up.recv()).await.expect("it is not missed"), Some(limit));
        }
    };
    tokio::select! {
        ended = serve => panic!("{ended:?}"),
        () = wait => {}
    }
}

/// What threads tell at the moment at which a line comes can be the last that there was room for. The line is answered
/// nevertheless: it is not the client who did not read.
#[tokio::test]
async fn the_last_room_is_taken_while_a_line_is_read() {
    /// Has the server say a lot before it hands out its second piece.
    struct Crowded {
        connection: Arc<OnceLock<ConnectionHandle>>,
        pieces: Vec<String>,
    }

    impl AsyncRead for Crowded {
        fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            let Some(piece) = self.pieces.pop() else { return Poll::Pending };
            if let Some(connection) = self.connection.get() {
                for _ in 0..10 {
                    connection.notify(&Method::from("notifications/test"), &RawObject::empty());
                }
            }
            buffer.put_slice(piece.as_bytes());
            Poll::Ready(Ok(()))
        }
    }

    let connection = Arc::<OnceLock<ConnectionHandle>>::default();
    let kept = Arc::clone(&connection);
    let keep = tool("keep", move |ctx: RequestContext, _: NoArguments| {
        kept.get_or_init(|| ctx.connection().clone());
        std::future::ready("kept")
    });
    let mut limits = Limits::default();
    limits.max_outbox_messages = 5;
    let server = builder().tool(keep).limits(limits).build().expect("a server");
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}\n".to_owned();
    let reader = Crowded { connection, pieces: vec![ping, script("keep")] };
    let options = ServeOptions::default();
    let (mut client, writer) = duplex(100_000);
    let serve = serve_io(&server, reader, writer, &options, std::future::pending());
    let read = async {
        let mut heard = String::new();
        while !heard.contains(r#""id":3"#) {
            let mut piece = [0; 1000];
            let count = client.read(&mut piece).await.expect("something to read");
            assert_ne!(count, 0, "cut off after {heard}");
            heard.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
    };
    tokio::select! {
        ended = serve => panic!("{ended:?}"),
        read = timeout(LIMIT, read) => read.expect("it does not hang"),
    }
}

/// Some programs write a byte order mark first.
// covers: INT-8
#[tokio::test]
async fn int_8_a_byte_order_mark_is_no_part_of_the_first_message() {
    let server = builder().build().expect("a server");
    let input = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    let mut output = Vec::new();
    let options = ServeOptions::default();
    serve_io(&server, input.as_bytes(), &mut output, &options, std::future::pending()).await.expect("it ends well");
    assert_eq!(String::from_utf8_lossy(&output), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
}

/// Each line of a client, and what the server says to it, with lines of at most 1,000 bytes.
async fn say(server: &Server, lines: &[String]) -> Vec<Value> {
    let input = lines.join("\n");
    let mut output = Vec::new();
    let options = ServeOptions::default().line_limit(1000);
    let served = serve_io(server, input.as_bytes(), &mut output, &options, std::future::pending());
    timeout(LIMIT, served).await.expect("it does not hang").expect("it ends well");
    let output = String::from_utf8(output).expect("text");
    output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A request that is too long is refused by its id, wherever that stands; a notification is not answered.
// covers: INT-3
#[tokio::test]
async fn int_3_a_request_that_is_too_long_is_refused_by_its_id() {
    let server = builder().build().expect("a server");
    let params = format!(r#""params":{{"id":9,"text":"{}"}}"#, "x".repeat(5000));
    let lines = [
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping",{params}}}"#),
        format!(r#"{{"jsonrpc":"2.0","method":"ping",{params},"id":"two"}}"#),
        format!(r#"{{{params},"method":"notifications/message","jsonrpc":"2.0"}}"#),
        format!(r#"{{"jsonrpc":"2.0",{params},"id":3,"method":"ping"}}"#),
        r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#.to_owned(),
    ];
    let answers = say(&server, &lines).await;
    let ids: Vec<String> = answers.iter().map(|answer| answer["id"].to_string()).collect();
    assert_eq!(ids, ["1", "\"two\"", "3", "4"], "{answers:?}");
    for refused in &answers[..3] {
        assert_eq!(refused["error"]["code"], -32600);
        let message = refused["error"]["message"].as_str().expect("a message");
        assert!(message.contains("1000 bytes") && message.contains("line_limit"), "{message}");
    }
    assert!(answers[3].get("result").is_some());
}

/// The response of a client that is too long ends the request that it answers, at once.
// covers: INT-3
#[tokio::test(start_paused = true)]
async fn int_3_a_response_that_is_too_long_ends_what_waits_for_it() {
    let ask = tool("ask", async |ctx: RequestContext, _: NoArguments| {
        let asked = ctx.connection().request::<RawObject>(Method::ROOTS_LIST, &RawObject::empty());
        asked.idle_timeout(None).timeout(None).await.map_or_else(|error| error.to_string(), |_| "answered".to_owned())
    });
    let server = builder().tool(ask).build().expect("a server");
    for answer in [
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"roots":[],"x":"{}"}}}}"#, "x".repeat(5000)),
        format!(r#"{{"jsonrpc":"2.0","result":{{"roots":[],"x":"{}"}}}}"#, "x".repeat(5000)),
    ] {
        let (mut client, ours) = duplex(100_000);
        let (reader, writer) = tokio::io::split(ours);
        let options = ServeOptions::default().line_limit(1000);
        let serve = serve_io(&server, reader, writer, &options, std::future::pending());
        let talk = async {
            client.write_all(script("ask").as_bytes()).await.expect("there is room");
            let mut heard = String::new();
            while !heard.contains(r#""id":2"#) {
                if heard.contains("roots/list") && !heard.contains("answered at last") {
                    client.write_all(format!("{answer}\n").as_bytes()).await.expect("there is room");
                    heard.push_str("answered at last");
                }
                let mut piece = [0; 1000];
                let count = client.read(&mut piece).await.expect("something to read");
                assert_ne!(count, 0, "cut off after {heard}");
                heard.push_str(&String::from_utf8_lossy(&piece[..count]));
            }
            heard
        };
        let heard = tokio::select! {
            ended = serve => panic!("{ended:?}"),
            heard = timeout(LIMIT, talk) => heard.expect("it does not hang"),
        };
        // The model reads this, and no setting of the transport.
        assert!(heard.contains(r#""the response has more than 1000 bytes""#), "{heard}");
    }
}

/// Requests that arrive together get their responses together, in the order of their arrival, however many there are.
#[tokio::test]
async fn requests_that_arrive_together() {
    /// Keeps each piece that is written.
    #[derive(Default)]
    struct Pieces(Vec<String>);

    impl AsyncWrite for &mut Pieces {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.0.push(String::from_utf8_lossy(bytes).into_owned());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    const REQUESTS: u32 = 30;
    let legacy = |id| envelope::request(id, "tools/call", json!({ "name": "count" })).to_string();
    let modern = |id| envelope::modern_request(id, "tools/call", json!({ "name": "count" })).to_string();
    let handshake = [envelope::initialize(1, "2025-11-25", json!({})), envelope::initialized()];
    let handshake = handshake.iter().map(ToString::to_string).collect::<Vec<_>>();
    let numbers = 2..2 + REQUESTS;
    for (opening, calls) in [
        (handshake, numbers.clone().map(legacy).collect::<Vec<_>>()),
        (Vec::new(), numbers.clone().map(modern).collect::<Vec<_>>()),
    ] {
        let has_handshake = !opening.is_empty();
        let called = Arc::<AtomicU32>::default();
        let count = tool("count", {
            let called = Arc::clone(&called);
            move |_: RequestContext, _: NoArguments| {
                std::future::ready(called.fetch_add(1, Ordering::Relaxed).to_string())
            }
        });
        let server = builder().tool(count).build().expect("a server");
        let input = [opening, calls].concat().join("\n") + "\n";
        let mut written = Pieces::default();
        let options = ServeOptions::default();
        let served = serve_io(&server, input.as_bytes(), &mut written, &options, std::future::pending());
        let ended = timeout(LIMIT, served).await.expect("it does not hang").expect("no error");
        assert_eq!(ended, StopReason::InputClosed);

        assert_eq!(written.0.len(), 1, "{:?}", written.0);
        let lines = written.0[0].lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let responses: Vec<_> = lines.skip(usize::from(has_handshake)).collect();
        let ids: Vec<_> = responses.iter().map(|response| response["id"].clone()).collect();
        assert_eq!(ids, numbers.clone().map(Value::from).collect::<Vec<_>>());
        for (number, response) in responses.iter().enumerate() {
            assert_eq!(response["result"]["content"][0]["text"], number.to_string(), "in order");
        }
    }
}
