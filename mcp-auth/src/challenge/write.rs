//! Writing challenges.

use std::fmt;

use super::Challenge;
use crate::Scopes;

impl Challenge {
    /// Creates a challenge of the scheme `Bearer`.
    #[must_use]
    pub fn bearer() -> Self {
        Self { scheme: "Bearer".to_owned(), parameters: Vec::new() }
    }

    /// Creates a challenge of the scheme `DPoP`.
    #[must_use]
    pub fn dpop() -> Self {
        Self { scheme: "DPoP".to_owned(), parameters: Vec::new() }
    }

    /// Adds a parameter.
    ///
    /// Characters that a header cannot carry are left out of the value when it is written.
    #[must_use]
    pub fn with_parameter(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.parameters.push((name.to_owned(), value.into()));
        self
    }

    /// Adds the reason for the refusal (`error`).
    #[must_use]
    pub fn error(self, code: impl Into<String>) -> Self {
        self.with_parameter("error", code)
    }

    /// Adds a description of the refusal for developers (`error_description`).
    #[must_use]
    pub fn error_description(self, description: impl Into<String>) -> Self {
        self.with_parameter("error_description", description)
    }

    /// Adds the scopes that the request needs (`scope`).
    #[must_use]
    pub fn required_scope(self, scopes: &Scopes) -> Self {
        self.with_parameter("scope", scopes.to_string())
    }

    /// Adds the address of the metadata of the resource (`resource_metadata`).
    #[must_use]
    pub fn resource_metadata_url(self, url: impl Into<String>) -> Self {
        self.with_parameter("resource_metadata", url)
    }
}

impl fmt::Display for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheme)?;
        for (index, (name, value)) in self.parameters.iter().enumerate() {
            f.write_str(if index == 0 { " " } else { ", " })?;
            write!(f, "{name}=\"")?;
            // Line breaks would start a header of their own, so only printable ASCII gets through.
            for character in value.chars().filter(|character| matches!(character, ' '..='~')) {
                if matches!(character, '"' | '\\') {
                    f.write_str("\\")?;
                }
                write!(f, "{character}")?;
            }
            f.write_str("\"")?;
        }
        Ok(())
    }
}
