//! The headers of requests.

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
pub(crate) fn for_message(outgoing: &OutgoingMessage, session: &Session) -> Result<HeaderMap, String> {
    // There is room for the headers that the HTTP client adds.
    let mut head = HeaderMap::with_capacity(12);
    head.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    head.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    match outgoing.revision {
        Some(revision) if revision.era() == Era::Modern => {
            head.insert(VERSION, HeaderValue::from_static(revision.as_str()));
            if let Some(method) = &outgoing.method {
                head.insert(METHOD, value(method.as_str())?);
            }
            if let Some(name) = &outgoing.headers.name {
                head.insert(NAME, value(&header_encoding::encode(name))?);
            }
            for (name, text) in &outgoing.headers.params {
                let name = HeaderName::try_from(format!("{PARAM_PREFIX}{name}"))
                    .map_err(|_| format!("the tool declares an invalid header: `Mcp-Param-{name}`"))?;
                head.insert(name, value(&header_encoding::encode(text))?);
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

/// Creates a header value.
fn value(text: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(text).map_err(|_| format!("{text:?} has characters that are not allowed in a header"))
}
