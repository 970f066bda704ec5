//! Whether an answer is the right one, found out in a few nanoseconds.
//!
//! The answers of a server to the same call differ in the id only. So one of them is read with
//! care, and cut into what comes before, between and after the ids; the others need only match.

use serde_json::Value;

use crate::dialect::{self, DIGITS};

/// What all the answers of a server look like.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// Between any two of these is the id of the call.
    parts: Vec<Vec<u8>>,
    length: usize,
}

impl Pattern {
    /// Learns from the line that answers the call with this id.
    pub(crate) fn learn(line: &[u8], id: u64) -> Result<Self, String> {
        match read(line)? {
            Some(read) if read == id => {}
            other => return Err(format!("expected the answer to {id}, got that to {other:?}")),
        }
        let line = String::from_utf8_lossy(line);
        let parts = line.split(&id.to_string()).map(|part| part.as_bytes().to_vec()).collect();
        Ok(Self { parts, length: line.len() })
    }

    /// Returns the id of the answer at the start of the bytes and what follows on its line, if it looks like the others.
    pub(crate) fn strip<'a>(&self, bytes: &'a [u8]) -> Option<(u64, &'a [u8])> {
        let (line, rest) = bytes.split_at_checked(self.length)?;
        let rest = rest.strip_prefix(b"\n")?;
        let (first, others) = self.parts.split_first()?;
        let mut line = line.strip_prefix(first.as_slice())?;
        let digits = line.get(..DIGITS)?;
        for part in others {
            line = line.strip_prefix(digits)?.strip_prefix(part.as_slice())?;
        }
        Some((number(digits)?, rest))
    }
}

/// Reads any line with care; returns the id if it is the answer to a call, and nothing if it is a notification.
pub(crate) fn read(line: &[u8]) -> Result<Option<u64>, String> {
    let shown = || String::from_utf8_lossy(line).chars().take(300).collect::<String>();
    let message: Value = serde_json::from_slice(line).map_err(|error| format!("{error} in `{}`", shown()))?;
    if message.get("id").is_none() && message.get("method").is_some() {
        return Ok(None);
    }
    let result = &message["result"];
    let Some(id) = message["id"].as_u64() else { return Err(format!("no id of ours in `{}`", shown())) };
    let [block] = result["content"].as_array().map(Vec::as_slice).unwrap_or_default() else {
        return Err(format!("not a single content in `{}`", shown()));
    };
    let is_right = message["jsonrpc"] == "2.0"
        && block["type"] == "text"
        && block["text"] == dialect::text(id)
        && result.get("isError").is_none_or(|is_error| *is_error == false)
        && result.get("structuredContent").is_none();
    if is_right { Ok(Some(id)) } else { Err(format!("a wrong answer: `{}`", shown())) }
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: u64) -> String {
        let text = dialect::text(id).replace('\n', "\\n");
        format!(r#"{{"id":{id},"jsonrpc":"2.0","result":{{"content":[{{"text":"{text}","type":"text"}}]}}}}"#)
    }

    #[test]
    fn what_matches_is_taken_off() {
        let pattern = Pattern::learn(line(98_765_432).as_bytes(), 98_765_432).unwrap();
        let bytes = format!("{}\nrest", line(10_000_001));
        assert_eq!(pattern.strip(bytes.as_bytes()), Some((10_000_001, b"rest".as_slice())));
    }

    #[test]
    fn another_text_or_half_a_line_does_not_match() {
        let pattern = Pattern::learn(line(98_765_432).as_bytes(), 98_765_432).unwrap();
        let bytes = format!("{}\n", line(10_000_001).replace("001\"", "002\""));
        assert_eq!(pattern.strip(bytes.as_bytes()), None);
        assert!(read(bytes.as_bytes()).is_err());
        assert_eq!(pattern.strip(line(10_000_001).as_bytes()), None);
    }

    #[test]
    fn notifications_are_told_apart() {
        assert_eq!(read(br#"{"jsonrpc":"2.0","method":"notifications/message"}"#), Ok(None));
        assert!(read(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#).is_err());
    }
}
