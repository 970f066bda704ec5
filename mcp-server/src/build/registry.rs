//! The tools, prompts, resources and methods of a server at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_kernel::Change;
use mcp_types::{HeaderParam, Method};

use crate::build::error::BuildError;
use crate::build::named_list::{Item, NamedList, is_visible};
use crate::handlers::prompt::Prompt;
use crate::handlers::resource::Resource;
use crate::handlers::template::Template;
use crate::handlers::tool::Tool;
use crate::serve::context::RequestContext;
use crate::uri_template::UriVariables;
use crate::visibility::guard::Guard;
use crate::visibility::predicate::{Predicate, Visible};

/// The tools, prompts and resources of a server: filled by the builder, and changed by
/// [`Server::update`](crate::Server::update).
///
/// A registry can also be built apart, and become part of a server with [`ServerBuilder::merge`](crate::ServerBuilder::merge)
/// or [`ServerBuilder::mount`](crate::ServerBuilder::mount). Errors of what was added to it are reported there.
///
/// # Examples
///
/// ```
/// use mcp_server::{NoArguments, Registry, Server, tool};
///
/// fn files() -> Registry {
///     Registry::new().tool(tool("list", async |_, _: NoArguments| "a.txt"))
/// }
///
/// // Its tool is called `files_list`.
/// let server = Server::builder("office", "1.0").mount("files_", files()).build()?;
/// # Ok::<(), mcp_server::BuildError>(())
/// ```
#[derive(Clone, Default)]
pub struct Registry {
    pub(crate) tools: NamedList<Tool>,
    pub(crate) prompts: NamedList<Prompt>,
    pub(crate) resources: NamedList<Resource>,
    pub(crate) templates: NamedList<Template>,
    /// By tool, for tools that have any.
    pub(crate) header_params: BTreeMap<String, Arc<[HeaderParam]>>,
    pub(crate) methods: BTreeMap<Method, crate::handlers::extension_method::ExtensionMethod>,
    /// By tool, for tools that have any.
    #[cfg(feature = "validate")]
    pub(crate) validators: BTreeMap<String, Arc<crate::handlers::validate::Validators>>,
    /// The first error of what was added, until the registry becomes part of another one.
    pub(crate) fault: Option<BuildError>,
}

impl Registry {
    /// Adds a tool.
    ///
    /// # Errors
    ///
    /// Returns an error if there is a tool of the same name, or if a schema is not one that the protocol allows.
    pub fn add_tool(&mut self, tool: Tool) -> Result<(), BuildError> {
        let name = tool.name().to_owned();
        if let Some(reason) = tool.fault.clone() {
            return Err(BuildError::InvalidTool { name, reason });
        }
        check_name("tool", &name)?;
        let invalid = |reason: String| BuildError::InvalidTool { name: name.clone(), reason };
        check_schema("input", &tool.definition.input_schema, true).map_err(invalid)?;
        let params = HeaderParam::from_schema(&tool.definition.input_schema).map_err(invalid)?;
        if let Some(output) = &tool.definition.output_schema {
            check_schema("output", output, false).map_err(invalid)?;
        }
        #[cfg(feature = "validate")]
        let validators = crate::handlers::validate::Validators::of(&tool).map_err(invalid)?;
        self.tools.add(tool)?;
        if !params.is_empty() {
            self.header_params.insert(name.clone(), params.into());
        }
        #[cfg(feature = "validate")]
        if let Some(validators) = validators {
            self.validators.insert(name, Arc::new(validators));
        }
        Ok(())
    }

    /// Removes a tool; returns whether there was one.
    pub fn remove_tool(&mut self, name: &str) -> bool {
        #[cfg(feature = "validate")]
        self.validators.remove(name);
        self.header_params.remove(name);
        self.tools.remove(name)
    }

    /// Adds a prompt.
    ///
    /// # Errors
    ///
    /// Returns an error if there is a prompt of the same name.
    pub fn add_prompt(&mut self, prompt: Prompt) -> Result<(), BuildError> {
        let name = prompt.name().to_owned();
        if let Some(reason) = prompt.fault.clone() {
            return Err(BuildError::InvalidPrompt { name, reason });
        }
        check_name("prompt", &name)?;
        self.prompts.add(prompt)
    }

    /// Removes a prompt; returns whether there was one.
    pub fn remove_prompt(&mut self, name: &str) -> bool {
        self.prompts.remove(name)
    }

    /// Adds a resource.
    ///
    /// # Errors
    ///
    /// Returns an error if there is a resource with the same URI, or if the URI is not absolute.
    // RS-8
    pub fn add_resource(&mut self, resource: Resource) -> Result<(), BuildError> {
        if let Some(reason) = resource.fault.clone() {
            return Err(BuildError::InvalidResource { uri: resource.definition.uri, reason });
        }
        check_scheme(&resource.definition.uri)?;
        self.resources.add(resource)
    }

    /// Removes a resource by its URI; returns whether there was one.
    pub fn remove_resource(&mut self, uri: &str) -> bool {
        self.resources.remove(uri)
    }

    /// Adds a resource template.
    ///
    /// # Errors
    ///
    /// Returns an error if there is the same template already, or if it is not a URI template (RFC 6570).
    // RS-9
    pub fn add_template(&mut self, template: Template) -> Result<(), BuildError> {
        if let Some(reason) = template.fault.clone() {
            return Err(BuildError::InvalidTemplate { template: template.definition.uri_template, reason });
        }
        self.templates.add(template)
    }

    /// Removes a resource template by its text; returns whether there was one.
    pub fn remove_template(&mut self, uri_template: &str) -> bool {
        self.templates.remove(uri_template)
    }
}

impl Registry {
    /// Returns whether a resource or template needs scopes, which subscriptions to it need, too.
    pub(crate) fn has_resource_scopes(&self) -> bool {
        self.resources.items.iter().any(|resource| !resource.scopes.is_empty())
            || self.templates.items.iter().any(|template| !template.scopes.is_empty())
    }

    /// Returns whether a prompt or template has a completer.
    pub(crate) fn completes(&self) -> bool {
        self.prompts.items.iter().any(|prompt| !prompt.completers.is_empty())
            || self.templates.items.iter().any(|template| !template.completers.is_empty())
    }

    /// Takes what was added and removed since the last update.
    pub(crate) fn take_changes(&mut self) -> RegistryChanges {
        RegistryChanges {
            tools: std::mem::take(&mut self.tools.changed),
            prompts: std::mem::take(&mut self.prompts.changed),
            resources: std::mem::take(&mut self.resources.changed),
            templates: std::mem::take(&mut self.templates.changed),
        }
    }

    /// Returns whether a prompt or template has a completer that the application added. Enums complete by themselves, and
    /// only where the server declared completions.
    pub(crate) fn needs_completions(&self) -> bool {
        self.prompts.items.iter().any(|prompt| prompt.completers.are_given())
            || self.templates.items.iter().any(|template| template.completers.are_given())
    }

    /// Returns the resource and the templates with a URI, of which the first that is visible decides about a viewer; `None` if
    /// all viewers may be notified of it, or if there is nothing of that URI.
    pub(crate) fn guards_of(&self, uri: &str) -> Option<Vec<Guard>> {
        let resource = self.resources.get(uri).map(|resource| Guard::new(resource.predicate(), &resource.scopes));
        if resource.as_ref().is_some_and(Guard::is_open) {
            return None;
        }
        let templates = self.templates.items.iter();
        let guarded = |template: &&Arc<Template>| template.predicate().is_some() || !template.scopes.is_empty();
        if resource.is_none() && !templates.clone().any(|template| guarded(&template)) {
            return None;
        }
        let templates = templates.filter(|template| template.matches(uri).is_some());
        let templates = templates.map(|template| Guard::new(template.predicate(), &template.scopes));
        let guards: Vec<Guard> = resource.into_iter().chain(templates).collect();
        // Without a resource, the first template may be one for all.
        Some(guards).filter(|guards| guards.first().is_some_and(|first| !first.is_open()))
    }

    /// Returns who sees an item in a list, which is named by the change of it.
    pub(crate) fn list_guard(&self, list: &Change, name: &str) -> Option<Guard> {
        match list {
            Change::Tools => self.tools.get(name).map(|tool| list_guard(tool.predicate())),
            Change::Prompts => self.prompts.get(name).map(|prompt| list_guard(prompt.predicate())),
            Change::Resources => {
                let resource = self.resources.get(name).map(|resource| list_guard(resource.predicate()));
                resource.or_else(|| self.templates.get(name).map(|template| list_guard(template.predicate())))
            }
            Change::Resource(_) | _ => None,
        }
    }

    /// Returns the resource or template that a URI belongs to, if it is visible for a request.
    pub(crate) fn find_readable(&self, uri: &str, ctx: &RequestContext) -> Option<Readable<'_>> {
        if let Some(resource) = self.resources.find(uri, ctx) {
            return Some(Readable::Resource(resource));
        }
        self.templates.items.iter().find_map(|template| {
            let variables = template.matches(uri)?;
            is_visible(&**template, ctx).then_some(Readable::Template(template, variables))
        })
    }
}

/// What an update has added and removed. Dropping it may run code of the application.
pub(crate) struct RegistryChanges {
    tools: Vec<Arc<Tool>>,
    prompts: Vec<Arc<Prompt>>,
    resources: Vec<Arc<Resource>>,
    templates: Vec<Arc<Template>>,
}

impl RegistryChanges {
    /// Returns the lists that have changed.
    pub(crate) fn lists(&self) -> Vec<ListChange> {
        let Self { tools, prompts, resources, templates } = self;
        let mut changes = Vec::new();
        if !tools.is_empty() {
            changes.push(ListChange { list: Change::Tools, items: restricted(tools).collect() });
        }
        if !prompts.is_empty() {
            changes.push(ListChange { list: Change::Prompts, items: restricted(prompts).collect() });
        }
        if !(resources.is_empty() && templates.is_empty()) {
            let items = restricted(resources).chain(restricted(templates)).collect();
            changes.push(ListChange { list: Change::Resources, items });
        }
        changes
    }
}

/// A list that an update has changed.
pub(crate) struct ListChange {
    pub(crate) list: Change,
    /// What was added or removed, by name: a client is notified if one of the predicates admits it. `None` if one item is
    /// visible to all.
    pub(crate) items: Option<Vec<(String, Guard)>>,
}

/// A resource, or a template with the values of its variables.
pub(crate) enum Readable<'a> {
    Resource(&'a Resource),
    Template(&'a Template, UriVariables),
}

impl Readable<'_> {
    pub(crate) fn scopes(&self) -> &[Box<str>] {
        match self {
            Self::Resource(resource) => &resource.scopes,
            Self::Template(template, _) => &template.scopes,
        }
    }
}

/// Returns the names and predicates of items, or `None` for one that is visible to all.
fn restricted<T: Item>(items: &[Arc<T>]) -> impl Iterator<Item = Option<(String, Guard)>> {
    items.iter().map(|item| Some((item.key().to_owned(), list_guard(Some(item.predicate()?)))))
}

/// The guard of an item in a list. Items are listed whatever scopes they need.
fn list_guard(predicate: Option<&Predicate>) -> Guard {
    Guard::new(predicate, &[])
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("tools", &self.tools.items.len())
            .field("prompts", &self.prompts.items.len())
            .field("resources", &self.resources.items.len())
            .field("templates", &self.templates.items.len())
            .finish_non_exhaustive()
    }
}

/// Any name without control characters is accepted; the specification recommends a narrower set.
// TL-11
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<(), BuildError> {
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(BuildError::InvalidName { what, name: name.to_owned() });
    }
    Ok(())
}

/// An absolute URI begins with a scheme (RFC 3986).
fn check_scheme(uri: &str) -> Result<(), BuildError> {
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    if is_scheme(scheme) { Ok(()) } else { Err(BuildError::InvalidUri { uri: uri.to_owned() }) }
}

pub(crate) fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'))
}

/// The schema of arguments must describe an object; that of results may describe anything.
// TL-3, TL-5
fn check_schema(which: &str, schema: &mcp_types::RawObject, of_object: bool) -> Result<(), String> {
    #[derive(serde::Deserialize)]
    struct Root {
        #[serde(rename = "type")]
        kind: Option<mcp_types::RawJson>,
    }
    let root: Root = schema.decode().map_err(|error| format!("the {which} schema is not JSON: {error}"))?;
    if of_object && root.kind.and_then(|kind| kind.decode::<String>().ok()).as_deref() != Some("object") {
        return Err(format!(
            "the {which} schema must have \"type\": \"object\" at its root; make the arguments a struct, or use \
             `NoArguments` for none"
        ));
    }
    Ok(())
}
