//! Tools with every kind of content.

use mcp_server::types::{ContentBlock, RawObject, TextResourceContents};
use mcp_server::{NoArguments, ServerBuilder, raw_tool, tool};

use crate::media;

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(
            tool("test_simple_text", async |_, _: NoArguments| "This is a simple text response for testing.")
                .description("Returns a text"),
        )
        .tool(tool("test_image_content", async |_, _: NoArguments| image()).description("Returns an image"))
        .tool(
            tool("test_audio_content", async |_, _: NoArguments| ContentBlock::audio(media::WAV, "audio/wav"))
                .description("Returns a sound"),
        )
        .tool(
            tool("test_embedded_resource", async |_, _: NoArguments| {
                let text = "This is an embedded resource content.";
                ContentBlock::resource(
                    TextResourceContents::new("test://embedded-resource", text).mime_type("text/plain"),
                )
            })
            .description("Returns the contents of a resource"),
        )
        .tool(
            tool("test_multiple_content_types", async |_, _: NoArguments| {
                let json = r#"{"test":"data","value":123}"#;
                let resource = TextResourceContents::new("test://mixed-content-resource", json);
                vec![
                    ContentBlock::text("Multiple content types test:"),
                    image(),
                    ContentBlock::resource(resource.mime_type("application/json")),
                ]
            })
            .description("Returns a text, an image and a resource"),
        )
        .tool(
            tool("test_error_handling", async |_, _: NoArguments| {
                Err::<(), _>("This tool intentionally returns an error for testing")
            })
            .description("Fails, for the model to read"),
        )
        .tool(
            raw_tool("json_schema_2020_12_tool", schema_2020_12(), async |_, arguments: RawObject| {
                format!("JSON Schema 2020-12 tool called with: {arguments}")
            })
            .description("Takes arguments whose schema uses JSON Schema 2020-12"),
        )
}

fn image() -> ContentBlock {
    ContentBlock::image(media::PNG, "image/png")
}

/// The suite looks for this schema, keyword by keyword.
fn schema_2020_12() -> RawObject {
    RawObject::parse(include_str!("schema_2020_12.json")).expect("the file is a JSON object")
}
