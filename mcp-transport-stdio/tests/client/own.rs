//! Our own server, in this process and in another one.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use mcp_client::types::{ElicitAction, ElicitResult, Era, RawObject};
use mcp_client::{Change, Client, ClientBuilder, CloseReason, Mode};
use mcp_server::{HandlerError, Json, NoArguments, RequestContext, Server, ServerBuilder, tool};
use mcp_transport_stdio::{
    ChildTransport, ServeOptions, ServerCommand, StopReason, StreamTransport, serve_io, serve_stdio,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::peer::{LIMIT, builder, call, text, tool_changes, within};

const ERAS: [(Mode, Era); 2] = [(Mode::Auto, Era::Modern), (Mode::Legacy, Era::Legacy)];

async fn connected(
    server: ServerBuilder,
    pipe: usize,
    client: ClientBuilder,
) -> (Client, Server, JoinHandle<io::Result<StopReason>>) {
    let server = server.build().expect("a server");
    let (ours, theirs) = tokio::io::duplex(pipe);
    let (reader, writer) = tokio::io::split(theirs);
    let served = server.clone();
    let serving = tokio::spawn(async move {
        serve_io(&served, reader, writer, &ServeOptions::default(), std::future::pending()).await
    });
    let (reader, writer) = tokio::io::split(ours);
    let client = within(client.connect(StreamTransport::new(reader, writer))).await.expect("a connection");
    (client, server, serving)
}

fn server() -> ServerBuilder {
    Server::builder("own", "1")
}

/// A call in either era, without a session, and an orderly end.
// covers: DU-30, DU-31, IO-1, IO-12, S4.51
#[tokio::test]
async fn it_is_called() {
    for (mode, era) in ERAS {
        let tool = tool("tool", async |_, _: NoArguments| "hello");
        let (client, _, serving) = connected(server().tool(tool), 1000, builder().mode(mode)).await;
        assert_eq!(client.revision().map(|revision| revision.era()), Some(era));
        assert_eq!(client.session_id(), None);
        assert_eq!(text(call(&client).await), "hello");
        assert_eq!(within(client.close()).await, CloseReason::ByClient);
        let ended = within(serving).await.expect("no panic").expect("no fault");
        assert_eq!(ended, StopReason::InputClosed);
    }
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// A question in either era is answered by the same function.
// covers: EL-1
#[tokio::test]
async fn it_asks() {
    for (mode, _) in ERAS {
        let ask = tool("tool", async |ctx: RequestContext, _: NoArguments| {
            let name: Name = ctx.elicit("name", "Who is there?").await?.accepted()?;
            Ok::<_, HandlerError>(format!("hello {}", name.name))
        });
        let client = builder().mode(mode).on_form_elicitation(async |_, form| {
            assert_eq!(form.message, "Who is there?");
            let content = json!({ "name": "you" });
            serde_json::from_value::<ElicitResult>(json!({ "action": "accept", "content": content }))
                .expect("an answer")
        });
        let (client, _, _) = connected(server().tool(ask), 1000, client).await;
        assert_eq!(text(call(&client).await), "hello you");
        within(client.close()).await;
    }
}

/// What is not declared is not asked; the tool hears of it.
// covers: EL-1
#[tokio::test]
async fn it_is_told_no() {
    for (mode, _) in ERAS {
        let ask = tool("tool", async |ctx: RequestContext, _: NoArguments| {
            let name = ctx.elicit::<Name>("name", "Who is there?").await?.accepted();
            Ok::<_, HandlerError>(name.map_or_else(|why| why.to_string(), |name| name.name))
        });
        let client = builder().mode(mode).on_form_elicitation(async |_, _| ElicitResult::new(ElicitAction::Decline));
        let (client, _, _) = connected(server().tool(ask), 1000, client).await;
        assert!(text(call(&client).await).contains("declined"));
        within(client.close()).await;
    }
}

/// Changes reach the one who listens, in either era.
// covers: IO-7, S3.52
#[tokio::test]
async fn it_tells_of_changes() {
    for (mode, _) in ERAS {
        let builder = builder().mode(mode);
        let (client, server, _) =
            connected(server().tool(tool("tool", async |_, _: NoArguments| "")), 1000, builder).await;
        let mut listener = within(client.listen(tool_changes())).await.expect("a listener");
        assert_eq!(listener.acknowledged(), &tool_changes());
        server.publish(&Change::Tools);
        assert_eq!(within(listener.next()).await.expect("a change").expect("no error"), Change::Tools);
        within(client.close()).await;
        assert!(within(listener.next()).await.expect("an end").is_err());
    }
}

/// Neither side waits for the other, however much is on its way and however narrow the pipe is.
#[tokio::test]
async fn much_at_once() {
    #[derive(Deserialize, JsonSchema)]
    struct Text {
        text: String,
    }
    let echo = tool("echo", async |_, Text { text }| text);
    let (client, _, _) = connected(server().tool(echo), 64, builder()).await;
    let long = "x".repeat(10_000);
    let calls = (0..200).map(|number| {
        let arguments = json!({ "text": format!("{number} {long}") });
        client.call_tool("echo").arguments(&arguments).into_future()
    });
    for (number, answer) in within(join_all(calls)).await.into_iter().enumerate() {
        assert!(text(answer).starts_with(&format!("{number} x")));
    }
    within(client.close()).await;
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

/// What the next tests start: this program, as a server. Its `forbidden` tool must never be called by a test.
#[test]
fn a_server_of_its_own() {
    if std::env::var_os("SERVE").is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let calls = Arc::new(AtomicUsize::new(0));
    let (counted, counter) = (Arc::clone(&calls), calls);
    let server = server()
        .tool(tool("tool", async |_, _: NoArguments| "hello from afar"))
        .tool(tool("echo", async |_, Echo { text }| text))
        .tool(tool("forbidden", move |_, _: NoArguments| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::ready("it was called")
        }))
        .tool(tool("calls", move |_, _: NoArguments| std::future::ready(counter.load(Ordering::Relaxed).to_string())))
        .tool(tool("lines", async |_, _: NoArguments| {
            let text = "{\"a\":\n{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[]}}\r\n}";
            Json(RawObject::parse(text).expect("an object"))
        }));
    runtime.block_on(serve_stdio(server.build().expect("a server"))).expect("no fault");
}

/// The server above, behind real pipes.
async fn started(mode: Mode) -> Client {
    let spawn = ServerCommand::new(std::env::current_exe().expect("this program")).env("SERVE", "1");
    // With a single thread the harness would begin a line that it does not end.
    let spawn = spawn.args(["--exact", "own::a_server_of_its_own", "--nocapture", "--test-threads", "2"]);
    let timeouts = mcp_transport_stdio::ShutdownTimeouts::default().stdin_timeout(LIMIT);
    let transport = ChildTransport::new(spawn).shutdown_timeouts(timeouts);
    within(builder().mode(mode).connect(transport)).await.expect("a connection")
}

/// It is started, talks although the test harness says things of its own, and ends with its input.
// covers: IO-2, IO-11
#[tokio::test]
async fn it_is_a_process() {
    for (mode, era) in ERAS {
        let client = started(mode).await;
        assert_eq!(client.revision().map(|revision| revision.era()), Some(era));
        assert_eq!(text(call(&client).await), "hello from afar");
        assert_eq!(within(client.close()).await, CloseReason::ByClient);
    }
}

/// Arguments with a whole request between their lines are arguments, and nothing else is called.
// covers: SEC-1, IO-1
#[tokio::test]
async fn sec_1_arguments_smuggle_no_request() {
    for (mode, era) in ERAS {
        let meta = match era {
            Era::Modern => {
                r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#
            }
            Era::Legacy => "",
        };
        let smuggled = format!(
            r#"{{"jsonrpc":"2.0","id":902,"method":"tools/call","params":{{"name":"forbidden","arguments":{{}}{meta}}}}}"#
        );
        let client = started(mode).await;
        for line_break in ["\n", "\r\n", "\r"] {
            let arguments = format!("{{\"text\":\"ok\",\"b\":{line_break}{smuggled}{line_break}}}");
            let arguments = RawObject::parse(&arguments).expect("an object");
            let answer = within(client.call_tool("echo").arguments(&arguments).into_future()).await;
            assert_eq!(text(answer), "ok");
        }
        let calls = within(client.call_tool("calls").into_future()).await;
        assert_eq!(text(calls), "0", "nothing was smuggled");
        within(client.close()).await;
    }
}

/// A result with a whole response between its lines is one result.
// covers: SEC-1, IO-1
#[tokio::test]
async fn sec_1_results_smuggle_no_response() {
    for (mode, _) in ERAS {
        let client = started(mode).await;
        let result = within(client.call_tool("lines").into_future()).await.expect("a result");
        let content = result.structured_content.expect("structured content").to_value().expect("JSON");
        assert_eq!(content["a"]["id"], 3);
        assert_eq!(text(call(&client).await), "hello from afar");
        within(client.close()).await;
    }
}
