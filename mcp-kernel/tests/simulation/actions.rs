//! What the applications, the transport and strangers may do at any moment.

use std::time::Duration;

use mcp_kernel::server::{Delivery, Route};
use mcp_kernel::{CallId, CallOptions, Change, CommandError};
use mcp_types::{
    CallToolResult, Era, ErrorCode, ErrorObject, LoggingLevel, Method, ProgressNotificationParams, ProgressToken,
    RawJson, RawObject, SubscriptionFilter,
};
use serde_json::{Value, json};

use crate::link::Kind;
use crate::model::{Call, SUBSCRIPTION, State, TAG, Why};
use crate::world::World;

impl World {
    /// Does one thing.
    pub(crate) fn act(&mut self) {
        match self.random.below(100) {
            0..=21 => drop(self.deliver_up()),
            22..=41 => drop(self.deliver_down()),
            42..=52 => self.call(),
            53..=56 => self.listen(),
            57..=60 => self.cancel(),
            61..=70 => self.answer(),
            71..=74 => self.progress(),
            75..=76 => self.log(),
            77..=80 => self.publish(),
            81 => self.end_listening(),
            82..=84 => self.ask(),
            85 => self.take_back(),
            86..=88 => self.answer_server(),
            89 => self.report_to_server(),
            90..=91 => self.stranger_to_server(),
            92..=93 => self.stranger_to_client(),
            94..=96 => self.block_or_unblock(),
            97 => self.fail_stream(),
            _ => {
                let duration = self.random.pick(&[1, 900, 4_000, 11_000, 45_000]);
                let is_told = self.random.chance(80);
                self.pass(Duration::from_millis(duration), is_told);
            }
        }
    }

    fn tag(&mut self) -> u64 {
        self.tags += 1;
        self.tags
    }

    fn options(&mut self) -> CallOptions {
        let seconds = |seconds: Option<u64>| seconds.map(Duration::from_secs);
        let idle = self.random.pick(&[None, Some(5), Some(60)]);
        CallOptions::default()
            .idle_timeout(seconds(idle))
            .total_timeout(seconds(self.random.pick(&[Some(30), Some(600)])))
    }

    fn opened(&self, tag: u64, method: &str, options: CallOptions, filter: Option<SubscriptionFilter>) -> Call {
        let after = |duration: Option<Duration>| duration.map(|duration| self.now + duration);
        Call {
            tag,
            method: method.to_owned(),
            id: Value::Null,
            open: true,
            idle: options.idle_timeout,
            idle_at: after(options.idle_timeout),
            limit_at: after(options.total_timeout),
            disturbed: false,
            usurped: false,
            progress: f64::MIN,
            filter,
            acknowledged: false,
            related: None,
            abandoned: false,
        }
    }

    /// Books a call of the client, or the reason why there is none.
    fn book(&mut self, outcome: Result<CallId, CommandError>, call: Call) {
        self.trace.note(|| format!("the client calls {} as {}: {outcome:?}", call.method, call.tag));
        match outcome {
            Ok(id) => drop(self.model.calls.insert(id, call)),
            Err(CommandError::NotReady) => assert!(self.revision.is_none(), "it is ready"),
            Err(CommandError::Closed) => assert!(self.client_over, "it is not closed"),
            Err(CommandError::TooManyCalls { .. }) => {
                let open = self.model.calls.values().filter(|call| call.open).count();
                assert_eq!(open, self.client_limit, "there is room");
            }
            Err(CommandError::NotInRevision { method, .. }) => {
                let legacy = ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
                let is_modern = self.revision.is_some_and(|revision| revision.era() == Era::Modern);
                assert_eq!(legacy.contains(&method.as_str()), is_modern, "{method} in {:?}", self.revision);
            }
            Err(other) => panic!("the client may not call: {other}"),
        }
        let _ = self.drain_client(&Why::Nothing);
    }

    fn call(&mut self) {
        let methods = [
            ("tools/call", json!({ "name": "t" })),
            ("tools/call", json!({ "name": "t", "arguments": { "a": [1] } })),
            ("tools/list", json!({})),
            ("prompts/get", json!({ "name": "p" })),
            ("resources/read", json!({ "uri": "a:1" })),
            ("ping", json!({})),
            ("logging/setLevel", json!({ "level": "warning" })),
            ("resources/subscribe", json!({ "uri": "a:1" })),
            ("resources/unsubscribe", json!({ "uri": "a:1" })),
            ("x/custom", json!({})),
        ];
        let (method, mut params) = self.random.pick(&methods);
        let (tag, options) = (self.tag(), self.options());
        params["_meta"] = json!({ TAG: tag });
        let call = self.opened(tag, method, options, None);
        let params = RawObject::new(&params).expect("an object");
        let outcome = self.client.call(self.now, &Method::from(method), &params, options);
        self.book(outcome, call);
    }

    fn listen(&mut self) {
        let tag = self.tag();
        let filter = SubscriptionFilter::default()
            .tools_list_changed(self.random.chance(50))
            .prompts_list_changed(self.random.chance(50))
            .resource_subscriptions(vec![self.random.pick(&["a:1", "a:2"]).to_owned()]);
        let options = CallOptions::default().idle_timeout(None).total_timeout(None);
        let call = self.opened(tag, "subscriptions/listen", options, Some(filter.clone()));
        let outcome = self.client.listen(self.now, filter, None);
        self.book(outcome, call);
    }

    /// Gives up any call, also one that ended.
    fn cancel(&mut self) {
        let calls: Vec<CallId> = self.model.calls.keys().copied().collect();
        if calls.is_empty() {
            return;
        }
        let call = self.random.pick(&calls);
        let was_open = self.model.calls[&call].open;
        let outcome = self.client.cancel(call);
        self.trace.note(|| format!("the client cancels {}: {outcome:?}", self.model.calls[&call].tag));
        assert_eq!(outcome.is_ok(), was_open, "{call:?}");
        let _ = self.drain_client(&Why::Cancelled(call));
        assert!(!self.model.calls[&call].open, "it was cancelled");
    }

    /// A handler is done, whether anybody waits or not.
    pub(crate) fn answer(&mut self) {
        let indices: Vec<usize> = self.responders.keys().copied().collect();
        if indices.is_empty() {
            return;
        }
        let index = self.random.pick(&indices);
        let (id, tag) = (self.model.served[index].id.clone(), self.model.served[index].tag.unwrap_or_default());
        let was_open = self.model.served[index].state == State::Running;
        self.trace.note(|| format!("the handler of {id} answers {tag}"));
        let responder = self.responders.remove(&index).expect("it was just found");
        if was_open {
            self.model.served[index].state = State::Answered;
        }
        let delivery = match self.random.below(4) {
            0 => {
                let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, format!("tag {tag}"));
                self.server.respond::<CallToolResult>(responder, Err(error))
            }
            1 => self.server.respond(responder, Ok(CallToolResult::text(tag.to_string()))),
            _ => self.server.respond_raw(responder, &RawObject::new(&json!({ "tag": tag })).expect("an object")),
        };
        assert_eq!(delivery == Delivery::Queued, was_open, "the answer to {id}");
        self.drain_server(&[], None, true, &Why::Nothing);
    }

    /// Any request that the application ever heard of.
    fn any_served(&mut self) -> Option<usize> {
        let known: Vec<usize> = self.model.by_key.values().copied().collect();
        (!known.is_empty()).then(|| self.random.pick(&known))
    }

    fn progress(&mut self) {
        let Some(index) = self.any_served() else { return };
        let served = &self.model.served[index];
        let (Some(key), value) = (served.key, i64::try_from(self.random.below(8)).unwrap_or_default()) else { return };
        let allowed = served.state == State::Running && !served.token.is_null();
        let delivery = self.server.progress(key, value, None, None);
        self.trace.note(|| format!("progress {value} of {}: {delivery:?}", self.model.served[index].id));
        assert!(delivery == Delivery::NotSent || allowed, "progress of a request that wants none");
        self.drain_server(&[], None, true, &Why::Nothing);
    }

    fn log(&mut self) {
        let Some(index) = self.any_served() else { return };
        let served = &self.model.served[index];
        let level = self.random.pick(&[LoggingLevel::Debug, LoggingLevel::Info, LoggingLevel::Error]);
        let threshold = match (served.modern, served.state) {
            (true, State::Running) => serde_json::from_value(served.log_level.clone()).ok(),
            (false, State::Running) => Some(self.model.log_level),
            _ => None,
        };
        let wanted = threshold.is_some_and(|threshold: LoggingLevel| level >= threshold);
        let delivery = self.server.log(served.key, level, RawJson::from(json!("hi")), None);
        self.trace.note(|| format!("a log message about {}: {delivery:?}", self.model.served[index].id));
        assert_eq!(delivery == Delivery::Queued, wanted, "{level:?} against {threshold:?}");
        self.drain_server(&[], None, true, &Why::Nothing);
    }

    fn publish(&mut self) {
        let resource = |uri: &str| Change::Resource(uri.to_owned());
        let changes = [Change::Tools, Change::Prompts, Change::Resources, resource("a:1"), resource("a:2")];
        let change = self.random.pick(&changes);
        self.trace.note(|| format!("{change:?} changed"));
        self.model.publish(&change, self.has_back_channel);
        self.server.publish(&change);
        self.drain_server(&[], None, true, &Why::Nothing);
    }

    fn end_listening(&mut self) {
        let Some(index) = self.any_served() else { return };
        let served = &mut self.model.served[index];
        let (key, was_open) = (served.key.expect("it is known"), served.state == State::Listening);
        if was_open {
            served.state = State::Answered;
        }
        self.trace.note(|| format!("the server ends {}", served.id));
        assert_eq!(self.server.end_listening(key).is_ok(), was_open, "a subscription that is open");
        self.drain_server(&[], None, true, &Why::Nothing);
    }

    /// The server asks the client something.
    fn ask(&mut self) {
        let (tag, options, related) = (self.tag(), self.options(), self.any_served());
        let related = related.filter(|_| self.random.chance(60)).map(|index| &self.model.served[index]);
        let may_ask = related.is_none_or(|served| served.state == State::Running && !served.modern);
        let key = related.and_then(|served| served.key);
        let method = self.random.pick(&["roots/list", "ping", "sampling/createMessage", "x/custom"]);
        let params = RawObject::new(&json!({ "_meta": { TAG: tag } })).expect("an object");
        let outcome = self.server.call(self.now, key, Method::from(method), &params, options);
        self.trace.note(|| format!("the server asks {method} as {tag}: {outcome:?}"));
        if let Ok(call) = outcome {
            assert!(may_ask, "there is no way to ask");
            let mut asked = self.opened(tag, method, options, None);
            asked.related = key;
            self.model.asked.insert(call, asked);
        }
        self.drain_server(&[], None, true, &Why::Nothing);
    }

    fn take_back(&mut self) {
        let calls: Vec<CallId> = self.model.asked.keys().copied().collect();
        if calls.is_empty() {
            return;
        }
        let call = self.random.pick(&calls);
        let was_open = self.model.asked[&call].open;
        self.trace.note(|| format!("the server takes {} back", self.model.asked[&call].tag));
        assert_eq!(self.server.cancel(call).is_ok(), was_open, "{call:?}");
        self.drain_server(&[], None, true, &Why::Cancelled(call));
    }

    /// The client's application answers a request, whether the server waits or not.
    pub(crate) fn answer_server(&mut self) {
        let indices: Vec<usize> = self
            .inbound
            .iter()
            .enumerate()
            .filter(|(_, inbound)| inbound.responder.is_some())
            .map(|(i, _)| i)
            .collect();
        if indices.is_empty() {
            return;
        }
        let index = self.random.pick(&indices);
        let inbound = &mut self.inbound[index];
        let (id, tag, was_open) = (inbound.id.clone(), inbound.tag, std::mem::take(&mut inbound.open));
        let responder = inbound.responder.take().expect("it was just found");
        self.trace.note(|| format!("the client answers {id} with {tag:?}"));
        let result = RawObject::new(&json!({ "tag": tag })).expect("an object");
        let refused = ErrorObject::new(ErrorCode::INTERNAL_ERROR, format!("tag {}", tag.unwrap_or_default()));
        let outcome = if self.random.chance(70) { Ok(&result) } else { Err(refused) };
        assert_eq!(self.client.respond(self.now, responder, outcome), was_open, "the answer to {id}");
        if was_open {
            self.answered_at = Some(self.now);
        }
        let (_, said) = self.drain_client(&Why::Nothing);
        assert_eq!(said, if was_open { vec![id] } else { Vec::new() }, "what the client answers");
    }

    /// The client's application reports progress of a request of the server.
    fn report_to_server(&mut self) {
        let Some(token) = self.inbound.iter().rev().find_map(|inbound| inbound.id.as_i64()) else { return };
        let progress = ProgressNotificationParams::new(ProgressToken::from(token), 1_i64);
        let _ = self.client.notify(&Method::NOTIFICATIONS_PROGRESS, &progress);
        let _ = self.drain_client(&Why::Nothing);
    }

    /// Somebody else writes to the server.
    fn stranger_to_server(&mut self) {
        let sent: Vec<Value> = self.model.calls.values().map(|call| call.id.clone()).filter(Value::is_i64).collect();
        let own = json!(format!("h{}", self.random.below(4)));
        let is_reused = !sent.is_empty() && self.random.chance(50);
        let id = if is_reused { self.random.pick(&sent) } else { own };
        let (tag, other) = (self.tag(), self.tag());
        let legacy = json!({ TAG: tag, "progressToken": format!("t{tag}") });
        let modern = json!({
            TAG: tag,
            crate::model::VERSION: "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let meta = self.random.pick(&[legacy, modern]);
        let request = |id: &Value, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let call = request(&id, "tools/call", json!({ "name": "t", "_meta": meta }));
        let message = match self.random.below(12) {
            0..=4 => call,
            5 => request(
                &id,
                "subscriptions/listen",
                json!({ "notifications": { "toolsListChanged": true }, "_meta": meta }),
            ),
            6 => json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
            7 => json!({ "jsonrpc": "2.0", "id": format!("n{tag}"), "result": {} }),
            8 => json!({ "jsonrpc": "2.0", "id": id, "method": 5 }),
            9 => json!([
                request(&json!(format!("b{tag}")), "tools/call", json!({ "name": "t", "_meta": { TAG: tag } })),
                request(&json!("b0"), "tools/call", json!({ "name": "t", "_meta": { TAG: other } })),
                request(&json!(format!("p{tag}")), "ping", json!({}))
            ]),
            10 => json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            _ => Value::Null,
        };
        let is_cancellation = message["method"] == "notifications/cancelled";
        for call in self.model.calls.values_mut().filter(|call| call.id == id) {
            call.disturbed = true;
            call.usurped |= is_cancellation || self.link.kind == Kind::Stdio && message["method"] == 5;
        }
        let bytes = if message.is_null() { b"{\"jsonrpc\":\xff".to_vec() } else { message.to_string().into_bytes() };
        self.trace.note(|| format!("a stranger writes {}", String::from_utf8_lossy(&bytes)));
        self.link.send_up(None, bytes, false);
    }

    /// Somebody else writes to the client: ids that are used again after a cancellation, changes that nobody awaits.
    fn stranger_to_client(&mut self) {
        let id = format!("s{}", self.random.below(2));
        let calls: Vec<Value> = self.model.calls.values().rev().take(3).map(|call| call.id.clone()).collect();
        if !calls.is_empty() && self.random.chance(30) {
            let (id, method) = (self.random.pick(&calls), "notifications/tools/list_changed");
            return self
                .forge(json!({ "jsonrpc": "2.0", "method": method, "params": { "_meta": { SUBSCRIPTION: id } } }));
        }
        for _ in 0..self.random.pick(&[1, 2]) {
            let tag = self.tag();
            let params = json!({ "_meta": { TAG: tag } });
            self.forge(json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list", "params": params }));
            if self.random.chance(70) {
                let params = json!({ "requestId": id });
                self.forge(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
            }
        }
    }

    fn forge(&mut self, message: Value) {
        self.trace.note(|| format!("a stranger answers {message}"));
        self.link.send_down(Route::Standalone, message.to_string().into_bytes());
    }

    fn block_or_unblock(&mut self) {
        let stream = self.any_served().filter(|_| self.random.chance(80));
        if stream.is_some_and(|index| self.model.served[index].batch) {
            // The elements of a batch share the stream of the batch, which has a handle of its own.
            return;
        }
        let key = stream.and_then(|index| self.model.served[index].key);
        let route = key.map_or(Route::Standalone, Route::Related);
        self.trace.note(|| format!("{route:?} is blocked or unblocked"));
        let is_over = stream.is_some_and(|index| !self.model.served[index].is_open());
        if self.model.blocked.remove(&key) || is_over {
            self.server.unblock(route);
        } else {
            self.model.blocked.insert(key);
            self.server.block(route);
        }
        self.drain_server(&[], None, true, &Why::Nothing);
    }

    /// A stream breaks; the client hears of it, or waits in vain.
    fn fail_stream(&mut self) {
        let Some(index) = self.any_served().filter(|_| self.link.kind == Kind::Http) else { return };
        self.break_stream(index);
        let served = &self.model.served[index];
        let call = self.model.calls.iter().find(|(_, call)| call.open && call.id == served.id && served.read);
        if let Some(call) = call.map(|(call, _)| *call).filter(|_| served.modern && self.random.chance(50)) {
            self.client.handle_status(self.now, call, 502, b"");
            let _ = self.drain_client(&Why::Status(call));
            assert!(!self.model.calls[&call].open, "it failed");
        }
    }
}
