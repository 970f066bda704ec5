// expect: is not middleware
// expect: use `middleware::from_fn(async |ctx, next| next.run(ctx).await)`

use mcp_server::middleware::Next;
use mcp_server::types::ErrorObject;
use mcp_server::{RequestContext, Response, Server};

async fn check(ctx: RequestContext, next: Next) -> Result<Response, ErrorObject> {
    next.run(ctx).await
}

fn main() {
    Server::builder("a", "1").layer(check);
}
