//! TLS to Redis.

use std::fmt;

use redis::{Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, RedisError, TlsCertificates};

/// The certificates that the options name.
#[derive(Clone, Default)]
pub(crate) struct TlsOptions {
    pub(crate) root_certificates: Option<Vec<u8>>,
    /// The certificate of the client, and its key.
    pub(crate) client_certificate: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions")
            .field("has_root_certificates", &self.root_certificates.is_some())
            .field("has_client_certificate", &self.client_certificate.is_some())
            .finish()
    }
}

impl TlsOptions {
    /// Adds the certificates to an address with TLS. Others stay as they are.
    pub(crate) fn apply(&self, info: ConnectionInfo) -> Result<ConnectionInfo, RedisError> {
        let ConnectionAddr::TcpTls { .. } = info.addr() else { return Ok(info) };
        // The client of Redis uses the provider of the process. If there is one, this does nothing.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let client_tls = self.client_certificate.clone();
        let client_tls = client_tls.map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key });
        if client_tls.is_none() && self.root_certificates.is_none() {
            return Ok(info);
        }
        let certificates = TlsCertificates { client_tls, root_cert: self.root_certificates.clone() };
        Ok(Client::build_with_tls(info, certificates)?.get_connection_info().clone())
    }
}
