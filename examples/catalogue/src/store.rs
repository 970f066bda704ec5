//! The items of the catalogue, in a SQLite database.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use mcp::prelude::*;
use mcp::server::AskError;
use rusqlite::{Connection, OptionalExtension as _, Params, Row};
use serde::{Deserialize, Serialize};

/// The catalogue. Clones share one connection to the database.
#[derive(Clone)]
pub(crate) struct Catalogue(Arc<Mutex<Connection>>);

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Item {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) price_in_cents: u32,
    pub(crate) stock: u32,
    /// The user who changed the item last
    pub(crate) changed_by: String,
}

/// An item that is not in the catalogue yet
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct NewItem {
    #[schemars(length(min = 1, max = 100))]
    pub(crate) name: String,
    pub(crate) price_in_cents: u32,
    #[serde(default)]
    pub(crate) stock: u32,
}

/// The errors of all handlers. Models read the texts; the causes are only logged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CatalogueError {
    #[error("there is no item {0}: call search_items for the ids")]
    UnknownItem(i64),
    #[error("there is already an item with the name {0:?}: call set_stock to change it")]
    NameTaken(String),
    #[error("the import was cancelled, and nothing was imported")]
    ImportCancelled,
    #[error("cannot ask the user for confirmation")]
    Confirmation(#[from] AskError),
    #[error("the catalogue is not available: try again later")]
    Database(#[from] rusqlite::Error),
    #[error("the catalogue is not available: try again later")]
    Thread(#[from] tokio::task::JoinError),
}

pub(crate) type Result<T> = std::result::Result<T, CatalogueError>;

const MAX_FOUND: u32 = 50;

// Ids are not used again: a confirmation to delete an item must not delete another one.
const CREATE: &str = "CREATE TABLE IF NOT EXISTS items (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, price_in_cents INTEGER NOT NULL,
    stock INTEGER NOT NULL, changed_by TEXT NOT NULL)";
const SEARCH: &str = "SELECT * FROM items WHERE instr(lower(name), lower(?1)) ORDER BY name LIMIT ?2";
const GET: &str = "SELECT * FROM items WHERE id = ?1";
const ADD: &str = "INSERT INTO items (name, price_in_cents, stock, changed_by) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO NOTHING RETURNING *";
const IMPORT: &str = "INSERT INTO items (name, price_in_cents, stock, changed_by) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET price_in_cents = ?2, stock = ?3, changed_by = ?4 RETURNING id";
const SET_STOCK: &str = "UPDATE items SET stock = ?2, changed_by = ?3 WHERE id = ?1 RETURNING *";
const DELETE: &str = "DELETE FROM items WHERE id = ?1 RETURNING *";

impl Catalogue {
    /// Opens the database, which is created if there is none. The path `:memory:` is one without a file.
    pub(crate) fn open(path: impl AsRef<Path>) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        connection.execute_batch(CREATE)?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// Returns the first items, by name, whose name contains a text.
    pub(crate) async fn search(&self, text: String) -> Result<Vec<Item>> {
        let search = move |connection: &mut Connection| {
            let mut statement = connection.prepare(SEARCH)?;
            let items = statement.query_map((text, MAX_FOUND), item_of)?;
            Ok(items.collect::<rusqlite::Result<_>>()?)
        };
        self.run(search).await
    }

    pub(crate) async fn get(&self, id: i64) -> Result<Option<Item>> {
        self.query_item(GET, [id]).await
    }

    pub(crate) async fn add(&self, item: NewItem, user: String) -> Result<Item> {
        let NewItem { name, price_in_cents, stock } = item;
        let added = self.query_item(ADD, (name.clone(), price_in_cents, stock, user)).await?;
        added.ok_or(CatalogueError::NameTaken(name))
    }

    pub(crate) async fn set_stock(&self, id: i64, stock: u32, user: String) -> Result<Item> {
        self.query_item(SET_STOCK, (id, stock, user)).await?.ok_or(CatalogueError::UnknownItem(id))
    }

    pub(crate) async fn delete(&self, id: i64) -> Result<Item> {
        self.query_item(DELETE, [id]).await?.ok_or(CatalogueError::UnknownItem(id))
    }

    /// Adds items, and replaces those that have the same name; all of them, or none. Returns their ids.
    ///
    /// After each item, `go_on` gets the number of items so far. The import is cancelled if it returns `false`.
    pub(crate) async fn import(
        &self,
        items: Vec<NewItem>,
        user: String,
        mut go_on: impl FnMut(usize) -> bool + Send + 'static,
    ) -> Result<Vec<i64>> {
        let import = move |connection: &mut Connection| {
            // Rolled back when it is dropped without a commit.
            let transaction = connection.transaction()?;
            let mut ids = Vec::with_capacity(items.len());
            for NewItem { name, price_in_cents, stock } in items {
                let values = (name, price_in_cents, stock, &user);
                ids.push(transaction.query_row(IMPORT, values, |row| row.get(0))?);
                if !go_on(ids.len()) {
                    return Err(CatalogueError::ImportCancelled);
                }
            }
            transaction.commit()?;
            Ok(ids)
        };
        self.run(import).await
    }

    async fn query_item(&self, sql: &'static str, values: impl Params + Send + 'static) -> Result<Option<Item>> {
        self.run(move |connection| Ok(connection.query_row(sql, values, item_of).optional()?)).await
    }

    /// Runs a function on a thread that may block, because SQLite does.
    async fn run<T: Send + 'static>(
        &self,
        function: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let connection = Arc::clone(&self.0);
        let run = move || function(&mut connection.lock().unwrap_or_else(PoisonError::into_inner));
        tokio::task::spawn_blocking(run).await?
    }
}

fn item_of(row: &Row<'_>) -> rusqlite::Result<Item> {
    Ok(Item {
        id: row.get("id")?,
        name: row.get("name")?,
        price_in_cents: row.get("price_in_cents")?,
        stock: row.get("stock")?,
        changed_by: row.get("changed_by")?,
    })
}
