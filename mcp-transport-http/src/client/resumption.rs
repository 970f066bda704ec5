//! Coming back to a stream of a legacy server.

use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method as Verb, StatusCode};
use mcp_types::Revision;

use super::events::Events;
use super::head::{self, Session};
use super::news::News;
use super::transport::Options;
use super::wire::{Kind, SendFault, Wire, kind_of};

/// Opens streams, and knows where they broke off.
pub(super) struct Resumption {
    pub(super) wire: Arc<Wire>,
    pub(super) news: News,
    pub(super) revision: Option<Revision>,
    pub(super) session: Session,
    /// The id of the last event.
    pub(super) place: Option<HeaderValue>,
    /// How long the server wants us to wait.
    pub(super) retry: Option<Duration>,
    /// How many attempts in a row brought nothing, and did not last.
    pub(super) fruitless: u32,
}

/// What came of an attempt to open a stream.
pub(super) enum Opened {
    Events(Box<Events>),
    Refused(StatusCode),
    /// The server answered with something else.
    Unusable(String),
    /// The session was begun with other credentials than those at hand.
    NotTheOwner,
}

/// The longest that we wait by ourselves; a stream that lasted longer was worth it, whatever it brought.
const LONGEST: Duration = Duration::from_secs(30);

/// The shortest that we wait, even if the server wants us back at once.
const SHORTEST: Duration = Duration::from_millis(10);

impl Resumption {
    pub(super) fn new(wire: Arc<Wire>, news: News, revision: Option<Revision>, session: Session) -> Self {
        Self { wire, news, revision, session, place: None, retry: None, fruitless: 0 }
    }

    /// Takes note of how far a stream came.
    pub(super) fn note(&mut self, events: &Events) -> Result<(), String> {
        self.retry = events.retry().or(self.retry);
        if events.age() >= LONGEST {
            self.fruitless = 0;
        }
        let Some(id) = events.last_id() else { return Ok(()) };
        let place = HeaderValue::from_bytes(id.as_bytes())
            .map_err(|_| format!("the server named an event {id:?}, which no header can repeat"))?;
        if self.place.as_ref() != Some(&place) {
            self.fruitless = 0;
            self.place = Some(place);
        }
        Ok(())
    }

    /// Waits until it is time to come back.
    pub(super) async fn wait(&mut self) {
        let duration = delay(&self.wire.options, self.retry, self.fruitless);
        self.fruitless = self.fruitless.saturating_add(1);
        tokio::time::sleep(duration).await;
    }

    /// Whether it was tried often enough.
    pub(super) fn is_exhausted(&self) -> bool {
        self.fruitless >= self.wire.options.max_reconnects
    }

    /// Opens the stream, or goes on with it.
    pub(super) async fn open(&self) -> Result<Opened, String> {
        let head = head::of_stream(self.revision, &self.session, self.place.as_ref());
        let sent = self.wire.send(Verb::GET, &self.wire.url, &head, None, &self.session, &self.news).await;
        let response = match sent {
            Ok(sent) => sent.response,
            Err(SendFault::NotTheOwner) => return Ok(Opened::NotTheOwner),
            Err(SendFault::Failed(why)) => return Err(why),
        };
        if response.status() != StatusCode::OK {
            return Ok(Opened::Refused(response.status()));
        }
        Ok(match kind_of(response.headers()) {
            Ok(Kind::Events) => Opened::Events(Box::new(Events::new(response, self.wire.options.event_limit))),
            Ok(Kind::Json) => {
                Opened::Unusable("the server answered with JSON instead of a stream of events".to_owned())
            }
            Err(why) => Opened::Unusable(why),
        })
    }
}

/// How long to wait: what the server says, and more after each attempt that brought nothing.
fn delay(options: &Options, retry: Option<Duration>, fruitless: u32) -> Duration {
    let factor = 2_u32.saturating_pow(fruitless);
    match retry {
        // B-103: never less than that.
        Some(retry) => retry.max(retry.max(SHORTEST).saturating_mul(factor).min(LONGEST)),
        None => {
            let longest = options.reconnect_interval.saturating_mul(factor).min(LONGEST).max(SHORTEST);
            longest.saturating_add(longest.mul_f64(0.25 * chance()))
        }
    }
}

/// Something between 0 and 1, so that not all clients of a server come back at once.
fn chance() -> f64 {
    let random = std::hash::RandomState::new().hash_one(0);
    f64::from(random as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use reqwest::Url;

    use super::super::identity::Fingerprints;
    use super::*;
    use crate::client::HttpTransport;

    /// The server's word is a minimum; without one, waiting doubles up to a limit.
    // covers: B-103, S4.56
    #[test]
    fn waiting_grows() {
        let options = HttpTransport::new("http://localhost").unwrap().options;
        let millis = Duration::from_millis;
        assert_eq!(delay(&options, Some(millis(500)), 0), millis(500));
        assert_eq!(delay(&options, Some(millis(500)), 1), millis(1000));
        assert_eq!(delay(&options, Some(millis(100_000)), 3), millis(100_000));
        assert!(delay(&options, Some(Duration::ZERO), 0) >= SHORTEST);
        assert!(delay(&options, Some(Duration::ZERO), u32::MAX) <= LONGEST);
        for (fruitless, least) in [(0, 1000), (1, 2000), (4, 16_000), (5, 30_000), (u32::MAX, 30_000)] {
            let waited = delay(&options, None, fruitless);
            assert!(waited >= millis(least) && waited <= millis(least + least / 4), "{fruitless}: {waited:?}");
        }
    }
    /// A stream that lasted was not in vain, even if it brought nothing; one that ends at once was.
    // covers: S4.55
    #[tokio::test(start_paused = true)]
    async fn lasting_is_no_failure() {
        let (news, _heard) = News::new(1);
        let url = Url::parse("http://localhost").unwrap();
        let (client, options) = (reqwest::Client::new(), HttpTransport::new("http://localhost").unwrap().options);
        let wire = Wire::new(client, url, HeaderMap::new(), None, options, Fingerprints::new());
        let mut stream = Resumption::new(Arc::new(wire), news, None, Session::default());
        for (lasted, fruitless) in [(Duration::ZERO, 3), (LONGEST, 0)] {
            stream.fruitless = 3;
            let events = Events::new(http::Response::new("").into(), 100);
            tokio::time::advance(lasted).await;
            stream.note(&events).unwrap();
            assert_eq!(stream.fruitless, fruitless, "{lasted:?}");
        }
    }
}
