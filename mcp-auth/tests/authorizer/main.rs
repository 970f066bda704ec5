//! Logging in, refreshing and logging out, against servers in the same process.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like one")]

#[path = "../support/mod.rs"]
mod support;

mod discovery;
mod logging_in;
mod machines;
mod refreshing;
mod secrets;

use std::path::PathBuf;

use mcp_auth::authorizer::{OAuth, OAuthBuilder};
use mcp_client::Client;
use mcp_transport_http::HttpTransport;
use support::Servers;

/// A directory that is removed at the end of the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mcp-auth-authorizer-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("logins.json")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn oauth(servers: &Servers) -> OAuthBuilder {
    OAuth::builder(servers.server())
}

async fn connect(servers: &Servers, oauth: &OAuth) -> Result<Client, mcp_client::Error> {
    Client::connect(HttpTransport::new(servers.server()).unwrap().authorizer(oauth.clone())).await
}

async fn ping(client: &Client) -> Result<String, mcp_client::Error> {
    client.call_tool("ping").await.map(|result| result.to_text())
}
