//! Where the libraries make trees of JSON: nowhere but in a few files, and never of a peer's text.
//!
//! `serde_json::Value` reads objects with certain names as something else, by parsing text inside of them anew. So what a
//! peer sends becomes a tree through `mcp_types::parse_value` alone. Whether a call of `serde_json::from_str` makes a
//! tree depends on types, which no lint looks at; this test looks at the words: which files name `Value` or `Map`, and
//! what those read.

use std::fs;
use std::path::{Path, PathBuf};

/// Files that name the type, and why they may.
const ALLOWED: &[(&str, &str)] = &[
    ("mcp-auth/src/server/guard.rs", "looks at claims"),
    ("mcp-auth/src/server/http.rs", "looks at an error, which it reads without special names"),
    ("mcp-auth/src/server/introspection/mod.rs", "looks at claims"),
    ("mcp-auth/src/server/jwt/claims.rs", "makes claims without special names"),
    ("mcp-auth/src/server/jwt/verifier.rs", "looks at claims"),
    ("mcp-types/src/json/tree.rs", "makes trees without special names"),
    ("mcp-types/src/json/raw.rs", "offers trees, and writes them"),
    ("mcp-types/src/json/raw_object.rs", "offers trees, and writes them"),
    ("mcp-types/src/json/schema_budget.rs", "walks through schemas, which it reads without special names"),
    ("mcp-types/src/vocabulary/tasks.rs", "writes a list of its own"),
    ("mcp-kernel/src/server/responses.rs", "writes two values of its own"),
    ("mcp-server/src/asking/form/mod.rs", "reads the schemas of the program's own types"),
    ("mcp-server/src/asking/form/flatten.rs", "reads the schemas of the program's own types"),
    ("mcp-server/src/asking/form/decode.rs", "puts values together that were read as what they are"),
    ("mcp-server/src/auth/info.rs", "offers the claims of a token"),
    ("mcp-tasks/src/runtime/credentials.rs", "offers the claims of a token, which it reads without special names"),
    ("mcp-server/src/handlers/constraints.rs", "reads the schemas of the program's own types"),
    ("mcp-server/src/handlers/schema.rs", "reads the schemas of the program's own types"),
    ("mcp-server/src/handlers/validate.rs", "hands trees to the validator"),
    ("mcp-server/src/handles/schema.rs", "reads the schemas of the program's own types"),
];

/// What reads something as whatever type is wanted.
const READERS: [&str; 6] = ["from_str", "from_slice", "from_reader", "from_value", "decode", "::deserialize("];

/// The lines of those files that read, none of which makes a tree of a peer's text.
const READING: &[(&str, &[&str])] = &[
    ("mcp-tasks/src/runtime/credentials.rs", &["stored.decode().unwrap_or_default()"]),
    ("mcp-server/src/auth/info.rs", &["T::deserialize(self.0.claims.get(name)?)"]),
    (
        "mcp-types/src/json/tree.rs",
        &["serde_json::from_str::<Tree>(text)", "serde_json::Deserializer::from_str(\"0.5\").deserialize_any(Probe)"],
    ),
    (
        "mcp-types/src/json/raw.rs",
        &[
            "pub fn decode<'a, T: Deserialize<'a>>(&'a self)",
            "serde_json::from_str(self.as_str())",
            "Box::<RawValue>::deserialize(",
            "Tree::deserialize(deserializer)",
        ],
    ),
    (
        "mcp-types/src/json/raw_object.rs",
        &["pub fn decode<'a, T: Deserialize<'a>>(&'a self)", "self.0.decode()", "RawJson::deserialize("],
    ),
    ("mcp-types/src/json/schema_budget.rs", &["let Tree(schema) = schema.decode()", "percent_decoded"]),
    ("mcp-types/src/vocabulary/tasks.rs", &["fn decode_task_ids", "self.extra.get(TASK_IDS).map(RawJson::decode)"]),
    ("mcp-kernel/src/server/responses.rs", &["result.decode::<EmptyResult>()"]),
    ("mcp-server/src/asking/form/mod.rs", &["mod decode;", "pub use decode::decode;"]),
    (
        "mcp-server/src/asking/form/decode.rs",
        &["pub fn decode<T: DeserializeOwned>(", "T::deserialize(Value::Object(members))"],
    ),
    ("mcp-server/src/asking/form/flatten.rs", &["serde_json::from_value(Value::Object(plain))"]),
    (
        "mcp-server/src/handlers/schema.rs",
        &[
            "RawObject::new(&generated)?.decode()",
            "schema.remove(\"description\").map(|text| text.decode())",
            "properties.decode()",
            "schema.decode::<Value>()",
        ],
    ),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// The code of a file without its tests and comments, and without the types that schemas are made of, which read nothing.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let is_code = |line: &&str| !line.trim_start().starts_with("//") && !line.contains("schemars(with = ");
    code.lines().filter(is_code).flat_map(|line| [line, "\n"]).collect()
}

/// Whether code names a tree type of `serde_json`, in whatever form, and not one of another crate that has the same name.
fn names_trees(code: &str) -> bool {
    let code: String = code.split_whitespace().flat_map(|word| [word, " "]).collect();
    let code = code.replace(" ::", "::").replace(":: ", "::");
    let mut uses = code.split("serde_json").skip(1);
    uses.any(|rest| {
        // Under another name, it cannot be followed.
        if rest.starts_with(" as ") {
            return true;
        }
        let Some(path) = rest.strip_prefix("::") else { return false };
        // All of a list in braces, or else one path.
        let mut open = 0_usize;
        let end = path.find(|letter: char| {
            match letter {
                '{' => open += 1,
                '}' => open = open.saturating_sub(1),
                _ => return open == 0 && !(letter.is_alphanumeric() || ":_*".contains(letter)),
            }
            false
        });
        let path = path.get(..end.unwrap_or(path.len())).unwrap_or_default();
        path.split(|letter: char| !(letter.is_alphanumeric() || "_*".contains(letter)))
            .any(|word| matches!(word, "Value" | "Map" | "map" | "*" | "self"))
    })
}

// covers: SEC-2
#[test]
fn sec_2_trees_are_recognized() {
    for code in [
        "use serde_json::Value;",
        "use serde_json::{Error, Map};",
        "use serde_json::{\n    Error,\n    value::{RawValue, Value as Tree},\n};",
        "use serde_json::value::Value;",
        "use serde_json::map::Entry;",
        "use serde_json::*;",
        "use serde_json as json;",
        "use serde_json::{self as json};",
        "struct Held { inner: Vec<serde_json::Value> }",
        "serde_json::Map::deserialize(raw)",
        "let value: serde_json\n    ::Value = text;",
    ] {
        assert!(names_trees(code), "{code}");
    }
    for code in [
        "use redis::Value;",
        "use serde_json::value::RawValue;\nuse redis::{Map, Value};",
        "serde_json::from_str(Value::Text)",
        "fn map(error: serde_json::Error, value: Value) {}",
        "serde_json::to_string(&text).map(Value::from)",
        "serde_json::json!({ \"Value\": 1 })",
    ] {
        assert!(!names_trees(code), "{code}");
    }
}

// covers: SEC-2
#[test]
fn sec_2_peers_make_no_trees() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let mut files = Vec::new();
    for entry in fs::read_dir(root).expect("the workspace") {
        let folder = entry.expect("an entry").path();
        // What mcp-testkit reads comes from the program under test.
        let name = folder.file_name().and_then(|name| name.to_str()).filter(|name| *name != "mcp-testkit");
        let is_library = name.is_some_and(|name| name.starts_with("mcp-"));
        if is_library && folder.join("src").is_dir() {
            sources(&folder.join("src"), &mut files);
        }
    }
    assert!(files.len() > 100, "the sources were found");
    let mut named = Vec::new();
    for path in &files {
        let code = code(&fs::read_to_string(path).expect("a source"));
        if !names_trees(&code) {
            continue;
        }
        let name = path.strip_prefix(root).expect("inside").to_string_lossy().replace('\\', "/");
        let known = READING.iter().find(|(file, _)| *file == name).map_or(&[][..], |(_, lines)| lines);
        for line in code.lines().filter(|line| !line.trim_start().starts_with("use ")) {
            // These copy bytes.
            let line = line.replace("extend_from_slice", "").replace("copy_from_slice", "");
            let reads = READERS.iter().any(|reader| line.contains(reader));
            let is_known = known.iter().any(|known| line.contains(known));
            assert!(!reads || is_known, "{name} may read a tree, which only `parse_value` may: {}", line.trim());
        }
        named.push(name);
    }
    named.sort_unstable();
    let mut allowed: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    allowed.sort_unstable();
    assert_eq!(named, allowed, "files that name the trees of `serde_json`, and those that may");
}
