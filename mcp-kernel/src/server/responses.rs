//! Responses to the requests of a client.

use mcp_types::gate::MethodFacts;
use mcp_types::jsonrpc::EncodedMessage;
use mcp_types::{
    CallToolResult, ClientCapability, CompleteResult, EmptyResult, Era, ErrorObject, GetPromptResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Method, RawJson, RawObject,
    ReadResourceResult, RequestId, Restriction, ResultBody, ResultMeta, ResultType, Revision, restrict_raw,
    restrict_to,
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
                let mut error = error.unwrap_or_else(|| ErrorObject::internal_error("the result cannot be sent"));
                if entry.scope.method == Method::RESOURCES_READ {
                    // B-45: the error may come from a server of another revision.
                    error = error.translate_resource_not_found(entry.scope.revision);
                }
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

    /// Responds to a request with a result as JSON, for example one that was received from another server.
    ///
    /// The result of a core method is restricted to the client's revision as those of [`respond`](Self::respond) are. Members
    /// that no revision has stay, and so does a result that is not one of the method.
    pub fn respond_raw(&mut self, responder: Responder, result: &RawObject) -> Delivery {
        let entry = self.in_flight.get(responder.key()).map(|entry| (entry.scope.facts, entry.scope.revision));
        let Some((facts, revision)) = entry else { return Delivery::NotSent };
        let restricted = restrict_result(result, facts, revision);
        if let Some((_, restriction)) = &restricted {
            self.report_stripped(restriction, revision);
            if !restriction.refused().is_empty() {
                self.emit(Event::NotExpressible { request: responder.key(), what: restriction.refused().to_vec() });
                let error = ErrorObject::internal_error("the result cannot be sent");
                return self.respond::<EmptyResult>(responder, Err(error));
            }
        }
        let result = restricted.as_ref().map_or(result, |(result, _)| result);
        // The empty result keeps unknown members as they are.
        let mut result =
            result.decode::<EmptyResult>().map_err(|_| ErrorObject::internal_error("the result is not valid"));
        if let Ok(result) = &mut result {
            self.set_cache_hints(result, facts, revision);
        }
        self.respond(responder, result)
    }

    /// Adds the cache hints to a cacheable result, and removes them in revisions that do not have them. The empty result has
    /// no fields for them.
    // C-1, C-4
    fn set_cache_hints(&self, result: &mut EmptyResult, facts: Option<&MethodFacts>, revision: Revision) {
        let Some(cacheable) = facts.map(|facts| facts.cacheable).filter(|cacheable| !cacheable.is_empty()) else {
            return;
        };
        let scope = self.config.cache_scope.as_str();
        for (name, value) in [("ttlMs", self.config.ttl_ms().into()), ("cacheScope", serde_json::Value::from(scope))] {
            if !cacheable.contains(revision) {
                result.extra.remove(name);
            } else if result.result_type.as_ref().is_none_or(|kind| *kind == ResultType::COMPLETE)
                && result.extra.get(name).is_none()
            {
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
        if let Some(meta) = result.members_mut().meta
            && meta.as_ref().is_some_and(|meta| **meta == ResultMeta::default())
        {
            // Nothing is left of it.
            *meta = None;
        }
        // Mostly there are none.
        let mut what = restriction.refused().to_vec();
        what.extend_from_slice(restriction.missing());
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
        self.report_stripped(&restriction, revision);
        restriction
    }

    fn report_stripped(&mut self, restriction: &Restriction, revision: Revision) {
        if !restriction.dropped().is_empty() {
            self.emit(Event::Stripped { revision, members: restriction.dropped().to_vec() });
        }
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

/// Restricts the result of a core method to a revision; `None` if it is not one of the method.
fn restrict_result(
    result: &RawObject,
    facts: Option<&MethodFacts>,
    revision: Revision,
) -> Option<(RawObject, Restriction)> {
    let restricted = match facts?.name {
        "tools/list" => restrict_raw::<ListToolsResult>(result, revision),
        "tools/call" => restrict_raw::<CallToolResult>(result, revision),
        "prompts/list" => restrict_raw::<ListPromptsResult>(result, revision),
        "prompts/get" => restrict_raw::<GetPromptResult>(result, revision),
        "resources/list" => restrict_raw::<ListResourcesResult>(result, revision),
        "resources/templates/list" => restrict_raw::<ListResourceTemplatesResult>(result, revision),
        "resources/read" => restrict_raw::<ReadResourceResult>(result, revision),
        "completion/complete" => restrict_raw::<CompleteResult>(result, revision),
        _ => return None,
    };
    restricted.ok()
}

/// Returns the error for input requests whose capability the client did not declare.
//
fn undeclared(result: &impl ResultBody, entry: &Entry) -> Option<ErrorObject> {
    if entry.scope.revision.era() == Era::Legacy {
        return None;
    }
    let requests = result.as_input_required()?.input_requests.as_ref()?;
    let needed = requests.iter().flat_map(|(_, request)| ClientCapability::required_by(request));
    let mut required = None;
    for missing in needed.filter(|needed| !needed.is_declared(&entry.scope.client.capabilities)) {
        missing.declare(required.get_or_insert_default());
    }
    required.map(ErrorObject::missing_required_client_capability)
}
