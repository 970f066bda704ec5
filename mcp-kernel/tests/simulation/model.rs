//! The reference: who asked what, and what may be said about it. It looks at messages, never into the machines.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mcp_kernel::server::Route;
use mcp_kernel::{CallError, CallId, Change, Limits, RequestKey, Time};
use mcp_types::{LoggingLevel, SubscriptionFilter};
use serde_json::Value;

pub(crate) const TAG: &str = "simulation/tag";
pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A call, from the side that makes it.
pub(crate) struct Call {
    pub(crate) tag: u64,
    pub(crate) method: String,
    /// The id on the wire, once it was seen there.
    pub(crate) id: Value,
    pub(crate) open: bool,
    pub(crate) idle: Option<Duration>,
    pub(crate) idle_at: Option<Time>,
    pub(crate) limit_at: Option<Time>,
    /// Somebody else used its id, so it may be refused.
    pub(crate) disturbed: bool,
    /// Somebody else ended it and used its id, so it may get what was meant for them.
    pub(crate) usurped: bool,
    pub(crate) progress: f64,
    pub(crate) filter: Option<SubscriptionFilter>,
    pub(crate) acknowledged: bool,
    /// The request during which the question came up, and whether it was cancelled since.
    pub(crate) related: Option<RequestKey>,
    pub(crate) abandoned: bool,
}

/// Why calls may end in a step.
#[derive(Debug)]
pub(crate) enum Why {
    Nothing,
    Message(Value),
    Cancelled(CallId),
    Time,
    Gone,
    Status(CallId),
}

impl Call {
    pub(crate) fn due(&self) -> Option<Time> {
        [self.idle_at, self.limit_at].into_iter().flatten().min()
    }

    /// A call ends once, for a reason, and with what was meant for it.
    pub(crate) fn end(&mut self, call: CallId, outcome: Result<Value, CallError>, why: &Why, now: Time) {
        assert!(self.open, "{call:?} ended twice: {outcome:?}");
        self.open = false;
        match (&outcome, why) {
            (Ok(result), Why::Message(message)) => {
                assert_eq!((&message["id"], &message["result"]), (&self.id, result), "another answer for {call:?}");
                match self.method.as_str() {
                    _ if self.usurped => {}
                    "subscriptions/listen" => assert_eq!(result["_meta"][SUBSCRIPTION], self.id, "whose end is it?"),
                    "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {}
                    _ => assert!(tag_of(result) == Some(self.tag), "not for {}: {result}", self.tag),
                }
            }
            (Err(CallError::Rejected(error)), Why::Message(message)) => {
                assert_eq!(message["id"], self.id, "another refusal for {call:?}");
                let code = message["error"]["code"].as_i64();
                let is_own = error.message == format!("tag {}", self.tag);
                let is_refusal = match code {
                    Some(-32600) => self.disturbed,
                    Some(-32601) => self.method == "x/custom",
                    Some(-32603) => error.message.contains("too many"),
                    _ => false,
                };
                assert!(is_own || is_refusal || self.usurped, "{} was refused: {error:?}", self.tag);
            }
            (Err(CallError::Cancelled), Why::Cancelled(cancelled)) => assert_eq!(call, *cancelled, "the wrong call"),
            (Err(CallError::Cancelled), Why::Message(_)) => assert!(self.abandoned, "nobody gave {call:?} up"),
            (Err(CallError::TimedOut), Why::Time) => {
                assert!(self.due().is_some_and(|due| due <= now), "{call:?} had time left");
            }
            (Err(CallError::Disconnected), Why::Gone) => {}
            (Err(CallError::Status { .. }), Why::Status(failed)) => assert_eq!(call, *failed, "the wrong call"),
            _ => panic!("{call:?} ended with {outcome:?} because of {why:?}"),
        }
    }
}

/// How far a request got, from the side that serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It came, and nothing was heard of it.
    Waiting,
    /// Its id is in use.
    Duplicate,
    Running,
    Listening,
    /// The answer was given, and was not seen on the wire yet.
    Answered,
    Cancelled,
    Done,
}

pub(crate) struct TrackedRequest {
    pub(crate) id: Value,
    pub(crate) tag: Option<u64>,
    pub(crate) modern: bool,
    pub(crate) token: Value,
    pub(crate) log_level: Value,
    pub(crate) batch: bool,
    pub(crate) read: bool,
    pub(crate) stream: u64,
    pub(crate) stream_broken: bool,
    pub(crate) key: Option<RequestKey>,
    pub(crate) state: State,
    pub(crate) cancellation_due: bool,
    pub(crate) progress: f64,
    pub(crate) filter: Option<SubscriptionFilter>,
    pub(crate) acknowledged: bool,
    pub(crate) owed: Vec<Change>,
}

impl TrackedRequest {
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Waiting | State::Running | State::Listening)
    }
}

pub(crate) struct Model {
    pub(crate) calls: BTreeMap<CallId, Call>,
    pub(crate) asked: BTreeMap<CallId, Call>,
    pub(crate) served: Vec<TrackedRequest>,
    pub(crate) by_key: BTreeMap<RequestKey, usize>,
    /// The handles of batches.
    pub(crate) batches: BTreeSet<RequestKey>,
    pub(crate) blocked: BTreeSet<Option<RequestKey>>,
    pub(crate) limits: Limits,
    /// What a legacy client is owed.
    pub(crate) owed: Vec<Change>,
    pub(crate) subscribed: BTreeSet<String>,
    pub(crate) log_level: LoggingLevel,
    pub(crate) initialized: bool,
    /// A slow reader missed something.
    pub(crate) lossy: bool,
}

impl Model {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            calls: BTreeMap::new(),
            asked: BTreeMap::new(),
            served: Vec::new(),
            by_key: BTreeMap::new(),
            batches: BTreeSet::new(),
            blocked: BTreeSet::new(),
            limits,
            owed: Vec::new(),
            subscribed: BTreeSet::new(),
            log_level: LoggingLevel::Info,
            initialized: false,
            lossy: false,
        }
    }

    pub(crate) fn count(&self, state: State) -> usize {
        self.served.iter().filter(|served| served.state == state).count()
    }

    /// A request reaches the server.
    pub(crate) fn arrive(&mut self, message: &Value, stream: u64, read: bool, batch: bool) -> usize {
        let meta = &message["params"]["_meta"];
        let duplicate = self.served.iter().any(|served| served.is_open() && served.id == message["id"]);
        self.served.push(TrackedRequest {
            id: message["id"].clone(),
            tag: meta[TAG].as_u64(),
            modern: meta.get(VERSION).is_some(),
            token: meta["progressToken"].clone(),
            log_level: meta[LOG_LEVEL].clone(),
            batch,
            read,
            stream,
            stream_broken: false,
            key: None,
            state: if duplicate { State::Duplicate } else { State::Waiting },
            cancellation_due: false,
            progress: f64::MIN,
            filter: None,
            acknowledged: false,
            owed: Vec::new(),
        });
        self.served.len() - 1
    }

    /// The server takes note that a request is not wanted any more.
    pub(crate) fn cancel(&mut self, index: usize) {
        let served = &mut self.served[index];
        if served.is_open() {
            served.cancellation_due = served.state != State::Waiting;
            served.state = State::Cancelled;
            served.owed.clear();
            if let Some(key) = served.key {
                self.blocked.remove(&Some(key));
                let related = self.asked.values_mut().filter(|call| call.related == Some(key));
                related.for_each(|call| call.abandoned = true);
            }
        }
    }

    /// The application hears of a request.
    pub(crate) fn open(&mut self, key: RequestKey, id: &Value, filter: Option<SubscriptionFilter>) -> usize {
        let matches = |served: &TrackedRequest| served.state == State::Waiting && served.id == *id;
        let index = self.served.iter().position(matches);
        let index = index.unwrap_or_else(|| panic!("nobody sent the request {id}, or its id is in use"));
        assert!(self.by_key.insert(key, index).is_none(), "{key:?} was used before");
        let served = &mut self.served[index];
        served.key = Some(key);
        served.state = if filter.is_some() { State::Listening } else { State::Running };
        served.filter = filter;
        assert!(self.count(State::Running) <= self.limits.max_in_flight, "more than the limit runs");
        assert!(self.count(State::Listening) <= self.limits.max_listen_streams, "more than the limit listens");
        index
    }

    /// The application hears that a request ended without it.
    pub(crate) fn heard_cancelled(&mut self, key: RequestKey) {
        let index = *self.by_key.get(&key).expect("it was never heard of");
        let served = &mut self.served[index];
        let is_end = served.state == State::Answered && served.filter.is_some();
        assert!(served.cancellation_due || is_end, "nobody ended {:?}: {:?}", served.id, served.state);
        served.cancellation_due = false;
    }

    /// The application hears that messages were dropped. That ends a listen stream, whose response may be held back.
    pub(crate) fn dropped(&mut self, route: Route) {
        self.lossy = true;
        if let Route::Listen(key) = route
            && let Some(index) = self.by_key.get(&key)
            && self.served[*index].state == State::Listening
        {
            self.served[*index].state = State::Answered;
        }
    }

    /// The application tells of a change.
    pub(crate) fn publish(&mut self, change: &Change, has_back_channel: bool) {
        for served in self.served.iter_mut().filter(|served| served.state == State::Listening) {
            let wanted = served.filter.as_ref().is_some_and(|filter| covers(filter, change));
            let coalesces = self.blocked.contains(&served.key) && served.owed.contains(change);
            if wanted && !coalesces {
                served.owed.push(change.clone());
            }
        }
        let unasked = !matches!(change, Change::Resource(uri) if !self.subscribed.contains(uri));
        let coalesces = self.blocked.contains(&None) && self.owed.contains(change);
        if self.initialized && has_back_channel && unasked && !coalesces {
            self.owed.push(change.clone());
        }
    }

    /// The server says something; `arrived` came in this step.
    pub(crate) fn sent(&mut self, route: Route, message: &Value, arrived: &[usize], invalid: Option<&Value>) {
        if let Some(answers) = message.as_array() {
            for answer in answers {
                let answered = self.served.iter_mut().find(|served| {
                    let is_due = matches!(served.state, State::Answered | State::Waiting | State::Duplicate);
                    served.batch && served.id == answer["id"] && is_due
                });
                check_answer(answered.expect("an answer in a batch to nothing"), answer);
            }
            return;
        }
        let key = match route {
            Route::Reply(key) | Route::Related(key) | Route::Listen(key) => Some(key),
            Route::Standalone => None,
        };
        let mut index = key.and_then(|key| self.by_key.get(&key)).copied();
        // The requests of a batch share its stream, where the token tells them apart.
        let of_batch = key.is_some_and(|key| self.batches.contains(&key));
        if of_batch {
            let token = &message["params"]["progressToken"];
            index = self.served.iter().position(|served| served.batch && served.is_open() && served.token == *token);
        }
        let Some(method) = message["method"].as_str() else {
            return self.replied(message, index, arrived, invalid);
        };
        let served = index.map(|index| &mut self.served[index]);
        if let Some(served) = &served {
            let allowed = matches!(served.state, State::Running | State::Listening | State::Answered);
            assert!(allowed, "{method} for {:?}, which is {:?}", served.id, served.state);
        }
        assert!(key.is_none() || served.is_some() || of_batch, "{method} for a request that was never open");
        let (params, lossy) = (&message["params"], self.lossy);
        match (method, served) {
            ("notifications/progress", Some(served)) => {
                assert_eq!(params["progressToken"], served.token, "the token of another request");
                let progress = params["progress"].as_f64().expect("a number");
                assert!(progress > served.progress, "{progress} is not more than {}", served.progress);
                served.progress = progress;
            }
            ("notifications/message", _) => {}
            ("notifications/subscriptions/acknowledged", Some(served)) => {
                assert!(!served.acknowledged, "acknowledged twice");
                assert_eq!(params["_meta"][SUBSCRIPTION], served.id, "the acknowledgement of another");
                served.acknowledged = true;
            }
            ("notifications/cancelled", _) => {
                // A request that was forgotten together with a slow stream was never seen.
                let known = |call: &Call| call.id.is_null() || call.id == params["requestId"];
                assert!(self.asked.values().any(|call| known(call) && !call.open), "a call that goes on");
            }
            (_, served) => {
                if let Some(change) = change_of(message) {
                    let owed = match served {
                        Some(served) => {
                            assert!(served.acknowledged, "a change before the acknowledgement");
                            assert_eq!(params["_meta"][SUBSCRIPTION], served.id, "the change of another");
                            &mut served.owed
                        }
                        None => &mut self.owed,
                    };
                    let place = owed.iter().position(|owed| *owed == change);
                    assert!(place.is_some_and(|place| place == 0 || lossy), "{change:?} is not owed: {owed:?}");
                    owed.remove(place.unwrap_or_default());
                } else {
                    let tag = params["_meta"][TAG].as_u64();
                    let call = self.asked.values_mut().find(|call| Some(call.tag) == tag && call.id.is_null());
                    call.expect("the server asks what nobody wanted it to").id = message["id"].clone();
                }
            }
        }
    }

    fn replied(&mut self, message: &Value, index: Option<usize>, arrived: &[usize], invalid: Option<&Value>) {
        if message["id"].is_null() {
            assert!(invalid.is_some() || arrived.iter().any(|index| self.served[*index].batch), "whose? {message}");
            for index in arrived {
                self.served[*index].state = State::Done;
            }
            return;
        }
        let is_full = self.count(State::Running) >= self.limits.max_in_flight;
        let at_once = arrived.iter().copied().find(|index| self.served[*index].id == message["id"]);
        match (at_once, index) {
            (Some(index), None) => {
                if message["error"]["message"] == "too many requests are in flight (`max_in_flight`)" {
                    assert!(is_full, "refused though there is room");
                }
                check_answer(&mut self.served[index], message);
            }
            (None, Some(index)) => check_answer(&mut self.served[index], message),
            _ => assert_eq!(invalid, Some(&message["id"]), "an answer to nothing: {message}"),
        }
    }

    /// What must hold between any two steps.
    pub(crate) fn check(&self, server_gone: bool) {
        let running = self.count(State::Running);
        for served in &self.served {
            let id = &served.id;
            assert!(!served.cancellation_due, "nobody heard of the end of {id}");
            assert!(served.state != State::Duplicate || served.batch, "the duplicate {id} was not answered");
            if server_gone || served.batch {
                continue;
            }
            let held_back = self.blocked.contains(&served.key) && served.key.is_some();
            assert!(served.state != State::Answered || held_back, "the answer to {id} did not go out");
            assert!(served.owed.is_empty() || held_back || self.lossy, "{id} missed {:?}", served.owed);
            let full = running >= self.limits.max_in_flight;
            assert!(served.state != State::Waiting || full, "{id} waits though there is room");
        }
        assert!(!self.asked.values().any(|call| call.abandoned && call.open), "a question outlives its request");
        let waits = |served: &&TrackedRequest| served.state == State::Waiting && !served.batch;
        let waiting = self.served.iter().filter(waits).count();
        assert!(waiting <= self.limits.max_queued, "more than the limit waits");
        let told = self.owed.is_empty() || self.blocked.contains(&None) || self.lossy || server_gone;
        assert!(told, "the client missed {:?}", self.owed);
    }
}

fn check_answer(served: &mut TrackedRequest, message: &Value) {
    let (id, state) = (&served.id, served.state);
    assert_eq!(*id, message["id"], "the answer to another request");
    match message.get("result") {
        Some(result) => {
            assert_eq!(result.get("resultType").is_some(), served.modern, "{id}: {message}");
            assert_eq!(result["_meta"].get(SERVER_INFO).is_some(), served.modern, "{id}: {message}");
            assert!(matches!(state, State::Waiting | State::Answered), "{id} is {state:?}: {message}");
            let tag = if state == State::Answered && served.filter.is_none() { served.tag } else { None };
            assert_eq!(tag_of(result), tag, "the result of another request: {message}");
        }
        None => {
            let allowed = matches!(state, State::Waiting | State::Answered | State::Duplicate);
            assert!(allowed, "{id} is {state:?}: {message}");
            let duplicate = message["error"]["code"] == -32600;
            assert!(state != State::Duplicate || duplicate, "a duplicate, but {message}");
        }
    }
    served.state = State::Done;
}

/// Whom an answer was meant for.
pub(crate) fn tag_of(result: &Value) -> Option<u64> {
    result["tag"].as_u64().or_else(|| result["content"][0]["text"].as_str()?.parse().ok())
}

/// What a notification says changed.
pub(crate) fn change_of(message: &Value) -> Option<Change> {
    Some(match message["method"].as_str()? {
        "notifications/tools/list_changed" => Change::Tools,
        "notifications/prompts/list_changed" => Change::Prompts,
        "notifications/resources/list_changed" => Change::Resources,
        "notifications/resources/updated" => Change::Resource(message["params"]["uri"].as_str()?.to_owned()),
        _ => return None,
    })
}

pub(crate) fn covers(filter: &SubscriptionFilter, change: &Change) -> bool {
    match change {
        Change::Tools => filter.tools_list_changed == Some(true),
        Change::Prompts => filter.prompts_list_changed == Some(true),
        Change::Resources => filter.resources_list_changed == Some(true),
        Change::Resource(uri) => filter.resource_subscriptions.as_ref().is_some_and(|uris| uris.contains(uri)),
        other => panic!("{other:?} is new"),
    }
}
