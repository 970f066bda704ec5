// expect: `Sum` cannot be the result of a tool
// expect: return text, `Json<T>`, a content block, `(Json<T>, Vec<ContentBlock>)`, a `CallToolResult`, or a `Result` of one

use mcp_server::{NoArguments, tool, tool_fn};

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum {
    sum: i64,
}

async fn add() -> Sum {
    Sum { sum: 3 }
}

fn main() {
    tool("add", async |_ctx, _: NoArguments| Sum { sum: 3 });
    tool_fn("add", add);
}
