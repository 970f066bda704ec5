//! The names of records.

use std::fmt;

use sha2::{Digest as _, Sha256};
use url::Url;

/// The name of a record in a [`TokenStore`](super::TokenStore).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreKey(String);

impl StoreKey {
    /// Creates the key of the login of an account to the server with this URL.
    #[must_use]
    pub fn login(server: &str, account: Option<&str>) -> Self {
        let mut key = format!("login {}", without_secrets(server));
        // A URL has no spaces.
        if let Some(account) = account {
            key.push(' ');
            key.push_str(account);
        }
        Self(key)
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

    /// Returns the key as text, which has no secrets. Of the query of a server, which may contain a key, it has a digest.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a short name for the key that is valid in every file system.
    pub(super) fn digest(&self) -> String {
        short_digest(&self.0)
    }
}

impl fmt::Display for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns a name for a server: its URL, with a digest instead of the query.
fn without_secrets(server: &str) -> String {
    let Ok(mut url) = Url::parse(server) else { return server.to_owned() };
    let Some(query) = url.query() else { return server.to_owned() };
    let digest = short_digest(query);
    url.set_query(None);
    format!("{url}?{digest}")
}

/// Returns a short name for a text.
fn short_digest(text: &str) -> String {
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: AU-14
    #[test]
    fn the_query_of_a_server_tells_logins_apart_and_is_not_in_their_names() {
        let key = |server: &str| StoreKey::login(server, Some("ada"));
        let (one, other) = (key("https://mcp.example/mcp?key=hunter2"), key("https://mcp.example/mcp?key=hunter3"));
        assert_ne!(one, other);
        assert_eq!(one, key("https://mcp.example/mcp?key=hunter2"));
        assert!(!format!("{one} {one:?}").contains("hunter2"), "{one}");
        assert_eq!(key("https://mcp.example/mcp").as_str(), "login https://mcp.example/mcp ada");
    }
}
