//! The `curl` commands that the demo prints when it serves over HTTP.

/// Returns the text to print at start-up.
pub(crate) fn instructions(url: &str) -> String {
    let modern = |method: &str, name: &str, params: &str| {
        let name = if name.is_empty() { String::new() } else { format!(" -H 'Mcp-Name: {name}'") };
        let meta =
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
        let params = params.replace("META", meta);
        format!(
            "curl -sSN {url} -H 'Content-Type: application/json' -H 'MCP-Protocol-Version: 2026-07-28' \
             -H 'Mcp-Method: {method}'{name} -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{params}}}'"
        )
    };
    let legacy = |params: &str| {
        format!(
            "curl -sSN {url} -H 'Content-Type: application/json' -H 'MCP-Protocol-Version: 2025-06-18' \
             -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{params}}}'"
        )
    };
    let convert = r#""name":"convert","arguments":{"value":26.2,"from":"mile","to":"kilometre"}"#;
    let steps = [
        (
            "Call a tool, with revision 2026-07-28",
            modern("tools/call", "convert", &format!("{{{convert},\"_meta\":{{META}}}}")),
        ),
        ("The same with revision 2025-06-18", legacy(&format!("{{{convert}}}"))),
        (
            "Call a tool that reports progress, on an event stream",
            modern(
                "tools/call",
                "count_primes",
                r#"{"name":"count_primes","arguments":{"up_to":300000},"_meta":{"progressToken":1,META}}"#,
            ),
        ),
        (
            "Subscribe to changes of the list of resources, until Ctrl-C",
            modern("subscriptions/listen", "", r#"{"notifications":{"resourcesListChanged":true},"_meta":{META}}"#),
        ),
        (
            "Change the list, in another terminal",
            modern(
                "tools/call",
                "add_note",
                r#"{"name":"add_note","arguments":{"title":"Shopping","text":"Milk"},"_meta":{META}}"#,
            ),
        ),
    ];
    let mut text = format!("The demo is at {url}. Add the URL to an MCP client, or run these commands:\n");
    for (what, command) in steps {
        text.push_str(&format!("\n# {what}:\n{command}\n"));
    }
    text.push_str("\nCtrl-C stops it. See --help for serving on standard streams.\n");
    text
}
