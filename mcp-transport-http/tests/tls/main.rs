//! TLS, with real handshakes.

mod certificates;
mod client;
mod server;

use std::time::Duration;

use mcp_client::{Client, ClientBuilder};

/// Fails if something takes too long.
async fn within<F: IntoFuture>(work: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), work.into_future()).await.expect("it takes too long")
}

fn builder() -> ClientBuilder {
    Client::builder("test", "1.0").handshake_timeout(Duration::from_secs(10))
}
