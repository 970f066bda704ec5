// expect: this function cannot be a handler
// expect: clone them for each call, as in `move |..| { let value = value.clone(); async move { .. } }`

use mcp_server::tool_fn;

fn main() {
    let greeting = String::from("hello");
    tool_fn("greet", move || async move { greeting });
}
