//! Digests that stand for tokens in memory.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::digest::{Context, SHA256};
use aws_lc_rs::rand;
use zeroize::Zeroizing;

/// Stands for a token: a keyed digest of 128 bits, with random keys of the process that never leave it.
///
/// For tokens below 256 bytes, it is a part of SHA-256 of a random salt and the token. Tokens of at least 128 random bits cannot
/// be computed from it, also with the salt.
///
/// For longer tokens, such as JWTs, it is the tag of AES-GCM for the token as associated data, without a plaintext and always with
/// the same nonce: GHASH of the token, plus a constant. With a nonce that is used again, tags must not be revealed, and these never
/// are: they are only compared with others of the process. So what counts is how likely two tokens have the same: for tokens of up
/// to *n* blocks of 16 bytes at most (*n* + 2) / 2^128, whatever the tokens are, as long as they were chosen without knowledge of
/// the key. An attacker can only try tokens, one request for each: with 10,000 tokens of 16 KiB that are remembered, an attempt
/// succeeds with a probability of less than 2^-104, and one that fails rules out hardly any key. It costs a small part of SHA-256
/// on processors without instructions for that.
///
/// GHASH is linear, so a copy of the memory, which includes the key, reveals 128 bits of a long token. The signature of a JWT has
/// at least 256 that are unknown, so the token cannot be computed, but an attacker with such a copy can make something with the
/// same digest, which this process accepts as long as it remembers the token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenDigest([u8; 16]);

/// Tokens from this length on are digested with AES-GCM.
const LONG_TOKEN: usize = 256;

impl TokenDigest {
    /// Returns the digest of a token; `None` if the random source of the operating system has failed.
    pub(crate) fn of(token: &[u8]) -> Option<Self> {
        static KEYS: OnceLock<Option<Keys>> = OnceLock::new();
        let keys = KEYS.get_or_init(Keys::random).as_ref()?;
        if token.len() < LONG_TOKEN {
            let mut context = keys.short.clone();
            context.update(token);
            return context.finish().as_ref().first_chunk().copied().map(Self);
        }
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        let tag = keys.long.seal_in_place_separate_tag(nonce, Aad::from(token), &mut []).ok()?;
        tag.as_ref().try_into().ok().map(Self)
    }
}

/// Without the digest, which is not to be revealed.
impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest(..)")
    }
}

/// One number, of which tables need no hash.
impl Hash for TokenDigest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        state.write_u64(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
    }
}

struct Keys {
    /// SHA-256 after the salt.
    short: Context,
    long: LessSafeKey,
}

impl Keys {
    fn random() -> Option<Self> {
        let (mut salt, mut key) = (Zeroizing::new([0; 64]), Zeroizing::new([0; 16]));
        rand::fill(&mut *salt).ok()?;
        rand::fill(&mut *key).ok()?;
        let mut short = Context::new(&SHA256);
        short.update(&*salt);
        Some(Self { short, long: LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &*key).ok()?) })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Each byte and the length matter.
    #[test]
    fn different_tokens_have_different_digests() {
        let mut digests = HashSet::new();
        let mut token = vec![b'a'; 300];
        for length in 0..=300 {
            assert!(digests.insert(TokenDigest::of(&token[..length])), "{length}");
        }
        for index in 0..300 {
            token[index] = b'b';
            assert!(digests.insert(TokenDigest::of(&token)), "{index}");
        }
        // Zeros at the end are no padding.
        assert!((1..300).all(|length| digests.insert(TokenDigest::of(&vec![0; length]))));
        assert_eq!(TokenDigest::of(&token), TokenDigest::of(&token));
    }

    /// Of four short tokens with equal bits, the digest of one cannot be computed from the others.
    #[test]
    fn digests_of_short_tokens_are_not_linear() {
        let digest = |byte: u8, length: usize| u128::from_ne_bytes(TokenDigest::of(&vec![byte; length]).unwrap().0);
        let sum = |length| [1, 2, 4, 7].map(|byte| digest(byte, length)).into_iter().fold(0, |sum, part| sum ^ part);
        assert!((1..LONG_TOKEN).all(|length| sum(length) != 0));
        assert_eq!(sum(LONG_TOKEN), 0, "AES-GCM is linear");
    }

    #[test]
    fn digests_are_not_printed() {
        assert_eq!(format!("{:?}", TokenDigest::of(b"token")), "Some(TokenDigest(..))");
    }
}
