//! Emits the gate tables and what cuts a value down to one revision.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::docs::doc_lines;
use super::revisions::RevisionSet;
use super::types::CODEC_MEMBERS;
use super::{Generator, is_message_part};
use crate::model::{Discriminator, Member, Method, MethodKind, REVISIONS, Required, Shape, Type, Variant};

impl Generator<'_> {
    /// Emits what cuts a type down to a revision; nothing, where every revision has the same.
    pub(super) fn restrict(&mut self, name: &str, definition: &Type) -> String {
        let body = match &definition.shape {
            Shape::Struct { .. } => self.restrict_struct(name, definition),
            Shape::Union { variants, by } => self.restrict_union(definition, variants, by),
            Shape::Strings { .. } | Shape::Alias(_) => return String::new(),
        };
        self.uses(["Restrict", "Restriction"]);
        if body.contains("Revisions::") {
            self.gate.insert("Revisions");
        }
        let restriction = if body.is_empty() { "_" } else { "restriction" };
        format!(
            "impl Restrict for {} {{\nfn restrict(&mut self, {restriction}: &mut Restriction) {{\n{body}}}\n}}\n\n",
            definition.rust
        )
    }

    /// Emits access to what the protocol layer fills in, for the results of requests.
    pub(super) fn result_body(&mut self, definition: &Type) -> String {
        let Shape::Struct { members } = &definition.shape else { return String::new() };
        if !definition.rust.ends_with("Result") {
            return String::new();
        }
        self.uses(["ResultBody", "ResultMembers"]);
        let has = |member: &str| members.contains_key(member);
        let field = |is_there: bool, value: &'static str| if is_there { value } else { "None" };
        let has_meta = members.get("_meta").is_some_and(|member| member.kind.named() == Some("ResultMetaObject"));
        let result_type = field(has("resultType"), "Some(&mut self.result_type)");
        let meta = field(has_meta, "Some(&mut self.meta)");
        let cache = field(has("cacheScope"), "Some((&mut self.ttl_ms, &mut self.cache_scope))");
        let mut body = format!(
            "fn members_mut(&mut self) -> ResultMembers<'_> {{\n\
             ResultMembers {{ result_type: {result_type}, meta: {meta}, cache: {cache} }}\n}}\n"
        );
        let other_kind = match definition.rust.as_str() {
            "InputRequiredResult" => Some("INPUT_REQUIRED"),
            "CreateTaskResult" if has("resultType") => Some("TASK"),
            _ => None,
        };
        if let Some(kind) = other_kind {
            self.uses(["ResultType"]);
            let _ = writeln!(body, "fn default_result_type(&self) -> ResultType {{\nResultType::{kind}\n}}");
        }
        if has("inputRequests") && has("requestState") {
            body.push_str("fn as_input_required(&self) -> Option<&Self> {\nSome(self)\n}\n");
        }
        format!("impl ResultBody for {} {{\n{body}}}\n\n", definition.rust)
    }

    fn restrict_struct(&mut self, name: &str, definition: &Type) -> String {
        let mut body = String::new();
        let path = type_path(definition);
        if is_message_part(&definition.rust) && definition.revisions.len() < REVISIONS.len() {
            let set = RevisionSet::of(&definition.revisions).expression(&mut self.revisions);
            let _ = writeln!(body, "restriction.whole(\"{path}\", {set});");
        }
        for (wire, member) in self.members_in_order(name, definition) {
            let field = &member.rust;
            let at = format!("{path}.{wire}");
            if let Some(revisions) = &member.revisions {
                let set = RevisionSet::of(revisions).expression(&mut self.revisions);
                let rule = if member.essential { "essential" } else { "member" };
                let _ = writeln!(body, "restriction.{rule}(&mut self.{field}, \"{at}\", {set});");
            }
            if let Some(demanded) = self.demanded(name, definition, wire, member) {
                let set = RevisionSet::of(&demanded).expression(&mut self.revisions);
                let _ = writeln!(body, "restriction.required(self.{field}.is_some(), \"{at}\", {set});");
            }
            if let Some(narrower) = &member.narrower {
                let set = RevisionSet::of(&narrower.revisions).expression(&mut self.revisions);
                let _ = writeln!(body, "restriction.{}(&mut self.{field}, \"{at}\", {set});", narrower.rule);
            }
            if member.kind.named().is_some_and(|held| self.needs_restriction(held, &mut BTreeSet::new())) {
                let _ = writeln!(body, "self.{field}.restrict(restriction);");
            }
        }
        body
    }

    /// The revisions that demand a member which Rust lets out, unless the protocol layer fills it in.
    fn demanded(&self, name: &str, definition: &Type, wire: &str, member: &Member) -> Option<Vec<String>> {
        if self.is_bare(name, wire, member) || CODEC_MEMBERS.contains(&wire) || name == "RequestMetaObject" {
            return None;
        }
        match &member.required {
            Required::Never => None,
            Required::Always => Some(member.revisions.as_ref().unwrap_or(&definition.revisions).clone()),
            Required::In(revisions) => Some(revisions.clone()),
        }
    }

    fn restrict_union(&mut self, definition: &Type, variants: &[Variant], by: &Discriminator) -> String {
        let mut body = "match self {\n".to_owned();
        for variant in variants {
            let nested = self.needs_restriction(&variant.holds, &mut BTreeSet::new());
            let held = if nested { "held" } else { "_" };
            let _ = writeln!(body, "Self::{}({held}) => {{", variant.rust);
            if variant.revisions != definition.revisions {
                let set = RevisionSet::of(&variant.revisions).expression(&mut self.revisions);
                let _ = writeln!(body, "restriction.variant(\"{}::{}\", {set});", definition.rust, variant.rust);
            }
            if nested {
                body.push_str("held.restrict(restriction);\n");
            }
            body.push_str("}\n");
        }
        if matches!(by, Discriminator::Tag(_)) {
            body.push_str("Self::Unknown(_) => {}\n");
        }
        if !body.contains("restriction") {
            return String::new();
        }
        body + "}\n"
    }

    /// Whether a type, or anything it holds, lacks something in one of its revisions.
    fn needs_restriction(&self, name: &str, seen: &mut BTreeSet<String>) -> bool {
        if !seen.insert(name.to_owned()) {
            return false;
        }
        let Some(definition) = self.model.types.get(name) else { return false };
        match &definition.shape {
            Shape::Struct { members } => members.iter().any(|(wire, member)| {
                member.revisions.is_some()
                    || member.narrower.is_some()
                    || self.demanded(name, definition, wire, member).is_some()
                    || member.kind.named().is_some_and(|held| self.needs_restriction(held, seen))
            }),
            Shape::Union { variants, .. } => variants.iter().any(|variant| {
                variant.revisions != definition.revisions || self.needs_restriction(&variant.holds, seen)
            }),
            Shape::Alias(kind) => kind.named().is_some_and(|held| self.needs_restriction(held, seen)),
            Shape::Strings { .. } => false,
        }
    }

    /// Emits the facts about the types of one topic.
    pub(super) fn type_facts(&mut self, types: &[(&String, &Type)]) -> String {
        self.gate.extend(["Revisions", "TypeFacts"]);
        let mut out =
            "/// The revisions of the types and of their members.\npub(super) const FACTS: &[TypeFacts] = &[\n"
                .to_owned();
        for (name, definition) in types {
            let revisions = RevisionSet::of(&definition.revisions).expression(&mut self.revisions);
            let official = name.rsplit('.').next().unwrap_or(name);
            let _ = writeln!(
                out,
                "TypeFacts {{ name: \"{}\", official_name: \"{official}\", revisions: {revisions}, members: &[",
                type_path(definition)
            );
            if let Shape::Struct { members } = &definition.shape {
                for (wire, member) in members {
                    self.gate.insert("MemberFacts");
                    let present = member.revisions.as_ref().unwrap_or(&definition.revisions);
                    let required = match &member.required {
                        Required::Never => &Vec::new(),
                        Required::Always => present,
                        Required::In(revisions) => revisions,
                    };
                    let present = RevisionSet::of(present).expression(&mut self.revisions);
                    let required = RevisionSet::of(required).expression(&mut self.revisions);
                    let _ = writeln!(out, "MemberFacts::new(\"{wire}\", {present}, {required}),");
                }
            }
            out.push_str("], variants: &[");
            if let Shape::Union { variants, .. } = &definition.shape {
                for variant in variants {
                    self.gate.insert("VariantFacts");
                    let revisions = RevisionSet::of(&variant.revisions).expression(&mut self.revisions);
                    let _ = writeln!(
                        out,
                        "VariantFacts {{ name: \"{}\", tag: {:?}, revisions: {revisions} }},",
                        variant.rust, variant.tag
                    );
                }
            }
            out.push_str("] },\n");
        }
        out.push_str("];\n");
        out
    }

    /// Emits the method names.
    pub(super) fn methods(&mut self) -> String {
        self.macros.insert("open_set");
        let mut out = "open_set! {\n    /// The name of a request or notification.\n    ///\n    \
             /// The constants are the methods of all revisions and of the tasks extension; see [`gate`](crate::gate)\n    \
             /// for the revisions and directions of each.\n    pub struct Method {\n"
            .to_owned();
        for (name, method) in &self.model.methods {
            let doc = doc_lines(&format!("{}\n\n{}", self.docs.method_doc(name), who(method)), "///");
            for line in doc.lines() {
                let _ = writeln!(out, "        {line}");
            }
            let _ = writeln!(out, "        {} = \"{name}\",", method.rust);
        }
        out.push_str("    }\n}\n");
        out
    }

    /// Emits the facts about methods.
    pub(super) fn method_facts(&mut self) -> String {
        self.gate.extend(["ExtensionFacts", "MethodFacts", "MethodKind", "Revisions"]);
        let mut out =
            "/// The facts about all methods, by name.\npub(crate) const METHODS: &[MethodFacts] = &[\n".to_owned();
        for (name, method) in &self.model.methods {
            let kind = match method.kind {
                MethodKind::Request => "Request",
                MethodKind::Notification => "Notification",
            };
            let mut set = |names: &[String]| RevisionSet::of(names).expression(&mut self.revisions);
            let extension = match &method.extension {
                Some(extension) => format!(
                    "Some(ExtensionFacts {{ id: \"{}\", from_client: {}, from_server: {} }})",
                    extension.id,
                    set(&extension.client),
                    set(&extension.server)
                ),
                None => "None".to_owned(),
            };
            let _ = writeln!(
                out,
                "MethodFacts {{ name: \"{name}\", kind: MethodKind::{kind}, from_client: {}, from_server: {}, input_request: {}, cacheable: {}, \
                 may_require_input: {}, listen_only: {}, name_member: {:?}, extension: {extension} }},",
                set(&method.client),
                set(&method.server),
                set(&method.embedded),
                set(&method.cacheable),
                set(&method.may_ask),
                set(&method.listen),
                method.name_source
            );
        }
        out.push_str("];\n\n/// Returns the index of a method in [`METHODS`].\npub(crate) fn index_of(name: &str) -> Option<usize> {\n");
        out.push_str("Some(match name {\n");
        for (index, name) in self.model.methods.keys().enumerate() {
            let _ = writeln!(out, "\"{name}\" => {index},");
        }
        out.push_str("_ => return None,\n})\n}\n");
        out
    }

    /// Emits the table by which the tests read and write every type.
    pub(super) fn registry(&self) -> String {
        let mut out = "//! Generated by `cargo xtask codegen`, do not edit by hand.\n//!\n\
             //! Every generated type behind the same functions, by its name in the official schemas.\n\n\
             use mcp_types::*;\n\nuse crate::codec::Codec;\n\n\
             /// The types, by name.\npub const REGISTRY: &[(&str, Codec)] = &[\n"
            .to_owned();
        for (name, definition) in &self.model.types {
            // A type that a tagged union holds is complete only inside that union.
            let union = self.model.types.iter().find(|(_, other)| match &other.shape {
                Shape::Union { by: Discriminator::Tag(_), variants } => {
                    variants.iter().any(|variant| variant.holds == *name)
                }
                Shape::Union { .. } | Shape::Struct { .. } | Shape::Strings { .. } | Shape::Alias(_) => false,
            });
            let target = union.map_or(definition, |(_, union)| union);
            let constructor = match &target.shape {
                Shape::Strings { .. } => "uniform",
                Shape::Struct { .. } | Shape::Union { .. } | Shape::Alias(_) => "of",
            };
            let _ = writeln!(out, "(\"{name}\", Codec::{constructor}::<{}>()),", type_path(target));
        }
        out.push_str("];\n");
        out
    }
}

/// The path of a type within the crate, without the crate's name.
fn type_path(definition: &Type) -> String {
    match definition.topic.as_str() {
        module @ ("core_tasks" | "tasks") => format!("{module}::{}", definition.rust),
        _ => definition.rust.clone(),
    }
}

/// Who sends a method, in words.
fn who(method: &Method) -> String {
    let say = |revisions: &[String], who: &str| {
        (!revisions.is_empty()).then(|| {
            let words = RevisionSet::of(revisions).words();
            let mut letters = words.trim_end_matches('.').chars();
            let first = letters.next().map(|first| first.to_ascii_lowercase());
            format!("{who} {}{}", first.map(String::from).unwrap_or_default(), letters.as_str())
        })
    };
    let senders = [
        say(&method.client, "sent by the client"),
        say(&method.server, "sent by the server"),
        say(&method.embedded, "an input request"),
        method
            .extension
            .as_ref()
            .and_then(|extension| say(&extension.client, "sent by the client with the tasks extension")),
        method
            .extension
            .as_ref()
            .and_then(|extension| say(&extension.server, "sent by the server with the tasks extension")),
    ];
    let mut text = senders.into_iter().flatten().collect::<Vec<_>>().join("; ");
    if let Some(first) = text.get(..1).map(str::to_ascii_uppercase) {
        text.replace_range(..1, &first);
    }
    text + "."
}
