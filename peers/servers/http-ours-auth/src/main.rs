//! `http-ours` behind the layer that verifies access tokens. It accepts every token: what is counted are requests with one that
//! was verified before.

#[path = "../../../shared/driven.rs"]
mod driven;
#[path = "../../ours/src/tools.rs"]
mod tools;

use std::error::Error;

use mcp_auth::Secret;
use mcp_auth::server::{ProtectedResource, verifier_fn};
use mcp_server::{AuthInfo, Principal, Server};
use mcp_transport_http::{HttpOptions, HttpServer, HttpService, SessionMode};

const ISSUER: &str = "https://issuer.example.com";
const RESOURCE: &str = "https://api.example.com/mcp";

#[expect(clippy::print_stdout, reason = "the driver reads the address there")]
fn main() -> Result<(), Box<dyn Error>> {
    let server = tools::echoes(Server::builder("ours", "1.0"), driven::number_of_tools()).build()?;
    let verifier = verifier_fn(|_: Secret| async {
        let auth = AuthInfo::builder(Principal::new(Some(ISSUER), "alice")).client_id("editor").audience([RESOURCE]);
        Ok(auth.scopes(["mcp:use"]).build())
    });
    let resource = ProtectedResource::new(RESOURCE).authorization_server(ISSUER).verifier(verifier);
    let layer = resource.scopes_required(["mcp:use"]).layer()?;
    let mode = if driven::has_sessions() { SessionMode::Stateful } else { SessionMode::Stateless };
    let options = HttpOptions::default().sessions(mode);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    driven::end_with_input(runtime.handle().clone());
    runtime.block_on(async {
        let listener = HttpServer::bind("127.0.0.1:0").await?;
        println!("{}", listener.url());
        listener.layer(layer).serve(HttpService::with_options(server, options), std::future::pending()).await;
        Ok(())
    })
}
