//! Whether an answer is the right one, found out in a few nanoseconds.
//!
//! The answers of a server to the same call differ in the id only. So one of them is read with
//! care, and cut into what comes before, between and after the ids; the others need only match.

use serde_json::Value;

use crate::process::Mode;
use crate::request::{self, Kind, digits};

/// What all the answers of a server to one kind of requests look like.
#[derive(Debug, Default)]
pub(crate) struct Pattern {
    /// Between any two of these is the id of the call.
    parts: Vec<Vec<u8>>,
    /// What was left of a stream when the ids of its events were taken off.
    messages: Vec<u8>,
    /// How many answers did not look like the one that was learnt, and had to be read with care.
    pub(crate) unlike: u64,
}

impl Pattern {
    /// Checks the answer to the call with this id; the first one becomes the pattern.
    pub(crate) fn check(&mut self, kind: Kind, body: &[u8], id: u64) -> Result<(), String> {
        if kind.mode() == Mode::NoSessions || body.starts_with(b"{") {
            return self.check_messages(kind, body, id);
        }
        let mut messages = std::mem::take(&mut self.messages);
        strip(body, &mut messages);
        let outcome = self.check_messages(kind, &messages, id);
        self.messages = messages;
        outcome
    }

    fn check_messages(&mut self, kind: Kind, body: &[u8], id: u64) -> Result<(), String> {
        if self.matches(body, id) {
            return Ok(());
        }
        let read = if kind.is_listening() { read_change } else { read };
        read(kind, body, id).map_err(|error| format!("{error}: {}", String::from_utf8_lossy(body)))?;
        if self.parts.is_empty() {
            let body = String::from_utf8_lossy(body);
            self.parts = body.split(&id.to_string()).map(|part| part.as_bytes().to_vec()).collect();
        } else {
            self.unlike += 1;
        }
        Ok(())
    }

    fn matches(&self, body: &[u8], id: u64) -> bool {
        let digits = digits(id);
        let mut parts = self.parts.iter();
        let Some(mut rest) = parts.next().and_then(|part| body.strip_prefix(part.as_slice())) else { return false };
        for part in parts {
            let next = rest.strip_prefix(&digits).and_then(|rest| rest.strip_prefix(part.as_slice()));
            let Some(next) = next else { return false };
            rest = next;
        }
        rest.is_empty()
    }
}

/// Reads an answer with care.
fn read(kind: Kind, body: &[u8], id: u64) -> Result<(), String> {
    let reports = kind.notifications();
    // In sessions there may be a stream of the result alone.
    let is_stream = reports > 0 || kind.mode() == Mode::Sessions && !body.starts_with(b"{");
    let messages = if is_stream { events(body)? } else { vec![parse(body)?] };
    let Some((answer, notifications)) = messages.split_last() else { return Err("nothing".to_owned()) };
    if notifications.len() != reports {
        return Err(format!("{} notifications and not {reports}", notifications.len()));
    }
    for (index, notification) in notifications.iter().enumerate() {
        let params = &notification["params"];
        let is_right = notification["method"] == "notifications/progress"
            && params["progressToken"] == id
            && params["progress"].as_f64() == Some(index as f64 + 1.0)
            && params["total"].as_f64() == Some(3.0);
        if !is_right {
            return Err("a wrong notification".to_owned());
        }
    }
    let result = &answer["result"];
    let [block] = result["content"].as_array().map(Vec::as_slice).unwrap_or_default() else {
        return Err("not a single content".to_owned());
    };
    let is_modern = kind.is_modern();
    let is_right = answer["jsonrpc"] == "2.0"
        && answer["id"] == id
        && block["type"] == "text"
        && block["text"] == request::text(id)
        && result.get("isError").is_none_or(|is_error| *is_error == false)
        && (result["resultType"] == "complete") == is_modern;
    if is_right { Ok(()) } else { Err("a wrong answer".to_owned()) }
}

/// Reads what a listener is told of a change.
fn read_change(kind: Kind, body: &[u8], id: u64) -> Result<(), String> {
    let messages = events(body)?;
    let [notification] = messages.as_slice() else { return Err(format!("{} messages", messages.len())) };
    let is_right = notification["method"] == "notifications/tools/list_changed"
        && (kind == Kind::SessionListen || notification["params"]["_meta"][SUBSCRIPTION_ID] == id);
    if is_right { Ok(()) } else { Err("a wrong notification".to_owned()) }
}

/// Checks that a stream begins with the acknowledgement of the request with this id.
pub(crate) fn check_acknowledgement(body: &[u8], id: u64) -> Result<(), String> {
    let messages = events(body)?;
    let is_right = messages.first().is_some_and(|message| {
        message["method"] == "notifications/subscriptions/acknowledged"
            && message["params"]["_meta"][SUBSCRIPTION_ID] == id
            && message["params"]["notifications"]["toolsListChanged"] == true
    });
    if is_right { Ok(()) } else { Err(format!("not acknowledged: {}", String::from_utf8_lossy(body))) }
}

/// Whether a stream has a message yet: it may begin with an event that only has an id.
pub(crate) fn has_message(body: &[u8]) -> bool {
    lines_with_data(body).next().is_some()
}

/// Leaves only the messages of a stream: its events have ids, which change.
fn strip(body: &[u8], messages: &mut Vec<u8>) {
    messages.clear();
    for line in lines_with_data(body) {
        messages.extend_from_slice(line);
        messages.extend_from_slice(b"\n\n");
    }
}

fn lines_with_data(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = body.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"data:"));
    lines.filter(|line| !line["data:".len()..].trim_ascii().is_empty())
}

/// Reads the messages of a stream; comments and events without data are passed over.
fn events(body: &[u8]) -> Result<Vec<Value>, String> {
    lines_with_data(body).map(|line| parse(&line["data:".len()..])).collect()
}

fn parse(text: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(text).map_err(|error| error.to_string())
}

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

#[cfg(test)]
mod tests {
    use super::*;

    fn body(id: u64) -> String {
        let text = request::text(id).replace('\n', "\\n");
        format!(r#"{{"id":{id},"jsonrpc":"2.0","result":{{"content":[{{"text":"{text}","type":"text"}}]}}}}"#)
    }

    #[test]
    fn the_first_answer_is_learnt() {
        let mut pattern = Pattern::default();
        for id in [12_345_678, 12_345_679] {
            assert_eq!(pattern.check(Kind::Legacy, body(id).as_bytes(), id), Ok(()));
            assert!(pattern.matches(body(id).as_bytes(), id));
        }
        assert_eq!(pattern.unlike, 0);
    }

    #[test]
    fn an_answer_in_a_session_may_be_an_event() {
        let mut pattern = Pattern::default();
        for id in [12_345_678, 12_345_679] {
            let stream = format!("id: {id}/7\ndata: {}\n\n", body(id));
            assert_eq!(pattern.check(Kind::Session, stream.as_bytes(), id), Ok(()));
            assert!(pattern.check(Kind::Session, [stream.as_str(), &stream].concat().as_bytes(), id).is_err());
        }
        assert_eq!(pattern.unlike, 0);
        assert_eq!(pattern.check(Kind::Session, body(12_345_678).as_bytes(), 12_345_678), Ok(()));
    }

    #[test]
    fn a_wrong_answer_is_found() {
        let mut pattern = Pattern::default();
        assert_eq!(pattern.check(Kind::Legacy, body(12_345_678).as_bytes(), 12_345_678), Ok(()));
        assert!(pattern.check(Kind::Legacy, body(12_345_678).as_bytes(), 12_345_679).is_err());
        assert!(pattern.check(Kind::Modern, body(12_345_679).as_bytes(), 12_345_679).is_ok(), "it looks the same");
        assert!(Pattern::default().check(Kind::Modern, body(12_345_679).as_bytes(), 12_345_679).is_err());
    }
}
