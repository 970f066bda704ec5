//! Legacy clients with sessions, honest ones and others.

use std::time::Duration;

use mcp_transport_http::{HttpOptions, SessionOptions};

use crate::arena::Arena;
use crate::wire::{Answer, Raw, post, text};

/// What a client with a session says in front of everything.
const VERSION: &str = "MCP-Protocol-Version: 2025-11-25\r\n";

pub(crate) const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"abuser","version":"1.0"}}}"#;

const READY: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Sessions that end soon after they were left.
pub(crate) fn short() -> HttpOptions {
    let options =
        SessionOptions::default().idle_timeout(Some(Duration::from_secs(10))).sweep_interval(Duration::from_millis(20));
    HttpOptions::default().session_options(options).orphaned_request_timeout(Duration::from_millis(100))
}

/// A session, by its name.
#[derive(Clone)]
pub(crate) struct Session(pub(crate) String);

impl Session {
    /// Shakes hands, as one does.
    pub(crate) async fn begin(arena: &Arena) -> Self {
        let mut client = arena.connect().await;
        client.send(&post("", HELLO.as_bytes())).await;
        let answer = client.answer().await.expect("an answer");
        let id = answer.header("mcp-session-id").unwrap_or_else(|| panic!("no session: {answer:?}"));
        let session = Self(id.to_owned());
        client.send(&session.post(READY)).await;
        assert_eq!(client.answer().await.map(|answer| answer.status), Some(202));
        session
    }

    fn headers(&self) -> String {
        format!("{VERSION}Mcp-Session-Id: {}\r\n", self.0)
    }

    pub(crate) fn post(&self, body: &[u8]) -> Vec<u8> {
        post(&self.headers(), body)
    }

    pub(crate) fn call(&self, id: usize, tool: &str, arguments: &str) -> Vec<u8> {
        let params = format!(r#"{{"_meta":{{"progressToken":{id}}},"name":"{tool}","arguments":{arguments}}}"#);
        self.post(request(id, "tools/call", &params).as_bytes())
    }

    pub(crate) fn get(&self, last: Option<&str>) -> Vec<u8> {
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        self.without_body("GET", &last)
    }

    pub(crate) fn delete(&self) -> Vec<u8> {
        self.without_body("DELETE", "")
    }

    fn without_body(&self, verb: &str, more: &str) -> Vec<u8> {
        let headers = self.headers();
        format!("{verb} /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{headers}{more}\r\n")
            .into_bytes()
    }

    /// It does what a session does.
    pub(crate) async fn works(&self, arena: &Arena) {
        let mut client = arena.connect().await;
        client.send(&self.call(1_000_000, "echo", r#"{"text":"still mine"}"#)).await;
        let answer = client.answer().await.expect("an answer");
        assert_eq!((answer.status, text(&answer.body).as_str()), (200, "still mine"), "{answer:?}");
    }

    /// Opens the stream of the session, or goes on with one; gives it with its first event.
    pub(crate) async fn stream(&self, arena: &Arena, last: Option<&str>) -> (Raw, String) {
        let mut client = arena.connect().await;
        client.send(&self.get(last)).await;
        let head = client.head().await.expect("an answer");
        assert_eq!(head.status, 200, "{head:?}");
        let first = client.chunk().await.map(|chunk| String::from_utf8(chunk).expect("text")).unwrap_or_default();
        (client, first)
    }

    /// Wants to hear of changes.
    pub(crate) async fn subscribe(&self, arena: &Arena) {
        let body = request(1, "resources/subscribe", r#"{"uri":"test:text"}"#);
        assert_eq!(arena.status(&self.post(body.as_bytes())).await, Some(200));
    }

    /// Calls `ask` on a connection of its own; gives that with the id of the question.
    pub(crate) async fn asked(&self, arena: &Arena, id: usize) -> (Raw, String) {
        let mut client = arena.connect().await;
        client.send(&self.call(id, "ask", "{}")).await;
        let head = client.head().await.expect("an answer");
        assert_eq!(head.status, 200, "{head:?}");
        let mut events = String::new();
        while !events.contains("elicitation/create") || !events.ends_with("\n\n") {
            events.push_str(&String::from_utf8(client.chunk().await.expect("a question")).expect("text"));
        }
        let question: serde_json::Value = data(&events).pop().expect("a question");
        (client, question["id"].to_string())
    }

    pub(crate) async fn end(self, arena: &Arena) {
        assert_eq!(arena.status(&self.delete()).await, Some(204));
    }
}

pub(crate) fn request(id: usize, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// What the client says to a question.
pub(crate) fn accept(id: &str, word: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept","content":{{"word":"{word}"}}}}}}"#)
}

/// The messages of events.
pub(crate) fn data(events: &str) -> Vec<serde_json::Value> {
    let lines = events.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

/// The ids of events.
pub(crate) fn ids(events: &str) -> Vec<String> {
    events.lines().filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned).collect()
}

/// All that is said until the end.
pub(crate) async fn all_of(client: &mut Raw) -> String {
    let mut all = String::new();
    while let Some(chunk) = client.chunk().await {
        all.push_str(&String::from_utf8(chunk).expect("text"));
    }
    all
}

/// Sends something on a connection of its own.
pub(crate) async fn ask(arena: &Arena, bytes: &[u8]) -> Answer {
    let mut client = arena.connect().await;
    client.try_send(bytes).await;
    client.answer().await.expect("an answer")
}
