//! Our own server, in this process and in another one.

use std::io;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use mcp_client::types::{ElicitAction, ElicitResult, Era};
use mcp_client::{Change, Client, ClientBuilder, Closed, Mode};
use mcp_server::{HandlerError, NoArguments, RequestContext, Server, ServerBuilder, tool};
use mcp_transport_stdio::{ChildTransport, Ended, ServeOptions, Spawn, StreamTransport, serve_io, serve_stdio};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::kit::{LIMIT, builder, call, text, tool_changes, within};

const ERAS: [(Mode, Era); 2] = [(Mode::Auto, Era::Modern), (Mode::Legacy, Era::Legacy)];

async fn connected(
    server: ServerBuilder,
    pipe: usize,
    client: ClientBuilder,
) -> (Client, Server, JoinHandle<io::Result<Ended>>) {
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

/// DU-30, DU-31, IO-1, IO-12, S4.51: a call in either era, without a session, and an orderly end.
#[tokio::test]
async fn it_is_called() {
    for (mode, era) in ERAS {
        let tool = tool("tool", async |_, _: NoArguments| "hello");
        let (client, _, serving) = connected(server().tool(tool), 1000, builder().mode(mode)).await;
        assert_eq!(client.revision().map(|revision| revision.era()), Some(era));
        assert_eq!(client.session_id(), None);
        assert_eq!(text(call(&client).await), "hello");
        assert_eq!(within(client.close()).await, Closed::ByClient);
        let ended = within(serving).await.expect("no panic").expect("no fault");
        assert_eq!(ended, Ended::InputClosed);
    }
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// EL-1: a question in either era is answered by the same function.
#[tokio::test]
async fn it_asks() {
    for (mode, _) in ERAS {
        let ask = tool("tool", async |ctx: RequestContext, _: NoArguments| {
            let name: Name = ctx.elicit("name", "Who is there?").await?.accepted()?;
            Ok::<_, HandlerError>(format!("hello {}", name.name))
        });
        let client = builder().mode(mode).on_form(async |form| {
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

/// EL-1: what is not declared is not asked; the tool hears of it.
#[tokio::test]
async fn it_is_told_no() {
    for (mode, _) in ERAS {
        let ask = tool("tool", async |ctx: RequestContext, _: NoArguments| {
            let name = ctx.elicit::<Name>("name", "Who is there?").await?.accepted();
            Ok::<_, HandlerError>(name.map_or_else(|why| why.to_string(), |name| name.name))
        });
        let client = builder().mode(mode).on_form(async |_| ElicitResult::new(ElicitAction::Decline));
        let (client, _, _) = connected(server().tool(ask), 1000, client).await;
        assert!(text(call(&client).await).contains("declined"));
        within(client.close()).await;
    }
}

/// IO-7: changes reach the one who listens, in either era.
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
        client.call_tool("echo", &arguments).into_future()
    });
    for (number, answer) in within(join_all(calls)).await.into_iter().enumerate() {
        assert!(text(answer).starts_with(&format!("{number} x")));
    }
    within(client.close()).await;
}

/// What the next test starts: this program, as a server.
#[test]
fn a_server_of_its_own() {
    if std::env::var_os("SERVE").is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let server = server().tool(tool("tool", async |_, _: NoArguments| "hello from afar")).build().expect("a server");
    runtime.block_on(serve_stdio(server)).expect("no fault");
}

/// IO-2, IO-11: it is started, talks although the test harness says things of its own, and ends with its input.
#[tokio::test]
async fn it_is_a_process() {
    for (mode, era) in ERAS {
        let spawn = Spawn::new(std::env::current_exe().expect("this program")).env("SERVE", "1");
        // With a single thread the harness would begin a line that it does not end.
        let spawn = spawn.args(["--exact", "own::a_server_of_its_own", "--nocapture", "--test-threads", "2"]);
        let ladder = mcp_transport_stdio::Ladder::default().with_close(LIMIT);
        let transport = ChildTransport::new(spawn).ladder(ladder);
        let client = within(builder().mode(mode).connect(transport)).await.expect("a connection");
        assert_eq!(client.revision().map(|revision| revision.era()), Some(era));
        assert_eq!(text(call(&client).await), "hello from afar");
        assert_eq!(within(client.close()).await, Closed::ByClient);
    }
}
