// expect: this function cannot be middleware
// expect: as in `move |ctx, next| { let value = value.clone(); async move { .. } }`

use mcp_server::middleware;

fn main() {
    let name = String::from("hello");
    middleware::from_fn(async move |ctx, next| {
        println!("{name}");
        next.run(ctx).await
    });
}
