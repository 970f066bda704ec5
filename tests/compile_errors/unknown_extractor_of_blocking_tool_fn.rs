// expect: this function cannot be a tool that blocks
// expect: parameters of these types: `RequestContext`, `State<T>`, `Principal`, another type with `FromContext`

use mcp_server::blocking_tool_fn;

struct Database;

fn count(_database: Database) -> String {
    String::new()
}

fn main() {
    blocking_tool_fn("count", count);
}
