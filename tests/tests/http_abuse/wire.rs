//! HTTP/1.1, byte by byte.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long anything may take. Far more than it does, also where the clock jumps.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("within the limit of a test")
}

/// What every request here has.
pub(crate) const TYPES: &str = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

/// A client that sends what it is told.
pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

impl Raw {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = within(TcpStream::connect(address)).await.expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        Self { stream, buffer: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        within(self.stream.write_all(bytes)).await.expect("it reads");
    }

    /// Sends to a server that may have had enough.
    pub(crate) async fn try_send(&mut self, bytes: &[u8]) {
        let _ = within(self.stream.write_all(bytes)).await;
    }

    /// Says that nothing more comes.
    pub(crate) async fn finish(&mut self) {
        within(self.stream.shutdown()).await.expect("it is open");
    }

    /// Reads more; nothing if the server has closed the connection.
    async fn more(&mut self) -> Option<usize> {
        let read = within(self.stream.read_buf(&mut self.buffer)).await;
        read.ok().filter(|read| *read > 0)
    }

    async fn line(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.buffer.windows(end.len()).position(|window| window == end) {
                let rest = self.buffer.split_off(at + end.len());
                return Some(std::mem::replace(&mut self.buffer, rest));
            }
            self.more().await?;
        }
    }

    async fn exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < count {
            self.more().await?;
        }
        let rest = self.buffer.split_off(count);
        Some(std::mem::replace(&mut self.buffer, rest))
    }

    /// The head of the next answer; nothing if there is none.
    pub(crate) async fn head(&mut self) -> Option<Answer> {
        let head = String::from_utf8(self.line(b"\r\n\r\n").await?).expect("text");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status: {head}"));
        Some(Answer { status, head, body: Vec::new() })
    }

    /// The next piece of an answer that is sent in pieces; nothing after the last.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = String::from_utf8(self.line(b"\r\n").await?).expect("text");
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or_else(|_| panic!("no size: {size}"));
        let mut chunk = self.exactly(size + 2).await?;
        chunk.truncate(size);
        (size > 0).then_some(chunk)
    }

    /// The next answer; nothing if the connection ends before it does.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        let mut answer = self.head().await?;
        if let Some(length) = answer.header("content-length") {
            let length = length.parse().expect("a number");
            answer.body = self.exactly(length).await?;
        } else if answer.header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk().await {
                answer.body.extend(chunk);
            }
        }
        Some(answer)
    }

    /// Says that nothing more comes to a server that may have closed the connection.
    pub(crate) async fn finish_quietly(&mut self) {
        let _ = within(self.stream.shutdown()).await;
    }

    /// All that comes until the server closes the connection.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.more().await.is_some() {}
        std::mem::take(&mut self.buffer)
    }

    /// Waits for the server to close the connection; whether nothing came before.
    pub(crate) async fn is_closed(&mut self) -> bool {
        while self.more().await.is_some() {}
        self.buffer.is_empty()
    }

    /// Ends the connection so that the server is told at once that it is broken.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().expect("a socket");
    }
}

/// A request with a body.
pub(crate) fn post(headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{TYPES}{headers}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// The headers that repeat what is in the body.
pub(crate) fn names(method: &str, name: Option<&str>) -> String {
    let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
    format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}")
}

/// The members of a modern request besides its parameters.
pub(crate) const META: &str = r#""_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"abuser","version":"1.0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

pub(crate) fn message(id: impl Into<Value>, method: &str, params: &str) -> String {
    let (id, comma) = (id.into(), if params.is_empty() { "" } else { "," });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{META}{comma}{params}}}}}"#)
}

pub(crate) fn call_body(id: impl Into<Value>, tool: &str, arguments: &str) -> String {
    message(id, "tools/call", &format!(r#""name":"{tool}","arguments":{arguments}"#))
}

/// A call of a tool.
pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: &str) -> Vec<u8> {
    post(&names("tools/call", Some(tool)), call_body(id, tool, arguments).as_bytes())
}

pub(crate) fn listen_body(id: impl Into<Value>, uris: &[&str]) -> String {
    let filter = json!({"resourceSubscriptions": uris});
    message(id, "subscriptions/listen", &format!(r#""notifications":{filter}"#))
}

pub(crate) fn listen(id: impl Into<Value>, uris: &[&str]) -> Vec<u8> {
    post(&names("subscriptions/listen", None), listen_body(id, uris).as_bytes())
}

/// The text of a result.
pub(crate) fn text(body: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}
