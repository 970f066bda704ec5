// expect: `Greet` cannot be the arguments of a tool or prompt
// expect: add `#[derive(serde::Deserialize, schemars::JsonSchema)]` to `Greet`, and to the types of its fields

use mcp_server::{RequestContext, tool};

#[derive(schemars::JsonSchema)]
struct Greet {
    name: String,
}

async fn greet(_ctx: RequestContext, Greet { name }: Greet) -> String {
    name
}

fn main() {
    tool("greet", greet);
    tool("greet", async |_ctx, Greet { name }| name);
}
