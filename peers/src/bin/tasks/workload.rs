//! What is done with tasks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_server::tasks::TaskSupport;
use mcp_server::{HandlerError, RequestContext, Server, tool};
use mcp_tasks::{TaskSettings, TaskStore, Tasks};
use peers::statistics::median;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::runtime::Runtime;
use tokio::time::sleep;

use crate::client::Client;

/// How many clients there are, each with one request in flight.
pub(crate) const CLIENTS: usize = 32;

/// How many tasks wait while they are polled.
pub(crate) const WAITING: usize = 10_000;

/// How often there is a turn, and how many tasks or polls that is.
pub(crate) const TURNS: usize = 5;
pub(crate) const BATCH: usize = 3200;

/// What the tools take.
#[derive(Deserialize, JsonSchema)]
struct Frame {
    frame: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Colour {
    colour: String,
}

/// Builds a server with two tools whose calls are tasks: `quick`, and `ask`, which needs input.
pub(crate) fn server(runtime: &Runtime, store: &Arc<dyn TaskStore>) -> Server {
    async fn ask(ctx: RequestContext, Frame { frame }: Frame) -> Result<String, HandlerError> {
        let Colour { colour } = ctx.elicit("colour", "Which colour?").await?.accepted()?;
        Ok(format!("frame {frame} is {colour}"))
    }
    let _guard = runtime.enter();
    Server::builder("farm", "1.0")
        .tool(tool("quick", async |_, Frame { frame }| format!("frame {frame}")).task(TaskSupport::Required))
        .tool(tool("ask", ask).task(TaskSupport::Required))
        .tasks(Tasks::shared(Arc::clone(store), TaskSettings::default()))
        .build()
        .expect("a server")
}

/// Creates tasks until so many wait for input; returns the ids by client.
pub(crate) async fn wait(server: &Server) -> Vec<Vec<String>> {
    each_client(server, |mut client, index| async move {
        let mut tasks = Vec::with_capacity(WAITING.div_ceil(CLIENTS));
        for _ in (index..WAITING).step_by(CLIENTS) {
            tasks.push(client.create("ask").await);
        }
        for task in &tasks {
            client.wait_for_status(task, "input_required").await;
        }
        tasks
    })
    .await
}

/// Polls tasks that wait; returns how many polls there are in a second.
pub(crate) async fn poll(server: &Server, tasks: Vec<Vec<String>>) -> f64 {
    let tasks = Arc::new(tasks);
    let mut seconds = Vec::with_capacity(TURNS);
    for turn in 0..TURNS {
        let start = now();
        each_client(server, |mut client, index| {
            let tasks = Arc::clone(&tasks);
            async move {
                let polled = tasks[index].iter().cycle().skip(turn * BATCH / CLIENTS).take(BATCH / CLIENTS);
                for task in polled {
                    assert!(client.has_status(task, "input_required").await, "nobody has answered");
                }
            }
        })
        .await;
        seconds.push(start.elapsed().as_secs_f64());
    }
    BATCH as f64 / median(&seconds)
}

/// Creates tasks, and waits until all are finished; returns how many that are in a second.
pub(crate) async fn finish(server: &Server, store: &Arc<dyn TaskStore>) -> f64 {
    let mut seconds = Vec::with_capacity(TURNS);
    for _ in 0..TURNS {
        let start = now();
        let last = each_client(server, |mut client, _| async move {
            let mut last = String::new();
            for _ in 0..BATCH / CLIENTS {
                last = client.create("quick").await;
            }
            last
        })
        .await;
        while store.usage(0).await.expect("a store").unfinished > 0 {
            sleep(Duration::from_millis(1)).await;
        }
        seconds.push(start.elapsed().as_secs_f64());
        for task in last {
            assert!(Client::new(server).has_status(&task, "completed").await, "it failed");
        }
    }
    BATCH as f64 / median(&seconds)
}

/// Lets all clients work at the same time; returns what came of each.
async fn each_client<T, F>(server: &Server, work: impl Fn(Client, usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let working: Vec<_> = (0..CLIENTS).map(|index| tokio::spawn(work(Client::new(server), index))).collect();
    let mut done = Vec::with_capacity(CLIENTS);
    for client in working {
        done.push(client.await.expect("a client panicked"));
    }
    done
}

#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
fn now() -> Instant {
    Instant::now()
}
