//! A schema that is deep and large costs a client about what it weighs, over a pipe and over a socket.
//!
//! It is a test of its own, because the most that was ever allocated is that of the whole process.
#![cfg(target_os = "linux")]

use std::alloc::System;
use std::time::Duration;

use cap::Cap;
use mcp_client::{Client, Mode};
use mcp_transport_http::HttpTransport;
use mcp_transport_stdio::StreamTransport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::net::unix::pipe;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// What reading such a list may take at a time: a few times the text, and not a multiple of its depth.
const MOST: usize = 32 << 20;

const DEPTH: usize = 55;

/// A list of one tool, whose schema has half a megabyte at its bottom, is this deep, and has an annotation there.
fn list(id: &Value) -> String {
    let many: String = (0..25_000).map(|number| format!(r#","k{number}":{{}}"#)).collect();
    let mut schema =
        format!(r#"{{"type":"object","properties":{{"a":{{"type":"string","x-mcp-header":"Deep"}}{many}}}}}"#);
    for level in 1..DEPTH {
        schema = format!(r#"{{"type":"object","properties":{{"p{level}":{schema}}}}}"#);
    }
    let tools = format!(r#"[{{"name":"t","inputSchema":{schema}}}]"#);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":{tools}}}}}"#
    )
}

fn reply(message: &Value) -> String {
    let id = &message["id"];
    match message["method"].as_str() {
        Some("server/discover") => format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"private","capabilities":{{"tools":{{}}}}}}}}"#
        ),
        _ => list(id),
    }
}

async fn within<F: IntoFuture>(work: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), work.into_future()).await.expect("it takes too long")
}

async fn over_pipe() -> Client {
    let (mut server_out, client_in) = pipe::pipe().expect("a pipe");
    let (client_out, server_in) = pipe::pipe().expect("a pipe");
    tokio::spawn(async move {
        let mut lines = BufReader::new(server_in).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).expect("a message");
            if server_out.write_all(format!("{}\n", reply(&message)).as_bytes()).await.is_err() {
                return;
            }
        }
    });
    let builder = Client::builder("victim", "1.0").mode(Mode::Modern);
    within(builder.connect(StreamTransport::new(client_in, client_out))).await.expect("a connection")
}

async fn over_socket() -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = Vec::new();
                // Each request is small, and has a connection of its own.
                let message = loop {
                    if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                        return;
                    }
                    let body = request.windows(4).position(|four| four == b"\r\n\r\n").map(|end| &request[end + 4..]);
                    if let Some(message) = body.and_then(|body| serde_json::from_slice::<Value>(body).ok()) {
                        break message;
                    }
                };
                let body = reply(&message);
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(body.as_bytes()).await;
            });
        }
    });
    let transport = HttpTransport::new(format!("http://{address}/mcp")).expect("an address");
    within(Client::builder("victim", "1.0").mode(Mode::Modern).connect(transport)).await.expect("a connection")
}

// covers: SEC-7
#[tokio::test]
async fn sec_7_a_deep_schema_costs_what_it_weighs() {
    for (name, client) in [("a pipe", over_pipe().await), ("a socket", over_socket().await)] {
        let (allocated, most) = (ALLOCATOR.allocated(), ALLOCATOR.max_allocated());
        assert!(most < allocated + MOST, "nothing was large before");
        let tools = within(client.tools().all()).await.expect("a list");
        assert_eq!(tools.len(), 1);
        let needed = ALLOCATOR.max_allocated().saturating_sub(allocated);
        eprintln!("a schema of 0.5 MB, {DEPTH} levels deep, over {name}: {needed} bytes");
        assert!(needed < MOST, "{needed} bytes over {name}");
    }
}
