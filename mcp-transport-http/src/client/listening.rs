//! The stream of what belongs to no call, in a session of a legacy server.

use bytes::Bytes;
use http::StatusCode;
use mcp_client::SessionLossReason;

use super::events::{Events, StreamFault};
use super::news::{Heard, News};
use super::resumption::{Opened, Resumption};

/// Listens for as long as the session lasts, or the server has such a stream.
pub(super) async fn listen(mut stream: Resumption) {
    // Some servers without such a stream say 404, too, or hang up. Only a stream that was there says something about the
    // session, and the server, when it is gone.
    let mut was_open = false;
    loop {
        match stream.open().await {
            Ok(Opened::Events(mut events)) => {
                if was_open && stream.place.is_none() {
                    stream.news.tell(Heard::Missed).await;
                }
                was_open = true;
                match forward(&mut events, &stream.news).await {
                    Ok(true) => stream.fruitless = 0,
                    Ok(false) | Err(StreamFault::Broken(_)) => {}
                    Err(StreamFault::Unreadable(why)) => return given_up(&why),
                }
                if let Err(why) = stream.note(&events) {
                    return given_up(&why);
                }
            }
            Ok(Opened::Refused(status @ StatusCode::NOT_FOUND)) if was_open && stream.session.id.is_some() => {
                let reason = SessionLossReason::Unknown { status: status.as_u16() };
                return stream.news.tell(Heard::SessionLost { call: None, age: stream.session.age, reason }).await;
            }
            Ok(Opened::NotTheOwner) => {
                let reason = SessionLossReason::CredentialsChanged;
                return stream.news.tell(Heard::SessionLost { call: None, age: stream.session.age, reason }).await;
            }
            Ok(Opened::Refused(status)) if is_passing(status) => {
                if stream.is_exhausted() {
                    return given_up(status.as_str());
                }
            }
            Ok(Opened::Refused(status)) => {
                return tracing::debug!(target: "mcp", %status, "the server has no stream of its own");
            }
            Ok(Opened::Unusable(why)) => return given_up(&why),
            Err(why) if stream.is_exhausted() => {
                // S4.56
                return if was_open { stream.news.tell(Heard::Unreachable(why)).await } else { given_up(&why) };
            }
            Err(_) => {}
        }
        stream.wait().await;
    }
}

/// Hands on the messages of a stream until it ends; returns whether there were any.
pub(super) async fn forward(events: &mut Events, news: &News) -> Result<bool, StreamFault> {
    let mut heard_any = false;
    while let Some(event) = events.next().await? {
        if event.is_message() {
            heard_any = true;
            news.tell(Heard::Message(Bytes::from(event.data))).await;
        }
    }
    Ok(heard_any)
}

/// Whether a status may be another one the next time. A conflict is with a stream of which the server has not noticed yet
/// that it is gone.
pub(super) fn is_passing(status: StatusCode) -> bool {
    match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::NOT_IMPLEMENTED => false,
        _ => status.is_server_error(),
    }
}

fn given_up(why: &str) {
    tracing::warn!(target: "mcp", why, "the server's stream of what belongs to no call is given up");
}
