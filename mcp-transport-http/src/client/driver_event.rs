//! What requests report to the driver.

use bytes::Bytes;
use http::HeaderValue;
use mcp_client::{CallId, CredentialFingerprint, SessionLossReason};
use reqwest::Url;
use tokio::sync::mpsc;

use super::request::event_reader::EventReader;

/// An event that a request reports to the driver.
pub(crate) enum DriverEvent {
    /// A message in the response of a call.
    Reply { call: CallId, message: Bytes },
    /// A message that belongs to no call.
    Message(Bytes),
    /// The standalone stream was interrupted without an event id, so notifications may be missing.
    ChangesMissed,
    /// A call was refused with an HTTP status.
    Status { call: CallId, status: u16, body: Bytes },
    /// The response of a call ended.
    Ended { call: CallId, why: Option<String> },
    /// The server responded to `initialize` with this session id, or without one.
    Session { id: Option<HeaderValue>, owner: CredentialFingerprint },
    /// The session of this generation cannot be used any more.
    SessionLost { call: Option<CallId>, generation: u64, reason: SessionLossReason },
    /// A request is about to be sent with these credentials, which may change.
    Credentials(CredentialFingerprint),
    /// A subscription was opened with these credentials.
    Subscribed { call: CallId, by: CredentialFingerprint },
    /// The server supports HTTP+SSE: messages go to `endpoint`, and arrive on `events`.
    LegacySse { endpoint: Url, events: Box<EventReader>, owner: CredentialFingerprint },
    /// The server cannot be reached any more.
    Unreachable(String),
}

/// Sends events to the driver, which runs in the same task.
#[derive(Clone)]
pub(crate) struct DriverHandle(mpsc::Sender<DriverEvent>);

impl DriverHandle {
    /// Creates the two ends of a channel with a capacity of `room` events.
    pub(crate) fn new(room: usize) -> (Self, mpsc::Receiver<DriverEvent>) {
        let (sender, receiver) = mpsc::channel(room);
        (Self(sender), receiver)
    }

    pub(crate) async fn send(&self, heard: DriverEvent) {
        // The receiver is only dropped when the driver ends.
        let _ = self.0.send(heard).await;
    }
}
