//! The decision of the application about the handshake of a legacy client.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use mcp_kernel::server::HandshakeRequest;
use mcp_types::{
    ClientCapabilities, ClientCapability, ErrorObject, Implementation, InitializeRequestParams, ProtocolVersion,
    RawObject, Revision,
};

use crate::connection::Connection;
use crate::connection::caller::{Caller, caller_accessors};
use crate::connection::events::Fed;
use crate::connection::request_origin::RequestOrigin;
use crate::serve::endpoint::BoxFuture;
use crate::serve::observed;
use crate::serve::telemetry::Stopwatch;
use crate::server::Server;

/// Decides about a handshake.
pub(crate) type HandshakeHandler = Arc<dyn Fn(Handshake) -> Decision + Send + Sync>;

/// The server for the connection, or the error for the client.
type Decision = BoxFuture<Result<Server, ErrorObject>>;

/// The handshake of a legacy client, for [`ServerBuilder::on_initialize`](crate::ServerBuilder::on_initialize).
pub struct Handshake {
    server: Server,
    params: InitializeRequestParams,
    revision: Revision,
    caller: Caller,
    is_resumed: bool,
}

impl Handshake {
    /// Returns the server that the client connected to.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the name and version that the client claims. They are not verified.
    #[must_use]
    pub fn client_info(&self) -> &Implementation {
        &self.params.client_info
    }

    /// Returns the capabilities that the client declares.
    #[must_use]
    pub fn capabilities(&self) -> &ClientCapabilities {
        &self.params.capabilities
    }

    /// Returns whether the client declares a capability.
    #[must_use]
    pub fn supports(&self, capability: ClientCapability) -> bool {
        capability.is_declared(&self.params.capabilities)
    }

    /// Returns the protocol version that the client requests, which may be unknown.
    #[must_use]
    pub fn requested_version(&self) -> &ProtocolVersion {
        &self.params.protocol_version
    }

    /// Returns the revision that is negotiated if the server is kept. Of a session that is resumed, returns its revision.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns whether the handshake took place in another process or before a restart, and this process resumes the
    /// session. The caller is then that of the current request, and an error makes the session unknown.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }
}

caller_accessors!(Handshake, "", "");

impl std::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handshake")
            .field("client_info", self.client_info())
            .field("revision", &self.revision)
            .field("caller", &self.caller)
            .field("is_resumed", &self.is_resumed)
            .finish_non_exhaustive()
    }
}

/// The server that was chosen during the handshake, for the ports of the connection. Handles of the connection do not share
/// it: the application may keep them in the state of that server, which would then never be dropped.
pub(crate) type ChosenServer = Arc<OnceLock<Server>>;

/// A handshake whose decision is pending.
pub(crate) struct PendingHandshake {
    decision: Decision,
    caller: Caller,
    /// Measures the time since `initialize` was received, if that is reported.
    received: Option<Stopwatch>,
}

impl Server {
    /// Lets [`ServerBuilder::on_initialize`](crate::ServerBuilder::on_initialize) choose the server for a session that
    /// another process began with these `initialize` parameters. Returns `None` if no function is set.
    ///
    /// For transports, before [`Connection::resume`]. The future returns an error if the function refuses the session, or
    /// returns a server that does not support the revision of the session, which cannot be negotiated again.
    #[must_use]
    pub fn choose_for_resume(
        &self,
        initialize: &RawObject,
        revision: Revision,
        caller: Caller,
    ) -> Option<BoxFuture<Result<Self, ErrorObject>>> {
        let decide = self.hooks().on_initialize.as_ref()?;
        let params = match initialize.decode() {
            Ok(params) => params,
            Err(fault) => {
                let error = ErrorObject::invalid_params(fault.to_string());
                return Some(Box::pin(std::future::ready(Err(error))));
            }
        };
        let handshake = Handshake { server: self.clone(), params, revision, caller, is_resumed: true };
        let decision = call(decide, handshake);
        Some(Box::pin(async move {
            let server = decision?.await?;
            let revisions = &server.config().revisions;
            if revisions.contains(&revision) {
                return Ok(server);
            }
            let supported = revisions.iter().copied().map(ProtocolVersion::from).collect();
            Err(ErrorObject::unsupported_protocol_version(revision.into(), supported))
        }))
    }
}

impl Connection {
    /// Prepares a connection with a handshake for the choice of another server.
    pub(super) fn with_choice(mut self) -> Self {
        self.chosen = self.server.hooks().on_initialize.is_some().then(ChosenServer::default);
        self
    }

    /// Lets the application decide about a handshake, or accepts it at once.
    pub(super) fn begin_handshake(&mut self, request: HandshakeRequest, origin: RequestOrigin) {
        let HandshakeRequest { params, revision, principal, .. } = request;
        let RequestOrigin { extensions, received } = origin;
        let caller = Caller { principal, extensions };
        let Some(decide) = &self.server.hooks().on_initialize else {
            return self.accept_handshake(None, caller, received);
        };
        let server = self.server.clone();
        let handshake = Handshake { server, params, revision, caller: caller.clone(), is_resumed: false };
        match call(decide, handshake) {
            Ok(decision) => self.handshake = Some(Box::new(PendingHandshake { decision, caller, received })),
            Err(error) => self.send_refusal(&error, received),
        }
    }

    fn send_refusal(&mut self, error: &ErrorObject, received: Option<Stopwatch>) {
        self.shared.lock().kernel.refuse_handshake(error);
        self.handle_events(Fed { request: None, received });
    }

    /// Continues the decision about the handshake. Returns whether there is code of a new session.
    pub(super) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(pending) = &mut self.handshake else { return false };
        let decision = match catch_unwind(AssertUnwindSafe(|| pending.decision.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return false,
            Ok(Poll::Ready(decision)) => decision,
            Err(_) => Err(panicked()),
        };
        let Some(pending) = self.handshake.take() else { return false };
        match decision {
            Ok(server) => self.accept_handshake(Some(server), pending.caller, pending.received),
            Err(error) => {
                tracing::debug!(target: "mcp", %error, "handshake refused");
                self.send_refusal(&error, pending.received);
            }
        }
        self.session.is_some()
    }

    /// Refuses the handshake if its decision is pending.
    pub(super) fn refuse_handshake(&mut self, error: &ErrorObject) {
        if let Some(pending) = self.handshake.take() {
            self.send_refusal(error, pending.received);
        }
    }

    fn accept_handshake(&mut self, chosen: Option<Server>, caller: Caller, received: Option<Stopwatch>) {
        let chosen = chosen.filter(|chosen| !chosen.is_same(&self.server));
        let config = chosen.as_ref().map(|chosen| Arc::clone(chosen.config()));
        let is_accepted = self.shared.lock().kernel.accept_handshake(config);
        // A server that cannot complete the handshake does not serve the connection. One that can handles all events.
        if let Some(chosen) = chosen.filter(|_| is_accepted) {
            self.switch_to(chosen);
        }
        self.handle_events(Fed { request: None, received });
        if is_accepted {
            self.start_session(caller, false);
        }
    }

    /// Makes another server serve the connection.
    fn switch_to(&mut self, server: Server) {
        if self.shared.has_joined.load(Ordering::Relaxed) {
            self.server.broadcast().leave(&self.shared);
            self.shared.has_joined.store(false, Ordering::Relaxed);
            server.join(&self.shared);
        }
        if let Some(chosen) = &self.chosen {
            // A connection has one handshake, so it was not set before.
            let _ = chosen.set(server.clone());
        }
        observed::queue_moved(&self.server, &server, &self.shared);
        self.server = server;
    }
}

fn call(decide: &HandshakeHandler, handshake: Handshake) -> Result<Decision, ErrorObject> {
    catch_unwind(AssertUnwindSafe(|| decide(handshake))).map_err(|_| panicked())
}

fn panicked() -> ErrorObject {
    tracing::error!(target: "mcp", "the function of `ServerBuilder::on_initialize` panicked");
    ErrorObject::internal_error("the handshake failed")
}
