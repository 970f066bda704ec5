//! The transport's end of a client.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream as _;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use mcp_kernel::client::Responder;
use mcp_kernel::{CallId, Time};
use mcp_types::jsonrpc::EncodedMessage;
use mcp_types::jsonrpc::EnvelopeSummary;
use mcp_types::{ErrorObject, Method, RawObject, RequestId, Revision};

use super::CredentialFingerprint;
use crate::call::headers::Headers;
use crate::closed::Closed;
use crate::session::{ClientEvent, SessionLossReason, SessionLost};
use crate::state::{Inbound, Phase, Shared};

/// What a [`Transport`](crate::Transport) works for: it takes orders, and tells what happens.
///
/// ```text
///    start -- next: Send, Abort, Ready, WakeAt ... -- None: let go of the server -- closed
///               |
///             message, reply, status, stream_ended, session_lost, lost + restarted, timeout
/// ```
///
/// A transport takes orders with [`next`](Self::next) whenever it is not busy, and calls [`timeout`](Self::timeout) at
/// the time that the latest [`Order::WakeAt`] says. What it hears it tells with the other methods, none of which waits.
/// Answers to questions of the server are worked out inside [`next`](Self::next), so it must be polled for them to
/// come about.
pub struct Link {
    shared: Arc<Shared>,
    answering: FuturesUnordered<Answering>,
    /// What is being worked out, so that the server can call it off.
    asked: BTreeMap<RequestId, AbortHandle>,
    /// When the transport will call [`timeout`](Self::timeout).
    armed: Option<Time>,
}

type Answering = Abortable<Pin<Box<dyn Future<Output = (Responder, Result<RawObject, ErrorObject>)> + Send>>>;

/// Something for a transport to do.
#[derive(Debug)]
#[must_use = "what is not done is lost"]
#[expect(clippy::exhaustive_enums, reason = "a transport must know what to do with each")]
pub enum Order {
    /// Send a message.
    Send(Outgoing),
    /// Close the stream of a call, which gives it up.
    Abort {
        /// The call.
        call: CallId,
    },
    /// Calls can be made from now on: again, if it comes a second time, because a session was renewed or a server
    /// started anew. A legacy server over HTTP has a stream of its own to be opened now.
    Ready {
        /// The revision that is spoken.
        revision: Revision,
    },
    /// Call [`Link::timeout`] at this time, and no more at the one that was named before.
    WakeAt(Time),
}

/// A message to be sent.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outgoing {
    /// The call that it opens, if it opens one.
    pub call: Option<CallId>,
    /// What it asks for or tells; nothing, if it is an answer.
    pub method: Option<Method>,
    /// The revision that it is written in; nothing, where that is still to be agreed on.
    pub revision: Option<Revision>,
    /// What its headers say, where there are headers.
    pub headers: Headers,
    /// The message.
    pub message: EncodedMessage,
}

impl Link {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, answering: FuturesUnordered::new(), asked: BTreeMap::new(), armed: None }
    }

    /// The time, on the clock that deadlines refer to.
    #[must_use]
    pub fn now(&self) -> Time {
        self.shared.now()
    }

    /// The next thing to do; `None` when the client is closed, or has no use for the server any more: then the transport
    /// lets go of it, and says so with [`closed`](Self::closed).
    pub async fn next(&mut self) -> Option<Order> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Like [`next`](Self::next), for a transport that is a state machine of its own.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Order>> {
        self.poll_order(cx, true)
    }

    /// Like [`poll_next`](Self::poll_next), for a transport that cannot send anything at the moment: there will be no
    /// order but [`Order::WakeAt`]. What is to be sent waits, and counts for the limits of the client.
    pub fn poll_blocked(&mut self, cx: &mut Context<'_>) -> Poll<Option<Order>> {
        self.poll_order(cx, false)
    }

    fn poll_order(&mut self, cx: &mut Context<'_>, can_send: bool) -> Poll<Option<Order>> {
        loop {
            let is_answered = self.poll_answers(cx);
            let armed = self.armed;
            let step = self.shared.with(|core, _| {
                if !core.inbox.is_empty() {
                    return Step::HandOn(core.take_inbox());
                }
                if can_send && let Some(order) = core.next_order() {
                    return Step::Order(Some(order));
                }
                if let Phase::Closing | Phase::Over(_) = core.phase {
                    return Step::Order(None);
                }
                let deadline = core.next_deadline();
                // One that is later than what is set already will do when that has passed.
                if let Some(at) = deadline.filter(|at| armed.is_none_or(|armed| *at < armed)) {
                    return Step::Order(Some(Order::WakeAt(at)));
                }
                core.driver = Some(cx.waker().clone());
                Step::Wait
            });
            match step {
                Step::HandOn(inbox) => inbox.into_iter().for_each(|inbound| self.hand_on(inbound)),
                Step::Order(order) => {
                    if let Some(Order::WakeAt(at)) = order {
                        self.armed = Some(at);
                    }
                    return Poll::Ready(order);
                }
                // The answer may be sent.
                Step::Wait if is_answered => {}
                Step::Wait => return Poll::Pending,
            }
        }
    }

    /// The time has come that [`Order::WakeAt`] named.
    pub fn timeout(&mut self) {
        self.armed = None;
        self.shared.with(|core, now| core.handle_timeout(now));
    }

    /// Whether another message may be told of: a server that does not read the answers that it asks for is not read from
    /// either. It changes when orders are taken.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.shared.look(|core| core.kernel.wants_input())
    }

    /// A message came.
    pub fn message(&self, bytes: &[u8]) {
        self.shared.with(|core, now| core.kernel.handle_bytes(now, bytes));
    }

    /// A message came that is longer than the transport reads. A response ends its call, or every call if its id is not
    /// known; a request is refused.
    pub fn oversized(&self, limit: usize, summary: &EnvelopeSummary) {
        self.shared.with(|core, now| core.kernel.handle_oversized(now, limit, summary));
    }

    /// A message came on the stream of a call.
    pub fn reply(&self, call: CallId, bytes: &[u8]) {
        self.shared.with(|core, now| core.kernel.handle_reply(now, call, bytes));
    }

    /// An HTTP status came instead of an answer to a call.
    pub fn status(&self, call: CallId, status: u16, body: &[u8]) {
        self.shared.with(|core, now| core.kernel.handle_status(now, call, status, body));
    }

    /// The stream of a call ended, or never came about: without an answer the call is over. `why` says what happened, if
    /// that is known.
    pub fn stream_ended(&self, call: CallId, why: Option<String>) {
        self.shared.with(|core, now| {
            match core.slots.get_mut(&call) {
                Some(slot) => slot.why = why,
                // The handshake, which nobody but the client itself waits for.
                None if matches!(core.phase, Phase::Connecting) => core.lost = why,
                None => {}
            }
            core.kernel.handle_stream_closed(now, call);
        });
    }

    /// The session cannot be used any more, which `call` met if there was one. If this is the latest session, the client
    /// begins a new one, or is closed: that is for [`ClientBuilder::on_session_lost`](crate::ClientBuilder::on_session_lost)
    /// to decide.
    pub fn session_lost(&self, call: Option<CallId>, is_latest: bool, reason: SessionLossReason) {
        let loss = self.shared.with(|core, _| core.session_loss(is_latest, reason));
        let settings = &self.shared.settings;
        let action = loss.as_ref().map_or(SessionLost::Renew, |loss| settings.on_session_lost.decide(loss));
        if let Some(loss) = loss.clone() {
            let renews = action == SessionLost::Renew;
            tracing::warn!(target: "mcp", %reason, renews, "the session with the server is lost, with all that was in it");
            if let Some(listener) = &settings.on_event {
                listener(ClientEvent::SessionLost { loss, action });
            }
        }
        self.shared.with(|core, now| match (action, loss) {
            (SessionLost::Fail, Some(loss)) => core.over(Closed::SessionLost(loss)),
            (SessionLost::Renew | SessionLost::Fail, _) => core.kernel.handle_session_lost(now, call, is_latest),
        });
    }

    /// The session that the client goes on with, or has.
    #[must_use]
    pub fn session_id(&self) -> Option<String> {
        self.shared.look(|core| core.session_id.clone())
    }

    /// The credentials that the session of [`session_id`](Self::session_id) was begun with, if that is known. With others
    /// it must not be used.
    #[must_use]
    pub fn session_owner(&self) -> Option<CredentialFingerprint> {
        self.shared.look(|core| core.session_owner)
    }

    /// The server began a session, or did without, in answer to a request with these credentials.
    pub fn set_session(&self, id: Option<String>, owner: Option<CredentialFingerprint>) {
        self.shared.with(|core, _| (core.session_id, core.session_owner) = (id, owner));
    }

    /// A legacy server may have told of changes that did not arrive: everything that is listened to is reported as changed.
    pub fn missed_changes(&self) {
        self.shared.with(|core, _| core.missed_changes());
    }

    /// A request is about to be sent with these credentials: what was kept for others is forgotten.
    ///
    /// A transport whose credentials may change says so before every request, also if they are those of the one before:
    /// the client may have heard of others from its [`CredentialSource`](crate::CredentialSource) in the meantime.
    pub fn set_credentials(&self, fingerprint: CredentialFingerprint) {
        self.shared.with(|core, _| core.set_credentials(fingerprint));
    }

    /// The server is gone: every call ends.
    ///
    /// Returns whether the client can go on with a new one, which it is told of with [`restarted`](Self::restarted).
    #[must_use]
    pub fn lost(&self, why: &Closed) -> Lost {
        self.server_lost(why, true)
    }

    /// Like [`lost`](Self::lost), for a server that has read nothing of what was sent to it: then the probe is not what it
    /// died of, and it is not started again because of that.
    #[must_use]
    pub fn lost_unread(&self, why: &Closed) -> Lost {
        self.server_lost(why, false)
    }

    fn server_lost(&self, why: &Closed, may_have_read: bool) -> Lost {
        self.shared.with(|core, _| core.disconnected(why, may_have_read));
        self.shared.with(|core, _| match core.phase {
            Phase::Closing | Phase::Over(_) => Lost::ForGood,
            Phase::Connecting | Phase::Ready(_) if core.died_of_probe => Lost::OfTheProbe,
            Phase::Connecting | Phase::Ready(_) => Lost::Restartable,
        })
    }

    /// There is a new server in place of one that was lost.
    pub fn restarted(&self) {
        let is_known = self.shared.with(|core, now| {
            let is_known = core.epoch > 0;
            if let Phase::Connecting = core.phase {
                core.died_of_probe = false;
                let detected = core.detected;
                core.kernel.restart(now, detected);
            }
            is_known
        });
        if is_known && let Some(listener) = &self.shared.settings.on_event {
            listener(ClientEvent::ServerRestarted);
        }
    }

    /// The transport has ended, and this is why, unless the client wanted it to.
    pub fn closed(self, why: Closed) {
        self.shared.with(|core, _| core.over(why));
    }

    /// Gives to the application what is meant for it.
    fn hand_on(&mut self, inbound: Inbound) {
        let settings = &self.shared.settings;
        match inbound {
            Inbound::Log(log) => {
                if let Some(listener) = &settings.on_log {
                    listener(log);
                }
            }
            Inbound::Notification { method, params } => {
                if let Some(listener) = &settings.on_notification {
                    listener(method, params);
                }
            }
            Inbound::Cancelled { id } => {
                if let Some(handle) = self.asked.remove(&id) {
                    handle.abort();
                }
            }
            Inbound::Request { method, params, responder } => {
                let answers = Arc::clone(&settings.answers);
                let (handle, registration) = AbortHandle::new_pair();
                self.asked.insert(responder.id().clone(), handle);
                let revision = self.shared.with(|core, _| match core.phase {
                    Phase::Ready(revision) => revision,
                    Phase::Connecting | Phase::Closing | Phase::Over(_) => Revision::LATEST_LEGACY,
                });
                let answering = async move { (responder, answers.answer(&method, &params, revision).await) };
                self.answering.push(Abortable::new(Box::pin(answering), registration));
            }
        }
    }

    /// Works on answers to the server; returns whether one was given.
    fn poll_answers(&mut self, cx: &mut Context<'_>) -> bool {
        let mut is_answered = false;
        while let Poll::Ready(Some(answered)) = Pin::new(&mut self.answering).poll_next(cx) {
            let Ok((responder, outcome)) = answered else { continue };
            self.asked.remove(responder.id());
            self.shared.with(|core, now| core.kernel.respond(now, responder, outcome.as_ref().map_err(Clone::clone)));
            is_answered = true;
        }
        is_answered
    }
}

/// What there is to do for a link.
enum Step {
    /// Give this to the application.
    HandOn(VecDeque<Inbound>),
    /// Give this to the transport; nothing, if it is to end.
    Order(Option<Order>),
    /// Wait.
    Wait,
}

/// What comes after a server was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a transport must know what to do with each")]
pub enum Lost {
    /// A new server can take its place.
    Restartable,
    /// A new server has to take its place: legacy servers are known to die of being asked whether they are modern, and
    /// the new one will not be.
    OfTheProbe,
    /// The client has no use for another one.
    ForGood,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.with(|core, _| core.over(Closed::Lost("its transport ended".to_owned())));
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("answering", &self.answering.len()).finish_non_exhaustive()
    }
}
