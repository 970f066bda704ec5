// expect: cannot be the result of a tool
// expect: return text, `Json<T>`, a content block

use mcp_server::{RequestContext, blocking_tool_fn};

async fn count(_ctx: RequestContext) -> String {
    String::new()
}

fn main() {
    blocking_tool_fn("count", count);
}
