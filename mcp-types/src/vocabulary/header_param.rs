//! Tool parameters that clients repeat in HTTP headers, by the annotation `x-mcp-header`.

use std::collections::BTreeSet;

use serde_json::Number;

use crate::RawObject;
use crate::json::excerpt::{MAX_NAME_CHARS, excerpt};
use crate::json::scan::{ScanError, Scanner, unquote};
use crate::jsonrpc::Limits;

/// The keyword in an input schema.
const ANNOTATION: &str = "x-mcp-header";

/// A tool parameter that clients repeat in an `Mcp-Param-*` header.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeaderParam {
    /// The name of the header, without `Mcp-Param-`.
    pub name: String,
    /// The path of the value in the arguments: property names, outermost first.
    pub path: Vec<String>,
}

impl HeaderParam {
    /// The maximum number of annotated parameters of one tool, about as many as HTTP servers accept headers.
    pub const MAX_COUNT: usize = 64;

    /// The maximum total size of the names and paths of the annotated parameters of one tool, in bytes.
    pub const MAX_BYTES: usize = 16 * 1024;

    /// Returns the annotated parameters of an input schema, which may be untrusted.
    ///
    /// # Errors
    ///
    /// Returns an error if an annotation is invalid, or if there are more than [`MAX_COUNT`](Self::MAX_COUNT) or
    /// [`MAX_BYTES`](Self::MAX_BYTES) allow.
    // H-62..H-66
    pub fn from_schema(schema: &RawObject) -> Result<Vec<Self>, String> {
        let text = schema.as_str();
        // The keyword may be written with escapes.
        if !text.contains(ANNOTATION) && !text.contains("\\u") {
            return Ok(Vec::new());
        }
        let mut search = Search::default();
        // The search recurses, and deeper messages are rejected anyway.
        let mut scanner = Scanner::new(text, Limits::default().max_depth);
        search.schema(&mut scanner).map_err(|Invalid(why)| why)?;
        Ok(search.found)
    }

    /// Returns the value of the header for the arguments of a call; `None` if it is absent, `null` or not a scalar.
    // H-70, H-71
    #[must_use]
    pub fn value(&self, arguments: &RawObject) -> Option<String> {
        let mut scanner = Scanner::new(arguments.as_str(), Limits::default().max_depth);
        let value = find_value(&mut scanner, &self.path).ok()??;
        match value.as_bytes().first()? {
            b'"' => Some(unquote(value).into_owned()),
            b't' | b'f' => Some(value.to_owned()),
            b'-' | b'0'..=b'9' => value.parse::<Number>().ok().map(|number| number.to_string()),
            _ => None,
        }
    }
}

/// Finds the text of a value by its path; the last of duplicate members counts.
fn find_value<'a>(scanner: &mut Scanner<'a>, path: &[String]) -> Result<Option<&'a str>, ScanError> {
    let Some((name, rest)) = path.split_first() else { return scanner.value().map(Some) };
    if scanner.peek().1 != Some(b'{') {
        return scanner.value().map(|_| None);
    }
    let mut found = None;
    scanner.object(|scanner, member| {
        if member.unescape() == name.as_str() {
            found = find_value(scanner, rest)?;
            Ok(())
        } else {
            scanner.value().map(drop)
        }
    })?;
    Ok(found)
}

/// The state of the search.
#[derive(Default)]
struct Search {
    found: Vec<HeaderParam>,
    /// The header names in lower case.
    headers: BTreeSet<String>,
    /// The total size of names and paths.
    bytes: usize,
    /// The names of the enclosing properties.
    path: Vec<String>,
}

/// The reason why a schema is invalid.
struct Invalid(String);

impl From<ScanError> for Invalid {
    fn from(error: ScanError) -> Self {
        Self(error.to_string())
    }
}

/// The relevant members of the schema of a property.
#[derive(Default)]
struct Property<'a> {
    /// The text of `x-mcp-header`.
    header: Option<&'a str>,
    /// The text of `type`.
    kind: Option<&'a str>,
}

impl Search {
    /// Scans a schema that is reachable through `properties` only; other keywords may not contain annotations.
    fn schema<'a>(&mut self, scanner: &mut Scanner<'a>) -> Result<Property<'a>, Invalid> {
        let mut property = Property::default();
        let is_root = self.path.is_empty();
        scanner.object(|scanner, name| {
            match (&*name.unescape(), scanner.peek().1) {
                (ANNOTATION, _) if !is_root => property.header = Some(scanner.value()?),
                ("type", _) => property.kind = Some(scanner.value()?),
                ("properties", Some(b'{')) => self.properties(scanner)?,
                ("properties", _) => drop(scanner.value()?),
                (keyword, _) => {
                    if mentions(scanner)? {
                        let keyword = excerpt(keyword, MAX_NAME_CHARS);
                        return Err(Invalid(format!(
                            "`{ANNOTATION}` under `{keyword}` has no effect; it belongs to a plain property"
                        )));
                    }
                }
            }
            Ok::<_, Invalid>(())
        })?;
        Ok(property)
    }

    fn properties(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Invalid> {
        scanner.object(|scanner, name| {
            if scanner.peek().1 != Some(b'{') {
                scanner.value()?;
                return Ok(());
            }
            self.path.push(name.unescape().into_owned());
            let property = self.schema(scanner)?;
            if let Some(header) = property.header {
                self.add(header, property.kind)?;
            }
            self.path.pop();
            Ok::<_, Invalid>(())
        })?;
        Ok(())
    }

    /// Checks the annotation of the property at the end of the path, and adds it.
    fn add(&mut self, header: &str, kind: Option<&str>) -> Result<(), Invalid> {
        let property = self.path.last().map(|name| excerpt(name, MAX_NAME_CHARS)).unwrap_or_default();
        let wrong = |why: &str| Err(Invalid(format!("`{ANNOTATION}` of `{property}`: {why}")));
        if !header.starts_with('"') {
            return wrong("the name of the header must be a string");
        }
        let name = unquote(header);
        if name.is_empty() || !name.bytes().all(is_token) {
            return wrong("the name of the header must be one or more letters, digits, or `!#$%&'*+-.^_`|~`");
        }
        if !matches!(kind.map(unquote).as_deref(), Some("integer" | "string" | "boolean")) {
            return wrong("only integers, strings and booleans can be repeated in a header");
        }
        if !self.headers.insert(name.to_ascii_lowercase()) {
            return wrong("another property has the same header");
        }
        if self.found.len() == HeaderParam::MAX_COUNT {
            return wrong(&format!("more than {} properties have one", HeaderParam::MAX_COUNT));
        }
        self.bytes += name.len() + self.path.iter().map(String::len).sum::<usize>();
        if self.bytes > HeaderParam::MAX_BYTES {
            return wrong(&format!("names and paths have more than {} bytes", HeaderParam::MAX_BYTES));
        }
        self.found.push(HeaderParam { name: name.into_owned(), path: self.path.clone() });
        Ok(())
    }
}

/// Scans a value and returns whether it contains an annotation.
fn mentions(scanner: &mut Scanner<'_>) -> Result<bool, ScanError> {
    let mut is_found = false;
    match scanner.peek().1 {
        Some(b'{') => drop(scanner.object(|scanner, name| {
            is_found |= name.unescape() == ANNOTATION;
            is_found |= mentions(scanner)?;
            Ok::<_, ScanError>(())
        })?),
        Some(b'[') => drop(scanner.array(|scanner| {
            is_found |= mentions(scanner)?;
            Ok::<_, ScanError>(())
        })?),
        _ => drop(scanner.value()?),
    }
    Ok(is_found)
}

/// Returns whether RFC 9110 allows the byte in the name of a header.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn found(properties: Value) -> Result<Vec<HeaderParam>, String> {
        HeaderParam::from_schema(&RawObject::new(&json!({ "type": "object", "properties": properties })).unwrap())
    }

    /// Plain properties, also of objects inside.
    // covers: H-60, H-66, AMB-4
    #[test]
    fn plain_properties_may_be_annotated() {
        let params = found(json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "inner": { "type": "object", "properties": { "id": { "type": "integer", "x-mcp-header": "Id" } } },
            "plain": { "type": "string" },
        }));
        let mut params: Vec<_> = params.unwrap().into_iter().map(|param| (param.name, param.path.join("."))).collect();
        params.sort();
        assert_eq!(params, [("Id".into(), "inner.id".into()), ("Region".into(), "region".to_owned())]);
    }

    /// Text as it is, numbers and booleans as JSON writes them, and nothing for what is not there.
    // covers: H-70, H-71
    #[test]
    fn values_become_text() {
        let param =
            |path: &[&str]| HeaderParam { name: "A".into(), path: path.iter().map(|&name| name.into()).collect() };
        let arguments =
            json!({ "text": " a", "count": 42, "yes": true, "none": null, "in": { "er": "x" }, "list": [] });
        let arguments = RawObject::new(&arguments).unwrap();
        let value = |path: &[&str]| param(path).value(&arguments);
        assert_eq!(value(&["text"]).as_deref(), Some(" a"));
        assert_eq!(value(&["count"]).as_deref(), Some("42"));
        assert_eq!(value(&["yes"]).as_deref(), Some("true"));
        assert_eq!(value(&["in", "er"]).as_deref(), Some("x"));
        for path in [&["none"][..], &["missing"], &["list"], &["in"], &["text", "er"]] {
            assert_eq!(value(path), None, "{path:?}");
        }
    }

    /// Everything else is refused.
    // covers: H-62..H-66, H-83, AMB-4
    #[test]
    fn other_annotations_are_refused() {
        for properties in [
            json!({ "a": { "type": "string", "x-mcp-header": "" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "a b" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "a:b" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "ä" } }),
            json!({ "a": { "type": "string", "x-mcp-header": 1 } }),
            json!({ "a": { "type": "number", "x-mcp-header": "A" } }),
            json!({ "a": { "type": "object", "x-mcp-header": "A" } }),
            json!({ "a": { "x-mcp-header": "A" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "A" }, "b": { "type": "string", "x-mcp-header": "a" } }),
            json!({ "a": { "type": "array", "items": { "type": "string", "x-mcp-header": "A" } } }),
            json!({ "a": { "anyOf": [{ "type": "string", "x-mcp-header": "A" }] } }),
        ] {
            assert!(found(properties.clone()).is_err(), "{properties}");
        }
        let under_defs = json!({ "type": "object", "$defs": { "a": { "type": "string", "x-mcp-header": "A" } } });
        assert!(HeaderParam::from_schema(&RawObject::new(&under_defs).unwrap()).is_err());
    }

    /// An annotation is one however its name is spelled.
    #[test]
    fn escapes_hide_nothing() {
        let schema = r#"{"prop\u0065rties":{"a":{"type":"str\u0069ng","x-mcp-heade\u0072":"A"}}}"#;
        let found = HeaderParam::from_schema(&RawObject::parse(schema).unwrap()).unwrap();
        assert_eq!(found, [HeaderParam { name: "A".to_owned(), path: vec!["a".to_owned()] }]);
        let param = HeaderParam { name: "A".into(), path: vec!["a".into(), "b".into()] };
        let arguments = RawObject::parse(r#"{"a":{"b":1},"\u0061":{"c":[],"b":"x\ny"}}"#).unwrap();
        assert_eq!(param.value(&arguments).as_deref(), Some("x\ny"), "the last one counts");
    }

    /// A server chooses the schema, so what is kept of it is bounded.
    // covers: SEC-7
    #[test]
    fn sec_7_many_and_long_annotations_are_refused() {
        let many = |count: usize| {
            let property =
                |number| (format!("p{number}"), json!({ "type": "string", "x-mcp-header": format!("H{number}") }));
            found(Value::Object((0..count).map(property).collect()))
        };
        assert_eq!(many(HeaderParam::MAX_COUNT).unwrap().len(), HeaderParam::MAX_COUNT);
        assert!(many(HeaderParam::MAX_COUNT + 1).unwrap_err().contains("more than 64"));
        let inner =
            json!({ "b": { "type": "string", "x-mcp-header": "B" }, "c": { "type": "string", "x-mcp-header": "C" } });
        let long = found(json!({ "a".repeat(10_000): { "properties": inner } })).unwrap_err();
        assert!(long.contains("16384 bytes") && long.len() < 1_000, "{long}");
    }

    /// `serde_json` would read the text of such a member anew, as deep as it likes.
    // covers: SEC-2
    #[test]
    fn sec_2_reserved_names_have_no_meaning() {
        let name = crate::json::validated::raw_value_name().unwrap();
        let nested = (0..12).fold("1".to_owned(), |inner, _| {
            format!("{}{}{}", "[".repeat(100), json!({ name: inner }), "]".repeat(100))
        });
        let text = format!(r#"{{"type":"object","x":{nested},"properties":{{"x-mcp-header":{nested}}}}}"#);
        let schema: RawObject = serde_json::from_str(&text).unwrap();
        assert!(HeaderParam::from_schema(&schema).is_err());
        let param = HeaderParam { name: "A".into(), path: vec!["x".into()] };
        assert_eq!(param.value(&schema), None);
    }
}
