//! Messages that are not answered: notifications, and answers to the server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method as Verb, StatusCode};
use mcp_client::SessionLossReason;
use reqwest::Url;

use super::head::Session;
use super::news::{Heard, News};
use super::wire::{SendFault, Wire, read_body};

/// A message on its way.
pub(super) struct Saying {
    pub(super) to: Url,
    pub(super) head: HeaderMap,
    pub(super) body: Bytes,
    pub(super) session: Session,
    /// Whether the session begins with it, so that nothing may come before.
    pub(super) opens_session: bool,
}

/// How long the server may take to accept a message, which those behind it wait for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is read of what a server says although nothing was asked, so that the connection can be used again.
const POLITE_BYTES: usize = 64 << 10;

/// How long that may take.
const POLITE_TIME: Duration = Duration::from_millis(200);

impl Saying {
    /// Sends the message; that it is refused is worth a note, and nothing more.
    pub(super) async fn run(self, wire: Arc<Wire>, news: News) {
        let sending = wire.send(Verb::POST, &self.to, &self.head, Some(&self.body), &self.session, &news);
        let sent = tokio::time::timeout(PATIENCE, sending).await;
        let why = match sent.map(|sent| sent.map(|sent| sent.response)) {
            Ok(Ok(response)) if response.status().is_success() => {
                if !matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
                    let _ = tokio::time::timeout(POLITE_TIME, read_body(response, POLITE_BYTES)).await;
                }
                return;
            }
            Ok(Ok(response)) if response.status() == StatusCode::NOT_FOUND && self.session.id.is_some() => {
                let reason = SessionLossReason::Unknown { status: response.status().as_u16() };
                return news.tell(Heard::SessionLost { call: None, age: self.session.age, reason }).await;
            }
            Ok(Ok(response)) => response.status().to_string(),
            Ok(Err(SendFault::NotTheOwner)) => {
                let reason = SessionLossReason::CredentialsChanged;
                return news.tell(Heard::SessionLost { call: None, age: self.session.age, reason }).await;
            }
            Ok(Err(SendFault::Failed(why))) => why,
            Err(_) => "the server did not accept it in time".to_owned(),
        };
        tracing::debug!(target: "mcp", why, "a message was not accepted");
    }
}
