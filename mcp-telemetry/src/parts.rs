//! What an attribute set is made of.

use mcp_kernel::observe::{Network, Operation, OperationOutcome, Session};
use mcp_types::{Method, Revision};
use opentelemetry::{KeyValue, StringValue};

use crate::error_type::ErrorType;
use crate::methods::MethodId;
use crate::names::{
    ERROR_TYPE, METHOD_NAME, NETWORK_PROTOCOL_NAME, NETWORK_TRANSPORT, OTHER, PROMPT_NAME, PROTOCOL_VERSION,
    STATUS_CODE, TOOL_NAME,
};

/// The parts of an attribute set. An operation has a method, a session has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) method: Option<MethodId>,
    pub(crate) target: Option<Target<'a>>,
    pub(crate) revision: Option<Revision>,
    pub(crate) network: Network,
    pub(crate) error: Option<ErrorType>,
}

/// The tool or prompt of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    attribute: &'static str,
    pub(crate) name: &'a str,
}

impl<'a> Parts<'a> {
    pub(crate) fn of_operation(method: MethodId, operation: &Operation<'a>, outcome: OperationOutcome) -> Self {
        Self {
            method: Some(method),
            target: operation.target.and_then(|name| Target::of(operation.method, name)),
            revision: operation.revision,
            network: operation.network,
            error: ErrorType::of_outcome(outcome),
        }
    }

    pub(crate) fn of_session(session: &Session, error: Option<&'static str>) -> Self {
        Self {
            method: None,
            target: None,
            revision: session.revision,
            network: session.network,
            error: error.map(ErrorType::Name),
        }
    }

    /// Returns the attributes, sorted by their keys as the SDK stores them.
    pub(crate) fn to_attributes(self) -> Vec<KeyValue> {
        let mut attributes = Vec::with_capacity(8);
        let mut add = |key: &'static str, value: Option<StringValue>| {
            attributes.extend(value.map(|value| KeyValue::new(key, value)));
        };
        add(METHOD_NAME, self.method.map(|method| method.name().into()));
        if let Some(Target { attribute, name }) = self.target {
            add(attribute, Some(name.to_owned().into()));
        }
        add(PROTOCOL_VERSION, self.revision.map(|revision| revision.as_str().into()));
        add(NETWORK_TRANSPORT, self.network.transport_name().map(Into::into));
        add(NETWORK_PROTOCOL_NAME, self.network.protocol_name().map(Into::into));
        add(ERROR_TYPE, self.error.map(ErrorType::to_value));
        if let Some(error @ ErrorType::Code(_)) = self.error {
            add(STATUS_CODE, Some(error.to_value()));
        }
        attributes.sort_by(|left, right| left.key.cmp(&right.key));
        attributes
    }

    /// What is counted if there is no room for another set.
    pub(crate) fn to_other_attributes(self) -> Vec<KeyValue> {
        vec![KeyValue::new(if self.method.is_some() { METHOD_NAME } else { ERROR_TYPE }, OTHER)]
    }
}

impl<'a> Target<'a> {
    fn of(method: &Method, name: &'a str) -> Option<Self> {
        let attribute = match method.as_str() {
            "tools/call" => TOOL_NAME,
            "prompts/get" => PROMPT_NAME,
            _ => return None,
        };
        Some(Self { attribute, name })
    }
}
