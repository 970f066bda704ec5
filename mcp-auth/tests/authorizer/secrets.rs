//! What is shown of secrets: nothing.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use mcp_auth::authorizer::OAuth;
use mcp_auth::client::PreRegistered;
use mcp_auth::store::FileStore;
use mcp_client::Client;
use mcp_transport_http::HttpTransport;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::support::{Agreeing, Servers};
use crate::{Directory, ping};

/// Everything that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

// covers: AU-14
#[test]
fn no_secret_is_in_any_log_error_or_debug_output() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(FmtSpan::FULL)
        .with_writer(log.clone())
        .finish();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut shown = String::new();
    let secrets = tracing::subscriber::with_default(subscriber, || runtime.block_on(use_everything(&mut shown)));
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("TRACE"), "the log is complete");
    assert!(secrets.len() > 6, "{}", secrets.len());
    for secret in secrets {
        assert!(!log.contains(&secret), "{secret} is in the log");
        assert!(!shown.contains(&secret), "{secret} is shown");
    }
    assert!(!log.contains("hunter2") && !shown.contains("hunter2"));
}

/// Logs in, refreshes, fails and logs out, and returns all secrets that were involved.
async fn use_everything(shown: &mut String) -> Vec<String> {
    let servers = Servers::start().await;
    let directory = Directory::new("secrets");
    servers.ledger().lifetime = Duration::from_secs(2);
    let agreeing = Agreeing::default();
    // The address of the server has a key.
    let server = format!("{}?key=query-hunter2", servers.server());
    let builder = OAuth::builder(server.clone())
        .prompt(agreeing)
        .client(PreRegistered::new("client").client_secret("client-hunter2"))
        .store(FileStore::new(directory.file()));
    shown.push_str(&format!("{builder:?}"));
    let oauth = builder.build().unwrap();
    let transport = HttpTransport::new(&server).unwrap().authorizer(oauth.clone());
    let client = Client::connect(transport).await.unwrap();
    ping(&client).await.unwrap();
    shown.push_str(&format!("{oauth:?} {client:?}"));
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    servers.ledger().refusal = Some((StatusCode::SERVICE_UNAVAILABLE, json!({ "error": "x" })));
    let error = ping(&client).await.unwrap_err();
    shown.push_str(&format!("{error} {error:?}"));
    servers.ledger().refusal = None;
    ping(&client).await.unwrap();
    servers.ledger().end_logins();
    ping(&client).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    servers.ledger().refusal = Some((StatusCode::BAD_REQUEST, json!({ "error": "invalid_request" })));
    ping(&client).await.unwrap();
    // A hostile authorization server repeats what it was sent, in places that are shown.
    servers.ledger().refusal = None;
    servers.ledger().echoes = true;
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let error = ping(&client).await.unwrap_err();
    shown.push_str(&format!("{error} {error:?}"));
    let error = oauth.login().await.unwrap_err();
    assert!(error.to_string().contains("[redacted]"), "{error}");
    shown.push_str(&format!("{error} {error:?}"));
    servers.ledger().echoes = false;
    std::fs::write(directory.file(), "{\"version\":1,\"records\":{\"x\":\"hunter2").unwrap();
    let error = oauth.logout().await.unwrap_err();
    shown.push_str(&format!("{error} {error:?}"));
    std::fs::remove_file(directory.file()).unwrap();
    oauth.login().await.unwrap();
    oauth.logout().await.unwrap();
    servers.secrets()
}
