//! Requests of the server to this client, which only the legacy era has.

use mcp_types::gate::{self, Direction};
use mcp_types::jsonrpc::{EncodedMessage, Payload, Request, UnknownId};
use mcp_types::{ClientCapability, EmptyResult, Era, ErrorCode, ErrorObject, Method, RawObject, RequestId, Revision};

use super::connection::{Connection, Stage};
use super::event::{Event, Responder};
use crate::errors::PeerMisbehaved;
use crate::{CallId, Time};

/// A request of the server in flight.
pub(super) struct OpenRequest {
    /// Distinguishes it from an earlier request with the same id.
    pub(super) generation: u64,
    /// The size of its parameters.
    pub(super) bytes: usize,
    /// The call on whose stream it arrived.
    pub(super) stream: Option<CallId>,
}

/// Who handles a request of the server.
pub(super) enum Received {
    /// The application, to which it was passed on.
    ByApplication,
    /// The kernel has handled it, with the code of the error response if it was refused.
    ByKernel(Option<ErrorCode>),
}

impl Connection {
    pub(super) fn handle_request(&mut self, stream: Option<CallId>, request: Request<'_>) -> Received {
        let Request { id, method, params, .. } = request;
        let limits = &self.config.limits;
        if id.as_str().is_some_and(|id| id.len() > limits.max_id_bytes) {
            let limit = limits.max_id_bytes;
            return self.ignore(PeerMisbehaved::IdTooLong { limit });
        }
        if method == Method::PING && matches!(self.stage, Stage::Handshaking { .. }) {
            // B-4: the only request that a server may send before the handshake is complete.
            return self.respond_to_ping(&id);
        }
        let Some(revision) = self.revision().ok().filter(|revision| revision.era() == Era::Legacy) else {
            // DU-45, M-16: modern servers have no requests to clients. A legacy one has to wait for the handshake.
            return self.ignore(PeerMisbehaved::UnknownMethod(method));
        };
        let what = if self.requests.contains_key(&id) {
            PeerMisbehaved::DuplicateId(id.clone())
        } else if method == Method::PING {
            return self.respond_to_ping(&id);
        } else if !self.serves(&method, revision) {
            PeerMisbehaved::UnknownMethod(method)
        } else if self.is_busy_with(params.as_ref().map_or(0, |params| params.as_str().len())) {
            PeerMisbehaved::TooManyRequests
        } else {
            self.generation += 1;
            let responder = Responder { id: id.clone(), generation: self.generation };
            let params = params.map(Payload::into_owned).unwrap_or_default();
            let bytes = params.as_str().len();
            self.request_bytes += bytes;
            let related = self.related(stream, &method);
            // A call that has ended has no idle timeout.
            let stream = stream.filter(|stream| self.calls.is_open(*stream));
            self.requests.insert(id, OpenRequest { generation: self.generation, bytes, stream });
            self.calls.open_peer_request(stream);
            self.events.push_back(Event::Request { method, params, responder, related });
            return Received::ByApplication;
        };
        self.refuse(&id, revision, &what);
        self.ignore(what)
    }

    /// Emits why a request is not handled.
    fn ignore(&mut self, what: PeerMisbehaved) -> Received {
        let error = what.to_error_object().map(|error| error.code);
        self.misbehaved(what);
        Received::ByKernel(error)
    }

    /// Responds to a request of the server.
    ///
    /// Returns whether the response is queued. It is not if the server cancelled the request.
    pub fn respond(&mut self, now: Time, responder: Responder, outcome: Result<&RawObject, ErrorObject>) -> bool {
        let Responder { id, generation } = responder;
        // After a cancellation the server may reuse the id.
        if self.requests.get(&id).is_none_or(|open| open.generation != generation) {
            return false;
        }
        self.close_request(now, &id);
        let written = match outcome {
            Ok(result) => EncodedMessage::result(&id, result),
            Err(error) => EncodedMessage::error(Some(&id), &error, UnknownId::Omit),
        };
        let is_written = written.is_ok();
        if let Ok(message) = written {
            self.send_response(message);
        }
        is_written
    }

    /// Removes a request of the server; returns whether it was in flight.
    pub(super) fn close_request(&mut self, now: Time, id: &RequestId) -> bool {
        let Some(closed) = self.requests.remove(id) else { return false };
        self.request_bytes -= closed.bytes;
        self.calls.close_peer_request(now, closed.stream, &mut self.deadlines);
        true
    }

    fn respond_to_ping(&mut self, id: &RequestId) -> Received {
        if let Ok(message) = EncodedMessage::result(id, &EmptyResult::default()) {
            self.send_response(message);
        }
        Received::ByKernel(None)
    }

    /// Refuses a request of the server.
    pub(super) fn refuse(&mut self, id: &RequestId, revision: Revision, what: &PeerMisbehaved) {
        let error = what.to_error_object().unwrap_or_else(|| ErrorObject::internal_error("the request was refused"));
        if let Ok(message) = EncodedMessage::error(Some(id), &error, UnknownId::for_revision(revision)) {
            self.send_response(message);
        }
    }

    /// Returns whether the limits do not allow another request with parameters of this size.
    fn is_busy_with(&self, bytes: usize) -> bool {
        let limits = &self.config.limits;
        self.requests.len() >= limits.max_in_flight
            || (!self.requests.is_empty() && self.request_bytes + bytes > limits.max_in_flight_bytes)
    }

    /// Returns whether the revision has a request of the server, and the client declared the capability for it.
    fn serves(&self, method: &Method, revision: Revision) -> bool {
        let travels = gate::method(method).is_none_or(|facts| facts.may_be_sent(Direction::ServerToClient, revision));
        let capabilities = &self.config.capabilities;
        let declared = match method.as_str() {
            "sampling/createMessage" => ClientCapability::Sampling.is_declared(capabilities),
            "roots/list" => ClientCapability::Roots.is_declared(capabilities),
            "elicitation/create" => {
                ClientCapability::ElicitationForm.is_declared(capabilities)
                    || ClientCapability::ElicitationUrl.is_declared(capabilities)
            }
            name if name.starts_with("tasks/") => capabilities.tasks.is_some(),
            _ => true,
        };
        travels && declared
    }

    /// Removes all requests of the server. Calls in flight continue at `now`, if there is one.
    pub(super) fn forget_requests(&mut self, now: Option<Time>) {
        self.request_bytes = 0;
        for (id, request) in std::mem::take(&mut self.requests) {
            match now {
                Some(now) => self.calls.close_peer_request(now, request.stream, &mut self.deadlines),
                None => self.calls.forget_peer_requests(),
            }
            self.events.push_back(Event::RequestCancelled { id });
        }
    }
}
