//! The encoding of text in header values: literal, or Base64 as `=?base64?...?=`.
//!
//! This crate encodes and decodes `Mcp-Name` and `Mcp-Param-*` itself. The functions are for gateways that read or write
//! these headers.

use std::borrow::Cow;

use mcp_types::base64;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// Encodes text as a header value. Text that is allowed in a header stays literal.
#[must_use]
pub fn encode(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && text.trim_ascii() == text;
    if is_plain && encoded_part(text).is_none() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{PREFIX}{}{SUFFIX}", base64::encode(text.as_bytes())))
    }
}

/// Decodes a header value. A value without both markers is literal.
///
/// Returns `None` if the text between the markers is not Base64 of UTF-8.
// H-74, H-75
#[must_use]
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    let Some(encoded) = encoded_part(value) else { return Some(Cow::Borrowed(value)) };
    let bytes = base64::decode(encoded).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn encoded_part(value: &str) -> Option<&str> {
    value.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only what a header cannot hold is encoded, and everything comes back.
    // covers: H-72, H-73, H-76
    #[test]
    fn text_survives() {
        for (text, is_encoded) in [
            ("plain", false),
            ("us-west1", false),
            ("a b  c", false),
            ("", false),
            (" leading", true),
            ("trailing\t", true),
            ("two\nlines", true),
            ("grüß", true),
            ("日本", true),
            ("\u{7f}", true),
            ("=?base64?SGVsbG8=?=", true),
            ("=?base64?SGVsbG8=", false),
            ("SGVsbG8=?=", false),
        ] {
            let encoded = encode(text);
            assert_eq!(encoded != text, is_encoded, "{text:?}");
            assert_eq!(decode(&encoded).as_deref(), Some(text));
            assert!(encoded.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        }
    }

    /// The markers are exact, and so is what they enclose.
    // covers: H-74, H-75
    #[test]
    fn decoding_is_strict() {
        for (value, text) in [
            ("=?base64?SGVsbG8=?=", Some("Hello")),
            ("=?base64??=", Some("")),
            ("=?BASE64?SGVsbG8=?=", Some("=?BASE64?SGVsbG8=?=")),
            ("=?base64?=", Some("=?base64?=")),
            ("=?base64?SGVsbG8?=", None),
            ("=?base64?SGVsbG8==?=", None),
            ("=?base64?SGVs!G8=?=", None),
            ("=?base64?SGVs bG8=?=", None),
            ("=?base64?SGVsbG9=?=", None),
            ("=?base64?/w==?=", None),
        ] {
            assert_eq!(decode(value).as_deref(), text, "{value}");
        }
    }
}
