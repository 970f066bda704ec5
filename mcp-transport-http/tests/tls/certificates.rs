//! Certificates of an authority that exists for one test.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};

/// An authority.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        Self::named("an authority for a test")
    }

    pub(crate) fn named(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Issues a certificate for a name.
    pub(crate) fn issue(&self, name: &str) -> Identity {
        self.issue_with(name, |_| {})
    }

    /// Issues a certificate that has expired.
    pub(crate) fn issue_expired(&self, name: &str) -> Identity {
        self.issue_with(name, |params| {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        })
    }

    /// Issues a certificate that is not valid for a long time.
    pub(crate) fn issue_early(&self, name: &str) -> Identity {
        self.issue_with(name, |params| {
            params.not_before = date_time_ymd(2090, 1, 1);
            params.not_after = date_time_ymd(2091, 1, 1);
        })
    }

    fn issue_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Identity { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

/// A certificate without an authority.
pub(crate) fn self_signed(name: &str) -> Identity {
    let params = CertificateParams::new([name.to_owned()]).expect("a name");
    let key = KeyPair::generate().expect("a key");
    Identity { certificate: params.self_signed(&key).expect("a certificate").pem(), key: key.serialize_pem() }
}
