//! What the driver asks, ready to be sent: only the id changes.

use std::fmt;

use crate::process::Mode;

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `tools/call` in 2026-07-28, answered with plain JSON.
    Modern,
    /// The same with an access token.
    Token,
    /// `tools/call` in 2026-07-28, answered with a stream of three notifications and the result.
    Progress,
    /// `tools/call` in 2025-11-25, without a session.
    Legacy,
    /// `tools/call` in 2025-11-25, in a session; answered with plain JSON or with a stream of the result.
    Session,
    /// The same, answered with a stream of three notifications and the result.
    SessionProgress,
    /// `subscriptions/listen` in 2026-07-28, answered with a stream that stays open.
    Listen,
    /// `tools/call` in 2026-07-28 of the tool that all listeners hear of.
    Change,
    /// The `GET` of a session, answered with a stream that stays open.
    SessionListen,
    /// `tools/call` in a session of the tool that all sessions hear of.
    SessionChange,
}

impl Kind {
    pub(crate) const ALL: &'static [Self] = &[
        Self::Modern,
        Self::Token,
        Self::Progress,
        Self::Legacy,
        Self::Session,
        Self::SessionProgress,
        Self::Listen,
        Self::Change,
        Self::SessionListen,
        Self::SessionChange,
    ];

    /// What a server has to do for legacy clients.
    pub(crate) fn mode(self) -> Mode {
        match self {
            Self::Session | Self::SessionProgress | Self::SessionListen | Self::SessionChange => Mode::Sessions,
            Self::Modern | Self::Token | Self::Progress | Self::Legacy | Self::Listen | Self::Change => {
                Mode::NoSessions
            }
        }
    }

    /// How many notifications come before the result.
    pub(crate) fn notifications(self) -> usize {
        match self {
            Self::Progress | Self::SessionProgress => 3,
            Self::Modern
            | Self::Token
            | Self::Legacy
            | Self::Session
            | Self::Listen
            | Self::Change
            | Self::SessionListen
            | Self::SessionChange => 0,
        }
    }

    pub(crate) fn is_modern(self) -> bool {
        self.mode() == Mode::NoSessions && self != Self::Legacy
    }

    /// Whether all that is told comes on a stream that stays open.
    pub(crate) fn is_listening(self) -> bool {
        matches!(self, Self::Listen | Self::SessionListen)
    }

    /// The tool that is called.
    fn tool(self) -> &'static str {
        match self {
            Self::Modern | Self::Token | Self::Legacy | Self::Session | Self::Listen | Self::SessionListen => "echo",
            Self::Progress | Self::SessionProgress => "progress",
            Self::Change | Self::SessionChange => "change",
        }
    }

    /// Writes a request, whose ids are all [`PLACE`]; those of a session name it.
    fn write(self, authority: &str, session: &str) -> String {
        let arguments = format!(r#""name":"{}","arguments":{{"text":"{TEXT}{PLACE}"}}"#, self.tool());
        let token = if self == Self::Progress { format!(r#""progressToken":{PLACE},"#) } else { String::new() };
        let (method, params) = match self {
            Self::SessionListen => {
                let headers = in_session(session);
                return format!("GET /mcp HTTP/1.1\r\nHost: {authority}\r\nAccept: text/event-stream\r\n{headers}\r\n");
            }
            Self::Modern | Self::Token | Self::Progress | Self::Change => {
                ("tools/call", format!(r#"{arguments},"_meta":{{{token}{META}}}"#))
            }
            Self::Legacy | Self::Session | Self::SessionChange => ("tools/call", arguments),
            Self::SessionProgress => ("tools/call", format!(r#"{arguments},"_meta":{{"progressToken":{PLACE}}}"#)),
            Self::Listen => {
                ("subscriptions/listen", format!(r#""notifications":{{"toolsListChanged":true}},"_meta":{{{META}}}"#))
            }
        };
        let body = format!(r#"{{"jsonrpc":"2.0","id":{PLACE},"method":"{method}","params":{{{params}}}}}"#);
        let headers = match self {
            Self::Legacy => "MCP-Protocol-Version: 2025-11-25\r\n".to_owned(),
            Self::Session | Self::SessionProgress | Self::SessionListen | Self::SessionChange => in_session(session),
            Self::Listen => format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n"),
            Self::Modern | Self::Token | Self::Progress | Self::Change => {
                let tool = self.tool();
                let token = if self == Self::Token { authorization() } else { String::new() };
                format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\nMcp-Name: {tool}\r\n{token}")
            }
        };
        post(authority, &headers, &body)
    }
}

/// Writes the request that begins a session.
pub(crate) fn initialize(authority: &str) -> String {
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1.0"}}"#;
    post(authority, "", &format!(r#"{{"jsonrpc":"2.0","id":{FIRST},"method":"initialize","params":{params}}}"#))
}

/// Writes what a client says after the answer to [`initialize`].
pub(crate) fn initialized(authority: &str, session: &str) -> String {
    post(authority, &in_session(session), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
}

/// An access token of the usual length, in which there are no digits of an id.
fn authorization() -> String {
    format!("Authorization: Bearer {}\r\n", "abcdefgh".repeat(60))
}

fn in_session(session: &str) -> String {
    format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n")
}

fn post(authority: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Modern => "modern JSON",
            Self::Token => "modern JSON with an access token",
            Self::Progress => "modern SSE, three notifications",
            Self::Legacy => "stateless legacy",
            Self::Session => "stateful legacy",
            Self::SessionProgress => "stateful legacy SSE, three notifications",
            Self::Listen => "listen",
            Self::Change => "change",
            Self::SessionListen => "stream of a session",
            Self::SessionChange => "change in a session",
        })
    }
}

/// A request that is sent many times.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    /// Where ids are.
    places: Vec<usize>,
}

impl Request {
    pub(crate) fn new(kind: Kind, authority: &str) -> Self {
        Self::in_session(kind, authority, "none")
    }

    /// Prepares a request of a session.
    pub(crate) fn in_session(kind: Kind, authority: &str, session: &str) -> Self {
        let text = kind.write(authority, session);
        let outside = |place: &usize| text.split_once("\r\n\r\n").is_none_or(|(head, _)| *place > head.len());
        // The name of a session could have the same digits.
        let places = text.match_indices(PLACE).map(|(place, _)| place).filter(outside).collect();
        Self { bytes: text.into_bytes(), places }
    }

    /// Puts the id in, and returns what is to be sent.
    pub(crate) fn with_id(&mut self, id: u64) -> &[u8] {
        let digits = digits(id);
        for place in &self.places {
            self.bytes[*place..][..DIGITS].copy_from_slice(&digits);
        }
        &self.bytes
    }
}

/// Writes an id, of which all have as many digits.
pub(crate) fn digits(id: u64) -> [u8; DIGITS] {
    let mut digits = [0; DIGITS];
    let mut rest = id;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    digits
}

/// The text that a call with this id is to return, decoded.
pub(crate) fn text(id: u64) -> String {
    format!("{}{id}", TEXT.replace("\\n", "\n"))
}

/// The smallest id.
pub(crate) const FIRST: u64 = 10_000_000;

/// The number of digits of an id.
pub(crate) const DIGITS: usize = 8;

/// Stands where an id goes; it is found nowhere else.
const PLACE: &str = "98765432";

/// What a call returns, up to its id.
///
/// The line break has every server decode the text, and encode it again.
const TEXT: &str = "src/jsonrpc/incoming.rs:38:\\n    pub(super) fn parse_single(bytes: &[u8]) // ";

const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0"}"#;

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_length_is_that_of_the_body() {
        for kind in Kind::ALL.iter().filter(|kind| **kind != Kind::SessionListen) {
            let mut request = Request::new(*kind, "127.0.0.1:80");
            let text = String::from_utf8(request.with_id(12_345_678).to_vec()).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
            let message: Value = serde_json::from_str(body).unwrap();
            assert_eq!(message["id"], 12_345_678);
        }
    }

    #[test]
    fn a_call_asks_for_the_text_that_is_expected() {
        let mut request = Request::new(Kind::Progress, "127.0.0.1:80");
        let text = String::from_utf8(request.with_id(12_345_678).to_vec()).unwrap();
        let call: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(call["params"]["arguments"]["text"], super::text(12_345_678));
        assert_eq!(call["params"]["_meta"]["progressToken"], 12_345_678);
    }
}
