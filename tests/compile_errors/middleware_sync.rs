// expect: this function cannot be middleware
// expect: write `async |ctx, next| next.run(ctx).await`

use mcp_server::types::ErrorObject;
use mcp_server::{RequestContext, Response, middleware};

fn check(_ctx: RequestContext, _next: middleware::Next) -> Result<Response, ErrorObject> {
    Err(ErrorObject::invalid_request("no"))
}

fn main() {
    middleware::from_fn(check);
}
