//! The tools, which search and change the catalogue.

use mcp::prelude::*;
use mcp::server::extract::State;
use mcp::server::{Change, Elicited, Principal, Tool, tool_fn};
use mcp::types::ToolAnnotations;
use serde::{Deserialize, Serialize};

use crate::resources::uri_of;
use crate::store::{Catalogue, CatalogueError, Item, NewItem, Result};
use crate::users::is_admin;

pub(crate) fn all() -> [Tool; 5] {
    let reads = ToolAnnotations::default().read_only_hint(true);
    let adds = ToolAnnotations::default().destructive_hint(false);
    [
        tool_fn("search_items", search).annotations(reads),
        tool_fn("add_item", add).description("Adds an item").annotations(adds),
        tool_fn("set_stock", set_stock),
        // For everyone else these do not exist.
        tool_fn("delete_item", delete).visible(is_admin),
        tool_fn("import_items", import).visible(is_admin),
    ]
}

/// Finds items by a part of their name
#[derive(Deserialize, JsonSchema)]
struct Search {
    /// Any part of the name; all items if it is empty
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Found {
    items: Vec<Item>,
}

async fn search(State(catalogue): State<Catalogue>, Search { text }: Search) -> Result<Json<Found>> {
    Ok(Json(Found { items: catalogue.search(text).await? }))
}

async fn add(State(catalogue): State<Catalogue>, user: Principal, item: NewItem) -> Result<Json<Item>> {
    catalogue.add(item, user.subject.to_string()).await.map(Json)
}

/// Sets how many pieces of an item there are
#[derive(Deserialize, JsonSchema)]
struct SetStock {
    id: i64,
    stock: u32,
}

async fn set_stock(
    State(catalogue): State<Catalogue>,
    user: Principal,
    server: Server,
    SetStock { id, stock }: SetStock,
) -> Result<Json<Item>> {
    let item = catalogue.set_stock(id, stock, user.subject.to_string()).await?;
    server.publish(&Change::Resource(uri_of(id)));
    Ok(Json(item))
}

/// Deletes an item for good, once the user has confirmed it
#[derive(Deserialize, JsonSchema)]
struct Delete {
    id: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    /// Whether to delete the item for good
    delete: bool,
}

// With modern clients this runs twice, so nothing changes before the confirmation.
async fn delete(State(catalogue): State<Catalogue>, ctx: RequestContext, Delete { id }: Delete) -> Result<String> {
    let Item { name, stock, .. } = catalogue.get(id).await?.ok_or(CatalogueError::UnknownItem(id))?;
    let response = ctx.elicit("confirm", format!("Delete {name:?}, of which there are {stock}?")).await?;
    if !matches!(response, Elicited::Accepted(Confirmation { delete: true })) {
        return Ok(format!("kept {name:?}, because the user does not want to delete it"));
    }
    catalogue.delete(id).await?;
    ctx.server().publish(&Change::Resource(uri_of(id)));
    Ok(format!("deleted {name:?}"))
}

/// Adds many items, and replaces those that have the same name; all of them, or none if one fails
#[derive(Deserialize, JsonSchema)]
struct Import {
    #[schemars(length(min = 1, max = 1000))]
    items: Vec<NewItem>,
}

async fn import(
    State(catalogue): State<Catalogue>,
    user: Principal,
    ctx: RequestContext,
    Import { items }: Import,
) -> Result<String> {
    let total = items.len();
    let server = ctx.server().clone();
    // The import runs on a thread of its own, which has to stop by itself when the request is cancelled.
    let go_on = move |done| {
        ctx.progress((done, total));
        !ctx.is_cancelled()
    };
    for id in catalogue.import(items, user.subject.to_string(), go_on).await? {
        server.publish(&Change::Resource(uri_of(id)));
    }
    Ok(format!("imported {total} items"))
}
