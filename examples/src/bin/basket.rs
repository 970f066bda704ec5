//! A shop whose baskets live from call to call, without a session: the model passes their handles.
//!
//! `cargo run --bin basket`, and connect a client; docs/state-between-calls.md explains it.

use std::time::Duration;

use mcp::prelude::*;
use mcp::server::{ClientCapability, Handle, HandleError, HandleValue, Handles};
use serde::{Deserialize, Serialize};

/// What a handle stands for.
#[derive(Default, Serialize, Deserialize)]
struct Basket {
    items: Vec<String>,
}

impl HandleValue for Basket {
    const NAME: &'static str = "basket";
    const HINT: &'static str = "Call `open_basket` to get one.";
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The basket to put the item into
    basket: Handle<Basket>,
    item: String,
}

#[derive(Deserialize, JsonSchema)]
struct CheckOut {
    /// The basket to buy
    basket: Handle<Basket>,
}

#[derive(Serialize, JsonSchema)]
struct Contents {
    basket: Handle<Basket>,
    items: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    /// Whether to buy all of it
    sure: bool,
}

async fn open_basket(ctx: RequestContext, _: NoArguments) -> Result<Json<Contents>, HandleError> {
    let basket = ctx.handles().mint(Basket::default()).await?;
    Ok(Json(Contents { basket, items: Vec::new() }))
}

async fn add_item(_: RequestContext, Add { mut basket, item }: Add) -> Result<Json<Contents>, HandleError> {
    // Runs again if another call changes the basket at the same time.
    basket.update(|basket| basket.items.push(item.clone())).await?;
    let items = basket.items.clone();
    Ok(Json(Contents { basket, items }))
}

async fn check_out(ctx: RequestContext, CheckOut { basket }: CheckOut) -> Result<String, HandlerError> {
    let count = basket.items.len();
    if ctx.supports(ClientCapability::ElicitationForm) {
        let question = format!("Buy {count} items?");
        let Confirmation { sure } = ctx.elicit("confirm", question).await?.accepted()?;
        if !sure {
            return Ok("nothing was bought".to_owned());
        }
    }
    // After the user was asked, as the handler runs again with the same arguments when the response arrives.
    let Basket { items } = basket.take().await?;
    Ok(format!("bought {}", items.join(", ")))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let server = Server::builder("shop", "1.0")
        .handles(Handles::<Basket>::in_memory().lifetime(Duration::from_secs(30 * 60)))
        .tool(tool("open_basket", open_basket).description("Opens an empty shopping basket"))
        .tool(tool("add_item", add_item).description("Puts an item into a basket"))
        .tool(tool("check_out", check_out).description("Buys what is in a basket, and closes the basket"))
        .build()?;
    mcp::stdio::serve_stdio(server).await
}
