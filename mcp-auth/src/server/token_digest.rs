//! What tokens are recognised by.

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::rand;

/// Stands for a token: a keyed digest of 128 bits, with a random key of the process that never leaves it.
///
/// It is the tag of AES-GCM for the token as associated data, without a plaintext and always with the same nonce: GHASH of the
/// token, plus a constant. With a nonce that is used again, tags must not be revealed, and these never are: they are compared with
/// others of the process, and that is all. So what counts is how likely two tokens have the same: for tokens of up to *n* blocks of
/// 16 bytes at most (*n* + 2) / 2^128, whatever the tokens are, as long as they were chosen without knowledge of the key. An
/// attacker can only try tokens, one request for each: with 10,000 tokens of 16 KiB that are remembered, an attempt succeeds with
/// a probability of less than 2^-104, and one that fails rules out hardly any key.
///
/// It costs a small part of SHA-256 on processors without instructions for that. Tokens cannot be computed from it, so a copy of
/// the memory has no tokens that work elsewhere, or after the process has ended. But one who reads the memory of the process
/// while it runs has the key, and can make something with the same digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenDigest([u8; 16]);

impl TokenDigest {
    /// Returns the digest of a token; `None` if the random source of the operating system has failed.
    pub(crate) fn of(token: &[u8]) -> Option<Self> {
        static KEY: OnceLock<Option<LessSafeKey>> = OnceLock::new();
        let key = KEY.get_or_init(random_key).as_ref()?;
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        let tag = key.seal_in_place_separate_tag(nonce, Aad::from(token), &mut []).ok()?;
        tag.as_ref().try_into().ok().map(Self)
    }
}

/// One number, of which tables need no hash.
impl Hash for TokenDigest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        state.write_u64(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
    }
}

fn random_key() -> Option<LessSafeKey> {
    let mut key = [0; 16];
    rand::fill(&mut key).ok()?;
    Some(LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).ok()?))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Each byte and the length matter.
    #[test]
    fn different_tokens_have_different_digests() {
        let mut digests = HashSet::new();
        let mut token = vec![b'a'; 100];
        for length in 0..=100 {
            assert!(digests.insert(TokenDigest::of(&token[..length])), "{length}");
        }
        for index in 0..100 {
            token[index] = b'b';
            assert!(digests.insert(TokenDigest::of(&token)), "{index}");
        }
        // Zeros at the end are no padding.
        assert!((1..40).all(|length| digests.insert(TokenDigest::of(&vec![0; length]))));
        assert_eq!(TokenDigest::of(&token), TokenDigest::of(&token));
    }
}
