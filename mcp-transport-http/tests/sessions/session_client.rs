//! Clients with sessions, and a server whose tools show what a session is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method as Verb;
use mcp_server::{HandlerError, NoArguments, Principal, RequestContext, Server, ServerBuilder, text_resource, tool};
use mcp_session::{SessionMetrics, SessionOptions};
use mcp_testkit::envelope::{self, notification, response, tool_text};
use mcp_transport_http::{HttpOptions, HttpService, ResponseStream, SessionMode};
use mcp_types::{CreateMessageRequestParams, LoggingLevel, Method, SamplingMessage};
use serde_json::{Value, json};

use crate::demo::{Demo, server};
use crate::raw_http::{Pending, Post, Reply};

/// The revisions whose streams a client can come back for.
pub(crate) const RESUMABLE: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// The newest revision with sessions.
pub(crate) const NEWEST: &str = "2025-11-25";

pub(crate) fn stateful() -> HttpOptions {
    HttpOptions::default().sessions(SessionMode::Stateful)
}

/// A stateful service with settings for its sessions.
pub(crate) fn with(server: Server, options: SessionOptions) -> HttpService {
    HttpService::with_options(server, stateful().session_options(options))
}

pub(crate) fn metrics(service: &HttpService) -> SessionMetrics {
    service.session_metrics().expect("sessions")
}

/// Lets tasks do what they can.
pub(crate) async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
    settle().await;
}

/// A request to begin a session.
pub(crate) fn initialize(version: &str, capabilities: Value) -> Post {
    Post::message(envelope::initialize(1, version, capabilities))
}

/// A client with a session.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) service: HttpService,
    pub(crate) id: String,
    pub(crate) version: &'static str,
    pub(crate) principal: Option<Principal>,
}

impl Client {
    /// Begins a session, in which the client can do everything.
    pub(crate) async fn open(service: &HttpService, version: &'static str) -> Self {
        let all = json!({ "elicitation": {}, "sampling": {}, "roots": { "listChanged": true } });
        Self::open_by(service, version, initialize(version, all), None).await
    }

    /// Begins a session of a principal.
    pub(crate) async fn open_as(service: &HttpService, version: &'static str, principal: &Principal) -> Self {
        let post = initialize(version, json!({})).extension(principal.clone());
        Self::open_by(service, version, post, Some(principal.clone())).await
    }

    pub(crate) async fn open_by(
        service: &HttpService,
        version: &'static str,
        post: Post,
        principal: Option<Principal>,
    ) -> Self {
        let client = Self::shake_hands(service, version, post, principal).await;
        client.notify("notifications/initialized", json!({})).await;
        client
    }

    /// Begins a session without saying that it has begun, which is a use of it.
    pub(crate) async fn shake_hands(
        service: &HttpService,
        version: &'static str,
        post: Post,
        principal: Option<Principal>,
    ) -> Self {
        let reply = post.to(service).await;
        let id = reply.header("mcp-session-id").unwrap_or_else(|| panic!("no session: {}", reply.status)).to_owned();
        let answer = reply.json(200).await;
        assert_eq!(answer["result"]["protocolVersion"], version);
        Self { service: service.clone(), id, version, principal }
    }

    /// Adds what belongs to each request of the session; the older revisions know no header for the version.
    pub(crate) fn own(&self, post: Post) -> Post {
        let post = post.header("mcp-session-id", &self.id);
        let post = match self.version >= "2025-06-18" {
            true => post.header("mcp-protocol-version", self.version),
            false => post,
        };
        self.principal.iter().fold(post, |post, principal| post.extension(principal.clone()))
    }

    pub(crate) fn request(&self, method: &str, params: Value) -> Post {
        self.own(Post::legacy(None, method, params))
    }

    pub(crate) fn tool(&self, name: &str) -> Post {
        self.request("tools/call", json!({ "name": name, "arguments": {} }))
    }

    pub(crate) fn tool_with(&self, name: &str, arguments: Value) -> Post {
        self.request("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    /// Calls a tool that answers at once.
    pub(crate) async fn call(&self, name: &str) -> String {
        tool_text(&self.tool(name).json(&self.service, 200).await).to_owned()
    }

    pub(crate) fn get(&self) -> Post {
        self.own(Post::text("").verb(Verb::GET).without("content-type").header("accept", "text/event-stream"))
    }

    pub(crate) fn delete(&self) -> Post {
        self.own(Post::text("").verb(Verb::DELETE).without("content-type").without("accept"))
    }

    /// Opens the stream of what belongs to the session as a whole.
    pub(crate) async fn listen(&self) -> Events {
        Events::of(self.get().to(&self.service).await)
    }

    /// Comes back for what was missed.
    pub(crate) async fn resume(&self, id: &str) -> Events {
        Events::of(self.get().header("last-event-id", id).to(&self.service).await)
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) {
        self.say(notification(method, params)).await;
    }

    /// Answers a request of the server.
    pub(crate) async fn answer(&self, question: &Value, result: Value) {
        self.say(response(question["id"].clone(), result)).await;
    }

    /// Sends what is not answered.
    pub(crate) async fn say(&self, message: Value) {
        let mut reply = self.own(Post::message(message)).to(&self.service).await;
        let text = reply.rest().await;
        assert_eq!((reply.status.as_u16(), text.as_str()), (202, ""));
    }

    /// Sends a call whose handler begins, and waits.
    pub(crate) async fn begin(&self, name: &str, id: u64) -> Pending {
        let mut pending = self.tool(name).id(json!(id)).send(&self.service);
        pending.starts().await;
        pending
    }
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<u64>,
    /// What it says; nothing if that is empty.
    pub(crate) message: Option<Value>,
}

/// A stream of events, without comments.
pub(crate) struct Events {
    pub(crate) reply: Reply,
}

impl Events {
    pub(crate) fn of(reply: Reply) -> Self {
        assert_eq!((reply.status.as_u16(), reply.is_stream()), (200, true));
        Self { reply }
    }

    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            let block = self.reply.block().await?;
            let mut event = Event { id: None, retry: None, message: None };
            for line in block.lines().filter(|line| !line.starts_with(':')) {
                match line.split_once(": ").expect("a field") {
                    ("id", id) => event.id = Some(id.to_owned()),
                    ("retry", retry) => event.retry = Some(retry.parse().expect("a number")),
                    ("data", "") => {}
                    ("data", data) => event.message = Some(serde_json::from_str(data).expect("JSON")),
                    (field, _) => panic!("what is {field}?"),
                }
            }
            if block != ":" {
                return Some(event);
            }
        }
    }

    /// The next message; whatever else comes before is no matter.
    pub(crate) async fn message(&mut self) -> Value {
        loop {
            if let Some(message) = self.next().await.expect("a message").message {
                return message;
            }
        }
    }

    /// All that is left.
    pub(crate) async fn rest(mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }

    /// All messages that are left.
    pub(crate) async fn messages(self) -> Vec<Value> {
        self.rest().await.into_iter().filter_map(|event| event.message).collect()
    }

    /// The messages that are there without waiting, and whether the stream is over.
    pub(crate) async fn there(&mut self) -> (Vec<Value>, bool) {
        let (mut text, mut is_over) = (String::new(), false);
        settle().await;
        while let std::task::Poll::Ready(frame) = self.reply.poll_frame().await {
            is_over = frame.is_none();
            text.push_str(&frame.unwrap_or_default());
            if is_over {
                break;
            }
        }
        let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty());
        (data.map(|data| serde_json::from_str(data).expect("JSON")).collect(), is_over)
    }
}

/// The methods of messages, and `result` for results.
pub(crate) fn kinds(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["method"].as_str().unwrap_or("result")).collect()
}

/// How far progress is, in each message that tells of it.
pub(crate) fn steps(messages: &[Value]) -> Vec<u64> {
    messages.iter().filter_map(|message| message["params"]["progress"].as_u64()).collect()
}

/// The server of the other tests, with what only sessions have.
#[derive(Clone, Default)]
pub(crate) struct Shop {
    pub(crate) demo: Demo,
    /// How far `step` may go.
    pub(crate) steps: Steps,
}

impl Shop {
    pub(crate) fn service(&self) -> HttpService {
        HttpService::with_options(self.server(), stateful())
    }

    pub(crate) fn server(&self) -> Server {
        server(|builder| self.tools(self.demo.tools(builder)))
    }

    fn tools(&self, builder: ServerBuilder) -> ServerBuilder {
        let (leaving, stepping, closing, gate) =
            (self.demo.notes.clone(), self.steps.clone(), self.steps.clone(), self.demo.gate.clone());
        builder
            .resource(text_resource("file:///a", "a", "text"))
            .resource(text_resource("file:///b", "b", "text"))
            .resource_subscriptions()
            .tool(tool("count", async |ctx: RequestContext, _: NoArguments| {
                let count = ctx.connection().scratch()?.get_or_insert_with(AtomicUsize::default);
                Ok::<_, HandlerError>((count.fetch_add(1, Ordering::SeqCst) + 1).to_string())
            }))
            .tool(tool("sample", async |ctx: RequestContext, _: NoArguments| {
                let question = CreateMessageRequestParams::new(vec![SamplingMessage::user("hi")], 10);
                let answer = ctx.sample("sample", question).await?;
                Ok::<_, HandlerError>(answer.model)
            }))
            .tool(tool("roots", async |ctx: RequestContext, _: NoArguments| {
                let roots = ctx.list_roots("roots").await?;
                Ok::<_, HandlerError>(roots.len().to_string())
            }))
            .tool(tool("ping", async |ctx: RequestContext, _: NoArguments| {
                ctx.connection().ping().await?;
                Ok::<_, HandlerError>("pong")
            }))
            .tool(tool("log", async |ctx: RequestContext, _: NoArguments| {
                for level in [LoggingLevel::Debug, LoggingLevel::Info, LoggingLevel::Error] {
                    ctx.log(level, &level);
                }
                "logged"
            }))
            .tool(tool("tell", async |ctx: RequestContext, _: NoArguments| {
                ctx.connection().log(LoggingLevel::Error, "told");
                ctx.connection().notify(&Method::from("notifications/custom"), &json!({}));
                "told"
            }))
            .tool(tool("flood", async |ctx: RequestContext, _: NoArguments| {
                let text = "x".repeat(1 << 10);
                for _ in 0..2_000 {
                    ctx.log(LoggingLevel::Error, &text);
                }
                "flooded"
            }))
            .tool(tool("leave", move |ctx: RequestContext, _: NoArguments| {
                let notes = leaving.clone();
                ctx.connection().on_close(|| async move { notes.add("closed") });
                std::future::ready("left")
            }))
            .tool(tool("step", move |ctx: RequestContext, _: NoArguments| step(ctx, stepping.clone())))
            .tool(tool("close", move |ctx: RequestContext, _: NoArguments| {
                if let Some(stream) = ctx.extension::<ResponseStream>() {
                    stream.close(Duration::from_millis(70));
                }
                step(ctx, closing.clone())
            }))
            .tool(tool("close_later", move |ctx: RequestContext, _: NoArguments| {
                let gate = gate.clone();
                async move {
                    ctx.progress(1);
                    gate.wait().await;
                    if let Some(stream) = ctx.extension::<ResponseStream>() {
                        stream.close(Duration::from_millis(70));
                    }
                    std::future::pending::<&str>().await
                }
            }))
    }
}

/// Reports each step, as far as it may go, and ends after the tenth.
async fn step(ctx: RequestContext, steps: Steps) -> &'static str {
    for number in 1..=10_u64 {
        steps.wait_for(number).await;
        ctx.progress(number);
    }
    "ten steps"
}

/// How far somebody may go.
#[derive(Clone)]
pub(crate) struct Steps(Arc<tokio::sync::watch::Sender<u64>>);

impl Default for Steps {
    fn default() -> Self {
        Self(Arc::new(tokio::sync::watch::Sender::new(0)))
    }
}

impl Steps {
    pub(crate) fn allow(&self, number: u64) {
        self.0.send_replace(number);
    }

    async fn wait_for(&self, number: u64) {
        let _ = self.0.subscribe().wait_for(|allowed| *allowed >= number).await;
    }
}
