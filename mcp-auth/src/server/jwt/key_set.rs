//! The keys of an issuer.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::algorithm::TokenAlgorithm;
use super::public_key::PublicKey;

/// The keys that an issuer signs tokens with (RFC 7517, section 5).
pub(crate) struct KeySet(Vec<PublicKey>);

/// The maximum length of a set of keys, in bytes.
pub(crate) const MAX_BYTES: usize = 256 * 1024;
/// The maximum number of keys in a set. Issuers have a handful.
const MAX_KEYS: usize = 100;

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Box<RawValue>>,
}

impl KeySet {
    /// Reads a set of keys. Keys of unknown kinds are left out, as an issuer may add them at any time.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, &'static str> {
        if text.len() > MAX_BYTES {
            return Err("the set of keys is too large");
        }
        let set: Jwks = serde_json::from_slice(text).map_err(|_| "the set of keys cannot be read")?;
        if set.keys.len() > MAX_KEYS {
            return Err("the set has too many keys");
        }
        let keys = set.keys.iter().filter_map(|key| PublicKey::new(serde_json::from_str(key.get()).ok()?));
        Ok(Self(keys.collect()))
    }

    /// Finds the key of a token: the one with its `kid`, or without one the only one that fits its algorithm.
    pub(crate) fn find(&self, id: Option<&str>, algorithm: TokenAlgorithm) -> Option<&PublicKey> {
        let mut fitting = self.0.iter().filter(|key| key.fits(algorithm));
        match id {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)),
            None => fitting.next().filter(|_| fitting.next().is_none()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
