//! The errors of building a server.

use std::fmt;

/// An error of building or changing a server. Its message says what to change.
///
/// [`Debug`](fmt::Debug) formats the message, too, because that is what a `main` that returns the error prints:
///
/// ```text
/// Error: there is a tool `search` already: give one of the two another name, or remove the old one first
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A name, URI or template that is registered already.
    #[error("there is a {what} `{name}` already: give one of the two another name, or remove the old one first")]
    Duplicate {
        /// The kind of thing: `tool`, `prompt`, `resource` or `template`.
        what: &'static str,
        /// The name, URI or template.
        name: String,
    },
    /// Two items of registries with prefixes that have the same name with their prefixes.
    #[error("two {what}s have the name `{name}`: {first} and {second}; give one of the two another name or prefix")]
    Conflict {
        /// The kind of thing: `tool` or `prompt`.
        what: &'static str,
        /// The name of both.
        name: String,
        /// The first one: its name, and the prefix of its registry.
        first: String,
        /// The second one: its name, and the prefix of its registry.
        second: String,
    },
    /// An empty name, or one with control characters.
    #[error("`{}` cannot be the name of a {what}: it must not be empty or have control characters", name.escape_debug())]
    InvalidName {
        /// The kind of thing that has the name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A text that is not one OAuth scope.
    #[error("`{}` is not one OAuth scope: only printable ASCII without space, `\"` and `\\` is", scope.escape_debug())]
    InvalidScope {
        /// The text.
        scope: String,
    },
    /// A tool whose schemas cannot be used.
    #[error("the tool `{name}`: {reason}")]
    InvalidTool {
        /// The name of the tool.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A prompt whose arguments or completers cannot be used.
    #[error("the prompt `{name}`: {reason}")]
    InvalidPrompt {
        /// The name of the prompt.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A resource whose definition or handler cannot be used.
    #[error("the resource `{uri}`: {reason}")]
    InvalidResource {
        /// The URI of the resource.
        uri: String,
        /// The reason.
        reason: String,
    },
    /// A resource whose URI is not absolute.
    #[error("`{uri}` is not the URI of a resource: it must begin with a scheme, as in `file:///a` or `notes:a`")]
    InvalidUri {
        /// The URI.
        uri: String,
    },
    /// A resource template that is not a URI template (RFC 6570), or whose completers cannot be used.
    #[error("the template `{template}`: {reason}")]
    InvalidTemplate {
        /// The template.
        template: String,
        /// The reason.
        reason: String,
    },
    /// A handler that takes a state ([`State`](crate::extract::State)) which the server does not have.
    #[error("the {what} `{name}` needs a state of the type `{state}`: {}", state_remedy(state, *has_arc))]
    MissingState {
        /// The kind of handler: `tool`, `prompt`, `resource` or `template`.
        what: &'static str,
        /// Its name, URI or template.
        name: String,
        /// The type of the state.
        state: &'static str,
        /// Whether the server has an `Arc` of this type, which is a state of another type.
        has_arc: bool,
    },
    /// A method of an extension that the protocol defines itself, or that is registered already.
    #[error("`{name}` cannot be the method of an extension: {reason}")]
    InvalidMethod {
        /// The name of the method.
        name: String,
        /// The reason.
        reason: &'static str,
    },
    /// Capabilities were given that do not fit what the server has.
    #[error("the capabilities that were given do not fit the server: {reason}")]
    ContradictoryCapabilities {
        /// What does not fit, and what to do.
        reason: &'static str,
    },
    /// A kind of handles with a name that cannot be part of a handle.
    #[cfg(feature = "mrtr")]
    #[error("`{}` cannot be the name of handles: use up to 32 letters, digits, `-` and `_` of ASCII", name.escape_debug())]
    InvalidHandles {
        /// The name.
        name: String,
    },
    /// A tool that takes or returns handles which the server does not have.
    #[cfg(feature = "mrtr")]
    #[error(
        "the tool `{tool}` takes or returns a `Handle<{value}>`, but the server has no such handles: add \
         `.handles(Handles::<{value}>::in_memory())` to its builder, or `sealed()` or `stored(..)` ones"
    )]
    MissingHandles {
        /// The name of the tool.
        tool: String,
        /// The type of the value.
        value: &'static str,
    },
    /// A tool whose calls are tasks, in a server that has nothing to run them.
    #[cfg(feature = "mrtr")]
    #[error(
        "the calls of the tool `{tool}` are tasks, but the server has nothing to run them: add \
         `.tasks(Tasks::new(MemoryTaskStore::default()))` to its builder, or tasks with another store"
    )]
    MissingTasks {
        /// The name of the tool.
        tool: String,
    },
    /// A server without a name or a version.
    #[error("a server needs a name and a version")]
    MissingName,
    /// A server without any protocol revision.
    #[error("a server must serve at least one revision: `revisions` must not be empty")]
    NoRevisions,
    /// Something was added to a running server that did not declare the capability for it.
    #[error(
        "this server did not declare that it has {what}, so none can be added now: call `{remedy}` when building it"
    )]
    NotDeclared {
        /// The kind of thing that was added.
        what: &'static str,
        /// The method of the builder that declares the capability.
        remedy: &'static str,
    },
}

impl BuildError {
    /// The error of two items with one name, with the names that they had before they got prefixes.
    pub(crate) fn duplicate(what: &'static str, name: String, first: Option<&str>, second: Option<&str>) -> Self {
        if first.is_none() && second.is_none() {
            return Self::Duplicate { what, name };
        }
        let describe = |original: Option<&str>| match original.map(|original| (original, name.strip_suffix(original))) {
            Some((original, Some(prefix))) => format!("`{original}` with the prefix `{prefix}`"),
            Some((_, None)) | None => format!("`{name}` without a prefix"),
        };
        Self::Conflict { what, first: describe(first), second: describe(second), name: name.clone() }
    }
}

/// What to do about a state that is missing.
fn state_remedy(state: &str, has_arc: bool) -> String {
    if has_arc {
        format!("there is a state of the type `Arc<{state}>`: take `State<Arc<{state}>>`")
    } else {
        "add it with `ServerBuilder::state`".to_owned()
    }
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// For functions that return [`std::io::Result`].
impl From<BuildError> for std::io::Error {
    fn from(error: BuildError) -> Self {
        Self::new(std::io::ErrorKind::InvalidInput, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `main` prints the `Debug` form.
    #[test]
    fn a_main_shows_what_to_do() {
        let error = || BuildError::Duplicate { what: "tool", name: "a".to_owned() };
        let boxed: Box<dyn std::error::Error> = error().into();
        assert_eq!(format!("{boxed:?}"), error().to_string());
        let io = std::io::Error::from(error());
        assert!(format!("{io:?}").contains(&error().to_string()), "{io:?}");
        assert_eq!(io.downcast::<BuildError>().unwrap(), error());
    }
}
