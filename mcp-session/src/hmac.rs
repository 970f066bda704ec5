//! HMAC with SHA-256 (RFC 2104): says whether a text is from somebody who has the key.

use sha2::{Digest, Sha256};

/// A key, as far as it can be worked on without the text.
#[derive(Clone)]
pub(crate) struct Hmac {
    inner: Sha256,
    outer: Sha256,
}

impl Hmac {
    pub(crate) fn new(key: &[u8]) -> Self {
        let mut block = [0; BLOCK];
        if key.len() > BLOCK {
            let short: [u8; 32] = Sha256::digest(key).into();
            block[..short.len()].copy_from_slice(&short);
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        let pad = |with: u8| Sha256::new().chain_update(block.map(|byte| byte ^ with));
        Self { inner: pad(0x36), outer: pad(0x5c) }
    }

    /// The code of a text, which may come in parts.
    pub(crate) fn code(&self, parts: &[&[u8]]) -> [u8; 32] {
        let inner = parts.iter().fold(self.inner.clone(), |inner, part| inner.chain_update(part));
        self.outer.clone().chain_update(inner.finalize()).finalize().into()
    }
}

/// Compares two texts of the same length in a time that does not tell where they differ.
pub(crate) fn is_same<const N: usize>(a: &[u8; N], b: &[u8; N]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
    // Keeps the compiler from stopping at the first difference.
    std::hint::black_box(difference) == 0
}

/// How much SHA-256 takes at a time, in bytes.
const BLOCK: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// The test cases of RFC 4231.
    // covers: RB-55
    #[test]
    fn codes_are_as_published() {
        let counting: Vec<u8> = (1..=25).collect();
        let long = b"This is a test using a larger than block-size key and a larger than block-size data. \
            The key needs to be hashed before being used by the HMAC algorithm.";
        let cases: [(&[u8], &[u8], &str); 7] = [
            (&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (&[0xaa; 20], &[0xdd; 50], "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
            (&counting, &[0xcd; 50], "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
            // Only the first half of this one is published.
            (&[0x0c; 20], b"Test With Truncation", "a3b6167473100ee06e0c796c2955552b"),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
            (&[0xaa; 131], long, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"),
        ];
        for (key, text, code) in cases {
            let hmac = Hmac::new(key);
            let hex = |code: [u8; 32]| code.map(|byte| format!("{byte:02x}")).concat();
            assert!(hex(hmac.code(&[text])).starts_with(code), "{code}");
            let (begin, end) = text.split_at(text.len() / 2);
            assert_eq!(hmac.code(&[begin, end]), hmac.code(&[text]), "parts make a whole");
        }
        assert!(is_same(b"same", b"same") && !is_same(b"same", b"sane") && !is_same(b"same", b"Same"));
    }
}
