//! The stream of what belongs to no call, in a session of a legacy server.

use bytes::Bytes;
use http::StatusCode;
use mcp_client::SessionLossReason;

use super::event_reader::{EventReader, StreamError};
use super::resumable_stream::{Opened, ResumableStream};
use crate::client::driver_event::{DriverEvent, DriverHandle};

/// Listens for as long as the session lasts, or the server has such a stream.
pub(crate) async fn listen(mut stream: ResumableStream) {
    // Some servers without such a stream say 404, too, or hang up. Only a stream that was there says something about the
    // session, and the server, when it is gone.
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
                return tracing::debug!(target: "mcp", %status, "the server has no stream of its own");
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

/// Hands on the messages of a stream until it ends; returns whether there were any.
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

/// Whether a status may be another one the next time. A conflict is with a stream of which the server has not noticed yet
/// that it is gone.
pub(crate) fn is_transient(status: StatusCode) -> bool {
    match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::NOT_IMPLEMENTED => false,
        _ => status.is_server_error(),
    }
}

fn log_abandoned(why: &str) {
    tracing::warn!(target: "mcp", why, "the server's stream of what belongs to no call is given up");
}
