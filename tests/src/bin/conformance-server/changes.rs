//! Tools that tell clients of changes.

use mcp_server::{Change, NoArguments, RequestContext, ServerBuilder, tool};

use crate::resources::WATCHED;

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(
            tool("test_trigger_changes", async |ctx, _: NoArguments| {
                let watched = Change::Resource(WATCHED.to_owned());
                announce(&ctx, &[Change::Tools, Change::Prompts, Change::Resources, watched])
            })
            .description("Announces that all lists and the watched resource changed"),
        )
        .tool(
            tool("test_trigger_tool_change", async |ctx, _: NoArguments| announce(&ctx, &[Change::Tools]))
                .description("Announces that the list of tools changed"),
        )
        .tool(
            tool("test_trigger_prompt_change", async |ctx, _: NoArguments| announce(&ctx, &[Change::Prompts]))
                .description("Announces that the list of prompts changed"),
        )
}

fn announce(ctx: &RequestContext, changes: &[Change]) -> String {
    for change in changes {
        ctx.server().publish(change);
    }
    format!("Announced {} changes.", changes.len())
}
