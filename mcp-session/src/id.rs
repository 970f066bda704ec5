//! Session ids.

use std::fmt;
use std::hash::{Hash, Hasher};

/// The id of a session: 256 bits from the operating system's random source, on the wire as 64 lower-case hexadecimal digits.
///
/// An id gives access to its session, so [`Debug`](fmt::Debug) shows only its beginning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId([u8; 32]);

/// The error of creating an id or a key when the operating system's random source fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system's random source failed")]
#[non_exhaustive]
pub struct NoRandomness;

/// The error of parsing a session id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session id has 64 lower-case hexadecimal digits")]
#[non_exhaustive]
pub struct InvalidSessionId;

impl SessionId {
    /// Creates a random id.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system's random source fails.
    pub fn random() -> Result<Self, NoRandomness> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| NoRandomness)?;
        Ok(Self(bytes))
    }

    /// Parses an id that a client sent.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not exactly what [`Display`](fmt::Display) writes.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, InvalidSessionId> {
        let digits: &[u8; 64] = text.as_ref().try_into().map_err(|_| InvalidSessionId)?;
        // The loops have no branches, so that the compiler turns them into a few vector instructions.
        let mut are_digits = true;
        let values = digits.map(|digit| {
            let (number, letter) = (digit.wrapping_sub(b'0'), digit.wrapping_sub(b'a'));
            are_digits &= (number < 10) | (letter < 6);
            if number < 10 { number } else { letter.wrapping_add(10) }
        });
        if !are_digits {
            return Err(InvalidSessionId);
        }
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(values.as_chunks().0) {
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }

    /// Returns the bytes of the id.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the digits of the id, as they are on the wire.
    #[must_use]
    pub fn to_digits(&self) -> [u8; 64] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut digits = [0; 64];
        for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(self.0) {
            *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        }
        digits
    }
}

impl Hash for SessionId {
    /// Hashes a quarter of the id, as its bytes are random.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        state.write_u64(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.to_digits()).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for SessionId {
    /// Shows only the beginning, as the whole id gives access to the session.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, ..] = self.0;
        write!(f, "SessionId({a:02x}{b:02x}{c:02x}..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An id can be parsed from its text, and from no other text.
    // covers: S0.24, S4.47, B-16
    #[test]
    fn ids_survive() {
        let id = SessionId::random().unwrap();
        let text = id.to_string();
        assert_eq!((text.len(), SessionId::parse(&text)), (64, Ok(id)));
        let expected: String = id.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((text.as_str(), text.as_bytes()), (expected.as_str(), &id.to_digits()[..]));
        assert_ne!(SessionId::random().unwrap(), id);
        for wrong in [
            "",
            "a",
            &text[1..],
            &format!("{text}0"),
            &text.to_uppercase().replace(char::is_numeric, "A"),
            &"ü".repeat(32),
        ] {
            assert_eq!(SessionId::parse(wrong), Err(InvalidSessionId), "{wrong}");
        }
        assert!(format!("{id:?}").len() < 24, "logs do not contain the whole id");
    }
}
