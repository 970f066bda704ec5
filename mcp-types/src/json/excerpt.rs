//! Excerpts of untrusted text for messages.

use std::fmt::Write as _;

/// Copies the first `limit` characters of untrusted text, with unprintable characters escaped.
///
/// Text of a peer appears in logs and error responses, which must neither grow with the input nor contain control
/// characters.
pub(crate) fn excerpt(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(text.len().min(limit));
    for (index, character) in text.chars().enumerate() {
        if index == limit {
            out.push('…');
            break;
        }
        match character {
            // Quotation marks are harmless, and easier to read unescaped.
            '"' | '\'' => out.push(character),
            other => {
                // Writing to a string is infallible.
                let _ = write!(out, "{}", other.escape_debug());
            }
        }
    }
    out
}

/// The maximum length of an excerpt of a name, in characters.
pub(crate) const MAX_NAME_CHARS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(excerpt("abcdef", 3), "abc…");
        assert_eq!(excerpt("abc", 3), "abc");
        assert_eq!(excerpt("ä€😀x", 3), "ä€😀…");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(excerpt("a\n\u{1b}[\u{202e}\"", MAX_NAME_CHARS), "a\\n\\u{1b}[\\u{202e}\"");
    }
}
