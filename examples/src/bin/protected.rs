//! A server that demands access tokens, and a tool that demands a scope.
//!
//! Its arguments are the issuer of an authorization server, which issues tokens for `http://127.0.0.1:8000/mcp`, and an address.
//!
//! ```console
//! $ cargo run --bin protected -- https://issuer.example.com
//! $ cargo run --bin log_in -- browser logins.json http://127.0.0.1:8000/mcp whoami
//! ```

use std::io::{self, Write};

use mcp::auth::server::ProtectedResource;
use mcp::http::{HttpServer, shutdown_signal};
use mcp::prelude::*;
use mcp::server::AuthInfo;

#[tokio::main]
async fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let issuer = arguments.next().ok_or_else(|| io::Error::other("usage: protected ISSUER [ADDRESS]"))?;
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8000".to_owned());

    let listener = HttpServer::bind(address).await?;
    writeln!(io::stdout(), "{}", listener.url())?;
    // The address is what clients use, and what tokens have to be issued for.
    let auth = ProtectedResource::new(listener.url()).issuer(issuer).layer()?;
    listener.layer(auth).serve(HttpService::new(server()?), shutdown_signal()).await;
    Ok(())
}

fn server() -> io::Result<Server> {
    let whoami = tool_fn("whoami", async |auth: AuthInfo| auth.subject().to_owned());
    let add = tool_fn("add_book", async |_: AuthInfo| "added").requires_scope("books:write");
    Ok(Server::builder("library", "1.0").tool(whoami).tool(add).build()?)
}
