//! Which addresses may be requested.

use std::net::IpAddr;

use url::Url;

use crate::address::{Address, UnsafeAddress};

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
    pub(super) fn check_url(self, url: &Url) -> Result<(), UnsafeAddress> {
        let address = Address::parse(url.as_str())?;
        if self == Self::Any || !address.is_private() { Ok(()) } else { Err(UnsafeAddress::Private) }
    }

    /// Checks an address that a connection would be made to.
    pub(super) fn check_ip(self, ip: IpAddr) -> Result<(), UnsafeAddress> {
        if self == Self::Any || !Address::is_private_ip(ip) { Ok(()) } else { Err(UnsafeAddress::Private) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
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
            assert_eq!(AddressPolicy::Any.check_url(&url(refused)), Err(UnsafeAddress::Scheme), "{refused}");
        }
        for allowed in ["https://example.com/", "http://localhost:1/", "http://127.0.0.1/", "http://[::1]/"] {
            assert_eq!(AddressPolicy::Any.check_url(&url(allowed)), Ok(()), "{allowed}");
        }
        let with_user = url("https://user:password@example.com/");
        assert_eq!(AddressPolicy::Any.check_url(&with_user), Err(UnsafeAddress::Credentials));
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
            assert_eq!(AddressPolicy::Public.check_url(&url(address)), Err(UnsafeAddress::Private), "{address}");
        }
        assert_eq!(AddressPolicy::Public.check_url(&url("https://example.com/")), Ok(()));
    }
}
