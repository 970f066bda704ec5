//! The GET stream of a legacy session, for messages that belong to no call.

use std::future::poll_fn;
use std::task::Poll;

use http::StatusCode;
use mcp_client::ResponseHandle;

use super::event_reader::{EventReader, StreamError};
use super::headers::SessionLost;
use super::resumable_stream::{Opened, ResumableStream};

/// Why a stream is not read any more.
pub(crate) enum StreamEnd {
    /// The server does not offer one, or it cannot be read.
    Abandoned,
    SessionLost(SessionLost),
    /// The credentials were refused: the stream can be opened after a login.
    Unauthorized(Box<ResumableStream>),
    /// The server cannot be reached any more.
    Unreachable(String),
}

/// Reads the stream until the session ends, or the server does not offer one. `is_late` is whether messages may have been
/// sent before it was opened.
pub(crate) async fn listen(mut stream: ResumableStream, mut is_late: bool) -> StreamEnd {
    // Some servers without such a stream respond with 404 or close the connection. Only the loss of a stream that was
    // open says something about the session and the server.
    let mut was_open = false;
    loop {
        match stream.open().await {
            Ok(Opened::Stream(mut events)) => {
                if is_late && stream.last_event_id.is_none() {
                    stream.sender.responses.handle_missed_changes();
                }
                (was_open, is_late) = (true, true);
                match forward(&mut events, &stream.sender.responses).await {
                    Ok(true) => stream.failed_attempts = 0,
                    Ok(false) | Err(StreamError::Broken(_)) => {}
                    Err(StreamError::Unreadable(why)) => return abandoned(&why),
                }
                if let Err(why) = stream.record_progress(&events) {
                    return abandoned(&why);
                }
            }
            Ok(Opened::Refused(status @ StatusCode::NOT_FOUND)) if was_open && stream.session.id.is_some() => {
                return StreamEnd::SessionLost(stream.session.lost_with_status(status));
            }
            Ok(Opened::CredentialsChanged) => return StreamEnd::SessionLost(stream.session.credentials_changed()),
            Ok(Opened::Refused(status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN))) => {
                return unauthorized(stream, status.as_str());
            }
            Ok(Opened::Refused(status)) if is_transient(status) => {
                if stream.is_exhausted() {
                    return abandoned(status.as_str());
                }
            }
            Ok(Opened::Refused(status)) => {
                tracing::debug!(target: "mcp", %status, "the server offers no GET stream");
                return StreamEnd::Abandoned;
            }
            Ok(Opened::Unusable(why)) => return abandoned(&why),
            Ok(Opened::Unauthorized(error)) => return unauthorized(stream, &error.to_string()),
            Err(why) if stream.is_exhausted() => {
                // S4.56
                return if was_open { StreamEnd::Unreachable(why) } else { abandoned(&why) };
            }
            Err(_) => {}
        }
        stream.back_off().await;
    }
}

/// Passes the messages of a stream to the client until it ends. Returns whether there were any.
pub(crate) async fn forward(events: &mut EventReader, responses: &ResponseHandle) -> Result<bool, StreamError> {
    let mut has_messages = false;
    while let Some(event) = events.next().await? {
        if event.is_message() {
            has_messages = true;
            responses.handle_message(&event.data);
            yield_to_driver().await;
        }
    }
    Ok(has_messages)
}

/// Lets the driver execute the commands that a message led to before the next message is read, so that neither responses
/// nor notifications pile up in the client.
pub(crate) async fn yield_to_driver() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
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

fn unauthorized(stream: ResumableStream, why: &str) -> StreamEnd {
    tracing::warn!(target: "mcp", why, "GET stream refused: notifications of the server are lost until the next login");
    StreamEnd::Unauthorized(Box::new(stream))
}

fn abandoned(why: &str) -> StreamEnd {
    tracing::warn!(target: "mcp", why, "GET stream abandoned: notifications of the server are lost");
    StreamEnd::Abandoned
}
