//! The index of the members of an object.

use crate::json::scan::{Name, ScanError, Scanner, Span};

/// The members of an object and of its `_meta`, in order.
///
/// The index has offsets, not slices, so it stays valid if the text is moved.
#[derive(Debug, Clone, Default)]
pub(super) struct Members {
    /// The members of the object, then those of its `_meta`, so that there is one allocation.
    list: Vec<Member>,
    /// The number of members of the object itself.
    own: usize,
    /// Few objects need it.
    rare: Option<Box<Rare>>,
}

/// The position of a member in the text of the object; the value has no surrounding whitespace.
#[derive(Debug, Clone, Copy)]
struct Member {
    /// The name without its quotation marks; if it has escapes, its position in [`Rare::unescaped`].
    name: Span,
    is_escaped: bool,
    value: Span,
}

#[derive(Debug, Clone, Default)]
struct Rare {
    /// The names with escapes, unescaped, one after the other.
    unescaped: String,
    /// The reason why `_meta` has no index although it is an object.
    unindexed_meta: Option<Unindexed>,
}

/// The reason why an object has no index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unindexed {
    TooMany { limit: usize },
    Twice { name: String },
}

/// A scanned object, with its index if it has one.
pub(super) type Indexed<'a> = (&'a str, Result<Members, Unindexed>);

/// The number of members for which memory is reserved at once: sufficient for most requests.
const USUAL: usize = 8;

impl Members {
    /// Scans an object and indexes its members and those of its `_meta`, if there are at most `limit` of each.
    ///
    /// The whole object is scanned in any case, so that the scan can continue after it.
    pub(super) fn scan<'a>(scanner: &mut Scanner<'a>, limit: usize) -> Result<Indexed<'a>, ScanError> {
        let (base, _) = scanner.peek();
        let mut members = Self::default();
        let mut meta: Option<MetaPlace> = None;
        let text = scanner.object(|scanner, name| {
            members.own += 1;
            if members.own > limit {
                return scanner.skip_value();
            }
            if members.list.is_empty() {
                members.list.reserve_exact(USUAL);
            }
            let start = scanner.position();
            if meta.is_none() && scanner.peek().1 == Some(b'{') && name.read(|name| name == b"_meta") {
                members.push(base, name, Span { start, end: start });
                meta = Some(members.scan_meta(base, scanner, limit)?);
            } else {
                scanner.skip_value()?;
                members.push(base, name, Span { start, end: scanner.position() });
            }
            Ok(())
        })?;
        if members.own > limit {
            return Ok((text, Err(Unindexed::TooMany { limit })));
        }
        if let Some(meta) = meta {
            members.finish_meta(text, &meta, limit);
        }
        let members = match members.own().twice(text) {
            Some(name) => Err(Unindexed::Twice { name: name.to_owned() }),
            None => Ok(members),
        };
        Ok((text, members))
    }

    /// Scans `_meta`, whose name was pushed, and pushes its members behind it.
    fn scan_meta(&mut self, base: usize, scanner: &mut Scanner<'_>, limit: usize) -> Result<MetaPlace, ScanError> {
        let first = self.list.len();
        let mut count = 0;
        scanner.object(|scanner, name| {
            count += 1;
            let start = scanner.position();
            scanner.skip_value()?;
            if count <= limit {
                self.push(base, name, Span { start, end: scanner.position() });
            }
            Ok::<_, ScanError>(())
        })?;
        let end = self.list.len();
        if let Some(meta) = self.list.get_mut(first - 1) {
            meta.value.end = scanner.position() - base;
        }
        Ok(MetaPlace { first, end, count })
    }

    /// Moves the members of `_meta` behind those of the object, or drops them if they have no index.
    fn finish_meta(&mut self, text: &str, meta: &MetaPlace, limit: usize) {
        if let Some(rest) = self.list.get_mut(meta.first..).filter(|rest| rest.len() > meta.end - meta.first) {
            rest.rotate_left(meta.end - meta.first);
        }
        let unindexed = if meta.count > limit {
            Unindexed::TooMany { limit }
        } else if let Some(name) = self.meta_list().twice(text) {
            Unindexed::Twice { name: name.to_owned() }
        } else {
            return;
        };
        self.list.truncate(self.own);
        self.rare.get_or_insert_default().unindexed_meta = Some(unindexed);
    }

    #[inline]
    fn push(&mut self, base: usize, name: Name<'_>, value: Span) {
        let (name, is_escaped) = match name.plain() {
            Some(name) => (name.relative_to(base), false),
            None => (self.push_unescaped(&name.unescape()), true),
        };
        self.list.push(Member { name, is_escaped, value: value.relative_to(base) });
    }

    #[cold]
    fn push_unescaped(&mut self, name: &str) -> Span {
        let unescaped = &mut self.rare.get_or_insert_default().unescaped;
        let start = unescaped.len();
        unescaped.push_str(name);
        Span { start, end: unescaped.len() }
    }

    /// Creates an index without a scan, for tests.
    #[cfg(test)]
    pub(super) fn unchecked(places: &[(std::ops::Range<usize>, std::ops::Range<usize>)]) -> Self {
        let span = |range: &std::ops::Range<usize>| Span { start: range.start, end: range.end };
        let member = |(name, value): &(_, _)| Member { name: span(name), is_escaped: false, value: span(value) };
        Self { list: places.iter().map(member).collect(), own: places.len(), rare: None }
    }

    /// Returns the members of the object.
    #[inline]
    pub(super) fn own(&self) -> MemberList<'_> {
        self.part(self.list.get(..self.own))
    }

    /// Returns the members of `_meta`, or the reason why there is no index. There are none if it is not an object.
    #[inline]
    pub(super) fn meta(&self) -> Result<MemberList<'_>, &Unindexed> {
        match self.rare.as_ref().and_then(|rare| rare.unindexed_meta.as_ref()) {
            Some(unindexed) => Err(unindexed),
            None => Ok(self.meta_list()),
        }
    }

    #[inline]
    fn meta_list(&self) -> MemberList<'_> {
        self.part(self.list.get(self.own..))
    }

    #[inline]
    fn part<'m>(&'m self, list: Option<&'m [Member]>) -> MemberList<'m> {
        MemberList { list: list.unwrap_or_default(), rare: self.rare.as_deref() }
    }
}

/// The place of the members of `_meta` in the list, and their number, which may be larger.
struct MetaPlace {
    first: usize,
    end: usize,
    count: usize,
}

/// The members of one object.
#[derive(Clone, Copy)]
pub(super) struct MemberList<'m> {
    list: &'m [Member],
    rare: Option<&'m Rare>,
}

impl<'m> MemberList<'m> {
    /// Returns the value of a member, given the text of the object.
    #[inline(always)]
    pub(super) fn get<'t>(self, text: &'t str, name: &str) -> Option<&'t str> {
        self.list.iter().find(|member| self.is_named(text, member, name)).map(|member| member.value.of(text))
    }

    /// Returns the values of several members in one pass, given the text of the object.
    #[inline]
    pub(super) fn find<'t, const N: usize>(self, text: &'t str, names: [&str; N]) -> [Option<&'t str>; N] {
        let mut values = [None; N];
        for member in self.list {
            for (value, name) in values.iter_mut().zip(names) {
                if self.is_named(text, member, name) {
                    *value = Some(member.value.of(text));
                }
            }
        }
        values
    }

    /// Returns whether there is a member, given the text of the object.
    #[inline]
    pub(super) fn contains(self, text: &str, name: &str) -> bool {
        self.list.iter().any(|member| self.is_named(text, member, name))
    }

    #[inline(always)]
    fn is_named(self, text: &str, member: &Member, name: &str) -> bool {
        // The length is compared first, which needs no access to the text.
        member.name.len() == name.len() && self.name(text, member) == name.as_bytes()
    }

    /// Returns the members in order, given the text of the object.
    pub(super) fn iter<'t>(self, text: &'t str) -> impl ExactSizeIterator<Item = Entry<'m, 't>> {
        self.list.iter().map(move |member| {
            let name = if member.is_escaped {
                EntryName::Unescaped(member.name.of(self.unescaped()))
            } else {
                EntryName::Plain(member.name.of(text))
            };
            Entry { name, value: member.value.of(text) }
        })
    }

    fn unescaped(self) -> &'m str {
        self.rare.map_or("", |rare| &rare.unescaped)
    }

    /// Bytes, because slices of text have to be checked for character boundaries.
    #[inline]
    fn name<'t>(self, text: &'t str, member: &Member) -> &'t [u8]
    where
        'm: 't,
    {
        let text = if member.is_escaped { self.unescaped() } else { text };
        text.as_bytes().get(member.name.start..member.name.end).unwrap_or_default()
    }

    /// Returns a duplicate name.
    fn twice<'t>(self, text: &'t str) -> Option<&'t str>
    where
        'm: 't,
    {
        // Names of different lengths differ, and most objects have no two of the same.
        let mut lengths = 0_u64;
        let is_distinct = self.list.iter().all(|member| {
            let known = lengths;
            lengths |= 1 << (member.name.len() % 64);
            lengths != known
        });
        if is_distinct {
            return None;
        }
        if self.list.len() <= FEW {
            let is_known = |(index, member): (usize, &Member)| {
                let mut earlier = self.list.iter().take(index).filter(|other| other.name.len() == member.name.len());
                earlier.any(|other| self.name(text, other) == self.name(text, member))
            };
            let index = self.list.iter().enumerate().position(is_known)?;
            return self.iter(text).nth(index).map(|member| member.name.as_str());
        }
        // Users can raise the limit on members, so the cost must not be quadratic.
        let mut names: Vec<&str> = self.iter(text).map(|member| member.name.as_str()).collect();
        names.sort_unstable();
        names.windows(2).find_map(|pair| match pair {
            [a, b] if a == b => Some(*a),
            _ => None,
        })
    }
}

/// The number of members up to which pairwise comparisons are cheaper than sorting.
const FEW: usize = 16;

/// A member.
#[derive(Clone, Copy)]
pub(super) struct Entry<'m, 't> {
    pub(super) name: EntryName<'m, 't>,
    pub(super) value: &'t str,
}

#[derive(Clone, Copy)]
pub(super) enum EntryName<'m, 't> {
    /// A name without escapes, as a slice of the text.
    Plain(&'t str),
    /// A name with escapes.
    Unescaped(&'m str),
}

impl<'n> EntryName<'n, 'n> {
    pub(super) fn as_str(self) -> &'n str {
        match self {
            Self::Plain(name) | Self::Unescaped(name) => name,
        }
    }
}

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
        let found = ["a", "b", "c", "\\u0061"].map(|name| members.own().get(text, name));
        assert_eq!(found, [Some("[1, 2]"), Some("{}"), None, None]);
        let names: Vec<_> = members.own().iter(text).map(|member| member.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
    }

    /// Wherever `_meta` is, its members and those of the object are kept apart, and in order.
    #[test]
    fn metadata_is_indexed_in_any_place() {
        let list = |members: MemberList<'_>, text: &str| {
            let pairs = members.iter(text).map(|member| format!("{}={}", member.name.as_str(), member.value));
            pairs.collect::<Vec<_>>().join(" ")
        };
        let meta = r#""_meta":{"m":1,"\u006e":[2],"a":{}}"#;
        for text in [
            format!(r#"{{{meta},"a":3,"\u0062":4}}"#),
            format!(r#"{{"a":3,{meta},"\u0062":4}}"#),
            format!(r#"{{"a":3,"\u0062":4 , {meta} }}"#),
            format!(r#" {{"a":3,"\u0062":4,{}}}"#, meta.replace("_meta", "\\u005fmeta")),
        ] {
            let (object, members) = Members::scan(&mut Scanner::new(&text, 8), 3).unwrap();
            let members = members.unwrap();
            let own = list(members.own(), object);
            assert_eq!(
                own.replace("_meta={\"m\":1,\"\\u006e\":[2],\"a\":{}}", "").replace("  ", " ").trim(),
                "a=3 b=4"
            );
            assert_eq!(members.own().list.len(), 3);
            assert_eq!(list(members.meta().unwrap(), object), "m=1 n=[2] a={}");
        }
    }

    #[test]
    fn metadata_without_an_index_does_not_affect_the_object() {
        let many = Unindexed::TooMany { limit: 3 };
        let twice = Unindexed::Twice { name: "m".to_owned() };
        for (meta, unindexed) in [(r#"{"m":1,"\u006d":2}"#, twice), (r#"{"a":1,"b":2,"c":3,"d":4}"#, many)] {
            for text in [format!(r#"{{"_meta":{meta},"x":1}}"#), format!(r#"{{"x":1,"_meta":{meta}}}"#)] {
                let members = index(&text, 3).unwrap();
                assert_eq!(members.meta().err(), Some(&unindexed));
                assert_eq!(members.own().get(&text, "x"), Some("1"));
                assert_eq!(members.own().get(&text, "_meta"), Some(meta));
            }
        }
        for text in [r#"{"_meta":[]}"#, r#"{"_meta":null}"#, r#"{"_meta":{}}"#, "{}"] {
            assert_eq!(index(text, 3).unwrap().meta().unwrap().list.len(), 0);
        }
        let both = r#"{"_meta":{"a":1},"_meta":{"b":1,"b":2}}"#;
        assert_eq!(index(both, 3).err(), Some(Unindexed::Twice { name: "_meta".to_owned() }));
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
