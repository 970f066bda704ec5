//! Foreign text that is safe to show.

use std::fmt::Write as _;

/// Copies the beginning of a foreign text, with everything unprintable escaped.
///
/// Texts of a peer end up in logs and in answers. Neither must grow with the input, nor carry
/// control characters into a terminal.
pub(crate) fn excerpt(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(text.len().min(limit));
    for (index, character) in text.chars().enumerate() {
        if index == limit {
            out.push('…');
            break;
        }
        match character {
            // Quotation marks are harmless, and escaping them makes messages hard to read.
            '"' | '\'' => out.push(character),
            other => {
                // Writing to a string does not fail.
                let _ = write!(out, "{}", other.escape_debug());
            }
        }
    }
    out
}

/// How many characters of a name are shown.
pub(crate) const NAME: usize = 40;

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
        assert_eq!(excerpt("a\n\u{1b}[\u{202e}\"", NAME), "a\\n\\u{1b}[\\u{202e}\"");
    }
}
