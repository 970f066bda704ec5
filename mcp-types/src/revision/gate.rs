//! What exists in which revision: the questions that a kernel or a transport asks instead of knowing.
//!
//! The tables behind these functions are generated from the official schemas of all revisions.
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

use crate::generated::{METHODS, TYPES};
use crate::{Method, Revision};

/// A set of revisions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revisions(u8);

impl Revisions {
    /// No revision.
    pub const NONE: Self = Self(0);

    /// Every revision.
    pub const ALL: Self = Self::since(Revision::V2024_11_05);

    /// `first` and everything after it.
    #[must_use]
    pub const fn since(first: Revision) -> Self {
        Self::between(first, Revision::LATEST)
    }

    /// Everything up to and including `last`.
    #[must_use]
    pub const fn until(last: Revision) -> Self {
        Self::between(Revision::V2024_11_05, last)
    }

    /// `revision` alone.
    #[must_use]
    pub const fn only(revision: Revision) -> Self {
        Self::between(revision, revision)
    }

    /// From `first` to `last`, both included.
    #[must_use]
    pub const fn between(first: Revision, last: Revision) -> Self {
        let up_to_last = (1_u8 << (last as u8 + 1)).wrapping_sub(1);
        let before_first = (1_u8 << first as u8).wrapping_sub(1);
        Self(up_to_last & !before_first)
    }

    /// Those in `self` but not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether `revision` is in the set.
    #[must_use]
    pub const fn contains(self, revision: Revision) -> bool {
        self.0 & (1 << revision as u8) != 0
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The revisions, oldest first.
    pub fn iter(self) -> impl Iterator<Item = Revision> {
        Revision::ALL.into_iter().filter(move |revision| self.contains(*revision))
    }
}

impl fmt::Debug for Revisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Revision::as_str)).finish()
    }
}

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "there are two ends")]
pub enum Direction {
    /// The client sends.
    ClientToServer,
    /// The server sends.
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

/// Whether a method expects an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC knows these two")]
pub enum MethodKind {
    /// It is answered exactly once.
    Request,
    /// It is never answered.
    Notification,
}

/// What the protocol says about one core method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MethodFacts {
    /// The method's name on the wire.
    pub name: &'static str,
    /// Whether it is a request or a notification.
    pub kind: MethodKind,
    /// The revisions in which a client may send it.
    pub from_client: Revisions,
    /// The revisions in which a server may send it.
    pub from_server: Revisions,
    /// The revisions in which a server asks it inside an `input_required` result instead.
    pub input_request: Revisions,
    /// The revisions in which its result carries cache hints.
    pub cacheable: Revisions,
    /// The revisions in which it may be answered with `input_required`.
    pub may_require_input: Revisions,
    /// The revisions in which it goes only to those who asked for it with `subscriptions/listen`.
    pub listen_only: Revisions,
    /// The member of its params that the `Mcp-Name` header repeats.
    pub name_member: Option<&'static str>,
    /// Who may send it between peers that both declared an extension.
    pub extension: Option<ExtensionFacts>,
}

/// What an extension says about a method.
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
    /// Whether the method may travel in `direction` between peers that both declared the extension.
    #[must_use]
    pub const fn may_be_sent(&self, direction: Direction, revision: Revision) -> bool {
        direction.of(self.from_client, self.from_server).contains(revision)
    }
}

impl MethodFacts {
    /// Whether the method may travel in `direction` as a message of its own, without any extension.
    #[must_use]
    pub const fn may_be_sent(&self, direction: Direction, revision: Revision) -> bool {
        direction.of(self.from_client, self.from_server).contains(revision)
    }
}

/// What the protocol says about one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeFacts {
    /// The type's path in this crate, such as `Tool` or `tasks::Task`.
    pub name: &'static str,
    /// The type's name in the official schemas.
    pub official_name: &'static str,
    /// The revisions that have it.
    pub revisions: Revisions,
    /// The members of a struct, by name.
    pub members: &'static [MemberFacts],
    /// The variants of a union, in the order of the specification.
    pub variants: &'static [VariantFacts],
}

/// What the protocol says about one variant of a union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VariantFacts {
    /// The variant's name in this crate.
    pub name: &'static str,
    /// The string that marks it on the wire, where the union has a tag.
    pub tag: Option<&'static str>,
    /// The revisions that have it.
    pub revisions: Revisions,
}

/// What the protocol says about one member of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberFacts {
    /// The member's name on the wire.
    pub name: &'static str,
    /// The revisions that have it.
    pub revisions: Revisions,
    /// The revisions that demand it.
    pub required: Revisions,
}

impl MemberFacts {
    pub(crate) const fn new(name: &'static str, revisions: Revisions, required: Revisions) -> Self {
        Self { name, revisions, required }
    }

    /// Whether the member exists in `revision`.
    #[must_use]
    pub const fn exists_in(&self, revision: Revision) -> bool {
        self.revisions.contains(revision)
    }

    /// Whether the member must be present in `revision`.
    #[must_use]
    pub const fn required_in(&self, revision: Revision) -> bool {
        self.required.contains(revision)
    }
}

/// The facts about a method of the core or of the tasks extension; others have none.
#[must_use]
pub fn method(method: &Method) -> Option<&'static MethodFacts> {
    // Names differ in length more often than not, which makes this cheaper than a binary search.
    METHODS.iter().find(|facts| facts.name == method.as_str())
}

impl Method {
    /// Returns the member of the params that the `Mcp-Name` header repeats.
    // H-47, H-48
    #[must_use]
    pub fn name_member(&self) -> Option<&'static str> {
        method(self)?.name_member
    }
}

/// The facts about every known method, by name.
#[must_use]
pub fn methods() -> &'static [MethodFacts] {
    METHODS
}

/// The facts about a type, by its path in this crate.
#[must_use]
pub fn type_facts(name: &str) -> Option<&'static TypeFacts> {
    types().find(|facts| facts.name == name)
}

/// The facts about every generated type.
pub fn types() -> impl Iterator<Item = &'static TypeFacts> {
    TYPES.iter().copied().flatten()
}

/// The facts about a member, by the path of its type in this crate and its own name on the wire.
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
