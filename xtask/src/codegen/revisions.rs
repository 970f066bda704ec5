//! Sets of revisions, as Rust expressions and as words.

use std::collections::BTreeSet;

use crate::model::REVISIONS;

/// A set of revisions of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RevisionSet(BTreeSet<usize>);

impl RevisionSet {
    /// The set with these names.
    pub(crate) fn of(names: &[String]) -> Self {
        Self(names.iter().filter_map(|name| REVISIONS.iter().position(|revision| revision == name)).collect())
    }

    /// Those in `self` but not in `other`.
    fn without(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    /// From the first to the last, when there is no gap between.
    fn range(&self) -> Option<(usize, usize)> {
        let (first, last) = (*self.0.first()?, *self.0.last()?);
        (last - first + 1 == self.0.len()).then_some((first, last))
    }

    /// The set as a Rust expression over `Revisions`, and the revisions that it names.
    pub(crate) fn expression(&self, names: &mut BTreeSet<String>) -> String {
        const LAST: usize = REVISIONS.len() - 1;
        let mut name = |index: usize| {
            let name = format!("V{}", REVISIONS[index].replace('-', "_"));
            names.insert(name.clone());
            name
        };
        match self.range() {
            None if self.0.is_empty() => "Revisions::NONE".to_owned(),
            None => {
                let all = Self((0..=LAST).collect());
                format!("Revisions::ALL.without({})", all.without(self).expression(names))
            }
            Some((0, LAST)) => "Revisions::ALL".to_owned(),
            Some((first, LAST)) => format!("Revisions::since({})", name(first)),
            Some((first, last)) if first == last => format!("Revisions::only({})", name(first)),
            Some((0, last)) => format!("Revisions::until({})", name(last)),
            Some((first, last)) => format!("Revisions::between({}, {})", name(first), name(last)),
        }
    }

    /// The set in words, for documentation.
    pub(crate) fn words(&self) -> String {
        const LAST: usize = REVISIONS.len() - 1;
        match self.range() {
            Some((first, LAST)) => format!("Since {}.", REVISIONS[first]),
            Some((first, last)) if first == last => format!("Only in {}.", REVISIONS[first]),
            Some((0, last)) => format!("Up to {}.", REVISIONS[last]),
            Some((first, last)) => format!("From {} to {}.", REVISIONS[first], REVISIONS[last]),
            None => {
                let names: Vec<&str> = self.0.iter().map(|index| REVISIONS[*index]).collect();
                format!("In {}.", names.join(", "))
            }
        }
    }
}
