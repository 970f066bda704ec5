//! A response that is a stream of events.

use std::time::Duration;

use bytes::{Buf, Bytes};
use reqwest::Response;
use tokio::time::Instant;

use super::sender::next_chunk;
use crate::client::event_parser::{Event, EventParser};

/// Reads the events of a response.
pub(crate) struct EventReader {
    response: Response,
    parser: EventParser,
    /// What was received, and not read yet.
    chunk: Bytes,
    opened: Instant,
}

/// Why a stream does not go on.
pub(crate) enum StreamError {
    /// The connection broke: the rest may be had on another one.
    Broken(String),
    /// What comes is not to be read, and would not be the second time.
    Unreadable(String),
}

impl EventReader {
    pub(crate) fn new(response: Response, limit: usize) -> Self {
        Self { response, parser: EventParser::new(limit), chunk: Bytes::new(), opened: Instant::now() }
    }

    /// The next event; `None` when the server ended the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, StreamError> {
        loop {
            let mut rest = &self.chunk[..];
            let event = self.parser.read(&mut rest).map_err(|fault| StreamError::Unreadable(fault.to_string()))?;
            let read = self.chunk.len() - rest.len();
            self.chunk.advance(read);
            if let Some(event) = event {
                return Ok(Some(event));
            }
            match next_chunk(&mut self.response).await.map_err(StreamError::Broken)? {
                Some(chunk) => self.chunk = chunk,
                None => return Ok(None),
            }
        }
    }

    /// How long it is since the stream began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.opened.elapsed()
    }

    /// Where the stream is, if the server can go on from there.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.parser.last_id()
    }

    /// How long the server wants us to wait before we come back.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.parser.retry()
    }
}
