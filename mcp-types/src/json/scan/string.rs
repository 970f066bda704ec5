//! The grammar of strings, of which large messages mostly consist.

use super::{ScanError, Scanner};

impl Scanner<'_> {
    /// Scans a string and returns whether it has escapes; the scanner is at the opening quotation mark.
    pub(super) fn string(&mut self) -> Result<bool, ScanError> {
        let mut escaped = false;
        self.advance();
        loop {
            self.at = plain_end(self.text.as_bytes(), self.at);
            match self.byte() {
                Some(b'"') => {
                    self.advance();
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.expected("control characters to be escaped")),
                None => return Err(self.expected("the end of the string")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), ScanError> {
        self.advance();
        match self.byte() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.advance();
                Ok(())
            }
            Some(b'u') => self.unicode_escape(),
            _ => Err(self.expected("an escape sequence")),
        }
    }

    /// Scans `\uXXXX`, or both halves of a surrogate pair.
    fn unicode_escape(&mut self) -> Result<(), ScanError> {
        let start = self.at;
        match self.code_unit()? {
            0xd800..=0xdbff => {}
            0xdc00..=0xdfff => {
                self.at = start;
                return Err(self.expected("a surrogate pair"));
            }
            _ => return Ok(()),
        }
        if self.byte() == Some(b'\\') {
            self.advance();
            if self.byte() == Some(b'u') && matches!(self.code_unit()?, 0xdc00..=0xdfff) {
                return Ok(());
            }
        }
        self.at = start;
        Err(self.expected("a surrogate pair"))
    }

    /// Scans `uXXXX`.
    fn code_unit(&mut self) -> Result<u32, ScanError> {
        let mut unit = 0;
        for _ in 0..4 {
            self.advance();
            let digit = self.byte().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.expected("four hexadecimal digits"));
            };
            unit = unit << 4 | digit;
        }
        self.advance();
        Ok(unit)
    }
}

/// Returns the position of the first special byte from `at` on, or the end of the text.
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    let rest = |at: usize| bytes.get(at..).unwrap_or_default();
    // Most strings are short, and words are faster than chunks for them.
    for _ in 0..2 {
        if let Some(word) = rest(at).first_chunk() {
            if let Some(plain) = special_in_word(*word) {
                return at + plain;
            }
            at += WORD;
        }
    }
    while let Some(chunk) = rest(at).first_chunk()
        && !any_special(chunk)
    {
        at += CHUNK;
    }
    while let Some(word) = rest(at).first_chunk() {
        if let Some(plain) = special_in_word(*word) {
            return at + plain;
        }
        at += WORD;
    }
    let rest = rest(at);
    let plain = rest.iter().position(|byte| is_special(*byte));
    at + plain.unwrap_or(rest.len())
}

/// Finds the first special byte of a word.
fn special_in_word(word: [u8; WORD]) -> Option<usize> {
    let bits = special_bits(u64::from_le_bytes(word));
    (bits != 0).then(|| (bits.trailing_zeros() / u8::BITS) as usize)
}

const WORD: usize = 8;

/// Two vector registers on the smallest common machines.
const CHUNK: usize = 32;

fn is_special(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < 0x20
}

/// Free of branches, so that the compiler turns the loop into a few vector instructions.
fn any_special(chunk: &[u8; CHUNK]) -> bool {
    let mut special = 0;
    for &byte in chunk {
        special |= u8::from(byte == b'"') | u8::from(byte == b'\\') | u8::from(byte < 0x20);
    }
    special != 0
}

/// Sets the high bit of special bytes; bits above the lowest one set may be wrong.
///
/// `x - 1` borrows from the next byte where a byte is zero, so only what lies above a true hit
/// can be affected.
fn special_bits(word: u64) -> u64 {
    const LOW: u64 = u64::from_le_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    let zero = |x: u64| x.wrapping_sub(LOW) & !x;
    let quote = zero(word ^ (LOW * 0x22));
    let backslash = zero(word ^ (LOW * 0x5c));
    let control = word.wrapping_sub(LOW * 0x20) & !word;
    (quote | backslash | control) & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::scan::{Problem, check};

    #[test]
    fn the_wide_search_agrees_with_the_narrow_one() {
        for length in 0..100 {
            for at in 0..length {
                for special in [b'"', b'\\', 0x00, 0x1f] {
                    let mut bytes = vec![0xc3; length];
                    bytes[at] = special;
                    // A second hit behind the first must not win.
                    *bytes.last_mut().unwrap() = b'"';
                    let expected = bytes.iter().position(|byte| is_special(*byte));
                    assert_eq!(plain_end(&bytes, 0), expected.unwrap());
                }
            }
            assert_eq!(plain_end(&vec![b'a'; length], 0), length);
        }
        for byte in 0..=u8::MAX {
            let bits = special_bits(u64::from_le_bytes([byte; 8]));
            assert_eq!(bits & 0x80 != 0, is_special(byte), "{byte}");
        }
    }

    #[test]
    fn whatever_passes_fits_a_rust_string() {
        for text in [r#""""#, r#""\"\\\/\b\f\n\r\t""#, r#""\u0000\uABcd""#, r#""\ud83d\ude00""#, "\"\u{7f}ä\u{2028}\""]
        {
            assert_eq!(check(text, 1), Ok(text));
            assert!(serde_json::from_str::<String>(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for (text, at, what) in [
            ("\"a", 2, "the end of the string"),
            ("\"a\\\"", 4, "the end of the string"),
            ("\"a\nb\"", 2, "control characters to be escaped"),
            ("\"\\x\"", 2, "an escape sequence"),
            ("\"\\", 2, "an escape sequence"),
            ("\"\\u12g4\"", 5, "four hexadecimal digits"),
            ("\"\\u12", 5, "four hexadecimal digits"),
            ("\"\\ud800\"", 2, "a surrogate pair"),
            ("\"\\ud800\\n\"", 2, "a surrogate pair"),
            ("\"\\ud800\\u0041\"", 2, "a surrogate pair"),
            ("\"\\udc00\"", 2, "a surrogate pair"),
        ] {
            let error = check(text, 1).unwrap_err();
            assert_eq!((error.at, error.problem), (at, Problem::Expected(what)), "{text}");
        }
    }
}
