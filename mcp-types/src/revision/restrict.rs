//! Cuts a value down to what one revision knows.
//!
//! The types hold the members of all revisions. Before a value goes to a peer, [`restrict_to`] removes
//! what the peer's revision lacks (`icons` for a client of 2025-06-18), and reports what cannot be said
//! there at all (an audio block in 2024-11-05) and what the revision demands on top.
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

/// Removes from `value` what `revision` lacks.
pub fn restrict_to<T: Restrict + ?Sized>(value: &mut T, revision: Revision) -> Restriction {
    let mut restriction = Restriction { revision, dropped: Vec::new(), refused: Vec::new(), missing: Vec::new() };
    value.restrict(&mut restriction);
    restriction
}

/// A type that can be cut down to a revision; implemented by all generated structs and unions.
pub trait Restrict {
    /// Removes what the revision of `restriction` lacks, and notes it there.
    fn restrict(&mut self, restriction: &mut Restriction);
}

/// What [`restrict_to`] took away, and what it could not mend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restriction {
    revision: Revision,
    dropped: Vec<&'static str>,
    refused: Vec<&'static str>,
    missing: Vec<&'static str>,
}

impl Restriction {
    /// The revision that the value was cut down to.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The members that were removed, as `Type.member`, each once.
    #[must_use]
    pub fn dropped(&self) -> &[&'static str] {
        &self.dropped
    }

    /// What the revision cannot express and what would change the meaning if it were left out, each once.
    ///
    /// A value with refusals must not be sent.
    #[must_use]
    pub fn refused(&self) -> &[&'static str] {
        &self.refused
    }

    /// What the revision demands but the value lacks, each once; members that the protocol layer fills in do not count.
    #[must_use]
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// Whether the value, as it is now, may be sent to a peer of the revision.
    #[must_use]
    pub fn may_be_sent(&self) -> bool {
        self.refused.is_empty() && self.missing.is_empty()
    }

    /// Refuses params and results that belong to methods of other revisions.
    pub(crate) fn whole(&mut self, name: &'static str, revisions: Revisions) {
        self.variant(name, revisions);
    }

    /// Refuses a member without which the rest would mean something else.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "generated code calls all rules alike")]
    pub(crate) fn essential<T>(&mut self, member: &mut Option<T>, name: &'static str, revisions: Revisions) {
        if member.is_some() {
            self.variant(name, revisions);
        }
    }

    /// Notes a member that `revisions` demand.
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

    /// Where `revisions` know only objects, another value is dropped: it also stands in `content` as text.
    // TL-9
    pub(crate) fn object(&mut self, member: &mut Option<RawJson>, name: &'static str, revisions: Revisions) {
        if revisions.contains(self.revision) && member.as_ref().is_some_and(|value| !value.is_object()) {
            *member = None;
            note(&mut self.dropped, name);
        }
    }

    /// Where `revisions` know only schemas of objects, another schema is dropped.
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

    /// Where `revisions` know only single values, a list of one becomes that one and any other list is refused.
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

    /// Where `revisions` know no lists among a form's values, they are refused.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "generated code calls all rules alike")]
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

/// Raw JSON goes as it is: nothing is known of what it holds.
impl Restrict for RawJson {
    fn restrict(&mut self, _: &mut Restriction) {}
}

/// Raw JSON goes as it is: nothing is known of what it holds.
impl Restrict for RawObject {
    fn restrict(&mut self, _: &mut Restriction) {}
}
