//! Base64 (RFC 4648): the padded standard encoding that the protocol uses, and the unpadded [`url_safe`] one.

use std::fmt;

/// Encodes bytes with the standard alphabet and padding.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut text = encode_unpadded(STANDARD, bytes);
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

/// Decodes the standard alphabet with padding.
///
/// # Errors
///
/// Returns an error if the padding is wrong, if there is any other character (white space included), or if unused
/// bits of the last character are set.
// H-75
pub fn decode(text: &str) -> Result<Vec<u8>, InvalidBase64> {
    if !text.len().is_multiple_of(4) {
        return Err(InvalidBase64 { offset: text.len() / 4 * 4 });
    }
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    decode_unpadded(STANDARD, digits)
}

/// Base64 for URLs, headers and file names: `-` and `_` instead of `+` and `/`, without padding.
pub mod url_safe {
    use super::{InvalidBase64, URL_SAFE, append_unpadded, decode_unpadded, encode_unpadded};

    /// Encodes bytes with the URL-safe alphabet, without padding.
    #[must_use]
    pub fn encode(bytes: &[u8]) -> String {
        encode_unpadded(URL_SAFE, bytes)
    }

    /// Appends bytes to text, in the same encoding as [`encode`].
    pub fn append(out: &mut Vec<u8>, bytes: &[u8]) {
        append_unpadded(URL_SAFE, out, bytes);
    }

    /// Decodes the URL-safe alphabet without padding.
    ///
    /// # Errors
    ///
    /// Returns an error if there is any other character (padding included), or if unused bits of the last character
    /// are set.
    pub fn decode(text: &str) -> Result<Vec<u8>, InvalidBase64> {
        decode_unpadded(URL_SAFE, text)
    }
}

type Alphabet = &'static [u8; 64];

const STANDARD: Alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: Alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn encode_unpadded(alphabet: Alphabet, bytes: &[u8]) -> String {
    // With room for padding.
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    append_unpadded(alphabet, &mut text, bytes);
    // The alphabets are ASCII.
    String::from_utf8(text).unwrap_or_default()
}

fn append_unpadded(alphabet: Alphabet, text: &mut Vec<u8>, bytes: &[u8]) {
    let digits = |group: [u8; 3]| {
        let [a, b, c] = group;
        let bits = u32::from_be_bytes([0, a, b, c]);
        [18, 12, 6, 0].map(|shift| alphabet[(bits >> shift & 0x3f) as usize])
    };
    let (groups, rest) = bytes.as_chunks();
    for group in groups {
        text.extend_from_slice(&digits(*group));
    }
    match *rest {
        [a] => text.extend_from_slice(&digits([a, 0, 0])[..2]),
        [a, b] => text.extend_from_slice(&digits([a, b, 0])[..3]),
        _ => {}
    }
}

/// Decodes strictly, so that there is only one encoding of the same bytes.
fn decode_unpadded(alphabet: Alphabet, text: &str) -> Result<Vec<u8>, InvalidBase64> {
    let mut bytes = Vec::with_capacity(text.len().div_ceil(4) * 3);
    for (index, group) in text.as_bytes().chunks(4).enumerate() {
        let fault = InvalidBase64 { offset: index * 4 };
        if group.len() == 1 {
            return Err(fault);
        }
        let mut bits = 0;
        for digit in group {
            bits = bits << 6 | value(alphabet, *digit).ok_or(fault)?;
        }
        let missing = 4 - group.len();
        let [_, first, second, third] = (bits << (6 * missing)).to_be_bytes();
        let group = [first, second, third];
        let (kept, dropped) = group.split_at(3 - missing);
        if dropped.iter().any(|byte| *byte != 0) {
            return Err(fault);
        }
        bytes.extend_from_slice(kept);
    }
    Ok(bytes)
}

fn value(alphabet: Alphabet, digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        _ if digit == alphabet[62] => 62,
        _ if digit == alphabet[63] => 63,
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
            let unpadded = text.trim_end_matches('=');
            assert_eq!(url_safe::encode(bytes.as_bytes()), unpadded);
            assert_eq!(url_safe::decode(unpadded).unwrap(), bytes.as_bytes());
            let mut appended = b"=".to_vec();
            url_safe::append(&mut appended, bytes.as_bytes());
            assert_eq!(appended, [b"=", unpadded.as_bytes()].concat());
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)).unwrap(), all);
        assert_eq!(url_safe::decode(&url_safe::encode(&all)).unwrap(), all);
        assert_eq!((encode(&[0xfb, 0xff]), url_safe::encode(&[0xfb, 0xff])), ("+/8=".to_owned(), "-_8".to_owned()));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "Zg", "Zg=", "Zg===", "Z===", "Zh==", "Zm9=", "Zg==Zg==", "Zm 9", "Zm9v\n", "Zm9_", "====", "=Zg=", "Zm9vé",
        ] {
            assert!(decode(text).is_err(), "{text}");
        }
        for text in ["Z", "Zg==", "Zh", "Zm9=", "Zm9", "Zm9vZ", "Zm 9", "Zm9+", "Zm9/", "Zm9vé"] {
            assert!(url_safe::decode(text).is_err(), "{text}");
        }
    }
}
