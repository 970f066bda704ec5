//! How transports with a request per call report what they receive.

use std::sync::Arc;

use mcp_kernel::CallId;

use super::CredentialFingerprint;
use crate::AuthorizationError;
use crate::close_reason::CloseReason;
use crate::error::Error;
use crate::state::{Phase, Shared};

/// Reports to a client what the requests of its transport receive; see [`TransportHandle::responses`].
///
/// It is cheap to clone, so that each request of a transport of the kind
/// [`RequestPerCall`](crate::TransportKind::RequestPerCall) can have its own.
///
/// [`TransportHandle::responses`]: crate::TransportHandle::responses
#[derive(Clone)]
pub struct ResponseHandle {
    shared: Arc<Shared>,
}

impl ResponseHandle {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared) }
    }

    /// Handles a message on the stream of a call. Returns whether the call is still open.
    ///
    /// The transport should execute the commands that a message led to before it reads the next one.
    pub fn handle_reply(&self, call: CallId, bytes: &[u8]) -> bool {
        self.shared.with(|core, now| core.kernel.handle_reply(now, call, bytes))
    }

    /// Handles a message on a stream that belongs to no call.
    pub fn handle_message(&self, bytes: &[u8]) {
        self.shared.with(|core, now| core.kernel.handle_bytes(now, bytes));
    }

    /// Handles an HTTP status that was returned instead of a response to a call.
    pub fn handle_status(&self, call: CallId, status: u16, body: &[u8]) {
        self.shared.with(|core, now| core.kernel.handle_status(now, call, status, body));
    }

    /// Handles the end of the stream of a call, or the failure to open it. A call without a response fails. `why` describes
    /// the cause, if it is known.
    pub fn handle_stream_ended(&self, call: CallId, why: Option<String>) {
        self.shared.with(|core, now| {
            match core.pending_calls.get_mut(&call) {
                Some(pending) => pending.stream_error = why,
                // The handshake, which has no pending call.
                None if matches!(core.phase, Phase::Connecting) => core.disconnect_reason = why,
                None => {}
            }
            core.kernel.handle_stream_closed(now, call);
        });
    }

    /// Handles the failure to obtain credentials for a call. The call fails with [`Error::Authorization`], and the handshake
    /// with [`CloseReason::Authorization`].
    pub fn handle_unauthorized(&self, call: CallId, error: AuthorizationError) {
        self.handle_not_sent(call, error.clone().into(), error.into());
    }

    /// Handles a server whose certificate is not valid; `what` is wrong with it. The call fails with
    /// [`Error::InvalidCertificate`], and the handshake with [`CloseReason::InvalidCertificate`].
    pub fn handle_invalid_certificate(&self, call: CallId, what: String) {
        self.handle_not_sent(call, Error::InvalidCertificate(what.clone()), CloseReason::InvalidCertificate(what));
    }

    fn handle_not_sent(&self, call: CallId, error: Error, reason: CloseReason) {
        self.shared.with(|core, now| {
            match core.pending_calls.get_mut(&call) {
                Some(pending) => pending.send_error = Some(Box::new(error)),
                // The handshake, which has no pending call.
                None if matches!(core.phase, Phase::Connecting) => core.connect_error = Some(reason),
                None => {}
            }
            core.kernel.handle_stream_closed(now, call);
        });
    }

    /// Stops the timeouts of a call while the transport waits for something else than the server, such as a user who logs in.
    /// They continue with what was left of them when the returned value is dropped.
    ///
    /// Without a call, the timeouts of all calls stop. In either case the calls that wait to be sent do so for longer.
    pub fn pause_timeouts(&self, call: Option<CallId>) -> PausedTimeouts {
        self.shared.with(|core, now| core.pause(now, call));
        PausedTimeouts { shared: Arc::clone(&self.shared), call }
    }

    /// Reports everything that subscriptions cover as changed, because notifications of a legacy server may be missing.
    pub fn handle_missed_changes(&self) {
        self.shared.with(|core, _| core.missed_changes());
    }

    /// Sets the session that the server created, if any, and the credentials of the request that initialized it.
    pub fn set_session(&self, id: Option<String>, owner: Option<CredentialFingerprint>) {
        self.shared.with(|core, _| (core.session_id, core.session_owner) = (id, owner));
    }

    /// Sets the credentials of the client, which requests without their own are sent with, and drops what is cached for
    /// those before.
    ///
    /// A transport whose credentials may change calls this before every such request, even if they are those of the request
    /// before: the client may have obtained others from its [`CredentialSource`](crate::CredentialSource) in between.
    pub fn set_credentials(&self, fingerprint: CredentialFingerprint) {
        self.shared.with(|core, _| core.set_credentials(fingerprint));
    }

    /// Sets the credentials that a call is about to be sent with, for which its result may be cached. A transport whose
    /// credentials may change calls this before every request that sends a call.
    pub fn set_call_credentials(&self, call: CallId, fingerprint: CredentialFingerprint) {
        self.shared.with(|core, _| {
            if let Some(pending) = core.pending_calls.get_mut(&call) {
                pending.sent_with = Some(fingerprint);
            }
        });
    }
}

/// Timeouts that are stopped until this is dropped; see [`ResponseHandle::pause_timeouts`].
#[must_use = "the timeouts continue when this is dropped"]
pub struct PausedTimeouts {
    shared: Arc<Shared>,
    call: Option<CallId>,
}

impl Drop for PausedTimeouts {
    fn drop(&mut self) {
        self.shared.with(|core, now| core.resume(now, self.call));
    }
}

impl std::fmt::Debug for PausedTimeouts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PausedTimeouts").field("call", &self.call).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ResponseHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ResponseHandle")
    }
}
