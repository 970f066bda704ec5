//! Several instances of a server that share a store of sessions: clients are sent from one to the other.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::{Body, Frame};
use mcp_server::types::LoggingLevel;
use mcp_server::{NoArguments, Principal, RequestContext, Server, text_resource, tool};
use mcp_transport_http::session::{
    BoxFuture, EventKey, MemoryEvents, MemorySessions, Reason, Refused, Saved, SessionId, SessionRecord, SessionStore,
    StoreError, Version, Versioned, WrongOwner,
};
use mcp_transport_http::{HttpOptions, HttpService, ResponseBody, ResponseStream, SessionMode, SessionOptions};
use serde_json::{Value, json};
use tower_service::Service;

/// A body that is there at once.
struct Whole(Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

fn server() -> Server {
    Server::builder("shared", "1.0")
        .tool(tool("level", async |ctx: RequestContext, _: NoArguments| {
            ctx.log(LoggingLevel::Info, "info");
            ctx.log(LoggingLevel::Error, "error");
            "logged"
        }))
        .tool(tool("slow", async |ctx: RequestContext, _: NoArguments| {
            if let Some(stream) = ctx.extension::<ResponseStream>() {
                stream.close(Duration::from_millis(1));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            "done"
        }))
        .resource(text_resource("a:b", "b", "text"))
        .resource_subscriptions()
        .build()
        .expect("a server")
}

/// What instances share.
#[derive(Clone, Default)]
struct Shared {
    sessions: MemorySessions,
    events: MemoryEvents,
}

impl Shared {
    fn options(&self) -> HttpOptions {
        HttpOptions::default()
            .sessions(SessionMode::Stateful)
            .session_store(Arc::new(self.sessions.clone()), Duration::from_secs(60))
            .event_store(Arc::new(self.events.clone()), EventKey::new([7; 32]))
    }

    fn instance(&self) -> (HttpService, Server) {
        let server = server();
        (HttpService::with_options(server.clone(), self.options()), server)
    }
}

/// A store that does not answer.
struct Gone;

impl SessionStore for Gone {
    fn load(&self, _: SessionId) -> BoxFuture<Result<Option<Versioned>, StoreError>> {
        Box::pin(std::future::ready(Err(StoreError("gone".to_owned()))))
    }

    fn save(&self, _: SessionId, _: SessionRecord, _: Version, _: Duration) -> BoxFuture<Result<Saved, StoreError>> {
        Box::pin(std::future::ready(Err(StoreError("gone".to_owned()))))
    }

    fn touch(&self, _: SessionId, _: Duration) -> BoxFuture<Result<bool, StoreError>> {
        Box::pin(std::future::ready(Err(StoreError("gone".to_owned()))))
    }

    fn remove(&self, _: SessionId) -> BoxFuture<Result<bool, StoreError>> {
        Box::pin(std::future::ready(Err(StoreError("gone".to_owned()))))
    }
}

/// A client that is sent wherever the test wants.
#[derive(Default)]
struct Client {
    session: String,
    principal: Option<Principal>,
}

struct Answer {
    status: StatusCode,
    session: Option<String>,
    retry_after: Option<String>,
    body: ResponseBody,
}

impl Answer {
    async fn text(&mut self, until: &str) -> String {
        let mut text = String::new();
        while !text.contains(until) {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx));
            let frame = tokio::time::timeout(Duration::from_secs(10), frame).await.expect("it does not hang");
            let Some(Ok(frame)) = frame else { break };
            text.push_str(&String::from_utf8_lossy(&frame.into_data().unwrap_or_default()));
        }
        text
    }

    async fn json(mut self, status: u16) -> Value {
        let text = self.text("no such thing").await;
        assert_eq!(self.status.as_u16(), status, "{text}");
        serde_json::from_str(&text).unwrap_or_default()
    }
}

impl Client {
    async fn send(&self, service: &HttpService, verb: &str, more: &[(&str, &str)], body: Value) -> Answer {
        let mut request = Request::builder().method(verb).uri("/mcp").header("host", "localhost");
        request = request.header("content-type", "application/json").header("accept", "*/*");
        if !self.session.is_empty() {
            request = request.header("mcp-session-id", &self.session);
        }
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let mut request = request.body(Whole(Some(text.into()))).expect("a request");
        if let Some(principal) = &self.principal {
            request.extensions_mut().insert(principal.clone());
        }
        let response = service.clone().call(request).await.unwrap_or_else(|never| match never {});
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok().map(str::to_owned));
        let (session, retry_after) = (header("mcp-session-id"), header("retry-after"));
        Answer { status: response.status(), session, retry_after, body: response.into_body() }
    }

    async fn ask(&self, service: &HttpService, method: &str, params: Value) -> Answer {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.send(service, "POST", &[], body).await
    }

    async fn shake_hands(&self, service: &HttpService) -> Answer {
        let info = json!({ "name": "c", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        self.ask(service, "initialize", params).await
    }

    async fn initialize(service: &HttpService, principal: Option<Principal>) -> Self {
        let mut client = Self { session: String::new(), principal };
        let answer = client.shake_hands(service).await;
        client.session = answer.session.clone().expect("a session");
        answer.json(200).await;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        client.send(service, "POST", &[], ready).await.json(202).await;
        client
    }
}

/// S4.115, S4.116, G4: a session goes on wherever its client is sent, with all that was settled in it.
#[tokio::test]
async fn sessions_go_on_elsewhere() {
    let shared = Shared::default();
    let ((one, _), (two, server)) = (shared.instance(), shared.instance());
    let client = Client::initialize(&one, None).await;
    client.ask(&one, "logging/setLevel", json!({ "level": "error" })).await.json(200).await;
    client.ask(&two, "resources/subscribe", json!({ "uri": "a:b" })).await.json(200).await;
    for service in [&two, &one, &two] {
        let text = client.ask(service, "tools/call", json!({ "name": "level" })).await.text("result").await;
        assert!(text.contains("\"error\"") && !text.contains("\"info\""), "{text}");
    }
    // The subscription of the other instance is known here, too, and so is what it takes back.
    let mut stream = client.send(&two, "GET", &[], Value::Null).await;
    stream.text("retry").await;
    server.publish(&mcp_server::Change::Resource("a:b".into()));
    assert!(stream.text("resources/updated").await.contains("a:b"));
    client.ask(&one, "resources/unsubscribe", json!({ "uri": "a:b" })).await.json(200).await;
    let again = client.ask(&two, "ping", json!({})).await.json(200).await;
    assert_eq!(again["result"], json!({}));
    server.publish(&mcp_server::Change::Resource("a:b".into()));
    server.publish(&mcp_server::Change::Resources);
    let heard = stream.text("resources/list_changed").await;
    assert!(heard.contains("resources/list_changed") && !heard.contains("resources/updated"), "{heard}");
    for service in [&one, &two] {
        let metrics = service.sessions().expect("sessions");
        assert_eq!((metrics.live, metrics.refused(Refused::Unknown)), (1, 0), "nobody was turned away");
    }
}

/// S4.42, S4.115: what has ended at one instance has ended at all.
#[tokio::test]
async fn sessions_end_everywhere() {
    let shared = Shared::default();
    let ((one, _), (two, _)) = (shared.instance(), shared.instance());
    let client = Client::initialize(&one, None).await;
    client.ask(&two, "ping", json!({})).await.json(200).await;
    client.send(&two, "DELETE", &[], Value::Null).await.json(204).await;
    client.ask(&one, "ping", json!({})).await.json(404).await;
    client.ask(&two, "ping", json!({})).await.json(404).await;
    assert_eq!((one.sessions().expect("sessions").live, two.sessions().expect("sessions").live), (0, 0));
}

/// S4.37, S4.115: a record lasts as long as somebody listens, however silent the session is.
#[tokio::test(start_paused = true)]
async fn listening_keeps_the_record() {
    let shared = Shared::default();
    let one = HttpService::with_options(server(), shared.options().keep_alive(Duration::from_secs(5)));
    let client = Client::initialize(&one, None).await;
    let mut stream = client.send(&one, "GET", &[], Value::Null).await;
    let listening = tokio::spawn(async move { stream.text("no such thing").await });
    tokio::time::sleep(Duration::from_secs(200)).await;
    client.ask(&one, "ping", json!({})).await.json(200).await;
    assert!(!listening.is_finished());
    listening.abort();
}

/// S4.35, S4.115: a request that brings a session to another instance is a use of it.
#[tokio::test(start_paused = true)]
async fn moving_is_a_use() {
    let shared = Shared::default();
    let ((one, _), (two, _)) = (shared.instance(), shared.instance());
    let client = Client::initialize(&one, None).await;
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(50)).await;
        let (three, _) = shared.instance();
        client.ask(&three, "ping", json!({})).await.json(200).await;
    }
    client.ask(&two, "ping", json!({})).await.json(200).await;
}

/// G3, G4: what was never used does not stay in the store for as long as what was.
#[tokio::test(start_paused = true)]
async fn unused_records_go_early() {
    let shared = Shared::default();
    let options = shared.options().session_store(Arc::new(shared.sessions.clone()), Duration::from_secs(3600));
    let one = HttpService::with_options(server(), options);
    let unused = Client::default().shake_hands(&one).await.session.expect("a session");
    let used = Client::initialize(&one, None).await.session;
    tokio::time::sleep(Duration::from_secs(61)).await;
    let load = async |id: &str| shared.sessions.load(SessionId::parse(id).expect("an id")).await.expect("a store");
    assert_eq!(load(&unused).await, None);
    assert!(load(&used).await.is_some());
}

/// S4.69, S4.71, S4.116: nobody takes over the session of another by going to another instance.
#[tokio::test]
async fn owners_are_known_everywhere() {
    let shared = Shared::default();
    let ((one, _), (two, _)) = (shared.instance(), shared.instance());
    let ann = Principal::new(Some("issuer"), "ann");
    let client = Client::initialize(&one, Some(ann.clone())).await;
    for thief in [Some(Principal::new(Some("issuer"), "bob")), Some(Principal::new(None, "ann")), None] {
        let thief = Client { session: client.session.clone(), principal: thief };
        for service in [&one, &two] {
            thief.ask(service, "ping", json!({})).await.json(403).await;
        }
        assert_eq!(two.sessions().expect("sessions").live, 0, "nothing is made for a thief");
    }
    client.ask(&two, "ping", json!({})).await.json(200).await;
    let unknown = Client { session: "0".repeat(64), principal: Some(ann) };
    unknown.ask(&two, "ping", json!({})).await.json(404).await;
}

/// S4.117, G5: what was said at an instance that is gone is there at another one.
#[tokio::test]
async fn events_are_found_elsewhere() {
    let shared = Shared::default();
    let (one, _) = shared.instance();
    let client = Client::initialize(&one, None).await;
    let mut answer = client.ask(&one, "tools/call", json!({ "name": "slow" })).await;
    let text = answer.text("no such thing").await;
    assert!(!text.contains("result"), "the stream ended early: {text}");
    let id = text.lines().find_map(|line| line.strip_prefix("id: ")).expect("the id of an event").to_owned();
    // The handler goes on for a client that comes back, here or elsewhere.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (two, _) = shared.instance();
    let mut missed = client.send(&two, "GET", &[("last-event-id", &id)], Value::Null).await;
    let text = missed.text("no such thing").await;
    assert!(text.contains("done"), "{text}");
    assert_eq!((one.sessions().expect("sessions").replayed, two.sessions().expect("sessions").replayed), (0, 1));
    // Not for others, and not for those who guess.
    let other = Client::initialize(&two, None).await;
    other.send(&two, "GET", &[("last-event-id", &id)], Value::Null).await.json(400).await;
}

/// Has an instance say something that the client misses; returns the last event that the client has seen.
async fn miss_something(client: &Client, service: &HttpService) -> String {
    let mut answer = client.ask(service, "tools/call", json!({ "name": "slow" })).await;
    let text = answer.text("no such thing").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    text.lines().find_map(|line| line.strip_prefix("id: ")).expect("the id of an event").to_owned()
}

/// S4.45, S4.117: what was said at an instance that has ended in good order is there at another one.
#[tokio::test]
async fn events_outlive_their_instance() {
    let shared = Shared::default();
    let ((one, _), (two, _)) = (shared.instance(), shared.instance());
    let client = Client::initialize(&one, None).await;
    let id = miss_something(&client, &one).await;
    one.drain(Duration::from_secs(1)).await;
    let mut missed = client.send(&two, "GET", &[("last-event-id", &id)], Value::Null).await;
    assert!(missed.text("no such thing").await.contains("done"));
    client.send(&two, "DELETE", &[], Value::Null).await.json(204).await;
    assert_eq!(shared.events.usage().events, 0, "they go with the session");
}

/// S4.31, S4.117: a client that listens now here and now there finds what it missed, wherever it was last.
#[tokio::test]
async fn streams_of_sessions_move() {
    let shared = Shared::default();
    let (one, two) = (shared.instance(), shared.instance());
    let client = Client::initialize(&one.0, None).await;
    for (service, server) in [&one, &two, &one, &two] {
        let mut stream = client.send(service, "GET", &[], Value::Null).await;
        server.publish(&mcp_server::Change::Resources);
        let text = stream.text("list_changed").await;
        let id = text.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().expect("an id").to_owned();
        drop(stream);
        server.publish(&mcp_server::Change::Resources);
        let mut missed = client.send(service, "GET", &[("last-event-id", &id)], Value::Null).await;
        let events = shared.events.usage();
        assert!(missed.text("list_changed").await.contains("list_changed"), "{events:?}");
    }
    assert_eq!(shared.events.usage().lost, 0);
}

/// S4.40, S4.117: an instance that has no room for a session takes nothing from those where it goes on.
#[tokio::test]
async fn events_outlive_idle_sessions() {
    let shared = Shared::default();
    let options = shared.options().session_options(SessionOptions::default().idle_limit(1));
    let (one, two) = (HttpService::with_options(server(), options), shared.instance().0);
    let client = Client::initialize(&one, None).await;
    let id = miss_something(&client, &one).await;
    while one.sessions().expect("sessions").ended(Reason::Cap) == 0 {
        Client::initialize(&one, None).await;
    }
    client.ask(&two, "ping", json!({})).await.json(200).await;
    let mut missed = client.send(&two, "GET", &[("last-event-id", &id)], Value::Null).await;
    assert!(missed.text("no such thing").await.contains("done"));
}

/// G3: an instance on which a user has too many sessions says when to come back.
#[tokio::test]
async fn moving_needs_room() {
    let shared = Shared::default();
    let options = shared.options().session_options(SessionOptions::default().limit_per_principal(1));
    let (one, two) = (shared.instance().0, HttpService::with_options(server(), options));
    let ann = || Some(Principal::new(None, "ann"));
    let client = Client::initialize(&one, ann()).await;
    let other = Client::initialize(&two, ann()).await;
    let stream = other.send(&two, "GET", &[], Value::Null).await;
    let answer = client.ask(&two, "ping", json!({})).await;
    assert_eq!((answer.status.as_u16(), answer.retry_after.as_deref()), (429, Some("1")));
    drop(stream);
    client.ask(&two, "ping", json!({})).await.json(200).await;
}

/// S4.71: whoever hides sessions from strangers hides them at every instance.
#[tokio::test]
async fn strangers_hear_nothing_anywhere() {
    let shared = Shared::default();
    let hiding = || {
        let options = shared.options().session_options(SessionOptions::default().wrong_owner(WrongOwner::Hidden));
        HttpService::with_options(server(), options)
    };
    let (one, two) = (hiding(), hiding());
    let client = Client::initialize(&one, Some(Principal::new(None, "ann"))).await;
    let thief = Client { session: client.session.clone(), principal: Some(Principal::new(None, "bob")) };
    for service in [&two, &one] {
        thief.ask(service, "ping", json!({})).await.json(404).await;
        assert_eq!(service.sessions().expect("sessions").refused(Refused::WrongOwner), 1);
    }
    client.ask(&two, "ping", json!({})).await.json(200).await;
}

/// G3, G4: a session that cannot be kept is no session, and nothing is left of it.
#[tokio::test]
async fn without_a_store_nothing_begins() {
    let options = Shared::default().options().session_store(Arc::new(Gone), Duration::from_secs(60));
    let service = HttpService::with_options(server(), options);
    let answer = Client::default().shake_hands(&service).await;
    assert_eq!(answer.session, None);
    assert_eq!(answer.json(503).await["id"], 1);
    let metrics = service.sessions().expect("sessions");
    assert_eq!((metrics.live, metrics.created, metrics.adopted), (0, 1, 0));
}

/// A store that is slow, and in which records go while they are used.
struct Leaky(MemorySessions);

impl SessionStore for Leaky {
    fn load(&self, id: SessionId) -> BoxFuture<Result<Option<Versioned>, StoreError>> {
        let store = self.0.clone();
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            store.load(id).await
        })
    }

    fn save(
        &self,
        id: SessionId,
        new: SessionRecord,
        read: Version,
        time: Duration,
    ) -> BoxFuture<Result<Saved, StoreError>> {
        let store = self.0.clone();
        Box::pin(async move {
            if !new.subscriptions.is_empty() {
                store.remove(id).await?;
            }
            store.save(id, new, read, time).await
        })
    }

    fn touch(&self, id: SessionId, time: Duration) -> BoxFuture<Result<bool, StoreError>> {
        self.0.touch(id, time)
    }

    fn remove(&self, id: SessionId) -> BoxFuture<Result<bool, StoreError>> {
        let store = self.0.clone();
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            store.remove(id).await
        })
    }
}

/// S4.42: whoever ends a session need not wait for that.
#[tokio::test(start_paused = true)]
async fn sessions_end_without_their_client() {
    let sessions = MemorySessions::new();
    let options = Shared::default().options().session_store(Arc::new(Leaky(sessions.clone())), Duration::from_secs(60));
    let service = HttpService::with_options(server(), options);
    let client = Client::initialize(&service, None).await;
    let deleting = client.send(&service, "DELETE", &[], Value::Null);
    assert!(tokio::time::timeout(Duration::from_millis(100), deleting).await.is_err(), "the client has gone");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let id = SessionId::parse(&client.session).expect("an id");
    assert_eq!(sessions.load(id).await, Ok(None));
    assert_eq!(service.sessions().expect("sessions").live, 0);
}

/// S4.42, S4.84: the end waits for sessions that end everywhere.
#[tokio::test(start_paused = true)]
async fn the_end_waits_for_the_store() {
    let sessions = MemorySessions::new();
    let options = Shared::default().options().session_store(Arc::new(Leaky(sessions.clone())), Duration::from_secs(60));
    let service = HttpService::with_options(server(), options);
    let client = Client::initialize(&service, None).await;
    let id = SessionId::parse(&client.session).expect("an id");
    let (deleting, draining) = (client.send(&service, "DELETE", &[], Value::Null), async {
        tokio::task::yield_now().await;
        service.drain(Duration::from_secs(30)).await;
        sessions.load(id).await.expect("a store")
    });
    let (deleted, left) = tokio::join!(deleting, draining);
    assert_eq!((deleted.status.as_u16(), left), (204, None));
}

/// S4.42, S4.115: a session that ends elsewhere while it is used is not found, and whoever asked knows what for.
#[tokio::test(start_paused = true)]
async fn sessions_may_end_elsewhere_at_any_time() {
    let store = Arc::new(Leaky(MemorySessions::new()));
    let service =
        HttpService::with_options(server(), Shared::default().options().session_store(store, Duration::from_secs(60)));
    let client = Client::initialize(&service, None).await;
    let answer = client.ask(&service, "resources/subscribe", json!({ "uri": "a:b" })).await.json(404).await;
    assert_eq!(answer["id"], 1, "{answer}");
    client.ask(&service, "ping", json!({})).await.json(404).await;
    assert_eq!(service.sessions().expect("sessions").live, 0);
}

/// G4: what clients settle at several instances at the same time is all settled.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_that_is_settled_is_lost() {
    let shared = Shared::default();
    let ((one, _), (two, _)) = (shared.instance(), shared.instance());
    let client = Arc::new(Client::initialize(&one, None).await);
    let mut tasks = Vec::new();
    for number in 0..40 {
        let (client, service) = (Arc::clone(&client), [&one, &two][number % 2].clone());
        tasks.push(tokio::spawn(async move {
            let params = json!({ "uri": format!("a:{number}") });
            let body = json!({ "jsonrpc": "2.0", "id": number, "method": "resources/subscribe", "params": params });
            // Too many at once are asked to come back.
            loop {
                let status = client.send(&service, "POST", &[], body.clone()).await.status;
                if status == StatusCode::OK {
                    break;
                }
                assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
                tokio::task::yield_now().await;
            }
        }));
    }
    for task in tasks {
        task.await.expect("a subscription");
    }
    let id = SessionId::parse(&client.session).expect("an id");
    let kept = shared.sessions.load(id).await.expect("a store").expect("a record");
    assert_eq!(kept.record.subscriptions.len(), 40, "{:?}", kept.record.subscriptions);
}
