//! MCP as one route of an axum application, with a middleware that authenticates bearer tokens, for clients in web pages, too.
//!
//! ```console
//! $ cargo run --bin axum_server
//! $ curl http://127.0.0.1:8000/
//! $ curl http://127.0.0.1:8000/mcp -H 'Authorization: Bearer ann-secret' -H 'Content-Type: application/json' \
//!     -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami"}}'
//! ```

use std::io::{self, Write};

use axum::Router;
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use mcp::http::{HttpOptions, HttpService, cors, shutdown_signal};
use mcp::server::{BuildError, NoArguments, Principal, RequestContext, Server, tool};
use tower_http::cors::CorsLayer;

/// The web application whose pages may use the server.
const WEB_APP: &str = "https://app.example.com";

#[tokio::main]
async fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".to_owned());
    let service = HttpService::with_options(server()?, HttpOptions::default().allow_origin(WEB_APP));
    let app = Router::new()
        .route_service("/mcp", service.clone())
        // Only the routes above require a token.
        .route_layer(from_fn(authenticate))
        .route("/", get("There is an MCP server at /mcp.\n"))
        // Around the authentication, as browsers send preflight requests without a token.
        .layer(cors_layer());
    let listener = tokio::net::TcpListener::bind(address).await?;
    writeln!(io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    let stop = async move {
        shutdown_signal().await;
        // Requests in flight may finish; new ones are refused.
        service.drain(std::time::Duration::from_secs(30)).await;
    };
    axum::serve(listener, app).with_graceful_shutdown(stop).await
}

fn server() -> Result<Server, BuildError> {
    let whoami = tool("whoami", async |ctx: RequestContext, _: NoArguments| {
        ctx.principal().map_or_else(|| "nobody".to_owned(), |principal| principal.subject.to_string())
    });
    Server::builder("members", "1.0").tool(whoami.description("Returns the name of the user")).build()
}

/// Lets the pages of the web application send the headers of the protocol, and read those of responses.
fn cors_layer() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(HeaderValue::from_static(WEB_APP))
        .allow_methods(cors::allowed_methods())
        .allow_headers(cors::allowed_headers())
        .expose_headers(cors::exposed_headers())
}

/// Authenticates the user and inserts a `Principal`, which handlers and the limits per principal read.
async fn authenticate(mut request: Request, next: Next) -> Response {
    let token = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    // A real middleware validates tokens of an authorization server, and compares secrets in constant time.
    let user = match token {
        Some("ann-secret") => "ann",
        Some("bob-secret") => "bob",
        _ => return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")]).into_response(),
    };
    request.extensions_mut().insert(Principal::new(None, user));
    next.run(request).await
}
