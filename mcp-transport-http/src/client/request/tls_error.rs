//! Failures of TLS, in words that say what to do about them.

use std::error::Error;
use std::io;

use rustls::CertificateError;

/// How many names of a certificate are listed.
const MAX_NAMES: usize = 3;

/// Why TLS failed.
pub(crate) enum TlsError {
    /// What is wrong with the certificate of the server.
    InvalidCertificate(String),
    Other(String),
}

/// Returns why TLS failed, if that is the cause of an error.
pub(crate) fn find_tls_error(error: &(dyn Error + 'static)) -> Option<TlsError> {
    let mut cause = Some(error);
    while let Some(current) = cause {
        if let Some(error) = current.downcast_ref::<rustls::Error>() {
            return Some(describe(error));
        }
        cause = match current.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            // The source of such an error is that of what it contains.
            Some(inner) => Some(inner),
            None => current.source(),
        };
    }
    None
}

#[expect(clippy::wildcard_enum_match_arm, reason = "most errors are described well enough by rustls")]
fn describe(error: &rustls::Error) -> TlsError {
    let what = match error {
        rustls::Error::InvalidCertificate(what) => what,
        rustls::Error::InvalidMessage(_) => {
            let text = format!("the server does not use TLS at this address, or not correctly: {error}");
            return TlsError::Other(text);
        }
        _ => return TlsError::Other(format!("TLS failed: {error}")),
    };
    TlsError::InvalidCertificate(match what {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "it is not valid yet".to_owned(),
        CertificateError::Revoked => "it was revoked".to_owned(),
        CertificateError::BadSignature => "its issuer has not signed it".to_owned(),
        CertificateError::NotValidForName => "it is for another name".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let expected = expected.to_str();
            match &presented[..] {
                [] => format!("it is for no name, and not for `{expected}`"),
                names => {
                    let (shown, more) = names.split_at(names.len().min(MAX_NAMES));
                    let more = if more.is_empty() { "" } else { " and others" };
                    format!("it is not for `{expected}`, but for {}{more}", shown.join(", "))
                }
            }
        }
        CertificateError::UnknownIssuer => {
            "its issuer is not trusted; that of a private authority, and a self-signed certificate, have to be added with \
             `HttpTransport::configure_http_client`"
                .to_owned()
        }
        other => other.to_string(),
    })
}
