//! The application around the client: answers what servers ask, and remembers what they told.

#![expect(deprecated, reason = "rmcp deprecates what the newest revision does, which is served all the same")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ErrorData, Implementation, ListRootsResult, LoggingMessageNotificationParam,
    ProgressNotificationParam, ProtocolVersion, ResourceUpdatedNotificationParam, Root, SamplingMessage,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde::Serialize;
use serde_json::{Map, Value, json};

pub(crate) const SAMPLED: &str = "an answer of the interop model";
pub(crate) const ROOTS: [&str; 2] = ["file:///interop/one", "file:///interop/two"];

/// Clones are the same host.
#[derive(Clone)]
pub(crate) struct Host {
    config: ClientConfig,
    state: Arc<Mutex<State>>,
}

struct State {
    /// What the user does with the next forms.
    action: ElicitationAction,
    /// What the server asked or told, in order.
    heard: Vec<(Heard, Value)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Change,
    Form,
    Log,
    Progress,
    Prompt,
    Roots,
}

impl Host {
    /// Makes a host that declares capabilities, given as JSON.
    pub(crate) fn new(revision: ProtocolVersion, capabilities: Value) -> serde_json::Result<Self> {
        let capabilities: ClientCapabilities = serde_json::from_value(capabilities)?;
        let config =
            ClientConfig::new(capabilities, Implementation::new("interop", "1.0.0")).with_protocol_version(revision);
        let state = State { action: ElicitationAction::Accept, heard: Vec::new() };
        Ok(Self { config, state: Arc::new(Mutex::new(state)) })
    }

    pub(crate) fn answer_forms_with(&self, action: ElicitationAction) {
        self.state().action = action;
    }

    /// What was heard of a kind since it was last forgotten.
    pub(crate) fn heard(&self, kind: Heard) -> Vec<Value> {
        self.state().heard.iter().filter(|(one, _)| *one == kind).map(|(_, value)| value.clone()).collect()
    }

    pub(crate) fn forget(&self) {
        self.state().heard.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, kind: Heard, what: impl Serialize) {
        let what = serde_json::to_value(what).unwrap_or_else(|fault| json!(fault.to_string()));
        self.state().heard.push((kind, what));
    }
}

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.hear(Heard::Prompt, params);
        Ok(CreateMessageResult::new(SamplingMessage::assistant_text(SAMPLED), "interop-model".to_owned())
            .with_stop_reason(CreateMessageResult::STOP_REASON_END_TURN))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.hear(Heard::Roots, ());
        Ok(ListRootsResult::new(ROOTS.into_iter().map(Root::new).collect()))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let form = serde_json::to_value(&params).map_err(|fault| ErrorData::internal_error(fault.to_string(), None))?;
        let content = filled(&form["requestedSchema"]);
        self.hear(Heard::Form, form);
        let action = self.state().action.clone();
        let accepted = action == ElicitationAction::Accept;
        let answer = ElicitResult::new(action);
        Ok(if accepted { answer.with_content(content) } else { answer })
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.hear(Heard::Progress, params);
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        self.hear(Heard::Log, params);
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        self.hear(Heard::Change, params);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.hear(Heard::Change, "resources");
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.hear(Heard::Change, "tools");
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.hear(Heard::Change, "prompts");
    }
}

/// A form filled in: text that can be recognised, and true.
fn filled(schema: &Value) -> Value {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let value = |name: &str, field: &Value| match field["type"].as_str() {
        Some("boolean") => json!(true),
        _ => json!(format!("interop-{name}")),
    };
    Value::Object(fields.map(|(name, field)| (name.clone(), value(name, field))).collect::<Map<_, _>>())
}
