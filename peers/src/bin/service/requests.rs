//! What clients ask: each fills its cart, looks at it, and buys.

/// The tools in the order in which each client calls them.
const TOOLS: [&str; 3] = ["add", "cart", "buy"];

/// Writes the request number `number` of a client.
pub(crate) fn write(authority: &str, client: usize, number: usize) -> String {
    let tool = TOOLS[number % TOOLS.len()];
    let customer = customer(client);
    let item = if tool == "cart" { String::new() } else { format!(r#","item":"book-{}""#, number / TOOLS.len() % 100) };
    let params = format!(r#"{{"name":"{tool}","arguments":{{"customer":"{customer}"{item}}},"_meta":{{{META}}}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{params}}}"#);
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Whether this is the response to that request.
pub(crate) fn is_right(body: &[u8], client: usize, number: usize) -> bool {
    let has = |part: &str| body.windows(part.len()).any(|window| window == part.as_bytes());
    has(&format!(r#""id":{number}"#))
        && has(&format!(r#""text":"{} has "#, customer(client)))
        && !has(r#""isError":true"#)
}

fn customer(client: usize) -> String {
    format!("customer-{client:02}")
}

const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0"}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_belongs_to_its_request() {
        let body =
            br#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"customer-03 has 1 of it"}]}}"#;
        assert!(is_right(body, 3, 7));
        assert!(!is_right(body, 4, 7) && !is_right(body, 3, 8));
    }
}
