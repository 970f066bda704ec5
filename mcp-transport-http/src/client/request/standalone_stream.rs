//! The GET stream of a legacy session, for messages that belong to no call.

use bytes::Bytes;
use http::StatusCode;
use mcp_client::SessionLossReason;

use super::event_reader::{EventReader, StreamError};
use super::resumable_stream::{Opened, ResumableStream};
use crate::client::driver_event::{DriverEvent, DriverHandle};

/// Reads the stream until the session ends, or the server does not offer one.
pub(crate) async fn listen(mut stream: ResumableStream) {
    // Some servers without such a stream respond with 404 or close the connection. Only the loss of a stream that was
    // open says something about the session and the server.
    let mut was_open = false;
    loop {
        match stream.open().await {
            Ok(Opened::Stream(mut events)) => {
                if was_open && stream.last_event_id.is_none() {
                    stream.driver.send(DriverEvent::ChangesMissed).await;
                }
                was_open = true;
                match forward(&mut events, &stream.driver).await {
                    Ok(true) => stream.failed_attempts = 0,
                    Ok(false) | Err(StreamError::Broken(_)) => {}
                    Err(StreamError::Unreadable(why)) => return log_abandoned(&why),
                }
                if let Err(why) = stream.record_progress(&events) {
                    return log_abandoned(&why);
                }
            }
            Ok(Opened::Refused(status @ StatusCode::NOT_FOUND)) if was_open && stream.session.id.is_some() => {
                let reason = SessionLossReason::Unknown { status: status.as_u16() };
                return stream
                    .driver
                    .send(DriverEvent::SessionLost { call: None, generation: stream.session.generation, reason })
                    .await;
            }
            Ok(Opened::CredentialsChanged) => {
                let reason = SessionLossReason::CredentialsChanged;
                return stream
                    .driver
                    .send(DriverEvent::SessionLost { call: None, generation: stream.session.generation, reason })
                    .await;
            }
            Ok(Opened::Refused(status)) if is_transient(status) => {
                if stream.is_exhausted() {
                    return log_abandoned(status.as_str());
                }
            }
            Ok(Opened::Refused(status)) => {
                return tracing::debug!(target: "mcp", %status, "the server offers no GET stream");
            }
            Ok(Opened::Unusable(why)) => return log_abandoned(&why),
            Err(why) if stream.is_exhausted() => {
                // S4.56
                return if was_open {
                    stream.driver.send(DriverEvent::Unreachable(why)).await
                } else {
                    log_abandoned(&why)
                };
            }
            Err(_) => {}
        }
        stream.back_off().await;
    }
}

/// Forwards the messages of a stream until it ends. Returns whether there were any.
pub(crate) async fn forward(events: &mut EventReader, driver: &DriverHandle) -> Result<bool, StreamError> {
    let mut has_messages = false;
    while let Some(event) = events.next().await? {
        if event.is_message() {
            has_messages = true;
            driver.send(DriverEvent::Message(Bytes::from(event.data))).await;
        }
    }
    Ok(has_messages)
}

/// Whether a request may succeed if it is repeated. 409 means that the server has not noticed yet that the previous stream
/// was closed.
pub(crate) fn is_transient(status: StatusCode) -> bool {
    match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::NOT_IMPLEMENTED => false,
        _ => status.is_server_error(),
    }
}

fn log_abandoned(why: &str) {
    tracing::warn!(target: "mcp", why, "GET stream abandoned: notifications of the server are lost");
}
