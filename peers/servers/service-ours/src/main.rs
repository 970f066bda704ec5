//! A service made with this workspace's crates, as its author would write it.

#[path = "../../../shared/driven.rs"]
mod driven;
#[path = "../../../shared/shop.rs"]
mod shop;

use mcp_server::extract::State;
use mcp_server::{Server, tool_fn};
use mcp_transport_http::{HttpServer, HttpService};

use crate::shop::{Customer, Fault, Purchase, Shop};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the driver reads the address there")]
async fn main() -> Result<(), Fault> {
    let server = Server::builder("shop", "1.0")
        .state(Shop::open().await?)
        .tool(tool_fn("add", add).description("Adds an item to a cart"))
        .tool(tool_fn("cart", cart).description("Lists what is in a cart"))
        .tool(tool_fn("buy", buy).description("Buys an item that is in a cart"))
        .build()?;
    driven::end_with_input(tokio::runtime::Handle::current());
    let listener = HttpServer::bind("127.0.0.1:0").await?;
    println!("{}", listener.url());
    listener.serve(HttpService::new(server), std::future::pending()).await;
    Ok(())
}

async fn add(State(shop): State<Shop>, purchase: Purchase) -> Result<String, Fault> {
    shop.add(&purchase).await
}

async fn cart(State(shop): State<Shop>, customer: Customer) -> Result<String, Fault> {
    shop.cart(&customer).await
}

async fn buy(State(shop): State<Shop>, purchase: Purchase) -> Result<String, Fault> {
    shop.buy(&purchase).await
}
