//! Messages without a response: notifications, and responses to server-to-client requests.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use reqwest::Request;

use super::headers::{Session, SessionLost};
use super::login::within;
use super::sender::{CallContext, RequestSender, SendError, read_body};

/// A notification or response to send.
pub(crate) struct OneWayPost {
    pub(crate) request: Request,
    /// The size of its body.
    pub(crate) bytes: usize,
    pub(crate) session: Session,
    /// Whether the message is worth a login.
    pub(crate) may_log_in: bool,
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
    /// Sends the message. A refusal is only logged, unless it means that the session is lost.
    pub(crate) async fn run(self, sender: Arc<RequestSender>) -> Option<SessionLost> {
        let context = CallContext { may_log_in: self.may_log_in, ..CallContext::default() };
        let sent = within(ACCEPT_TIMEOUT, &context, sender.send(self.request, &self.session, &context)).await;
        let why = match sent.map(|sent| sent.map(|sent| sent.response)) {
            Some(Ok(response)) if response.status().is_success() => {
                if !matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
                    let _ = tokio::time::timeout(DRAIN_TIMEOUT, read_body(response, DRAINED_BYTES)).await;
                }
                return None;
            }
            Some(Ok(response)) if response.status() == StatusCode::NOT_FOUND && self.session.id.is_some() => {
                return Some(self.session.lost_with_status(response.status()));
            }
            Some(Ok(response)) => response.status().to_string(),
            Some(Err(SendError::CredentialsChanged)) => return Some(self.session.credentials_changed()),
            Some(Err(error)) => error.into_text(),
            None => "the server did not accept it in time".to_owned(),
        };
        tracing::debug!(target: "mcp", why, "message not accepted");
        None
    }
}
