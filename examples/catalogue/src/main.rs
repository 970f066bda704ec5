//! A catalogue of items in SQLite, for users with roles: only administrators see the tools that delete and import items.
//!
//! ```console
//! $ cargo run -p mcp-example-catalogue -- catalogue.db
//! $ cargo run --bin connect -- --bearer bob-secret http://127.0.0.1:8000/mcp
//! $ cargo run --bin ask_me -- --bearer ann-secret --call delete_item '{"id":1}' http://127.0.0.1:8000/mcp
//! ```

mod resources;
mod store;
#[cfg(test)]
mod tests;
mod tools;
mod users;

use std::error::Error;
use std::io::{self, Write as _};
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use mcp::http::{HttpOptions, HttpService, SessionMode, StartError, shutdown_signal};
use mcp::server::{BuildError, Server};

use crate::store::Catalogue;
use crate::users::{Users, authenticate};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Errors of handlers are logged with their causes.
    tracing_subscriber::fmt().with_writer(io::stderr).init();
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| ":memory:".to_owned());
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8000".to_owned());

    let service = service(server(Catalogue::open(path)?)?)?;
    let app = app(service.clone());
    let listener = tokio::net::TcpListener::bind(address).await?;
    writeln!(io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    let stop = async move {
        shutdown_signal().await;
        service.drain(Duration::from_secs(30)).await;
    };
    axum::serve(listener, app).with_graceful_shutdown(stop).await?;
    Ok(())
}

fn server(catalogue: Catalogue) -> Result<Server, BuildError> {
    Server::builder("catalogue", "1.0")
        .state(catalogue)
        .state(Users::EXAMPLE)
        .tools(tools::all())
        .template(resources::item())
        .resource_subscriptions()
        // Older clients can only be asked, and notified of changes, in a session.
        .requires_sessions()
        .build()
}

fn service(server: Server) -> Result<HttpService, StartError> {
    HttpService::try_with_options(server, HttpOptions::default().sessions(SessionMode::Stateful))
}

fn app(service: HttpService) -> Router {
    Router::new().route_service("/mcp", service).layer(from_fn_with_state(Users::EXAMPLE, authenticate))
}
