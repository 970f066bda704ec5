//! Public keys that signatures are verified with.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::DecodingKey;
use jsonwebtoken::crypto::{aws_lc, verify};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::algorithm::TokenAlgorithm;
use crate::jwk::PublicJwk;

/// A JSON Web Key, as far as it matters here (RFC 7517).
#[derive(Deserialize)]
pub(crate) struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
    // Members of private and symmetric keys, which must not be published.
    d: Option<IgnoredAny>,
    k: Option<IgnoredAny>,
}

/// The key and what it can be used for.
pub(crate) struct PublicKey {
    pub(crate) id: Option<String>,
    kind: KeyKind,
    /// The only algorithm, if the key names one.
    algorithm: Option<TokenAlgorithm>,
    key: DecodingKey,
    thumbprint: String,
}

/// The kind of a key, which decides the algorithms that it fits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    P256,
    P384,
    Rsa,
    Ed25519,
}

/// RSA keys have at least 2,048 and at most 8,192 bits: smaller ones are weak, larger ones slow.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

impl PublicKey {
    /// Makes a key of a JWK. `None` if it is not one that verifies signatures here.
    pub(crate) fn new(jwk: Jwk) -> Option<Self> {
        let is_for_signatures = jwk.usage.is_none_or(|usage| usage == "sig");
        let may_verify = jwk.key_ops.is_none_or(|operations| operations.iter().any(|operation| operation == "verify"));
        if !is_for_signatures || !may_verify || jwk.d.is_some() || jwk.k.is_some() {
            return None;
        }
        let decode = |text: Option<String>| BASE64_URL_SAFE_NO_PAD.decode(text?).ok();
        let (kind, key, public) = match (&*jwk.kty, jwk.crv.as_deref()) {
            ("EC", Some(curve @ ("P-256" | "P-384"))) => {
                let (kind, curve, size) =
                    if curve == "P-256" { (KeyKind::P256, "P-256", 32) } else { (KeyKind::P384, "P-384", 48) };
                let (x, y) = (decode(jwk.x)?, decode(jwk.y)?);
                if x.len() != size || y.len() != size {
                    return None;
                }
                let point = [&[4], &*x, &*y].concat();
                (kind, DecodingKey::from_ec_der(&point), PublicJwk::elliptic(curve, &x, &y))
            }
            ("RSA", _) => {
                let (n, e) = (decode(jwk.n)?, decode(jwk.e)?);
                let (n, e) = (without_leading_zeros(&n), without_leading_zeros(&e));
                if !RSA_BYTES.contains(&n.len()) || e.is_empty() || e.len() > 4 {
                    return None;
                }
                (KeyKind::Rsa, DecodingKey::from_rsa_raw_components(n, e), PublicJwk::rsa(n, e))
            }
            ("OKP", Some("Ed25519")) => {
                let x = decode(jwk.x).filter(|x| x.len() == 32)?;
                (KeyKind::Ed25519, DecodingKey::from_ed_der(&x), PublicJwk::ed25519(&x))
            }
            _ => return None,
        };
        let algorithm = match jwk.alg {
            Some(name) => Some(TokenAlgorithm::parse(&name).filter(|algorithm| kind.fits(*algorithm))?),
            None => None,
        };
        Some(Self { id: jwk.kid, kind, algorithm, key, thumbprint: public.thumbprint() })
    }

    /// Whether signatures of an algorithm may be verified with this key.
    pub(crate) fn fits(&self, algorithm: TokenAlgorithm) -> bool {
        self.kind.fits(algorithm) && self.algorithm.is_none_or(|only| only == algorithm)
    }

    /// Returns the SHA-256 thumbprint (RFC 7638), as tokens that are bound to the key have it.
    pub(crate) fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Verifies a signature, which is still encoded.
    pub(crate) fn verifies(&self, algorithm: TokenAlgorithm, message: &str, signature: &str) -> bool {
        self.fits(algorithm)
            && verify(signature, message.as_bytes(), &self.key, algorithm.to_jsonwebtoken()).unwrap_or(false)
    }
}

impl KeyKind {
    const fn fits(self, algorithm: TokenAlgorithm) -> bool {
        use TokenAlgorithm::{EdDsa, Es256, Es384, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};
        match algorithm {
            Es256 => matches!(self, Self::P256),
            Es384 => matches!(self, Self::P384),
            Rs256 | Rs384 | Rs512 | Ps256 | Ps384 | Ps512 => matches!(self, Self::Rsa),
            EdDsa => matches!(self, Self::Ed25519),
        }
    }
}

/// Chooses the cryptography of `jsonwebtoken`, which panics when it is used if several are compiled in and none was chosen.
pub(crate) fn choose_cryptography() {
    // If the application has chosen one, that is used.
    let _ = aws_lc::DEFAULT_PROVIDER.install_default();
}

fn without_leading_zeros(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    &bytes[start..]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(jwk: serde_json::Value) -> Option<PublicKey> {
        PublicKey::new(serde_json::from_value(jwk).unwrap())
    }

    const X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

    /// The example of RFC 8037, appendix A.3, with a member that does not belong to the thumbprint.
    #[test]
    fn keys_fit_their_algorithm_and_have_the_thumbprint_of_the_rfc() {
        let key = key(json!({ "kty": "OKP", "crv": "Ed25519", "x": X, "kid": "a" })).unwrap();
        assert_eq!(key.thumbprint(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
        assert!(key.fits(TokenAlgorithm::EdDsa) && !key.fits(TokenAlgorithm::Es256));
    }

    #[test]
    fn keys_for_other_uses_are_left_out() {
        let with = |name: &str, value: serde_json::Value| {
            let mut jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": X });
            jwk[name] = value;
            key(jwk).is_some()
        };
        assert!(with("use", json!("sig")) && with("key_ops", json!(["verify"])) && with("alg", json!("EdDSA")));
        for (name, value) in [
            ("use", json!("enc")),
            ("key_ops", json!(["sign"])),
            ("alg", json!("ES256")),
            ("alg", json!("HS256")),
            ("alg", json!("none")),
            ("d", json!(X)),
            ("k", json!(X)),
            ("x", json!("AAAA")),
            ("crv", json!("X25519")),
            ("kty", json!("oct")),
        ] {
            assert!(!with(name, value.clone()), "{name}: {value}");
        }
        let weak = BASE64_URL_SAFE_NO_PAD.encode([0xff; 128]);
        assert!(key(json!({ "kty": "RSA", "n": weak, "e": "AQAB" })).is_none(), "1,024 bits are too few");
    }
}
