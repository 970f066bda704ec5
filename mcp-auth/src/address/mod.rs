//! Addresses that a peer named: which of them may be contacted, and what can be shown of them.

mod private;

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

/// An address that may be contacted: `https`, or `http` to this machine, without user name, password and fragment.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(Url);

/// The error of an address that must not be contacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnsafeAddress {
    /// The text is not an absolute URL with a host.
    #[error("it is not an absolute URL with a host")]
    NotUrl,
    /// The URL is longer than [`Address::MAX_BYTES`].
    #[error("it is too long")]
    TooLong,
    /// The scheme is not `https`, and not `http` to this machine.
    #[error("only https, or http to this machine, is allowed")]
    Scheme,
    /// The URL has a user name or a password.
    #[error("it contains a user name or a password")]
    Credentials,
    /// The URL has a fragment.
    #[error("it contains a fragment")]
    Fragment,
    /// The URL has a query, which an issuer must not have.
    #[error("it contains a query")]
    Query,
    /// The query has parameters that the client sets itself.
    #[error("its query has parameters that the client sets itself")]
    Parameters,
    /// The host is this machine or in a private network, and only public ones are allowed.
    #[error(
        "it is of this machine or of a private network, and a public server may not name such addresses unless private addresses are allowed"
    )]
    Private,
}

impl Address {
    /// The maximum length of an address.
    pub const MAX_BYTES: usize = 8 * 1024;

    /// Checks an address.
    ///
    /// # Errors
    ///
    /// Returns an error if the address must not be contacted.
    pub fn parse(text: &str) -> Result<Self, UnsafeAddress> {
        if text.len() > Self::MAX_BYTES {
            return Err(UnsafeAddress::TooLong);
        }
        if has_stray_characters(text) {
            return Err(UnsafeAddress::NotUrl);
        }
        let url = Url::parse(text).map_err(|_| UnsafeAddress::NotUrl)?;
        if url.host().is_none() {
            // `file:`, `javascript:`, `data:` and the like.
            return Err(UnsafeAddress::Scheme);
        }
        let address = Self(url);
        match address.0.scheme() {
            "https" => {}
            "http" if address.is_loopback() => {}
            _ => return Err(UnsafeAddress::Scheme),
        }
        if !address.0.username().is_empty() || address.0.password().is_some() {
            return Err(UnsafeAddress::Credentials);
        }
        if address.0.fragment().is_some() {
            return Err(UnsafeAddress::Fragment);
        }
        Ok(address)
    }

    /// Returns the URL.
    #[must_use]
    pub const fn url(&self) -> &Url {
        &self.0
    }

    /// Returns the normalized text of the URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns scheme, host and port as a text without a slash at the end.
    #[must_use]
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }

    /// Whether the host is this machine, by its name or its number.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self.0.host() {
            Some(Host::Domain(name)) => is_loopback_name(name),
            Some(Host::Ipv4(ip)) => is_loopback_ip(IpAddr::V4(ip)),
            Some(Host::Ipv6(ip)) => is_loopback_ip(IpAddr::V6(ip)),
            None => false,
        }
    }

    /// Whether the host is this machine, or in a private network: by its number, or by a name that public DNS does not have
    /// (`localhost`, one label, `.local`, `.internal`, `.home.arpa`).
    ///
    /// Another name may still stand for such a number, which only a resolver can tell: drivers check with
    /// [`is_private_ip`](Self::is_private_ip) what they connect to.
    #[must_use]
    pub fn is_private(&self) -> bool {
        match self.0.host() {
            Some(Host::Domain(name)) => is_local_name(name),
            Some(Host::Ipv4(ip)) => Self::is_private_ip(IpAddr::V4(ip)),
            Some(Host::Ipv6(ip)) => Self::is_private_ip(IpAddr::V6(ip)),
            None => false,
        }
    }

    /// Whether a number is one of this machine, of a private network, or otherwise not of the public internet.
    #[must_use]
    pub fn is_private_ip(ip: IpAddr) -> bool {
        private::is_private(ip)
    }
}

/// Whether a text has characters that no URL has. The parser drops or replaces them, so that others may read the text differently.
pub(crate) fn has_stray_characters(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_control() || matches!(byte, b' ' | b'\\'))
}

/// Whether a name is reserved for this machine (RFC 6761), whatever DNS says.
pub(crate) fn is_loopback_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.rsplit('.').next().is_some_and(|label| label.eq_ignore_ascii_case("localhost"))
}

/// Whether a number is one of this machine.
pub(crate) fn is_loopback_ip(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// Returns what can be shown of an address: nothing of its user name, password, query and fragment, which may be secret, and no
/// more than fits in an error.
pub(crate) fn shown(address: &str) -> String {
    const MAX_CHARACTERS: usize = 200;
    let text = match Url::parse(address) {
        Ok(url) if url.origin().is_tuple() => format!("{}{}", url.origin().ascii_serialization(), url.path()),
        // What follows the scheme of other URLs can be anything.
        Ok(url) => format!("{}:", url.scheme()),
        Err(_) => {
            let text = address.split(['?', '#']).next().unwrap_or_default();
            text.rsplit('@').next().unwrap_or_default().to_owned()
        }
    };
    let mut characters = text.chars().filter(|character| matches!(character, ' '..='~'));
    let mut shown: String = characters.by_ref().take(MAX_CHARACTERS).collect();
    if characters.next().is_some() {
        shown.push_str("...");
    }
    shown
}

/// Whether a name is one that public DNS does not have: of one label, or in a zone for local networks.
///
/// What other names resolve to does not matter: a hostile server controls that, and could claim to be private.
fn is_local_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let zones = [".local", ".internal", ".home.arpa", ".localhost"];
    !name.contains('.') || zones.iter().any(|zone| name.ends_with(zone))
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&shown(self.as_str()), f)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: AU-14
    #[test]
    fn what_is_shown_of_an_address_has_no_place_for_secrets() {
        for (address, expected) in [
            ("https://user:hunter2@as.example:8443/token?key=hunter2#hunter2", "https://as.example:8443/token"),
            ("https://as.example/@user/mcp", "https://as.example/@user/mcp"),
            ("data:text/html,hunter2", "data:"),
            ("javascript:hunter2", "javascript:"),
            ("//user:hunter2@as.example/x?hunter2", "as.example/x"),
            ("no url?hunter2", "no url"),
            ("line\r\nbreak \u{202e}\u{9b}", "linebreak "),
        ] {
            assert_eq!(shown(address), expected);
        }
        let long = shown(&format!("https://as.example/{}", "x".repeat(1_000)));
        assert!(long.len() < 210 && long.ends_with("..."), "{long}");
    }
}
