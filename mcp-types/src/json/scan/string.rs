//! The grammar of strings, of which large messages mostly consist.

use super::{ScanError, Scanner};

impl Scanner<'_> {
    /// Scans a string and returns whether it has escapes; the scanner is at the opening quotation mark.
    #[inline]
    pub(super) fn string(&mut self) -> Result<bool, ScanError> {
        if self.plain_string() { Ok(false) } else { self.escaped_string().map(|()| true) }
    }

    /// Scans a string without escapes; if it has any, or no end, the scanner stays and this returns `false`.
    #[inline]
    pub(super) fn plain_string(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        let end = plain_end(bytes, self.at + 1);
        let is_plain = bytes.get(end) == Some(&b'"');
        if is_plain {
            self.at = end + 1;
        }
        is_plain
    }

    /// Scans a string that is not plain.
    #[cold]
    pub(super) fn escaped_string(&mut self) -> Result<(), ScanError> {
        self.at = plain_end(self.text.as_bytes(), self.at + 1);
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.advance();
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(_) => return Err(self.expected("control characters to be escaped")),
                None => return Err(self.expected("the end of the string")),
            }
            self.at = plain_end(self.text.as_bytes(), self.at);
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

/// Returns whether there is no special byte.
#[inline]
pub(crate) fn is_plain(bytes: &[u8]) -> bool {
    // The last word overlaps the one before, so that most strings need no loop over bytes.
    if let Some(last) = bytes.last_chunk() {
        let (words, _) = bytes.as_chunks();
        let of_last = special_bits(u64::from_le_bytes(*last));
        return words.iter().fold(of_last, |bits, word| bits | special_bits(u64::from_le_bytes(*word))) == 0;
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let both = u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
        return special_bits(both) == 0;
    }
    !bytes.iter().any(|byte| is_special(*byte))
}

/// Returns the position of the first special byte from `at` on, or the end of the text.
///
/// Most names and many strings have fewer bytes than a word, so that no call is needed.
#[inline]
fn plain_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest.split_first_chunk() {
        Some((word, behind)) => special_in(*word).map_or_else(|| at + WORD + plain_len(behind), |plain| at + plain),
        None => at + plain_len(rest),
    }
}

/// Returns the position of the first special byte, or the length.
#[inline(never)]
pub(crate) fn plain_len(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.get(..CHUNK).unwrap_or(bytes).as_chunks();
    for (index, word) in words.iter().enumerate() {
        if let Some(plain) = special_in(*word) {
            return WORD * index + plain;
        }
    }
    if bytes.len() > CHUNK {
        return long_plain_len(bytes);
    }
    WORD * words.len() + tail.iter().position(|byte| is_special(*byte)).unwrap_or(tail.len())
}

/// Steps over chunks, which is faster than words for long strings only.
#[inline(never)]
fn long_plain_len(bytes: &[u8]) -> usize {
    let (chunks, _) = bytes.as_chunks();
    let plain = CHUNK * chunks.iter().take_while(|chunk| !any_special(chunk)).count();
    // The rest is shorter than a chunk, or has a special byte in its first one.
    plain + plain_len(bytes.get(plain..).unwrap_or_default())
}

const WORD: usize = 8;

/// Four vector registers on the smallest common machines.
const CHUNK: usize = 64;

/// Returns the position of the first special byte of a word.
#[inline]
fn special_in(word: [u8; WORD]) -> Option<usize> {
    let bits = special_bits(u64::from_le_bytes(word));
    (bits != 0).then(|| (bits.trailing_zeros() / u8::BITS) as usize)
}

fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < 0x20)
}

/// Free of branches, so that the compiler turns the loop into a few vector instructions.
fn any_special(chunk: &[u8; CHUNK]) -> bool {
    chunk.iter().fold(false, |special, byte| special | is_special(*byte))
}

/// Sets the high bit of special bytes; bits above the lowest one set may be wrong.
///
/// Subtraction borrows from the next byte where a byte is too small, so only what lies above a true hit can be affected.
fn special_bits(word: u64) -> u64 {
    const LOW: u64 = u64::from_le_bytes([0x01; WORD]);
    const HIGH: u64 = u64::from_le_bytes([0x80; WORD]);
    // The mark becomes 0x20, next to the control characters.
    let mark_or_control = (word ^ (LOW * 0x02)).wrapping_sub(LOW * 0x21);
    let backslash = (word ^ (LOW * 0x5c)).wrapping_sub(LOW);
    (mark_or_control | backslash) & !word & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::scan::{Problem, check};

    #[test]
    fn the_wide_search_agrees_with_the_narrow_one() {
        for length in 0..4 * CHUNK {
            for at in 0..length {
                for special in [b'"', b'\\', 0x00, 0x1f] {
                    let mut bytes = vec![0xc3; length];
                    bytes[at] = special;
                    // A second hit behind the first must not win.
                    *bytes.last_mut().unwrap() = b'"';
                    assert!(!is_plain(&bytes), "{length} {at}");
                    let expected = bytes.iter().position(|byte| is_special(*byte));
                    assert_eq!(plain_end(&bytes, 0), expected.unwrap());
                }
            }
            assert_eq!(plain_end(&vec![b'a'; length], 0), length);
            assert!(is_plain(&vec![b'a'; length]), "{length}");
        }
        for byte in 0..=u8::MAX {
            let bits = special_bits(u64::from_le_bytes([byte; WORD]));
            assert_eq!(bits & 0x80 != 0, is_special(byte), "{byte}");
            assert_eq!(any_special(&[byte; CHUNK]), is_special(byte), "{byte}");
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
