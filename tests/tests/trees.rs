//! Where the libraries make trees of JSON: nowhere but in a few files, and never of a peer's text.
//!
//! `serde_json::Value` reads objects with certain names as something else, by parsing text inside of them anew. So what a
//! peer sends becomes a tree through `mcp_types::parse_value` alone. Whether a call of `serde_json::from_str` makes a
//! tree depends on types, which no lint looks at; this test looks at the words.

use std::fs;
use std::path::{Path, PathBuf};

/// Files that name the type, and why they may.
const ALLOWED: &[(&str, &str)] = &[
    ("mcp-types/src/tree.rs", "makes trees without special names"),
    ("mcp-types/src/raw.rs", "offers trees, and writes them"),
    ("mcp-types/src/raw_object.rs", "offers trees, and writes them"),
    ("mcp-types/src/schema_budget.rs", "walks through schemas, which it reads without special names"),
    ("mcp-types/src/tasks.rs", "writes a list of its own"),
    ("mcp-kernel/src/server/commands.rs", "writes two values of its own"),
    ("mcp-server/src/form.rs", "reads the schemas of the program's own types"),
    ("mcp-server/src/form/flatten.rs", "reads the schemas of the program's own types"),
    ("mcp-server/src/form/decode.rs", "puts values together that were read as what they are"),
    ("mcp-server/src/validate.rs", "hands trees to the validator"),
];

/// What reads a text as whatever type is wanted.
const READERS: [&str; 6] = ["from_str", "from_slice", "from_reader", "decode()", "decode::", "Value::deserialize"];

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

/// The code of a file without its tests and comments.
fn code(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a source");
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).map(str::to_owned).collect()
}

/// Whether a line names the tree type of `serde_json`, and not one of another crate that has the same name.
fn names_trees(line: &str) -> bool {
    line.contains("serde_json::Value") || (line.contains("serde_json::{") && line.contains("Value"))
}

#[test]
fn sec_2_peers_make_no_trees() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let mut files = Vec::new();
    for entry in fs::read_dir(root).expect("the workspace") {
        let folder = entry.expect("an entry").path();
        let is_library = folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("mcp-"));
        if is_library && folder.join("src").is_dir() {
            sources(&folder.join("src"), &mut files);
        }
    }
    assert!(files.len() > 100, "the sources were found");
    let mut named = Vec::new();
    for path in &files {
        let name = path.strip_prefix(root).expect("inside").to_string_lossy().replace('\\', "/");
        let code = code(path);
        if code.iter().any(|line| names_trees(line)) {
            named.push(name.clone());
        }
        for line in &code {
            let is_tree =
                [": Value =", "<Value>", "Map<String, Value>", "serde_json::Value"].iter().any(|it| line.contains(it));
            let reads = READERS.iter().any(|reader| line.contains(reader));
            assert!(!(is_tree && reads), "{name} reads a tree, which only `parse_value` may: {}", line.trim());
        }
    }
    named.sort_unstable();
    let mut allowed: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    allowed.sort_unstable();
    assert_eq!(named, allowed, "files that name `serde_json::Value`, and those that may");
}
