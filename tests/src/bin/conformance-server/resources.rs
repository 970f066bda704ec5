//! Resources, fixed and by template.

use mcp_server::{ServerBuilder, UriVariables, blob_resource, resource, template, text_resource};
use serde_json::json;

use crate::media;

/// What clients subscribe to.
pub(crate) const WATCHED: &str = "test://watched-resource";

pub(crate) fn add(server: ServerBuilder) -> ServerBuilder {
    server
        .resource(
            text_resource("test://static-text", "static-text", "This is the content of the static text resource.")
                .description("A text that never changes"),
        )
        .resource(
            blob_resource("test://static-binary", "static-binary", media::PNG)
                .mime_type("image/png")
                .description("An image that never changes"),
        )
        .resource(
            resource(WATCHED, "watched-resource", async |_| "Watched resource content.")
                .mime_type("text/plain")
                .description("A resource to subscribe to"),
        )
        .template(
            template("test://template/{id}/data", "template", async |_, variables: UriVariables| data(&variables))
                .mime_type("application/json")
                .description("Data by its id")
                .complete("id", async |_, _| vec!["1".to_owned(), "2".to_owned()]),
        )
        .resource_subscriptions()
}

fn data(variables: &UriVariables) -> Option<String> {
    let id = variables.get("id")?;
    Some(json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") }).to_string())
}
