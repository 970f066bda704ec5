//! Tools whose functions block.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use mcp_server::extract::{Extension, State};
use mcp_server::types::Revision;
use mcp_server::{Caller, NoArguments, Principal, RequestContext, Server, blocking_tool, blocking_tool_fn};
use mcp_testkit::ScriptedClient;
use schemars::JsonSchema;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::servers::{MODERN, fails, refused, server};
use crate::watching::watch;

const ERAS: [Revision; 2] = [Revision::V2025_11_25, MODERN];

#[derive(serde::Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

fn blocking() -> Server {
    server(|server| {
        server
            .tool(blocking_tool("add", |_, Add { a, b }: Add| (a + b).to_string()))
            .tool(blocking_tool("fail", |_, _: NoArguments| Err::<(), _>("no")))
            .tool(blocking_tool("panic", |_, _: NoArguments| fails()))
            .tool(blocking_tool("thread", |_, _: NoArguments| format!("{:?}", thread::current().id())))
    })
}

/// A runtime with one thread for functions that block.
fn runtime() -> Runtime {
    Builder::new_current_thread().max_blocking_threads(1).build().expect("a runtime")
}

/// Polls a connection until something holds.
fn wait(client: &mut ScriptedClient, mut holds: impl FnMut(&mut ScriptedClient) -> bool) {
    for _ in 0..20_000 {
        if holds(client) {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "another thread is waited for")]
        thread::sleep(Duration::from_millis(1));
        client.run();
    }
    panic!("it takes too long");
}

fn call(client: &mut ScriptedClient, tool: &str, arguments: Value) -> Value {
    let id = client.start("tools/call", json!({ "name": tool, "arguments": arguments }));
    wait(client, |client| client.unread() > 0);
    client.response_to(id)
}

// covers: AUT-11
#[test]
fn aut_11_functions_that_block_have_their_own_thread() {
    let runtime = runtime();
    let _entered = runtime.enter();
    for revision in ERAS {
        let mut client = ScriptedClient::new(&blocking(), revision);
        let text = |reply: Value| reply["result"]["content"][0]["text"].as_str().map(str::to_owned);
        assert_eq!(text(call(&mut client, "add", json!({ "a": 1, "b": 2 }))).as_deref(), Some("3"));
        assert_ne!(text(call(&mut client, "thread", json!({}))), Some(format!("{:?}", thread::current().id())));
        let wrong = text(call(&mut client, "add", json!({ "a": 1, "b": "two" }))).expect("a text");
        assert!(wrong.contains("`b`"), "{wrong}");
        let failed = call(&mut client, "fail", json!({}));
        assert_eq!(failed["result"]["isError"], true);
        let panicked = call(&mut client, "panic", json!({}));
        assert_eq!(
            (&panicked["error"]["code"], &panicked["error"]["message"]),
            (&json!(-32603), &json!("the handler failed"))
        );
    }
}

/// A cancelled call waits no longer, its function can see that, and one in the queue never runs.
// covers: AUT-11
#[test]
fn aut_11_blocking_functions_see_the_cancellation() {
    let runtime = runtime();
    let _entered = runtime.enter();
    for revision in ERAS {
        let (ended, end) = mpsc::channel();
        let (started, start) = mpsc::channel();
        let (ended, started) = (Mutex::new(ended), Mutex::new(started));
        let spin = blocking_tool("spin", move |ctx: RequestContext, _: NoArguments| {
            started.lock().unwrap().send(()).unwrap();
            while !ctx.is_cancelled() {
                thread::yield_now();
            }
            ended.lock().unwrap().send(()).unwrap();
        });
        let runs = Arc::new(Mutex::new(0));
        let count = Arc::clone(&runs);
        let queued = blocking_tool("queued", move |_, _: NoArguments| *count.lock().unwrap() += 1);
        let mut client = ScriptedClient::new(&server(|server| server.tool(spin).tool(queued)), revision);
        let spinning = client.start_tool("spin");
        start.recv_timeout(Duration::from_secs(20)).unwrap();
        let queued = client.start_tool("queued");
        client.cancel(queued);
        client.cancel(spinning);
        assert!(client.connection.is_idle());
        end.recv_timeout(Duration::from_secs(20)).unwrap();
        // The only thread is free, and nothing is left for it.
        let _ = call(&mut client, "queued", json!({}));
        assert_eq!(*runs.lock().unwrap(), 1);
        client.assert_quiet();
    }
}

struct Start(i64);

#[expect(clippy::needless_pass_by_value, reason = "handlers own their parameters")]
fn sum(
    note: Option<Extension<String>>,
    Add { a, b }: Add,
    start: State<Start>,
    ctx: RequestContext,
    user: Principal,
) -> String {
    let on = format!("{:?}", thread::current().id());
    format!("{} {} {} {} {on}", start.0.0 + a + b, user.subject, ctx.method(), note.is_some())
}

/// Functions that block take what they need, as all others.
// covers: AUT-6, AUT-11
#[test]
fn aut_6_blocking_functions_take_parameters_in_any_order() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let server = server(|server| {
        server
            .state(Start(10))
            .tool(blocking_tool_fn("sum", sum))
            .tool(blocking_tool_fn("nothing", || "nothing"))
            .tool(blocking_tool_fn("fail", |_: State<Start>| Err::<(), _>("no")))
    });
    for revision in ERAS {
        let mut client = ScriptedClient::new(&server, revision);
        let text = |reply: Value| reply["result"]["content"][0]["text"].as_str().map(str::to_owned).unwrap_or_default();
        let listed = client.result("tools/list", json!({}));
        assert_eq!(listed["tools"][0]["inputSchema"]["required"], json!(["a", "b"]));
        // A value that cannot be taken from the request is an error, and the function is not called.
        assert_eq!(call(&mut client, "sum", json!({ "a": 1, "b": 2 }))["error"]["code"], -32600);
        client.caller = Caller::default().principal(Principal::new(None, "ann"));
        let told = text(call(&mut client, "sum", json!({ "a": 1, "b": 2 })));
        assert!(told.starts_with("13 ann tools/call false "), "{told}");
        assert!(!told.ends_with(&format!("{:?}", thread::current().id())), "{told}");
        let wrong = text(call(&mut client, "sum", json!({ "a": 1, "b": "two" })));
        assert!(wrong.contains("`b`"), "{wrong}");
        assert_eq!(text(call(&mut client, "nothing", json!({}))), "nothing");
        assert_eq!(call(&mut client, "fail", json!({}))["result"]["isError"], true);
    }
    let forgotten = refused(|server| server.tool(blocking_tool_fn("sum", sum))).to_string();
    assert!(forgotten.starts_with("the tool `sum` needs a state of the type `"), "{forgotten}");
}

// covers: AUT-11
#[test]
fn aut_11_blocking_tools_need_a_runtime() {
    for revision in ERAS {
        let mut client = ScriptedClient::new(&blocking(), revision);
        let mut result = Value::Null;
        let seen = watch(|| result = client.call_tool("add", json!({ "a": 1, "b": 2 })));
        assert_eq!(result["isError"], true);
        assert_eq!(result["content"][0]["text"], "the server is not set up for this request");
        let told = |(_, event): &(_, crate::watching::Fields)| {
            event.get("error").is_some_and(|error| error.contains("needs a server that runs on tokio"))
        };
        assert!(seen.events.iter().any(told));
    }
}
