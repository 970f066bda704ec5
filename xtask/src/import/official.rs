//! Reads one official schema file into a normalised revision.
//!
//! The files are generated from TypeScript and differ in style from revision to revision (inline or
//! named params, flattened bases, lost unions). What comes out here looks the same for all of them:
//! types with members, and methods with params and direction. A node that is not understood stops
//! the import with its path, because a guess would end up in everybody's types.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::curation::Curation;
use crate::model::{Kind, MethodKind};

/// One revision, normalised.
#[derive(Debug, Default)]
pub(crate) struct Revision {
    pub(crate) types: BTreeMap<String, Definition>,
    pub(crate) methods: BTreeMap<String, MethodUse>,
}

/// A type as one revision has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Definition {
    Struct(BTreeMap<String, Field>),
    Strings(Vec<String>),
    Union(BTreeSet<String>),
    Alias(Kind),
}

/// A member as one revision has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) kind: Kind,
    pub(crate) required: bool,
    /// What the file says, where a decision of the curation stands in its place.
    pub(crate) spelled: Option<String>,
}

/// A method as one revision has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MethodUse {
    pub(crate) kind: MethodKind,
    pub(crate) params: String,
    pub(crate) result: Option<String>,
    pub(crate) client: bool,
    pub(crate) server: bool,
    pub(crate) embedded: bool,
    pub(crate) may_ask: bool,
}

/// Reads the file of `revision`.
pub(crate) fn read(revision: &str, file: &Value, curation: &Curation) -> Result<Revision, String> {
    let definitions = file
        .get("$defs")
        .or_else(|| file.get("definitions"))
        .and_then(Value::as_object)
        .ok_or("the file has neither `$defs` nor `definitions`")?;
    let mut reader = Reader { revision, definitions, curation, out: Revision::default() };
    for (name, node) in definitions {
        reader.definition(name, node).map_err(|fault| format!("{revision}: {fault}"))?;
    }
    reader.directions().map_err(|fault| format!("{revision}: {fault}"))?;
    for (at, beyond) in &curation.beyond_files {
        if beyond.revisions.contains(revision) {
            reader.beyond(at, &beyond.kind).map_err(|fault| format!("{revision}: {fault}"))?;
        }
    }
    for (name, union) in &curation.union {
        if let Some(variants) = union.implied.get(revision) {
            reader.add(name, Definition::Union(variants.iter().cloned().collect()))?;
        }
    }
    Ok(reader.out)
}

struct Reader<'a> {
    revision: &'a str,
    definitions: &'a Map<String, Value>,
    curation: &'a Curation,
    out: Revision,
}

impl Reader<'_> {
    fn definition(&mut self, name: &str, node: &Value) -> Result<(), String> {
        check_keywords(node, name)?;
        if self.method_of(node).is_some() && !self.curation.skips(name) {
            return self.method(name, node);
        }
        let renamed = self.curation.renamed(self.revision, name).to_owned();
        if renamed == name && self.curation.skips(name) {
            return Ok(());
        }
        let definition = if let Some(union) = node.get("anyOf") {
            Definition::Union(self.variants(union, name)?)
        } else if let Some(values) = node.get("enum") {
            Definition::Strings(strings(values, name)?)
        } else if self.is_struct(node) {
            Definition::Struct(self.members(&renamed, node, name)?)
        } else {
            Definition::Alias(self.kind(node, &renamed, name)?)
        };
        if let (Some(also), Definition::Struct(members)) = (self.curation.also(self.revision, name), &definition) {
            let mut members = members.clone();
            members.retain(|member, _| !also.without.contains(member));
            self.add(&also.name, Definition::Struct(members))?;
        }
        self.add(&renamed, definition)
    }

    /// Enters a type; the same name twice (a rename, an inline shape used in two places) merges.
    fn add(&mut self, name: &str, definition: Definition) -> Result<(), String> {
        match (self.out.types.get_mut(name), definition) {
            (None, definition) => {
                self.out.types.insert(name.to_owned(), definition);
            }
            (Some(Definition::Struct(known)), Definition::Struct(more)) => {
                for (member, field) in known.iter_mut() {
                    field.required &= more.get(member).is_some_and(|other| other.required);
                }
                for (member, field) in more {
                    let entry =
                        known.entry(member.clone()).or_insert_with(|| Field { required: false, ..field.clone() });
                    if entry.kind != field.kind {
                        return Err(format!("{name}.{member} is both `{}` and `{}`", entry.kind, field.kind));
                    }
                }
            }
            (Some(Definition::Union(known)), Definition::Union(more)) => known.extend(more),
            (Some(known), definition) if *known == definition => {}
            (Some(known), definition) => return Err(format!("{name} is both {known:?} and {definition:?}")),
        }
        Ok(())
    }

    /// Adds a member that the file lacks.
    fn beyond(&mut self, at: &str, kind: &Kind) -> Result<(), String> {
        let (owner, member) = at.split_once('.').ok_or_else(|| format!("[beyond_files] {at}: expected Type.member"))?;
        match self.out.types.get_mut(owner) {
            Some(Definition::Struct(members)) if !members.contains_key(member) => {
                members.insert(member.to_owned(), Field { kind: kind.clone(), required: false, spelled: None });
                Ok(())
            }
            Some(_) => Err(format!("[beyond_files] {at}: the file has it by now")),
            None => Err(format!("[beyond_files] {at}: no such type")),
        }
    }

    /// Whether the node describes an object with members of its own.
    fn is_struct(&self, node: &Value) -> bool {
        node.get("properties").is_some() || node.get("allOf").is_some()
    }

    fn members(&mut self, owner: &str, node: &Value, path: &str) -> Result<BTreeMap<String, Field>, String> {
        let mut fields = BTreeMap::new();
        for part in node.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            let part = match reference(part) {
                Some(name) => {
                    self.definitions.get(name).ok_or_else(|| format!("{path}: no definition `{name}`"))?.clone()
                }
                None => part.clone(),
            };
            fields.extend(self.members(owner, &part, path)?);
        }
        let required: BTreeSet<&str> =
            node.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let known = node.get("properties").and_then(Value::as_object);
        if let Some(stray) = required.iter().find(|name| !known.is_some_and(|known| known.contains_key(**name))) {
            return Err(format!("{path}/required: `{stray}` is not a member"));
        }
        for (member, value) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let at = format!("{owner}.{member}");
            let kind = if member == "_meta" && reference(value).is_none() && self.curation.kind(&at).is_none() {
                self.metadata(owner, value)?
            } else {
                self.kind(value, &at, &format!("{path}/properties/{member}"))?
            };
            let spelled = self.curation.kind(&at).is_some().then(|| spell(value));
            fields.insert(member.clone(), Field { kind, required: required.contains(member.as_str()), spelled });
        }
        Ok(fields)
    }

    /// The kind of an inline `_meta`: revisions before 2026-07-28 do not name the four sorts apart.
    fn metadata(&mut self, owner: &str, node: &Value) -> Result<Kind, String> {
        let name = if owner.ends_with("Params") && owner.contains("Request") {
            "RequestMetaObject"
        } else if owner.ends_with("Params") {
            "NotificationMetaObject"
        } else if owner.ends_with("Result") {
            "ResultMetaObject"
        } else {
            return Ok(Kind::Ref("MetaObject".to_owned()));
        };
        let fields = self.members(name, node, name)?;
        self.add(name, Definition::Struct(fields))?;
        Ok(Kind::Ref(name.to_owned()))
    }

    fn kind(&mut self, node: &Value, at: &str, path: &str) -> Result<Kind, String> {
        self.spelled_out_union(node, at, path)?;
        if let Some(decided) = self.curation.kind(at) {
            return Ok(decided.clone());
        }
        if let Some(name) = reference(node) {
            return Ok(self.reference(name));
        }
        if let Some(name) = self.curation.inline(at) {
            let name = name.to_owned();
            let definition = self.inline(&name, node, path)?;
            self.add(&name, definition)?;
            return Ok(Kind::Ref(name));
        }
        let Some(node) = node.as_object() else {
            return Err(format!("{path}: expected a schema, found {node}"));
        };
        if let Some(text) = node.get("const").and_then(Value::as_str) {
            return Ok(Kind::Const(text.to_owned()));
        }
        if node.contains_key("enum") || node.contains_key("anyOf") || node.contains_key("allOf") {
            return Err(format!(
                "{path}: an inline set or union needs a name: add \"{at}\" to [inline] in curation.toml"
            ));
        }
        match node.get("type") {
            None if node.keys().all(|key| key == "description") => Ok(Kind::Any),
            None => Err(format!("{path}: a schema without `type` that is not empty")),
            Some(Value::String(kind)) => match kind.as_str() {
                "string" => Ok(Kind::String),
                "integer" => Ok(Kind::Integer),
                "number" => Ok(Kind::Number),
                "boolean" => Ok(Kind::Boolean),
                "array" => {
                    let items = node.get("items").ok_or_else(|| format!("{path}: a list without `items`"))?;
                    Ok(Kind::List(Box::new(self.kind(items, &format!("{at}[]"), &format!("{path}/items"))?)))
                }
                "object" => self.object(node, at, path),
                _ => Err(format!("{path}: unknown type `{kind}`")),
            },
            Some(Value::Array(kinds)) => match kinds.as_slice() {
                [Value::String(kind), Value::String(null)] if null == "null" => {
                    let single = serde_json::json!({ "type": kind });
                    Ok(Kind::Nullable(Box::new(self.kind(&single, at, path)?)))
                }
                _ => {
                    Err(format!("{path}: a choice of types needs a decision: add \"{at}\" to [kind] in curation.toml"))
                }
            },
            Some(other) => Err(format!("{path}: `type` is {other}")),
        }
    }

    /// An object without a name: a free object or a map. One with members must have a name.
    fn object(&mut self, node: &Map<String, Value>, at: &str, path: &str) -> Result<Kind, String> {
        if node.get("properties").and_then(Value::as_object).is_some_and(|members| !members.is_empty()) {
            return Err(format!("{path}: an inline object needs a name: add \"{at}\" to [inline] in curation.toml"));
        }
        match node.get("additionalProperties") {
            Some(values) if values.as_object().is_some_and(|schema| !schema.is_empty()) => {
                let path = format!("{path}/additionalProperties");
                Ok(Kind::Map(Box::new(self.kind(values, &format!("{at}{{}}"), &path)?)))
            }
            None | Some(Value::Bool(true) | Value::Object(_)) => Ok(Kind::Object),
            Some(other) => {
                Err(format!("{path}/additionalProperties: {other} closes an object, which no revision did before"))
            }
        }
    }

    fn inline(&mut self, name: &str, node: &Value, path: &str) -> Result<Definition, String> {
        if let Some(union) = node.get("anyOf") {
            Ok(Definition::Union(self.variants(union, path)?))
        } else if let Some(values) = node.get("enum") {
            Ok(Definition::Strings(strings(values, path)?))
        } else {
            Ok(Definition::Struct(self.members(name, node, path)?))
        }
    }

    /// Up to 2025-06-18 some members spell a union out that later got a name.
    fn spelled_out_union(&mut self, node: &Value, at: &str, path: &str) -> Result<(), String> {
        let Some(variants) = node.get("anyOf").and_then(Value::as_array) else { return Ok(()) };
        let Some((name, _)) = self.curation.union.iter().find(|(_, union)| union.also.contains(at)) else {
            return Ok(());
        };
        let single: Vec<Value> = variants.iter().filter(|variant| reference(variant).is_some()).cloned().collect();
        let variants = self.variants(&Value::Array(single), path)?;
        self.add(name, Definition::Union(variants))
    }

    fn variants(&self, union: &Value, path: &str) -> Result<BTreeSet<String>, String> {
        let variants = union.as_array().ok_or_else(|| format!("{path}/anyOf: expected a list"))?;
        variants
            .iter()
            .map(|variant| {
                let name =
                    reference(variant).ok_or_else(|| format!("{path}/anyOf: expected a reference, found {variant}"))?;
                Ok(self.curation.renamed(self.revision, name).to_owned())
            })
            .collect()
    }

    fn reference(&self, name: &str) -> Kind {
        let renamed = self.curation.renamed(self.revision, name);
        self.curation.reference(renamed).cloned().unwrap_or_else(|| Kind::Ref(renamed.to_owned()))
    }

    /// The method that a definition wraps, if it is a request or a notification.
    fn method_of<'n>(&self, node: &'n Value) -> Option<&'n str> {
        node.pointer("/properties/method/const").and_then(Value::as_str)
    }

    fn method(&mut self, name: &str, node: &Value) -> Result<(), String> {
        let Some(method) = self.method_of(node).map(str::to_owned) else { return Ok(()) };
        let (kind, base) = match (name.strip_suffix("Request"), name.strip_suffix("Notification")) {
            (Some(base), _) => (MethodKind::Request, base),
            (None, Some(base)) => (MethodKind::Notification, base),
            (None, None) => {
                return Err(format!("{name}: a definition with a `method` is named neither Request nor Notification"));
            }
        };
        let params = self.params(name, &method, kind, node.pointer("/properties/params"))?;
        if self.definitions.contains_key("InputRequest") && node.pointer("/properties/jsonrpc").is_none() {
            self.input_request(name, &method, &params, node)?;
        }
        let result = (kind == MethodKind::Request).then(|| {
            let result = format!("{base}Result");
            if self.definitions.contains_key(&result) { result } else { "EmptyResult".to_owned() }
        });
        let may_ask = self
            .definitions
            .get(&format!("{base}ResultResponse"))
            .and_then(|response| response.pointer("/properties/result/anyOf"))
            .and_then(Value::as_array)
            .is_some_and(|results| results.iter().any(|result| reference(result) == Some("InputRequiredResult")));
        let entry = MethodUse { kind, params, result, client: false, server: false, embedded: false, may_ask };
        self.out.methods.insert(method, entry);
        Ok(())
    }

    /// The type of a method's params; inline ones get the name that 2025-11-25 gave them.
    // CG-4
    fn params(&mut self, name: &str, method: &str, kind: MethodKind, node: Option<&Value>) -> Result<String, String> {
        let (plain, metadata) = match kind {
            MethodKind::Request => ("RequestParams", "RequestMetaObject"),
            MethodKind::Notification => ("NotificationParams", "NotificationMetaObject"),
        };
        let Some(node) = node else { return Ok(plain.to_owned()) };
        if let Some(name) = reference(node) {
            return Ok(name.to_owned());
        }
        let members: BTreeSet<&str> = node
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        let own: BTreeSet<&str> = members.iter().copied().filter(|name| *name != "_meta").collect();
        let target = if let Some(target) = self.curation.params(method) {
            target.to_owned()
        } else if own.is_empty() {
            plain.to_owned()
        } else if own.iter().eq(["cursor"].iter()) {
            "PaginatedRequestParams".to_owned()
        } else {
            format!("{name}Params")
        };
        // The file names the same shape elsewhere, and says there what is required.
        if target == plain && self.definitions.contains_key(plain) {
            return Ok(target);
        }
        let mut fields = self.members(&target, node, &format!("{name}/properties/params"))?;
        // Bases are flattened away (CG-2): inline params leave out the `_meta` that all params have.
        if !fields.contains_key("_meta") {
            let token = Field { kind: Kind::Ref("ProgressToken".to_owned()), required: false, spelled: None };
            let known = match kind {
                MethodKind::Request => BTreeMap::from([("progressToken".to_owned(), token)]),
                MethodKind::Notification => BTreeMap::new(),
            };
            if !self.out.types.contains_key(metadata) {
                self.add(metadata, Definition::Struct(known))?;
            }
            fields.insert(
                "_meta".to_owned(),
                Field { kind: Kind::Ref(metadata.to_owned()), required: false, spelled: None },
            );
        }
        self.add(&target, Definition::Struct(fields))?;
        Ok(target)
    }

    /// A request that travels inside a result: an object of its own, without an envelope.
    // M-21
    fn input_request(&mut self, name: &str, method: &str, params: &str, node: &Value) -> Result<(), String> {
        let required =
            node.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|n| n == "params"));
        let fields = BTreeMap::from([
            ("method".to_owned(), Field { kind: Kind::Const(method.to_owned()), required: true, spelled: None }),
            ("params".to_owned(), Field { kind: Kind::Ref(params.to_owned()), required, spelled: None }),
        ]);
        self.add(name, Definition::Struct(fields))
    }

    /// Who may send what, from the unions that say nothing else.
    // CG-14
    fn directions(&mut self) -> Result<(), String> {
        type Mark = fn(&mut MethodUse);
        let unions: [(&str, Mark); 5] = [
            ("ClientRequest", |method| method.client = true),
            ("ClientNotification", |method| method.client = true),
            ("ServerRequest", |method| method.server = true),
            ("ServerNotification", |method| method.server = true),
            ("InputRequest", |method| method.embedded = true),
        ];
        for (name, mark) in unions {
            let Some(union) = self.definitions.get(name) else { continue };
            let inlined = std::slice::from_ref(union);
            let variants = union.get("anyOf").and_then(Value::as_array).map_or(inlined, Vec::as_slice);
            for variant in variants {
                let node = match reference(variant) {
                    Some(target) => {
                        self.definitions.get(target).ok_or_else(|| format!("{name}: no definition `{target}`"))?
                    }
                    None => variant,
                };
                let method = self.method_of(node).ok_or_else(|| format!("{name}: {variant} has no `method`"))?;
                let entry =
                    self.out.methods.get_mut(method).ok_or_else(|| format!("{name}: `{method}` is not defined"))?;
                mark(entry);
            }
        }
        Ok(())
    }
}

/// Refuses keywords that no revision has used so far, at any depth: they may mean something that the model cannot say.
fn check_keywords(node: &Value, path: &str) -> Result<(), String> {
    let Some(keywords) = node.as_object() else {
        return if node.is_boolean() { Ok(()) } else { Err(format!("{path}: expected a schema, found {node}")) };
    };
    for (keyword, value) in keywords {
        let path = format!("{path}/{keyword}");
        match keyword.as_str() {
            "$ref" | "const" | "description" | "enum" | "format" | "maxItems" | "maximum" | "minimum" | "required"
            | "type" => {}
            "additionalProperties" if value == false => {
                return Err(format!("{path}: false closes an object, which no revision did before"));
            }
            "additionalProperties" | "items" => check_keywords(value, &path)?,
            "properties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    check_keywords(value, &format!("{path}/{name}"))?;
                }
            }
            "allOf" | "anyOf" => {
                for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                    check_keywords(value, &format!("{path}/{index}"))?;
                }
            }
            _ => return Err(format!("{path}: a keyword that no revision used before")),
        }
    }
    Ok(())
}

/// The name that a reference node refers to; both prefixes are in use.
// CG-1
fn reference(node: &Value) -> Option<&str> {
    let target = node.get("$ref")?.as_str()?;
    target.strip_prefix("#/$defs/").or_else(|| target.strip_prefix("#/definitions/"))
}

fn strings(values: &Value, path: &str) -> Result<Vec<String>, String> {
    let values = values.as_array().ok_or_else(|| format!("{path}/enum: expected a list"))?;
    values
        .iter()
        .map(|value| value.as_str().map(str::to_owned).ok_or_else(|| format!("{path}/enum: {value} is not a string")))
        .collect()
}

/// A schema in few words, for the report of what changed between two revisions.
fn spell(node: &Value) -> String {
    let list = |key: &str, between: &str| {
        node.get(key).and_then(Value::as_array).map(|parts| parts.iter().map(spell).collect::<Vec<_>>().join(between))
    };
    if let Some(name) = reference(node) {
        return name.to_owned();
    }
    if let Some(union) = list("anyOf", " | ").or_else(|| list("allOf", " & ")) {
        return union;
    }
    if let Some(value) = node.get("const").or_else(|| node.get("enum")) {
        return value.to_string();
    }
    let members = node.get("properties").and_then(Value::as_object);
    match node.get("type") {
        None => "any".to_owned(),
        Some(Value::String(kind)) if kind == "array" => {
            format!("list<{}>", node.get("items").map(spell).unwrap_or_default())
        }
        Some(Value::String(kind)) => members.map_or_else(
            || kind.clone(),
            |members| {
                format!(
                    "{{ {} }}",
                    members
                        .iter()
                        .map(|(name, value)| format!("{name}: {}", spell(value)))
                        .collect::<Vec<_>>()
                        .join(", ")
                )
            },
        ),
        Some(kinds) => kinds.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_curation;
    use super::*;

    fn read_definitions(definitions: Value) -> Result<Revision, String> {
        read("2024-11-05", &json!({ "definitions": definitions }), &read_curation()?)
    }

    fn refused(definitions: Value) -> String {
        read_definitions(definitions).expect_err("refused")
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_path() {
        let member = |schema: Value| json!({ "Root": { "type": "object", "properties": { "uri": schema } } });
        assert_eq!(refused(member(json!({ "type": "date" }))), "2024-11-05: Root/properties/uri: unknown type `date`");
        assert_eq!(
            refused(member(json!({ "type": "array" }))),
            "2024-11-05: Root/properties/uri: a list without `items`"
        );
        assert_eq!(
            refused(member(json!({ "type": "object", "additionalProperties": false }))),
            "2024-11-05: Root/properties/uri/additionalProperties: false closes an object, which no revision did before"
        );
        let closed = json!({ "Root": { "type": "object", "additionalProperties": false, "properties": {} } });
        assert!(refused(closed).contains("Root/additionalProperties: false closes an object"));
        assert!(
            refused(member(json!({ "type": "string", "maxLength": 3 })))
                .contains("Root/properties/uri/maxLength: a keyword")
        );
        let stray = json!({ "Root": { "type": "object", "properties": {}, "required": ["uri"] } });
        assert!(refused(stray).contains("Root/required: `uri` is not a member"));
        for (schema, hint) in [
            (json!({ "enum": ["a"], "type": "string" }), "add \"Root.uri\" to [inline]"),
            (json!({ "type": "object", "properties": { "a": {} } }), "add \"Root.uri\" to [inline]"),
            (json!({ "type": ["string", "integer"] }), "add \"Root.uri\" to [kind]"),
        ] {
            let fault = refused(member(schema));
            assert!(fault.contains("Root/properties/uri") && fault.contains(hint), "{fault}");
        }
        assert!(read("2024-11-05", &json!({}), &read_curation().expect("curation")).is_err());
    }

    /// Members may be named like keywords of JSON Schema.
    // covers: CG-11
    #[test]
    fn members_may_be_called_like_keywords() {
        let revision = read_definitions(json!({
            "Root": { "type": "object", "properties": { "anyOf": { "type": "string" }, "enum": { "type": "array", "items": { "type": "string" } } } }
        }));
        let Definition::Struct(members) = &revision.expect("read").types["Root"] else { panic!("a struct") };
        assert_eq!(members["anyOf"].kind, Kind::String);
        assert_eq!(members["enum"].kind, Kind::List(Box::new(Kind::String)));
    }

    /// Inline params get a name and the `_meta` that their base had.
    // covers: CG-2, CG-4
    #[test]
    fn inline_params_are_named_after_their_method() {
        let revision = read_definitions(json!({
            "CallToolRequest": {
                "type": "object",
                "properties": {
                    "method": { "const": "tools/call", "type": "string" },
                    "params": { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] },
                },
            },
            "ClientRequest": { "anyOf": [{ "$ref": "#/definitions/CallToolRequest" }] },
        }))
        .expect("read");
        let Definition::Struct(members) = &revision.types["CallToolRequestParams"] else { panic!("a struct") };
        assert!(members["name"].required);
        assert_eq!(members["_meta"].kind, Kind::Ref("RequestMetaObject".to_owned()));
        assert!(revision.methods["tools/call"].client);
    }
}
