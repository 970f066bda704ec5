//! Any answers and any states, against handlers with all kinds of questions.

mod answers;
mod handlers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use mcp_kernel::server::Route;
use mcp_kernel::{RequestKey, Time};
use mcp_server::{Caller, Connection, Principal};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use answers::is_behind;
use handlers::Watch;

/// Whatever a client answers, and whichever state it brings, each request is answered once; a handler is done only with
/// answers that are valid; a state is good for its own request alone, as it was given out; no step is taken twice on the
/// way from a first request to its result; and nothing is left afterwards.
///
/// The first line may begin with `@`, followed by letters that say who is there: `l` a server with a replay guard; `L` or `O` a
/// client of 2025-11-25 or 2025-06-18 instead of a modern one; `n`, `e` or `s` a client that can be asked nothing, forms
/// alone, or its model alone.
///
/// Each other line is one thing that happens, by its first byte:
///
/// | first byte | what happens |
/// |---|---|
/// | one of `TARGETS` | that request is sent, with a state and answers |
/// | `~` | from now on somebody else sends the requests, or the first one again |
/// | `v` | the handler that changes its mind does so |
/// | `=` | the oldest question to a legacy client is answered |
/// | `!` | the oldest question to a legacy client is refused |
/// | `k` | the newest request of a legacy client is cancelled |
///
/// A request's state is described up to the first space. It is none at all, or `'` with the state itself, or one that was
/// given out, `.` being the newest one for the request and a digit counting back from the newest one of all, followed by
/// what is done to it (see `changed`). The rest are the answers: JSON, or `*` for right ones to everything that the
/// handler may ask, `*d`, `*c` and `*w` for those that decline, cancel, or are wrong.
///
/// # Panics
///
/// Panics if one of these promises does not hold.
pub fn rounds(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n').take(MOST).peekable();
    let start = lines.next_if(|line| line.first() == Some(&b'@')).unwrap_or_default();
    let mut driver = Driver::new(start);
    for line in lines {
        driver.happen(line);
    }
    driver.finish();
}

/// How many lines are looked at.
const MOST: usize = 64;

/// How often a connection may want to be polled for one line.
const MOST_POLLS: usize = 1000;

/// Whether a connection wants to be polled again.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A request that can be sent: its letter, its method, its parameters, and what its handler asks, by key.
struct Target(u8, &'static str, &'static str, &'static [&'static str]);

/// Everything that can be requested.
const TARGETS: [Target; 11] = [
    Target(b'f', "tools/call", r#""name":"form""#, &["form"]),
    Target(b'F', "tools/call", r#""name":"form","arguments":{}"#, &["form"]),
    Target(b'u', "tools/call", r#""name":"url""#, &["url"]),
    Target(b's', "tools/call", r#""name":"sample""#, &["text"]),
    Target(b'r', "tools/call", r#""name":"roots""#, &["roots"]),
    Target(b'p', "tools/call", r#""name":"pair""#, &["form", "text", "roots"]),
    Target(b'o', "tools/call", r#""name":"order""#, &["first", "second", "third"]),
    Target(b'x', "tools/call", r#""name":"explicit""#, &["url", "roots"]),
    Target(b'c', "tools/call", r#""name":"change""#, &["form"]),
    Target(b'g', "prompts/get", r#""name":"form""#, &["form"]),
    Target(b'b', "resources/read", r#""uri":"a:b""#, &["form"]),
];

/// What everybody is told whose state is refused.
const REFUSAL: &str = "`requestState`: not valid; send the request again without it";

/// A state that was given out, and how it came about.
struct Given {
    state: String,
    /// The letter of the request, and whether somebody else sent it.
    of: (u8, bool),
    asked: Value,
    /// The answers on the way here, by key.
    sent: Vec<(String, Value)>,
    /// The steps on the way here.
    steps: BTreeSet<&'static str>,
    used: Used,
}

#[derive(Clone, Copy, PartialEq)]
enum Used {
    No,
    Yes,
    /// The handler failed, before or after it looked at the state.
    Perhaps,
}

/// A request of a legacy client that has no answer yet.
struct Open {
    id: u64,
    target: &'static Target,
    key: RequestKey,
    /// The answers to its questions, by method.
    sent: Vec<(String, Value)>,
}

/// A client that knows what its server may do.
struct Driver {
    connection: Connection,
    watch: Watch,
    now: Time,
    is_legacy: bool,
    has_replay_guard: bool,
    capabilities: Value,
    is_other: bool,
    last: u64,
    given: Vec<Given>,
    open: Vec<Open>,
    /// Questions to a legacy client: the request that they belong to, their id and method.
    questions: Vec<(RequestKey, Value, String)>,
    /// How many of them were answered.
    answered: usize,
    /// Steps that were taken for a request of a legacy client.
    steps: BTreeMap<String, BTreeSet<&'static str>>,
}

impl Driver {
    fn new(start: &[u8]) -> Self {
        let has = |letter| start.contains(&letter);
        let capabilities = match start {
            _ if has(b'n') => json!({}),
            _ if has(b'e') => json!({ "elicitation": {} }),
            _ if has(b's') => json!({ "sampling": {} }),
            _ => json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} }),
        };
        let now = Time::EPOCH;
        let watch = Watch::default();
        let mut driver = Self {
            connection: Connection::long_lived(&handlers::server(&watch, has(b'l'))),
            watch,
            now,
            is_legacy: has(b'L') || has(b'O'),
            has_replay_guard: has(b'l'),
            capabilities,
            is_other: false,
            last: 0,
            given: Vec::new(),
            open: Vec::new(),
            questions: Vec::new(),
            answered: 0,
            steps: BTreeMap::new(),
        };
        if driver.is_legacy {
            let version = if has(b'O') { "2025-06-18" } else { "2025-11-25" };
            let client = json!({ "name": "fuzz", "version": "1" });
            let params = json!({ "protocolVersion": version, "capabilities": driver.capabilities.clone(), "clientInfo": client });
            driver.feed(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string());
            driver.feed(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
            assert_eq!(driver.take().len(), 1, "a client that shakes hands is answered");
        }
        driver
    }

    fn feed(&mut self, message: &str) -> Option<RequestKey> {
        let mut caller = Caller::default();
        caller.principal = self.is_other.then(|| Principal::new(None, "somebody else"));
        self.connection.feed(self.now, message.as_bytes(), &caller)
    }

    /// Takes what there is to say, until the connection is woken no more.
    fn take(&mut self) -> Vec<(Route, Value)> {
        let mut messages = Vec::new();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        for _ in 0..MOST_POLLS {
            woken.0.store(false, Ordering::Relaxed);
            let _ = self.connection.poll(&mut Context::from_waker(&waker), self.now);
            let before = messages.len();
            while let Some(transmit) = self.connection.poll_transmit() {
                assert!(!transmit.message.contains(&b'\n'), "a message is one line");
                messages.push((transmit.route, serde_json::from_slice(&transmit.message).expect("a message is JSON")));
            }
            if messages.len() == before && !woken.0.load(Ordering::Relaxed) {
                return messages;
            }
        }
        panic!("the server talks without end");
    }

    fn happen(&mut self, line: &[u8]) {
        let Some((first, rest)) = line.split_first() else { return };
        match first {
            b'~' => self.is_other = !self.is_other,
            b'v' => {
                self.watch.other.fetch_xor(true, Ordering::Relaxed);
            }
            b'=' => self.answer(rest),
            b'!' => self.refuse_from(self.answered),
            b'k' => self.cancel(),
            letter => {
                if let Some(target) = TARGETS.iter().find(|target| target.0 == *letter) {
                    self.request(target, rest);
                }
            }
        }
        if self.is_legacy {
            self.hear();
        }
    }

    fn request(&mut self, target: &'static Target, rest: &[u8]) {
        let (state, responses) = rest.split_at(rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len()));
        let state = self.state(target, state);
        let responses = responses_of(target, responses.trim_ascii_start());
        let mut params = target.2.to_owned();
        if let Some(state) = &state {
            params += &format!(r#","requestState":{}"#, Value::from(state.as_str()));
        }
        if let Some(responses) = &responses {
            params += &format!(r#","inputResponses":{responses}"#);
        }
        if !self.is_legacy {
            let version = "io.modelcontextprotocol/protocolVersion";
            let declared = "io.modelcontextprotocol/clientCapabilities";
            params += &format!(r#","_meta":{{"{version}":"2026-07-28","{declared}":{}}}"#, self.capabilities);
        }
        self.last += 1;
        let id = self.last;
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{}","params":{{{params}}}}}"#, target.1);
        let key = self.feed(&request);
        if self.is_legacy {
            let key = key.expect("a request is known");
            self.open.push(Open { id, target, key, sent: Vec::new() });
            return;
        }
        let replies = self.take();
        let [(_, reply)] = replies.as_slice() else { panic!("a request is answered once: {request} {replies:?}") };
        // What nests too deeply is refused before its id is known.
        assert!(reply["id"] == id || reply["error"]["code"] == -32700, "a request is answered: {request} {reply}");
        assert!(self.connection.is_idle(), "something is left: {:?}", self.connection);
        let responses = responses.as_deref().map_or(Ok(None), serde_json::from_str::<Option<Value>>);
        let responses = responses.ok().map(Option::unwrap_or_default);
        self.judge(target, state.as_deref(), responses, reply);
    }

    /// The state that a line describes.
    fn state(&self, target: &Target, text: &[u8]) -> Option<String> {
        let (first, rest) = text.split_first()?;
        let of = (target.0, self.is_other);
        let index = match first {
            b'\'' => return Some(String::from_utf8_lossy(rest).into_owned()),
            b'.' => self.given.iter().rposition(|given| given.of == of)?,
            b'0'..=b'9' => self.given.len().checked_sub(usize::from(first - b'0') + 1)?,
            _ => return None,
        };
        let older = &self.given[index.saturating_sub(1)].state;
        Some(changed(&self.given[index].state, older, rest))
    }

    /// Whether a modern request was answered as it should be. There are no responses if they are not JSON in JSON.
    fn judge(&mut self, target: &Target, state: Option<&str>, responses: Option<Value>, reply: &Value) {
        let steps: Vec<_> = self.watch.take().into_iter().map(|(_, step)| step).collect();
        assert_ne!(reply["error"]["message"], "the handler failed", "{reply}");
        if target.0 == b'x' {
            return self.judge_explicit(target, &responses.unwrap_or_default(), reply);
        }
        let of = (target.0, self.is_other);
        let parent = state.and_then(|state| self.given.iter().position(|given| given.state == state && given.of == of));
        let used = parent.map_or(Used::No, |index| self.given[index].used);
        let may_be_good = state.is_none() || parent.is_some() && (!self.has_replay_guard || used != Used::Yes);
        let must_be_good = state.is_none() || parent.is_some() && (!self.has_replay_guard || used == Used::No);
        let is_readable = responses.as_ref().is_some_and(is_map_of_objects);
        let code = reply["error"]["code"].as_i64();
        if !may_be_good {
            assert!(matches!(code, Some(-32602 | -32021 | -32700)), "a state is good for nothing else: {reply}");
            assert!(steps.is_empty(), "nothing is done for a state that is refused");
            let is_uniform = reply["error"]["message"] == REFUSAL;
            assert!(is_uniform || !is_readable || code == Some(-32021), "all refusals are the same: {reply}");
            return;
        }
        if must_be_good {
            assert_ne!(reply["error"]["message"], REFUSAL, "a state that was given out is good");
        }
        let (mut sent, mut done, asked) = match parent {
            Some(index) => {
                let given = &mut self.given[index];
                given.used = match code {
                    _ if given.used == Used::Yes => Used::Yes,
                    Some(-32021 | -32602 | -32700) => Used::Perhaps,
                    _ => Used::Yes,
                };
                (given.sent.clone(), given.steps.clone(), Some(given.asked.clone()))
            }
            None => (Vec::new(), BTreeSet::new(), None),
        };
        for step in steps {
            assert!(done.insert(step), "the step {step} is taken twice");
        }
        let responses = responses.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
        sent.extend(responses.clone());
        let result = &reply["result"];
        if result["resultType"] == "input_required" {
            let state = result["requestState"].as_str().expect("a state").to_owned();
            assert!(self.given.iter().all(|given| given.state != state), "each state is a new one");
            self.may_be_asked(target, &result["inputRequests"]);
            for key in responses.keys().filter(|_| target.0 != b'c') {
                let was_asked = asked.as_ref().is_none_or(|asked| asked.get(key).is_some());
                let is_asked = result["inputRequests"].get(key).is_some();
                assert!(!was_asked || !is_asked, "what was answered is not asked again: {key}");
            }
            let asked = result["inputRequests"].clone();
            self.given.push(Given { state, of, asked, sent, steps: done, used: Used::No });
        } else if let Some(report) = report(reply) {
            assert!(is_readable || responses.is_empty(), "answers that are none are refused");
            is_complete(target, &report, |key, reported| {
                sent.iter().any(|(of, it)| of == key && is_behind(key, it, reported))
            });
            if let Some(asked) = asked.filter(|_| target.0 == b'c') {
                assert_eq!(asked["form"]["params"]["message"], report["asked"], "an answer belongs to its question");
            }
        }
    }

    /// A handler that returns its questions has a state of its own, and looks at the answers of one round.
    fn judge_explicit(&self, target: &Target, responses: &Value, reply: &Value) {
        if reply["result"]["resultType"] == "input_required" {
            assert_eq!(reply["result"]["requestState"], "explicit", "{reply}");
            self.may_be_asked(target, &reply["result"]["inputRequests"]);
        } else if let Some(report) = report(reply) {
            is_complete(target, &report, |key, reported| is_behind(key, &responses[key], reported));
        }
    }

    /// Only what the handler asks is asked, and only what the client declared.
    fn may_be_asked(&self, target: &Target, questions: &Value) {
        let questions = questions.as_object().expect("questions");
        assert!(!questions.is_empty(), "a round that ends has questions");
        for (key, question) in questions {
            assert!(target.3.contains(&key.as_str()), "nobody asks for {key}");
            assert_eq!(question["method"], answers::method(key), "{question}");
            assert!(self.is_declared(&question["method"], &question["params"]["mode"]), "not declared: {question}");
        }
    }

    fn is_declared(&self, method: &Value, mode: &Value) -> bool {
        match method.as_str() {
            Some("sampling/createMessage") => self.capabilities.get("sampling").is_some(),
            Some("roots/list") => self.capabilities.get("roots").is_some(),
            _ if mode == "url" => self.capabilities["elicitation"].get("url").is_some(),
            _ => self.capabilities.get("elicitation").is_some(),
        }
    }

    /// Takes what the server of a legacy client says.
    fn hear(&mut self) {
        for (route, message) in self.take() {
            if let Some(method) = message["method"].as_str() {
                if message.get("id").is_some() {
                    let Route::Related(key) = route else { panic!("a question belongs to its request: {message}") };
                    assert!(self.is_declared(&message["method"], &message["params"]["mode"]), "{message}");
                    assert!(self.open.iter().any(|open| open.key == key), "only an open request asks: {message}");
                    self.questions.push((key, message["id"].clone(), method.to_owned()));
                }
                continue;
            }
            let index = self.open.iter().position(|open| message["id"] == open.id);
            let open = self.open.remove(index.unwrap_or_else(|| panic!("nobody waits for {message}")));
            assert_ne!(message["error"]["message"], "the handler failed", "{message}");
            if let Some(report) = report(&message) {
                is_complete(open.target, &report, |key, reported| {
                    let of = answers::method(key);
                    open.sent.iter().any(|(method, answer)| method == of && is_behind(key, answer, reported))
                });
            }
        }
        for (id, step) in self.watch.take() {
            assert!(self.steps.entry(id).or_default().insert(step), "the step {step} is taken twice");
        }
    }

    fn answer(&mut self, text: &[u8]) {
        let Some((key, id, method)) = self.questions.get(self.answered).cloned() else { return };
        self.answered += 1;
        let open = self.open.iter_mut().find(|open| open.key == key);
        let result = match (text, &open) {
            ([b'*', way @ ..], Some(open)) => {
                let key = open.target.3.iter().find(|key| answers::method(key) == method).copied().unwrap_or_default();
                answers::answer(key, way.first()).to_string()
            }
            _ => json_of(text),
        };
        if let (Some(open), Ok(answer)) = (open, serde_json::from_str(&result)) {
            open.sent.push((method, answer));
        }
        self.feed(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    }

    /// Refuses questions, the first that it is given and, at the end, all that come after it.
    fn refuse_from(&mut self, index: usize) {
        let Some((_, id, _)) = self.questions.get(index) else { return };
        let refusal = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"no"}}}}"#);
        self.answered = self.answered.max(index + 1);
        self.feed(&refusal);
    }

    fn cancel(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let (id, method) = (open.id, "notifications/cancelled");
        self.feed(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"requestId":{id}}}}}"#));
    }

    /// Refuses all that is still asked, and looks for what is left.
    fn finish(mut self) {
        let mut index = 0;
        while index < self.questions.len() {
            // One that was answered with something unreadable is still a question; the others are known to be none.
            self.refuse_from(index);
            self.hear();
            index += 1;
        }
        assert!(self.open.is_empty(), "every request is answered");
        assert!(self.connection.is_idle() && !self.connection.is_busy(), "something is left: {:?}", self.connection);
        self.connection.handle_disconnect();
        assert!(self.take().is_empty(), "nobody is there to send to");
        assert!(self.connection.is_closed() && self.connection.is_idle(), "something is left: {:?}", self.connection);
        assert_eq!(self.connection.poll_timeout(), None, "nothing is due any more");
    }
}

/// Changes a state, by one operation after the other: `<` and `>` cut a letter off, `+`, `=` and `_` add one, `*` doubles
/// it, `$` changes the last letter, and `^`, `%` and `/` with another byte for a place change a letter there, cut the rest
/// off, or go on with another state.
fn changed(state: &str, other: &str, operations: &[u8]) -> String {
    let mut letters = state.as_bytes().to_vec();
    let mut operations = operations.iter();
    while let Some(operation) = operations.next() {
        let mut place = || {
            let part = usize::from(operations.next().copied().unwrap_or_default());
            part * letters.len() / 128 % letters.len().max(1)
        };
        match operation {
            b'<' if !letters.is_empty() => {
                letters.remove(0);
            }
            b'>' => {
                letters.pop();
            }
            b'+' => letters.push(b'A'),
            b'=' => letters.push(b'='),
            b'_' => letters.push(b' '),
            b'*' if letters.len() < 10_000 => letters.extend_from_within(..),
            b'$' => {
                if let Some(last) = letters.iter_mut().rfind(|letter| **letter != b'=') {
                    *last = next(*last);
                }
            }
            b'^' => {
                let place = place();
                letters.iter_mut().skip(place).take(1).for_each(|letter| *letter = next(*letter));
            }
            b'%' => {
                let place = place();
                letters.truncate(place);
            }
            b'/' => {
                let place = place();
                letters.truncate(place);
                letters.extend(other.bytes().skip(place));
            }
            _ => {}
        }
    }
    String::from_utf8_lossy(&letters).into_owned()
}

/// The next letter of Base64, if it is one: it has other bits, if only the last one.
fn next(letter: u8) -> u8 {
    match letter {
        b'Z' => b'a',
        b'z' => b'0',
        b'9' => b'+',
        b'+' => b'/',
        b'/' | b'=' => b'A',
        other => other.wrapping_add(1) & 0x7f,
    }
}

/// The answers that a line describes, as JSON.
fn responses_of(target: &Target, text: &[u8]) -> Option<String> {
    match text {
        [] => None,
        [b'*', way @ ..] => {
            let answers = target.3.iter().map(|key| ((*key).to_owned(), answers::answer(key, way.first())));
            Some(Value::Object(answers.collect()).to_string())
        }
        text => Some(json_of(text)),
    }
}

/// JSON as it is, and anything else as a text.
fn json_of(text: &[u8]) -> String {
    match serde_json::from_slice::<&RawValue>(text) {
        Ok(json) => json.get().to_owned(),
        Err(_) => Value::from(String::from_utf8_lossy(text)).to_string(),
    }
}

fn is_map_of_objects(responses: &Value) -> bool {
    responses.is_null() || responses.as_object().is_some_and(|map| map.values().all(Value::is_object))
}

/// What a handler says that it got, if it came to its end.
fn report(reply: &Value) -> Option<Value> {
    let result = reply.get("result").filter(|result| result["isError"] != true)?;
    let text = result["content"][0].get("text").or_else(|| result["contents"][0].get("text"));
    let text = text.or_else(|| result["messages"][0]["content"].get("text")).and_then(Value::as_str);
    Some(serde_json::from_str(text.unwrap_or_else(|| panic!("a result has a text: {reply}"))).expect("a report"))
}

/// A handler that came to its end got a valid answer to each of its questions.
fn is_complete(target: &Target, report: &Value, is_answered: impl Fn(&str, &Value) -> bool) {
    for key in target.3 {
        assert!(is_answered(key, &report[*key]), "`{key}` was not answered like that: {report}");
    }
}
