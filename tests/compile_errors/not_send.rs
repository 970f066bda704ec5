// expect: future cannot be sent between threads safely
// expect: has type `Rc<i32>` which is not `Send`
// expect: await occurs here, with `counter` maybe used later
// expect: this function cannot be a handler
// expect: its future must be `Send`: nothing that is not `Send`, such as an `Rc` or a `MutexGuard`, may be held over an `await`

use std::rc::Rc;

use mcp_server::{NoArguments, RequestContext, tool, tool_fn};

async fn count(_ctx: RequestContext, _: NoArguments) -> String {
    let counter = Rc::new(1);
    std::future::ready(()).await;
    counter.to_string()
}

fn main() {
    tool("count", count);
    tool_fn("count", count);
}
