//! What is true for one request.

use std::sync::Arc;

use mcp_types::gate::MethodFacts;
use mcp_types::meta::TraceContext;
use mcp_types::{
    ClientCapabilities, ClientCapability, Era, Implementation, InputResponses, LoggingLevel, Method, ProgressToken,
    RequestId, Revision,
};

use super::client::LazyClient;
use crate::RequestKey;

/// Who is behind a request, as the transport made sure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Principal {
    /// Who vouches for the subject.
    pub issuer: Option<Arc<str>>,
    /// Who it is, as the issuer names them.
    pub subject: Arc<str>,
}

impl Principal {
    /// Names a subject that `issuer` vouches for.
    #[must_use]
    pub fn new(issuer: Option<&str>, subject: &str) -> Self {
        Self { issuer: issuer.map(Into::into), subject: subject.into() }
    }
}

/// Everything that holds for one request, read from the request itself.
///
/// Semantics that differ by era hang on this and never on the connection, so requests of both eras can run at the same
/// time without flipping each other.
#[derive(Clone, Debug)]
pub struct RequestScope {
    pub(crate) key: RequestKey,
    pub(crate) id: RequestId,
    pub(crate) method: Method,
    pub(crate) facts: Option<&'static MethodFacts>,
    pub(crate) revision: Revision,
    pub(crate) client: LazyClient,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) progress_token: Option<ProgressToken>,
    pub(crate) trace_context: TraceContext,
    pub(crate) principal: Option<Principal>,
    pub(crate) input_responses: InputResponses,
    pub(crate) request_state: Option<String>,
    pub(crate) has_back_channel: bool,
}

impl RequestScope {
    /// The handle of the request.
    #[must_use]
    pub fn key(&self) -> RequestKey {
        self.key
    }

    /// The id on the wire.
    #[must_use]
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// What is asked for.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The revision by whose rules the request is served.
    // S2.7
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The era of that revision.
    #[must_use]
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// Whether there is no way to ask the client something while the request runs.
    // S2.22
    #[must_use]
    pub fn is_stateless(&self) -> bool {
        !self.has_back_channel
    }

    /// What the client can do, for this request.
    //
    #[must_use]
    pub fn capabilities(&self) -> &ClientCapabilities {
        &self.client.capabilities
    }

    /// Who the client says it is: for display and logs only.
    //
    #[must_use]
    pub fn client_info(&self) -> Option<&Implementation> {
        self.client.info.as_ref()
    }

    /// Whether a log message of this level reaches the client.
    ///
    /// A legacy client may change its level while the request runs; this is the level when the request came.
    // Y-2, Y-3
    #[must_use]
    pub fn may_log(&self, level: LoggingLevel) -> bool {
        self.log_level.is_some_and(|threshold| level >= threshold)
    }

    /// Whether the client wants to hear about progress.
    // S2.12
    #[must_use]
    pub fn may_report_progress(&self) -> bool {
        self.progress_token.is_some()
    }

    /// The token under which progress is reported.
    #[must_use]
    pub fn progress_token(&self) -> Option<&ProgressToken> {
        self.progress_token.as_ref()
    }

    /// The request's place in a distributed trace.
    #[must_use]
    pub fn trace_context(&self) -> &TraceContext {
        &self.trace_context
    }

    /// Who is behind the request, if the transport knows.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// The answers to the questions of the round before.
    // S2.24
    #[must_use]
    pub fn input_responses(&self) -> &InputResponses {
        &self.input_responses
    }

    /// The state of the round before, as the client brings it back: untrusted.
    // S2.25, S2.26
    #[must_use]
    pub fn request_state(&self) -> Option<&str> {
        self.request_state.as_deref()
    }

    /// Whether the client declared a capability for this request.
    // S2.21
    #[must_use]
    pub fn supports(&self, capability: ClientCapability) -> bool {
        capability.is_declared(&self.client.capabilities)
    }
}
