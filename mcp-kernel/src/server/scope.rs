//! The properties of one request.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use mcp_types::gate::{self, MethodFacts};
use mcp_types::meta::TraceContext;
use mcp_types::{
    ClientCapabilities, ClientCapability, Era, Implementation, InputResponses, LoggingLevel, Method, ProgressToken,
    RequestId, Revision,
};

use super::client::{Client, LazyClient};
use crate::RequestKey;

/// The authenticated user of a request, as the transport determined it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Principal {
    /// The issuer of the subject, such as the URL of an authorization server.
    pub issuer: Option<Arc<str>>,
    /// The user, unique for the issuer.
    pub subject: Arc<str>,
}

impl Hash for Principal {
    /// Hashes the subject alone: each request of a user is counted by it, and there are few issuers.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.subject.hash(state);
    }
}

impl Principal {
    /// Creates the principal of a subject.
    #[must_use]
    pub fn new(issuer: Option<&str>, subject: &str) -> Self {
        Self { issuer: issuer.map(Into::into), subject: subject.into() }
    }
}

/// The properties of one request.
///
/// They come from the request and never from another one on the same connection, so that concurrent requests of both
/// eras do not influence each other.
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
    /// Absent in most requests, as what follows is.
    pub(crate) trace_context: Option<Box<TraceContext>>,
    pub(crate) principal: Option<Principal>,
    pub(crate) retry: Option<Box<Retry>>,
    pub(crate) has_back_channel: bool,
}

/// What a retry of a multi round-trip request brings.
#[derive(Clone, Debug)]
pub(crate) struct Retry {
    pub(crate) input_responses: InputResponses,
    pub(crate) request_state: Option<String>,
}

/// A request of which no connection knows: a task runs it again, later or in another process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DetachedRequest {
    /// The id that handlers see.
    pub id: RequestId,
    /// The method.
    pub method: Method,
    /// The revision by whose rules it is served.
    pub revision: Revision,
    /// The capabilities of its client.
    pub capabilities: ClientCapabilities,
    /// The name of its client.
    pub client_info: Option<Implementation>,
    /// The authenticated user.
    pub principal: Option<Principal>,
    /// The trace context.
    pub trace_context: TraceContext,
    /// The responses to the input requests that the handler returned before.
    pub input_responses: InputResponses,
    /// The state that the handler returned with them.
    pub request_state: Option<String>,
    /// Whether requests can be sent to the client while it fetches the result.
    pub has_back_channel: bool,
}

impl DetachedRequest {
    /// Creates a request of a client that declared nothing.
    #[must_use]
    pub fn new(id: impl Into<RequestId>, method: Method, revision: Revision) -> Self {
        Self {
            id: id.into(),
            method,
            revision,
            capabilities: ClientCapabilities::default(),
            client_info: None,
            principal: None,
            trace_context: TraceContext::default(),
            input_responses: InputResponses::new(),
            request_state: None,
            has_back_channel: false,
        }
    }
}

impl From<DetachedRequest> for RequestScope {
    fn from(request: DetachedRequest) -> Self {
        let DetachedRequest { input_responses, request_state, .. } = request;
        let is_retry = !input_responses.is_empty() || request_state.is_some();
        Self {
            key: DETACHED,
            id: request.id,
            facts: gate::method(&request.method),
            method: request.method,
            revision: request.revision,
            client: LazyClient::Decoded(Arc::new(Client {
                capabilities: request.capabilities,
                info: request.client_info,
            })),
            log_level: None,
            progress_token: None,
            trace_context: (request.trace_context != TraceContext::default()).then(|| Box::new(request.trace_context)),
            principal: request.principal,
            retry: is_retry.then(|| Box::new(Retry { input_responses, request_state })),
            has_back_channel: request.has_back_channel,
        }
    }
}

/// The key of requests of which no connection knows. Connections count from zero.
const DETACHED: RequestKey = RequestKey::new(u64::MAX);

impl RequestScope {
    /// Returns the local handle of the request.
    #[must_use]
    pub fn key(&self) -> RequestKey {
        self.key
    }

    /// Returns the id that the client chose.
    #[must_use]
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// Returns the method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the revision by whose rules the request is served.
    // S2.7
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the era of the revision.
    #[must_use]
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// Returns whether no request can be sent to the client during this one.
    // S2.22
    #[must_use]
    pub fn is_stateless(&self) -> bool {
        !self.has_back_channel
    }

    /// Returns the capabilities of the client.
    //
    #[must_use]
    pub fn capabilities(&self) -> &ClientCapabilities {
        &self.client.capabilities
    }

    /// Returns the name of the client. It is not verified: use it for display and logs only.
    //
    #[must_use]
    pub fn client_info(&self) -> Option<&Implementation> {
        self.client.info.as_ref()
    }

    /// Returns whether a log message of this level was sent to the client if it was logged when the request arrived. A
    /// legacy client may change its level later.
    // Y-2, Y-3
    #[must_use]
    pub fn may_log(&self, level: LoggingLevel) -> bool {
        self.log_level.is_some_and(|threshold| level >= threshold)
    }

    /// Returns whether the client requested progress notifications.
    // S2.12
    #[must_use]
    pub fn may_report_progress(&self) -> bool {
        self.progress_token.is_some()
    }

    /// Returns the progress token of the request.
    #[must_use]
    pub fn progress_token(&self) -> Option<&ProgressToken> {
        self.progress_token.as_ref()
    }

    /// Returns the trace context of the request.
    #[must_use]
    pub fn trace_context(&self) -> &TraceContext {
        static NONE: LazyLock<TraceContext> = LazyLock::new(TraceContext::default);
        self.trace_context.as_deref().unwrap_or_else(|| &*NONE)
    }

    /// Returns the authenticated user, if the transport determined one.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// Returns the responses to the input requests of the previous round.
    // S2.24
    #[must_use]
    pub fn input_responses(&self) -> &InputResponses {
        static NONE: LazyLock<InputResponses> = LazyLock::new(InputResponses::new);
        self.retry.as_ref().map_or_else(|| &*NONE, |retry| &retry.input_responses)
    }

    /// Returns the state of the previous round. It comes from the client and is not trusted.
    // S2.25, S2.26
    #[must_use]
    pub fn request_state(&self) -> Option<&str> {
        self.retry.as_ref()?.request_state.as_deref()
    }

    /// Returns whether the client declared a capability.
    // S2.21
    #[must_use]
    pub fn supports(&self, capability: ClientCapability) -> bool {
        capability.is_declared(&self.client.capabilities)
    }
}
