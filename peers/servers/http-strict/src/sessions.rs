//! Sessions, as small as they can be: a number, and the stream if it is open.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

use crate::stream::Stream;

/// The streams of all sessions, by number.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<BTreeMap<u64, Option<Arc<Stream>>>>);

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Option<Arc<Stream>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a session; returns its id, which is easy to guess.
    pub(crate) fn begin(&self) -> HeaderValue {
        let mut sessions = self.lock();
        let number = sessions.len() as u64;
        sessions.insert(number, None);
        HeaderValue::from(number)
    }

    pub(crate) fn has(&self, number: u64) -> bool {
        self.lock().contains_key(&number)
    }

    /// Opens the stream of a session.
    pub(crate) fn open(&self, number: u64) -> Option<Arc<Stream>> {
        let stream = Arc::new(Stream::default());
        *self.lock().get_mut(&number)? = Some(Arc::clone(&stream));
        Some(stream)
    }

    /// Sends to all sessions with a stream that the list of tools has changed: the same bytes.
    pub(crate) fn publish(&self) {
        for session in self.lock().values_mut() {
            // Drops a stream whose client has disconnected.
            session.take_if(|stream| !stream.is_open());
            if let Some(stream) = session {
                stream.send(Bytes::from_static(CHANGED));
            }
        }
    }
}

/// Finds the session of a request.
pub(crate) fn number(headers: &HeaderMap) -> Option<u64> {
    headers.get(HEADER)?.to_str().ok()?.parse().ok()
}

pub(crate) const HEADER: HeaderName = HeaderName::from_static("mcp-session-id");

const CHANGED: &[u8] = b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
