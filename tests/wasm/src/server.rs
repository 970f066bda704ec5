//! The server, with a tool for each thing that may depend on the platform.

use std::future;

use mcp_server::{HandlerError, Json, NoArguments, RequestContext, Server, ServerBuilder, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Party {
    guests: u32,
}

/// Describes the server, without a clock and a random source.
pub(crate) fn builder() -> ServerBuilder {
    Server::builder("wasm-server", env!("CARGO_PKG_VERSION"))
        .tool(tool("add", async |_, Add { a, b }: Add| Json(Sum { sum: a + b })))
        .tool(tool("book", book))
        .tool(tool("wait", async |_, _: NoArguments| future::pending::<String>().await))
}

/// Asks the user, which takes a sealed state in the modern era.
async fn book(ctx: RequestContext, _: NoArguments) -> Result<String, HandlerError> {
    let Party { guests } = ctx.elicit("party", "How many guests?").await?.accepted()?;
    Ok(format!("booked for {guests}"))
}
