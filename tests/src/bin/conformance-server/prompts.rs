//! Prompts.

use mcp_server::types::{ContentBlock, PromptMessage, TextResourceContents};
use mcp_server::{NoArguments, RequestContext, ServerBuilder, Typed, prompt};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::media;

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .prompt(
            prompt("test_simple_prompt", async |_, _: NoArguments| "This is a simple prompt for testing.")
                .description("A prompt without arguments"),
        )
        .prompt(
            prompt("test_prompt_with_arguments", async |_, Two { arg1, arg2 }| {
                format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
            })
            .description("A prompt with two arguments")
            .complete("arg1", complete),
        )
        .prompt(
            prompt("test_prompt_with_embedded_resource", async |_, Embedded { resource_uri }| {
                let text = "Embedded resource content for testing.";
                let resource = TextResourceContents::new(resource_uri, text).mime_type("text/plain");
                vec![
                    PromptMessage::user(ContentBlock::resource(resource)),
                    PromptMessage::user("Please process the embedded resource above."),
                ]
            })
            .description("A prompt with the contents of a resource"),
        )
        .prompt(
            prompt("test_prompt_with_image", async |_, _: NoArguments| {
                vec![
                    PromptMessage::user(ContentBlock::image(media::PNG, "image/png")),
                    PromptMessage::user("Please analyze the image above."),
                ]
            })
            .description("A prompt with an image"),
        )
}

#[derive(Deserialize, JsonSchema)]
struct Two {
    /// First test argument
    arg1: String,
    /// Second test argument
    arg2: String,
}

async fn complete(_: RequestContext, typed: Typed) -> Vec<String> {
    let known = ["test", "testing", "other"];
    known.into_iter().filter(|value| value.starts_with(&typed.value)).map(str::to_owned).collect()
}

#[derive(Deserialize, JsonSchema)]
struct Embedded {
    /// Address of the resource
    #[serde(rename = "resourceUri")]
    resource_uri: String,
}
