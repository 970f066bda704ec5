//! The names of records.

use std::fmt;

/// The name of a record in a [`TokenStore`](super::TokenStore).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreKey(String);

impl StoreKey {
    /// Creates the key of the login of an account to the server with this URL.
    #[must_use]
    pub fn login(server: &str, account: Option<&str>) -> Self {
        // A URL has no spaces.
        Self(account.map_or_else(|| format!("login {server}"), |account| format!("login {server} {account}")))
    }

    /// Creates the key of the lock that is held while a user logs in. It has no record.
    #[cfg(feature = "authorizer")]
    pub(crate) fn prompt(server: &str, account: Option<&str>) -> Self {
        Self(format!("prompt {}", Self::login(server, account)))
    }

    /// Creates the key of what authorization servers know the client by.
    #[must_use]
    pub fn registrations() -> Self {
        Self("registrations".to_owned())
    }

    /// Returns the key as text, which has no secrets.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
