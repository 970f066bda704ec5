//! Transports from configuration files.

use http::{HeaderName, HeaderValue};
use mcp_client::config::UrlConfig;

use super::transport::{HttpTransport, InvalidUrl};

/// Creates the transport of a configuration file, with the headers that the file sets.
///
/// # Examples
///
/// ```
/// use mcp_client::config::{ServerEntry, ServersConfig};
/// use mcp_transport_http::HttpTransport;
///
/// let config = ServersConfig::parse(r#"{ "mcpServers": { "mail": { "url": "https://mail.example/mcp" } } }"#)?;
/// if let Some(ServerEntry::Url(mail)) = config.get("mail") {
///     let transport = HttpTransport::try_from(mail)?;
/// #   drop(transport);
/// }
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
impl TryFrom<&UrlConfig> for HttpTransport {
    type Error = InvalidUrlConfig;

    fn try_from(config: &UrlConfig) -> Result<Self, InvalidUrlConfig> {
        let mut transport = Self::new(&config.url)?;
        for (name, value) in &config.headers {
            let invalid = || InvalidUrlConfig::Header(name.clone());
            let header = HeaderName::try_from(name.as_str()).map_err(|_| invalid())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| invalid())?;
            // Headers of configuration files are mostly tokens.
            value.set_sensitive(true);
            transport = transport.header(header, value);
        }
        Ok(transport)
    }
}

/// The error of a configuration that is not a transport.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidUrlConfig {
    /// The URL is invalid.
    #[error(transparent)]
    Url(#[from] InvalidUrl),
    /// The name or the value of this header has characters that are not allowed.
    #[error("the header `{0}` has characters that are not allowed")]
    Header(String),
}

#[cfg(test)]
mod tests {
    use mcp_client::config::{ServerEntry, ServersConfig};

    use super::*;

    fn transport(server: &str) -> Result<HttpTransport, InvalidUrlConfig> {
        let config = ServersConfig::parse(&format!(r#"{{"mcpServers":{{"it":{server}}}}}"#)).unwrap();
        let Some(ServerEntry::Url(config)) = config.get("it") else { panic!("no URL") };
        HttpTransport::try_from(config)
    }

    /// Headers are sent, and those that cannot be are named without their value.
    // covers: GW-10
    #[test]
    fn gw_10_configurations_become_transports() {
        let shown = format!("{:?}", transport(r#"{"url":"http://a/b","headers":{"X-Key":"secret"}}"#).unwrap());
        assert!(shown.contains("http://a") && !shown.contains("secret"), "{shown}");
        for (server, error) in [
            (r#"{"url":"ftp://a"}"#, "invalid server URL: `ftp` is not http or https"),
            (
                r#"{"url":"http://a","headers":{"X-Key":"secret\n"}}"#,
                "the header `X-Key` has characters that are not allowed",
            ),
            (
                r#"{"url":"http://a","headers":{"X Key":"secret"}}"#,
                "the header `X Key` has characters that are not allowed",
            ),
        ] {
            assert_eq!(transport(server).unwrap_err().to_string(), error);
        }
    }
}
