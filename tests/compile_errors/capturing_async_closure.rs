// expect: this function cannot be a handler
// expect: this function cannot be the handler of a resource
// expect: as in `move |ctx, input| { let value = value.clone(); async move { .. } }`
// expect: as in `move |ctx| { let value = value.clone(); async move { .. } }`
// expect: as in `move |..| { let value = value.clone(); async move { .. } }`

use mcp_server::{NoArguments, resource, tool, tool_fn};

fn main() {
    let greeting = String::from("hello");
    tool("greet", async move |_ctx, _: NoArguments| greeting.clone());
    let greeting = String::from("hello");
    resource("greeting:hello", "hello", async move |_ctx| greeting.clone());
    let greeting = String::from("hello");
    tool_fn("greet", async move || greeting.clone());
}
