// expect: `Failure: std::error::Error` is not satisfied
// expect: the trait `std::error::Error` is not implemented for `Failure`
// expect: required for `Result<std::string::String, Failure>` to implement `IntoToolResult`

use mcp_server::{NoArguments, tool};

#[derive(Debug)]
enum Failure {
    NoNumbers,
}

fn main() {
    tool("add", async |_ctx, _: NoArguments| Err::<String, _>(Failure::NoNumbers));
}
