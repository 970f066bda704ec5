//! Handles among the arguments of tools.

use std::cell::Cell;
use std::sync::Arc;

use mcp_server::handles::{
    HandleKey, HandleOwner, HandleRecord, HandleStore, HandleStoreError, MemoryHandleStore, ReplaceOutcome,
    VersionedHandle, async_trait,
};
use mcp_server::{ArgumentErrors, Handle, Handles, Server, ServerBuilder, tool};
use mcp_testkit::{Gate, ScriptedClient};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::json;

use super::shop::{Basket, Order, REFUSED, UnixClock, all_baskets, builder, client, clients, opened, refused, shop};
use crate::servers::MODERN;

#[derive(Deserialize, JsonSchema)]
struct Compare {
    first: Option<Handle<Basket>>,
    #[serde(default)]
    others: Vec<Handle<Basket>>,
    #[serde(default)]
    nested: Option<Nested>,
}

#[derive(Deserialize, JsonSchema)]
struct Nested {
    inner: Handle<Basket>,
}

fn compare(builder: ServerBuilder) -> Server {
    let compare = tool("compare", async |_, Compare { first, others, nested }| {
        let count = |basket: &Handle<Basket>| basket.items.len().to_string();
        let first = first.as_ref().map_or_else(|| "none".to_owned(), count);
        let others: Vec<_> = others.iter().map(count).collect();
        let nested = nested.map_or_else(|| "none".to_owned(), |nested| count(&nested.inner));
        format!("{first}; {}; {nested}", others.join(" "))
    });
    builder.tool(compare).build().expect("a server")
}

fn filled(client: &mut ScriptedClient, count: usize) -> String {
    let basket = opened(client);
    (0..count).fold(basket, |basket, _| super::shop::added(client, &basket, "egg"))
}

/// Handles are optional, in lists, and in nested structs, and the same one may come twice.
#[test]
fn handles_are_anywhere_in_arguments() {
    for baskets in all_baskets() {
        let server = compare(builder(&UnixClock::default(), baskets));
        for mut client in clients(&server, Some("ann")) {
            let (one, two) = (filled(&mut client, 1), filled(&mut client, 2));
            for (arguments, expected) in [
                (json!({}), "none; ; none"),
                (json!({ "first": null }), "none; ; none"),
                (json!({ "first": one }), "1; ; none"),
                (json!({ "first": one, "others": [two, one, two] }), "1; 2 1 2; none"),
                (json!({ "others": [], "nested": { "inner": two } }), "none; ; 2"),
            ] {
                assert_eq!(client.call_tool_text("compare", arguments), expected);
            }
            for (arguments, member) in [
                (json!({ "first": "basket_x" }), "first"),
                (json!({ "others": [one, "basket_x"] }), "others"),
                (json!({ "nested": { "inner": "basket_x" } }), "nested"),
            ] {
                let fault = refused(&mut client, "compare", arguments);
                assert!(fault.starts_with(&format!("invalid arguments: `{member}")), "{fault}");
                assert!(fault.contains("not a valid basket handle") && fault.contains("Call `open`"), "{fault}");
            }
        }
    }
}

/// Other faults of arguments are named as they are without handles.
#[test]
fn other_faults_come_first() {
    let server = shop(&UnixClock::default(), Handles::in_memory());
    for mut client in clients(&server, None) {
        let basket = opened(&mut client);
        let fault = refused(&mut client, "add", json!({ "basket": basket, "item": 7 }));
        assert!(fault.starts_with("invalid arguments: `item`"), "{fault}");
        let fault = refused(&mut client, "add", json!({ "basket": "nonsense", "item": 7 }));
        assert!(fault.starts_with("invalid arguments: `item`"), "{fault}");
        let fault = refused(&mut client, "add", json!({ "item": "bread" }));
        assert!(fault.contains("`basket`"), "{fault}");
        for wrong in [json!(7), json!(null), json!({}), json!([basket])] {
            let fault = refused(&mut client, "show", json!({ "basket": wrong }));
            assert!(fault.starts_with("invalid arguments: `basket`"), "{fault}");
        }
    }
}

/// How invalid arguments are reported is a setting, also for handles.
#[test]
fn refusals_can_be_protocol_errors() {
    let builder = builder(&UnixClock::default(), Handles::in_memory()).argument_errors(ArgumentErrors::AsError);
    let mut client = client(&builder.build().unwrap(), MODERN, None);
    let call = json!({ "name": "show", "arguments": { "basket": "basket_x" } });
    assert_eq!(client.error("tools/call", call, -32602)["message"], REFUSED);
}

/// The schema of a tool says what a handle is, and how to get one.
#[test]
fn schemas_tell_the_model() {
    let server = shop(&UnixClock::default(), Handles::in_memory());
    for mut client in clients(&server, None) {
        let tools = client.result("tools/list", json!({}))["tools"].take();
        let find = |name: &str| tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        assert_eq!(
            find("add")["inputSchema"]["properties"]["basket"],
            json!({
                "type": "string",
                "description": "The basket to put it into. A basket handle, exactly as a tool returned it. Call `open` to get one."
            })
        );
        let output = &find("open")["outputSchema"];
        assert!(output.is_null() || output["properties"]["basket"]["type"] == "string", "{output}");
        assert!(!tools.to_string().contains("x-mcp-handle"));
    }
}

/// An untagged enum tries one variant after the other; what a handle is not valid for is no fault of the call.
#[test]
fn variants_are_tried() {
    #[derive(Deserialize, JsonSchema)]
    #[serde(untagged)]
    enum Either {
        Order { it: Handle<Order> },
        Basket { it: Handle<Basket> },
    }
    #[derive(Deserialize, JsonSchema)]
    struct Describe {
        what: Either,
    }
    let describe = tool("describe", async |_, Describe { what }| match what {
        Either::Order { it } => format!("order of {}", it.items.len()),
        Either::Basket { it } => format!("basket of {}", it.items.len()),
    });
    let server = builder(&UnixClock::default(), Handles::in_memory()).tool(describe).build().unwrap();
    let mut client = client(&server, MODERN, None);
    let basket = filled(&mut client, 2);
    assert_eq!(client.call_tool_text("describe", json!({ "what": { "it": basket } })), "basket of 2");
    let order = super::shop::structured(&mut client, "checkout", json!({ "basket": basket }))["order"].clone();
    assert_eq!(client.call_tool_text("describe", json!({ "what": { "it": order } })), "order of 2");
    refused(&mut client, "describe", json!({ "what": { "it": basket } }));
}

/// The number of handles in one call is bounded.
#[test]
fn calls_have_a_number_of_handles() {
    let server = compare(builder(&UnixClock::default(), Handles::in_memory()));
    let mut client = client(&server, MODERN, None);
    let baskets: Vec<_> = (0..65).map(|_| opened(&mut client)).collect();
    let text = client.call_tool_text("compare", json!({ "others": baskets[1..] }));
    assert_eq!(text.matches('0').count(), 64);
    let fault = refused(&mut client, "compare", json!({ "others": baskets }));
    assert!(fault.contains("more than 64 handles"), "{fault}");
    let same: Vec<_> = std::iter::repeat_n(&baskets[0], 200).collect();
    assert_eq!(client.call_tool_text("compare", json!({ "others": same })).matches('0').count(), 200);
}

thread_local! {
    static DESERIALIZED: Cell<usize> = const { Cell::new(0) };
}

/// Counts how often it is deserialized.
struct Counted;

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DESERIALIZED.set(DESERIALIZED.get() + 1);
        bool::deserialize(deserializer).map(|_| Self)
    }
}

/// Only arguments with handles are searched for handles.
#[test]
fn arguments_without_handles_are_read_once() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only how often it is read matters")]
    struct Plain {
        #[schemars(with = "bool")]
        counted: Counted,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only how often it is read matters")]
    struct WithHandle {
        #[schemars(with = "bool")]
        counted: Counted,
        basket: Option<Handle<Basket>>,
    }
    let server = builder(&UnixClock::default(), Handles::in_memory())
        .tool(tool("plain", async |_, _: Plain| "done"))
        .tool(tool("with_handle", async |_, _: WithHandle| "done"))
        .build()
        .unwrap();
    let mut client = client(&server, MODERN, None);
    for (tool, times) in [("plain", 1), ("with_handle", 2)] {
        DESERIALIZED.set(0);
        assert_eq!(client.call_tool_text(tool, json!({ "counted": true })), "done");
        assert_eq!(DESERIALIZED.get(), times, "{tool}");
    }
}

/// A store that responds when the test lets it, or fails.
#[derive(Clone)]
struct SlowStore {
    inner: MemoryHandleStore,
    gate: Option<Arc<Gate>>,
}

#[async_trait]
impl HandleStore for SlowStore {
    async fn insert(&self, now: u64, key: HandleKey, record: HandleRecord) -> Result<(), HandleStoreError> {
        self.inner.insert(now, key, record).await
    }

    async fn load(&self, now: u64, key: HandleKey) -> Result<Option<VersionedHandle>, HandleStoreError> {
        let Some(gate) = &self.gate else { return Err(HandleStoreError::Failed("secret host name".into())) };
        gate.wait().await;
        self.inner.load(now, key).await
    }

    async fn replace(
        &self,
        now: u64,
        key: HandleKey,
        record: HandleRecord,
        read: u64,
    ) -> Result<ReplaceOutcome, HandleStoreError> {
        self.inner.replace(now, key, record, read).await
    }

    async fn take(&self, now: u64, key: HandleKey) -> Result<Option<HandleRecord>, HandleStoreError> {
        self.inner.take(now, key).await
    }

    async fn list(&self, now: u64, owner: HandleOwner) -> Result<Vec<(HandleKey, VersionedHandle)>, HandleStoreError> {
        self.inner.list(now, owner).await
    }
}

/// A call waits for the store of its handles, and is cancelled meanwhile like any other.
#[test]
fn calls_wait_for_the_store() {
    let gate = Arc::new(Gate::default());
    let store = SlowStore { inner: MemoryHandleStore::default(), gate: Some(Arc::clone(&gate)) };
    let server = shop(&UnixClock::default(), Handles::stored(store));
    let mut client = client(&server, MODERN, None);
    let basket = opened(&mut client);
    let call = || json!({ "name": "show", "arguments": { "basket": basket } });
    let (waits, cancelled) = (client.start("tools/call", call()), client.start("tools/call", call()));
    assert_eq!(client.unread(), 0);
    client.cancel(cancelled);
    gate.open();
    client.run();
    assert_eq!(client.response_to(waits)["result"]["content"][0]["text"], "");
    client.assert_quiet();
}

/// A store that fails is no fault of the arguments, and its error is not for clients.
#[test]
fn stores_may_fail() {
    let store = SlowStore { inner: MemoryHandleStore::default(), gate: None };
    let server = shop(&UnixClock::default(), Handles::stored(store));
    for mut client in clients(&server, None) {
        let basket = opened(&mut client);
        let call = json!({ "name": "show", "arguments": { "basket": basket } });
        let result = client.result("tools/call", call);
        assert_eq!(result["isError"], true);
        assert_eq!(result["content"][0]["text"], "the server cannot access its basket handles now: try again later");
    }
}
