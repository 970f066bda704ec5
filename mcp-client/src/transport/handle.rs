//! The interface that a transport uses to drive its client.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream as _;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use mcp_kernel::client::{CallHeaders, Responder};
use mcp_kernel::{CallId, Time};
use mcp_types::jsonrpc::EncodedMessage;
use mcp_types::jsonrpc::EnvelopeSummary;
use mcp_types::{ErrorObject, Method, RawObject, RequestId, Revision};
use tracing::Instrument as _;

use super::received_request::ReceivedRequest;
use super::{CredentialFingerprint, ResponseHandle};
use crate::close_reason::CloseReason;
use crate::context::CallExtensions;
use crate::observed;
use crate::session::{ClientEvent, RestartCause, SessionLossAction, SessionLossReason};
use crate::state::inbox::Inbound;
use crate::state::{Phase, Shared};

/// The interface that a [`Transport`](crate::Transport) uses to drive its client.
///
/// ```text
///    start -- next_command: Send, Abort, Ready, WakeAt ... -- None: disconnect -- close
///               |
///             handle_message, handle_session_lost, handle_disconnect + handle_restart, handle_timeout;
///             responses: handle_reply, handle_status, handle_stream_ended
/// ```
///
/// A transport takes commands with [`next_command`](Self::next_command), calls [`handle_timeout`](Self::handle_timeout) at
/// the time of the latest [`TransportCommand::WakeAt`], and reports what it receives with the other `handle_` methods, none
/// of which blocks. Handlers of server-to-client requests run inside [`next_command`](Self::next_command), so it must be
/// polled for them to make progress.
pub struct TransportHandle {
    shared: Arc<Shared>,
    /// Handlers of server-to-client requests that are running.
    running: FuturesUnordered<RunningHandler>,
    /// Aborts a running handler if the server cancels its request.
    abort_handles: BTreeMap<RequestId, AbortHandle>,
    /// When the transport will call [`handle_timeout`](Self::handle_timeout).
    armed: Option<Time>,
}

type RunningHandler = Abortable<Pin<Box<dyn Future<Output = (Responder, Result<RawObject, ErrorObject>)> + Send>>>;

/// A command to a transport.
#[derive(Debug)]
#[must_use = "a command that is not executed is lost"]
#[expect(clippy::exhaustive_enums, reason = "a transport must know what to do with each")]
pub enum TransportCommand {
    /// Sends a message.
    Send(OutgoingMessage),
    /// Closes the stream of a call, which cancels the call.
    Abort {
        /// The call to cancel.
        call: CallId,
    },
    /// The connection is ready for calls. Repeated after a session was renewed or a server was restarted. Over HTTP, the
    /// transport now opens the GET stream of a legacy server.
    Ready {
        /// The revision in use.
        revision: Revision,
    },
    /// Re-arms the timer, replacing any earlier deadline: call [`TransportHandle::handle_timeout`] at this time.
    WakeAt(Time),
}

/// A message to send.
#[derive(Debug)]
#[non_exhaustive]
pub struct OutgoingMessage {
    /// The call, if the message is a request.
    pub call: Option<CallId>,
    /// The method of the request or notification; `None` for a response.
    pub method: Option<Method>,
    /// The revision of the message; `None` before a revision was negotiated.
    pub revision: Option<Revision>,
    /// The values of the headers that repeat parameters, for transports with headers.
    pub headers: CallHeaders,
    /// The values that the caller attached to the call, such as the user whose credentials it is sent with.
    pub extensions: CallExtensions,
    /// The encoded message.
    pub message: EncodedMessage,
}

impl TransportHandle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, running: FuturesUnordered::new(), abort_handles: BTreeMap::new(), armed: None }
    }

    /// Returns the handle by which requests report what they receive.
    #[must_use]
    pub fn responses(&self) -> ResponseHandle {
        ResponseHandle::new(&self.shared)
    }

    /// Returns the current time of the clock that deadlines refer to.
    #[must_use]
    pub fn now(&self) -> Time {
        self.shared.now()
    }

    /// Waits for the next command. Returns `None` when the client is closed; the transport then disconnects from the
    /// server, and calls [`close`](Self::close).
    pub async fn next_command(&mut self) -> Option<TransportCommand> {
        poll_fn(|cx| self.poll_command(cx)).await
    }

    /// Polls for the next command, like [`next_command`](Self::next_command).
    pub fn poll_command(&mut self, cx: &mut Context<'_>) -> Poll<Option<TransportCommand>> {
        self.poll_next_command(cx, true)
    }

    /// Like [`poll_command`](Self::poll_command), for a transport that cannot send at the moment: returns no
    /// command but [`TransportCommand::WakeAt`]. Messages stay queued, and count towards the limits of the client.
    pub fn poll_blocked(&mut self, cx: &mut Context<'_>) -> Poll<Option<TransportCommand>> {
        self.poll_next_command(cx, false)
    }

    fn poll_next_command(&mut self, cx: &mut Context<'_>, can_send: bool) -> Poll<Option<TransportCommand>> {
        loop {
            let has_response = self.poll_handlers(cx);
            let armed = self.armed;
            let step = self.shared.with(|core, _| {
                if !core.inbox.is_empty() {
                    return Step::Dispatch(core.inbox.take());
                }
                if can_send && let Some((command, is_own)) = core.next_command() {
                    return if is_own { Step::OwnMessage(command) } else { Step::Command(Some(command)) };
                }
                if let Phase::Closing | Phase::Closed(_) = core.phase {
                    return Step::Command(None);
                }
                let deadline = core.next_deadline();
                // A later deadline is set when the current one has passed.
                if let Some(at) = deadline.filter(|at| armed.is_none_or(|armed| *at < armed)) {
                    return Step::Command(Some(TransportCommand::WakeAt(at)));
                }
                core.transport_waker = Some(cx.waker().clone());
                Step::Wait
            });
            match step {
                Step::OwnMessage(mut command) => {
                    if let TransportCommand::Send(message) = &mut command
                        && self.shared.settings.is_observed()
                    {
                        self.shared.trace_own_message(message);
                    }
                    return Poll::Ready(Some(command));
                }
                Step::Dispatch(inbox) => inbox.into_iter().for_each(|inbound| self.dispatch(inbound)),
                Step::Command(command) => {
                    if let Some(TransportCommand::WakeAt(at)) = command {
                        self.armed = Some(at);
                    }
                    return Poll::Ready(command);
                }
                // The response can be sent now.
                Step::Wait if has_response => {}
                Step::Wait => return Poll::Pending,
            }
        }
    }

    /// Handles the deadline of the latest [`TransportCommand::WakeAt`].
    pub fn handle_timeout(&mut self) {
        self.armed = None;
        self.shared.with(|core, now| core.handle_timeout(now));
    }

    /// Returns whether the transport may read the next message. It must not while too many responses to the server are
    /// queued; this changes when commands are taken.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.shared.read(|core| core.kernel.wants_input())
    }

    /// Handles a message that does not belong to the stream of a call.
    pub fn handle_message(&self, bytes: &[u8]) {
        self.shared.with(|core, now| core.kernel.handle_bytes(now, bytes));
    }

    /// Handles a message that exceeds the limit of the transport. A response fails its call, or all calls if its id is not
    /// known; a request gets an error response.
    pub fn handle_oversized(&self, limit: usize, summary: &EnvelopeSummary) {
        self.shared.with(|core, now| core.kernel.handle_oversized(now, limit, summary));
    }

    /// Handles the loss of a session, which `call` failed with if there is one. If it is the latest session, the client
    /// initializes a new one or is closed, as [`ClientBuilder::on_session_lost`](crate::ClientBuilder::on_session_lost)
    /// decides.
    pub fn handle_session_lost(&self, call: Option<CallId>, is_latest: bool, reason: SessionLossReason) {
        let loss = self.shared.with(|core, _| core.session_loss(is_latest, reason));
        let settings = &self.shared.settings;
        let action = loss.as_ref().map_or(SessionLossAction::Renew, |loss| settings.on_session_lost.decide(loss));
        if let Some(loss) = loss.clone() {
            let renews = action == SessionLossAction::Renew;
            tracing::warn!(target: "mcp", %reason, renews, "the session with the server is lost, with its state");
            if let Some(handler) = &settings.on_event {
                handler(ClientEvent::SessionLost { loss, action });
            }
        }
        self.shared.with(|core, now| match (action, loss) {
            (SessionLossAction::Fail, Some(loss)) => core.set_closed(CloseReason::SessionLost(loss)),
            (SessionLossAction::Renew | SessionLossAction::Fail, loss) => {
                if let Some(loss) = loss {
                    core.restarting(RestartCause::SessionLost(loss), 0);
                }
                core.kernel.handle_session_lost(now, call, is_latest)
            }
        });
    }

    /// Returns the id of the current session, or of the session to resume.
    #[must_use]
    pub fn session_id(&self) -> Option<String> {
        self.shared.read(|core| core.session_id.clone())
    }

    /// Returns the credentials that the session of [`session_id`](Self::session_id) was initialized with, if they are known.
    /// The session must not be used with others.
    #[must_use]
    pub fn session_owner(&self) -> Option<CredentialFingerprint> {
        self.shared.read(|core| core.session_owner)
    }

    /// Handles the loss of the server: all calls fail.
    ///
    /// Returns whether the transport may restart the server, which it then reports with
    /// [`handle_restart`](Self::handle_restart).
    #[must_use]
    pub fn handle_disconnect(&self, why: &CloseReason) -> ServerLossAction {
        self.server_lost(why, true)
    }

    /// Like [`handle_disconnect`](Self::handle_disconnect), for a server that has not read anything: then the probe
    /// cannot be the reason for its exit.
    #[must_use]
    pub fn handle_disconnect_unread(&self, why: &CloseReason) -> ServerLossAction {
        self.server_lost(why, false)
    }

    fn server_lost(&self, why: &CloseReason, may_have_read: bool) -> ServerLossAction {
        self.shared.with(|core, now| core.handle_disconnect(now, why, may_have_read));
        self.shared.with(|core, _| match core.phase {
            Phase::Closing | Phase::Closed(_) => ServerLossAction::Close,
            Phase::Connecting | Phase::Ready(_) if core.exited_on_probe => ServerLossAction::RestartWithoutProbe,
            Phase::Connecting | Phase::Ready(_) => ServerLossAction::MayRestart,
        })
    }

    /// Handles the restart of a server that was lost.
    pub fn handle_restart(&self) {
        self.shared.with(|core, now| {
            if let Phase::Connecting = core.phase {
                core.exited_on_probe = false;
                let detected = core.detected;
                core.kernel.restart(now, detected);
            }
        });
    }

    /// Closes the client, because the transport has ended. `why` is ignored if the client was closed by its user.
    pub fn close(self, why: CloseReason) {
        self.shared.with(|core, _| core.set_closed(why));
    }

    /// Calls the handler of the application for a message of the server.
    fn dispatch(&mut self, inbound: Inbound) {
        let settings = &self.shared.settings;
        match inbound {
            Inbound::Log { log, context } => {
                if let Some(handler) = &settings.on_log {
                    handler(context, log);
                }
            }
            Inbound::Notification { method, params, context } => {
                if let Some(handler) = &settings.on_notification {
                    handler(context, method, params);
                }
            }
            Inbound::Restarted(restart) => {
                if let RestartCause::ServerLost(_) = restart.cause {
                    observed::restarted(&self.shared);
                }
                if let Some(handler) = &settings.on_restart {
                    handler(restart);
                }
            }
            Inbound::Cancelled { id } => {
                if let Some(handle) = self.abort_handles.remove(&id) {
                    handle.abort();
                }
            }
            Inbound::Request { method, params, responder, context } => {
                let handlers = Arc::clone(&settings.request_handlers);
                let (handle, registration) = AbortHandle::new_pair();
                self.abort_handles.insert(responder.id().clone(), handle);
                let revision = self.shared.with(|core, _| match core.phase {
                    Phase::Ready(revision) => revision,
                    Phase::Connecting | Phase::Closing | Phase::Closed(_) => Revision::LATEST_LEGACY,
                });
                let request = ReceivedRequest::new(&self.shared, &method, &params, (responder.id(), revision));
                let span = request.span().clone();
                let running = async move {
                    let outcome = handlers.handle(context, &method, &params, revision).await;
                    request.finish(&outcome);
                    (responder, outcome)
                };
                self.running.push(Abortable::new(Box::pin(running.instrument(span)), registration));
            }
        }
    }

    /// Polls the running handlers; returns whether one has completed.
    fn poll_handlers(&mut self, cx: &mut Context<'_>) -> bool {
        let mut has_response = false;
        while let Poll::Ready(Some(completed)) = Pin::new(&mut self.running).poll_next(cx) {
            let Ok((responder, outcome)) = completed else { continue };
            self.abort_handles.remove(responder.id());
            self.shared.with(|core, now| core.kernel.respond(now, responder, outcome.as_ref().map_err(Clone::clone)));
            has_response = true;
        }
        has_response
    }
}

/// The next step of [`TransportHandle::poll_command`].
enum Step {
    /// Pass messages to the application.
    Dispatch(VecDeque<Inbound>),
    /// Return a command with a message that the client sends by itself.
    OwnMessage(TransportCommand),
    /// Return a command, or `None` if the client is closed.
    Command(Option<TransportCommand>),
    /// Wait for something to do.
    Wait,
}

/// What a transport does after a server was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a transport must know what to do with each")]
pub enum ServerLossAction {
    /// The transport may restart the server.
    MayRestart,
    /// The transport restarts the server at once: some legacy servers exit when they are probed, and the new one will not
    /// be probed.
    RestartWithoutProbe,
    /// The client is closed, or could not use another server.
    Close,
}

impl Drop for TransportHandle {
    fn drop(&mut self) {
        self.shared.with(|core, _| core.set_closed(CloseReason::Disconnected("the transport ended".to_owned())));
    }
}

impl std::fmt::Debug for TransportHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransportHandle").field("running", &self.running.len()).finish_non_exhaustive()
    }
}
