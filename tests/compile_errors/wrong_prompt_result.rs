// expect: `u32` cannot be the result of a prompt
// expect: return text, a `PromptMessage` or several, a `GetPromptResult`, or a `Result` of one of these

use mcp_server::{NoArguments, prompt};

fn main() {
    prompt("explain", async |_ctx, _: NoArguments| 20_u32);
}
