//! Requests of a server to its client, which only the legacy era has.

use mcp_types::gate::{self, Direction};
use mcp_types::jsonrpc::{EncodedMessage, PayloadBuf};
use mcp_types::{
    CancelledNotificationParams, ClientCapability, Era, Method, ProgressToken, RawJson, RawObject, RequestId,
    RequestParams, Revision,
};

use super::connection::Connection;
use super::event::Event;
use super::outbox::Priority;
use super::transmit::Route;
use crate::calls::{CallOptions, OpenCall};
use crate::errors::{CallError, CommandError};
use crate::{CallId, RequestKey, Time};

impl Connection {
    /// Sends a request to a legacy client. Modern clients have no server-to-client requests.
    ///
    /// `related` is the request during which it is sent, on whose route it goes. The outcome follows as
    /// [`Event::CallFinished`], exactly once.
    ///
    /// # Errors
    ///
    /// Returns an error, and sends nothing, if the request cannot be sent to this client, or not yet
    /// ([`CommandError::is_temporary`]).
    // M-15, B-10
    pub fn call(
        &mut self,
        now: Time,
        related: Option<RequestKey>,
        method: Method,
        params: &RawObject,
        options: CallOptions,
    ) -> Result<CallId, CommandError> {
        self.check_call(related, &method, params)?;
        let mut params: RequestParams = params.decode().map_err(|_| CommandError::NotAnObject)?;
        let rare = self.rare.make_mut();
        let (call, id) = rare.calls.start(now, options, &mut rare.deadlines);
        // The call's id serves as the token, which makes tokens unique. The application's own token is restored when
        // progress arrives.
        let token = params.meta.get_or_insert_default().progress_token.replace(ProgressToken::from(&id));
        if let Some(open) = rare.calls.get_mut(call) {
            (open.token, open.related) = (token, related);
        }
        let Ok(message) = EncodedMessage::request(&id, &method, Some(&params)) else {
            let _ = rare.calls.end(call, &mut rare.deadlines);
            return Err(CommandError::NotAnObject);
        };
        let route = related.map_or(Route::Standalone, |key| self.related_route(key));
        self.send(route, message, Priority::Required);
        Ok(call)
    }

    fn check_call(
        &mut self,
        related: Option<RequestKey>,
        method: &Method,
        params: &RawObject,
    ) -> Result<(), CommandError> {
        if self.closed {
            return Err(CommandError::Closed);
        }
        if let Some(key) = related {
            let entry = self.in_flight.get_mut(key).ok_or(CommandError::Ended)?;
            if entry.scope.revision.era() == Era::Modern {
                return Err(CommandError::NoBackChannel("modern clients get input requests in the result instead"));
            }
        }
        if !self.has_back_channel {
            return Err(CommandError::NoBackChannel("server-to-client requests need a session"));
        }
        let route = related.map_or(Route::Standalone, |key| self.related_route(key));
        if self.outbox.is_full(&self.config.limits, route) {
            return Err(CommandError::OutboxFull);
        }
        let agreed = self.lifecycle.agreed().ok_or(CommandError::NotReady)?;
        // A client that sends requests has completed the handshake, even if it never sent `notifications/initialized`.
        let is_ready = self.lifecycle.is_ready() || (related.is_some() && !self.config.require_initialized);
        if !is_ready && *method != Method::PING {
            return Err(CommandError::NotReady);
        }
        if let Some(facts) = gate::method(method)
            && !facts.may_be_sent(Direction::ServerToClient, agreed.revision)
        {
            return Err(CommandError::NotInRevision { method: method.clone(), revision: agreed.revision });
        }
        let needed = needed_for(method, params, agreed.revision);
        let client = agreed.read_client();
        let missing = needed.into_iter().find(|needed| !needed.is_declared(&client.capabilities));
        if let Some(missing) = missing {
            return Err(CommandError::MissingCapability(missing));
        }
        let limit = self.config.limits.max_calls;
        if self.rare.calls.len() >= limit { Err(CommandError::TooManyCalls { limit }) } else { Ok(()) }
    }

    /// Returns the id that a call in flight has on the wire, for traces.
    #[must_use]
    pub fn request_id(&self, call: CallId) -> Option<&RequestId> {
        self.rare.calls.id_of(call)
    }

    /// Cancels a call and notifies the client. The outcome is [`CallError::Cancelled`].
    ///
    /// # Errors
    ///
    /// Returns [`CommandError::Ended`] if the call has ended.
    pub fn cancel(&mut self, call: CallId) -> Result<(), CommandError> {
        if self.cancel_call(call, CallError::Cancelled) { Ok(()) } else { Err(CommandError::Ended) }
    }

    pub(super) fn cancel_call(&mut self, call: CallId, why: CallError) -> bool {
        let Some(ended) = self.end_call(call) else { return false };
        let params = CancelledNotificationParams::default().request_id(ended.id);
        let method = Method::NOTIFICATIONS_CANCELLED;
        // It follows the request that it cancels, as long as that stream is open.
        let related = ended.related.filter(|key| self.in_flight.get_mut(*key).is_some());
        let route = related.map_or(Route::Standalone, |key| self.related_route(key));
        let _ = self.queue_notification(route, &method, &params, Priority::Required);
        self.emit(Event::CallFinished { call, outcome: Err(why) });
        true
    }

    pub(super) fn finish_call(&mut self, call: CallId, outcome: Result<PayloadBuf, CallError>) {
        if self.end_call(call).is_some() {
            self.emit(Event::CallFinished { call, outcome });
        }
    }

    fn end_call(&mut self, call: CallId) -> Option<OpenCall> {
        let rare = self.rare.get_mut()?;
        rare.calls.end(call, &mut rare.deadlines)
    }
}

/// The capabilities that a client must have declared for a request.
// X-13, SA-2, SA-4, EL-2
fn needed_for(method: &Method, params: &RawObject, revision: Revision) -> Vec<ClientCapability> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Features {
        mode: Option<String>,
        tools: Option<RawJson>,
        tool_choice: Option<RawJson>,
        include_context: Option<String>,
    }

    let asked = params.decode::<Features>().ok();
    match method.as_str() {
        "elicitation/create" => {
            let by_url = asked.is_some_and(|asked| asked.mode.as_deref() == Some("url"));
            vec![if by_url { ClientCapability::ElicitationUrl } else { ClientCapability::ElicitationForm }]
        }
        "sampling/createMessage" => {
            let mut needed = vec![ClientCapability::Sampling];
            if let Some(asked) = asked {
                if asked.tools.is_some() || asked.tool_choice.is_some() {
                    needed.push(ClientCapability::SamplingTools);
                }
                // Before 2025-11-25 there was no capability for this.
                let declarable = revision >= Revision::V2025_11_25;
                if declarable && asked.include_context.is_some_and(|context| context != "none") {
                    needed.push(ClientCapability::SamplingContext);
                }
            }
            needed
        }
        "roots/list" => vec![ClientCapability::Roots],
        _ => Vec::new(),
    }
}
