//! Clients of all revisions at the same endpoint at the same time: none sees anything of another.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mcp_server::types::meta::key::CLIENT_CAPABILITIES;
use mcp_server::{Change, ClientCapability, HandlerError, RequestContext, Server, text_resource, tool};
use mcp_transport_http::HttpService;
use mcp_types::LoggingLevel;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet, yield_now};

use crate::demo::server;
use crate::raw_http::{LEGACY, MODERN, Post};
use crate::session_client::{Client, Events, metrics, stateful};

const LEVELS: [&str; 3] = ["debug", "info", "error"];

/// How many clients there are of each revision, and how many rounds of requests each sends.
const CLIENTS: usize = 3;
const ROUNDS: usize = 50;

/// The same numbers for the same seed.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct See {
    tag: String,
    mode: String,
    pauses: usize,
}

/// Whose the connection is, by what its first request said.
struct Owner(String);

/// What happened to requests that wait: by whom they were sent, and their ids.
#[derive(Clone, Default)]
struct Waiting(Arc<Mutex<BTreeMap<String, &'static str>>>);

impl Waiting {
    fn set(&self, who: &str, what: &'static str) {
        self.0.lock().expect("notes").insert(who.to_owned(), what);
    }

    fn get(&self, who: &str) -> Option<&'static str> {
        self.0.lock().expect("notes").get(who).copied()
    }

    async fn until(&self, who: &str, what: &str) {
        while self.get(who) != Some(what) {
            yield_now().await;
        }
    }
}

struct Guard(Waiting, String);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.set(&self.1, "dropped");
    }
}

/// Says all that a handler can know about who asks.
async fn see(ctx: RequestContext, see: See, waiting: Waiting) -> Result<String, HandlerError> {
    let owner = || Owner(see.tag.clone());
    let (owner, count) = match ctx.connection().scratch() {
        Ok(scratch) => {
            let count = scratch.get_or_insert_with(AtomicUsize::default).fetch_add(1, Ordering::SeqCst) + 1;
            (scratch.get_or_insert_with(owner), count)
        }
        // Without a session nothing is left of earlier requests.
        Err(_) => (Arc::new(owner()), 1),
    };
    ctx.progress(1);
    for level in [LoggingLevel::Debug, LoggingLevel::Info, LoggingLevel::Error] {
        ctx.log(level, &see.tag);
    }
    for _ in 0..see.pauses {
        yield_now().await;
    }
    let mut asked = Value::Null;
    if see.mode == "ask" {
        asked = json!(ctx.list_roots("roots").await?.first().map(|root| root.uri.clone()));
    }
    if see.mode == "wait" {
        let who = format!("{}/{}", see.tag, ctx.id());
        let _guard = Guard(waiting.clone(), who.clone());
        waiting.set(&who, "began");
        std::future::pending::<()>().await;
    }
    let supports = [ClientCapability::Sampling, ClientCapability::Roots].map(|one| ctx.supports(one));
    let saw = json!({
        "revision": ctx.revision().as_str(), "id": ctx.id(), "owner": owner.0, "count": count,
        "client": ctx.client_info().map(|client| client.name.clone()),
        "token": ctx.progress_token(), "supports": supports, "asked": asked, "is_stateless": ctx.is_stateless(),
    });
    Ok(saw.to_string())
}

fn watching(tags: &[String], waiting: &Waiting) -> Server {
    let waiting = waiting.clone();
    server(|builder| {
        let builder = tags.iter().fold(builder.resource_subscriptions(), |builder, tag| {
            builder.resource(text_resource(format!("file:///{tag}"), tag.clone(), "text"))
        });
        builder.tool(tool("see", move |ctx: RequestContext, args: See| see(ctx, args, waiting.clone())))
    })
}

/// What a client is, which is what handlers have to see.
#[derive(Clone)]
struct Who {
    tag: String,
    version: &'static str,
    level: &'static str,
    capabilities: Value,
    waiting: Waiting,
    session: Option<Client>,
}

impl Who {
    fn post(&self, mode: &str, pauses: usize, id: usize) -> Post {
        let arguments = json!({ "tag": self.tag, "mode": mode, "pauses": pauses });
        let token = json!(format!("{}-{id}", self.tag));
        let post = match &self.session {
            Some(session) => session.tool_with("see", arguments),
            None => Post::tool("see", arguments)
                .meta(CLIENT_CAPABILITIES, self.capabilities.clone())
                .meta("io.modelcontextprotocol/clientInfo", json!({ "name": self.tag, "version": "1" }))
                .meta("io.modelcontextprotocol/logLevel", json!(self.level)),
        };
        post.meta("progressToken", token).id(json!(id))
    }

    /// Begins a session, with a level and a subscription of its own.
    async fn begin(&mut self, service: &HttpService) -> Events {
        let info = json!({ "name": self.tag, "version": "1" });
        let params = json!({ "protocolVersion": self.version, "capabilities": self.capabilities, "clientInfo": info });
        let post = Post::legacy(None, "initialize", params);
        let client = Client::open_by(service, self.version, post, None).await;
        let set = client.request("logging/setLevel", json!({ "level": self.level })).json(service, 200).await;
        assert!(set["result"].is_object());
        let address = json!({ "uri": format!("file:///{}", self.tag) });
        assert!(client.request("resources/subscribe", address).json(service, 200).await["result"].is_object());
        let stream = client.listen().await;
        self.session = Some(client);
        stream
    }

    /// Sends one request, and checks all that comes of it; returns the count that its handler saw.
    async fn check(self, service: HttpService, mode: &'static str, pauses: usize, id: usize) -> Option<u64> {
        if mode == "wait" {
            self.cancel(&service, id).await;
            return None;
        }
        let mut stream = Events::of(self.post(mode, pauses, id).to(&service).await);
        let mut levels = Vec::new();
        let answer = loop {
            let message = stream.message().await;
            match message["method"].as_str() {
                None => break message,
                Some("notifications/progress") => {
                    assert_eq!(message["params"]["progressToken"], format!("{}-{id}", self.tag));
                }
                Some("notifications/message") => {
                    assert_eq!(message["params"]["data"], self.tag);
                    levels.push(message["params"]["level"].as_str().expect("a level").to_owned());
                }
                Some("roots/list") => {
                    let roots = json!({ "roots": [{ "uri": format!("file:///{}/{id}", self.tag) }] });
                    self.session.as_ref().expect("a session").answer(&message, roots).await;
                }
                Some(method) => panic!("what is {method}?"),
            }
        };
        assert_eq!(stream.messages().await.len(), 0);
        let first = LEVELS.iter().position(|level| *level == self.level).expect("a level");
        assert_eq!(levels, LEVELS[first..]);
        assert_eq!(answer["id"], id);
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        let saw: Value = serde_json::from_str(text).expect("JSON");
        let has = |name: &str| self.capabilities.get(name).is_some();
        let asked = (mode == "ask").then(|| format!("file:///{}/{id}", self.tag));
        let expected = json!({
            "revision": self.version, "id": id, "owner": self.tag, "count": saw["count"], "client": self.tag,
            "token": format!("{}-{id}", self.tag), "supports": [has("sampling"), has("roots")], "asked": asked,
            "is_stateless": self.session.is_none(),
        });
        assert_eq!(saw, expected);
        saw["count"].as_u64()
    }

    /// Has a request wait, and cancels it: nobody else's, though others have the same id.
    async fn cancel(&self, service: &HttpService, id: usize) {
        let who = format!("{}/{id}", self.tag);
        self.waiting.set(&who, "sent");
        let mut stream = Events::of(self.post("wait", 0, id).to(service).await);
        assert_eq!(stream.message().await["method"], "notifications/progress");
        let reading = match &self.session {
            Some(_) => tokio::spawn(async move {
                stream.messages().await.iter().filter(|message| message["method"].is_null()).count()
            }),
            None => {
                self.waiting.until(&who, "began").await;
                drop(stream);
                tokio::spawn(async { 0 })
            }
        };
        if let Some(session) = &self.session {
            self.waiting.until(&who, "began").await;
            for _ in 0..5 {
                yield_now().await;
            }
            assert_eq!(self.waiting.get(&who), Some("began"), "somebody else's cancellation");
            session.notify("notifications/cancelled", json!({ "requestId": id })).await;
        }
        self.waiting.until(&who, "dropped").await;
        assert_eq!(reading.await.expect("an end"), 0, "it has no answer");
    }
}

/// Reads the stream of a session to its end: it has only changes of what was subscribed to.
fn hear(mut stream: Events, tag: String) -> JoinHandle<usize> {
    tokio::spawn(async move {
        let mut count = 0;
        while let Some(event) = stream.next().await {
            let Some(message) = event.message else { continue };
            assert_eq!(message["method"], "notifications/resources/updated", "{message}");
            assert_eq!(message["params"]["uri"], format!("file:///{tag}"));
            count += 1;
        }
        count
    })
}

async fn live(mut who: Who, service: HttpService, server: Server, tags: Vec<String>, mut dice: Dice) -> usize {
    let is_modern = who.version == MODERN;
    let (mut hearing, mut calls, mut sent) = (None::<JoinHandle<usize>>, 0_u64, 0);
    for round in 0..ROUNDS {
        if !is_modern && (round == 0 || dice.roll(20) == 0) {
            if let Some(session) = &who.session {
                assert_eq!(session.delete().to(&service).await.status, 204);
            }
            if let Some(hearing) = hearing.take() {
                let _: usize = hearing.await.expect("an end");
            }
            hearing = Some(hear(who.begin(&service).await, who.tag.clone()));
            calls = 0;
        }
        let mut requests = JoinSet::new();
        let count = 1 + dice.roll(6);
        for id in 0..count {
            let can_ask = !is_modern && who.capabilities.get("roots").is_some();
            let mode = match dice.roll(6) {
                0 => "wait",
                1 | 2 if can_ask => "ask",
                _ => "see",
            };
            requests.spawn(who.clone().check(service.clone(), mode, dice.roll(4), id));
            server.publish(&Change::Resource(format!("file:///{}", tags[dice.roll(tags.len())])));
        }
        sent += count;
        calls += count as u64;
        while let Some(seen) = requests.join_next().await {
            let Some(seen) = seen.expect("a check") else { continue };
            assert!(if is_modern { seen == 1 } else { seen <= calls }, "{seen} of {calls}");
        }
    }
    if let Some(session) = &who.session {
        // Each call of the session was counted there, and no other.
        let seen = who.clone().check(service.clone(), "see", 0, 99).await;
        assert_eq!(seen, Some(calls + 1));
        server.publish(&Change::Resource(format!("file:///{}", who.tag)));
        assert_eq!(session.delete().to(&service).await.status, 204);
    }
    if let Some(hearing) = hearing {
        assert!(hearing.await.expect("an end") > 0, "it heard of its changes");
    }
    sent
}

/// Thousands of requests of all revisions at once, in sessions and without; each handler sees its own client, and
/// nothing of any other.
// covers: DU-10..DU-12, DU-25, S4.27, RB-36, RB-58
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_leaks_between_clients() {
    let waiting = Waiting::default();
    let versions: Vec<&'static str> = LEGACY.into_iter().chain([MODERN]).collect();
    let tags: Vec<String> = (0..versions.len() * CLIENTS).map(|number| format!("c{number}")).collect();
    let server = watching(&tags, &waiting);
    let service = HttpService::with_options(server.clone(), stateful());
    let mut dice = Dice(0x5EED_CAFE_F00D);
    let mut clients = JoinSet::new();
    for (number, tag) in tags.iter().enumerate() {
        let capabilities = match dice.roll(4) {
            0 => json!({}),
            1 => json!({ "roots": {} }),
            2 => json!({ "sampling": {} }),
            _ => json!({ "roots": {}, "sampling": {} }),
        };
        let who = Who {
            tag: tag.clone(),
            version: versions[number % versions.len()],
            level: LEVELS[dice.roll(3)],
            capabilities,
            waiting: waiting.clone(),
            session: None,
        };
        let seed = Dice(dice.roll(1 << 30) as u64 + 1);
        clients.spawn(live(who, service.clone(), server.clone(), tags.clone(), seed));
    }
    let mut sent = 0;
    while let Some(client) = clients.join_next().await {
        sent += client.expect("a client");
    }
    assert!(sent > 2_000, "{sent} requests");
    let metrics = metrics(&service);
    assert_eq!((metrics.live, metrics.active), (0, 0));
}

/// A session may end at any moment of all that goes on in it: each request has an answer or finds no session, and
/// nothing stays.
// covers: S4.38, S4.42, S4.78, RB-58
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_may_end_at_any_time() {
    let tags = ["c0".to_owned()];
    let waiting = Waiting::default();
    let service = HttpService::with_options(watching(&tags, &waiting), stateful());
    let mut dice = Dice(0xD1CE);
    for round in 0..60 {
        let version = LEGACY[round % LEGACY.len()];
        let client = Client::open(&service, version).await;
        let mut tasks = JoinSet::new();
        for id in 0..8 {
            let (client, kind, pauses) = (client.clone(), dice.roll(4), dice.roll(30));
            tasks.spawn(async move {
                for _ in 0..pauses {
                    yield_now().await;
                }
                let arguments = json!({ "tag": "c0", "mode": if kind == 0 { "wait" } else { "see" }, "pauses": 3 });
                let post = if kind == 1 { client.get() } else { client.tool_with("see", arguments).id(json!(id)) };
                let mut reply = post.to(&client.service).await;
                match (kind, reply.status.as_u16()) {
                    (_, 404) => {}
                    (1, 200) => assert_eq!(Events::of(reply).messages().await, [Value::Null; 0]),
                    (_, 200) if reply.is_stream() => {
                        let last = Events::of(reply).messages().await.pop().expect("an answer");
                        assert!(last["id"] == id && (last["result"].is_object() || last["error"].is_object()));
                    }
                    (_, 200) => assert_eq!(reply.json(200).await["id"], id),
                    (_, status) => panic!("{status}: {}", reply.rest().await),
                }
            });
        }
        let (client, pauses) = (client.clone(), dice.roll(40));
        tasks.spawn(async move {
            for _ in 0..pauses {
                yield_now().await;
            }
            assert_eq!(client.delete().to(&client.service).await.status, 204);
        });
        let all = async {
            while let Some(task) = tasks.join_next().await {
                task.expect("a task");
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(10), all).await.expect("an end");
        assert_eq!((metrics(&service).live, metrics(&service).active), (0, 0));
    }
}
