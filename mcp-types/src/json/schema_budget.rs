//! Bounds the cost of JSON Schema validation.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use serde_json::{Map, Value};

use crate::RawObject;
use crate::json::excerpt::{MAX_NAME_CHARS, excerpt};
use crate::json::tree::Tree;

/// A JSON Schema of an untrusted peer, with a bound for the cost of validating values against it.
///
/// Validators follow every reference, so a small schema can take exponential time or overflow the stack. Call
/// [`admit`](Self::admit) before the validation of a value: it counts the evaluations of a validator, without performing
/// them, and stops at the limits.
///
/// ```
/// use mcp_types::{RawObject, SchemaBudget};
///
/// let schema = RawObject::parse(r##"{"type":"object","properties":{"next":{"$ref":"#"}}}"##)?;
/// let budget = SchemaBudget::new(&schema)?;
/// assert!(budget.admit(&serde_json::json!({ "next": { "next": {} } }))? < 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct SchemaBudget {
    schema: Value,
}

impl SchemaBudget {
    /// The maximum size of a schema, in bytes.
    pub const MAX_BYTES: usize = 256 * 1024;

    /// The maximum nesting depth of a schema.
    pub const MAX_DEPTH: usize = 64;

    /// The maximum number of regular expressions of a schema, each of which is compiled.
    pub const MAX_PATTERNS: usize = 64;

    /// The maximum nesting depth of evaluations, each of which takes stack space.
    pub const MAX_NESTED_EVALUATIONS: usize = 512;

    /// The maximum number of evaluations for a small value; it grows in proportion to the size of the value.
    pub const MAX_EVALUATIONS: usize = 200_000;

    /// Parses and checks a schema.
    ///
    /// # Errors
    ///
    /// Returns an error if the schema exceeds a limit or has a reference to another document. Nothing is ever fetched.
    pub fn new(schema: &RawObject) -> Result<Self, String> {
        if schema.as_str().len() > Self::MAX_BYTES {
            return Err(format!("it has more than {} bytes", Self::MAX_BYTES));
        }
        let Tree(schema) = schema.decode().map_err(|fault| fault.to_string())?;
        Survey::all(&schema)?;
        Ok(Self { schema })
    }

    /// Returns the schema.
    #[must_use]
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Returns an upper bound for the number of evaluations that validate a value.
    ///
    /// # Errors
    ///
    /// Returns an error if the validation would exceed a limit.
    pub fn admit(&self, value: &Value) -> Result<usize, String> {
        let mut anchors = BTreeMap::new();
        find_anchors(&self.schema, &mut anchors);
        let most = Self::MAX_EVALUATIONS.saturating_add(size(value).saturating_mul(16));
        let mut walk = Walk { root: &self.schema, anchors, references: HashMap::new(), steps: 0, most };
        walk.evaluate(&self.schema, value, 0)?;
        Ok(walk.steps)
    }
}

/// Checks a schema, independently of values.
struct Survey<'a> {
    root: &'a Value,
    /// Whether `id` identifies a schema, which is so in draft 4 only.
    has_draft_4: bool,
    patterns: usize,
    /// The parts that were checked, and as which kind.
    seen: HashSet<(*const Value, PartKind)>,
    /// The targets of references.
    targets: Vec<&'a Value>,
}

/// The kind of a part of a schema.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum PartKind {
    /// A schema or a list of schemas; also the value of an unknown keyword.
    Schema,
    /// An object of schemas, whose names are not keywords.
    Named,
    /// Data, such as an example, whose members are not keywords.
    Data,
}

impl PartKind {
    fn of_member(self, name: &str) -> Self {
        match (self, name) {
            (Self::Data, _) | (Self::Schema, "default" | "examples" | "const" | "enum") => Self::Data,
            (
                Self::Schema,
                "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs" | "definitions",
            ) => Self::Named,
            (Self::Schema | Self::Named, _) => Self::Schema,
        }
    }
}

impl<'a> Survey<'a> {
    fn all(root: &'a Value) -> Result<(), String> {
        let mut survey =
            Self { root, has_draft_4: has_draft_4(root), patterns: 0, seen: HashSet::new(), targets: Vec::new() };
        survey.part(root, PartKind::Schema, 0)?;
        // The target of a reference is a schema, even inside of data.
        while let Some(target) = survey.targets.pop() {
            survey.part(target, PartKind::Schema, 1)?;
        }
        Ok(())
    }

    fn part(&mut self, part: &'a Value, kind: PartKind, depth: usize) -> Result<(), String> {
        let is_scalar = !part.is_object() && !part.is_array();
        if is_scalar || !self.seen.insert((std::ptr::from_ref(part), kind)) {
            return Ok(());
        }
        if depth >= SchemaBudget::MAX_DEPTH {
            return Err(format!("it is deeper than {} levels", SchemaBudget::MAX_DEPTH));
        }
        for item in part.as_array().into_iter().flatten() {
            self.part(item, kind, depth + 1)?;
        }
        for (name, member) in part.as_object().into_iter().flatten() {
            if kind != PartKind::Data {
                self.keyword(name, member, depth)?;
            }
            self.part(member, kind.of_member(name), depth + 1)?;
        }
        let most = SchemaBudget::MAX_PATTERNS;
        if self.patterns > most { Err(format!("it has more than {most} regular expressions")) } else { Ok(()) }
    }

    fn keyword(&mut self, name: &str, value: &'a Value, depth: usize) -> Result<(), String> {
        match (name, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                let fragment = fragment(self.root, reference)
                    .ok_or_else(|| format!("`{}` is not inside of it", excerpt(reference, MAX_NAME_CHARS)))?;
                self.targets.extend(self.root.pointer(&percent_decoded(fragment)));
            }
            // References inside of it would be relative to its id.
            ("$id", Value::String(id)) if depth > 0 && !id.starts_with('#') => return Err(embeds(id)),
            ("id", Value::String(id)) if depth > 0 && self.has_draft_4 && !id.starts_with('#') => {
                return Err(embeds(id));
            }
            ("pattern", Value::String(_)) => self.patterns += 1,
            ("patternProperties", Value::Object(named)) => self.patterns += named.len(),
            _ => {}
        }
        Ok(())
    }
}

fn embeds(id: &str) -> String {
    format!("it embeds another schema, `{}`", excerpt(id, MAX_NAME_CHARS))
}

/// Whether the schema or a part of it declares draft 4.
fn has_draft_4(part: &Value) -> bool {
    match part {
        Value::Object(members) => members.iter().any(|(name, member)| {
            (name == "$schema" && member.as_str().is_some_and(|draft| draft.contains("draft-04")))
                || has_draft_4(member)
        }),
        Value::Array(items) => items.iter().any(has_draft_4),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns the fragment of a reference into the schema, which may begin with the `$id` of the schema.
fn fragment<'a>(root: &Value, reference: &'a str) -> Option<&'a str> {
    if let Some(fragment) = reference.strip_prefix('#') {
        return Some(fragment);
    }
    let id = root.get("$id")?.as_str()?;
    let id = id.strip_suffix('#').unwrap_or(id);
    // Validators know the meta-schemas of the drafts by their URIs.
    if !id.contains(':') || id.contains("json-schema.org") {
        return None;
    }
    let rest = reference.strip_prefix(id)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('#') }
}

type Anchors<'a> = BTreeMap<&'a str, Vec<&'a Value>>;

fn find_anchors<'a>(schema: &'a Value, anchors: &mut Anchors<'a>) {
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), member) {
                    ("$anchor" | "$dynamicAnchor", Value::String(anchor)) => {
                        anchors.entry(anchor).or_default().push(schema);
                    }
                    ("$id" | "id", Value::String(id)) => {
                        if let Some(anchor) = id.strip_prefix('#') {
                            anchors.entry(anchor).or_default().push(schema);
                        }
                    }
                    _ => {}
                }
                find_anchors(member, anchors);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find_anchors(item, anchors)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Estimates the size of a value.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => 1 + members.iter().map(|(name, member)| name.len() + size(member)).sum::<usize>(),
        Value::String(text) => 1 + text.len() / 16,
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

/// Counts the evaluations of a validator that never stops early.
struct Walk<'a> {
    root: &'a Value,
    anchors: Anchors<'a>,
    /// The targets of references that were resolved before.
    references: HashMap<&'a str, Rc<[&'a Value]>>,
    steps: usize,
    most: usize,
}

impl<'a> Walk<'a> {
    fn evaluate(&mut self, schema: &'a Value, value: &Value, depth: usize) -> Result<(), String> {
        let Value::Object(schema) = schema else { return self.take(1) };
        // Comparisons of long strings and lists cost more.
        let lists = ["enum", "required"].iter().filter_map(|name| schema.get(*name)?.as_array());
        let text = value.as_str().map_or(0, |text| text.len() / 64);
        self.take(1 + text + lists.map(Vec::len).sum::<usize>())?;
        if depth >= SchemaBudget::MAX_NESTED_EVALUATIONS {
            return Err(format!("its evaluations nest deeper than {} levels", SchemaBudget::MAX_NESTED_EVALUATIONS));
        }
        let children = match value {
            Value::Object(members) => self.evaluate_members(schema, members, depth + 1)?,
            Value::Array(items) => self.evaluate_items(schema, items, depth + 1)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        };
        // Validators find out which members were evaluated by evaluating them again.
        let is_repeated = schema.contains_key("unevaluatedProperties") || schema.contains_key("unevaluatedItems");
        for _ in 0..if is_repeated { 1 + children } else { 1 } {
            self.evaluate_in_place(schema, value, depth + 1)?;
        }
        Ok(())
    }

    /// Counts the keywords that apply to the value itself.
    fn evaluate_in_place(&mut self, schema: &'a Map<String, Value>, value: &Value, depth: usize) -> Result<(), String> {
        for (name, schema) in schema {
            match (name.as_str(), schema) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    for target in self.targets(reference).iter() {
                        self.evaluate(target, value, depth)?;
                    }
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                    for schema in schemas {
                        self.evaluate(schema, value, depth)?;
                    }
                }
                ("not" | "if" | "then" | "else", schema) => self.evaluate(schema, value, depth)?,
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                    for (_, schema) in schemas.iter().filter(|(member, _)| value.get(member).is_some()) {
                        self.evaluate(schema, value, depth)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Counts the keywords that apply to the members of an object; returns the number of members.
    fn evaluate_members(
        &mut self,
        schema: &'a Map<String, Value>,
        members: &Map<String, Value>,
        depth: usize,
    ) -> Result<usize, String> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let others = ["additionalProperties", "unevaluatedProperties"].map(|name| schema.get(name));
        let names = schema.get("propertyNames");
        for (name, member) in members {
            // Each expression is matched with each name.
            self.take(patterns.map_or(0, Map::len).saturating_mul(name.len() / 64))?;
            let named = properties.and_then(|properties| properties.get(name));
            let matching = patterns.into_iter().flatten().map(|(_, schema)| schema);
            for schema in named.into_iter().chain(matching).chain(others.into_iter().flatten()) {
                self.evaluate(schema, member, depth)?;
            }
            if let Some(schema) = names {
                self.take(name.len() / 64)?;
                self.evaluate(schema, &Value::Null, depth)?;
            }
        }
        Ok(members.len())
    }

    /// Counts the keywords that apply to the items of an array; returns the number of items.
    fn evaluate_items(
        &mut self,
        schema: &'a Map<String, Value>,
        items: &[Value],
        depth: usize,
    ) -> Result<usize, String> {
        let names = ["items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"];
        let schemas = names.map(|name| schema.get(name));
        for (index, item) in items.iter().enumerate() {
            for schema in schemas.into_iter().flatten() {
                let schema = if let Value::Array(by_index) = schema { by_index.get(index) } else { Some(schema) };
                if let Some(schema) = schema {
                    self.evaluate(schema, item, depth)?;
                }
            }
        }
        Ok(items.len())
    }

    /// Returns the targets of a reference; one without a target fails when the schema is compiled.
    fn targets(&mut self, reference: &'a str) -> Rc<[&'a Value]> {
        if let Some(known) = self.references.get(reference) {
            return Rc::clone(known);
        }
        let fragment = percent_decoded(fragment(self.root, reference).unwrap_or(reference));
        let targets: Rc<[&'a Value]> = if fragment.is_empty() || fragment.starts_with('/') {
            self.root.pointer(&fragment).into_iter().collect()
        } else {
            self.anchors.get(fragment.as_str()).into_iter().flatten().copied().collect()
        };
        self.references.insert(reference, Rc::clone(&targets));
        targets
    }

    fn take(&mut self, steps: usize) -> Result<(), String> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.most { Err(format!("it takes more than {} evaluations", self.most)) } else { Ok(()) }
    }
}

fn percent_decoded(text: &str) -> String {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let encoded = match rest {
            [b'%', high, low, ..] => digit(*high).zip(digit(*low)),
            _ => None,
        };
        bytes.push(encoded.map_or(*first, |(high, low)| high * 16 + low));
        rest = if encoded.is_some() { rest.get(3..).unwrap_or_default() } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn budget(schema: &Value) -> Result<SchemaBudget, String> {
        SchemaBudget::new(&RawObject::new(schema).unwrap())
    }

    fn admit(schema: &Value, value: &Value) -> Result<usize, String> {
        budget(schema).unwrap().admit(value)
    }

    /// Definitions, each of which has what `link` makes of the address of the next one.
    fn definitions(count: usize, link: impl Fn(Value) -> Value) -> Value {
        let mut all: Map<String, Value> =
            (0..count).map(|n| (format!("d{n}"), link(json!({ "$ref": format!("#/$defs/d{}", n + 1) })))).collect();
        all.insert(format!("d{count}"), json!({ "type": "string" }));
        json!({ "$ref": "#/$defs/d0", "$defs": all })
    }

    // covers: SEC-12
    #[test]
    fn sec_12_references_that_fan_out_are_refused() {
        for name in ["anyOf", "allOf", "oneOf"] {
            let fan = |depth| definitions(depth, |next| json!({ name: [next, next] }));
            assert!(admit(&fan(10), &json!(1)).unwrap() < 10_000);
            assert!(admit(&fan(40), &json!(1)).unwrap_err().contains("evaluations"));
        }
        let fan = definitions(40, |next| json!({ "if": next, "then": next, "else": next, "not": next }));
        assert!(admit(&fan, &json!(1)).is_err());
        let fan = definitions(40, |next| json!({ "dependentSchemas": { "a": next, "b": next } }));
        assert!(admit(&fan, &json!({})).is_ok(), "only if there is something that depends on it");
        assert!(admit(&fan, &json!({ "a": 1, "b": 2 })).is_err());
    }

    /// The fan may be in the value: twice as much at each level.
    // covers: SEC-12
    #[test]
    fn sec_12_values_that_fan_out_are_refused() {
        let branch = json!({ "properties": { "a": { "$ref": "#" } } });
        let schema = json!({ "anyOf": [branch, branch] });
        let nested = |depth: usize| (0..depth).fold(json!({}), |value, _| json!({ "a": value }));
        assert!(admit(&schema, &nested(10)).is_ok());
        assert!(admit(&schema, &nested(100)).is_err());
        let schema = json!({ "allOf": [{ "items": { "$ref": "#" } }, { "contains": { "$ref": "#" } }] });
        let nested = (0..100).fold(json!([]), |value, _| json!([value]));
        assert!(admit(&schema, &nested).is_err());
    }

    /// Each level evaluates all below it once more for each member.
    // covers: SEC-12
    #[test]
    fn sec_12_unevaluated_members_count_again() {
        let deep = (0..30).fold(json!({}), |inner, _| json!({ "allOf": [inner], "unevaluatedProperties": false }));
        assert!(admit(&deep, &json!({ "a": 1, "b": 2 })).is_err());
    }

    // covers: SEC-12
    #[test]
    fn sec_12_chains_are_not_followed_to_the_end_of_the_stack() {
        let chain = |length| definitions(length, |next| next);
        assert!(admit(&chain(100), &json!("x")).is_ok());
        assert!(admit(&chain(3000), &json!("x")).unwrap_err().contains("nest deeper"));
        assert!(admit(&json!({ "$ref": "#" }), &json!(1)).is_err());
        let anchored = json!({ "$anchor": "a", "anyOf": [{ "$ref": "#a" }] });
        assert!(admit(&anchored, &json!(1)).is_err());
        let dynamic = json!({ "$dynamicAnchor": "a", "anyOf": [{ "$dynamicRef": "#a" }] });
        assert!(admit(&dynamic, &json!(1)).is_err());
        let encoded = json!({ "$ref": "#/%24defs/a%20b", "$defs": { "a b": { "$ref": "#/$defs/a%20b" } } });
        assert!(admit(&encoded, &json!(1)).is_err());
    }

    // covers: SEC-12
    #[test]
    fn sec_12_long_texts_and_lists_cost_more() {
        let lengths: Vec<Value> = (0..5000).map(|_| json!({ "minLength": 1 })).collect();
        let schema = json!({ "allOf": lengths });
        assert!(admit(&schema, &json!("x")).is_ok());
        assert!(admit(&schema, &json!("x".repeat(1 << 20))).is_err());
        let patterns: Map<String, Value> = (0..64).map(|n| (format!("^{n}$"), json!(true))).collect();
        let schema = json!({
            "allOf": vec![json!({ "$ref": "#/$defs/all" }); 300],
            "$defs": { "all": { "patternProperties": patterns } },
        });
        assert!(admit(&schema, &json!({ "x": 1 })).is_ok());
        assert!(admit(&schema, &json!({ "x".repeat(1 << 20): 1 })).is_err());
        let schema = json!({
            "allOf": vec![json!({ "$ref": "#/$defs/names" }); 3000],
            "$defs": { "names": { "propertyNames": { "maxLength": 1 } } },
        });
        assert!(admit(&schema, &json!({ "x": 1 })).is_ok());
        assert!(admit(&schema, &json!({ "x".repeat(1 << 20): 1 })).is_err());
        for name in ["enum", "required"] {
            let listed = |count: usize| {
                let list: Vec<String> = (0..count).map(|n| n.to_string()).collect();
                json!({ "allOf": vec![json!({ "$ref": "#/$defs/listed" }); 300], "$defs": { "listed": { name: list } } })
            };
            assert!(admit(&listed(100), &json!({})).is_ok());
            assert!(admit(&listed(1000), &json!({})).is_err(), "{name}");
        }
    }

    /// What schemas look like that are meant well, with values of a good size.
    #[test]
    fn ordinary_schemas_are_admitted() {
        let tree = json!({
            "$ref": "#/$defs/node",
            "$defs": { "node": { "type": "object", "properties": {
                "name": { "type": "string", "pattern": "^[a-z]+$" },
                "children": { "type": "array", "items": { "$ref": "#/$defs/node" } },
                "kind": { "anyOf": [{ "enum": ["a", "b"] }, { "type": "null" }] },
            }, "required": ["name"], "additionalProperties": false } },
        });
        let leaf = json!({ "name": "leaf", "children": [], "kind": null });
        let value = (0..4).fold(leaf, |value, _| json!({ "name": "n", "children": vec![value; 12] }));
        assert!(admit(&tree, &value).is_ok());
        let deep = (0..60).fold(json!({ "name": "leaf" }), |value, _| json!({ "name": "n", "children": [value] }));
        assert!(admit(&tree, &deep).is_ok());
        let numbers = json!({ "type": "array", "items": { "type": "number" } });
        assert!(admit(&numbers, &json!(vec![1; 300_000])).is_ok());
        let data = json!({ "id": "a1", "$id": "b", "$ref": "c", "pattern": "d" });
        for name in ["default", "const"] {
            assert!(admit(&json!({ "properties": { "a": { name: data } } }), &json!({ "a": 1 })).is_ok(), "{name}");
        }
        for name in ["examples", "enum"] {
            let items = vec![data.clone(); 100];
            assert!(admit(&json!({ "properties": { "a": { name: items } } }), &json!({ "a": 1 })).is_ok(), "{name}");
        }
        let own = "https://example.com/x";
        for (id, reference) in
            [(own, format!("{own}#/$defs/a")), (own, own.to_owned()), ("urn:x:y#", "urn:x:y#".into())]
        {
            let schema = json!({ "$id": id, "properties": { "a": { "$ref": reference } }, "$defs": { "a": {} } });
            assert!(admit(&schema, &json!({ "a": 1 })).unwrap() > 2, "{reference}");
        }
        assert!(budget(&json!({ "properties": { "a": { "id": "no keyword", "type": "string" } } })).is_ok());
    }

    /// A member of any name may be described, and a reference may lead into data, which then is a schema.
    #[test]
    fn what_looks_like_data_may_be_a_schema() {
        let outside = json!({ "$ref": "https://example.com/y" });
        for schema in [
            json!({ "properties": { "default": outside } }),
            json!({ "$defs": { "examples": { "const": 1, "not": outside } } }),
            json!({ "$ref": "#/examples/0", "examples": [outside] }),
            json!({ "$ref": "#/default", "default": { "$ref": "#/const/a" }, "const": { "a": outside } }),
            json!({ "$ref": "#/properties", "properties": { "properties": { "default": outside } } }),
            json!({ "$id": "urn:x", "$ref": "urn:x#/default", "default": outside }),
            json!({ "$ref": "#/default", "default": { "$id": "z" } }),
        ] {
            assert!(budget(&schema).is_err(), "{schema}");
        }
        let looped = json!({ "$ref": "#/default", "default": { "$ref": "#/default" } });
        assert!(admit(&looped, &json!(1)).unwrap_err().contains("nest deeper"));
        let patterns: Vec<Value> = (0..65).map(|n| json!({ "pattern": n.to_string() })).collect();
        assert!(budget(&json!({ "$ref": "#/default", "default": { "anyOf": patterns } })).is_err());
        let deep = (0..100).fold(json!({}), |inner, _| json!([inner]));
        assert!(budget(&json!({ "default": deep })).unwrap_err().contains("64 levels"));
    }

    #[test]
    fn what_lies_outside_is_refused() {
        for reference in ["https://example.com/schema.json", "file:///etc/passwd", "other.json", ""] {
            let schema = json!({ "properties": { "a": { "$ref": reference } } });
            assert!(budget(&schema).is_err(), "{reference}");
        }
        assert!(budget(&json!({ "$id": "https://example.com/a", "$ref": "#/$defs/a", "$defs": { "a": {} } })).is_ok());
        assert!(budget(&json!({ "$defs": { "a": { "$id": "b", "$ref": "#" } } })).is_err());
        assert!(budget(&json!({ "properties": { "$id": { "type": "string" }, "$ref": {} } })).is_ok());
        let draft = "http://json-schema.org/draft-04/schema#";
        assert!(budget(&json!({ "$schema": draft, "definitions": { "a": { "id": "b" } } })).is_err());
        for id in [draft, "https://example.com/x"] {
            assert!(
                budget(&json!({ "$id": id, "not": { "$ref": "http://json-schema.org/draft-04/schema" } })).is_err()
            );
            assert!(budget(&json!({ "$id": id, "not": { "$ref": "https://example.com/xy" } })).is_err());
        }
    }

    #[test]
    fn schemas_have_limits() {
        let deep = (0..100).fold(json!({}), |inner, _| json!({ "not": inner }));
        assert!(budget(&deep).unwrap_err().contains("64 levels"));
        let patterns: Vec<Value> = (0..65).map(|n| json!({ "pattern": n.to_string() })).collect();
        assert!(budget(&json!({ "anyOf": patterns })).unwrap_err().contains("regular expressions"));
        let long = json!({ "description": "x".repeat(SchemaBudget::MAX_BYTES) });
        assert!(budget(&long).unwrap_err().contains("bytes"));
    }
}
