//! What the requests of a transport hear, on its way to the client.

use bytes::Bytes;
use http::HeaderValue;
use mcp_client::{CallId, CredentialFingerprint, SessionLossReason};
use reqwest::Url;
use tokio::sync::mpsc;

use super::request::event_reader::EventReader;

/// Something that one of the requests heard.
pub(crate) enum DriverEvent {
    /// A message on the stream of a call.
    Reply { call: CallId, message: Bytes },
    /// A message that belongs to no call.
    Message(Bytes),
    /// The stream of what belongs to no call was away, and nobody knows what it would have brought.
    ChangesMissed,
    /// A status instead of an answer.
    Status { call: CallId, status: u16, body: Bytes },
    /// There will be nothing more for a call.
    Ended { call: CallId, why: Option<String> },
    /// The server began a session, or did without, for these credentials.
    Session { id: Option<HeaderValue>, owner: CredentialFingerprint },
    /// The session of this age cannot be used any more.
    SessionLost { call: Option<CallId>, generation: u64, reason: SessionLossReason },
    /// A request is about to be sent with these credentials, which may change.
    Credentials(CredentialFingerprint),
    /// A subscription was opened with these credentials.
    Subscribed { call: CallId, by: CredentialFingerprint },
    /// The server is one of HTTP+SSE: messages go there, and come from here.
    LegacySse { endpoint: Url, events: Box<EventReader>, owner: CredentialFingerprint },
    /// The server is not there any more.
    Unreachable(String),
}

/// Tells the driver what was heard. It is the same task that reads it, so telling costs no switch.
#[derive(Clone)]
pub(crate) struct DriverHandle(mpsc::Sender<DriverEvent>);

impl DriverHandle {
    /// The two ends; as much as `room` is on its way at a time.
    pub(crate) fn new(room: usize) -> (Self, mpsc::Receiver<DriverEvent>) {
        let (sender, receiver) = mpsc::channel(room);
        (Self(sender), receiver)
    }

    pub(crate) async fn send(&self, heard: DriverEvent) {
        // Nobody listens only when everything ends.
        let _ = self.0.send(heard).await;
    }
}
