// expect: cannot move out of `greeting`, a captured variable in an `Fn` closure
// expect: consider cloning the value before moving it into the closure

use mcp_server::{NoArguments, tool};

fn main() {
    let greeting = String::from("hello");
    tool("greet", move |_ctx, _: NoArguments| async move { greeting });
}
