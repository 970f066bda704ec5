//! Opens and resumes event streams of legacy servers.

use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method as Verb, StatusCode};
use mcp_client::AuthorizationError;
use mcp_types::Revision;

use super::event_reader::EventReader;
use super::headers::{self, Session};
use super::sender::{BodyType, CallContext, RequestSender, SendError, body_type};
use crate::client::transport::Options;

/// An event stream that can be opened and resumed.
pub(crate) struct ResumableStream {
    pub(crate) sender: Arc<RequestSender>,
    pub(crate) revision: Option<Revision>,
    pub(crate) session: Session,
    /// The values that are attached to the call whose stream it is.
    pub(crate) context: CallContext,
    /// The id of the last event.
    pub(crate) last_event_id: Option<HeaderValue>,
    /// The last `retry` value of the server.
    pub(crate) retry: Option<Duration>,
    /// The number of attempts in a row that brought no message and ended soon.
    pub(crate) failed_attempts: u32,
}

/// The result of opening a stream.
pub(crate) enum Opened {
    Stream(Box<EventReader>),
    Refused(StatusCode),
    /// The response was not an event stream.
    Unusable(String),
    /// The session was started with other credentials than the current ones.
    CredentialsChanged,
    /// The authorizer has no credential.
    Unauthorized(AuthorizationError),
}

/// The maximum delay without a `retry` value. A stream that lasted longer does not count as a failed attempt.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// The minimum delay, whatever the server sent.
const MIN_DELAY: Duration = Duration::from_millis(10);

impl ResumableStream {
    pub(crate) fn new(sender: Arc<RequestSender>, revision: Option<Revision>, session: Session) -> Self {
        Self {
            sender,
            revision,
            session,
            context: CallContext::default(),
            last_event_id: None,
            retry: None,
            failed_attempts: 0,
        }
    }

    /// Records the last event id and `retry` value of a stream that ended.
    pub(crate) fn record_progress(&mut self, events: &EventReader) -> Result<(), String> {
        self.retry = events.parser.retry.or(self.retry);
        if events.opened.elapsed() >= MAX_DELAY {
            self.failed_attempts = 0;
        }
        let Some(id) = &events.parser.last_id else { return Ok(()) };
        let last_event_id = HeaderValue::from_bytes(id.as_bytes()).map_err(|_| {
            format!("the event id {id:?} of the server has characters that are not allowed in a header")
        })?;
        if self.last_event_id.as_ref() != Some(&last_event_id) {
            self.failed_attempts = 0;
            self.last_event_id = Some(last_event_id);
        }
        Ok(())
    }

    /// Waits before the next attempt.
    pub(crate) async fn back_off(&mut self) {
        let duration = delay(&self.sender.options, self.retry, self.failed_attempts);
        self.failed_attempts = self.failed_attempts.saturating_add(1);
        tokio::time::sleep(duration).await;
    }

    /// Whether the maximum number of attempts is reached.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.failed_attempts >= self.sender.options.max_reconnects
    }

    /// Opens the stream, or resumes it after the last event.
    pub(crate) async fn open(&self) -> Result<Opened, String> {
        let head = headers::for_stream(self.revision, &self.session, self.last_event_id.as_ref());
        let request = self.sender.request(Verb::GET, &self.sender.url, head);
        let response = match self.sender.send(request, &self.session, &self.context).await {
            Ok(sent) => sent.response,
            Err(SendError::CredentialsChanged) => return Ok(Opened::CredentialsChanged),
            Err(SendError::Authorization(error)) => return Ok(Opened::Unauthorized(error)),
            Err(error) => return Err(error.into_text()),
        };
        if response.status() != StatusCode::OK {
            return Ok(Opened::Refused(response.status()));
        }
        Ok(match body_type(response.headers()) {
            Ok(BodyType::EventStream) => {
                Opened::Stream(Box::new(EventReader::new(response, self.sender.options.event_limit)))
            }
            Ok(BodyType::Json) => {
                Opened::Unusable("the server responded with JSON instead of an event stream".to_owned())
            }
            Err(why) => Opened::Unusable(why),
        })
    }
}

/// Returns the delay before the next attempt: at least the server's `retry` value, and longer after failed attempts.
fn delay(options: &Options, retry: Option<Duration>, failed_attempts: u32) -> Duration {
    let factor = 2_u32.saturating_pow(failed_attempts);
    match retry {
        // B-103: never less than that.
        Some(retry) => retry.max(retry.max(MIN_DELAY).saturating_mul(factor).min(MAX_DELAY)),
        None => {
            let longest = options.reconnect_interval.saturating_mul(factor).min(MAX_DELAY).max(MIN_DELAY);
            longest.saturating_add(longest.mul_f64(0.25 * jitter()))
        }
    }
}

/// Returns a random number between 0 and 1, so that not all clients of a server reconnect at once.
fn jitter() -> f64 {
    let random = std::hash::RandomState::new().hash_one(0);
    f64::from(random as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::HttpTransport;
    use crate::client::request::sender::tests::sender;

    /// The server's word is a minimum; without one, waiting doubles up to a limit.
    // covers: B-103, S4.56
    #[test]
    fn waiting_grows() {
        let options = HttpTransport::new("http://localhost").unwrap().options;
        let millis = Duration::from_millis;
        assert_eq!(delay(&options, Some(millis(500)), 0), millis(500));
        assert_eq!(delay(&options, Some(millis(500)), 1), millis(1000));
        assert_eq!(delay(&options, Some(millis(100_000)), 3), millis(100_000));
        assert!(delay(&options, Some(Duration::ZERO), 0) >= MIN_DELAY);
        assert!(delay(&options, Some(Duration::ZERO), u32::MAX) <= MAX_DELAY);
        for (failed_attempts, least) in [(0, 1000), (1, 2000), (4, 16_000), (5, 30_000), (u32::MAX, 30_000)] {
            let waited = delay(&options, None, failed_attempts);
            assert!(waited >= millis(least) && waited <= millis(least + least / 4), "{failed_attempts}: {waited:?}");
        }
    }

    /// A stream that lasted was not in vain, even if it brought nothing; one that ends at once was.
    // covers: S4.55
    #[tokio::test(start_paused = true)]
    async fn lasting_is_no_failure() {
        let mut stream = ResumableStream::new(Arc::new(sender(None)), None, Session::default());
        for (lasted, failed_attempts) in [(Duration::ZERO, 3), (MAX_DELAY, 0)] {
            stream.failed_attempts = 3;
            let events = EventReader::new(http::Response::new("").into(), 100);
            tokio::time::advance(lasted).await;
            stream.record_progress(&events).unwrap();
            assert_eq!(stream.failed_attempts, failed_attempts, "{lasted:?}");
        }
    }
}
