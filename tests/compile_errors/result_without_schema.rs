// expect: `Json<Sum>` cannot be the result of a tool
// expect: the type `T` of `Json<T>` derives `serde::Serialize` and `schemars::JsonSchema`

use mcp_server::{Json, NoArguments, tool};

#[derive(serde::Serialize)]
struct Sum {
    sum: i64,
}

fn main() {
    tool("add", async |_ctx, _: NoArguments| Json(Sum { sum: 3 }));
}
