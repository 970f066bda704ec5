//! The head of a request, read once.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, Method as Verb};
use mcp_server::{AuthInfo, Caller, Principal};
use mcp_session::SessionId;
use mcp_types::Era;

use super::service::ValidUntil;
use crate::rules::header_names::SESSION;
use crate::rules::headers::{VersionHeader, single_value};

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
    fn read(headers: &HeaderMap) -> Self {
        match single_value(headers, &SESSION) {
            Ok(None) => Self::Missing,
            Ok(Some(id)) => SessionId::parse(id).map_or(Self::Invalid, Self::Id),
            Err(_) => Self::Invalid,
        }
    }
}

impl RequestHead {
    /// Reads the head of a request. A service without sessions ignores session ids.
    pub(crate) fn new(parts: Parts, has_sessions: bool) -> Self {
        let version = VersionHeader::read(&parts.headers);
        let session = if has_sessions { SessionHeader::read(&parts.headers) } else { SessionHeader::Missing };
        let principal = match parts.extensions.get::<Arc<AuthInfo>>() {
            Some(auth) => Some(auth.principal().clone()),
            None => parts.extensions.get().cloned(),
        };
        Self { parts: Arc::new(parts), version, session, principal }
    }

    /// Whether the request can only belong to an existing session. A modern request is recognised by its version header,
    /// without which it is refused.
    pub(crate) fn requires_session(&self) -> bool {
        let is_modern = self.version.revision().is_some_and(|revision| revision.era() == Era::Modern);
        self.parts.method != Verb::POST || (self.session != SessionHeader::Missing && !is_modern)
    }

    /// When the response has to end: at a time that was set, or with the token.
    pub(crate) fn valid_until(&self) -> Option<ValidUntil> {
        let set = self.parts.extensions.get().copied();
        set.or_else(|| self.parts.extensions.get::<Arc<AuthInfo>>()?.expires_at().map(ValidUntil::at))
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
