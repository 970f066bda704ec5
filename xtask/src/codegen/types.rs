//! Emits structs, unions, sets of strings and aliases.

use std::fmt::Write;

use super::Generator;
use super::docs::{doc_lines, module_path};
use super::revisions::RevisionSet;
use crate::model::{Discriminator, Kind, Member, Required, Shape, StringValue, Type, Variant};

/// Members that the protocol layer adds and removes per era: optional in Rust whatever a revision demands.
pub(super) const CODEC_MEMBERS: [&str; 4] = ["_meta", "resultType", "ttlMs", "cacheScope"];

/// The width of a line, as in `rustfmt.toml`.
const MAX_WIDTH: usize = 120;

/// Types whose constructor is written by hand, because a required member has a natural default.
const CONSTRUCTOR_BY_HAND: [&str; 2] = ["Tool", "ElicitRequestURLParams"];

/// Members that come last: about the page or the round, not about the thing.
const LAST: [&str; 7] = ["nextCursor", "ttlMs", "cacheScope", "inputResponses", "requestState", "task", "_meta"];

/// The order in which members read best; others follow by name.
const READING_ORDER: [&str; 32] = [
    "resultType",
    "ref",
    "method",
    "type",
    "id",
    "toolUseId",
    "taskId",
    "status",
    "const",
    "level",
    "supportedVersions",
    "protocolVersion",
    "name",
    "uri",
    "uriTemplate",
    "title",
    "description",
    "version",
    "role",
    "message",
    "messages",
    "text",
    "blob",
    "data",
    "mimeType",
    "content",
    "structuredContent",
    "isError",
    "inputSchema",
    "outputSchema",
    "params",
    "progressToken",
];

impl Generator<'_> {
    /// Emits one type.
    pub(super) fn definition(&mut self, name: &str, definition: &Type) -> String {
        let since = RevisionSet::of(&definition.revisions).words();
        let doc = doc_lines(&format!("{}\n\n{since}", self.docs.type_doc(name)), "///");
        match &definition.shape {
            Shape::Struct { .. } => self.structure(name, definition, &doc),
            Shape::Strings { open: true, values } => self.open_strings(name, definition, values, &doc),
            Shape::Strings { open: false, values } => self.closed_strings(name, definition, values, &doc),
            Shape::Union { by, variants } => self.union(definition, by, variants, &doc),
            Shape::Alias(kind) => {
                let kind = self.rust_type(kind);
                format!("{doc}pub type {} = {kind};\n\n", definition.rust)
            }
        }
    }

    fn structure(&mut self, name: &str, definition: &Type, doc: &str) -> String {
        let members = self.members_in_order(name, definition);
        let rust = &definition.rust;
        let default = if members.iter().any(|(wire, member)| self.is_bare(name, wire, member) && !is_constant(member)) {
            ""
        } else {
            "Default, "
        };
        self.uses(["Serialize"]);
        let mut out = format!(
            "{doc}#[derive(Clone, Debug, {default}PartialEq, Serialize)]\n\
             #[cfg_attr(feature = \"schemars\", derive(schemars::JsonSchema))]\n"
        );
        if members.iter().any(|(wire, member)| member.rust != **wire && camel_case(&member.rust) == **wire) {
            out.push_str("#[serde(rename_all = \"camelCase\")]\n");
        }
        let renames = out.contains("rename_all");
        let _ = writeln!(out, "#[non_exhaustive]\npub struct {rust} {{");
        for (wire, member) in &members {
            out.push_str(&self.field(name, wire, member, renames));
        }
        self.uses(["JsonObject"]);
        out.push_str("/// Unknown members, preserved as received.\n#[serde(flatten)]\npub extra: JsonObject,\n}\n\n");
        if default.is_empty() && !CONSTRUCTOR_BY_HAND.contains(&name) {
            out.push_str(&self.constructor(name, definition, &members));
        }
        out.push_str(&self.setters(name, definition, &members));
        out.push_str(&self.reader(name, definition, &members));
        out
    }

    /// Emits the table by which the struct is read.
    fn reader(&mut self, name: &str, definition: &Type, members: &[(&String, &Member)]) -> String {
        self.macros.insert("object");
        let mut lines = String::new();
        for (wire, member) in members {
            let bare = self.is_bare(name, wire, member);
            let mode = match (&member.kind, bare) {
                (Kind::Integer, true) => "required_integer",
                (Kind::Integer, false) => "optional_integer",
                (Kind::Nullable(inner), _) if **inner == Kind::Integer => "optional_integer",
                (Kind::Nullable(_), _) => "optional",
                (Kind::Any, false) => "present",
                (_, true) => "required",
                (_, false) => "optional",
            };
            let _ = writeln!(lines, "    \"{wire}\" => {}: {mode},", member.rust);
        }
        format!("object!({} {{\n{lines}}} keep extra);\n\n", definition.rust)
    }

    fn field(&mut self, name: &str, wire: &str, member: &Member, renames: bool) -> String {
        let mut notes = self.docs.member_doc(name, wire);
        if let Some(revisions) = &member.revisions {
            let _ = write!(notes, "\n\n{}", RevisionSet::of(revisions).words());
        }
        if let Required::In(revisions) = &member.required {
            let _ = write!(notes, "\n\nRequired: {}", lower_first(&RevisionSet::of(revisions).words()));
        }
        let mut out = if is_constant(member) { String::new() } else { doc_lines(&notes, "///") };
        let mut attributes = Vec::new();
        let expected = if renames { camel_case(&member.rust) } else { member.rust.clone() };
        if expected != wire {
            attributes.push(format!("rename = \"{wire}\""));
        }
        let kind = self.member_type(member);
        let bare = self.is_bare(name, wire, member);
        if !bare {
            attributes.push("skip_serializing_if = \"Option::is_none\"".to_owned());
        }
        if !attributes.is_empty() {
            let _ = writeln!(out, "#[serde({})]", attributes.join(", "));
        }
        let visibility = if is_constant(member) { "pub(crate) " } else { "pub " };
        let kind = if bare { kind } else { format!("Option<{kind}>") };
        let _ = writeln!(out, "{visibility}{}: {kind},", member.rust);
        out
    }

    fn member_type(&mut self, member: &Member) -> String {
        let kind = self.rust_type(&member.kind);
        if member.boxed { format!("Box<{kind}>") } else { kind }
    }

    fn constructor(&mut self, name: &str, definition: &Type, members: &[(&String, &Member)]) -> String {
        let mut parameters = Vec::new();
        let mut fields = Vec::new();
        for (wire, member) in members {
            let rust = &member.rust;
            if is_constant(member) {
                fields.push(format!("{rust}: {}", self.rust_type(&member.kind)));
            } else if self.is_bare(name, wire, member) {
                let kind = self.rust_type(&member.kind);
                if self.has_conversions(&member.kind) {
                    parameters.push(format!("{rust}: impl Into<{kind}>"));
                    fields.push(format!("{rust}: {rust}.into()"));
                } else {
                    parameters.push(format!("{rust}: {kind}"));
                    fields.push(rust.clone());
                }
            } else {
                fields.push(format!("{rust}: None"));
            }
        }
        fields.push("extra: JsonObject::new()".to_owned());
        let rust = &definition.rust;
        let rest = if parameters.len() == members.len() { "" } else { "; the optional ones are empty" };
        format!(
            "impl {rust} {{\n/// Creates {} `{rust}` from its required members{rest}.\n#[must_use]\npub fn new({}) -> Self {{\n\
             Self {{ {} }}\n}}\n}}\n\n",
            article(rust),
            parameters.join(", "),
            fields.join(", ")
        )
    }

    /// Whether other types turn into this one, so that a constructor should take them.
    fn has_conversions(&self, kind: &Kind) -> bool {
        match kind {
            Kind::String | Kind::Number | Kind::Any | Kind::Object | Kind::OneOrMany(_) => true,
            Kind::Integer | Kind::Boolean | Kind::Const(_) | Kind::List(_) | Kind::Map(_) | Kind::Nullable(_) => false,
            Kind::Ref(name) if name == "LoggingLevel" => false,
            Kind::Ref(name) => self.model.types.get(name).is_none_or(|definition| match &definition.shape {
                Shape::Union { .. } => true,
                Shape::Strings { open, .. } => *open,
                Shape::Struct { .. } | Shape::Alias(_) => false,
            }),
        }
    }

    fn setters(&mut self, name: &str, definition: &Type, members: &[(&String, &Member)]) -> String {
        let mut lines = Vec::new();
        for (wire, member) in members {
            if !self.is_bare(name, wire, member) {
                lines.push(format!("{}: {}", member.rust, self.member_type(member)));
            }
        }
        if lines.is_empty() {
            return String::new();
        }
        self.macros.insert("setters");
        // Rustfmt leaves most macro bodies alone, so the lines are laid out here.
        let short = format!("setters!({} {{ {} }});\n\n", definition.rust, lines.join(", "));
        if short.trim_end().len() <= MAX_WIDTH {
            return short;
        }
        let lines: String = lines.iter().map(|line| format!("    {line},\n")).collect();
        format!("setters!({} {{\n{lines}}});\n\n", definition.rust)
    }

    fn open_strings(&mut self, name: &str, definition: &Type, values: &[StringValue], doc: &str) -> String {
        self.macros.insert("open_set");
        self.string_set("open_set", "struct", name, definition, values, doc)
    }

    fn closed_strings(&mut self, name: &str, definition: &Type, values: &[StringValue], doc: &str) -> String {
        self.macros.insert("closed_set");
        self.string_set("closed_set", "enum", name, definition, values, doc)
    }

    /// Lays a set of strings out; rustfmt leaves macro bodies alone.
    fn string_set(
        &self,
        set: &str,
        item: &str,
        name: &str,
        definition: &Type,
        values: &[StringValue],
        doc: &str,
    ) -> String {
        let indent = |text: &str, by: &str| text.lines().map(|line| format!("{by}{line}\n")).collect::<String>();
        let mut out = format!("{set}! {{\n{}    pub {item} {} {{\n", indent(doc, "    "), definition.rust);
        for value in values {
            out.push_str(&indent(&doc_lines(&self.docs.member_doc(name, &value.wire), "///"), "        "));
            let _ = writeln!(out, "        {} = \"{}\",", value.rust, value.wire);
        }
        out.push_str("    }\n}\n\n");
        out
    }

    fn union(&mut self, definition: &Type, by: &Discriminator, variants: &[Variant], doc: &str) -> String {
        self.uses(["Serialize"]);
        let rust = &definition.rust;
        let tag = match by {
            Discriminator::Tag(tag) => format!("tag = \"{tag}\""),
            Discriminator::Members => "untagged".to_owned(),
        };
        let mut out = format!(
            "{doc}#[derive(Clone, Debug, PartialEq, Serialize)]\n\
             #[cfg_attr(feature = \"schemars\", derive(schemars::JsonSchema))]\n\
             #[serde({tag})]\n#[non_exhaustive]\npub enum {rust} {{\n"
        );
        let mut arms = Vec::new();
        for variant in variants {
            let mut notes = self.docs.type_doc(&variant.holds);
            if variant.revisions != definition.revisions {
                let _ = write!(notes, "\n\n{}", RevisionSet::of(&variant.revisions).words());
            }
            out.push_str(&doc_lines(&notes, "///"));
            let held = self.rust_type(&Kind::Ref(variant.holds.clone()));
            if let Some(tag) = &variant.tag {
                let _ = writeln!(out, "#[serde(rename = \"{tag}\")]");
                arms.push(format!("    \"{tag}\" => {}({held}),\n", variant.rust));
            }
            let _ = writeln!(out, "{}({held}),", variant.rust);
        }
        if let Discriminator::Tag(tag) = by {
            self.uses(["JsonObject"]);
            self.macros.insert("tagged_union");
            let _ = write!(
                out,
                "/// An object with an unknown `{tag}`, preserved as received.\n#[serde(untagged)]\nUnknown(JsonObject),\n}}\n\n\
                 tagged_union!({rust} by \"{tag}\" {{\n{}}});\n\n",
                arms.concat()
            );
        } else {
            out.push_str("}\n\n");
        }
        out
    }

    /// Whether the member stands in Rust without `Option`: a type has it in all its revisions, and all demand it.
    pub(super) fn is_bare(&self, name: &str, wire: &str, member: &Member) -> bool {
        let tag = is_constant(member) && !self.is_tag(name, wire);
        let filled_in = CODEC_MEMBERS.contains(&wire) && !matches!(member.kind, Kind::Nullable(_));
        tag || (member.revisions.is_none() && member.required == Required::Always && !filled_in)
    }

    /// The members that the struct has, in reading order: not the tag, which belongs to the union around it.
    pub(super) fn members_in_order<'m>(&self, name: &str, definition: &'m Type) -> Vec<(&'m String, &'m Member)> {
        let Shape::Struct { members } = &definition.shape else { return Vec::new() };
        let mut members: Vec<_> = members.iter().filter(|(wire, _)| !self.is_tag(name, wire)).collect();
        members.sort_by_key(|(wire, member)| {
            let place = READING_ORDER.iter().position(|known| known == wire).unwrap_or(READING_ORDER.len());
            let late = LAST.iter().position(|known| known == wire);
            (late, *wire != "resultType" && !self.is_bare(name, wire, member), place, *wire)
        });
        members
    }

    /// Whether a member of a type is the tag of a union that holds the type.
    fn is_tag(&self, name: &str, wire: &str) -> bool {
        self.model.types.values().any(|definition| match &definition.shape {
            Shape::Union { by: Discriminator::Tag(tag), variants } => {
                tag == wire && variants.iter().any(|variant| variant.holds == name)
            }
            Shape::Union { .. } | Shape::Struct { .. } | Shape::Strings { .. } | Shape::Alias(_) => false,
        })
    }

    /// The Rust type of a kind.
    pub(super) fn rust_type(&mut self, kind: &Kind) -> String {
        match kind {
            Kind::String => "String".to_owned(),
            Kind::Integer => "i64".to_owned(),
            Kind::Boolean => "bool".to_owned(),
            Kind::Number => self.used("crate", "Number"),
            Kind::Any => self.used("crate", "RawJson"),
            Kind::Object => self.used("crate", "RawObject"),
            Kind::Const(text) => {
                self.used("crate::codec::constant", &format!("{}Constant", crate::names::variant(text)))
            }
            Kind::Ref(name) => match self.model.types.get(name) {
                Some(definition) if definition.topic == self.topic => definition.rust.clone(),
                Some(definition) => self.used(module_path(&definition.topic), &definition.rust),
                None if name == "MetaObject" => self.used("crate", "Meta"),
                None => self.used("crate", name),
            },
            Kind::List(inner) => format!("Vec<{}>", self.rust_type(inner)),
            Kind::Map(inner) => {
                self.used("crate", "OrderedMap");
                format!("OrderedMap<{}>", self.rust_type(inner))
            }
            Kind::Nullable(inner) => format!("Option<{}>", self.rust_type(inner)),
            Kind::OneOrMany(inner) => {
                self.used("crate", "OneOrMany");
                format!("OneOrMany<{}>", self.rust_type(inner))
            }
        }
    }
}

fn is_constant(member: &Member) -> bool {
    matches!(member.kind, Kind::Const(_))
}

fn article(name: &str) -> &'static str {
    if name.starts_with(['A', 'E', 'I', 'O', 'U']) && !name.starts_with("Un") || name.starts_with("Un") {
        "an"
    } else {
        "a"
    }
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}

/// What serde makes of a snake-case name under `rename_all = "camelCase"`.
fn camel_case(rust: &str) -> String {
    let mut out = String::new();
    let mut upper = false;
    for letter in rust.chars() {
        if letter == '_' {
            upper = true;
        } else {
            out.push(if upper { letter.to_ascii_uppercase() } else { letter });
            upper = false;
        }
    }
    out
}
