// expect: this function cannot be a handler
// expect: a struct of arguments derives `serde::Deserialize`, and `schemars::JsonSchema` for tools and prompts

use mcp_server::{RequestContext, tool_fn};

#[derive(serde::Deserialize)]
struct Greet {
    name: String,
}

async fn greet(_ctx: RequestContext, Greet { name }: Greet) -> String {
    name
}

fn main() {
    tool_fn("greet", greet);
}
