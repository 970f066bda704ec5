//! Responses to the requests of a client.

use mcp_types::gate::MethodFacts;
use mcp_types::jsonrpc::EncodedMessage;
use mcp_types::{
    ClientCapability, EmptyResult, Era, ErrorObject, RawJson, RawObject, RequestId, Restriction, ResultBody,
    ResultType, Revision, restrict_to,
};

use super::commands::Delivery;
use super::connection::Connection;
use super::event::Event;
use super::in_flight::{Entry, Responder};
use super::transmit::Failure;
use crate::RequestKey;

impl Connection {
    /// Responds to a request.
    ///
    /// Members that depend on the revision are added or removed: `resultType`, the server's name, cache hints, and
    /// members that the client's revision does not have. Nothing is sent if the request was cancelled.
    // K-5
    pub fn respond<R: ResultBody>(&mut self, responder: Responder, outcome: Result<R, ErrorObject>) -> Delivery {
        let key = responder.key();
        let Some(entry) = self.in_flight.close(key) else { return Delivery::NotSent };
        let written = outcome.map_err(Some).and_then(|result| self.write_response(key, &entry, result));
        match written {
            Ok(message) => self.queue_response(key, entry.batch, message, None),
            Err(error) => {
                let error = error.unwrap_or_else(|| ErrorObject::internal_error("the result cannot be sent"));
                self.queue_error(
                    key,
                    entry.batch,
                    Some(&entry.scope.id),
                    entry.scope.revision,
                    &error,
                    Failure::Failed,
                );
            }
        }
        self.start_queued();
        Delivery::Queued
    }

    /// Responds to a request with a result that has no type of its own.
    pub fn respond_raw(&mut self, responder: Responder, result: &RawObject) -> Delivery {
        // The empty result keeps unknown members as they are.
        let mut result =
            result.decode::<EmptyResult>().map_err(|_| ErrorObject::internal_error("the result is not valid"));
        let entry = self.in_flight.get_mut(responder.key()).map(|entry| (entry.scope.facts, entry.scope.revision));
        if let (Ok(result), Some((facts, revision))) = (&mut result, entry) {
            self.add_cache_hints(result, facts, revision);
        }
        self.respond(responder, result)
    }

    /// Adds the cache hints to a cacheable result. The empty result has no fields for them.
    // C-1, C-4
    fn add_cache_hints(&self, result: &mut EmptyResult, facts: Option<&MethodFacts>, revision: Revision) {
        let cacheable = facts.is_some_and(|facts| facts.cacheable.contains(revision));
        if !cacheable || result.result_type.as_ref().is_some_and(|kind| *kind != ResultType::COMPLETE) {
            return;
        }
        let scope = self.config.cache_scope.as_str();
        for (name, value) in [("ttlMs", self.config.ttl_ms().into()), ("cacheScope", serde_json::Value::from(scope))] {
            if result.extra.get(name).is_none() {
                result.extra.insert(name, RawJson::from(value));
            }
        }
    }

    fn write_response<R: ResultBody>(
        &mut self,
        key: RequestKey,
        entry: &Entry,
        mut result: R,
    ) -> Result<EncodedMessage, Option<ErrorObject>> {
        self.complete(&mut result, entry.scope.facts, entry.scope.revision);
        // Before the revision removes the member.
        let asks = result.members_mut().result_type.is_some_and(|kind| *kind == Some(ResultType::INPUT_REQUIRED));
        let restriction = self.restrict(&mut result, entry.scope.revision);
        let mut what: Vec<&'static str> = restriction.refused().iter().chain(restriction.missing()).copied().collect();
        let may_ask = entry.scope.facts.is_some_and(|facts| facts.may_require_input.contains(entry.scope.revision));
        if asks && !may_ask {
            //
            what.push("InputRequiredResult");
        }
        if let Some(result) = result.as_input_required()
            && result.input_requests.is_none()
            && result.request_state.is_none()
        {
            //
            what.push("InputRequiredResult without inputRequests and requestState");
        }
        if let Some(missing) = undeclared(&result, entry) {
            return Err(Some(missing));
        }
        let message =
            if what.is_empty() { self.write(&entry.scope.id, &mut result, entry.scope.revision) } else { None };
        if message.is_none() {
            self.emit(Event::NotExpressible { request: key, what });
        }
        message.ok_or(None)
    }

    /// Serializes a complete result. The `_meta` that most results share was serialized before.
    pub(super) fn write(
        &self,
        id: &RequestId,
        result: &mut impl ResultBody,
        revision: Revision,
    ) -> Option<EncodedMessage> {
        let has_no_meta = revision.era() == Era::Modern && result.members_mut().meta.is_some_and(|meta| meta.is_none());
        let mut message = EncodedMessage::result(id, result).ok()?;
        if let Some(meta) = self.config.info_meta().filter(|_| has_no_meta) {
            message.add_meta(meta);
        }
        Some(message)
    }

    /// Removes the members that a revision does not have, and reports them.
    pub(super) fn restrict(&mut self, result: &mut impl ResultBody, revision: Revision) -> Restriction {
        let restriction = restrict_to(result, revision);
        if !restriction.dropped().is_empty() {
            let members = restriction.dropped().to_vec();
            self.emit(Event::Stripped { revision, members });
        }
        restriction
    }

    /// Adds the members that every modern result has, unless the handler set them.
    // M-6, X-15, C-1, C-4
    pub(super) fn complete(&self, result: &mut impl ResultBody, facts: Option<&MethodFacts>, revision: Revision) {
        if revision.era() == Era::Legacy {
            return;
        }
        let mut is_complete = true;
        let default = result.default_result_type();
        let members = result.members_mut();
        if let Some(kind) = members.result_type {
            is_complete = *kind.get_or_insert(default) == ResultType::COMPLETE;
        }
        if self.config.send_server_info
            && let Some(Some(meta)) = members.meta
        {
            meta.server_info.get_or_insert_with(|| self.config.info().clone());
        }
        let cacheable = facts.is_some_and(|facts| facts.cacheable.contains(revision));
        if is_complete
            && cacheable
            && let Some((ttl_ms, scope)) = members.cache
        {
            ttl_ms.get_or_insert_with(|| self.config.ttl_ms());
            scope.get_or_insert_with(|| self.config.cache_scope.clone());
        }
    }
}

/// Returns the error for input requests whose capability the client did not declare.
//
fn undeclared(result: &impl ResultBody, entry: &Entry) -> Option<ErrorObject> {
    if entry.scope.revision.era() == Era::Legacy {
        return None;
    }
    let requests = result.as_input_required()?.input_requests.as_ref()?;
    let needed = requests.iter().flat_map(|(_, question)| ClientCapability::required_by(question));
    let mut required = None;
    for missing in needed.filter(|needed| !needed.is_declared(&entry.scope.client.capabilities)) {
        missing.declare(required.get_or_insert_default());
    }
    required.map(ErrorObject::missing_required_client_capability)
}
