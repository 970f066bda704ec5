//! One run of a handler.

use mcp_types::{InputRequest, InputRequests, InputResponses, RawJson, RawObject};

use crate::journal::{Journal, RecordedResponse, RequestDigest};

/// One run of a handler, with the results of earlier runs.
///
/// A handler runs from its beginning in every round. It makes the same input requests again and gets the responses from
/// here; it takes the same steps again and gets their results. The first input request without a response ends the round.
#[derive(Clone, Debug, Default)]
pub struct Round {
    journal: Journal,
    /// The input responses of this round.
    responses: InputResponses,
    /// The input requests without a response.
    pending: InputRequests,
}

/// The error of resuming a round with a handler or a server that has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// Two input requests of one round have the same key.
    #[error("two different input requests have the key `{0}`: use a different key for each")]
    DuplicateKey(String),
    /// The state was written by another version.
    #[error("the state was written by another version of the server")]
    UnknownJournal,
}

impl Round {
    /// Creates a round that continues from a journal, with the input responses that the client sent.
    #[must_use]
    pub fn new(journal: Journal, responses: InputResponses) -> Self {
        Self { journal, responses, pending: InputRequests::new() }
    }

    /// Returns the response to an input request, as the client sent it. Without one it returns `None` and records that the
    /// request is pending, with which the round ends.
    ///
    /// A response to a different request under the same key does not count: the request is made again. Responses without
    /// a request are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if this round has a different input request under the key.
    // R-13, R-14
    pub fn request_input(&mut self, key: &str, request: &InputRequest) -> Result<Option<RawObject>, ResumeError> {
        let digest = RequestDigest::of(request);
        if let Some(other) = self.pending.get(key) {
            return if other == request { Ok(None) } else { Err(ResumeError::DuplicateKey(key.to_owned())) };
        }
        if let Some(earlier) = self.journal.responses.get(key).filter(|earlier| earlier.request == digest) {
            return Ok(Some(earlier.response.clone()));
        }
        // A client without a state may send responses in its first round, if it knows the requests.
        let requested = &self.journal.requested;
        let was_requested = requested.get(key).map_or(requested.is_empty(), |requested| *requested == digest);
        if let Some(response) = self.responses.get(key).filter(|_| was_requested).cloned() {
            self.journal.responses.insert(key, RecordedResponse { request: digest, response: response.clone() });
            return Ok(Some(response));
        }
        self.journal.responses.remove(key);
        self.pending.insert(key, request.clone());
        Ok(None)
    }

    /// Returns the steps and responses so far, for a request that continues in another way, such as a task. Responses to the
    /// requests of the last round are among them, also if the handler has not used them yet.
    #[must_use]
    pub fn to_journal(&self) -> Journal {
        let mut journal = self.journal.clone();
        for (key, response) in self.responses.iter() {
            if let Some(request) = journal.requested.get(key).cloned() {
                journal.responses.insert(key, RecordedResponse { request, response: response.clone() });
            }
        }
        journal
    }

    /// Returns the result of a step that was completed in an earlier round.
    #[must_use]
    pub fn step(&self, key: &str) -> Option<&RawJson> {
        self.journal.steps.get(key)
    }

    /// Records the result of a step, so that later rounds do not repeat it.
    pub fn complete_step(&mut self, key: &str, result: RawJson) {
        self.journal.steps.insert(key, result);
    }

    /// Ends the round. Returns the pending input requests and the journal for the next round, or `None` if no request is
    /// pending.
    #[must_use]
    pub fn finish(mut self) -> Option<(InputRequests, Journal)> {
        if self.pending.is_empty() {
            return None;
        }
        let digests = self.pending.iter().map(|(key, request)| (key.to_owned(), RequestDigest::of(request)));
        self.journal.requested = digests.collect();
        Some((self.pending, self.journal))
    }
}

#[cfg(test)]
mod tests {
    use mcp_types::{ElicitRequestFormParams, ListRootsRequest, OrderedMap, RequestedSchema};

    use super::*;

    fn form(message: &str) -> InputRequest {
        ElicitRequestFormParams::new(message, RequestedSchema::new(OrderedMap::new())).into()
    }

    fn response(text: &str) -> RawObject {
        RawObject::parse(&format!(r#"{{"action":"accept","content":{{"a":"{text}"}}}}"#)).unwrap()
    }

    fn responses(texts: &[(&str, &str)]) -> InputResponses {
        texts.iter().map(|(key, text)| ((*key).to_owned(), response(text))).collect()
    }

    /// The journal as it comes back, through its text.
    fn next(round: Round) -> Journal {
        let (_, journal) = round.finish().expect("pending requests");
        Journal::from_bytes(&journal.to_bytes()).expect("a journal")
    }

    /// Three requests one after the other, each with its response in a round of its own.
    // covers: R-11, R-22
    #[test]
    fn responses_of_earlier_rounds_are_found_again() {
        let mut round = Round::default();
        assert_eq!(round.request_input("a", &form("A?")).unwrap(), None);
        let mut round = Round::new(next(round), responses(&[("a", "1")]));
        assert_eq!(round.request_input("a", &form("A?")).unwrap(), Some(response("1")));
        assert_eq!(round.request_input("b", &form("B?")).unwrap(), None);
        let mut round = Round::new(next(round), responses(&[("b", "2")]));
        assert_eq!(round.request_input("a", &form("A?")).unwrap(), Some(response("1")));
        assert_eq!(round.request_input("b", &form("B?")).unwrap(), Some(response("2")));
        assert!(round.finish().is_none());
    }

    /// Steps run once, however many rounds there are.
    #[test]
    fn steps_are_not_repeated() {
        let mut round = Round::default();
        assert!(round.step("charge").is_none());
        round.complete_step("charge", RawJson::parse("7").unwrap());
        let _ = round.request_input("a", &form("A?")).unwrap();
        let round = Round::new(next(round), InputResponses::new());
        assert_eq!(round.step("charge").map(RawJson::as_str), Some("7"));
    }

    /// A request without a response is made again; a response without a request is ignored.
    // covers: R-13, R-14
    #[test]
    fn requests_without_a_response_are_made_again() {
        let mut round = Round::default();
        let _ = round.request_input("a", &form("A?")).unwrap();
        let _ = round.request_input("b", &form("B?")).unwrap();
        let mut round = Round::new(next(round), responses(&[("b", "2"), ("c", "3")]));
        assert_eq!(round.request_input("a", &form("A?")).unwrap(), None);
        assert_eq!(round.request_input("b", &form("B?")).unwrap(), Some(response("2")));
        let (pending, _) = round.finish().unwrap();
        assert_eq!(pending.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["a"]);
    }

    /// A response to another request does not count, in this round or a later one.
    #[test]
    fn a_changed_request_is_made_again() {
        let mut round = Round::default();
        let _ = round.request_input("a", &form("Delete 3 files?")).unwrap();
        let journal = next(round);
        let mut changed = Round::new(journal.clone(), responses(&[("a", "yes")]));
        assert_eq!(changed.request_input("a", &form("Delete 300 files?")).unwrap(), None);
        let mut same = Round::new(journal, responses(&[("a", "yes")]));
        assert_ne!(same.request_input("a", &form("Delete 3 files?")).unwrap(), None);
        let _ = same.request_input("b", &ListRootsRequest::default().into()).unwrap();
        let mut later = Round::new(next(same), InputResponses::new());
        assert_eq!(later.request_input("a", &form("Delete 300 files?")).unwrap(), None);
    }

    /// What a task that continues the call has to know: steps and responses, those of this round included.
    #[test]
    fn a_round_can_be_continued_elsewhere() {
        let mut round = Round::default();
        round.complete_step("charge", RawJson::parse("7").unwrap());
        let _ = round.request_input("a", &form("A?")).unwrap();
        let mut round = Round::new(next(round), responses(&[("a", "1"), ("x", "9")]));
        let expected = [("a".to_owned(), RequestDigest::of(&form("A?")), response("1"))];
        let of = |round: &Round| -> Vec<_> {
            let journal = round.to_journal();
            let own = |(key, digest, response): (&str, &RequestDigest, &RawObject)| {
                (key.to_owned(), digest.clone(), response.clone())
            };
            journal.responses().map(own).collect()
        };
        assert_eq!(of(&round), expected, "not used yet");
        let _ = round.request_input("a", &form("A?")).unwrap();
        assert_eq!(of(&round), expected);
        assert_eq!(round.to_journal().steps().map(|(key, _)| key).collect::<Vec<_>>(), ["charge"]);
        let first = Round::new(Journal::default(), responses(&[("a", "1")]));
        assert!(of(&first).is_empty(), "nothing was requested");
    }

    /// In the first round responses count without a request; later only those to the requests of the round before.
    #[test]
    fn unrequested_responses_count_in_the_first_round_only() {
        let mut first = Round::new(Journal::default(), responses(&[("a", "1"), ("x", "2")]));
        assert_eq!(first.request_input("a", &form("A?")).unwrap(), Some(response("1")));
        let mut round = Round::default();
        let _ = round.request_input("a", &form("A?")).unwrap();
        let mut later = Round::new(next(round), responses(&[("a", "1"), ("b", "2")]));
        let _ = later.request_input("a", &form("A?")).unwrap();
        assert_eq!(later.request_input("b", &form("B?")).unwrap(), None, "b was not requested");
    }

    #[test]
    fn keys_are_unique() {
        let mut round = Round::default();
        assert_eq!(round.request_input("a", &form("A?")).unwrap(), None);
        assert_eq!(round.request_input("a", &form("A?")).unwrap(), None, "the same request twice is one");
        assert_eq!(round.request_input("a", &form("B?")), Err(ResumeError::DuplicateKey("a".into())));
        assert_eq!(Journal::from_bytes(br#"{"v":2}"#), Err(ResumeError::UnknownJournal));
        assert_eq!(Journal::from_bytes(b"nonsense"), Err(ResumeError::UnknownJournal));
    }
}
