//! MCP as one route of an axum application, for clients with an access token. The other routes need none.
//!
//! Its arguments are the issuer of an authorization server, which issues tokens for `http://127.0.0.1:8000/mcp`, and an address.
//!
//! ```console
//! $ cargo run --bin protected_axum -- https://issuer.example.com
//! $ cargo run --bin log_in -- browser logins.json http://127.0.0.1:8000/mcp whoami
//! ```

use std::io::{self, Write};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use mcp::auth::server::{ProtectLayer, ProtectedResource};
use mcp::http::shutdown_signal;
use mcp::prelude::*;
use mcp::server::AuthInfo;

#[tokio::main]
async fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let issuer = arguments.next().ok_or_else(|| io::Error::other("usage: protected_axum ISSUER [ADDRESS]"))?;
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8000".to_owned());

    let listener = tokio::net::TcpListener::bind(address).await?;
    // The address is what clients use, and what tokens have to be issued for.
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let auth = ProtectedResource::new(&url).issuer(issuer).layer()?;
    let whoami = tool_fn("whoami", async |auth: AuthInfo| auth.subject().to_owned());
    let service = HttpService::new(Server::builder("members", "1.0").tool(whoami).build()?);

    writeln!(io::stdout(), "{url}")?;
    let stop = {
        let service = service.clone();
        async move {
            shutdown_signal().await;
            // Requests in flight may finish; new ones are refused.
            service.drain(Duration::from_secs(30)).await;
        }
    };
    axum::serve(listener, app(service, auth)).with_graceful_shutdown(stop).await
}

fn app(service: HttpService, auth: ProtectLayer) -> Router {
    // Clients without a token read where to get one, at paths outside of the protected route.
    let metadata = auth.metadata_service();
    let mut app = Router::new().route_service("/mcp", service).route_layer(auth);
    for path in metadata.paths() {
        app = app.route_service(path, metadata.clone());
    }
    app.route("/", get("There is an MCP server at /mcp.\n"))
}
