//! Registries that are built apart and combined.

use crate::build::error::BuildError;
use crate::build::registry::{Registry, check_name};
use crate::handlers::prompt::Prompt;
use crate::handlers::resource::Resource;
use crate::handlers::template::Template;
use crate::handlers::tool::Tool;

impl Registry {
    /// Creates an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool. Errors are reported when the registry becomes part of a server.
    #[must_use]
    pub fn tool(self, tool: Tool) -> Self {
        self.with(|registry| registry.add_tool(tool))
    }

    /// Adds several tools. Errors are reported when the registry becomes part of a server.
    #[must_use]
    pub fn tools(self, tools: impl IntoIterator<Item = Tool>) -> Self {
        tools.into_iter().fold(self, Self::tool)
    }

    /// Adds a prompt. Errors are reported when the registry becomes part of a server.
    #[must_use]
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.with(|registry| registry.add_prompt(prompt))
    }

    /// Adds several prompts. Errors are reported when the registry becomes part of a server.
    #[must_use]
    pub fn prompts(self, prompts: impl IntoIterator<Item = Prompt>) -> Self {
        prompts.into_iter().fold(self, Self::prompt)
    }

    /// Adds a resource. Errors are reported when the registry becomes part of a server.
    #[must_use]
    pub fn resource(self, resource: Resource) -> Self {
        self.with(|registry| registry.add_resource(resource))
    }

    /// Adds several resources. Errors are reported when the registry becomes part of a server.
    #[must_use]
    pub fn resources(self, resources: impl IntoIterator<Item = Resource>) -> Self {
        resources.into_iter().fold(self, Self::resource)
    }

    /// Adds a resource template. Errors are reported when the registry becomes part of a server.
    #[must_use]
    pub fn template(self, template: Template) -> Self {
        self.with(|registry| registry.add_template(template))
    }

    /// Adds several resource templates. Errors are reported when the registry becomes part of a server.
    #[must_use]
    pub fn templates(self, templates: impl IntoIterator<Item = Template>) -> Self {
        templates.into_iter().fold(self, Self::template)
    }

    /// Adds everything of another registry. Errors are reported when the registry becomes part of a server.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        self.with(|registry| registry.add_registry(other))
    }

    /// Adds everything of another registry, with a prefix: the same as [`merge`](Self::merge) of a registry with
    /// [`prefix`](Self::prefix).
    #[must_use]
    pub fn mount(self, prefix: &str, other: Self) -> Self {
        self.merge(other.prefix(prefix))
    }

    /// Puts a prefix before the names of all tools and prompts, such as `files_`. Resources keep their URIs.
    #[must_use]
    pub fn prefix(mut self, prefix: &str) -> Self {
        let rename = |name: &str| format!("{prefix}{name}");
        let mut renamed = Self { fault: self.fault.take(), ..Self::default() };
        for (mut tool, original) in self.tools.take_all() {
            let name = rename(tool.name());
            if let Some(params) = self.header_params.remove(tool.name()) {
                renamed.header_params.insert(name.clone(), params);
            }
            #[cfg(feature = "validate")]
            if let Some(validators) = self.validators.remove(tool.name()) {
                renamed.validators.insert(name.clone(), validators);
            }
            tool.definition.name = name;
            renamed = renamed.with(|renamed| {
                check_name("tool", tool.name())?;
                renamed.tools.add_renamed(tool.into(), Some(original))
            });
        }
        for (mut prompt, original) in self.prompts.take_all() {
            prompt.definition.name = rename(prompt.name());
            renamed = renamed.with(|renamed| {
                check_name("prompt", prompt.name())?;
                renamed.prompts.add_renamed(prompt.into(), Some(original))
            });
        }
        Self {
            resources: std::mem::take(&mut self.resources),
            templates: std::mem::take(&mut self.templates),
            methods: std::mem::take(&mut self.methods),
            ..renamed
        }
    }

    /// Adds everything of another registry, for [`Server::update`](crate::Server::update).
    ///
    /// # Errors
    ///
    /// Returns the first error of what was added to the other registry, or the first conflict of the two. Nothing is added
    /// then.
    pub fn add_registry(&mut self, other: Self) -> Result<(), BuildError> {
        if let Some(fault) = other.fault {
            return Err(fault);
        }
        // Everything is checked before the first change, because an application may go on after an error.
        self.tools.check_names(&other.tools)?;
        self.prompts.check_names(&other.prompts)?;
        self.resources.check_names(&other.resources)?;
        self.templates.check_names(&other.templates)?;
        if let Some(name) = other.methods.keys().find(|name| self.methods.contains_key(*name)) {
            return Err(BuildError::InvalidMethod { name: name.to_string(), reason: "it is registered already" });
        }
        self.tools.insert_all(other.tools);
        self.prompts.insert_all(other.prompts);
        self.resources.insert_all(other.resources);
        self.templates.insert_all(other.templates);
        self.header_params.extend(other.header_params);
        self.methods.extend(other.methods);
        #[cfg(feature = "validate")]
        self.validators.extend(other.validators);
        Ok(())
    }

    /// Keeps the first error.
    fn with(mut self, add: impl FnOnce(&mut Self) -> Result<(), BuildError>) -> Self {
        if let Err(fault) = add(&mut self) {
            self.fault.get_or_insert(fault);
        }
        self
    }
}
