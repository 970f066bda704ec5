//! What handlers need the server to have.

use std::any::{Any, TypeId, type_name};
use std::sync::Arc;

use crate::build::error::BuildError;
use crate::build::registry::Registry;
use crate::extensions::Extensions;

/// What the parameters of a handler need the server to have, checked when the server is built or changed.
#[derive(Clone, Debug, Default)]
pub struct Requirements {
    states: Vec<RequiredState>,
}

/// The type of a state, by which it is found.
#[derive(Clone, Copy, Debug)]
struct RequiredState {
    id: TypeId,
    /// The `Arc` of the type, which is another state, and often there by mistake.
    arc: TypeId,
    name: &'static str,
}

impl Requirements {
    /// Requires a state of this type ([`ServerBuilder::state`](crate::ServerBuilder::state)).
    pub fn state<T: Any + Send + Sync>(&mut self) {
        let (id, arc) = (TypeId::of::<T>(), TypeId::of::<Arc<T>>());
        self.states.push(RequiredState { id, arc, name: type_name::<T>() });
    }

    /// Returns the first state that is missing.
    fn missing(&self, state: &Extensions) -> Option<RequiredState> {
        self.states.iter().find(|required| !state.contains(required.id)).copied()
    }
}

/// Checks that the server has the states that its handlers need.
pub(crate) fn check_state(registry: &Registry, state: &Extensions) -> Result<(), BuildError> {
    let tools = registry.tools.items.iter().map(|tool| ("tool", &tool.definition.name, &tool.requirements));
    let prompts = registry.prompts.items.iter().map(|prompt| ("prompt", &prompt.definition.name, &prompt.requirements));
    let resources = registry.resources.items.iter();
    let resources = resources.map(|resource| ("resource", &resource.definition.uri, &resource.requirements));
    let templates = registry.templates.items.iter();
    let templates = templates.map(|template| ("template", &template.definition.uri_template, &template.requirements));
    for (what, name, requirements) in tools.chain(prompts).chain(resources).chain(templates) {
        if let Some(missing) = requirements.missing(state) {
            let has_arc = state.contains(missing.arc);
            return Err(BuildError::MissingState { what, name: name.clone(), state: missing.name, has_arc });
        }
    }
    Ok(())
}
