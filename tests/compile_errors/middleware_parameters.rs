// expect: type mismatch in function arguments
// expect: expected function signature `fn(RequestContext, Next) -> _`
// expect: to implement `mcp_server::middleware::MiddlewareFunction<

use mcp_server::middleware::{self, Next};
use mcp_server::types::ErrorObject;
use mcp_server::{RequestContext, Response};

async fn check(next: Next, ctx: RequestContext) -> Result<Response, ErrorObject> {
    next.run(ctx).await
}

fn main() {
    middleware::from_fn(check);
}
