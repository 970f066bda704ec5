//! What the driver says, in the words of an older revision and in those of the newest.

use std::fmt;

/// How a client talks to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// A handshake once, after which requests are bare: up to 2025-11-25.
    Legacy,
    /// No handshake, every request says who asks: from 2026-07-28.
    Modern,
}

/// The id of the request that opens the conversation.
pub(crate) const OPENING_ID: u64 = 1;

/// The id of the request for the list of tools.
pub(crate) const LIST_ID: u64 = 2;

/// The smallest id of a call. All ids of calls have as many digits, and so all calls have one length.
pub(crate) const FIRST_CALL: u64 = 10_000_000;

/// The number of digits of the id of a call.
pub(crate) const DIGITS: usize = 8;

/// What a call has returned, up to the id of the call.
///
/// The line break has every server decode the text, and encode it again.
const TEXT: &str = "src/jsonrpc/incoming.rs:38:\\n    pub(super) fn parse_single(bytes: &[u8]) // ";

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0"}}"#;

impl Dialect {
    /// The first request, whose answer shows that the server is up.
    pub(crate) fn opening(self) -> String {
        match self {
            Self::Legacy => format!(
                r#"{{"jsonrpc":"2.0","id":{OPENING_ID},"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1.0"}}}}}}{}"#,
                '\n'
            ),
            Self::Modern => request(OPENING_ID, "server/discover", META),
        }
    }

    /// What follows on the answer to the opening, if anything does.
    pub(crate) fn opened(self) -> &'static str {
        match self {
            Self::Legacy => "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n",
            Self::Modern => "",
        }
    }

    pub(crate) fn list(self) -> String {
        request(LIST_ID, "tools/list", self.meta())
    }

    /// The text of a call, in parts: between any two of them goes the id.
    pub(crate) fn call(self) -> [String; 3] {
        let separator = if self.meta().is_empty() { "" } else { "," };
        [
            r#"{"jsonrpc":"2.0","id":"#.to_owned(),
            format!(r#","method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{TEXT}"#),
            format!("\"}}{separator}{}}}}}\n", self.meta()),
        ]
    }

    fn meta(self) -> &'static str {
        match self {
            Self::Legacy => "",
            Self::Modern => META,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        })
    }
}

/// The text that a call with this id is to return, decoded.
pub(crate) fn text(id: u64) -> String {
    format!("{}{id}", TEXT.replace("\\n", "\n"))
}

fn request(id: u64, method: &str, params: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{{params}}}}}\n")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_message_is_a_line_of_json() {
        for dialect in [Dialect::Legacy, Dialect::Modern] {
            for message in [dialect.opening(), dialect.list(), dialect.call().join("10000000")] {
                assert!(message.ends_with('\n') && !message.trim_end().contains('\n'));
                assert!(serde_json::from_str::<Value>(&message).unwrap()["id"].is_u64(), "{message}");
            }
        }
    }

    #[test]
    fn a_call_asks_for_the_text_that_is_expected() {
        let call: Value = serde_json::from_str(&Dialect::Modern.call().join("12345678")).unwrap();
        assert_eq!(call["params"]["arguments"]["text"], text(12_345_678));
        assert_eq!(FIRST_CALL.to_string().len(), DIGITS);
    }
}
