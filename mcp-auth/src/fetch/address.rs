//! Which addresses may be requested.

use std::net::{IpAddr, Ipv4Addr};

use url::{Host, Url};

use crate::metadata::Address;

/// Which addresses may be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressPolicy {
    /// Addresses of the public internet only.
    Public,
    /// Addresses of private networks and of this machine, too.
    Any,
}

impl AddressPolicy {
    /// Returns the policy for addresses that a server names: those of private networks only if the server itself is in one.
    ///
    /// See [`Address::is_private`] for what is known of a server by its URL.
    #[must_use]
    pub fn for_server(server: &Url) -> Self {
        let is_private = Address::parse(server.as_str()).is_ok_and(|address| address.is_private());
        if is_private { Self::Any } else { Self::Public }
    }

    /// Checks what a URL says by itself, before its name is resolved.
    pub(super) fn check_url(self, url: &Url) -> Result<(), RefusedAddress> {
        let host = url.host().ok_or(RefusedAddress::Scheme)?;
        match url.scheme() {
            "https" => {}
            "http" if is_loopback_host(&host) => {}
            _ => return Err(RefusedAddress::Scheme),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(RefusedAddress::UserInfo);
        }
        let address = match host {
            Host::Ipv4(address) => IpAddr::V4(address),
            Host::Ipv6(address) => IpAddr::V6(address),
            // `localhost` never leaves this machine, so it needs no resolution to be refused.
            Host::Domain(_) if is_loopback_host(&host) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Host::Domain(_) => return Ok(()),
        };
        self.check_address(address)
    }

    /// Checks an address that a connection would be made to.
    pub(super) fn check_address(self, address: IpAddr) -> Result<(), RefusedAddress> {
        if self == Self::Any || !Address::is_private_ip(address) { Ok(()) } else { Err(RefusedAddress::Private) }
    }
}

/// Why an address is not requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RefusedAddress {
    /// The URL is neither `https` nor `http` on this machine.
    #[error("it is neither https nor http on this machine")]
    Scheme,
    /// The URL has a user name or a password.
    #[error("it has a user name or a password")]
    UserInfo,
    /// The address is in a private network, and only public ones are allowed.
    #[error(
        "it is in a private network, and a public server may not name such addresses unless private addresses are allowed"
    )]
    Private,
}

/// Whether the host of a URL is this machine, whatever DNS says.
pub(super) fn is_loopback_host(host: &Host<&str>) -> bool {
    match host {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback() || address.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback()),
        Host::Domain(name) => is_loopback_name(name),
    }
}

/// Whether a name is reserved for this machine (RFC 6761).
pub(super) fn is_loopback_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let last_label = name.rsplit('.').next().unwrap_or(name);
    last_label.eq_ignore_ascii_case("localhost")
}

/// Whether an address is of this machine.
pub(super) fn is_loopback_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_loopback(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.to_ipv4_mapped().is_some_and(|v4| v4.is_loopback()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn addresses_inside_are_not_public() {
        let inside = [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "::10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:2::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::",
            "3fff::1",
            "3fff:fff::1",
            "5f00::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for address in inside {
            assert!(Address::is_private_ip(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn addresses_outside_are_public() {
        let outside = [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.0.1",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2001:4860:4860::8888",
            "2600::1",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
        ];
        for address in outside {
            assert!(!Address::is_private_ip(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn a_server_is_private_by_its_url_and_not_by_what_dns_says() {
        let private = [
            "http://localhost:8000/mcp",
            "http://127.0.0.1/mcp",
            "https://10.1.2.3/mcp",
            "https://[::1]/mcp",
            "https://[fd00::1]/mcp",
            "https://intranet/mcp",
            "https://printer.local/mcp",
            "https://mcp.corp.internal/mcp",
            "https://nas.home.arpa/",
            "http://app.localhost/mcp",
            "https://[::ffff:192.168.0.1]/",
        ];
        for server in private {
            assert_eq!(AddressPolicy::for_server(&url(server)), AddressPolicy::Any, "{server}");
        }
        for server in
            ["https://example.com/mcp", "https://8.8.8.8/mcp", "https://localhost.example.com", "https://a.test"]
        {
            assert_eq!(AddressPolicy::for_server(&url(server)), AddressPolicy::Public, "{server}");
        }
    }

    // covers: AU-47
    #[test]
    fn only_https_and_this_machine_are_requested() {
        for refused in
            ["http://example.com/", "http://10.0.0.1/", "ftp://example.com/", "file:///etc/passwd", "data:,x"]
        {
            assert_eq!(AddressPolicy::Any.check_url(&url(refused)), Err(RefusedAddress::Scheme), "{refused}");
        }
        for allowed in ["https://example.com/", "http://localhost:1/", "http://127.0.0.1/", "http://[::1]/"] {
            assert_eq!(AddressPolicy::Any.check_url(&url(allowed)), Ok(()), "{allowed}");
        }
        let with_user = url("https://user:password@example.com/");
        assert_eq!(AddressPolicy::Any.check_url(&with_user), Err(RefusedAddress::UserInfo));
    }

    #[test]
    fn a_public_server_cannot_point_inwards_however_the_address_is_written() {
        let inwards = [
            "https://127.0.0.1/",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://0177.0.0.1/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:a9fe:a9fe]/",
            "https://169.254.169.254/",
            "https://[64:ff9b::a00:1]/",
            "https://localhost/",
            "https://LOCALHOST./",
            "https://a.localhost/",
            "http://127.0.0.1:6379/",
            "http://localhost/",
            "https://１２７.0.0.1/",
        ];
        for address in inwards {
            assert_eq!(AddressPolicy::Public.check_url(&url(address)), Err(RefusedAddress::Private), "{address}");
        }
        assert_eq!(AddressPolicy::Public.check_url(&url("https://example.com/")), Ok(()));
    }
}
