//! A hostile server on a socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_client::{Client, Mode};
use mcp_transport_http::HttpTransport;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::arena::{LIMIT, builder, text_of, within};

/// What a hostile server does with a call.
pub(crate) type Script = Arc<dyn Fn(Value) -> Reply + Send + Sync>;

/// What is written, and what comes then.
pub(crate) struct Reply {
    pub(crate) bytes: Vec<u8>,
    pub(crate) then: Then,
}

pub(crate) enum Then {
    /// The connection goes on.
    GoOn,
    /// The connection ends.
    Close,
    /// This is written until the client has enough.
    Repeat(&'static [u8]),
}

pub(crate) fn response(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} Status\r\n{headers}content-length: {length}\r\n\r\n{body}").into_bytes()
}

pub(crate) const JSON: &str = "content-type: application/json\r\n";

/// A stream of events that ends with the connection.
pub(crate) fn events(text: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{text}").into_bytes()
}

pub(crate) struct Socket {
    pub(crate) client: Client,
    messages: Arc<AtomicUsize>,
}

impl Socket {
    pub(crate) async fn open(is_modern: bool, script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let messages = Arc::<AtomicUsize>::default();
        let heard = Arc::clone(&messages);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&heard)));
            }
        });
        let mode = if is_modern { Mode::Modern } else { Mode::Legacy };
        let transport = HttpTransport::new(format!("http://{address}/mcp")).expect("an address");
        let transport = transport.body_limit(1 << 16).event_limit(1 << 16).standalone_stream(false);
        let transport = transport.max_reconnects(1).reconnect_interval(Duration::from_millis(1));
        let client = within(builder().mode(mode).connect(transport)).await.expect("a connection");
        Self { client, messages }
    }

    /// How many notifications and responses the server has received.
    pub(crate) fn messages(&self) -> usize {
        self.messages.load(Ordering::Relaxed)
    }

    /// Waits until the server has received so many.
    pub(crate) async fn has_heard(&self, count: usize) {
        let heard = tokio::time::timeout(LIMIT, async {
            while self.messages() < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        assert!(heard.await.is_ok(), "{} messages were received, not {count}", self.messages());
    }

    /// A call that goes well.
    pub(crate) async fn honest(&self) {
        let result = crate::arena::honest(&self.client).await.expect("a result");
        assert_eq!(text_of(&result), Some("still there"));
    }
}

async fn serve(mut stream: TcpStream, script: Script, messages: Arc<AtomicUsize>) {
    let mut buffer = Vec::new();
    loop {
        let Some(message) = read(&mut stream, &mut buffer).await else { return };
        let reply = match message["method"].as_str() {
            Some("server/discover") => answer(
                &message,
                json!({
                    "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                    "capabilities": { "tools": {} },
                }),
            ),
            Some("initialize") => answer(
                &message,
                json!({
                    "protocolVersion": "2025-11-25", "serverInfo": { "name": "hostile", "version": "1" },
                    "capabilities": { "tools": {} },
                }),
            ),
            Some("tools/call") if message["params"]["name"] == "honest" => {
                let content = json!([{ "type": "text", "text": "still there" }]);
                answer(&message, json!({ "resultType": "complete", "content": content }))
            }
            Some("tools/call" | "tools/list") => script(message),
            _ if message.is_object() => {
                messages.fetch_add(1, Ordering::Relaxed);
                Reply { bytes: response(202, "", ""), then: Then::GoOn }
            }
            _ => Reply { bytes: response(405, "", ""), then: Then::GoOn },
        };
        if stream.write_all(&reply.bytes).await.is_err() {
            return;
        }
        match reply.then {
            Then::GoOn => {}
            Then::Close => return,
            Then::Repeat(bytes) => {
                while stream.write_all(bytes).await.is_ok() {
                    tokio::task::yield_now().await;
                }
                return;
            }
        }
    }
}

pub(crate) fn answer(message: &Value, result: Value) -> Reply {
    let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
    Reply { bytes: response(200, JSON, &body), then: Then::GoOn }
}

/// Reads a request; returns its message, or `null` for one without.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Value> {
    let (start, length) = loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            break (end + 4, length.and_then(|length| length.trim().parse().ok()).unwrap_or(0));
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    while buffer.len() < start + length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let message = serde_json::from_slice(&buffer[start..start + length]).unwrap_or_default();
    buffer.drain(..start + length);
    Some(message)
}
