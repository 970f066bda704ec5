//! Restricts a value to one revision.
//!
//! The types have the members of all revisions. Before a value is sent to a peer, [`restrict_to`] removes the members
//! that the revision does not have (such as `icons` in 2025-06-18), and reports what the revision cannot express (such as
//! an audio block in 2024-11-05) and which required members are missing.
//!
//! ```
//! use mcp_types::{Icon, Revision, Tool, restrict_to};
//!
//! let mut tool = Tool::new("search").icons(vec![Icon::new("https://example.com/icon.png")]);
//! let restriction = restrict_to(&mut tool, Revision::V2025_06_18);
//! assert_eq!(tool.icons, None);
//! assert_eq!(restriction.dropped(), ["Tool.icons"]);
//! ```

use crate::gate::Revisions;
use crate::{ElicitValue, OneOrMany, OrderedMap, RawJson, RawObject, Revision};

/// Removes the members of `value` that `revision` does not have, and reports what has to be changed in addition.
pub fn restrict_to<T: Restrict + ?Sized>(value: &mut T, revision: Revision) -> Restriction {
    let mut restriction = Restriction { revision, dropped: Vec::new(), refused: Vec::new(), missing: Vec::new() };
    value.restrict(&mut restriction);
    restriction
}

/// A type that can be restricted to a revision; implemented by all generated structs and unions.
pub trait Restrict {
    /// Removes what the revision of `restriction` does not have, and records it there.
    fn restrict(&mut self, restriction: &mut Restriction);
}

/// The report of [`restrict_to`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restriction {
    revision: Revision,
    dropped: Vec<&'static str>,
    refused: Vec<&'static str>,
    missing: Vec<&'static str>,
}

impl Restriction {
    /// Returns the removed members, as `Type.member`, without duplicates.
    #[must_use]
    pub fn dropped(&self) -> &[&'static str] {
        &self.dropped
    }

    /// Returns what the revision cannot express and what cannot be removed without changing the meaning.
    ///
    /// If there is any, the value must not be sent.
    #[must_use]
    pub fn refused(&self) -> &[&'static str] {
        &self.refused
    }

    /// Returns the missing required members, except for those that the protocol layer sets.
    #[must_use]
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// Returns whether the restricted value may be sent to a peer of the revision.
    #[must_use]
    pub fn may_be_sent(&self) -> bool {
        self.refused.is_empty() && self.missing.is_empty()
    }

    /// Refuses params and results of methods that the revision does not have.
    pub(crate) fn whole(&mut self, name: &'static str, revisions: Revisions) {
        self.variant(name, revisions);
    }

    /// Refuses a member whose removal would change the meaning of the others.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "generated code calls all rules in the same way")]
    pub(crate) fn essential<T>(&mut self, member: &mut Option<T>, name: &'static str, revisions: Revisions) {
        if member.is_some() {
            self.variant(name, revisions);
        }
    }

    /// Records a missing member that `revisions` require.
    pub(crate) fn required(&mut self, is_there: bool, name: &'static str, revisions: Revisions) {
        if !is_there && revisions.contains(self.revision) {
            note(&mut self.missing, name);
        }
    }

    pub(crate) fn member<T>(&mut self, member: &mut Option<T>, name: &'static str, revisions: Revisions) {
        if member.is_some() && !revisions.contains(self.revision) {
            *member = None;
            note(&mut self.dropped, name);
        }
    }

    pub(crate) fn variant(&mut self, name: &'static str, revisions: Revisions) {
        if !revisions.contains(self.revision) {
            note(&mut self.refused, name);
        }
    }

    /// Drops a value that is not an object in `revisions` that accept only objects; `content` repeats it as text.
    // TL-9
    pub(crate) fn object(&mut self, member: &mut Option<RawJson>, name: &'static str, revisions: Revisions) {
        if revisions.contains(self.revision) && member.as_ref().is_some_and(|value| !value.is_object()) {
            *member = None;
            note(&mut self.dropped, name);
        }
    }

    /// Drops a schema that does not describe objects in `revisions` that accept only those.
    pub(crate) fn object_schema(&mut self, member: &mut Option<RawObject>, name: &'static str, revisions: Revisions) {
        #[derive(serde::Deserialize)]
        struct Root<'a> {
            #[serde(borrow, rename = "type")]
            kind: Option<&'a serde_json::value::RawValue>,
        }

        let describes_objects = |schema: &RawObject| {
            serde_json::from_str::<Root<'_>>(schema.as_str())
                .is_ok_and(|root| root.kind.is_some_and(|kind| kind.get() == "\"object\""))
        };
        if revisions.contains(self.revision) && member.as_ref().is_some_and(|schema| !describes_objects(schema)) {
            *member = None;
            note(&mut self.dropped, name);
        }
    }

    /// In `revisions` that accept only single values, replaces a list of one value by the value and refuses other lists.
    pub(crate) fn one<T>(&mut self, member: &mut OneOrMany<T>, name: &'static str, revisions: Revisions) {
        if !revisions.contains(self.revision) {
            return;
        }
        if let OneOrMany::Many(values) = member {
            if values.len() == 1
                && let Some(value) = values.pop()
            {
                *member = OneOrMany::One(value);
            } else {
                note(&mut self.refused, name);
            }
        }
    }

    /// Refuses lists among the values of a form in `revisions` that do not accept them.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "generated code calls all rules in the same way")]
    pub(crate) fn no_lists(
        &mut self,
        member: &mut Option<OrderedMap<ElicitValue>>,
        name: &'static str,
        revisions: Revisions,
    ) {
        let has_list =
            |values: &OrderedMap<ElicitValue>| values.iter().any(|(_, value)| matches!(value, ElicitValue::Strings(_)));
        if revisions.contains(self.revision) && member.as_ref().is_some_and(has_list) {
            note(&mut self.refused, name);
        }
    }
}

fn note(names: &mut Vec<&'static str>, name: &'static str) {
    if !names.contains(&name) {
        names.push(name);
    }
}

impl<T: Restrict> Restrict for Option<T> {
    fn restrict(&mut self, restriction: &mut Restriction) {
        if let Some(value) = self {
            value.restrict(restriction);
        }
    }
}

impl<T: Restrict> Restrict for Box<T> {
    fn restrict(&mut self, restriction: &mut Restriction) {
        (**self).restrict(restriction);
    }
}

impl<T: Restrict> Restrict for Vec<T> {
    fn restrict(&mut self, restriction: &mut Restriction) {
        for value in self {
            value.restrict(restriction);
        }
    }
}

impl<T: Restrict> Restrict for OrderedMap<T> {
    fn restrict(&mut self, restriction: &mut Restriction) {
        for (_, value) in self.iter_mut() {
            value.restrict(restriction);
        }
    }
}

impl<T: Restrict> Restrict for OneOrMany<T> {
    fn restrict(&mut self, restriction: &mut Restriction) {
        for value in self.as_mut_slice() {
            value.restrict(restriction);
        }
    }
}

/// Raw JSON is not restricted.
impl Restrict for RawJson {
    fn restrict(&mut self, _: &mut Restriction) {}
}

/// Raw JSON is not restricted.
impl Restrict for RawObject {
    fn restrict(&mut self, _: &mut Restriction) {}
}
