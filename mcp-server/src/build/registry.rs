//! The tools, prompts, resources and methods of a server at one moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use mcp_types::{HeaderParam, Method};

use crate::build::error::BuildError;
use crate::handlers::prompt::Prompt;
use crate::handlers::resource::Resource;
use crate::handlers::template::Template;
use crate::handlers::tool::Tool;

/// The tools, prompts and resources of a server: filled by the builder, and changed by
/// [`Server::update`](crate::Server::update).
#[derive(Clone, Default)]
pub struct Registry {
    pub(crate) tools: NamedList<Tool>,
    pub(crate) prompts: NamedList<Prompt>,
    pub(crate) resources: NamedList<Resource>,
    pub(crate) templates: NamedList<Template>,
    /// By tool, for tools that have any.
    pub(crate) header_params: BTreeMap<String, Arc<[HeaderParam]>>,
    pub(crate) methods: BTreeMap<Method, crate::handlers::extension_method::ExtensionMethod>,
    #[cfg(feature = "validate")]
    pub(crate) validators: BTreeMap<String, Arc<crate::handlers::validate::Validators>>,
}

/// Items with unique names, in the order in which they were added.
#[derive(Clone)]
pub(crate) struct NamedList<T> {
    pub(crate) items: Vec<Arc<T>>,
    /// The position of each item, by its name.
    index: HashMap<String, usize>,
    /// Whether items were added or removed since this was last reset.
    pub(crate) changed: bool,
}

impl<T> Default for NamedList<T> {
    fn default() -> Self {
        Self { items: Vec::new(), index: HashMap::new(), changed: false }
    }
}

impl<T> NamedList<T> {
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<T>> {
        self.items.get(*self.index.get(name)?)
    }

    fn add(&mut self, name: &str, item: T) -> bool {
        if self.index.contains_key(name) {
            return false;
        }
        self.index.insert(name.to_owned(), self.items.len());
        self.items.push(Arc::new(item));
        self.changed = true;
        true
    }

    fn remove(&mut self, name: &str) -> bool {
        let Some(removed) = self.index.remove(name) else { return false };
        self.items.remove(removed);
        self.index.values_mut().filter(|index| **index > removed).for_each(|index| *index -= 1);
        self.changed = true;
        true
    }
}

impl Registry {
    /// Adds a tool.
    ///
    /// # Errors
    ///
    /// Returns an error if there is a tool of the same name, or if a schema is not one that the protocol allows.
    pub fn add_tool(&mut self, tool: Tool) -> Result<(), BuildError> {
        let name = tool.name().to_owned();
        check_name("tool", &name)?;
        if let Some(reason) = tool.fault.clone() {
            return Err(BuildError::InvalidTool { name, reason });
        }
        let invalid = |reason: String| BuildError::InvalidTool { name: name.clone(), reason };
        check_schema("input", &tool.definition.input_schema, true).map_err(invalid)?;
        let params = HeaderParam::from_schema(&tool.definition.input_schema).map_err(invalid)?;
        if let Some(output) = &tool.definition.output_schema {
            check_schema("output", output, false).map_err(invalid)?;
        }
        #[cfg(feature = "validate")]
        let validators = crate::handlers::validate::Validators::of(&tool).map_err(invalid)?;
        if !self.tools.add(&name, tool) {
            return Err(BuildError::Duplicate { what: "tool", name });
        }
        if !params.is_empty() {
            self.header_params.insert(name.clone(), params.into());
        }
        #[cfg(feature = "validate")]
        self.validators.insert(name, Arc::new(validators));
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
        check_name("prompt", &name)?;
        if let Some(reason) = prompt.fault.clone() {
            return Err(BuildError::InvalidPrompt { name, reason });
        }
        if self.prompts.add(&name, prompt) { Ok(()) } else { Err(BuildError::Duplicate { what: "prompt", name }) }
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
        let uri = resource.definition.uri.clone();
        check_scheme(&uri)?;
        if let Some(reason) = resource.fault.clone() {
            return Err(BuildError::InvalidResource { uri, reason });
        }
        if self.resources.add(&uri, resource) {
            Ok(())
        } else {
            Err(BuildError::Duplicate { what: "resource", name: uri })
        }
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
        let uri = template.definition.uri_template.clone();
        if let Some(reason) = template.fault.clone() {
            return Err(BuildError::InvalidTemplate { template: uri, reason });
        }
        if self.templates.add(&uri, template) {
            Ok(())
        } else {
            Err(BuildError::Duplicate { what: "template", name: uri })
        }
    }

    /// Removes a resource template by its text; returns whether there was one.
    pub fn remove_template(&mut self, uri_template: &str) -> bool {
        self.templates.remove(uri_template)
    }
}

impl Registry {
    /// Returns whether a prompt or template has a completer.
    pub(crate) fn completes(&self) -> bool {
        self.prompts.items.iter().any(|prompt| !prompt.completers.is_empty())
            || self.templates.items.iter().any(|template| !template.completers.is_empty())
    }

    /// Returns whether a prompt or template has a completer that the application added. Enums complete by themselves, and
    /// only where the server declared completions.
    pub(crate) fn needs_completions(&self) -> bool {
        self.prompts.items.iter().any(|prompt| prompt.completers.are_given())
            || self.templates.items.iter().any(|template| template.completers.are_given())
    }

    /// The flags of what has changed: tools, prompts, resources, templates.
    pub(crate) fn changes(&mut self) -> [&mut bool; 4] {
        [&mut self.tools.changed, &mut self.prompts.changed, &mut self.resources.changed, &mut self.templates.changed]
    }
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
fn check_name(what: &'static str, name: &str) -> Result<(), BuildError> {
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
