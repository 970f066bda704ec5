// expect: this function cannot be a handler
// expect: parameters of these types: `RequestContext`, `State<T>`, `Principal`, another type with `FromContext`

use mcp_server::tool_fn;

struct Database;

async fn count(_database: Database) -> String {
    String::new()
}

fn main() {
    tool_fn("count", count);
    tool_fn("count", async |_: Database| String::new());
}
