//! Nonces that proofs must contain.

use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::UnixTime;

/// Creates nonces and recognises them, without storing any: a nonce is a time and its HMAC.
#[derive(Debug)]
pub(crate) struct Nonces {
    key: hmac::Key,
}

/// How long a nonce can be used.
const LIFETIME: Duration = Duration::from_secs(300);
/// The age from which responses have a new one, so that clients need no additional request for it.
const RENEWAL: Duration = Duration::from_secs(150);

/// The bytes of the time, and of the part of the HMAC that is sent.
const TIME_BYTES: usize = 8;
const MAC_BYTES: usize = 16;

impl Nonces {
    /// Creates nonces with a key, which all instances that serve the same clients must share.
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, key) }
    }

    /// Creates a nonce.
    pub(crate) fn create(&self, now: UnixTime) -> String {
        let mut nonce = now.as_secs().to_be_bytes().to_vec();
        let mac = self.mac(now);
        nonce.extend_from_slice(&mac.as_ref()[..MAC_BYTES]);
        BASE64_URL_SAFE_NO_PAD.encode(nonce)
    }

    fn mac(&self, time: UnixTime) -> hmac::Tag {
        hmac::sign(&self.key, &time.as_secs().to_be_bytes())
    }

    /// Whether a nonce is one of these and has not expired; if so, whether the client should get a new one.
    pub(crate) fn check(&self, nonce: &str, now: UnixTime) -> Option<NonceAge> {
        // Longer texts are none of these.
        if nonce.len() > 2 * (TIME_BYTES + MAC_BYTES) {
            return None;
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(nonce).ok()?;
        let (time, mac) = bytes.split_first_chunk::<TIME_BYTES>()?;
        let time = UnixTime::from_secs(u64::from_be_bytes(*time));
        let expected = self.mac(time);
        aws_lc_rs::constant_time::verify_slices_are_equal(mac, &expected.as_ref()[..MAC_BYTES]).ok()?;
        let age = now.since(time);
        (age <= LIFETIME).then_some(if age >= RENEWAL { NonceAge::Old } else { NonceAge::Fresh })
    }
}

/// The age of a valid nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NonceAge {
    Fresh,
    /// The next proof should have a new one.
    Old,
}

impl NonceAge {
    pub(crate) fn is_old(self) -> bool {
        self == Self::Old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_are_valid_for_some_time_and_for_their_key() {
        let nonces = Nonces::new(&[1; 32]);
        let time = UnixTime::from_secs;
        let nonce = nonces.create(time(1000));
        assert_eq!(nonces.check(&nonce, time(1000)), Some(NonceAge::Fresh));
        assert_eq!(nonces.check(&nonce, time(1200)), Some(NonceAge::Old));
        assert_eq!(nonces.check(&nonce, time(1301)), None);
        assert_eq!(Nonces::new(&[2; 32]).check(&nonce, time(1000)), None);
        for forged in ["", "abc", &nonce[1..], &format!("{nonce}{nonce}")] {
            assert_eq!(nonces.check(forged, time(1000)), None, "{forged}");
        }
    }
}
