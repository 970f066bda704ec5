//! The head of a request, read once.

use std::sync::Arc;

use http::Method as Verb;
use http::request::Parts;
use mcp_server::{AuthInfo, Caller, Principal};
use mcp_session::SessionId;
use mcp_types::Era;

use super::expiry::StreamEnd;
use super::refusal::Refusal;
use super::service::ValidUntil;
use crate::rules::headers::VersionHeader;
use crate::rules::request_headers::{Occurrence, RequestHeaders};

/// The head of a request, with the revision, session and user that its headers name.
pub(crate) struct RequestHead {
    /// For handlers, and for `HttpOptions::select_server`.
    pub(crate) parts: Arc<Parts>,
    pub(crate) version: VersionHeader,
    pub(crate) session: SessionHeader,
    pub(crate) principal: Option<Principal>,
}

/// The `Mcp-Session-Id` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionHeader {
    Missing,
    /// Not an id that a session can have.
    Invalid,
    Id(SessionId),
}

impl SessionHeader {
    fn read(header: Occurrence<'_>) -> Self {
        match header {
            Occurrence::Missing => Self::Missing,
            Occurrence::Once(id) => SessionId::parse(id.as_bytes().trim_ascii()).map_or(Self::Invalid, Self::Id),
            Occurrence::Repeated => Self::Invalid,
        }
    }
}

impl RequestHead {
    /// Reads the head of a request, which `check` may refuse. A service without sessions ignores session ids.
    ///
    /// # Errors
    ///
    /// Returns the error of `check`.
    pub(crate) fn new(
        parts: Parts,
        has_sessions: bool,
        check: impl FnOnce(&Parts, &RequestHeaders<'_>) -> Result<(), Refusal>,
    ) -> Result<Self, Refusal> {
        let headers = RequestHeaders::read(&parts.headers);
        check(&parts, &headers)?;
        let version = VersionHeader::read(headers.version);
        let session = if has_sessions { SessionHeader::read(headers.session) } else { SessionHeader::Missing };
        let principal = match parts.extensions.get::<Arc<AuthInfo>>() {
            Some(auth) => Some(auth.principal().clone()),
            None => parts.extensions.get().cloned(),
        };
        Ok(Self { parts: Arc::new(parts), version, session, principal })
    }

    /// Whether the request can only belong to an existing session. A modern request is recognised by its version header,
    /// without which it is refused.
    pub(crate) fn requires_session(&self) -> bool {
        let is_modern = self.version.revision().is_some_and(|revision| revision.era() == Era::Modern);
        self.parts.method != Verb::POST || (self.session != SessionHeader::Missing && !is_modern)
    }

    /// When a stream has to end: at a time that was set, or with the token.
    pub(crate) fn stream_end(&self) -> Option<StreamEnd> {
        let set = self.parts.extensions.get().map(|ValidUntil(at)| StreamEnd::At(*at));
        set.or_else(|| self.parts.extensions.get().cloned().map(StreamEnd::WithToken))
    }

    /// The token of the request, if it was verified.
    pub(crate) fn auth(&self) -> Option<&Arc<AuthInfo>> {
        self.parts.extensions.get()
    }

    /// The caller, as handlers see it.
    pub(crate) fn caller(&self) -> Caller {
        caller(&self.parts, self.principal.as_ref())
    }
}

/// The caller of a request, as handlers see it.
pub(crate) fn caller(parts: &Arc<Parts>, principal: Option<&Principal>) -> Caller {
    let mut caller = Caller::default();
    caller.principal = principal.cloned();
    caller.extensions.insert_shared(Arc::clone(parts));
    if let Some(auth) = parts.extensions.get::<Arc<AuthInfo>>() {
        caller.extensions.insert_shared(Arc::clone(auth));
    }
    caller
}
