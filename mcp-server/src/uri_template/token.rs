//! URIs as normalised characters.

use super::operator::is_unreserved;

/// One character of a URI.
///
/// URIs that differ only in their encoding have the same tokens: `%41` is `A`, `%c3%A9` is `é`. A reserved character and its
/// encoding differ, as only the first is a separator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Plain(char),
    Encoded(char),
    /// An encoded byte that is not part of a UTF-8 character.
    Broken(u8),
}

impl Token {
    pub(super) fn all(text: &str) -> Vec<Self> {
        let mut tokens = Vec::with_capacity(text.len());
        tokens.extend(Self::each(text));
        tokens
    }

    /// Returns the tokens of a text, lazily.
    pub(super) fn each(text: &str) -> impl Iterator<Item = Self> + '_ {
        let mut rest = text;
        std::iter::from_fn(move || {
            let character = rest.chars().next()?;
            let (token, length) = match encoded_byte(rest.as_bytes()) {
                Some(first) => decode(first, rest.as_bytes()),
                None if character.is_ascii() => (Self::Plain(character), 1),
                None => (Self::Encoded(character), character.len_utf8()),
            };
            rest = &rest[length..];
            Some(token)
        })
    }

    pub(super) fn decode(tokens: &[Self]) -> String {
        tokens
            .iter()
            .map(|token| match token {
                Self::Plain(character) | Self::Encoded(character) => *character,
                Self::Broken(_) => char::REPLACEMENT_CHARACTER,
            })
            .collect()
    }
}

/// The character whose first encoded byte is `first`, and the length of its encoding.
fn decode(first: u8, text: &[u8]) -> (Token, usize) {
    let mut bytes = [first, 0, 0, 0];
    let count = match first {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    for (index, byte) in bytes.iter_mut().enumerate().take(count).skip(1) {
        let Some(next) = text.get(index * TRIPLET..).and_then(encoded_byte) else { break };
        *byte = next;
    }
    match str::from_utf8(&bytes[..count]).ok().and_then(|text| text.chars().next()) {
        Some(character) if is_unreserved(character) => (Token::Plain(character), TRIPLET),
        Some(character) => (Token::Encoded(character), count * TRIPLET),
        None => (Token::Broken(first), TRIPLET),
    }
}

/// The byte that is encoded at the start of the text.
pub(super) fn encoded_byte(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

/// The length of an encoded byte: `%41`.
pub(super) const TRIPLET: usize = 3;

#[cfg(test)]
mod tests {
    use super::Token::{Broken, Encoded, Plain};
    use super::*;

    #[test]
    fn encodings_of_the_same_character_are_equal() {
        assert_eq!(Token::all("a%41%2f/"), [Plain('a'), Plain('A'), Encoded('/'), Plain('/')]);
        assert_eq!(Token::all("é%c3%A9"), [Encoded('é'), Encoded('é')]);
        assert_eq!(Token::all("%F0%9F%A6%80x"), [Encoded('🦀'), Plain('x')]);
    }

    #[test]
    fn broken_encodings_are_kept_apart() {
        assert_eq!(Token::all("%C3x"), [Broken(0xC3), Plain('x')]);
        assert_eq!(Token::all("%C3%C3%A9"), [Broken(0xC3), Encoded('é')]);
        assert_eq!(Token::all("%C0%AF"), [Broken(0xC0), Broken(0xAF)]);
        assert_eq!(Token::all("%ED%A0%80"), [Broken(0xED), Broken(0xA0), Broken(0x80)]);
        assert_eq!(Token::all("%zz%4"), ['%', 'z', 'z', '%', '4'].map(Plain));
        assert_eq!(Token::all("%E2%82"), [Broken(0xE2), Broken(0x82)]);
    }
}
