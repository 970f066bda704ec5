//! The server that one writes by hand when there is no library: a loop over lines, and trees of `serde_json`.
//!
//! It checks nothing that it need not, which makes it the measure of what a library adds.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};

use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let server = Server::new();
    let mut input = BufReader::with_capacity(BUFFER, io::stdin().lock());
    let mut output = BufWriter::with_capacity(BUFFER, io::stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(answer) = server.answer(serde_json::from_slice(&line)?) {
            serde_json::to_writer(&mut output, &answer)?;
            output.write_all(b"\n")?;
        }
        line.clear();
        // While another request is there already, the answers can wait for its answer.
        if !input.buffer().contains(&b'\n') {
            output.flush()?;
        }
    }
    Ok(())
}

/// The tools.
struct Server {
    names: BTreeSet<String>,
    list: Value,
}

impl Server {
    fn new() -> Self {
        let names: Vec<String> =
            std::iter::once("echo".to_owned()).chain((1..50).map(|index| format!("tool_{index:02}"))).collect();
        let tool = |name: &String| {
            let schema =
                json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
            json!({ "name": name, "description": "Returns the text.", "inputSchema": schema })
        };
        Self { list: names.iter().map(tool).collect(), names: names.into_iter().collect() }
    }

    /// Returns the answer, unless the message is a notification.
    fn answer(&self, mut message: Value) -> Option<Value> {
        let id = message.get_mut("id")?.take();
        let params = message.get_mut("params").map(Value::take).unwrap_or_default();
        let version = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
        let is_modern = version.is_string();
        let result = match message["method"].as_str() {
            Some("initialize") => Ok(json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "raw", "version": "1.0" },
            })),
            Some("server/discover") => Ok(json!({
                "supportedVersions": [version], "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private",
            })),
            Some("tools/list") => Ok(json!({ "tools": self.list })),
            Some("tools/call") => self.call(params),
            _ => Err(json!({ "code": -32601, "message": "method not found" })),
        };
        Some(match result {
            Ok(mut result) => {
                if is_modern {
                    result["resultType"] = Value::from("complete");
                }
                json!({ "jsonrpc": "2.0", "id": id, "result": result })
            }
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        })
    }

    /// Every tool returns its text.
    fn call(&self, mut params: Value) -> Result<Value, Value> {
        if !params["name"].as_str().is_some_and(|name| self.names.contains(name)) {
            return Err(json!({ "code": -32602, "message": "unknown tool" }));
        }
        match params["arguments"]["text"].take() {
            Value::String(text) => Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": false })),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(json!({ "code": -32602, "message": "the text is missing" }))
            }
        }
    }
}

const BUFFER: usize = 64 * 1024;
