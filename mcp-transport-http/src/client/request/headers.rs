//! The headers of requests.

use std::collections::BTreeMap;

use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use mcp_client::{CredentialFingerprint, OutgoingMessage, SessionLossReason};
use mcp_types::{Era, Method, Revision};

use crate::header_encoding;
use crate::rules::header_names::{EVENT_STREAM, JSON, LAST_EVENT, METHOD, NAME, PARAM_PREFIX, SESSION, VERSION};

/// The session that requests are sent in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    pub(crate) id: Option<HeaderValue>,
    /// How many sessions were lost before this one.
    pub(crate) generation: u64,
    /// The credentials that the session was started with, and must be used with.
    pub(crate) owner: Option<CredentialFingerprint>,
}

/// The loss of a session.
pub(crate) struct SessionLost {
    pub(crate) generation: u64,
    pub(crate) reason: SessionLossReason,
}

impl Session {
    /// The loss of this session, which the server responded to with a status.
    pub(crate) fn lost_with_status(&self, status: StatusCode) -> SessionLost {
        SessionLost { generation: self.generation, reason: SessionLossReason::Unknown { status: status.as_u16() } }
    }

    /// The loss of this session, because it was started with other credentials than the current ones.
    pub(crate) fn credentials_changed(&self) -> SessionLost {
        SessionLost { generation: self.generation, reason: SessionLossReason::CredentialsChanged }
    }
}

/// Whether a header is set by the transport, and not by the application.
pub(crate) fn is_reserved(name: &HeaderName) -> bool {
    [ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING, LAST_EVENT, METHOD, NAME, SESSION, VERSION].contains(name)
        || name.as_str().starts_with(PARAM_PREFIX)
}

/// Returns the headers of a POST.
// H-8, H-9, H-40..H-49, B-102, DU-44
pub(crate) fn for_message(
    outgoing: &OutgoingMessage,
    session: &Session,
    tools: &mut ToolNames,
) -> Result<HeaderMap, String> {
    // The HTTP client copies the headers without their spare room, and would have to make room for the length.
    let mut head = HeaderMap::with_capacity(12);
    head.insert(CONTENT_LENGTH, HeaderValue::from(outgoing.message.len()));
    head.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    head.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    match outgoing.revision {
        Some(revision) if revision.era() == Era::Modern => {
            head.insert(VERSION, HeaderValue::from_static(revision.as_str()));
            if let Some(method) = &outgoing.method {
                head.insert(METHOD, method_value(method)?);
            }
            if let Some(name) = &outgoing.headers.name {
                let is_tool = outgoing.method == Some(Method::TOOLS_CALL);
                head.insert(NAME, if is_tool { tools.value(name)? } else { encoded(name)? });
            }
            for (name, text) in &outgoing.headers.params {
                let name = HeaderName::try_from(format!("{PARAM_PREFIX}{name}"))
                    .map_err(|_| format!("the tool declares an invalid header: `Mcp-Param-{name}`"))?;
                head.insert(name, encoded(text)?);
            }
        }
        // `initialize` belongs to no session or revision yet.
        _ if outgoing.method == Some(Method::INITIALIZE) => {}
        revision => legacy(&mut head, revision, session),
    }
    Ok(head)
}

/// Returns the headers of a GET that opens a stream, or resumes it after an event.
// B-101
pub(crate) fn for_stream(revision: Option<Revision>, session: &Session, last_event: Option<&HeaderValue>) -> HeaderMap {
    let mut head = HeaderMap::new();
    head.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
    legacy(&mut head, revision, session);
    if let Some(last_event) = last_event {
        head.insert(LAST_EVENT, last_event.clone());
    }
    head
}

/// Returns the headers of a DELETE that ends a session.
pub(crate) fn for_delete(revision: Option<Revision>, session: &Session) -> HeaderMap {
    let mut head = HeaderMap::new();
    legacy(&mut head, revision, session);
    head
}

fn legacy(head: &mut HeaderMap, revision: Option<Revision>, session: &Session) {
    if let Some(revision) = revision.filter(|revision| *revision >= Revision::V2025_06_18) {
        head.insert(VERSION, HeaderValue::from_static(revision.as_str()));
    }
    if let Some(id) = &session.id {
        head.insert(SESSION, id.clone());
    }
}

/// The header values of tools that were called. An HTTP request is copied several times before it is sent, and a copy of a
/// new value allocates.
#[derive(Default)]
pub(crate) struct ToolNames(BTreeMap<String, HeaderValue>);

/// The maximum number of names that are kept, and the maximum length of one.
const MAX_NAMES: usize = 256;
const MAX_NAME_BYTES: usize = 128;

impl ToolNames {
    fn value(&mut self, name: &str) -> Result<HeaderValue, String> {
        if let Some(value) = self.0.get(name) {
            return Ok(value.clone());
        }
        let value = encoded(name)?;
        if name.len() <= MAX_NAME_BYTES {
            if self.0.len() >= MAX_NAMES {
                self.0.clear();
            }
            self.0.insert(name.to_owned(), value.clone());
        }
        Ok(value)
    }
}

/// Creates the header value of a method, without an allocation for those of the protocol.
fn method_value(method: &Method) -> Result<HeaderValue, String> {
    match Method::KNOWN.iter().find(|known| *known == method) {
        Some(known) => Ok(HeaderValue::from_static(known.as_str())),
        None => value(method.as_str()),
    }
}

/// Creates a header value from any text.
fn encoded(text: &str) -> Result<HeaderValue, String> {
    value(&header_encoding::encode(text))
}

/// Creates a header value.
fn value(text: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(text).map_err(|_| format!("{text:?} has characters that are not allowed in a header"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are kept, within bounds, and do not change what is sent.
    #[test]
    fn tool_names_are_bounded() {
        let mut tools = ToolNames::default();
        for name in ["echo", "echo", " \u{e9}", " \u{e9}"] {
            assert_eq!(tools.value(name).unwrap(), header_encoding::encode(name).as_ref());
        }
        assert_eq!(tools.0.len(), 2);
        tools.value(&"x".repeat(MAX_NAME_BYTES + 1)).unwrap();
        assert_eq!(tools.0.len(), 2);
        for number in 0..1000 {
            assert_eq!(tools.value(&number.to_string()).unwrap(), number.to_string());
            assert!(tools.0.len() <= MAX_NAMES);
        }
    }

    #[test]
    fn every_method_has_a_header_value() {
        for method in Method::KNOWN.iter().cloned().chain([Method::from("x/own")]) {
            assert_eq!(method_value(&method).unwrap(), method.as_str());
        }
        assert!(method_value(&Method::from("a\nb")).is_err());
    }
}
