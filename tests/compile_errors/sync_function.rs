// expect: this function cannot be a handler
// expect: not an async function of a `RequestContext` and `NoArguments`
// expect: for a tool that is not async, use `blocking_tool`, or return `std::future::ready(..)` if it never blocks
// expect: it must be async, with up to eight parameters

use mcp_server::{NoArguments, RequestContext, tool, tool_fn};

fn greet(_ctx: RequestContext, _: NoArguments) -> String {
    String::from("hello")
}

fn main() {
    tool("greet", greet);
    tool("greet", |_ctx, _: NoArguments| "hello");
    tool_fn("greet", greet);
}
