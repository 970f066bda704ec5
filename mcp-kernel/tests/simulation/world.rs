//! Two machines, a link and a clock, moved one step at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_kernel::client::{self, CancelStyle, ClientConfig, DetectedRevision, Mode};
use mcp_kernel::server::{self, Route, ServerConfig};
use mcp_kernel::{CallId, Change, Limits, RequestKey, Time};
use mcp_types::{
    ClientCapabilities, ElicitationCapability, Era, Implementation, LoggingLevel, PromptsCapability, RawObject,
    ResourcesCapability, Revision, RootsCapability, SamplingCapability, ServerCapabilities, ToolsCapability,
};
use serde_json::Value;

use crate::link::{Kind, Link, Up};
use crate::model::{Call, Model, SUBSCRIPTION, State, TAG, Why, change_of};
use crate::{Random, Trace};

/// What the client's application hears besides the ends of calls.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard {
    Progress(CallId),
    Listening(CallId),
    Changed(Option<CallId>, Change),
    Request(Value),
    RequestCancelled(Value),
}

/// A request of the server, from the side of the client.
pub(crate) struct Inbound {
    pub(crate) id: Value,
    pub(crate) tag: Option<u64>,
    pub(crate) open: bool,
    pub(crate) responder: Option<client::Responder>,
}

pub(crate) struct World {
    pub(crate) random: Random,
    pub(crate) trace: Trace,
    pub(crate) now: Time,
    pub(crate) client: client::Connection,
    pub(crate) server: server::Connection,
    pub(crate) link: Link,
    pub(crate) model: Model,
    pub(crate) responders: BTreeMap<usize, server::Responder>,
    pub(crate) inbound: Vec<Inbound>,
    /// When the client answered the server, or the server did not want an answer any more.
    pub(crate) answered_at: Option<Time>,
    pub(crate) detected: Option<DetectedRevision>,
    pub(crate) revision: Option<Revision>,
    pub(crate) has_back_channel: bool,
    pub(crate) client_limit: usize,
    pub(crate) tags: u64,
    pub(crate) client_over: bool,
    /// Whether the client sent `initialize`.
    shakes_hands: bool,
    pub(crate) server_over: bool,
    duplicates: u64,
}

const LEGACY: [Revision; 4] =
    [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

impl World {
    pub(crate) fn new(seed: u64, trace: Trace) -> Self {
        let mut random = Random(seed);
        let kind = random.pick(&[Kind::Stdio, Kind::Http]);
        let mut limits = Limits::default();
        limits.max_in_flight = random.pick(&[1, 2, 4, 100]);
        limits.max_queued = random.pick(&[0, 1, 3, 64]);
        limits.max_listen_streams = random.pick(&[1, 2, 16]);
        limits.max_route_messages = random.pick(&[2, 4, 256]);
        limits.max_calls = random.pick(&[2, 100]);
        let mode = random.pick(&[Mode::Auto, Mode::Modern, Mode::Legacy]);
        let revisions = match random.below(5) {
            0 => vec![random.pick(&LEGACY)],
            1 => LEGACY.to_vec(),
            2 => vec![Revision::LATEST],
            _ => Revision::ALL.to_vec(),
        };
        let capabilities = ServerCapabilities::default()
            .tools(ToolsCapability::default().list_changed(true))
            .prompts(PromptsCapability::default().list_changed(true))
            .resources(ResourcesCapability::default().list_changed(true).subscribe(true))
            .completions(RawObject::empty())
            .logging(RawObject::empty());
        let mut server = ServerConfig::new(Implementation::new("server", "1.0"), capabilities);
        server.revisions.clone_from(&revisions);
        server.limits = limits.clone();
        server.require_initialized = kind == Kind::Stdio && random.chance(30);
        let capabilities = ClientCapabilities::default()
            .elicitation(ElicitationCapability::default().form(RawObject::empty()))
            .sampling(SamplingCapability::default())
            .roots(RootsCapability::default());
        let mut client = ClientConfig::new(Implementation::new("client", "1.0"), capabilities);
        client.mode = mode;
        client.log_level = random.pick(&[None, Some(LoggingLevel::Debug), Some(LoggingLevel::Warning)]);
        client.limits.max_calls = random.pick(&[3, 100]);
        if kind == Kind::Http {
            client.cancel_style = random.pick(&[CancelStyle::CloseStream, CancelStyle::Notify]);
        }
        let common = if mode == Mode::Legacy { LEGACY.to_vec() } else { revisions.clone() };
        let detected = random.chance(15).then(|| random.pick(&revisions)).filter(|detected| common.contains(detected));
        let is_enveloped = mode == Mode::Modern && revisions.contains(&Revision::LATEST) && random.chance(20);
        trace.note(|| format!("{kind:?} {mode:?} {revisions:?} detected {detected:?} {limits:?}"));
        let now = Time::EPOCH;
        let (client_limit, server) = (client.limits.max_calls, Arc::new(server));
        Self {
            random,
            trace,
            now,
            client: client::Connection::new(Arc::new(client)),
            server: if is_enveloped {
                server::Connection::modern_request(server)
            } else {
                server::Connection::long_lived(server)
            },
            link: Link::new(kind),
            model: Model::new(limits),
            responders: BTreeMap::new(),
            inbound: Vec::new(),
            answered_at: None,
            detected: detected.map(DetectedRevision::new),
            revision: None,
            has_back_channel: !is_enveloped,
            client_limit,
            tags: 0,
            client_over: false,
            shakes_hands: false,
            server_over: false,
            duplicates: if seed.is_multiple_of(3) { 5 } else { 0 },
        }
    }

    pub(crate) fn run(mut self) {
        self.client.start(self.now, self.detected);
        let _ = self.drain_client(&Why::Nothing);
        let steps = 20 + self.random.below(180);
        for _ in 0..steps {
            self.act();
        }
        if self.random.chance(80) {
            self.settle();
        }
        self.finish();
    }

    /// Lets everything that is under way come to its end.
    fn settle(&mut self) {
        let streams: Vec<RequestKey> = self.model.by_key.keys().copied().collect();
        for key in streams {
            // Also those of requests that ended: nothing may have been kept for them.
            self.model.blocked.remove(&Some(key));
            self.server.unblock(Route::Related(key));
            self.drain_server(&[], None, true, &Why::Nothing);
        }
        for round in 0.. {
            assert!(round < 2000, "it never ends");
            while let Some(stream) = self.model.blocked.pop_first() {
                self.server.unblock(stream.map_or(Route::Standalone, Route::Related));
                self.drain_server(&[], None, true, &Why::Nothing);
            }
            if !self.link.is_empty() {
                self.deliver_up();
                self.deliver_down();
            } else if self.model.count(State::Running) > 0 {
                self.answer();
            } else if self.inbound.iter().any(|inbound| inbound.open) {
                self.answer_server();
            } else if self.client.poll_timeout().is_some() || self.server.poll_timeout().is_some() {
                self.pass(Duration::from_secs(300), true);
            } else {
                break;
            }
        }
        assert!(!self.model.served.iter().any(|served| matches!(served.state, State::Waiting | State::Answered)));
    }

    /// Ends the connection from a side, or from both, and looks for what is left.
    fn finish(&mut self) {
        match self.random.below(3) {
            0 => {
                self.note("the client closes");
                self.client.close();
            }
            1 => {
                self.note("the server closes");
                for index in 0..self.model.served.len() {
                    if self.model.served[index].state == State::Listening {
                        self.model.served[index].state = State::Answered;
                    }
                    self.model.cancel(index);
                }
                self.server.close();
                self.server_over = true;
                self.drain_server(&[], None, true, &Why::Gone);
                while !self.client_over && self.deliver_down() {}
            }
            _ => self.note("the link breaks"),
        }
        self.client.handle_disconnect();
        let _ = self.drain_client(&Why::Gone);
        for index in 0..self.model.served.len() {
            self.model.cancel(index);
        }
        self.server.handle_disconnect();
        self.server_over = true;
        self.drain_server(&[], None, true, &Why::Gone);
        for (_, responder) in std::mem::take(&mut self.responders) {
            let delivery = self.server.respond_raw(responder, &RawObject::empty());
            assert_eq!(delivery, server::Delivery::NotSent, "no client is connected");
        }
        self.server.publish(&Change::Tools);
        self.server.handle_bytes(self.now, br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, None);
        self.client.handle_bytes(self.now, br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        assert!(self.client.is_idle() && self.client.poll_timeout().is_none(), "{:?}", self.client);
        assert!(self.server.is_idle() && self.server.poll_timeout().is_none(), "{:?}", self.server);
        for (call, state) in self.model.calls.iter().chain(&self.model.asked) {
            assert!(!state.open, "{call:?} never ended");
        }
    }

    pub(crate) fn note(&self, text: &str) {
        self.trace.note(|| text.to_owned());
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, duration: Duration, is_told: bool) {
        self.trace.note(|| format!("{duration:?} pass"));
        self.now += duration;
        if is_told {
            self.client.handle_timeout(self.now);
            let _ = self.drain_client(&Why::Time);
            self.server.handle_timeout(self.now);
            self.drain_server(&[], None, true, &Why::Time);
            let calls = self.model.calls.values().map(|call| (call, self.due(call)));
            for (call, due) in calls.chain(self.model.asked.values().map(|call| (call, call.due()))) {
                assert!(!call.open || due.is_none_or(|due| due > self.now), "{} is overdue", call.tag);
            }
        }
    }

    /// When a call of the client is due: while the server waits for an answer, its silence does not count.
    fn due(&self, call: &Call) -> Option<Time> {
        let is_asked = self.inbound.iter().any(|inbound| inbound.open);
        let answered = self.answered_at.and_then(|at| Some(at + call.idle?));
        let idle_at = call.idle_at.filter(|_| !is_asked).map(|at| at.max(answered.unwrap_or(at)));
        [idle_at, call.limit_at].into_iter().flatten().min()
    }

    /// Brings a message to the server.
    pub(crate) fn deliver_up(&mut self) -> bool {
        let (bytes, stream, read) = match self.link.next_up(&mut self.random) {
            None => return false,
            Some(Up::Abort { stream }) => {
                let index = self.model.served.iter().position(|served| served.stream == stream);
                index.into_iter().for_each(|index| self.break_stream(index));
                return true;
            }
            Some(Up::Message { bytes, stream, read }) => (bytes, stream, read),
        };
        self.trace.note(|| format!("-> {}", String::from_utf8_lossy(&bytes)));
        let message: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let is_message = message["jsonrpc"] == "2.0" && (message["method"].is_string() || message["method"].is_null());
        let (mut arrived, mut invalid, mut answers) = (Vec::new(), None, None);
        if let Some(messages) = message.as_array() {
            arrived.extend(messages.iter().map(|message| self.model.arrive(message, stream, read, true)));
        } else if is_message && message["method"].is_string() && !message["id"].is_null() {
            let id = &message["id"];
            if self.model.served.iter().any(|served| served.state == State::Answered && served.id == *id) {
                // The answer is held back, so another one to the same id may overtake it.
                self.model.calls.values_mut().filter(|call| call.id == *id).for_each(|call| call.usurped = true);
            }
            arrived.push(self.model.arrive(&message, stream, read, false));
        } else if !is_message || message["method"].is_null() && message["id"].is_null() {
            invalid = Some(message["id"].clone());
        } else if message["method"] == "notifications/cancelled" {
            let id = &message["params"]["requestId"];
            let named = self.model.served.iter().position(|served| served.is_open() && served.id == *id);
            named.into_iter().for_each(|index| self.model.cancel(index));
        } else if message["method"] == "notifications/progress" {
            let token = &message["params"]["progressToken"];
            let call = self.model.asked.values_mut().find(|call| call.open && call.id == *token);
            if let Some((call, idle)) = call.and_then(|call| call.idle.map(|idle| (call, idle))) {
                call.idle_at = Some(self.now + idle);
            }
        } else if message["method"].is_null() {
            answers =
                self.model.asked.iter().find(|(_, call)| call.open && call.id == message["id"]).map(|(id, _)| *id);
        }
        let key = self.server.handle_bytes(self.now, &bytes, None);
        if message.is_array() {
            self.model.batches.extend(key);
        }
        self.drain_server(&arrived, invalid.as_ref(), read, &Why::Message(message));
        if let Some(call) = answers {
            assert!(!self.model.asked[&call].open, "{call:?} was answered and is still open");
        }
        true
    }

    /// The stream of a request is gone, and with it what is on it, unless a legacy client comes back for it.
    pub(crate) fn break_stream(&mut self, index: usize) {
        let served = &mut self.model.served[index];
        self.trace.note(|| format!("the stream of {} breaks", served.id));
        served.stream_broken = true;
        let Some(key) = served.key else { return };
        if served.modern {
            self.link.break_down(key);
            self.model.cancel(index);
        }
        self.model.blocked.remove(&Some(key));
        self.server.handle_stream_closed(key);
        self.drain_server(&[], None, true, &Why::Nothing);
    }

    /// Brings a message to the client.
    pub(crate) fn deliver_down(&mut self) -> bool {
        let Some(bytes) = self.link.next_down(&mut self.random) else { return false };
        self.trace.note(|| format!("<- {}", String::from_utf8_lossy(&bytes)));
        let message: Value = serde_json::from_slice(&bytes).expect("a server that writes JSON");
        let (expected, answers) = self.expected(&message);
        self.client.handle_bytes(self.now, &bytes);
        let answered = self.model.calls.iter().find(|(_, call)| call.open && call.id == message["id"]);
        let answered = answered.map(|(call, _)| *call).filter(|_| message["method"].is_null() && !self.client_over);
        let (heard, said) = self.drain_client(&Why::Message(message));
        assert_eq!(heard, expected, "what the client hears");
        assert_eq!(said, answers, "what the client answers");
        if let Some(call) = answered {
            assert!(!self.model.calls[&call].open, "{call:?} was answered and is still open");
        }
        true
    }

    /// What the client must make of a message: what its application hears, and which ids it answers by itself.
    fn expected(&mut self, message: &Value) -> (Vec<Heard>, Vec<Value>) {
        let Some(method) = message["method"].as_str().filter(|_| !self.client_over) else { return Default::default() };
        let is_modern = self.revision.is_some_and(|revision| revision.era() == Era::Modern);
        let params = &message["params"];
        let of = |id: &Value, calls: &BTreeMap<CallId, Call>| {
            calls.iter().find(|(_, call)| call.open && call.id == *id).map(|(id, _)| *id)
        };
        let subscription = of(&params["_meta"][SUBSCRIPTION], &self.model.calls);
        let subscription = subscription.filter(|call| self.model.calls[call].filter.is_some());
        let heard = match method {
            "notifications/progress" => of(&params["progressToken"], &self.model.calls).map(|call| {
                let open = self.model.calls.get_mut(&call).expect("it was just found");
                let progress = params["progress"].as_f64().expect("a number");
                assert!(progress > open.progress || open.usurped, "progress of {} goes back", open.tag);
                open.progress = progress;
                open.idle_at = open.idle.map(|idle| self.now + idle);
                Heard::Progress(call)
            }),
            "notifications/subscriptions/acknowledged" => subscription.map(|call| {
                self.model.calls.get_mut(&call).expect("it was just found").acknowledged = true;
                Heard::Listening(call)
            }),
            "notifications/cancelled" => {
                let inbound = self.inbound.iter_mut().find(|inbound| inbound.open && inbound.id == params["requestId"]);
                inbound.map(|inbound| {
                    inbound.open = false;
                    self.answered_at = Some(self.now);
                    Heard::RequestCancelled(inbound.id.clone())
                })
            }
            _ if message.get("id").is_some() => {
                let id = message["id"].clone();
                if self.revision.is_none() {
                    let answered = method == "ping" && self.shakes_hands;
                    return (Vec::new(), answered.then_some(id).into_iter().collect());
                }
                if is_modern {
                    return Default::default();
                }
                if method == "ping" || self.inbound.iter().any(|inbound| inbound.open && inbound.id == id) {
                    return (Vec::new(), vec![id]);
                }
                let tag = params["_meta"][TAG].as_u64();
                self.inbound.push(Inbound { id: id.clone(), tag, open: true, responder: None });
                Some(Heard::Request(id))
            }
            _ => change_of(message).and_then(|change| {
                let acknowledged = subscription.filter(|call| self.model.calls[call].acknowledged);
                (!is_modern || acknowledged.is_some()).then_some(Heard::Changed(acknowledged, change))
            }),
        };
        (heard.into_iter().collect(), Vec::new())
    }

    /// Takes what the server has to say; `arrived` came in this step, for a client who reads the answers or does not.
    pub(crate) fn drain_server(&mut self, arrived: &[usize], invalid: Option<&Value>, read: bool, why: &Why) {
        while let Some(event) = self.server.poll_event() {
            self.trace.note(|| format!("   server: {event:?}"));
            self.server_event(event, why);
        }
        while let Some(transmit) = self.server.poll_transmit() {
            self.trace.note(|| format!("   server sends {:?}", transmit.route));
            let message: Value = serde_json::from_slice(&transmit.message).expect("JSON");
            self.model.sent(transmit.route, &message, arrived, invalid);
            if self.link.kind == Kind::Stdio || self.is_read(transmit.route, read && !message.is_array()) {
                self.link.send_down(transmit.route, transmit.message.into_bytes());
            }
        }
        self.model.check(self.server_over);
        let dues = self.model.asked.values().filter(|call| call.open).filter_map(Call::due);
        assert_eq!(self.server.poll_timeout().map(|deadline| deadline.at), dues.min(), "the server's next deadline");
        let late = |served: &&crate::model::TrackedRequest| served.stream_broken && served.is_open() && served.modern;
        let late = self.model.served.iter().filter(late).find_map(|served| served.key);
        if let Some(index) = late.and_then(|key| self.model.by_key.get(&key)).copied() {
            // The stream broke while the request waited, and only now there is a handle to say so.
            self.break_stream(index);
        }
    }

    fn is_read(&self, route: Route, read: bool) -> bool {
        let (Route::Reply(key) | Route::Related(key) | Route::Listen(key)) = route else { return true };
        self.model.by_key.get(&key).map_or(read, |index| {
            let served = &self.model.served[*index];
            served.read && !(served.stream_broken && served.modern)
        })
    }

    fn server_event(&mut self, event: server::Event, why: &Why) {
        let id = |id| serde_json::to_value(id).expect("an id");
        let key = |key: RequestKey, model: &mut Model| model.heard_cancelled(key);
        match event {
            server::Event::Request { scope, responder, params } => {
                let index = self.model.open(scope.key(), &id(scope.id()), None);
                let served = &self.model.served[index];
                assert_eq!(scope.era() == Era::Modern, served.modern, "the era of {}", served.id);
                let params: Value = serde_json::from_str(params.as_str()).expect("JSON");
                assert_eq!(params["_meta"][TAG].as_u64(), served.tag, "the parameters of another");
                self.responders.insert(index, responder);
            }
            server::Event::Listening { scope, filter } => {
                let _ = self.model.open(scope.key(), &id(scope.id()), Some(filter));
            }
            server::Event::Cancelled { request, .. } => key(request, &mut self.model),
            server::Event::ListeningEnded(request) => key(request, &mut self.model),
            server::Event::Initialized => self.model.initialized = true,
            server::Event::LogLevel(level) => self.model.log_level = level,
            server::Event::Subscription { uri, active } => {
                let _ = if active { self.model.subscribed.insert(uri) } else { self.model.subscribed.remove(&uri) };
            }
            server::Event::Dropped { route, .. } => self.model.dropped(route),
            server::Event::CallFinished { call, outcome } => {
                let outcome = outcome.map(|result| serde_json::from_str(result.as_str()).expect("JSON"));
                let open = self.model.asked.get_mut(&call).expect("a call that was made");
                open.end(call, outcome, why, self.now);
            }
            server::Event::CallProgress { call, .. } => {
                assert!(self.model.asked[&call].open, "progress of a call that ended");
            }
            server::Event::Closed => assert!(self.server_over, "nobody closed it"),
            server::Event::NotExpressible { .. } => panic!("an answer that cannot be sent"),
            server::Event::Notification { .. }
            | server::Event::PeerMisbehaved(_)
            | server::Event::Stripped { .. }
            | _ => {}
        }
    }

    /// Takes what the client has to say; returns what its application heard, and which ids it answered.
    pub(crate) fn drain_client(&mut self, why: &Why) -> (Vec<Heard>, Vec<Value>) {
        let (mut heard, mut said) = (Vec::new(), Vec::new());
        while let Some(transmit) = self.client.poll_transmit() {
            match transmit {
                client::Transmit::Abort { call } => self.link.abort(call),
                client::Transmit::Send { call, message, .. } => {
                    let value: Value = serde_json::from_slice(&message).expect("JSON");
                    if let Some(open) = call.and_then(|call| self.model.calls.get_mut(&call)) {
                        open.id = value["id"].clone();
                    }
                    self.shakes_hands |= value["method"] == "initialize";
                    if value["method"].is_null() {
                        said.push(value["id"].clone());
                    }
                    let ready = self.revision.is_some();
                    if ready && self.random.chance(self.duplicates) {
                        self.trace.note(|| format!("{} is sent twice", value["id"]));
                        let open = self.model.calls.values_mut().find(|call| call.id == value["id"]);
                        open.into_iter().for_each(|open| open.disturbed = true);
                        self.link.send_up(None, message.to_vec(), false);
                    }
                    self.link.send_up(call, message.into_bytes(), true);
                }
            }
        }
        while let Some(event) = self.client.poll_event() {
            self.trace.note(|| format!("   client: {event:?}"));
            heard.extend(self.client_event(event, why));
        }
        if self.revision.is_some() && !self.client_over {
            let due = self.model.calls.values().filter(|call| call.open).filter_map(|call| self.due(call)).min();
            let next = self.client.poll_timeout().map(|deadline| deadline.at);
            // Where the server asked something, the client may look too early, but not too late.
            let was_asked = self.answered_at.is_some() || self.inbound.iter().any(|inbound| inbound.open);
            let is_early = was_asked && due.is_none_or(|due| next.is_some_and(|next| next <= due));
            assert!(is_early || next == due, "the client's next deadline is {next:?}, not {due:?}");
        }
        (heard, said)
    }

    fn client_event(&mut self, event: client::Event, why: &Why) -> Option<Heard> {
        let id = |id| serde_json::to_value(id).expect("an id");
        match event {
            client::Event::Ready { revision, .. } => self.revision = Some(revision),
            client::Event::CallFinished { call, outcome } => {
                let outcome = outcome.map(|outcome| serde_json::from_str(outcome.result.as_str()).expect("JSON"));
                if outcome == Err(mcp_kernel::CallError::TimedOut) {
                    let due = self.due(&self.model.calls[&call]);
                    assert!(due.is_some_and(|due| due <= self.now), "{call:?} had time left");
                }
                let open = self.model.calls.get_mut(&call).expect("a call that was made");
                open.end(call, outcome, why, self.now);
            }
            client::Event::CallProgress { call, .. } => return Some(Heard::Progress(call)),
            client::Event::Listening { call, .. } => return Some(Heard::Listening(call)),
            client::Event::Changed { call, change } => return Some(Heard::Changed(call, change)),
            client::Event::Request { params, responder, .. } => {
                let params: Value = serde_json::from_str(params.as_str()).expect("JSON");
                let tag = params["_meta"][TAG].as_u64();
                let waits = |inbound: &&mut Inbound| inbound.responder.is_none() && inbound.open && inbound.tag == tag;
                let inbound = self.inbound.iter_mut().find(waits).expect("a request that came");
                inbound.responder = Some(responder);
                return Some(Heard::Request(inbound.id.clone()));
            }
            client::Event::RequestCancelled { id: cancelled } => return Some(Heard::RequestCancelled(id(&cancelled))),
            client::Event::Closed => {
                assert!(!self.client_over, "closed twice");
                self.client_over = true;
                self.inbound.iter_mut().for_each(|inbound| inbound.open = false);
            }
            client::Event::RestartNeeded { .. }
            | client::Event::Failed(_)
            | client::Event::Log { .. }
            | client::Event::Notification { .. }
            | client::Event::PeerMisbehaved(_)
            | _ => {}
        }
        None
    }
}
