//! One run of a handler.

use mcp_types::{InputRequest, InputRequests, InputResponses, RawJson, RawObject};

use crate::journal::{Answer, Journal, Shape};

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
    questions: InputRequests,
}

/// The outcome of an input request.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "it is answered or not")]
pub enum Asked {
    /// The response, as the client sent it.
    Answered(RawObject),
    /// There is no response yet: the round ends with this input request.
    Open,
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
        Self { journal, responses, questions: InputRequests::new() }
    }

    /// Returns the response to an input request, or records that it is pending.
    ///
    /// A response to a different request under the same key does not count: the request is made again. Responses without
    /// a request are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if this round has a different input request under the key.
    // R-13, R-14
    pub fn ask(&mut self, key: &str, question: &InputRequest) -> Result<Asked, ResumeError> {
        let shape = Shape::of(question);
        if let Some(other) = self.questions.get(key) {
            return if other == question { Ok(Asked::Open) } else { Err(ResumeError::DuplicateKey(key.to_owned())) };
        }
        if let Some(answer) = self.journal.answers.get(key).filter(|answer| answer.shape == shape) {
            return Ok(Asked::Answered(answer.value.clone()));
        }
        // A client without a state may send responses in its first round, if it knows the requests.
        let was_asked = self.journal.asked.get(key).map_or(self.journal.asked.is_empty(), |asked| *asked == shape);
        if let Some(value) = self.responses.get(key).filter(|_| was_asked).cloned() {
            self.journal.answers.insert(key, Answer { shape, value: value.clone() });
            return Ok(Asked::Answered(value));
        }
        self.journal.answers.remove(key);
        self.questions.insert(key, question.clone());
        Ok(Asked::Open)
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

    /// Returns the journal.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Returns the journal for modification.
    pub fn journal_mut(&mut self) -> &mut Journal {
        &mut self.journal
    }

    /// Returns whether an input request has no response, so that the round must end.
    #[must_use]
    pub fn has_questions(&self) -> bool {
        !self.questions.is_empty()
    }

    /// Ends the round. Returns the pending input requests and the journal for the next round, or `None` if no request is
    /// pending.
    #[must_use]
    pub fn finish(mut self) -> Option<(InputRequests, Journal)> {
        if self.questions.is_empty() {
            return None;
        }
        self.journal.asked =
            InputRequests::iter(&self.questions).map(|(key, question)| (key.to_owned(), Shape::of(question))).collect();
        Some((self.questions, self.journal))
    }
}

#[cfg(test)]
mod tests {
    use mcp_types::{ElicitRequestFormParams, ListRootsRequest, OrderedMap, RequestedSchema};

    use super::*;

    fn form(message: &str) -> InputRequest {
        ElicitRequestFormParams::new(message, RequestedSchema::new(OrderedMap::new())).into()
    }

    fn answer(text: &str) -> RawObject {
        RawObject::parse(&format!(r#"{{"action":"accept","content":{{"a":"{text}"}}}}"#)).unwrap()
    }

    fn responses(answers: &[(&str, &str)]) -> InputResponses {
        answers.iter().map(|(key, text)| ((*key).to_owned(), answer(text))).collect()
    }

    /// The journal as it comes back, through its text.
    fn next(round: Round) -> Journal {
        let (_, journal) = round.finish().expect("questions");
        Journal::from_bytes(&journal.to_bytes()).expect("a journal")
    }

    /// Three questions one after the other, each answered in a round of its own.
    // covers: R-11, R-22
    #[test]
    fn answers_of_earlier_rounds_are_found_again() {
        let mut round = Round::default();
        assert_eq!(round.ask("a", &form("A?")).unwrap(), Asked::Open);
        let mut round = Round::new(next(round), responses(&[("a", "1")]));
        assert_eq!(round.ask("a", &form("A?")).unwrap(), Asked::Answered(answer("1")));
        assert_eq!(round.ask("b", &form("B?")).unwrap(), Asked::Open);
        let mut round = Round::new(next(round), responses(&[("b", "2")]));
        assert_eq!(round.ask("a", &form("A?")).unwrap(), Asked::Answered(answer("1")));
        assert_eq!(round.ask("b", &form("B?")).unwrap(), Asked::Answered(answer("2")));
        assert!(round.finish().is_none());
    }

    /// Steps are taken once, however many rounds there are.
    #[test]
    fn steps_are_not_repeated() {
        let mut round = Round::default();
        assert!(round.step("charge").is_none());
        round.complete_step("charge", RawJson::parse("7").unwrap());
        let _ = round.ask("a", &form("A?")).unwrap();
        let round = Round::new(next(round), InputResponses::new());
        assert_eq!(round.step("charge").map(RawJson::as_str), Some("7"));
    }

    /// What is missing is asked again, what is not wanted is ignored.
    // covers: R-13, R-14
    #[test]
    fn missing_answers_are_asked_again() {
        let mut round = Round::default();
        let _ = round.ask("a", &form("A?")).unwrap();
        let _ = round.ask("b", &form("B?")).unwrap();
        let mut round = Round::new(next(round), responses(&[("b", "2"), ("c", "3")]));
        assert_eq!(round.ask("a", &form("A?")).unwrap(), Asked::Open);
        assert_eq!(round.ask("b", &form("B?")).unwrap(), Asked::Answered(answer("2")));
        let (questions, _) = round.finish().unwrap();
        assert_eq!(questions.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["a"]);
    }

    /// An answer to another question is not an answer, in this round or a later one.
    #[test]
    fn a_changed_question_is_asked_again() {
        let mut round = Round::default();
        let _ = round.ask("a", &form("Delete 3 files?")).unwrap();
        let journal = next(round);
        let mut changed = Round::new(journal.clone(), responses(&[("a", "yes")]));
        assert_eq!(changed.ask("a", &form("Delete 300 files?")).unwrap(), Asked::Open);
        let mut same = Round::new(journal, responses(&[("a", "yes")]));
        assert_ne!(same.ask("a", &form("Delete 3 files?")).unwrap(), Asked::Open);
        let _ = same.ask("b", &ListRootsRequest::default().into()).unwrap();
        let mut later = Round::new(next(same), InputResponses::new());
        assert_eq!(later.ask("a", &form("Delete 300 files?")).unwrap(), Asked::Open);
    }

    /// An answer without a round before counts; one to something else than what was asked does not.
    #[test]
    fn answers_may_come_unasked_in_the_first_round_only() {
        let mut first = Round::new(Journal::default(), responses(&[("a", "1"), ("x", "2")]));
        assert_eq!(first.ask("a", &form("A?")).unwrap(), Asked::Answered(answer("1")));
        let mut round = Round::default();
        let _ = round.ask("a", &form("A?")).unwrap();
        let mut later = Round::new(next(round), responses(&[("a", "1"), ("b", "2")]));
        let _ = later.ask("a", &form("A?")).unwrap();
        assert_eq!(later.ask("b", &form("B?")).unwrap(), Asked::Open, "nobody had asked for b");
    }

    #[test]
    fn keys_are_unique() {
        let mut round = Round::default();
        assert_eq!(round.ask("a", &form("A?")).unwrap(), Asked::Open);
        assert_eq!(round.ask("a", &form("A?")).unwrap(), Asked::Open, "the same question twice is one");
        assert_eq!(round.ask("a", &form("B?")), Err(ResumeError::DuplicateKey("a".into())));
        assert_eq!(Journal::from_bytes(br#"{"v":2}"#), Err(ResumeError::UnknownJournal));
        assert_eq!(Journal::from_bytes(b"nonsense"), Err(ResumeError::UnknownJournal));
    }
}
