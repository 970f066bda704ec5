//! Base64 as the protocol uses it: RFC 4648, standard alphabet, padded.

use std::fmt;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for position in 0..4 {
            if position <= group.len() {
                let index = (bits >> (18 - 6 * position)) & 0x3f;
                text.push(char::from(ALPHABET[index as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

/// Decodes text strictly: wrong padding, foreign characters, white space and stray bits are refused.
///
/// # Errors
///
/// Fails at the first group of four characters that is not Base64.
// H-75
pub fn decode(text: &str) -> Result<Vec<u8>, InvalidBase64> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let groups = text.as_bytes().chunks(4);
    let last = groups.len().saturating_sub(1);
    for (index, group) in groups.enumerate() {
        let fault = InvalidBase64 { offset: index * 4 };
        let [a, b, c, d] = group else { return Err(fault) };
        let padding = match (c, d) {
            (b'=', b'=') => 2,
            (_, b'=') => 1,
            _ => 0,
        };
        if padding > 0 && index != last {
            return Err(fault);
        }
        let mut bits = 0;
        for letter in &[*a, *b, *c, *d][..4 - padding] {
            bits = bits << 6 | value(*letter).ok_or(fault)?;
        }
        bits <<= 6 * padding;
        let [_, first, second, third] = bits.to_be_bytes();
        let group = [first, second, third];
        let (kept, dropped) = group.split_at(3 - padding);
        if dropped.iter().any(|byte| *byte != 0) {
            return Err(fault);
        }
        bytes.extend_from_slice(kept);
    }
    Ok(bytes)
}

fn value(letter: u8) -> Option<u32> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

/// Text that is not Base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidBase64 {
    offset: usize,
}

impl fmt::Display for InvalidBase64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid Base64 at byte {}", self.offset)
    }
}

impl std::error::Error for InvalidBase64 {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_rfc_4648_hold() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)).unwrap(), all);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "Zg", "Zg=", "Zg===", "Z===", "Zh==", "Zm9=", "Zg==Zg==", "Zm 9", "Zm9v\n", "Zm9_", "====", "=Zg=", "Zm9vé",
        ] {
            assert!(decode(text).is_err(), "{text}");
        }
    }
}
