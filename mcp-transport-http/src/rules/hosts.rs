//! Allowed `Host` and `Origin` headers, against DNS rebinding.
//!
//! A web page can make its own host name resolve to this machine, and then send requests to local servers as if they were
//! its own. The browser sends that host name or origin, by which such requests are recognised.

use http::header::ORIGIN;
use http::{HeaderValue, Uri};

use super::request_headers::{Occurrence, RequestHeaders};

/// The loopback names.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The allowed hosts and origins. Defaults to loopback names only.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllowList {
    pub(crate) hosts: Names,
    pub(crate) origins: Names,
}

#[derive(Clone, Debug)]
pub(crate) enum Names {
    Any,
    These(Vec<String>),
}

impl Default for Names {
    fn default() -> Self {
        Self::These(LOOPBACK.map(str::to_owned).to_vec())
    }
}

impl Names {
    pub(crate) fn add(&mut self, name: &str) {
        if let Self::These(names) = self {
            let name = name.trim_end_matches('/').to_ascii_lowercase();
            let is_address = name.parse::<std::net::Ipv6Addr>().is_ok();
            names.push(if is_address { format!("[{name}]") } else { name });
        }
    }

    fn any(&self, is_allowed: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Any => true,
            Self::These(names) => names.iter().any(|name| is_allowed(name)),
        }
    }
}

impl AllowList {
    /// Allows a host: a name or an address, optionally with a port to allow only that port.
    pub(crate) fn add_host(&mut self, host: &str) {
        // Of a URL only the host counts.
        let host = host.split_once("://").map_or(host, |(_, host)| host);
        self.hosts.add(host.split_once('/').map_or(host, |(host, _)| host));
    }

    /// Checks the host and the origin of a request.
    ///
    /// # Errors
    ///
    /// Returns the host or origin that is not allowed.
    pub(crate) fn check(&self, uri: &Uri, headers: &RequestHeaders<'_>) -> Result<(), Forbidden> {
        let host = match headers.host {
            Occurrence::Missing => None,
            Occurrence::Once(host) => Some(host),
            Occurrence::Repeated => return Err(Forbidden::NoHost),
        };
        // HTTP/2 has the host in the URI. If there is a `Host` header as well, both are checked.
        let authority = uri.authority().map(|authority| authority.as_str().as_bytes());
        if authority.is_none() && host.is_none() {
            return Err(Forbidden::NoHost);
        }
        for name in [authority, host.map(HeaderValue::as_bytes)].into_iter().flatten() {
            let bare = without_port(name);
            // Most clients send the host as it is allowed.
            let is_allowed = self.hosts.any(|allowed| bare == allowed.as_bytes());
            if !is_allowed && !self.hosts.any(|allowed| is_host(name, bare, allowed)) {
                return Err(Forbidden::Host(shortened(name)));
            }
        }
        if headers.origin == Occurrence::Missing {
            return Ok(());
        }
        for origin in headers.all.get_all(ORIGIN) {
            let origin = origin.as_bytes();
            if !self.origins.any(|allowed| is_origin(origin, allowed)) {
                return Err(Forbidden::Origin(shortened(origin)));
            }
        }
        Ok(())
    }
}

/// Whether a host matches an allowed one. An allowed host without a port matches all ports.
fn is_host(name: &[u8], bare: &[u8], allowed: &str) -> bool {
    bare.eq_ignore_ascii_case(allowed.as_bytes()) || name.eq_ignore_ascii_case(allowed.as_bytes())
}

fn is_origin(origin: &[u8], allowed: &str) -> bool {
    if allowed.contains("://") || allowed == "null" {
        return origin.eq_ignore_ascii_case(allowed.as_bytes());
    }
    let host = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    host.is_some_and(|host| is_host(host, without_port(host), allowed))
}

/// Returns a host without its port, if it has a valid one.
fn without_port(name: &[u8]) -> &[u8] {
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (rest, port) = name.split_at(name.len() - digits);
    let Some(host) = rest.strip_suffix(b":") else { return name };
    let is_port = matches!(port.len(), 1..5) || (port.len() == 5 && *port <= b"65535"[..]);
    // Without brackets, the last group of an IPv6 address is not a port.
    if is_port && (host.ends_with(b"]") || !host.contains(&b':')) { host } else { name }
}

/// Limits what is repeated in the error.
fn shortened(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(100).collect()
}

/// The error of a request whose host or origin is not allowed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Forbidden {
    #[error("the request must name exactly one host")]
    NoHost,
    #[error("the host `{0}` is not allowed here; if it should be, add it with `HttpOptions::allow_host`")]
    Host(String),
    #[error("the origin `{0}` is not allowed here; if it should be, add it with `HttpOptions::allow_origin`")]
    Origin(String),
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use http::header::HOST;

    use super::*;

    fn check(list: &AllowList, uri: &'static str, host: &[&'static str], origin: &[&'static str]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, values) in [(HOST, host), (ORIGIN, origin)] {
            for value in values {
                headers.append(name.clone(), HeaderValue::from_static(value));
            }
        }
        list.check(&Uri::from_static(uri), &RequestHeaders::read(&headers)).is_ok()
    }

    /// This machine by all its names and ports, and nothing that only looks like it.
    // covers: H-4, S3.F9
    #[test]
    fn this_machine_is_allowed() {
        let list = AllowList::default();
        for host in ["localhost", "localhost:8000", "LOCALHOST:1", "127.0.0.1:65535", "[::1]", "[::1]:80"] {
            assert!(check(&list, "/mcp", &[host], &[]), "{host}");
        }
        for host in [
            "evil.example.com",
            "localhost.evil.example.com",
            "evil.localhost",
            "localhost:80:80",
            "localhost:",
            "localhost:65536",
            "[::1]:99999999999999999999",
            "localhost:+80",
            "localhost:http",
            "127.0.0.2",
            "127.0.0.1.evil.example.com",
            "::1",
            "[::1]evil",
            "[::2]",
            "user@localhost",
            "localhost, evil.example.com",
            " ",
            "",
        ] {
            assert!(!check(&list, "/mcp", &[host], &[]), "{host}");
        }
        assert!(!check(&list, "/mcp", &[], &[]), "no host is named");
        assert!(!check(&list, "/mcp", &["localhost", "localhost"], &[]), "two are named");
        assert!(check(&list, "http://localhost/mcp", &[], &[]));
        assert!(!check(&list, "http://localhost/mcp", &["evil.example.com"], &[]));
        assert!(!check(&list, "http://evil.example.com/mcp", &["localhost"], &[]));
    }

    /// Without an origin it is no page; with one it has to be allowed.
    // covers: H-3, H-4
    #[test]
    fn pages_of_others_are_not_allowed() {
        let list = AllowList::default();
        for origin in ["http://localhost:3000", "https://localhost", "http://127.0.0.1", "http://[::1]:5173"] {
            assert!(check(&list, "/", &["localhost"], &[origin]), "{origin}");
        }
        for origin in [
            "http://evil.example.com",
            "http://localhost.evil.example.com",
            "http://localhost@evil.example.com",
            "ftp://localhost",
            "localhost",
            "null",
            "",
        ] {
            assert!(!check(&list, "/", &["localhost"], &[origin]), "{origin}");
        }
        assert!(!check(&list, "/", &["localhost"], &["http://localhost", "http://evil.example.com"]));
    }

    /// Others are allowed one by one, or all at once.
    // covers: S3.F9
    #[test]
    fn others_can_be_allowed() {
        let mut list = AllowList::default();
        list.add_host("MCP.example.com");
        list.add_host("other.example.com:8443");
        list.add_host("https://third.example.com/mcp");
        list.add_host("fd00::1");
        list.origins.add("https://app.example.com/");
        list.origins.add("example.org");
        for (host, expected) in [
            ("mcp.example.com", true),
            ("mcp.example.com:8080", true),
            ("other.example.com:8443", true),
            ("other.example.com", false),
            ("other.example.com:80", false),
            ("third.example.com", true),
            ("[fd00::1]:8000", true),
            ("localhost", true),
        ] {
            assert_eq!(check(&list, "/", &[host], &[]), expected, "{host}");
        }
        for (origin, expected) in [
            ("https://app.example.com", true),
            ("http://app.example.com", false),
            ("https://app.example.com:444", false),
            ("http://example.org:1", true),
            ("https://a.example.org", false),
        ] {
            assert_eq!(check(&list, "/", &["localhost"], &[origin]), expected, "{origin}");
        }
        list.hosts = Names::Any;
        assert!(check(&list, "/", &["anything"], &[]) && !check(&list, "/", &["anything"], &["http://any.thing"]));
        list.origins = Names::Any;
        assert!(check(&list, "/", &["anything"], &["http://any.thing"]));
    }

    /// Who runs the server is told what to do.
    // covers: RB-70
    #[test]
    fn refusals_name_the_setting() {
        let forbidden = Forbidden::Host(shortened("a".repeat(1000).as_bytes()));
        let text = forbidden.to_string();
        assert!(text.contains("HttpOptions::allow_host") && text.len() < 300, "{text}");
        assert!(Forbidden::Origin("x".into()).to_string().contains("HttpOptions::allow_origin"));
    }
}
