// expect: is expected to take 2 arguments, but it takes 1 argument

use mcp_server::tool;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    name: String,
}

fn main() {
    tool("greet", async |Greet { name }: Greet| name);
}
