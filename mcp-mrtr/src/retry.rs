//! The client's side: answer, and ask again.

use std::time::Duration;

use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{InputRequests, InputRequiredResult, InputResponses, JsonObject, RawJson, RawObject};

/// How often a client lets a server ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryLimits {
    /// How many rounds one request may take. Default: 10.
    pub rounds: u32,
    /// The maximum number of input requests in one round. Defaults to 64.
    pub input_requests: usize,
    /// How many rounds in a row may bring nothing but a state. Default: 5.
    pub waits: u32,
    /// How long to wait after the first of those; each further one doubles it. Default: 500 ms.
    pub first_wait: Duration,
    /// How long to wait at most. Default: 10 s.
    pub longest_wait: Duration,
}

impl Default for RetryLimits {
    fn default() -> Self {
        Self {
            rounds: 10,
            input_requests: 64,
            waits: 5,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(10),
        }
    }
}

impl RetryLimits {
    /// Replaces [`rounds`](Self::rounds).
    #[must_use]
    pub fn with_rounds(self, rounds: u32) -> Self {
        Self { rounds, ..self }
    }

    /// Replaces [`input_requests`](Self::input_requests).
    #[must_use]
    pub fn with_input_requests(self, input_requests: usize) -> Self {
        Self { input_requests, ..self }
    }

    /// Replaces [`waits`](Self::waits).
    #[must_use]
    pub fn with_waits(self, waits: u32) -> Self {
        Self { waits, ..self }
    }
}

/// One request, over all its rounds. Each request has its own, so that nothing of one gets into another.
#[derive(Clone, Debug)]
pub struct Retry {
    original: JsonObject,
    limits: RetryLimits,
    rounds: u32,
    waits: u32,
    /// What is to be answered in this round.
    open: InputRequests,
    answers: InputResponses,
    state: Option<String>,
}

/// What to do about an interim result.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there are questions or there are none")]
pub enum Next {
    /// Answer these questions, and then send the request again.
    Answer(InputRequests),
    /// Send the request again after a while: the server has nothing to ask, but cannot answer yet.
    Wait(Duration),
}

/// Why a request is given up, or an answer is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RetryError {
    /// The parameters of the request are not an object.
    #[error("the parameters are not an object")]
    NotAnObject,
    /// The server asks without end.
    #[error("the server asked for input more than {limit} times")]
    TooManyRounds {
        /// The limit that was hit.
        limit: u32,
    },
    /// The server asks for too much at once.
    #[error("the server sent more than {limit} input requests at once")]
    TooManyInputRequests {
        /// The limit that was hit.
        limit: usize,
    },
    /// The result is not one that asks for input.
    #[error("the server's request for input cannot be read: {0}")]
    InvalidResult(String),
    /// The server puts the client off without end.
    #[error("the server put the request off more than {limit} times")]
    TooManyWaits {
        /// The limit that was hit.
        limit: u32,
    },
    /// The server asks nothing and gives no state.
    #[error("the server asks for input without saying what")]
    AsksNothing,
    /// Nobody asked this.
    #[error("there is no question `{0}`")]
    NotAsked(String),
    /// Some questions have no answer yet.
    #[error("the question `{0}` has no answer")]
    Unanswered(String),
}

impl Retry {
    /// Starts with the parameters of a request, as they were sent the first time.
    ///
    /// # Errors
    ///
    /// Fails if they are not an object.
    pub fn new(params: &RawObject, limits: RetryLimits) -> Result<Self, RetryError> {
        let original: JsonObject = params.decode().map_err(|_| RetryError::NotAnObject)?;
        Ok(Self {
            original,
            limits,
            rounds: 0,
            waits: 0,
            open: InputRequests::new(),
            answers: InputResponses::new(),
            state: None,
        })
    }

    /// Takes an interim result as it came. It is not read if it holds more input requests than the limits allow.
    ///
    /// # Errors
    ///
    /// Returns an error if the result cannot be read, or if [`handle`](Self::handle) does.
    pub fn handle_payload(&mut self, result: &PayloadBuf) -> Result<Next, RetryError> {
        self.check_count(result.member_count("inputRequests").unwrap_or_default())?;
        self.handle(result.decode().map_err(|fault| RetryError::InvalidResult(fault.to_string()))?)
    }

    fn check_count(&self, count: usize) -> Result<(), RetryError> {
        let limit = self.limits.input_requests;
        if count > limit { Err(RetryError::TooManyInputRequests { limit }) } else { Ok(()) }
    }

    /// Takes an interim result.
    ///
    /// # Errors
    ///
    /// Fails if the server asks too often, too much at once, or nothing.
    pub fn handle(&mut self, result: InputRequiredResult) -> Result<Next, RetryError> {
        self.rounds += 1;
        if self.rounds > self.limits.rounds {
            return Err(RetryError::TooManyRounds { limit: self.limits.rounds });
        }
        self.check_count(result.input_requests.as_ref().map_or(0, InputRequests::len))?;
        // R-18, R-22: only the latest round counts.
        self.answers = InputResponses::new();
        self.state = result.request_state;
        self.open = result.input_requests.unwrap_or_default();
        if !self.open.is_empty() {
            self.waits = 0;
            return Ok(Next::Answer(self.open.clone()));
        }
        if self.state.is_none() {
            return Err(RetryError::AsksNothing);
        }
        self.waits += 1;
        if self.waits > self.limits.waits {
            return Err(RetryError::TooManyWaits { limit: self.limits.waits });
        }
        let doubled = self.limits.first_wait.saturating_mul(1 << (self.waits - 1).min(16));
        Ok(Next::Wait(doubled.min(self.limits.longest_wait)))
    }

    /// Answers a question.
    ///
    /// # Errors
    ///
    /// Fails if it was not asked in the latest round.
    pub fn answer(&mut self, key: &str, answer: RawObject) -> Result<(), RetryError> {
        if !self.open.contains(key) {
            return Err(RetryError::NotAsked(key.to_owned()));
        }
        self.answers.insert(key, answer);
        Ok(())
    }

    /// The parameters of the next round: the original ones, with the answers, and with the state exactly as it came.
    /// They are sent under a new id, and what comes of them is never cached.
    ///
    /// # Errors
    ///
    /// Fails if a question has no answer.
    // R-17, R-19, R-21, R-26
    pub fn params(&self) -> Result<RawObject, RetryError> {
        if let Some((key, _)) = self.open.iter().find(|(key, _)| !self.answers.contains(key)) {
            return Err(RetryError::Unanswered(key.to_owned()));
        }
        let mut params = self.original.clone();
        params.remove("inputResponses");
        params.remove("requestState");
        let raw = |value: Result<RawJson, serde_json::Error>| value.map_err(|_| RetryError::NotAnObject);
        if !self.answers.is_empty() {
            params.insert("inputResponses", raw(RawJson::new(&self.answers))?);
        }
        if let Some(state) = &self.state {
            params.insert("requestState", raw(RawJson::new(state))?);
        }
        RawObject::new(&params).map_err(|_| RetryError::NotAnObject)
    }

    /// How many rounds there were.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.rounds
    }
}

#[cfg(test)]
mod tests {
    use mcp_types::{InputRequest, ListRootsRequest};
    use serde_json::{Value, json};

    use super::*;

    fn retry() -> Retry {
        let params = RawObject::parse(r#"{"name":"a","arguments":{"b":1},"_meta":{"c":2}}"#).unwrap();
        Retry::new(&params, RetryLimits::default()).unwrap()
    }

    fn asks(keys: &[&str], state: Option<&str>) -> InputRequiredResult {
        let mut result = InputRequiredResult::default();
        let question = || InputRequest::from(ListRootsRequest::default());
        result.input_requests =
            (!keys.is_empty()).then(|| keys.iter().map(|key| ((*key).to_owned(), question())).collect());
        result.request_state = state.map(str::to_owned);
        result
    }

    fn answer() -> RawObject {
        RawObject::parse(r#"{"roots":[]}"#).unwrap()
    }

    fn params(retry: &Retry) -> Value {
        retry.params().unwrap().decode().unwrap()
    }

    /// All answers, the state to the letter, and the request as it was.
    // covers: R-15, R-17, R-21, M-21
    #[test]
    fn a_retry_repeats_the_request() {
        let mut retry = retry();
        let state = " {\"not\": \"ours to read\"} \u{e9}";
        assert!(matches!(retry.handle(asks(&["x", "y"], Some(state))), Ok(Next::Answer(_))));
        retry.answer("x", answer()).unwrap();
        assert_eq!(retry.params(), Err(RetryError::Unanswered("y".into())));
        assert_eq!(retry.answer("z", answer()), Err(RetryError::NotAsked("z".into())));
        retry.answer("y", answer()).unwrap();
        let roots = json!({ "roots": [] });
        assert_eq!(
            params(&retry),
            json!({
                "name": "a", "arguments": { "b": 1 }, "_meta": { "c": 2 },
                "inputResponses": { "x": roots, "y": roots }, "requestState": state,
            })
        );
    }

    /// What earlier rounds had is gone.
    // covers: R-18, R-22
    #[test]
    fn only_the_latest_round_counts() {
        let mut retry = retry();
        let _ = retry.handle(asks(&["x"], Some("1"))).unwrap();
        retry.answer("x", answer()).unwrap();
        let _ = retry.handle(asks(&["y"], None)).unwrap();
        retry.answer("y", answer()).unwrap();
        let params = params(&retry);
        assert_eq!(params["inputResponses"], json!({ "y": { "roots": [] } }));
        assert_eq!(params.get("requestState"), None);
    }

    /// A server that asks without end, or only puts the client off, is given up.
    // covers: R-16, R-23, RB-38
    #[test]
    fn rounds_and_waits_are_bounded() {
        let mut asked = retry();
        for _ in 0..10 {
            asked.handle(asks(&["x"], None)).unwrap();
        }
        assert_eq!(asked.handle(asks(&["x"], None)), Err(RetryError::TooManyRounds { limit: 10 }));
        let mut put_off = retry();
        let waits: Vec<_> = (0..5).map(|_| put_off.handle(asks(&[], Some("s"))).unwrap()).collect();
        assert_eq!(waits.first(), Some(&Next::Wait(Duration::from_millis(500))));
        assert_eq!(waits.last(), Some(&Next::Wait(Duration::from_secs(8))));
        assert_eq!(put_off.handle(asks(&[], Some("s"))), Err(RetryError::TooManyWaits { limit: 5 }));
        assert_eq!(retry().handle(asks(&[], None)), Err(RetryError::AsksNothing));
    }

    /// A round holds as many questions as the limits allow, and they are counted before they are read.
    // covers: SEC-11
    #[test]
    fn sec_11_input_requests_are_bounded() {
        let keys: Vec<String> = (0..65).map(|number| number.to_string()).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let refused = Err(RetryError::TooManyInputRequests { limit: 64 });
        assert!(retry().handle(asks(&keys[..64], None)).is_ok());
        assert_eq!(retry().handle(asks(&keys, None)), refused);
        let payload = |result: &InputRequiredResult| {
            let text = serde_json::to_string(result).unwrap();
            PayloadBuf::parse(&text, &mcp_types::jsonrpc::Limits::default()).unwrap()
        };
        assert!(matches!(retry().handle_payload(&payload(&asks(&keys[..64], None))), Ok(Next::Answer(_))));
        assert_eq!(retry().handle_payload(&payload(&asks(&keys, None))), refused);
        // None of them could be read, which nobody tries.
        let text = format!(
            r#"{{"inputRequests":{{{}}}}}"#,
            (0..65).map(|key| format!("\"{key}\":1")).collect::<Vec<_>>().join(",")
        );
        let unreadable = PayloadBuf::parse(&text, &mcp_types::jsonrpc::Limits::default()).unwrap();
        assert_eq!(retry().handle_payload(&unreadable), refused);
        let unreadable = PayloadBuf::parse(r#"{"inputRequests":[]}"#, &mcp_types::jsonrpc::Limits::default()).unwrap();
        assert!(matches!(retry().handle_payload(&unreadable), Err(RetryError::InvalidResult(_))));
    }
}
