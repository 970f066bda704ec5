// expect: type mismatch in function arguments
// expect: expected function signature `fn(RequestContext, _) -> _`
// expect: to implement `ContextFunction<

use mcp_server::extract::State;
use mcp_server::tool;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    name: String,
}

struct Greeting(String);

async fn greet(State(greeting): State<Greeting>, Greet { name }: Greet) -> String {
    format!("{}, {name}", greeting.0)
}

fn main() {
    tool("greet", greet);
}
