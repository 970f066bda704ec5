//! Reading challenges.
//!
//! A header is `1#challenge`, and a challenge is `scheme [ token68 / #parameter ]`: both lists are separated by commas, so a
//! comma is followed by a parameter of the same challenge if a `=` comes after the next token, and by a new challenge otherwise.

use super::{Challenge, MAX_CHALLENGES, MAX_PARAMETERS};

pub(super) struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    pub(super) const fn new(value: &'a str) -> Self {
        Self { rest: value }
    }

    pub(super) fn parse_into(mut self, challenges: &mut Vec<Challenge>) {
        // Parameters of a challenge over the limit belong to none.
        let mut is_over_limit = false;
        loop {
            self.skip(|byte| matches!(byte, b' ' | b'\t' | b','));
            if self.rest.is_empty() {
                return;
            }
            let name = self.token();
            if name.is_empty() {
                self.skip_element();
                continue;
            }
            let before_blanks = self.rest;
            self.skip(|byte| matches!(byte, b' ' | b'\t'));
            // `name=value` goes on with the challenge; a token68 is only possible directly after a scheme.
            if let Some(after) = self.rest.strip_prefix('=') {
                self.rest = after;
                let value = self.value();
                match challenges.last_mut() {
                    Some(challenge) if !is_over_limit && challenge.parameters.len() < MAX_PARAMETERS => {
                        challenge.parameters.extend(value.map(|value| (name.to_owned(), value)));
                    }
                    _ => {}
                }
                continue;
            }
            let is_separated =
                before_blanks.len() > self.rest.len() || self.rest.is_empty() || self.rest.starts_with(',');
            if !is_separated {
                self.skip_element();
                continue;
            }
            is_over_limit = challenges.len() >= MAX_CHALLENGES;
            if !is_over_limit {
                challenges.push(Challenge { scheme: name.to_owned(), parameters: Vec::new() });
            }
            self.skip_token68();
        }
    }

    fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) {
        self.rest = self.rest.trim_start_matches(|c: char| u8::try_from(c).is_ok_and(&is_skipped));
    }

    /// Takes the characters of a token, which may be none.
    fn token(&mut self) -> &'a str {
        let end = self.rest.bytes().position(|byte| !is_token(byte)).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        token
    }

    /// Takes the value of a parameter: a token or a quoted string. Values that are neither are left out.
    fn value(&mut self) -> Option<String> {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        let Some(quoted) = self.rest.strip_prefix('"') else {
            // Addresses and scopes are often written without the quotes that they need, so all up to the next comma or blank is taken.
            let end = self.rest.find([',', ' ', '\t']).unwrap_or(self.rest.len());
            let (value, rest) = self.rest.split_at(end);
            self.rest = rest;
            return (!value.is_empty()).then(|| value.to_owned());
        };
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        while let Some((index, character)) = characters.next() {
            match character {
                '"' => {
                    self.rest = &quoted[index + 1..];
                    return Some(value);
                }
                '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
                other => value.push(other),
            }
        }
        // The closing quote is missing, so that it is unknown what else was meant.
        self.rest = "";
        None
    }

    /// Skips the credentials-like text that some schemes put directly after their name.
    fn skip_token68(&mut self) {
        let end = self.rest.find([',', ' ', '\t']).unwrap_or(self.rest.len());
        let candidate = &self.rest[..end];
        let text = candidate.trim_end_matches('=');
        let is_token68 =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/');
        let ends_element = self.rest[end..].trim_start_matches([' ', '\t']);
        let is_last = ends_element.is_empty() || ends_element.starts_with(',');
        if !text.is_empty() && text.bytes().all(is_token68) && is_last {
            self.rest = &self.rest[end..];
        }
    }

    /// Skips to the next comma that is not in a quoted string.
    fn skip_element(&mut self) {
        let (mut is_quoted, mut is_escaped) = (false, false);
        let end = self.rest.bytes().position(|byte| {
            if is_escaped {
                is_escaped = false;
                return false;
            }
            match byte {
                b'\\' if is_quoted => is_escaped = true,
                b'"' => is_quoted = !is_quoted,
                b',' if !is_quoted => return true,
                _ => {}
            }
            false
        });
        // A comma is ASCII, so that this is a boundary of characters.
        self.rest = end.map_or("", |end| &self.rest[end..]);
    }
}

const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        )
}
