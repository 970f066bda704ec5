//! The revisions that have a method, a type or a member.
//!
//! The tables are generated from the official schemas of all revisions.
//!
//! ```
//! use mcp_types::gate::{self, Direction};
//! use mcp_types::{Method, Revision};
//!
//! let ping = gate::method(&Method::PING).expect("a core method");
//! assert!(ping.may_be_sent(Direction::ServerToClient, Revision::V2025_11_25));
//! assert!(!ping.may_be_sent(Direction::ServerToClient, Revision::V2026_07_28));
//!
//! let icons = gate::member("Tool", "icons").expect("a member of a tool");
//! assert!(!icons.exists_in(Revision::V2025_06_18));
//! ```

use std::fmt;

use crate::generated::{METHODS, TYPES, index_of};
use crate::{Method, Revision};

/// A set of revisions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revisions(u8);

impl Revisions {
    /// No revision.
    pub const NONE: Self = Self(0);

    /// Every revision.
    pub const ALL: Self = Self::since(Revision::V2024_11_05);

    /// Returns `first` and all later revisions.
    #[must_use]
    pub const fn since(first: Revision) -> Self {
        Self::between(first, Revision::LATEST)
    }

    /// Returns all revisions up to and including `last`.
    #[must_use]
    pub const fn until(last: Revision) -> Self {
        Self::between(Revision::V2024_11_05, last)
    }

    /// Returns the set of one revision.
    #[must_use]
    pub const fn only(revision: Revision) -> Self {
        Self::between(revision, revision)
    }

    /// Returns the revisions from `first` to `last`, inclusive.
    #[must_use]
    pub const fn between(first: Revision, last: Revision) -> Self {
        let up_to_last = (1_u8 << (last as u8 + 1)).wrapping_sub(1);
        let before_first = (1_u8 << first as u8).wrapping_sub(1);
        Self(up_to_last & !before_first)
    }

    /// Returns the revisions in `self` but not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether `revision` is in the set.
    #[must_use]
    pub const fn contains(self, revision: Revision) -> bool {
        self.0 & (1 << revision as u8) != 0
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the revisions, oldest first.
    pub fn iter(self) -> impl Iterator<Item = Revision> {
        Revision::ALL.into_iter().filter(move |revision| self.contains(*revision))
    }
}

impl fmt::Debug for Revisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Revision::as_str)).finish()
    }
}

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a connection has two ends")]
pub enum Direction {
    /// From a client to a server.
    ClientToServer,
    /// From a server to a client.
    ServerToClient,
}

impl Direction {
    const fn of(self, from_client: Revisions, from_server: Revisions) -> Revisions {
        match self {
            Self::ClientToServer => from_client,
            Self::ServerToClient => from_server,
        }
    }
}

/// Whether a method is a request or a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has these two")]
pub enum MethodKind {
    /// A request, which gets a response.
    Request,
    /// A notification, which gets no response.
    Notification,
}

/// The revisions and directions of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MethodFacts {
    /// The method, as sent on the wire.
    pub name: &'static str,
    /// Whether it is a request or a notification.
    pub kind: MethodKind,
    /// The revisions in which a client may send it.
    pub from_client: Revisions,
    /// The revisions in which a server may send it.
    pub from_server: Revisions,
    /// The revisions in which a server sends it as an input request of an `input_required` result.
    pub input_request: Revisions,
    /// The revisions in which its result has cache hints.
    pub cacheable: Revisions,
    /// The revisions in which its result may be `input_required`.
    pub may_require_input: Revisions,
    /// The revisions in which it is sent only on streams of `subscriptions/listen`.
    pub listen_only: Revisions,
    /// The member of its params that the `Mcp-Name` header repeats.
    pub name_member: Option<&'static str>,
    /// Its revisions and directions if both peers declared an extension.
    pub extension: Option<ExtensionFacts>,
}

/// The revisions and directions of a method of an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtensionFacts {
    /// The identifier of the extension.
    pub id: &'static str,
    /// The revisions in which a client may send the method.
    pub from_client: Revisions,
    /// The revisions in which a server may send the method.
    pub from_server: Revisions,
}

impl ExtensionFacts {
    /// Returns whether the method may be sent in `direction` if both peers declared the extension.
    #[must_use]
    pub const fn may_be_sent(&self, direction: Direction, revision: Revision) -> bool {
        direction.of(self.from_client, self.from_server).contains(revision)
    }
}

impl MethodFacts {
    /// Returns whether the method may be sent in `direction` as a message, without any extension.
    #[must_use]
    pub const fn may_be_sent(&self, direction: Direction, revision: Revision) -> bool {
        direction.of(self.from_client, self.from_server).contains(revision)
    }
}

/// The revisions of a type and of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeFacts {
    /// The type's path in this crate, such as `Tool` or `tasks::Task`.
    pub name: &'static str,
    /// The type's name in the official schemas.
    pub official_name: &'static str,
    /// The revisions that have it.
    pub revisions: Revisions,
    /// The members of a struct, sorted by name.
    pub members: &'static [MemberFacts],
    /// The variants of a union, in the order of the specification.
    pub variants: &'static [VariantFacts],
}

/// The revisions of a variant of a union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VariantFacts {
    /// The variant's name in this crate.
    pub name: &'static str,
    /// Its tag on the wire, if the union has one.
    pub tag: Option<&'static str>,
    /// The revisions that have it.
    pub revisions: Revisions,
}

/// The revisions of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberFacts {
    /// The member's name on the wire.
    pub name: &'static str,
    /// The revisions that have it.
    pub revisions: Revisions,
    /// The revisions that require it.
    pub required: Revisions,
}

impl MemberFacts {
    pub(crate) const fn new(name: &'static str, revisions: Revisions, required: Revisions) -> Self {
        Self { name, revisions, required }
    }

    /// Returns whether the member exists in `revision`.
    #[must_use]
    pub const fn exists_in(&self, revision: Revision) -> bool {
        self.revisions.contains(revision)
    }

    /// Returns whether the member is required in `revision`.
    #[must_use]
    pub const fn required_in(&self, revision: Revision) -> bool {
        self.required.contains(revision)
    }
}

/// Returns the facts about a method, or `None` if neither the specification nor the tasks extension has it.
#[must_use]
pub fn method(method: &Method) -> Option<&'static MethodFacts> {
    METHODS.get(index_of(method.as_str())?)
}

impl Method {
    /// Returns the member of the params that the `Mcp-Name` header repeats.
    // H-47, H-48
    #[must_use]
    pub fn name_member(&self) -> Option<&'static str> {
        method(self)?.name_member
    }
}

/// Returns the facts about all known methods, sorted by name.
#[must_use]
pub fn methods() -> &'static [MethodFacts] {
    METHODS
}

/// Returns the facts about a type, by its path in this crate.
#[must_use]
pub fn type_facts(name: &str) -> Option<&'static TypeFacts> {
    types().find(|facts| facts.name == name)
}

/// Returns the facts about all generated types.
pub fn types() -> impl Iterator<Item = &'static TypeFacts> {
    TYPES.iter().copied().flatten()
}

/// Returns the facts about a member, by the path of its type in this crate and its name on the wire.
#[must_use]
pub fn member(type_name: &str, member: &str) -> Option<&'static MemberFacts> {
    let members = type_facts(type_name)?.members;
    let index = members.binary_search_by(|facts| facts.name.cmp(member)).ok()?;
    members.get(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_revisions_are_what_they_say() {
        let middle = Revisions::between(Revision::V2025_03_26, Revision::V2025_11_25);
        assert_eq!(middle.iter().count(), 3);
        assert!(!middle.contains(Revision::V2024_11_05));
        assert!(!middle.contains(Revision::V2026_07_28));
        assert_eq!(Revisions::ALL.iter().collect::<Vec<_>>(), Revision::ALL);
        assert!(Revisions::ALL.without(Revisions::ALL).is_empty());
        assert_eq!(format!("{:?}", Revisions::until(Revision::V2024_11_05)), "{\"2024-11-05\"}");
    }

    /// The binary searches above rely on it.
    #[test]
    fn tables_are_sorted() {
        assert!(METHODS.is_sorted_by(|a, b| a.name < b.name));
        for facts in types() {
            assert!(facts.members.is_sorted_by(|a, b| a.name < b.name), "{}", facts.name);
        }
    }

    #[test]
    fn every_method_has_a_sender() {
        for facts in methods() {
            let core = !(facts.from_client.is_empty() && facts.from_server.is_empty());
            assert!(core || facts.extension.is_some(), "{}", facts.name);
            assert_eq!(method(&Method::from(facts.name)).map(|found| found.name), Some(facts.name));
        }
        assert_eq!(method(&Method::from("com.example/mine")), None);
    }

    /// What an extension allows, the core does not.
    // covers: TK-36
    #[test]
    fn extension_methods_need_their_extension() {
        let update = method(&Method::TASKS_UPDATE).unwrap();
        assert!(!update.may_be_sent(Direction::ClientToServer, Revision::V2026_07_28));
        let extension = update.extension.unwrap();
        assert_eq!(extension.id, crate::tasks::EXTENSION);
        assert!(extension.may_be_sent(Direction::ClientToServer, Revision::V2026_07_28));
        assert!(!extension.may_be_sent(Direction::ServerToClient, Revision::V2026_07_28));
        assert!(!extension.may_be_sent(Direction::ClientToServer, Revision::V2025_11_25));
        assert_eq!(update.name_member, Some("taskId"));
    }

    #[test]
    fn names_are_paths_in_this_crate() {
        assert_eq!(type_facts("RequestMeta").unwrap().official_name, "RequestMetaObject");
        assert!(type_facts("tasks::Task").unwrap().revisions.contains(Revision::V2026_07_28));
        assert!(!type_facts("core_tasks::Task").unwrap().revisions.contains(Revision::V2026_07_28));
        let audio =
            type_facts("ContentBlock").unwrap().variants.iter().find(|variant| variant.name == "Audio").unwrap();
        assert!(!audio.revisions.contains(Revision::V2024_11_05));
    }
}
