//! As much of HTTP as a driver needs, and far cheaper than any server.

mod connection;
mod response;

use std::time::Duration;

use mio::{Events, Poll};

pub use self::connection::{Connection, Delay};

/// How long any wait may take.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Waits until something can be read.
///
/// # Errors
///
/// Returns that there was nothing for too long.
pub fn wait(poll: &mut Poll, events: &mut Events) -> Result<(), String> {
    poll.poll(events, Some(LIMIT)).map_err(|error| error.to_string())?;
    if events.is_empty() { Err(format!("no answer for {} s", LIMIT.as_secs())) } else { Ok(()) }
}
