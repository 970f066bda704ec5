//! A map that preserves the order of its entries.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;

use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::json::excerpt::{MAX_NAME_CHARS, excerpt};

/// A map with string keys that preserves insertion order.
///
/// The order of form fields is the order in which they are displayed. Equality does not depend on the order.
///
/// Small maps are searched linearly. Larger ones, which a peer may have sent, build an index on their first look-up.
#[cfg_attr(
    feature = "schemars",
    derive(schemars::JsonSchema),
    schemars(with = "std::collections::BTreeMap<String, T>", rename = "OrderedMap_{T}", inline, description = "")
)]
pub struct OrderedMap<T> {
    entries: Vec<(String, T)>,
    index: OnceLock<Index>,
}

/// The position of each name.
type Index = Box<HashMap<Box<str>, usize>>;

/// The size up to which a linear search is cheaper than an index.
const SMALL: usize = 16;

impl<T> OrderedMap<T> {
    /// Creates an empty map.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new(), index: OnceLock::new() }
    }

    /// Creates a map from entries, or returns an error that names a duplicate.
    pub(crate) fn unique(entries: Vec<(String, T)>) -> Result<Self, String> {
        match repeated(&entries) {
            Some(name) => Err(format!("duplicate member `{}`", excerpt(name, MAX_NAME_CHARS))),
            None => Ok(Self { entries, index: OnceLock::new() }),
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        if self.entries.len() <= SMALL {
            return self.entries.iter().position(|(known, _)| known == name);
        }
        let index = self.index.get_or_init(|| {
            let places = self.entries.iter().enumerate();
            Box::new(places.map(|(place, (name, _))| (name.as_str().into(), place)).collect())
        });
        index.get(name).copied()
    }

    /// Returns whether there is an index of all entries.
    #[cfg(test)]
    pub(crate) fn is_indexed(&self) -> bool {
        self.index.get().is_some_and(|index| index.len() == self.entries.len())
    }

    /// Returns the value of `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        self.entries.get(self.position(name)?).map(|(_, value)| value)
    }

    /// Returns a mutable reference to the value of `name`.
    #[must_use]
    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        let place = self.position(name)?;
        self.entries.get_mut(place).map(|(_, value)| value)
    }

    /// Inserts a value and returns the one that it replaces. A new name is appended.
    pub fn insert(&mut self, name: impl Into<String>, value: T) -> Option<T> {
        let name = name.into();
        if let Some(known) = self.get_mut(&name) {
            return Some(std::mem::replace(known, value));
        }
        if let Some(index) = self.index.get_mut() {
            index.insert(name.as_str().into(), self.entries.len());
        }
        self.entries.push((name, value));
        None
    }

    /// Removes and returns the value of `name`, in linear time.
    pub fn remove(&mut self, name: &str) -> Option<T> {
        let place = self.position(name)?;
        self.index = OnceLock::new();
        Some(self.entries.remove(place).1)
    }

    /// Returns whether the map has an entry for `name`.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the map has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the entries in order, with mutable values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut T)> {
        self.entries.iter_mut().map(|(name, value)| (name.as_str(), value))
    }

    /// Retains only the entries for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut T) -> bool) {
        self.index = OnceLock::new();
        self.entries.retain_mut(|(name, value)| keep(name, value));
    }
}

/// The clone builds its own index when needed.
impl<T: Clone> Clone for OrderedMap<T> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), index: OnceLock::new() }
    }
}

impl<T> Default for OrderedMap<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: PartialEq> PartialEq for OrderedMap<T> {
    fn eq(&self, other: &Self) -> bool {
        // Most equal maps have the same order; only others need look-ups.
        self.entries == other.entries
            || (self.len() == other.len() && self.iter().all(|(name, value)| other.get(name) == Some(value)))
    }
}

impl<T: fmt::Debug> fmt::Debug for OrderedMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<N: Into<String>, T> FromIterator<(N, T)> for OrderedMap<T> {
    fn from_iter<I: IntoIterator<Item = (N, T)>>(entries: I) -> Self {
        let mut map = Self::new();
        for (name, value) in entries {
            map.insert(name, value);
        }
        map
    }
}

impl<N: Into<String>, V: Into<T>, T, const COUNT: usize> From<[(N, V); COUNT]> for OrderedMap<T> {
    fn from(entries: [(N, V); COUNT]) -> Self {
        entries.into_iter().map(|(name, value)| (name, value.into())).collect()
    }
}

impl<T> IntoIterator for OrderedMap<T> {
    type Item = (String, T);
    type IntoIter = std::vec::IntoIter<(String, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a OrderedMap<T> {
    type Item = &'a (String, T);
    type IntoIter = std::slice::Iter<'a, (String, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

impl<T: Serialize> Serialize for OrderedMap<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OrderedMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MapVisitor(PhantomData))
    }
}

struct MapVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MapVisitor<T> {
    type Value = OrderedMap<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = members.next_entry::<String, T>()? {
            entries.push(entry);
        }
        OrderedMap::unique(entries).map_err(A::Error::custom)
    }
}

/// Returns the first duplicate name. A peer chooses the number of entries, so the cost must not be quadratic.
fn repeated<T>(entries: &[(String, T)]) -> Option<&str> {
    if entries.len() <= SMALL {
        let before = |index: usize, name: &str| entries[..index].iter().any(|(known, _)| known == name);
        return entries
            .iter()
            .enumerate()
            .find(|(index, (name, _))| before(*index, name))
            .map(|(_, (name, _))| name.as_str());
    }
    let mut seen = HashSet::with_capacity(entries.len());
    entries.iter().map(|(name, _)| name.as_str()).find(|name| !seen.insert(*name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_does_not_matter_for_equality() {
        let map: OrderedMap<i64> = serde_json::from_str(r#"{"zeta":1,"alpha":2}"#).unwrap();
        assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"zeta":1,"alpha":2}"#);
        assert_eq!(map, OrderedMap::from([("alpha", 2_i64), ("zeta", 1)]));
        assert_ne!(map, OrderedMap::from([("alpha", 2_i64), ("zeta", 2)]));
    }

    #[test]
    fn a_name_may_not_come_twice() {
        let few = r#"{"a":1,"a":2}"#;
        let many = format!("{{{},\"n3\":0}}", (0..40).map(|n| format!("\"n{n}\":1")).collect::<Vec<_>>().join(","));
        for text in [few, many.as_str()] {
            let fault = serde_json::from_str::<OrderedMap<i64>>(text).unwrap_err();
            assert!(fault.to_string().contains("duplicate member"), "{fault}");
        }
    }

    #[test]
    fn entries_come_and_go() {
        let mut map = OrderedMap::new();
        assert_eq!(map.insert("a", 1), None);
        assert_eq!(map.insert("a", 2), Some(1));
        assert!(map.contains("a"));
        assert_eq!(map.remove("a"), Some(2));
        assert!(map.is_empty());
    }

    /// The index of a large map follows every change.
    // covers: SEC-11
    #[test]
    fn sec_11_large_maps_are_indexed() {
        let mut map: OrderedMap<usize> = (0..1_000).map(|number| (number.to_string(), number)).collect();
        let mut expected: Vec<usize> = (0..1_000).collect();
        let check = |map: &OrderedMap<usize>, expected: &[usize]| {
            assert_eq!(map.iter().map(|(_, value)| *value).collect::<Vec<_>>(), expected);
            assert!(expected.iter().all(|value| map.get(&value.to_string()) == Some(value)));
            assert_eq!(map.get("1000"), None);
        };
        check(&map, &expected);
        assert_eq!(map.remove("500"), Some(500));
        expected.remove(500);
        check(&map, &expected);
        assert_eq!((map.insert("500", 500), map.insert("7", 7)), (None, Some(7)));
        expected.push(500);
        check(&map, &expected);
        check(&map.clone(), &expected);
        map.retain(|_, value| *value % 3 == 0);
        expected.retain(|value| value % 3 == 0);
        check(&map, &expected);
        let other: OrderedMap<usize> = expected.iter().rev().map(|value| (value.to_string(), *value)).collect();
        assert_eq!(map, other);
    }

    /// Look-ups of a map that grows go by one index: it is neither missing nor made anew after each change.
    // covers: SEC-11
    #[test]
    fn sec_11_look_ups_are_not_quadratic() {
        let mut map = OrderedMap::new();
        for number in 0..1_000 {
            map.insert(number.to_string(), number);
            assert_eq!(map.is_indexed(), number > SMALL, "{number}");
        }
    }
}
