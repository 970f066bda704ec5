// expect: `greeting` does not live long enough
// expect: argument requires that `greeting` is borrowed for `'static`

use mcp_server::{NoArguments, tool};

fn main() {
    let greeting = String::from("hello");
    tool("greet", async |_ctx, _: NoArguments| greeting.clone());
}
