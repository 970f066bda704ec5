//! The capabilities that a server declares.

use mcp_types::{OrderedMap, PromptsCapability, RawObject, ResourcesCapability, ServerCapabilities, ToolsCapability};

use crate::build::error::BuildError;
use crate::build::registry::Registry;

/// What the builder was told about capabilities, beside what is registered.
#[derive(Default)]
pub(crate) struct Declared {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) completions: bool,
    pub(crate) subscriptions: bool,
    pub(crate) no_logging: bool,
    pub(crate) experimental: OrderedMap<RawObject>,
    /// All capabilities, instead of those that follow from what is registered.
    pub(crate) given: Option<Box<ServerCapabilities>>,
}

/// The capabilities that are declared to clients.
pub(crate) fn capabilities(registry: &Registry, mut declared: Declared) -> Result<ServerCapabilities, BuildError> {
    let experimental = std::mem::take(&mut declared.experimental);
    let given = declared.given.take();
    let derived = derive(registry, &declared);
    let mut capabilities = match given {
        None => derived,
        Some(given) => {
            check(&derived, &given, &declared)?;
            *given
        }
    };
    for (name, settings) in experimental {
        capabilities.experimental.get_or_insert_default().insert(name, settings);
    }
    Ok(capabilities)
}

/// The capabilities that follow from what is registered.
// TL-1, PR-1, RS-1, Q-1, Y-1
fn derive(registry: &Registry, declared: &Declared) -> ServerCapabilities {
    let mut capabilities = ServerCapabilities::default();
    if declared.tools || !registry.tools.items.is_empty() {
        capabilities.tools = Some(ToolsCapability::default().list_changed(true));
    }
    if declared.prompts || !registry.prompts.items.is_empty() {
        capabilities.prompts = Some(PromptsCapability::default().list_changed(true));
    }
    if declared.resources || !registry.resources.items.is_empty() || !registry.templates.items.is_empty() {
        let mut resources = ResourcesCapability::default().list_changed(true);
        resources.subscribe = declared.subscriptions.then_some(true);
        capabilities.resources = Some(resources);
    }
    if declared.completions || registry.completes() {
        capabilities.completions = Some(RawObject::empty());
    }
    if !declared.no_logging {
        capabilities.logging = Some(RawObject::empty());
    }
    capabilities
}

/// Checks that the capabilities that were given cover what the server has.
fn check(derived: &ServerCapabilities, given: &ServerCapabilities, declared: &Declared) -> Result<(), BuildError> {
    let subscribes = |resources: &ResourcesCapability| resources.subscribe == Some(true);
    let checks = [
        (derived.tools.is_some() && given.tools.is_none(), "it has tools: declare `tools`"),
        (derived.prompts.is_some() && given.prompts.is_none(), "it has prompts: declare `prompts`"),
        (derived.resources.is_some() && given.resources.is_none(), "it has resources: declare `resources`"),
        (
            declared.subscriptions && !given.resources.as_ref().is_some_and(subscribes),
            "it has `resource_subscriptions`: declare `resources.subscribe`",
        ),
        (derived.completions.is_some() && given.completions.is_none(), "it has completers: declare `completions`"),
        (declared.no_logging && given.logging.is_some(), "it is `without_logging`: do not declare `logging`"),
    ];
    match checks.into_iter().find(|(is_contradiction, _)| *is_contradiction) {
        Some((_, reason)) => Err(BuildError::ContradictoryCapabilities { reason }),
        None => Ok(()),
    }
}
