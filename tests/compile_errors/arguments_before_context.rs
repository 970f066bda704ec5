// expect: type mismatch in function arguments
// expect: expected function signature `fn(RequestContext, _) -> _`
// expect: to implement `ContextFunction<

use mcp_server::{RequestContext, tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    name: String,
}

async fn greet(Greet { name }: Greet, _ctx: RequestContext) -> String {
    name
}

fn main() {
    tool("greet", greet);
}
