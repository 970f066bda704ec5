//! What a task has done and asked so far.

use mcp_mrtr::{Journal, RequestDigest};
use mcp_types::{ErrorObject, InputRequest, InputRequests, InputResponses, OrderedMap, RawJson, RawObject};
use serde::{Deserialize, Serialize};

/// The results of completed steps, the input requests of a task, and the responses to them.
///
/// The client knows an input request by a *wire key*, which is unique over the life of the task: the key that the handler
/// uses, or `key#2` and so on if the handler has made a different request under that key before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskJournal {
    #[serde(default, skip_serializing_if = "OrderedMap::is_empty")]
    steps: OrderedMap<RawJson>,
    /// The pending input requests by their wire keys.
    #[serde(default, skip_serializing_if = "OrderedMap::is_empty")]
    open: OrderedMap<OpenInputRequest>,
    /// The responses by the wire keys of their requests.
    #[serde(default, skip_serializing_if = "OrderedMap::is_empty")]
    answers: OrderedMap<Answer>,
    /// The errors of clients that refused a request, by the wire keys of their requests.
    #[serde(default, skip_serializing_if = "OrderedMap::is_empty")]
    refusals: OrderedMap<Refusal>,
    /// The wire keys of requests that were replaced before they had a response: these are not used again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    withdrawn: Vec<String>,
    /// The wire keys of the requests of the latest round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    round: Vec<String>,
    /// The state of a handler that makes its input requests by an `InputRequiredResult`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
}

/// A pending input request of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpenInputRequest {
    /// The key that the handler uses.
    pub key: String,
    /// The request.
    pub request: InputRequest,
}

/// An input response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Answer {
    /// The key that the handler uses.
    key: String,
    /// A response counts only for the request that it was made for. Absent if that is not known, as in the retry of a handler
    /// that returns its requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<RequestDigest>,
    response: RawObject,
}

/// An input request that a client refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Refusal {
    /// The key that the handler uses.
    key: String,
    digest: RequestDigest,
    error: ErrorObject,
}

impl TaskJournal {
    /// Creates the journal of a request that becomes a task after it has taken steps and has had input requests.
    #[must_use]
    pub fn from_rounds(journal: &Journal) -> Self {
        let answer = |(key, digest, response): (&str, &RequestDigest, &RawObject)| {
            let answer = Answer { key: key.to_owned(), digest: Some(digest.clone()), response: response.clone() };
            (key.to_owned(), answer)
        };
        Self {
            steps: journal.steps().map(|(key, result)| (key.to_owned(), result.clone())).collect(),
            answers: journal.responses().map(answer).collect(),
            ..Self::default()
        }
    }

    /// Sets the responses and the state of a handler that returns its input requests, and that the client calls again.
    #[must_use]
    pub fn retried(mut self, responses: &InputResponses, state: Option<String>) -> Self {
        for (key, response) in responses.iter() {
            self.round.push(key.to_owned());
            self.answers.insert(key, Answer { key: key.to_owned(), digest: None, response: response.clone() });
        }
        self.state = state;
        self
    }

    /// Returns the result of a completed step.
    #[must_use]
    pub fn step(&self, key: &str) -> Option<&RawJson> {
        self.steps.get(key)
    }

    /// Returns the results of all completed steps by their keys.
    pub fn steps(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.steps.iter()
    }

    /// Returns the response to an input request, as the client sent it. A response to a different request under the same
    /// key does not count.
    #[must_use]
    pub fn response(&self, key: &str, request: &InputRequest) -> Option<&RawObject> {
        if self.answers.is_empty() {
            return None;
        }
        let digest = Some(RequestDigest::of(request));
        let mut answers = self.answers.iter().map(|(_, answer)| answer);
        answers.find(|answer| answer.key == key && answer.digest == digest).map(|answer| &answer.response)
    }

    /// Returns the error of the client that refused an input request.
    #[must_use]
    pub fn refusal(&self, key: &str, request: &InputRequest) -> Option<&ErrorObject> {
        if self.refusals.is_empty() {
            return None;
        }
        let digest = RequestDigest::of(request);
        let mut refusals = self.refusals.iter().map(|(_, refusal)| refusal);
        refusals.find(|refusal| refusal.key == key && refusal.digest == digest).map(|refusal| &refusal.error)
    }

    /// Returns the pending input requests by their wire keys.
    pub fn open(&self) -> impl Iterator<Item = (&str, &OpenInputRequest)> {
        self.open.iter()
    }

    /// Returns the pending input requests as a client receives them.
    #[must_use]
    pub fn input_requests(&self) -> InputRequests {
        self.open.iter().map(|(wire_key, question)| (wire_key.to_owned(), question.request.clone())).collect()
    }

    /// Returns whether there are pending input requests.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns the responses to the input requests of the latest round, by the keys of the handler.
    #[must_use]
    pub fn responses(&self) -> InputResponses {
        let answers = self.round.iter().filter_map(|wire_key| self.answers.get(wire_key));
        answers.map(|answer| (answer.key.clone(), answer.response.clone())).collect()
    }

    /// Returns the refusal of an input request of the latest round, if the handler that returned it has a state: it would take a
    /// response that is not there for the response of a user who said nothing.
    pub(crate) fn refused_round(&self) -> Option<&ErrorObject> {
        self.state.as_ref()?;
        self.round.iter().find_map(|wire_key| self.refusals.get(wire_key)).map(|refusal| &refusal.error)
    }

    /// Returns the state of a handler that makes its input requests by an `InputRequiredResult`.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Records the result of a step; returns false if it has one already, which stays.
    pub(crate) fn complete_step(&mut self, key: &str, result: RawJson) -> bool {
        if self.steps.contains(key) {
            return false;
        }
        self.steps.insert(key, result);
        true
    }

    /// Adds a pending input request, and returns its wire key: that of the same request, if it is pending already.
    pub(crate) fn ask(&mut self, key: &str, request: InputRequest) -> String {
        let pending = self.open.iter().find(|(_, open)| open.key == key && open.request == request);
        if let Some((wire_key, _)) = pending {
            return wire_key.to_owned();
        }
        let wire_key = self.unused_wire_key(key);
        self.open.insert(wire_key.clone(), OpenInputRequest { key: key.to_owned(), request });
        wire_key
    }

    /// Makes these the pending input requests, except for those with a response. Others are withdrawn.
    pub(crate) fn begin_round(&mut self, questions: Vec<(String, InputRequest)>, state: Option<String>) {
        let is_asked = |open: &OpenInputRequest| {
            questions.iter().any(|(key, request)| *key == open.key && *request == open.request)
        };
        let others = self.open.iter().filter(|(_, open)| !is_asked(open)).map(|(wire_key, _)| wire_key.to_owned());
        for wire_key in others.collect::<Vec<_>>() {
            self.open.remove(&wire_key);
            self.withdrawn.push(wire_key);
        }
        self.round = Vec::with_capacity(questions.len());
        for (key, request) in questions {
            let wire_key = match self.answered_wire_key(&key, &request) {
                Some(wire_key) => wire_key,
                None => self.ask(&key, request),
            };
            self.round.push(wire_key);
        }
        self.state = state;
    }

    /// Moves the response to a pending input request into the journal; returns false if no such request is pending.
    pub(crate) fn respond(&mut self, wire_key: &str, response: RawObject) -> bool {
        let Some(OpenInputRequest { key, request }) = self.open.remove(wire_key) else { return false };
        self.answers.insert(wire_key, Answer { key, digest: Some(RequestDigest::of(&request)), response });
        true
    }

    /// Moves the refusal of a pending input request into the journal; returns false if no such request is pending.
    pub(crate) fn refuse(&mut self, wire_key: &str, error: ErrorObject) -> bool {
        let Some(OpenInputRequest { key, request }) = self.open.remove(wire_key) else { return false };
        self.refusals.insert(wire_key, Refusal { key, digest: RequestDigest::of(&request), error });
        true
    }

    fn answered_wire_key(&self, key: &str, request: &InputRequest) -> Option<String> {
        let digest = Some(RequestDigest::of(request));
        let mut answers = self.answers.iter();
        answers
            .find(|(_, answer)| answer.key == key && answer.digest == digest)
            .map(|(wire_key, _)| wire_key.to_owned())
    }

    /// Returns a wire key that was never used.
    // TK-21
    fn unused_wire_key(&self, key: &str) -> String {
        let is_used = |wire_key: &str| {
            self.open.contains(wire_key)
                || self.answers.contains(wire_key)
                || self.refusals.contains(wire_key)
                || self.withdrawn.iter().any(|withdrawn| withdrawn == wire_key)
        };
        if !is_used(key) {
            return key.to_owned();
        }
        let mut number = 2_u64;
        loop {
            let wire_key = format!("{key}#{number}");
            if !is_used(&wire_key) {
                return wire_key;
            }
            number += 1;
        }
    }
}
