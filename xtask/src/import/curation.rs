//! The decisions of `curation.toml`, which the official files cannot take for us.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::model::{Erratum, Kind, MethodKind};

/// What `mcp-types/schema/curation.toml` holds; each table is explained there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Curation {
    skip: BTreeMap<String, BTreeSet<String>>,
    reference: BTreeMap<String, Kind>,
    rename: BTreeMap<String, String>,
    also: BTreeMap<String, Also>,
    inline: BTreeMap<String, String>,
    params: BTreeMap<String, String>,
    kind: BTreeMap<String, Kind>,
    pub(crate) beyond_files: BTreeMap<String, Beyond>,
    narrower: BTreeMap<String, Narrowing>,
    essential: MemberSet,
    boxed: Boxed,
    pub(crate) union: BTreeMap<String, Union>,
    pub(crate) strings: BTreeMap<String, Strings>,
    rust: BTreeMap<String, String>,
    topics: BTreeMap<String, BTreeSet<String>>,
    pub(crate) name_source: BTreeMap<String, String>,
    pub(crate) listen: Listen,
    pub(crate) extension: Extension,
    pub(crate) errata: Vec<Erratum>,
}

/// A member that a revision has although its file does not say so.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Beyond {
    pub(crate) kind: Kind,
    pub(crate) revisions: BTreeSet<String>,
}

/// Another type that a definition stands for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Also {
    pub(crate) name: String,
    /// The members that the other type lacks.
    pub(crate) without: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Narrowing {
    pub(crate) rule: String,
    /// The last revision that demands it.
    pub(crate) until: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Union {
    /// The member that tells the variants apart; without one they are told apart by hand.
    pub(crate) tag: Option<String>,
    /// The type that a variant holds and its name, in the order of the specification.
    pub(crate) variants: Vec<(String, String)>,
    /// Members that spell the union out, lists of it aside.
    #[serde(default)]
    pub(crate) also: BTreeSet<String>,
    /// Variants in revisions that have no such union in their files.
    #[serde(default)]
    pub(crate) implied: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Strings {
    pub(crate) open: bool,
    pub(crate) order: Vec<String>,
    /// Set when no file defines the set: the first revision that has it.
    pub(crate) since: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberSet {
    members: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Boxed {
    members: BTreeSet<String>,
    types: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listen {
    pub(crate) since: String,
    pub(crate) methods: BTreeSet<String>,
}

/// An extension whose types and methods are stated by hand.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Extension {
    pub(crate) id: String,
    pub(crate) topic: String,
    pub(crate) since: String,
    pub(crate) types: BTreeMap<String, ExtensionType>,
    pub(crate) methods: BTreeMap<String, ExtensionMethod>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExtensionType {
    /// Another type of the extension, whose members this one has too.
    pub(crate) extends: Option<String>,
    /// Kinds by member, with `!` behind what is required.
    pub(crate) members: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExtensionMethod {
    pub(crate) kind: MethodKind,
    pub(crate) params: String,
    pub(crate) result: Option<String>,
    pub(crate) by: Sender,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sender {
    Client,
    Server,
}

impl Curation {
    /// Whether a definition is none of our types.
    pub(crate) fn skips(&self, name: &str) -> bool {
        name.ends_with("ResultResponse")
            || (name.ends_with("Error") && name != "Error")
            || self.skip.values().any(|names| names.contains(name))
    }

    /// Whether references may name a type that the model does not define.
    pub(crate) fn is_by_hand(&self, name: &str) -> bool {
        matches!(name, "MetaObject" | "ElicitValue" | "ErrorObject" | "ProtocolVersion")
            || self.skip.get("by_hand").is_some_and(|names| names.contains(name))
    }

    /// The name under which a definition of one revision enters the model.
    pub(crate) fn renamed<'a>(&'a self, revision: &str, name: &'a str) -> &'a str {
        self.rename.get(&format!("{revision} {name}")).or_else(|| self.rename.get(name)).map_or(name, String::as_str)
    }

    /// What else a definition of one revision stands for.
    pub(crate) fn also(&self, revision: &str, name: &str) -> Option<&Also> {
        self.also.get(&format!("{revision} {name}"))
    }

    /// The kind that a reference stands for, when it is no type of its own.
    pub(crate) fn reference(&self, name: &str) -> Option<&Kind> {
        self.reference.get(name)
    }

    /// The type name of an inline shape at `Type.member`.
    pub(crate) fn inline(&self, at: &str) -> Option<&str> {
        lookup(&self.inline, at).map(String::as_str)
    }

    /// The decided kind of `Type.member`.
    pub(crate) fn kind(&self, at: &str) -> Option<&Kind> {
        lookup(&self.kind, at)
    }

    /// The type name of a method's inline params.
    pub(crate) fn params(&self, method: &str) -> Option<&str> {
        self.params.get(method).map(String::as_str)
    }

    /// The stricter form that `Type.member` has in earlier revisions.
    pub(crate) fn narrower(&self, at: &str) -> Option<&Narrowing> {
        self.narrower.get(at)
    }

    /// Whether leaving `Type.member` out changes what the rest means.
    pub(crate) fn is_essential(&self, at: &str) -> bool {
        self.essential.members.contains(at)
    }

    /// Whether `Type.member` is boxed.
    pub(crate) fn is_boxed(&self, at: &str, kind: &Kind) -> bool {
        self.boxed.members.contains(at) || kind.named().is_some_and(|name| self.boxed.types.contains(name))
    }

    /// The Rust name of a type.
    pub(crate) fn rust_name(&self, name: &str) -> String {
        self.rust.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// The generated file that a type belongs to.
    pub(crate) fn topic(&self, name: &str) -> Option<&str> {
        self.topics.iter().find(|(_, types)| types.contains(name)).map(|(topic, _)| topic.as_str())
    }

    /// Every type that has a topic, to find entries that no longer exist.
    pub(crate) fn types_with_topic(&self) -> impl Iterator<Item = &str> {
        self.topics.values().flatten().map(String::as_str)
    }
}

/// Finds `Type.member`, or the rule for that member in every type, `*.member`.
fn lookup<'a, T>(table: &'a BTreeMap<String, T>, at: &str) -> Option<&'a T> {
    table.get(at).or_else(|| {
        let (_, member) = at.split_once('.')?;
        table.get(&format!("*.{member}"))
    })
}
