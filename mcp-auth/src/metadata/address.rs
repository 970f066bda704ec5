//! Addresses that a peer named.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
    /// The query has parameters that the client sets itself.
    #[error("its query has parameters that the client sets itself")]
    Parameters,
    /// The host is this machine or in a private network, and the server is not.
    #[error("it is an address of this machine or of a private network, but the server is not")]
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
            Some(Host::Domain(name)) => is_localhost(name),
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.to_canonical().is_loopback(),
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
        match ip.to_canonical() {
            IpAddr::V4(ip) => is_private_v4(ip),
            IpAddr::V6(ip) => is_private_v6(ip),
        }
    }
}

/// Whether a text has characters that no URL has. The parser drops or replaces them, so that others may read the text differently.
pub(super) fn has_stray_characters(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_control() || matches!(byte, b' ' | b'\\'))
}

fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether a name is one that public DNS does not have: of one label, or in a zone for local networks.
///
/// What other names resolve to does not matter: a hostile server controls that, and could claim to be private.
fn is_local_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let zones = [".local", ".internal", ".home.arpa", ".localhost"];
    !name.contains('.') || zones.iter().any(|zone| name.ends_with(zone))
}

/// By the registry of special-purpose addresses.
const fn is_private_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    matches!(
        (a, b, c),
        (0 | 10 | 127 | 224..=255, _, _)
            | (100, 64..=127, _) // Shared address space of carriers.
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18 | 19, _) // Benchmarks.
            | (198, 51, 100)
            | (203, 0, 113)
    )
}

/// By the registry of special-purpose addresses: public ones are in 2000::/3, or carry one of version 4.
fn is_private_v6(ip: Ipv6Addr) -> bool {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_private_v4(Ipv4Addr::new(a, b, c, d))
    };
    match ip.segments() {
        // Translation (NAT64) and 6to4. Mapped ones were converted before.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => embedded(high, low),
        // Protocol assignments (Teredo, ORCHID and others) and documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => true,
        [first, ..] => first & 0xe000 != 0x2000,
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A query may contain a key.
        fmt::Debug::fmt(self.as_str().split('?').next().unwrap_or_default(), f)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
