//! Our protected server: the same tools as those of the servers in `interop/auth`.

use std::time::Duration;

use mcp_auth::server::{JwtVerifier, ProtectedResource};
use mcp_server::{AuthInfo, Server, tool_fn};
use mcp_transport_http::{HttpOptions, HttpService, SessionMode};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower_layer::Layer as _;

/// The server. It ends when this is dropped.
pub(crate) struct OurServer {
    pub(crate) url: String,
    serving: JoinHandle<()>,
}

impl OurServer {
    /// Starts the server, with what `protect` makes of its description.
    pub(crate) async fn start(issuer: &str, protect: impl FnOnce(ProtectedResource) -> ProtectedResource) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        let address = listener.local_addr().expect("the listener has an address");
        let url = format!("http://{address}/mcp");
        let resource = ProtectedResource::new(&url).authorization_server(issuer).scopes_required(["notes:read"]);
        let layer = protect(resource).layer().expect("the resource is valid");
        let options = HttpOptions::default().sessions(SessionMode::Stateful);
        let service = layer.layer(HttpService::with_options(server(), options));
        let router = axum::Router::new().fallback_service(service);
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("the listener works") });
        Self { url, serving }
    }
}

/// Verifies JWTs of an issuer, and takes their expiry literally.
pub(crate) fn with_jwts(issuer: &str) -> impl FnOnce(ProtectedResource) -> ProtectedResource {
    let verifier = JwtVerifier::discover(issuer).require_access_token_type().leeway(Duration::ZERO);
    |resource| resource.verifier(verifier)
}

impl Drop for OurServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn server() -> Server {
    let server = Server::builder("protected", "1.0")
        .tool(tool_fn("whoami", whoami))
        .tool(tool_fn("write", write).requires_scope("notes:write"));
    server.build().expect("the server is valid")
}

async fn whoami(auth: AuthInfo) -> String {
    let words: Vec<&str> = [auth.subject()].into_iter().chain(auth.scopes()).collect();
    words.join(" ")
}

async fn write() -> &'static str {
    "written"
}
