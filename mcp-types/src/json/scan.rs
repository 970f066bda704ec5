//! Validates JSON text in one pass.
//!
//! The scanner accepts the grammar of RFC 8259, with two restrictions: escaped surrogates must be pairs, so that strings
//! fit into Rust strings, and members must not have names that `serde_json` uses internally. It does not recurse or
//! allocate, so neither memory nor stack usage depend on the input.

#[cfg(test)]
pub(crate) mod altered;
mod number;
mod string;

use std::borrow::Cow;
use std::fmt;

pub(crate) use self::string::{is_plain, plain_len};

/// The largest supported limit of the depth: the number of bits of [`Nesting`].
pub(crate) const MAX_DEPTH: usize = WORDS * 64;

const WORDS: usize = 16;

/// Scans text value by value.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    nesting: Nesting,
}

/// The position and the cause of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScanError {
    pub(crate) at: usize,
    pub(crate) problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    Expected(&'static str),
    TooDeep { limit: usize },
    ReservedName,
}

impl fmt::Display for ScanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problem {
            Problem::Expected(what) => write!(f, "expected {what} (byte {})", self.at),
            Problem::TooDeep { limit } => write!(f, "deeper than {limit} levels"),
            Problem::ReservedName => write!(f, "the name of a member is reserved (byte {})", self.at),
        }
    }
}

impl<'a> Scanner<'a> {
    /// Creates a scanner; `limit` is the maximum nesting depth of arrays and objects.
    pub(crate) fn new(text: &'a str, limit: usize) -> Self {
        Self { text, at: 0, nesting: Nesting::new(limit.min(MAX_DEPTH)) }
    }

    /// Returns the position and the first byte of the next token.
    #[inline]
    pub(crate) fn peek(&mut self) -> (usize, Option<u8>) {
        let byte = self.token();
        (self.at, byte)
    }

    /// Returns the position behind what was scanned.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Scans a value of any type and returns its text.
    pub(crate) fn value(&mut self) -> Result<&'a str, ScanError> {
        let (start, _) = self.peek();
        self.skip_value()?;
        Ok(self.since(start))
    }

    /// Scans a value of any type; the scanner is at its first byte.
    // Inlined, because most values are plain strings, which need nothing else.
    #[inline(always)]
    pub(crate) fn skip_value(&mut self) -> Result<(), ScanError> {
        if self.byte() == Some(b'"') && self.plain_string() { Ok(()) } else { self.skip_any_value() }
    }

    #[inline(never)]
    fn skip_any_value(&mut self) -> Result<(), ScanError> {
        let floor = self.nesting.depth;
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'{') => {
                    if !self.open(Container::Object)? {
                        self.skip_member_name()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    if !self.open(Container::Array)? {
                        continue;
                    }
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.literal("true")?,
                Some(b'f') => self.literal("false")?,
                Some(b'n') => self.literal("null")?,
                _ => return Err(self.expected("a value")),
            }
            // The value is complete, and containers around it may be complete, too.
            loop {
                if self.nesting.depth == floor {
                    return Ok(());
                }
                if self.next()? {
                    break;
                }
            }
        }
    }

    /// Scans an object; `member` is called after each name and has to scan the value.
    ///
    /// Callers that recurse must bound their recursion.
    pub(crate) fn object<E: From<ScanError>>(
        &mut self,
        mut member: impl FnMut(&mut Self, Name<'a>) -> Result<(), E>,
    ) -> Result<&'a str, E> {
        let (start, first) = self.peek();
        if first != Some(b'{') {
            return Err(self.expected("an object").into());
        }
        if !self.open(Container::Object)? {
            loop {
                let name = self.member_name()?;
                member(self, name)?;
                match self.token() {
                    Some(b',') => self.advance(),
                    Some(b'}') => break self.close(),
                    _ => return Err(self.expected(Container::Object.next()).into()),
                }
            }
        }
        Ok(self.since(start))
    }

    /// Scans an array; `element` is called before each element and has to scan it.
    pub(crate) fn array<E: From<ScanError>>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<&'a str, E> {
        let (start, first) = self.peek();
        if first != Some(b'[') {
            return Err(self.expected("an array").into());
        }
        if !self.open(Container::Array)? {
            loop {
                element(self)?;
                if !self.next()? {
                    break;
                }
            }
        }
        Ok(self.since(start))
    }

    /// Checks that only whitespace remains.
    pub(crate) fn finish(&mut self) -> Result<(), ScanError> {
        if self.token().is_none() { Ok(()) } else { Err(self.expected("the end of the text")) }
    }

    /// Enters a container. If it is empty, leaves it again and returns `true`.
    fn open(&mut self, container: Container) -> Result<bool, ScanError> {
        if !self.nesting.push(container) {
            let limit = self.nesting.limit;
            return Err(self.error(Problem::TooDeep { limit }));
        }
        self.advance();
        let empty = self.token() == Some(container.end());
        if empty {
            self.close();
        }
        Ok(empty)
    }

    fn close(&mut self) {
        self.nesting.pop();
        self.advance();
    }

    /// Scans up to the next value of a container.
    ///
    /// Leaves the container and returns `false` if there is none.
    fn next(&mut self) -> Result<bool, ScanError> {
        let next = self.token();
        let container = self.nesting.top();
        match next {
            Some(b',') => {
                self.advance();
                match container {
                    Container::Object => self.skip_member_name()?,
                    Container::Array => {
                        self.token();
                    }
                }
                Ok(true)
            }
            Some(byte) if byte == container.end() => {
                self.close();
                Ok(false)
            }
            _ => Err(self.expected(container.next())),
        }
    }

    /// Scans the name of a member as `member_name` does, where it does not matter.
    fn skip_member_name(&mut self) -> Result<(), ScanError> {
        self.member_name().map(drop)
    }

    /// Scans the name of a member, the colon, and the whitespace around both.
    // Inlined, because the result would be passed in memory.
    #[inline(always)]
    fn member_name(&mut self) -> Result<Name<'a>, ScanError> {
        let (start, first) = self.peek();
        if first != Some(b'"') {
            return Err(self.expected("the name of a member"));
        }
        let escaped = self.string()?;
        let name = Name { text: self.text, span: Span { start: start + 1, end: self.at - 1 }, escaped };
        if name.is_reserved() {
            return Err(ScanError { at: start, problem: Problem::ReservedName });
        }
        if self.token() != Some(b':') {
            return Err(self.expected("`:`"));
        }
        self.advance();
        self.token();
        Ok(name)
    }

    fn literal(&mut self, literal: &'static str) -> Result<(), ScanError> {
        let found = self.text.as_bytes().get(self.at..self.at + literal.len());
        if found != Some(literal.as_bytes()) {
            return Err(self.expected(literal));
        }
        self.at += literal.len();
        Ok(())
    }

    /// Skips whitespace and returns the first byte of the next token.
    ///
    /// Most messages have no whitespace between tokens, so the loop is in another function.
    #[inline]
    fn token(&mut self) -> Option<u8> {
        match self.byte() {
            Some(..=b' ') => self.token_behind_whitespace(),
            byte => byte,
        }
    }

    #[inline(never)]
    fn token_behind_whitespace(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte() {
            self.advance();
        }
        self.byte()
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn advance(&mut self) {
        self.at += 1;
    }

    /// Tokens begin and end with ASCII, so both ends are character boundaries.
    fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    fn expected(&self, what: &'static str) -> ScanError {
        self.error(Problem::Expected(what))
    }

    fn error(&self, problem: Problem) -> ScanError {
        ScanError { at: self.at, problem }
    }
}

/// A part of the text, from `start` up to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    pub(crate) fn len(self) -> usize {
        self.end - self.start
    }

    /// Returns the same part of a text that begins at `base`.
    pub(crate) fn relative_to(self, base: usize) -> Self {
        Self { start: self.start - base, end: self.end - base }
    }

    /// Returns the part of a text.
    pub(crate) fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// The name of a member.
#[derive(Clone, Copy)]
pub(crate) struct Name<'a> {
    text: &'a str,
    /// The name without the quotation marks.
    span: Span,
    escaped: bool,
}

/// The prefix of the member names that `serde_json` uses internally for raw values and long numbers.
///
/// `serde_json::Value` parses the text in such an object as JSON, with a recursion limit of its own: past the scanner,
/// deeper than any limit, and differently from other parsers.
pub(crate) const RESERVED: &str = "$serde_json::private::";

impl<'a> Name<'a> {
    #[inline]
    fn is_reserved(self) -> bool {
        // Most names begin with a letter and have no escapes.
        (self.escaped || self.text.as_bytes().get(self.span.start) == Some(&b'$')) && self.has_reserved_prefix()
    }

    #[cold]
    fn has_reserved_prefix(self) -> bool {
        self.unescape().starts_with(RESERVED)
    }

    /// Returns the name without escapes.
    #[inline]
    pub(crate) fn unescape(self) -> Cow<'a, str> {
        let Span { start, end } = self.span;
        if self.escaped { unescape(&self.text[start - 1..=end]) } else { Cow::Borrowed(&self.text[start..end]) }
    }

    #[cold]
    fn unescape_bytes(self) -> Box<[u8]> {
        self.unescape().as_bytes().into()
    }

    /// Calls a function with the bytes of the name, without escapes.
    ///
    /// Unlike a slice of the text, they need no check for character boundaries.
    #[inline]
    pub(crate) fn read<T>(self, read: impl Fn(&[u8]) -> T) -> T {
        let unescaped;
        let name = if self.escaped {
            unescaped = self.unescape_bytes();
            &*unescaped
        } else {
            self.text.as_bytes().get(self.span.start..self.span.end).unwrap_or_default()
        };
        read(name)
    }

    /// Returns the position of the name in the text, without the quotation marks, unless it has escapes.
    pub(crate) fn plain(self) -> Option<Span> {
        (!self.escaped).then_some(self.span)
    }
}

/// Returns the value of a scanned string; `quoted` includes the quotation marks.
pub(crate) fn unquote(quoted: &str) -> Cow<'_, str> {
    plain_string(quoted).map_or_else(|| unescape(quoted), Cow::Borrowed)
}

/// Returns the value of a scanned value that is a string without escapes.
pub(crate) fn plain_string(value: &str) -> Option<&str> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    is_plain(inner.as_bytes()).then_some(inner)
}

#[cold]
fn unescape(quoted: &str) -> Cow<'_, str> {
    serde_json::from_str(quoted).map_or(Cow::Borrowed(quoted), Cow::Owned)
}

/// Counts the members of an object that was scanned before; `None` if it is not an object.
pub(crate) fn count_members(text: &str) -> Option<usize> {
    let mut count = 0;
    let passed = Scanner::new(text, MAX_DEPTH).object(|scanner, _| {
        count += 1;
        scanner.value().map(drop)
    });
    passed.is_ok().then_some(count)
}

/// Returns the type of a scanned value, with an article.
pub(crate) fn kind(value: &str) -> &'static str {
    match value.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Object,
    Array,
}

impl Container {
    fn end(self) -> u8 {
        match self {
            Self::Object => b'}',
            Self::Array => b']',
        }
    }

    fn next(self) -> &'static str {
        match self {
            Self::Object => "`,` or `}`",
            Self::Array => "`,` or `]`",
        }
    }
}

/// The open containers, one bit each: set for an object, clear for an array.
struct Nesting {
    objects: [u64; WORDS],
    depth: usize,
    limit: usize,
}

impl Nesting {
    fn new(limit: usize) -> Self {
        Self { objects: [0; WORDS], depth: 0, limit }
    }

    /// Returns `false` at the limit.
    fn push(&mut self, container: Container) -> bool {
        if self.depth >= self.limit {
            return false;
        }
        // The limit is at most `MAX_DEPTH`, so there is a word for every depth below it.
        let word = &mut self.objects[self.depth / 64];
        let bit = 1 << (self.depth % 64);
        match container {
            Container::Object => *word |= bit,
            Container::Array => *word &= !bit,
        }
        self.depth += 1;
        true
    }

    fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn top(&self) -> Container {
        let index = self.depth.saturating_sub(1);
        if self.objects[index / 64] >> (index % 64) & 1 == 1 { Container::Object } else { Container::Array }
    }
}

#[cfg(test)]
pub(crate) fn check(text: &str, limit: usize) -> Result<&str, ScanError> {
    let mut scanner = Scanner::new(text, limit);
    let value = scanner.value()?;
    scanner.finish()?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::value::RawValue;

    use super::altered::altered;
    use super::*;

    fn expected(text: &str) -> (usize, &'static str) {
        let error = check(text, 8).unwrap_err();
        match error.problem {
            Problem::Expected(what) => (error.at, what),
            Problem::TooDeep { .. } | Problem::ReservedName => panic!("{text}: {error}"),
        }
    }

    #[test]
    fn values_of_all_kinds_pass() {
        for text in [
            "null",
            "true",
            "false",
            "0",
            "-1.5e+3",
            r#""a\"b""#,
            "[]",
            "{}",
            "[1, [2], {}]",
            r#"{"a": {"b": [null]}, "c": ""}"#,
        ] {
            assert_eq!(check(text, 8), Ok(text));
            assert_eq!(check(&format!(" \t\r\n{text}\n"), 8), Ok(text));
        }
    }

    #[test]
    fn errors_say_where_and_what() {
        assert_eq!(expected(""), (0, "a value"));
        assert_eq!(expected("{\"a\" 1}"), (5, "`:`"));
        assert_eq!(expected("{\"a\":1 \"b\"}"), (7, "`,` or `}`"));
        assert_eq!(expected("{\"a\":1]"), (6, "`,` or `}`"));
        assert_eq!(expected("[1}"), (2, "`,` or `]`"));
        assert_eq!(expected("[1,]"), (3, "a value"));
        assert_eq!(expected("{\"a\":1,}"), (7, "the name of a member"));
        assert_eq!(expected("{a:1}"), (1, "the name of a member"));
        assert_eq!(expected("nul"), (0, "null"));
        assert_eq!(expected("1 2"), (2, "the end of the text"));
        assert_eq!(expected("\u{a0}1"), (0, "a value"));
    }

    #[test]
    fn depth_is_counted_not_felt() {
        let deep = |open: &str, close: &str, depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            assert!(check(&deep(open, close, 8), 8).is_ok());
            let error = check(&deep(open, close, 9), 8).unwrap_err();
            assert_eq!(error.problem, Problem::TooDeep { limit: 8 });
            assert!(check(&deep(open, close, MAX_DEPTH), usize::MAX).is_ok());
            let error = check(&deep(open, close, 1_000_000), usize::MAX).unwrap_err();
            assert_eq!(error.problem, Problem::TooDeep { limit: MAX_DEPTH });
        }
        // A bit of a container that was left must not leak into its successor.
        assert!(check(r#"[{"a":[1]},[{"b":2},3]]"#, 8).is_ok());
    }

    #[test]
    fn names_match_after_unescaping() {
        let mut names = Vec::new();
        Scanner::new(r#"{"\u006eame" : 1, "x":{}}"#, 8)
            .object(|scanner, name| {
                names.push(name.unescape().into_owned());
                scanner.value().map(drop)
            })
            .unwrap();
        assert_eq!(names, ["name", "x"]);
    }

    /// The names by which `serde_json` reads text inside of strings as JSON: at every depth, and however they are spelled.
    // covers: SEC-2
    #[test]
    fn sec_2_reserved_names_are_refused() {
        let raw = crate::json::validated::raw_value_name().unwrap();
        assert!(raw.starts_with(RESERVED), "`serde_json` reserves another name now: {raw}");
        let number = "$serde_json::private::Number";
        let spelled = [raw, number].into_iter().flat_map(|name| {
            let all: String = name.chars().map(|letter| format!("\\u{:04x}", u32::from(letter))).collect();
            let last = format!("{}\\u{:04X}", &name[..name.len() - 1], name.as_bytes()[name.len() - 1]);
            [name.to_owned(), name.replace('$', "\\u0024"), name.replace(':', "\\u003A"), all, last]
        });
        for name in spelled {
            for text in [format!(r#"{{"{name}":"[]"}}"#), format!(r#"[{{"a":{{"b":1,"{name}":"[]"}}}}]"#)] {
                assert_eq!(check(&text, 8).unwrap_err().problem, Problem::ReservedName, "{text}");
            }
            assert!(check(&format!(r#"["{name}"]"#), 8).is_ok(), "it is only a text where it is no name");
        }
        for name in ["$schema", "$ref", "\\u0024id", "serde_json::private::Number", "$serde_json"] {
            assert!(check(&format!(r#"{{"{name}":1}}"#), 8).is_ok(), "{name}");
        }
    }

    /// Alters texts at random and compares the verdict with that of `serde_json`.
    #[test]
    fn the_verdict_agrees_with_serde_json() {
        let seeds = [
            r#"{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"a":[1,-2.5e3,true]}}"#,
            r#"[{"a":"\ud83d\ude00 \n\\"},null,0,[],{"b":{}} , "ä€"]"#,
            "[-0.0,1E5,10,\"long enough to reach the wide loop of the string scanner\"]",
        ];
        for text in altered(&seeds, 30_000) {
            let ours = check(&text, 100).is_ok();
            if ours {
                assert!(serde_json::from_str::<&RawValue>(&text).is_ok(), "{text}");
            } else {
                assert!(serde_json::from_str::<Value>(&text).is_err(), "{text}");
            }
        }
    }
}
