//! The items as resources, which clients can read and subscribe to.

use mcp::prelude::*;
use mcp::server::extract::State;
use mcp::server::{Template, template_fn};

use crate::store::{Catalogue, Item, Result};

/// Returns the URI of an item.
pub(crate) fn uri_of(id: i64) -> String {
    format!("catalogue://items/{id}")
}

pub(crate) fn item() -> Template {
    template_fn("catalogue://items/{id}", "item", read).title("Item").description("An item of the catalogue by its id")
}

#[derive(serde::Deserialize)]
struct Variables {
    id: i64,
}

// Clients get the error for resources that do not exist instead of `None`.
async fn read(State(catalogue): State<Catalogue>, Variables { id }: Variables) -> Result<Option<Json<Item>>> {
    Ok(catalogue.get(id).await?.map(Json))
}
