//! What the driver asks, ready to be sent: only the id changes.

use std::fmt;

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `tools/call` in 2026-07-28, answered with plain JSON.
    Modern,
    /// `tools/call` in 2026-07-28, answered with a stream of three notifications and the result.
    Progress,
    /// `tools/call` in 2025-11-25, without a session.
    Legacy,
    /// `subscriptions/listen` in 2026-07-28, answered with a stream that stays open.
    Listen,
    /// `tools/call` in 2026-07-28 of the tool that all listeners hear of.
    Change,
}

impl Kind {
    pub(crate) const ALL: &'static [Self] = &[Self::Modern, Self::Progress, Self::Legacy, Self::Listen, Self::Change];

    /// The tool that is called.
    fn tool(self) -> &'static str {
        match self {
            Self::Modern | Self::Legacy | Self::Listen => "echo",
            Self::Progress => "progress",
            Self::Change => "change",
        }
    }

    /// Writes a request, whose ids are all [`PLACE`].
    fn write(self, authority: &str) -> String {
        let arguments = format!(r#""name":"{}","arguments":{{"text":"{TEXT}{PLACE}"}}"#, self.tool());
        let token = if self == Self::Progress { format!(r#""progressToken":{PLACE},"#) } else { String::new() };
        let (method, params) = match self {
            Self::Modern | Self::Progress | Self::Change => {
                ("tools/call", format!(r#"{arguments},"_meta":{{{token}{META}}}"#))
            }
            Self::Legacy => ("tools/call", arguments),
            Self::Listen => {
                ("subscriptions/listen", format!(r#""notifications":{{"toolsListChanged":true}},"_meta":{{{META}}}"#))
            }
        };
        let body = format!(r#"{{"jsonrpc":"2.0","id":{PLACE},"method":"{method}","params":{{{params}}}}}"#);
        let headers = match self {
            Self::Legacy => "MCP-Protocol-Version: 2025-11-25\r\n".to_owned(),
            Self::Listen => format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n"),
            Self::Modern | Self::Progress | Self::Change => {
                let tool = self.tool();
                format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\nMcp-Name: {tool}\r\n")
            }
        };
        let length = body.len();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Modern => "modern JSON",
            Self::Progress => "modern SSE, three notifications",
            Self::Legacy => "stateless legacy",
            Self::Listen => "listen",
            Self::Change => "change",
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
        let text = kind.write(authority);
        let places = text.match_indices(PLACE).map(|(place, _)| place).collect();
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
        for kind in Kind::ALL {
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
