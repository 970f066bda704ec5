// expect: this function cannot complete an argument
// expect: write `async fn complete(ctx: RequestContext, typed: CompletionInput) -> Vec<String>`, or with a `Result` of it

use mcp_server::{CompletionInput, NoArguments, RequestContext, prompt};

async fn topics(_ctx: RequestContext, _typed: CompletionInput) -> Vec<&'static str> {
    vec!["rust"]
}

fn main() {
    prompt("explain", async |_ctx, _: NoArguments| "text").complete("topic", topics);
    prompt("explain", async |_ctx, _: NoArguments| "text").complete("topic", |_ctx, _typed| vec![String::from("rust")]);
}
