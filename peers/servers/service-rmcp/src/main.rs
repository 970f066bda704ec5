//! A service made with the macros of `rmcp`, with a router that is kept: without sessions and with plain JSON, which is the
//! fastest that it offers, on hyper without a framework.

#[path = "../../../shared/driven.rs"]
mod driven;
#[path = "../../../shared/shop.rs"]
mod shop;

use std::sync::Arc;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use tokio::net::TcpListener;

use crate::shop::{Customer, Fault, Purchase, Shop};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the driver reads the address from here")]
async fn main() -> Result<(), Fault> {
    let server = Arc::new(Service { shop: Shop::open().await?, tool_router: Service::tool_router() });
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(None)
        .disable_allowed_hosts();
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(Arc::clone(&server)), sessions, config);
    driven::end_with_input(tokio::runtime::Handle::current());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        // A client that disconnects does not affect the other ones.
        tokio::spawn(async { http1::Builder::new().serve_connection(TokioIo::new(stream), service).await });
    }
}

struct Service {
    shop: Shop,
    tool_router: ToolRouter<Self>,
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Service {}

#[tool_router]
impl Service {
    #[tool(description = "Adds an item to a cart")]
    async fn add(&self, Parameters(purchase): Parameters<Purchase>) -> Result<String, String> {
        self.shop.add(&purchase).await.map_err(|fault| fault.to_string())
    }

    #[tool(description = "Lists what is in a cart")]
    async fn cart(&self, Parameters(customer): Parameters<Customer>) -> Result<String, String> {
        self.shop.cart(&customer).await.map_err(|fault| fault.to_string())
    }

    #[tool(description = "Buys an item that is in a cart")]
    async fn buy(&self, Parameters(purchase): Parameters<Purchase>) -> Result<String, String> {
        self.shop.buy(&purchase).await.map_err(|fault| fault.to_string())
    }
}
