//! URI templates (RFC 6570): parsed once, then matched against URIs or expanded to them.

mod expand;
mod matching;
mod named_parameters;
mod operator;
mod parse;
mod token;
mod variables;

use std::fmt;
use std::str::FromStr;

pub use expand::UriValue;
use matching::Pattern;
use operator::Operator;
pub use parse::InvalidTemplate;
pub use variables::UriVariables;

/// A URI template with all features of RFC 6570: all operators, prefixes (`{name:3}`) and lists (`{name*}`).
///
/// ```
/// use mcp_server::UriTemplate;
///
/// let template: UriTemplate = "notes://{owner}{/path*}{?page,size}".parse()?;
/// let found = template.matches("notes://ann/2025/may%20day?size=10").expect("a match");
/// assert_eq!(found.get("owner"), Some("ann"));
/// assert_eq!(found.get("path"), Some("2025/may day"));
/// assert_eq!(found.get("size"), Some("10"));
/// assert_eq!(found.get("page"), None);
///
/// let uri = template.expand(|name| (name == "owner").then(|| "ann@work".into()));
/// assert_eq!(uri, "notes://ann%40work");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What matches
///
/// Matching is the inverse of expansion:
///
/// | expression | matches |
/// |---|---|
/// | `{a}` `{.a}` `{/a}` | one or more letters, digits, `-._~` and percent-encoded characters |
/// | `{+a}` `{#a}` | the same and reserved characters: ``:/?#[]@!$&'()*+,;=`` |
/// | `{a,b}` and so on | each of them, with the separator of the operator between |
/// | `{;a,b}` | parameters by name, in any order; each may be absent or empty |
/// | `{?a,b}` `{&a,b}` | the same; values may have reserved characters other than `&` and `#` |
/// | `{a:3}` | no more than 3 characters |
/// | `{a*}` `{/a*}` | a list: separators as well, and they are part of the value |
/// | `{;a*}` `{?a*}` `{&a*}` | a list: the name may be repeated; the values are joined by commas |
///
/// Only the parameters of `;`, `?` and `&` may be absent. Parameters that the template does not name do not match. Where
/// several splits are possible, the first variable gets the longest value, and a parameter gets its whole value.
/// A variable that occurs twice must have the same value in both places.
///
/// Values are percent-decoded once, and do not match if they are not UTF-8 then. They may therefore have any character,
/// `/` and `..` included: check them before they become a path.
///
/// Matching takes time proportional to the length of the URI times the length of the template.
#[derive(Clone)]
pub struct UriTemplate {
    text: String,
    parts: Vec<Part>,
    names: Vec<String>,
    pattern: Pattern,
}

impl UriTemplate {
    /// Parses a template.
    ///
    /// # Errors
    ///
    /// Returns an error with the position if the text does not follow the grammar of RFC 6570.
    pub fn parse(text: &str) -> Result<Self, InvalidTemplate> {
        let parts = parse::parts(text)?;
        let mut names: Vec<String> = Vec::new();
        for part in &parts {
            let Part::Expression(expression) = part else { continue };
            for variable in &expression.variables {
                if !names.contains(&variable.name) {
                    names.push(variable.name.clone());
                }
            }
        }
        let pattern = Pattern::new(&parts, &names);
        Ok(Self { text: text.to_owned(), parts, names, pattern })
    }

    /// Returns the text of the template.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the names of the variables in order, each once.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Returns the values with which the template expands to `uri`, if it matches.
    #[must_use]
    pub fn matches(&self, uri: &str) -> Option<UriVariables> {
        let values = self.pattern.matches(uri)?;
        let pairs = self.names.iter().zip(values).filter_map(|(name, value)| Some((name.clone(), value?)));
        Some(UriVariables::new(pairs.collect()))
    }

    /// Expands the template; variables without a value are omitted.
    #[must_use]
    pub fn expand(&self, mut lookup: impl FnMut(&str) -> Option<UriValue>) -> String {
        expand::expand(&self.parts, &mut lookup)
    }
}

impl FromStr for UriTemplate {
    type Err = InvalidTemplate;

    fn from_str(text: &str) -> Result<Self, InvalidTemplate> {
        Self::parse(text)
    }
}

impl PartialEq for UriTemplate {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for UriTemplate {}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UriTemplate").field(&self.text).finish()
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Literal(String),
    Expression(Expression),
}

/// An expression in braces.
#[derive(Clone, Debug, PartialEq)]
struct Expression {
    operator: Operator,
    variables: Vec<Variable>,
}

#[derive(Clone, Debug, PartialEq)]
struct Variable {
    name: String,
    modifier: Modifier,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Modifier {
    Whole,
    /// The first characters, up to this number.
    Prefix(usize),
    /// Each item of a list separately.
    Explode,
}

impl Modifier {
    fn max_chars(self) -> usize {
        match self {
            Self::Prefix(length) => length,
            Self::Whole | Self::Explode => usize::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_once_and_in_order() {
        let template = UriTemplate::parse("/{b}{/a:1,a}{?c*,b}").unwrap();
        assert_eq!(template.variables().collect::<Vec<_>>(), ["b", "a", "c"]);
        assert_eq!(template.as_str(), "/{b}{/a:1,a}{?c*,b}");
        assert_eq!(template.to_string(), template.as_str());
        assert_eq!(format!("{template:?}"), r#"UriTemplate("/{b}{/a:1,a}{?c*,b}")"#);
    }

    /// Matching the expanded URI returns the values, whatever characters they have.
    #[test]
    fn expansion_and_matching_are_inverse() {
        let values = ["a", "a b", "50%", "ä/ö?ü#", "..", "日本", "a,b", "%41", "🦀;x=1&y", "~", "\0"];
        let templates = [
            "x://{a}",
            "x://{a}/{b}",
            "x://{a,b}/end",
            "x:{/a,b}",
            "x:{;a,b}",
            "x:{?a,b}",
            "x:?fixed=1{&a,b}",
            "x:/{a}{?b}",
            "x:{/a}{#b}",
            "x:{/a*}",
        ];
        for text in templates {
            let template = UriTemplate::parse(text).unwrap();
            for first in values {
                for second in values {
                    // With reserved expansion, reserved and encoded characters stay as they are.
                    if text.contains('#') && second.contains('%') {
                        continue;
                    }
                    let uri = template.expand(|name| Some(if name == "a" { first } else { second }.into()));
                    let found = template.matches(&uri).unwrap_or_else(|| panic!("{text} does not match {uri}"));
                    assert_eq!(found.get("a"), Some(first), "{text}: {uri}");
                    if text.contains('b') {
                        assert_eq!(found.get("b"), Some(second), "{text}: {uri}");
                    }
                }
            }
        }
    }

    /// Were the whole address looked at for each template that it does not begin like, this would take hours.
    // covers: SEC-12
    #[test]
    fn sec_12_templates_are_ruled_out_by_how_they_begin() {
        let uri = format!("x://{}", "a".repeat(4 << 20));
        let template = UriTemplate::parse("y://{a}").unwrap();
        for _ in 0..100_000 {
            assert!(template.matches(&uri).is_none());
        }
        for (template, uri) in [("%41b{c}", "Ab1"), ("A%62{c}", "%41%62"), ("abc{d}", "ab"), ("é{a}", "%C3%A9x")] {
            let is_match = UriTemplate::parse(template).unwrap().matches(uri).is_some();
            assert_eq!(is_match, matches!(uri, "Ab1" | "%C3%A9x"), "{template} {uri}");
        }
    }

    #[test]
    fn what_is_absent_in_a_query_stays_absent() {
        let template = UriTemplate::parse("x:/y{;d}{?a,b}{&c}").unwrap();
        for present in [&[][..], &["a"], &["b"], &["c"], &["d"], &["a", "b"], &["d", "a", "c"], &["d", "b"]] {
            let uri = template.expand(|name| present.contains(&name).then(|| "1".into()));
            let found = template.matches(&uri).unwrap_or_else(|| panic!("{uri}"));
            assert_eq!(found.iter().map(|(name, _)| name).collect::<Vec<_>>(), present, "{uri}");
        }
    }
}
