//! The interop server in Rust with `rmcp`: `--stdio` or `--http`. What it offers is in
//! `tests/interop/servers/README.md`.

mod handler;
mod tools;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use handler::{Handler, Shared};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::ServiceExt as _;
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::net::TcpListener;

/// When clients that were cut off come back.
const RETRY: Option<Duration> = Some(Duration::from_millis(10));

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match std::env::args().nth(1).as_deref() {
        Some("--stdio") => runtime.block_on(serve_stdio()),
        Some("--http") => runtime.block_on(serve_http()),
        _ => Err("--stdio or --http".into()),
    }
}

async fn serve_stdio() -> Result<(), Box<dyn Error>> {
    Handler::new(Arc::default()).serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}

/// Serves both eras, with sessions for legacy clients, until the input ends.
#[expect(clippy::print_stdout, reason = "the test reads the address from here")]
async fn serve_http() -> Result<(), Box<dyn Error>> {
    let shared = Arc::<Shared>::default();
    let factory = move || Ok(Handler::new(Arc::clone(&shared)));
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.sse_retry = RETRY;
    let config = StreamableHttpServerConfig::default().with_sse_retry(RETRY);
    let service = StreamableHttpService::new(factory, Arc::new(sessions), config);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    let mut input = tokio::io::stdin();
    let mut ignored = tokio::io::sink();
    tokio::select! {
        _ = tokio::io::copy(&mut input, &mut ignored) => Ok(()),
        failed = accept(listener, service) => failed,
    }
}

async fn accept(
    listener: TcpListener,
    service: StreamableHttpService<Handler, LocalSessionManager>,
) -> Result<(), Box<dyn Error>> {
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        // Whoever hangs up in the middle does not bother the others.
        tokio::spawn(async { http1::Builder::new().serve_connection(TokioIo::new(stream), service).await });
    }
}
