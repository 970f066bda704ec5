//! Texts of peers, without the secrets that they could repeat.

use std::collections::HashSet;

use url::{Url, form_urlencoded};

use crate::Secret;

/// The maximum length of a text that is read, in characters.
const MAX_READ_CHARACTERS: usize = 4096;
/// The maximum length of a text that is shown, in characters.
const MAX_SHOWN_CHARACTERS: usize = 300;
/// How many characters a text may have in common with a secret, less one: a peer can repeat a part of it, too.
const WINDOW: usize = 8;
/// Shorter ones protect nothing, and are in every text.
const MIN_SECRET: usize = 4;
/// What every signed token begins with: `{"` in Base64.
const TOKEN_START: &[u8] = b"eyJ";
/// How much has to follow that to be taken for a token.
const MIN_TOKEN: usize = 16;
const REDACTED: &str = "[redacted]";

/// The secrets that a peer knows, so that they have to be removed from its texts before these are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownSecrets(Vec<Secret>);

impl KnownSecrets {
    pub(crate) fn add(&mut self, secret: &Secret) {
        let encoded: String = form_urlencoded::byte_serialize(secret.expose().as_bytes()).collect();
        if encoded != secret.expose() {
            self.0.push(Secret::new(encoded));
        }
        self.0.push(secret.clone());
    }

    pub(crate) fn add_all<'a>(&mut self, secrets: impl IntoIterator<Item = &'a Secret>) {
        secrets.into_iter().for_each(|secret| self.add(secret));
    }

    /// Adds the query of an address, which may contain a key.
    pub(crate) fn add_query(&mut self, address: &str) {
        let Ok(url) = Url::parse(address) else { return };
        let Some(query) = url.query() else { return };
        self.add(&Secret::new(query));
        for (_, value) in url.query_pairs() {
            self.add(&Secret::new(value));
        }
    }

    pub(crate) fn extend(&mut self, others: &Self) {
        self.0.extend_from_slice(&others.0);
    }

    /// Returns what can be shown of a text: printable ASCII of a bounded length, without what it has in common with a secret, and
    /// without anything that looks like a signed token.
    pub(crate) fn redact(&self, text: &str) -> String {
        let text: String = printable(text).take(MAX_READ_CHARACTERS).collect();
        let is_hidden = self.hidden(text.as_bytes());
        let mut shown = String::new();
        for (index, character) in text.chars().enumerate() {
            if !is_hidden[index] {
                shown.push(character);
            } else if index == 0 || !is_hidden[index - 1] {
                shown.push_str(REDACTED);
            }
        }
        shown.truncate(MAX_SHOWN_CHARACTERS);
        shown
    }

    /// Returns which bytes of an ASCII text must not be shown.
    fn hidden(&self, text: &[u8]) -> Vec<bool> {
        let mut is_hidden = vec![false; text.len()];
        for secret in &self.0 {
            let secret = Secret::new(printable(secret.expose()).collect::<String>());
            let secret = secret.expose().as_bytes();
            if secret.len() < MIN_SECRET {
                continue;
            }
            let length = secret.len().min(WINDOW);
            let windows: HashSet<&[u8]> = secret.windows(length).collect();
            for (start, window) in text.windows(length).enumerate() {
                if windows.contains(window) {
                    is_hidden[start..start + length].fill(true);
                }
            }
        }
        let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        for start in 0..text.len() {
            if text[start..].starts_with(TOKEN_START) {
                let length = text[start..].iter().take_while(|byte| is_token(byte)).count();
                if length >= MIN_TOKEN {
                    is_hidden[start..start + length].fill(true);
                }
            }
        }
        is_hidden
    }
}

/// Leaves only what can be shown in a terminal, a log and a header.
fn printable(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|character| matches!(character, ' '..='~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redact(secrets: &[&str], text: &str) -> String {
        let mut known = KnownSecrets::default();
        known.add_all(&secrets.iter().map(|secret| Secret::new(*secret)).collect::<Vec<_>>());
        known.redact(text)
    }

    // covers: AU-14
    #[test]
    fn secrets_are_removed_as_a_whole_in_part_and_encoded() {
        let secrets = ["correct horse/battery staple", "hunter2"];
        for (text, expected) in [
            ("unknown code", "unknown code"),
            ("the code correct horse/battery staple is unknown", "the code [redacted] is unknown"),
            ("the code correct+horse%2Fbattery+staple is unknown", "the code [redacted] is unknown"),
            ("begins with correct hor...", "begins with [redacted]..."),
            ("xhunter2x hunter2", "x[redacted]x [redacted]"),
            ("hunt\u{7f}er2", "[redacted]"),
            ("eyJhbGciOiJFUzI1NiJ9.e30.c2ln and eyJ", "[redacted] and eyJ"),
        ] {
            assert_eq!(redact(&secrets, text), expected);
        }
        assert_eq!(redact(&["", "a", "abc"], "abcabc"), "abcabc", "what is no secret");
    }

    #[test]
    fn a_secret_at_the_end_of_what_is_shown_is_not_cut_before_it_is_found() {
        let text = format!("{}correct-horse", "x".repeat(MAX_SHOWN_CHARACTERS - 7));
        let shown = redact(&["correct-horse"], &text);
        assert!(shown.len() == MAX_SHOWN_CHARACTERS && shown.ends_with("x[redact"), "{shown}");
        let long = redact(&["correct-horse"], &"correct-horse ".repeat(10_000));
        assert!(long.len() <= MAX_SHOWN_CHARACTERS && !long.contains("correct"), "{long}");
    }

    // covers: AU-14
    #[test]
    fn the_query_of_an_address_is_secret() {
        let mut known = KnownSecrets::default();
        known.add_query("https://mcp.example/mcp?tenant=1&key=hunter2%21");
        for text in ["https://mcp.example/mcp?tenant=1&key=hunter2%21", "hunter2!", "key=hunter2"] {
            assert!(!known.redact(text).contains(&"hunter2"[1..]), "{text}");
        }
    }
}
