//! The server that is mistreated, and how it has to be afterwards.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use h2::client::ResponseFuture;
use mcp_server::{AskError, NoArguments, Progress, RequestContext, Server, text_resource, tool};
use mcp_transport_http::{HttpOptions, HttpServer, HttpService};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::heap::allocated;
use crate::http2::Streams;
use crate::wire::{LIMIT, Raw, call, listen, text, within};

/// How much the server takes on.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) requests: usize,
    pub(crate) listeners: usize,
    pub(crate) connections: usize,
}

/// Little enough to see that all of it is there.
pub(crate) const SMALL: Room = Room { requests: 8, listeners: 8, connections: 64 };

pub(crate) struct Arena {
    pub(crate) address: SocketAddr,
    pub(crate) gate: Arc<Gate>,
    pub(crate) server: Server,
    pub(crate) service: HttpService,
    room: Room,
    runtime: Runtime,
    /// How many tasks there are without clients.
    pub(crate) idle_tasks: usize,
    stop: oneshot::Sender<()>,
    /// How much was allocated before it.
    others: usize,
}

impl Arena {
    pub(crate) fn start(room: Room, options: HttpOptions) -> Self {
        Self::start_with(room, options, |server| server)
    }

    pub(crate) fn start_with(
        room: Room,
        options: HttpOptions,
        configure: impl FnOnce(HttpServer) -> HttpServer,
    ) -> Self {
        let others = allocated();
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let gate = Arc::<Gate>::default();
        let server = server(&gate);
        let options = options.max_in_flight(room.requests).max_listen_streams(room.listeners);
        let service = HttpService::with_options(server.clone(), options);
        let listener = runtime.block_on(HttpServer::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.address();
        let listener = configure(listener.max_connections(room.connections).drain_timeout(Duration::ZERO));
        let (stop, stopped) = oneshot::channel();
        runtime.spawn(listener.serve(service.clone(), async {
            let _ = stopped.await;
        }));
        Self { address, gate, server, service, room, runtime, idle_tasks: 1, stop, others }
    }

    /// Stops the server.
    pub(crate) fn stop(self) {
        let _ = self.stop.send(());
        self.runtime.shutdown_timeout(Duration::from_secs(10));
    }

    pub(crate) async fn connect(&self) -> Raw {
        Raw::connect(self.address).await
    }

    /// A client that does everything right is answered.
    pub(crate) async fn honest(&self) {
        let mut client = self.connect().await;
        for id in 0..2 {
            client.send(&call(id, "echo", r#"{"text":"still there"}"#)).await;
            let answer = client.answer().await.expect("an answer");
            assert_eq!((answer.status, text(&answer.body).as_str()), (200, "still there"), "{answer:?}");
        }
        // Its permit is released when the server has dropped the connection, and the next abuse may need all of them.
        client.finish().await;
        client.is_closed().await;
    }

    /// Sends something on a connection of its own, and gives the status of the answer.
    pub(crate) async fn status(&self, bytes: &[u8]) -> Option<u16> {
        let mut client = self.connect().await;
        client.try_send(bytes).await;
        client.answer().await.map(|answer| answer.status)
    }

    pub(crate) fn tasks(&self) -> usize {
        self.runtime.handle().metrics().num_alive_tasks()
    }

    /// Waits until the server has as many connections.
    pub(crate) async fn has_tasks(&self, count: usize) {
        within(until(|| self.tasks() == self.idle_tasks + count)).await;
    }

    /// How many sessions there are.
    pub(crate) fn sessions(&self) -> usize {
        self.service.session_metrics().map_or(0, |sessions| sessions.live)
    }

    /// Waits until there are as many sessions.
    pub(crate) async fn has_sessions(&self, count: usize) {
        let found = tokio::time::timeout(LIMIT, until(|| self.sessions() == count));
        assert!(found.await.is_ok(), "there are {:?}, not {count} sessions", self.service.session_metrics());
    }

    /// Nothing is taken: as many requests and listeners are taken on as there may be, and not one more.
    pub(crate) async fn has_room(&self) {
        let Room { requests, listeners, .. } = self.room;
        self.gate.has_inside(0).await;
        let mut streams = Streams::connect(self.address, requests.max(listeners) + 1).await;
        let mut waiting: Vec<ResponseFuture> = Vec::new();
        for id in 0..requests {
            waiting.push(streams.call(id, "wait", "{}").await);
        }
        self.gate.has_inside(requests).await;
        let more = streams.call(requests, "wait", "{}").await;
        assert_eq!(within(more).await.expect("an answer").status(), 503);
        self.gate.open(requests);
        for answer in waiting {
            assert_eq!(within(answer).await.expect("an answer").status(), 200);
        }
        let mut listening = Vec::new();
        for id in 0..listeners {
            let stream = streams.listen(id, &["test:text"]).await;
            let answer = within(stream).await.expect("an answer");
            assert_eq!(answer.status(), 200);
            listening.push(answer);
        }
        let more = streams.listen(listeners, &["test:text"]).await;
        assert_eq!(within(more).await.expect("an answer").status(), 503);
        drop(listening);
        streams.close().await;
    }

    /// Waits until no client is left, and says how much is allocated then.
    pub(crate) async fn is_at_rest(&self) -> usize {
        self.has_tasks(0).await;
        self.gate.has_inside(0).await;
        self.has_sessions(0).await;
        // What the last tasks held may still be on its way back.
        let mut least = usize::MAX;
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            least = least.min(self.allocated());
        }
        least
    }

    /// How much is allocated.
    pub(crate) fn allocated(&self) -> usize {
        allocated().saturating_sub(self.others)
    }

    /// A stream for changes that is open.
    pub(crate) async fn listener(&self, id: usize) -> Raw {
        let mut client = self.connect().await;
        client.send(&listen(id, &["test:text"])).await;
        let head = client.head().await.expect("an answer");
        assert_eq!(head.status, 200, "{head:?}");
        let first = client.chunk().await.expect("an event");
        assert!(first.starts_with(b"data: ") && first.ends_with(b"\n\n"), "{}", String::from_utf8_lossy(&first));
        client
    }
}

/// Waits for something that the server does, most often at once.
async fn until(is_true: impl Fn() -> bool) {
    for attempt in 0.. {
        match attempt {
            _ if is_true() => return,
            0..500 => tokio::task::yield_now().await,
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

/// Where calls of `wait` wait.
#[derive(Debug)]
pub(crate) struct Gate {
    inside: watch::Sender<usize>,
    passes: Semaphore,
}

impl Default for Gate {
    fn default() -> Self {
        Self { inside: watch::Sender::new(0), passes: Semaphore::new(0) }
    }
}

impl Gate {
    /// Lets calls go on.
    pub(crate) fn open(&self, count: usize) {
        self.passes.add_permits(count);
    }

    /// How many calls are there.
    pub(crate) fn count(&self) -> usize {
        *self.inside.borrow()
    }

    /// Waits until as many calls are there.
    pub(crate) async fn has_inside(&self, count: usize) {
        let mut inside = self.inside.subscribe();
        let found = tokio::time::timeout(LIMIT, inside.wait_for(|inside| *inside == count)).await;
        assert!(found.is_ok(), "{} calls are there, not {count}", *self.inside.borrow());
    }

    async fn pass(&self) {
        let _inside = Inside::new(self);
        if let Ok(pass) = self.passes.acquire().await {
            pass.forget();
        }
    }
}

/// A call that is there.
struct Inside<'a>(&'a Gate);

impl<'a> Inside<'a> {
    fn new(gate: &'a Gate) -> Self {
        gate.inside.send_modify(|inside| *inside += 1);
        Self(gate)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.send_modify(|inside| *inside -= 1);
    }
}

pub(crate) fn server(gate: &Arc<Gate>) -> Server {
    let builder = Server::builder("mistreated", "1.0")
        .tool(tool("echo", async |_ctx, args: Echo| args.text))
        .tool(tool("big", async |_ctx, args: Big| "x".repeat(args.bytes)))
        .tool(tool("flood", flood))
        .tool(tool("ask", ask))
        .tool(tool("wait", async |ctx: RequestContext, _: NoArguments| {
            let gate = ctx.state::<Arc<Gate>>().cloned().expect("there is one");
            gate.pass().await;
            "done"
        }))
        .state(Arc::clone(gate))
        .resource(text_resource("test:text", "text", "a text"))
        .resource_subscriptions();
    builder.build().expect("a server")
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Big {
    bytes: usize,
}

/// What the user is asked.
#[derive(Deserialize, JsonSchema)]
struct Reply {
    word: String,
}

/// Asks the user, and waits inside the gate.
async fn ask(ctx: RequestContext, _: NoArguments) -> Result<String, AskError> {
    let gate = ctx.state::<Arc<Gate>>().cloned().expect("there is one");
    let _inside = Inside::new(&gate);
    let reply = ctx.elicit::<Reply>("word", "Which?").await?;
    Ok(reply.accepted().map_or_else(|_| "none".to_owned(), |reply| reply.word))
}

#[derive(Deserialize, JsonSchema)]
struct Flood {
    messages: u32,
    bytes: usize,
}

/// Reports more progress than anybody reads, and then waits.
async fn flood(ctx: RequestContext, Flood { messages, bytes }: Flood) -> String {
    let gate = ctx.state::<Arc<Gate>>().cloned().expect("there is one");
    let text = "x".repeat(bytes);
    for number in 1..=messages {
        ctx.progress(Progress::new(number).message(text.clone()));
        tokio::task::yield_now().await;
    }
    gate.pass().await;
    format!("reported {messages} times")
}
