//! Why a server cannot be built.

/// What is wrong with a server, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Something is there twice.
    #[error("there is a {what} `{name}` already: give one of the two another name, or remove the old one first")]
    Duplicate {
        /// What.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A name that nobody could call.
    #[error("`{}` cannot be the name of a {what}: it must not be empty or have control characters", name.escape_debug())]
    InvalidName {
        /// What has the name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A tool that cannot be offered.
    #[error("the tool `{name}`: {reason}")]
    InvalidTool {
        /// The tool.
        name: String,
        /// Why not.
        reason: String,
    },
    /// A prompt that cannot be offered.
    #[error("the prompt `{name}`: {reason}")]
    InvalidPrompt {
        /// The prompt.
        name: String,
        /// Why not.
        reason: String,
    },
    /// A resource without an absolute address.
    #[error("`{uri}` is not the address of a resource: it must begin with a scheme, as in `file:///a` or `notes:a`")]
    InvalidUri {
        /// The address.
        uri: String,
    },
    /// A template that is none.
    #[error("the template `{template}`: {reason}")]
    InvalidTemplate {
        /// The template.
        template: String,
        /// Why not.
        reason: String,
    },
    /// A method for an extension that is the protocol's own, or is there already.
    #[error("`{name}` cannot be the method of an extension: {reason}")]
    InvalidMethod {
        /// The method.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// A server without a name.
    #[error("a server needs a name and a version")]
    MissingName,
    /// A server that serves no revision.
    #[error("a server must serve at least one revision: `revisions` must not be empty")]
    NoRevisions,
    /// Something was added to a running server that told its clients that it has none of the kind.
    #[error(
        "clients were told that this server has no {what}, so none can be added now: call `{remedy}` when building it"
    )]
    NotDeclared {
        /// What was added.
        what: &'static str,
        /// The builder's method that declares it.
        remedy: &'static str,
    },
}

/// For a `main` that returns [`std::io::Result`]. The text is kept rather than the value, as it is what such a `main`
/// shows, and it says what to do.
impl From<BuildError> for std::io::Error {
    fn from(error: BuildError) -> Self {
        Self::new(std::io::ErrorKind::InvalidInput, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_main_shows_what_to_do() {
        let shown = format!("{:?}", std::io::Error::from(BuildError::MissingName));
        assert!(shown.contains("a server needs a name and a version"), "{shown}");
    }
}
