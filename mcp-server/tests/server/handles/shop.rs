//! A shop with baskets, whose handles are sealed or stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use mcp_server::mrtr::{Key, KeyRing, MemoryReplayGuard};
use mcp_server::types::Revision;
use mcp_server::{
    Handle, HandleError, HandleValue, HandlerError, Handles, Json, NoArguments, Principal, RequestContext, Server,
    ServerBuilder, tool,
};
use mcp_testkit::ScriptedClient;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::servers::{LEGACY, MODERN};

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Basket {
    pub(crate) items: Vec<String>,
}

impl HandleValue for Basket {
    const NAME: &'static str = "basket";
    const HINT: &'static str = "Call `open` to get one.";
}

/// The same shape as a basket, but of another kind.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) items: Vec<String>,
}

impl HandleValue for Order {
    const NAME: &'static str = "order";
    const HINT: &'static str = "Call `checkout` to get one.";
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The basket to put it into
    basket: Handle<Basket>,
    item: String,
}

#[derive(Deserialize, JsonSchema)]
struct OfBasket {
    basket: Handle<Basket>,
}

#[derive(Deserialize, JsonSchema)]
struct OfOrder {
    order: Handle<Order>,
}

#[derive(Serialize, JsonSchema)]
struct Contents {
    basket: Handle<Basket>,
    items: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Ordered {
    order: Handle<Order>,
}

async fn open(ctx: RequestContext, _: NoArguments) -> Result<Json<Contents>, HandleError> {
    let basket = ctx.handles().mint(Basket::default()).await?;
    Ok(Json(Contents { basket, items: Vec::new() }))
}

async fn add(_: RequestContext, Add { mut basket, item }: Add) -> Result<Json<Contents>, HandleError> {
    basket.update(|basket| basket.items.push(item.clone())).await?;
    let items = basket.items.clone();
    Ok(Json(Contents { basket, items }))
}

async fn show(_: RequestContext, OfBasket { basket }: OfBasket) -> String {
    basket.items.join(", ")
}

async fn checkout(ctx: RequestContext, OfBasket { basket }: OfBasket) -> Result<Json<Ordered>, HandleError> {
    let Basket { items } = basket.take().await?;
    Ok(Json(Ordered { order: ctx.handles().mint(Order { items }).await? }))
}

async fn empty(_: RequestContext, OfBasket { basket }: OfBasket) -> Result<&'static str, HandleError> {
    basket.revoke().await?;
    Ok("emptied")
}

async fn track(_: RequestContext, OfOrder { order }: OfOrder) -> String {
    format!("on its way: {}", order.items.join(", "))
}

async fn list(ctx: RequestContext, _: NoArguments) -> Result<String, HandlerError> {
    let mut found: Vec<_> = ctx.handles::<Basket>().list().await?.iter().map(|basket| basket.items.join("+")).collect();
    found.sort();
    Ok(found.join(", "))
}

pub(crate) fn ring(id: u32) -> KeyRing {
    KeyRing::new(key(id))
}

pub(crate) fn key(id: u32) -> Key {
    Key::new(id, [u8::try_from(id).expect("a small number"); 32])
}

/// The time since the Unix epoch, as a test sets it.
#[derive(Clone)]
pub(crate) struct UnixClock(Arc<AtomicU64>);

impl Default for UnixClock {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(1_000_000)))
    }
}

impl UnixClock {
    pub(crate) fn advance(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

/// A builder of a shop with these baskets.
pub(crate) fn builder(clock: &UnixClock, baskets: Handles<Basket>) -> ServerBuilder {
    let clock = clock.clone();
    Server::builder("shop", "1.0")
        .key_ring(ring(1))
        .unix_clock(move || clock.now())
        .handles(baskets)
        .handles(Handles::<Order>::in_memory())
        .tool(tool("open", open))
        .tool(tool("add", add))
        .tool(tool("show", show))
        .tool(tool("checkout", checkout))
        .tool(tool("empty", empty))
        .tool(tool("track", track))
        .tool(tool("list", list))
}

/// A shop with these baskets.
pub(crate) fn shop(clock: &UnixClock, baskets: Handles<Basket>) -> Server {
    builder(clock, baskets).build().expect("a server")
}

/// Baskets of all kinds that can be revoked.
pub(crate) fn all_baskets() -> [Handles<Basket>; 2] {
    [Handles::in_memory(), Handles::sealed().replay_guard(MemoryReplayGuard::new(100))]
}

/// A client in each revision, of the same user.
pub(crate) fn clients(server: &Server, subject: Option<&str>) -> Vec<ScriptedClient> {
    LEGACY.into_iter().chain([MODERN]).map(|revision| client(server, revision, subject)).collect()
}

pub(crate) fn client(server: &Server, revision: Revision, subject: Option<&str>) -> ScriptedClient {
    let mut client = ScriptedClient::new(server, revision);
    client.caller.principal = subject.map(|subject| Principal::new(Some("issuer"), subject));
    client
}

/// Calls a tool and returns its structured content, or its text in revisions without.
#[track_caller]
pub(crate) fn structured(client: &mut ScriptedClient, tool: &str, arguments: Value) -> Value {
    serde_json::from_str(&client.call_tool_text(tool, arguments)).expect("JSON")
}

/// Opens a basket and returns its handle.
#[track_caller]
pub(crate) fn opened(client: &mut ScriptedClient) -> String {
    structured(client, "open", json!({}))["basket"].as_str().expect("a handle").to_owned()
}

/// Puts something into a basket and returns its handle.
#[track_caller]
pub(crate) fn added(client: &mut ScriptedClient, basket: &str, item: &str) -> String {
    let contents = structured(client, "add", json!({ "basket": basket, "item": item }));
    contents["basket"].as_str().expect("a handle").to_owned()
}

/// Calls a tool that fails, and returns the text for the model.
#[track_caller]
pub(crate) fn refused(client: &mut ScriptedClient, tool: &str, arguments: Value) -> String {
    let result = client.call_tool(tool, arguments);
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().expect("a text").to_owned()
}

/// The refusal of a basket, whatever is wrong with it.
pub(crate) const REFUSED: &str =
    "invalid arguments: `basket`: this is not a valid basket handle: it may have expired. Call `open` to get one.";

/// Returns the output of a future that does not wait.
#[track_caller]
pub(crate) fn ready<F: Future>(future: F) -> F::Output {
    future.now_or_never().expect("it does not wait")
}
