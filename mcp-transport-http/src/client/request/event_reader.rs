//! Reads the events of a response.

use bytes::{Buf, Bytes};
use reqwest::Response;
use tokio::time::Instant;

use super::sender::next_chunk;
use crate::event_stream::decode::{Event, EventParser};

/// Reads the events of a response.
pub(crate) struct EventReader {
    response: Response,
    pub(crate) parser: EventParser,
    /// Received bytes that are not parsed yet.
    chunk: Bytes,
    pub(crate) opened: Instant,
}

/// The error of reading an event stream.
pub(crate) enum StreamError {
    /// The connection failed: the stream may be resumed.
    Broken(String),
    /// The stream is invalid, and would be if it was resumed.
    Unreadable(String),
}

impl EventReader {
    pub(crate) fn new(response: Response, limit: usize) -> Self {
        Self { response, parser: EventParser::new(limit), chunk: Bytes::new(), opened: Instant::now() }
    }

    /// Returns the next event, or `None` when the server ended the stream.
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
}
