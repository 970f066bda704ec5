//! Messages without a response: notifications, and responses to server-to-client requests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method as Verb, StatusCode};
use mcp_client::SessionLossReason;
use reqwest::Url;

use super::headers::Session;
use super::sender::{RequestSender, SendError, read_body};
use crate::client::driver_event::{DriverEvent, DriverHandle};

/// A notification or response to send.
pub(crate) struct OneWayPost {
    pub(crate) to: Url,
    pub(crate) head: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) session: Session,
    /// Whether this is `notifications/initialized`, which calls have to wait for.
    pub(crate) opens_session: bool,
}

/// How long the server may take to accept a message, as later messages wait for it.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);

/// How many bytes of an unexpected response body are read, so that the connection can be reused.
const DRAINED_BYTES: usize = 64 << 10;

/// How long reading it may take.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

impl OneWayPost {
    /// Sends the message. A refusal is only logged.
    pub(crate) async fn run(self, sender: Arc<RequestSender>, driver: DriverHandle) {
        let sending = sender.send(Verb::POST, &self.to, &self.head, Some(&self.body), &self.session, &driver);
        let sent = tokio::time::timeout(ACCEPT_TIMEOUT, sending).await;
        let why = match sent.map(|sent| sent.map(|sent| sent.response)) {
            Ok(Ok(response)) if response.status().is_success() => {
                if !matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
                    let _ = tokio::time::timeout(DRAIN_TIMEOUT, read_body(response, DRAINED_BYTES)).await;
                }
                return;
            }
            Ok(Ok(response)) if response.status() == StatusCode::NOT_FOUND && self.session.id.is_some() => {
                let reason = SessionLossReason::Unknown { status: response.status().as_u16() };
                return driver
                    .send(DriverEvent::SessionLost { call: None, generation: self.session.generation, reason })
                    .await;
            }
            Ok(Ok(response)) => response.status().to_string(),
            Ok(Err(SendError::CredentialsChanged)) => {
                let reason = SessionLossReason::CredentialsChanged;
                return driver
                    .send(DriverEvent::SessionLost { call: None, generation: self.session.generation, reason })
                    .await;
            }
            Ok(Err(SendError::Failed(why))) => why,
            Err(_) => "the server did not accept it in time".to_owned(),
        };
        tracing::debug!(target: "mcp", why, "message not accepted");
    }
}
