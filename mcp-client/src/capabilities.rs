//! The capabilities that a client declares.

use mcp_types::{ClientCapabilities, ClientCapability, OrderedMap, RawObject};

use crate::error::Error;
use crate::request_handlers::RequestHandlers;

/// Merges the capabilities that the application declares as a whole with those that its handlers have.
pub(crate) fn merge(
    mut capabilities: ClientCapabilities,
    extensions: OrderedMap<RawObject>,
    handlers: &RequestHandlers,
    has_root_list: bool,
) -> Result<ClientCapabilities, Error> {
    let has_form = ClientCapability::ElicitationForm.is_declared(&capabilities);
    if handlers.url.is_some() && !ClientCapability::ElicitationUrl.is_declared(&capabilities) {
        ClientCapability::ElicitationUrl.declare(&mut capabilities);
        // Without `url`, an empty object declares forms.
        if has_form && capabilities.elicitation.as_ref().is_some_and(|elicitation| elicitation.form.is_none()) {
            ClientCapability::ElicitationForm.declare(&mut capabilities);
        }
    }
    if handlers.form.is_some() && capabilities.elicitation.as_ref().is_none_or(|declared| declared.form.is_none()) {
        ClientCapability::ElicitationForm.declare(&mut capabilities);
    }
    if handlers.sampling.is_some() {
        if !handlers.sampling_tools && ClientCapability::SamplingTools.is_declared(&capabilities) {
            return Err(contradiction(
                "`sampling.tools` is declared; use `on_sampling_with_tools` instead of `on_sampling`",
            ));
        }
        ClientCapability::Sampling.declare(&mut capabilities);
        if handlers.sampling_tools && !ClientCapability::SamplingTools.is_declared(&capabilities) {
            ClientCapability::SamplingTools.declare(&mut capabilities);
        }
    }
    if handlers.roots.is_some() {
        let declared = capabilities.roots.get_or_insert_default();
        if has_root_list && declared.list_changed == Some(false) {
            return Err(contradiction(
                "`roots.listChanged` is declared as false; use `on_roots` instead of `roots`, whose list can change",
            ));
        }
        declared.list_changed.get_or_insert(true);
    }
    for (name, settings) in extensions {
        let declared = capabilities.extensions.get_or_insert_default();
        if declared.get(&name).is_some_and(|other| other.as_str() != settings.as_str()) {
            return Err(contradiction(&format!("the extension `{name}` is declared twice, with different settings")));
        }
        declared.insert(name, settings);
    }
    Ok(capabilities)
}

fn contradiction(what: &str) -> Error {
    Error::InvalidCapabilities(what.to_owned())
}

#[cfg(test)]
mod tests {
    use mcp_types::{
        CreateMessageResult, ElicitAction, ElicitResult, ListRootsResult, Role, SamplingContent, TextContent,
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::request_handlers::handler;

    fn forms(mut handlers: RequestHandlers) -> RequestHandlers {
        handlers.form = Some(handler(async |_, _| ElicitResult::new(ElicitAction::Decline)));
        handlers
    }

    fn urls(mut handlers: RequestHandlers) -> RequestHandlers {
        handlers.url = Some(handler(async |_, _| ElicitResult::new(ElicitAction::Decline)));
        handlers
    }

    fn sampled() -> CreateMessageResult {
        CreateMessageResult::new(Role::ASSISTANT, SamplingContent::from(TextContent::new("a")), "model")
    }

    fn sampling(with_tools: bool) -> RequestHandlers {
        let mut handlers = RequestHandlers { sampling_tools: with_tools, ..RequestHandlers::default() };
        handlers.sampling = Some(handler(async |_, _| sampled()));
        handlers
    }

    fn roots() -> RequestHandlers {
        let roots = Some(handler(async |_, ()| ListRootsResult::new(Vec::new())));
        RequestHandlers { roots, ..RequestHandlers::default() }
    }

    fn merged(given: Value, handlers: &RequestHandlers, has_root_list: bool) -> Result<Value, Error> {
        let given = serde_json::from_value(given).unwrap();
        merge(given, OrderedMap::new(), handlers, has_root_list).map(|merged| serde_json::to_value(merged).unwrap())
    }

    /// What is given as a whole stays, and what follows from handlers is added.
    // covers: GW-4
    #[test]
    fn gw_4_capabilities_are_merged() {
        let none = RequestHandlers::default;
        let mirrored = json!({
            "experimental": { "a": { "b": 1 } }, "tasks": { "list": {} }, "sampling": { "context": {} },
            "elicitation": {}, "roots": { "listChanged": false }, "unknown": 1,
        });
        assert_eq!(merged(mirrored.clone(), &none(), false).unwrap(), mirrored);
        for (given, handlers, expected) in [
            (json!({}), forms(none()), json!({ "elicitation": { "form": {} } })),
            (json!({}), urls(none()), json!({ "elicitation": { "url": {} } })),
            (json!({ "elicitation": {} }), urls(none()), json!({ "elicitation": { "form": {}, "url": {} } })),
            (
                json!({ "elicitation": { "url": {} } }),
                forms(none()),
                json!({ "elicitation": { "form": {}, "url": {} } }),
            ),
            (
                json!({ "sampling": { "context": {} } }),
                sampling(true),
                json!({ "sampling": { "context": {}, "tools": {} } }),
            ),
            (json!({}), sampling(false), json!({ "sampling": {} })),
            (json!({}), roots(), json!({ "roots": { "listChanged": true } })),
            (json!({ "roots": { "listChanged": false } }), roots(), json!({ "roots": { "listChanged": false } })),
        ] {
            assert_eq!(merged(given.clone(), &handlers, false).unwrap(), expected, "{given}");
        }
    }

    /// What cannot both be true is an error that says what to change.
    // covers: GW-4
    #[test]
    fn gw_4_contradictions_are_errors() {
        let text = |result: Result<Value, Error>| result.unwrap_err().to_string();
        assert!(
            text(merged(json!({ "sampling": { "tools": {} } }), &sampling(false), false))
                .contains("on_sampling_with_tools")
        );
        assert!(text(merged(json!({ "roots": { "listChanged": false } }), &roots(), true)).contains("on_roots"));
        let given: ClientCapabilities = serde_json::from_value(json!({ "extensions": { "a/b": { "c": 1 } } })).unwrap();
        let other = OrderedMap::from_iter([("a/b".to_owned(), RawObject::empty())]);
        let error = merge(given, other, &RequestHandlers::default(), false).unwrap_err();
        assert!(error.to_string().contains("`a/b`"), "{error}");
    }
}
