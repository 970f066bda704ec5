//! The messages that are read and written, and what tool handlers make of them.

use serde::Deserialize;
use serde_json::json;

/// The arguments of [`search_call`].
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SearchArguments {
    pub(crate) query: String,
    pub(crate) path: String,
    pub(crate) limit: u32,
    pub(crate) case_sensitive: bool,
}

/// The arguments of [`write_call`].
#[derive(Debug, PartialEq, Deserialize)]
pub(crate) struct WriteArguments {
    pub(crate) path: String,
    pub(crate) content: String,
}

/// The arguments of [`insert_call`].
#[derive(Debug, PartialEq, Deserialize)]
pub(crate) struct InsertArguments {
    pub(crate) table: String,
    pub(crate) rows: Vec<ProductRow>,
}

/// One row of [`InsertArguments`].
#[derive(Debug, PartialEq, Deserialize)]
pub(crate) struct ProductRow {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) price: f64,
    pub(crate) active: bool,
}

/// The metadata of a call by a client of an older revision.
const META: &str = r#"{"progressToken":17}"#;

const SEARCH: &str = r#"{"query":"fn parse_single","path":"src/jsonrpc","limit":50,"caseSensitive":true}"#;

/// A call of about 200 bytes, as most are.
pub(crate) fn search_call() -> Vec<u8> {
    call(META, "search_files", SEARCH)
}

/// A call of about 300 bytes: the same one, from a client of 2026-07-28.
pub(crate) fn modern_search_call() -> Vec<u8> {
    let meta = r#"{"progressToken":17,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    call(meta, "search_files", SEARCH)
}

/// A call that is one long text with line breaks and quotation marks: a file to write.
pub(crate) fn write_call(size: usize) -> Vec<u8> {
    let line = r#"    let greeting = \"hello\"; // the quick brown fox jumps over the lazy dog\n"#;
    let content = line.repeat(size / line.len());
    call(META, "write_file", &format!(r#"{{"path":"src/main.rs","content":"{content}"}}"#))
}

/// A call that is one long text without escapes: bytes in base64.
pub(crate) fn upload_call(size: usize) -> Vec<u8> {
    let block = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q";
    let content = block.repeat(size / block.len());
    call(META, "upload_file", &format!(r#"{{"path":"logo.png","content":"{content}"}}"#))
}

/// A call that is many small values: rows for a table.
pub(crate) fn insert_call(size: usize) -> Vec<u8> {
    let mut rows = String::new();
    let mut id = 0_u32;
    while rows.len() < size {
        if id > 0 {
            rows.push(',');
        }
        let price = f64::from(id % 1_000) + 0.75;
        let active = !id.is_multiple_of(3);
        rows.push_str(&format!(r#"{{"id":{id},"name":"product {id}","price":{price},"active":{active}}}"#));
        id += 1;
    }
    call(META, "insert_rows", &format!(r#"{{"table":"products","rows":[{rows}]}}"#))
}

fn call(meta: &str, tool: &str, arguments: &str) -> Vec<u8> {
    format!(
        r#"{{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{{"_meta":{meta},"name":"{tool}","arguments":{arguments}}}}}"#
    )
    .into_bytes()
}

/// A page of 100 tools, with the schemas that tools usually have.
pub(crate) fn tools_page() -> Vec<u8> {
    let tools: Vec<_> = (0..100)
        .map(|number| {
            json!({
                "name": format!("list_issues_{number}"),
                "title": format!("List issues {number}"),
                "description": "Lists the issues of a repository, newest first. Use \"state\" to see closed ones.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "repository": { "type": "string", "description": "Owner and name, such as \"rust-lang/rust\"" },
                        "state": { "type": "string", "enum": ["open", "closed", "all"], "default": "open" },
                        "labels": { "type": "array", "items": { "type": "string" } },
                        "limit": { "type": "integer", "minimum": 1, "maximum": 100 }
                    },
                    "required": ["repository"],
                    "additionalProperties": false
                },
                "annotations": { "readOnlyHint": true, "openWorldHint": true }
            })
        })
        .collect();
    json!({ "jsonrpc": "2.0", "id": 17, "result": { "tools": tools } }).to_string().into_bytes()
}

/// What a call answers: a few lines of text.
pub(crate) fn answer() -> String {
    "src/jsonrpc/incoming.rs:38: pub(super) fn parse_single<'a>(bytes: &'a [u8])\n".repeat(4)
}
