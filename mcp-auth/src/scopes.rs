//! Sets of OAuth scopes.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A set of OAuth scopes, written as a list that is separated by spaces.
///
/// ```
/// use mcp_auth::Scopes;
///
/// let granted: Scopes = "books:read books:write".parse()?;
/// let required = Scopes::from_iter(["books:read"]);
/// assert!(granted.contains_all(&required));
/// # Ok::<(), mcp_auth::InvalidScope>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scopes(BTreeSet<Box<str>>);

impl Scopes {
    /// Creates an empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeSet::new())
    }

    /// Whether there is no scope.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a scope is in the set.
    #[must_use]
    pub fn contains(&self, scope: &str) -> bool {
        self.0.contains(scope)
    }

    /// Whether all scopes of another set are in this one.
    #[must_use]
    pub fn contains_all(&self, required: &Self) -> bool {
        required.0.is_subset(&self.0)
    }

    /// Returns the scopes of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }

    /// Returns the scopes in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|scope| &**scope)
    }
}

/// The error of a scope with characters that RFC 6749 does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a scope has characters that are not allowed: only printable ASCII without space, `\"` and `\\` is")]
#[non_exhaustive]
pub struct InvalidScope;

impl FromStr for Scopes {
    type Err = InvalidScope;

    fn from_str(text: &str) -> Result<Self, InvalidScope> {
        let is_allowed = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        let scopes = text.split(' ').filter(|scope| !scope.is_empty());
        scopes
            .map(|scope| if scope.bytes().all(is_allowed) { Ok(scope.into()) } else { Err(InvalidScope) })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl<S: Into<Box<str>>> FromIterator<S> for Scopes {
    fn from_iter<I: IntoIterator<Item = S>>(scopes: I) -> Self {
        Self(scopes.into_iter().map(Into::into).collect())
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for scope in &self.0 {
            if !is_first {
                f.write_str(" ")?;
            }
            f.write_str(scope)?;
            is_first = false;
        }
        Ok(())
    }
}

impl Serialize for Scopes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scopes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
