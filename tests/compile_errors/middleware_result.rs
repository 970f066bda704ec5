// expect: mismatched types
// expect: expected `Result<Response, ErrorObject>`, found `()`

use mcp_server::middleware;

fn main() {
    middleware::from_fn(async |ctx, next| {
        next.run(ctx).await.ok();
    });
}
