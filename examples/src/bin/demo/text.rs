//! A tool with a structured result: an output schema, structured content, and the same as text for older clients.

use mcp::schemars::{self, JsonSchema};
use mcp::server::{Json, RequestContext, Tool, tool};
use mcp::types::ToolAnnotations;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Text {
    /// The text to look at
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Statistics {
    /// Characters, spaces included
    characters: usize,
    words: usize,
    lines: usize,
    /// The longest word; the first of several
    longest_word: Option<String>,
    /// How long it takes to read, at 240 words a minute
    reading_seconds: usize,
}

/// Statistics of a text.
pub(crate) fn statistics() -> Tool {
    tool("text_statistics", async |_: RequestContext, Text { text }| Json(Statistics::of(&text)))
        .title("Text statistics")
        .description("Counts the characters, words and lines of a text, and estimates how long it takes to read")
        .annotations(ToolAnnotations::default().read_only_hint(true).open_world_hint(false))
}

impl Statistics {
    fn of(text: &str) -> Self {
        let words = || text.split_whitespace().map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()));
        let count = words().filter(|word| !word.is_empty()).count();
        // `max_by_key` returns the last of several maxima, hence the reversal.
        let longest = words().rev().max_by_key(|word| word.chars().count()).filter(|word| !word.is_empty());
        Self {
            characters: text.chars().count(),
            words: count,
            lines: text.lines().count(),
            longest_word: longest.map(str::to_owned),
            reading_seconds: (count * 60).div_ceil(240),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_without_punctuation() {
        let found = Statistics::of("To be, or not\nto be - that is");
        assert_eq!((found.characters, found.words, found.lines), (29, 8, 2));
        assert_eq!(found.longest_word.as_deref(), Some("that"));
        let empty = Statistics::of(" ");
        assert_eq!((empty.words, empty.longest_word, empty.reading_seconds), (0, None, 0));
    }
}
