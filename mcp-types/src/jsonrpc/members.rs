//! The index of the members of an object.

use std::borrow::Cow;
use std::ops::Range;

use crate::json::scan::{ScanError, Scanner};

/// The top-level members of an object, in order.
///
/// The index has offsets, not slices, so it stays valid if the text is moved.
#[derive(Debug, Clone, Default)]
pub(super) struct Members {
    list: Vec<Member>,
}

/// The position of a member; the value has no surrounding whitespace.
#[derive(Debug, Clone)]
pub(super) struct Member {
    name: Name,
    value: Range<usize>,
}

#[derive(Debug, Clone)]
enum Name {
    /// A name without escapes.
    Plain(Range<usize>),
    /// A name with escapes.
    Unescaped(Box<str>),
}

impl Member {
    /// Returns the name, given the text of the object.
    pub(super) fn name<'t>(&'t self, text: &'t str) -> &'t str {
        match &self.name {
            Name::Plain(span) => slice(text, span),
            Name::Unescaped(name) => name,
        }
    }

    /// Returns whether this is the name. The length is compared first, which needs no access to the text.
    fn is_named(&self, text: &str, name: &str) -> bool {
        self.name_len() == name.len() && self.name(text) == name
    }

    fn name_len(&self) -> usize {
        match &self.name {
            Name::Plain(span) => span.len(),
            Name::Unescaped(name) => name.len(),
        }
    }

    /// Returns the name as a slice of the text, unless it has escapes.
    pub(super) fn plain_name<'t>(&self, text: &'t str) -> Option<&'t str> {
        match &self.name {
            Name::Plain(span) => Some(slice(text, span)),
            Name::Unescaped(_) => None,
        }
    }

    /// Returns the value, given the text of the object.
    pub(super) fn value<'t>(&self, text: &'t str) -> &'t str {
        slice(text, &self.value)
    }
}

/// Returns a part of the text of the index.
fn slice<'t>(text: &'t str, span: &Range<usize>) -> &'t str {
    text.get(span.clone()).unwrap_or_default()
}

/// The reason why an object has no index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unindexed {
    TooMany { limit: usize },
    Twice { name: String },
}

/// A scanned object, with its index if it has one.
pub(super) type Indexed<'a> = (&'a str, Result<Members, Unindexed>);

/// The index of the `_meta` of a payload, if it is an object.
pub(super) type MetaIndex = Option<Result<Members, Unindexed>>;

impl Members {
    /// Scans an object and indexes its members, if there are at most `limit`.
    ///
    /// The whole object is scanned in any case, so that the scan can continue after it.
    pub(super) fn scan<'a>(scanner: &mut Scanner<'a>, limit: usize) -> Result<Indexed<'a>, ScanError> {
        Self::scan_with(scanner, limit, |scanner, _| scanner.value())
    }

    /// Like `scan`, but also indexes `_meta` in the same pass.
    pub(super) fn scan_with_meta<'a>(
        scanner: &mut Scanner<'a>,
        limit: usize,
    ) -> Result<(Indexed<'a>, MetaIndex), ScanError> {
        let mut meta = None;
        let indexed = Self::scan_with(scanner, limit, |scanner, name| {
            if name == "_meta"
                && let (_, Some(b'{')) = scanner.peek()
            {
                let (text, members) = Self::scan(scanner, limit)?;
                meta = Some(members);
                return Ok(text);
            }
            scanner.value()
        })?;
        Ok((indexed, meta))
    }

    /// Scans an object; `pass` scans the values.
    fn scan_with<'a>(
        scanner: &mut Scanner<'a>,
        limit: usize,
        mut pass: impl FnMut(&mut Scanner<'a>, &str) -> Result<&'a str, ScanError>,
    ) -> Result<Indexed<'a>, ScanError> {
        let (base, _) = scanner.peek();
        let mut list = Vec::new();
        let mut too_many = false;
        let text = scanner.object(|scanner, name| {
            let (start, _) = scanner.peek();
            let (place, name) = (name.span(), name.unescape());
            let value = pass(scanner, &name)?;
            if list.len() < limit {
                let name = match name {
                    Cow::Borrowed(_) => Name::Plain(place.start - base..place.end - base),
                    Cow::Owned(name) => Name::Unescaped(name.into()),
                };
                let start = start - base;
                list.push(Member { name, value: start..start + value.len() });
            } else {
                too_many = true;
            }
            Ok::<_, ScanError>(())
        })?;
        let members = if too_many {
            Err(Unindexed::TooMany { limit })
        } else if let Some(name) = twice(text, &list) {
            Err(Unindexed::Twice { name: name.to_owned() })
        } else {
            Ok(Self { list })
        };
        Ok((text, members))
    }

    /// Creates an index without a scan, for tests.
    #[cfg(test)]
    pub(super) fn unchecked(places: &[(Range<usize>, Range<usize>)]) -> Self {
        let member = |(name, value): &(Range<usize>, Range<usize>)| Member {
            name: Name::Plain(name.clone()),
            value: value.clone(),
        };
        Self { list: places.iter().map(member).collect() }
    }

    /// Returns the value of a member, given the text of the object.
    pub(super) fn get<'t>(&self, text: &'t str, name: &str) -> Option<&'t str> {
        self.list.iter().find(|member| member.is_named(text, name)).map(|member| member.value(text))
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Member> {
        self.list.iter()
    }
}

/// Returns a duplicate name.
fn twice<'m>(text: &'m str, list: &'m [Member]) -> Option<&'m str> {
    if list.len() <= FEW {
        let is_known = |(index, member): (usize, &Member)| {
            let mut earlier = list.iter().take(index).filter(|other| other.name_len() == member.name_len());
            earlier.any(|other| other.name(text) == member.name(text))
        };
        let index = list.iter().enumerate().position(is_known)?;
        return list.get(index).map(|member| member.name(text));
    }
    // Users can raise the limit on members, so the cost must not be quadratic.
    let mut names: Vec<&str> = list.iter().map(|member| member.name(text)).collect();
    names.sort_unstable();
    names.windows(2).find_map(|pair| match pair {
        [a, b] if a == b => Some(*a),
        _ => None,
    })
}

/// The number of members up to which pairwise comparisons are cheaper than sorting.
const FEW: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn index(text: &str, limit: usize) -> Result<Members, Unindexed> {
        Members::scan(&mut Scanner::new(text, 8), limit).unwrap().1
    }

    #[test]
    fn members_are_found_by_what_their_names_mean() {
        let text = r#"{ "\u0061" : [1, 2] , "b":{}}"#;
        let members = index(text, 8).unwrap();
        assert_eq!(members.get(text, "a"), Some("[1, 2]"));
        assert_eq!(members.get(text, "b"), Some("{}"));
        assert_eq!(members.get(text, "c"), None);
    }

    #[test]
    fn names_occur_once() {
        let twice = |name: &str| Some(Unindexed::Twice { name: name.to_owned() });
        assert_eq!(index(r#"{"a":1,"b":2,"\u0061":3}"#, 8).err(), twice("a"));
        let many = |last: usize| {
            let names = (0..40).chain([last]).map(|name| format!("\"{name}\":0"));
            format!("{{{}}}", names.collect::<Vec<_>>().join(","))
        };
        assert_eq!(index(&many(17), 100).err(), twice("17"));
        assert!(index(&many(40), 100).is_ok());
    }

    #[test]
    fn the_text_behind_too_many_members_is_reached() {
        let mut scanner = Scanner::new(r#"{"a":1,"b":2}"#, 8);
        let (text, members) = Members::scan(&mut scanner, 1).unwrap();
        assert_eq!(text, r#"{"a":1,"b":2}"#);
        assert_eq!(members.err(), Some(Unindexed::TooMany { limit: 1 }));
        assert!(scanner.finish().is_ok());
    }
}
