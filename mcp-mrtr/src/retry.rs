//! The client side: respond, and repeat the request.

use std::time::Duration;

use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{InputRequests, InputRequiredResult, InputResponses, JsonObject, RawJson, RawObject};

/// Limits on the rounds of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryLimits {
    /// The maximum number of rounds of one request. Defaults to 10.
    pub max_rounds: u32,
    /// The maximum number of input requests in one round. Defaults to 64.
    pub max_input_requests: usize,
    /// The maximum number of consecutive rounds without an input request. Defaults to 5.
    pub max_waits: u32,
    /// The delay after the first round without an input request; it doubles after each further one. Defaults to 500
    /// milliseconds.
    pub initial_wait: Duration,
    /// The maximum delay. Defaults to 10 seconds.
    pub max_wait: Duration,
}

impl Default for RetryLimits {
    fn default() -> Self {
        Self {
            max_rounds: 10,
            max_input_requests: 64,
            max_waits: 5,
            initial_wait: Duration::from_millis(500),
            max_wait: Duration::from_secs(10),
        }
    }
}

impl RetryLimits {
    /// Sets the maximum number of rounds of one request. Defaults to 10.
    #[must_use]
    pub fn max_rounds(self, max_rounds: u32) -> Self {
        Self { max_rounds, ..self }
    }

    /// Sets the maximum number of input requests in one round. Defaults to 64.
    #[must_use]
    pub fn max_input_requests(self, max_input_requests: usize) -> Self {
        Self { max_input_requests, ..self }
    }

    /// Sets the maximum number of consecutive rounds without an input request. Defaults to 5.
    #[must_use]
    pub fn max_waits(self, max_waits: u32) -> Self {
        Self { max_waits, ..self }
    }
}

/// The client's state of one request, which may take several rounds.
///
/// Each request has its own `Retry`, so that no state or response reaches another request.
#[derive(Clone, Debug)]
pub struct Retry {
    original: JsonObject,
    limits: RetryLimits,
    rounds: u32,
    waits: u32,
    /// The input requests of the latest round.
    open: InputRequests,
    responses: InputResponses,
    state: Option<String>,
}

/// What to do after an [`InputRequiredResult`].
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there are input requests or there are none")]
pub enum RetryAction {
    /// Respond to these input requests, then repeat the request.
    Respond(InputRequests),
    /// Repeat the request after this delay: the server needs no input, but has no result yet.
    Wait(Duration),
}

/// The error of [`Retry`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RetryError {
    /// The parameters of the request are not an object.
    #[error("the parameters are not an object")]
    NotAnObject,
    /// The request took too many rounds.
    #[error("the request took more than {limit} rounds")]
    TooManyRounds {
        /// The limit.
        limit: u32,
    },
    /// The server sent too many input requests in one round.
    #[error("the server sent more than {limit} input requests at once")]
    TooManyInputRequests {
        /// The limit.
        limit: usize,
    },
    /// The result is not a valid [`InputRequiredResult`].
    #[error("the server's `InputRequiredResult` is not valid: {0}")]
    InvalidResult(String),
    /// Too many consecutive rounds had no input request.
    #[error("more than {limit} consecutive rounds had no input request")]
    TooManyWaits {
        /// The limit.
        limit: u32,
    },
    /// The result has neither input requests nor a state.
    #[error("the server's `InputRequiredResult` has neither input requests nor a state")]
    Empty,
    /// There is no input request with this key.
    #[error("there is no input request `{0}`")]
    UnknownKey(String),
    /// An input request has no response yet.
    #[error("the input request `{0}` has no response")]
    MissingResponse(String),
}

impl Retry {
    /// Creates a `Retry` from the parameters of the original request.
    ///
    /// # Errors
    ///
    /// Returns an error if the parameters are not an object.
    pub fn new(params: &RawObject, limits: RetryLimits) -> Result<Self, RetryError> {
        let original: JsonObject = params.decode().map_err(|_| RetryError::NotAnObject)?;
        Ok(Self {
            original,
            limits,
            rounds: 0,
            waits: 0,
            open: InputRequests::new(),
            responses: InputResponses::new(),
            state: None,
        })
    }

    /// Handles an encoded [`InputRequiredResult`]. It is not decoded if it has more input requests than the limit.
    ///
    /// # Errors
    ///
    /// Returns an error if the result cannot be decoded, or if [`handle`](Self::handle) returns one.
    pub fn handle_payload(&mut self, result: &PayloadBuf) -> Result<RetryAction, RetryError> {
        self.check_count(result.member_count("inputRequests").unwrap_or_default())?;
        self.handle(result.decode().map_err(|fault| RetryError::InvalidResult(fault.to_string()))?)
    }

    fn check_count(&self, count: usize) -> Result<(), RetryError> {
        let limit = self.limits.max_input_requests;
        if count > limit { Err(RetryError::TooManyInputRequests { limit }) } else { Ok(()) }
    }

    /// Handles an [`InputRequiredResult`].
    ///
    /// # Errors
    ///
    /// Returns an error if a limit is exceeded, or if the result has neither input requests nor a state.
    pub fn handle(&mut self, result: InputRequiredResult) -> Result<RetryAction, RetryError> {
        self.rounds += 1;
        if self.rounds > self.limits.max_rounds {
            return Err(RetryError::TooManyRounds { limit: self.limits.max_rounds });
        }
        self.check_count(result.input_requests.as_ref().map_or(0, InputRequests::len))?;
        // R-18, R-22: only the latest round counts.
        self.responses = InputResponses::new();
        self.state = result.request_state;
        self.open = result.input_requests.unwrap_or_default();
        if !self.open.is_empty() {
            self.waits = 0;
            return Ok(RetryAction::Respond(self.open.clone()));
        }
        if self.state.is_none() {
            return Err(RetryError::Empty);
        }
        self.waits += 1;
        if self.waits > self.limits.max_waits {
            return Err(RetryError::TooManyWaits { limit: self.limits.max_waits });
        }
        let doubled = self.limits.initial_wait.saturating_mul(1 << (self.waits - 1).min(16));
        Ok(RetryAction::Wait(doubled.min(self.limits.max_wait)))
    }

    /// Adds the response to an input request.
    ///
    /// # Errors
    ///
    /// Returns an error if the latest round has no input request with this key.
    pub fn respond(&mut self, key: &str, response: RawObject) -> Result<(), RetryError> {
        if !self.open.contains(key) {
            return Err(RetryError::UnknownKey(key.to_owned()));
        }
        self.responses.insert(key, response);
        Ok(())
    }

    /// Returns the parameters of the next round: the original ones with the input responses and the unchanged state. Send
    /// them with a new request id, and do not cache the result.
    ///
    /// # Errors
    ///
    /// Returns an error if an input request has no response.
    // R-17, R-19, R-21, R-26
    pub fn params(&self) -> Result<RawObject, RetryError> {
        if let Some((key, _)) = self.open.iter().find(|(key, _)| !self.responses.contains(key)) {
            return Err(RetryError::MissingResponse(key.to_owned()));
        }
        let mut params = self.original.clone();
        params.remove("inputResponses");
        params.remove("requestState");
        let raw = |value: Result<RawJson, serde_json::Error>| value.map_err(|_| RetryError::NotAnObject);
        if !self.responses.is_empty() {
            params.insert("inputResponses", raw(RawJson::new(&self.responses))?);
        }
        if let Some(state) = &self.state {
            params.insert("requestState", raw(RawJson::new(state))?);
        }
        RawObject::new(&params).map_err(|_| RetryError::NotAnObject)
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
        let request = || InputRequest::from(ListRootsRequest::default());
        result.input_requests =
            (!keys.is_empty()).then(|| keys.iter().map(|key| ((*key).to_owned(), request())).collect());
        result.request_state = state.map(str::to_owned);
        result
    }

    fn response() -> RawObject {
        RawObject::parse(r#"{"roots":[]}"#).unwrap()
    }

    fn params(retry: &Retry) -> Value {
        retry.params().unwrap().decode().unwrap()
    }

    /// A retry has all responses, the unchanged state, and the request as it was.
    // covers: R-15, R-17, R-21, M-21
    #[test]
    fn a_retry_repeats_the_request() {
        let mut retry = retry();
        let state = " {\"not\": \"ours to read\"} \u{e9}";
        assert!(matches!(retry.handle(asks(&["x", "y"], Some(state))), Ok(RetryAction::Respond(_))));
        retry.respond("x", response()).unwrap();
        assert_eq!(retry.params(), Err(RetryError::MissingResponse("y".into())));
        assert_eq!(retry.respond("z", response()), Err(RetryError::UnknownKey("z".into())));
        retry.respond("y", response()).unwrap();
        let roots = json!({ "roots": [] });
        assert_eq!(
            params(&retry),
            json!({
                "name": "a", "arguments": { "b": 1 }, "_meta": { "c": 2 },
                "inputResponses": { "x": roots, "y": roots }, "requestState": state,
            })
        );
    }

    /// A retry has nothing of earlier rounds.
    // covers: R-18, R-22
    #[test]
    fn only_the_latest_round_counts() {
        let mut retry = retry();
        let _ = retry.handle(asks(&["x"], Some("1"))).unwrap();
        retry.respond("x", response()).unwrap();
        let _ = retry.handle(asks(&["y"], None)).unwrap();
        retry.respond("y", response()).unwrap();
        let params = params(&retry);
        assert_eq!(params["inputResponses"], json!({ "y": { "roots": [] } }));
        assert_eq!(params.get("requestState"), None);
    }

    /// A server that requests input without end, or only defers the client, is given up.
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
        assert_eq!(waits.first(), Some(&RetryAction::Wait(Duration::from_millis(500))));
        assert_eq!(waits.last(), Some(&RetryAction::Wait(Duration::from_secs(8))));
        assert_eq!(put_off.handle(asks(&[], Some("s"))), Err(RetryError::TooManyWaits { limit: 5 }));
        assert_eq!(retry().handle(asks(&[], None)), Err(RetryError::Empty));
    }

    /// The input requests of a round are limited, and counted before they are decoded.
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
        assert!(matches!(retry().handle_payload(&payload(&asks(&keys[..64], None))), Ok(RetryAction::Respond(_))));
        assert_eq!(retry().handle_payload(&payload(&asks(&keys, None))), refused);
        // None of them could be decoded, which is not tried.
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
