//! An instance of a server whose tasks are in Redis, for the test `tasks_in_redis`.
//!
//! `task-instance REDIS` prints its URL, and runs until it is killed.

#![forbid(unsafe_code)]

use std::error::Error;
use std::future::pending;
use std::time::Duration;

use mcp_redis::{Redis, RedisOptions};
use mcp_server::{HandlerError, RequestContext, Server, tool};
use mcp_tasks::{TaskId, TaskLimits, TaskSettings, TaskSupport, Tasks};
use mcp_transport_http::{HttpServer, HttpService};
use redis::AsyncTypedCommands as _;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{sleep, timeout};

/// The time that a step takes: long enough that instances are killed meanwhile.
const WORK: Duration = Duration::from_millis(500);

/// The time after which another instance takes over the tasks of one that was killed.
const LEASE: Duration = Duration::from_secs(2);

/// The maximum number of tasks that an instance runs at a time, so that the test lasts for some kills.
const MAX_RUNNING: usize = 12;

/// The maximum time of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(1);

/// The delay before a failed count is repeated, and how often it is: Redis is restarted meanwhile.
const RETRY_DELAY: Duration = Duration::from_millis(200);
const MAX_RETRIES: usize = 100;

#[derive(Deserialize, JsonSchema)]
struct Job {
    /// Identifies the task in the counts of its steps.
    name: String,
    /// Whether the user is asked before the last step.
    asks: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Colour {
    colour: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: task-instance REDIS")?;
    let options = RedisOptions::default().command_timeout(COMMAND_TIMEOUT);
    let store = Redis::connect(&url, options).await?.tasks(TaskLimits::default());
    let settings = TaskSettings::default().lease(LEASE).max_running(MAX_RUNNING);
    let counts = redis::Client::open(url)?;
    let render = move |ctx: RequestContext, job: Job| render(ctx, job, counts.clone());
    let server = Server::builder("farm", "1.0")
        .tool(tool("render", render).task(TaskSupport::Required))
        .tasks(Tasks::with_settings(store, settings))
        .build()?;
    let listener = HttpServer::bind("127.0.0.1:0").await?;
    print_url(&listener.url());
    listener.serve(HttpService::new(server), pending()).await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the test reads the URL there")]
fn print_url(url: &str) {
    println!("{url}");
}

/// Runs three steps, the last of them after an elicitation request. Returns the executions whose results were used.
async fn render(ctx: RequestContext, job: Job, counts: redis::Client) -> Result<String, HandlerError> {
    let mut done = Vec::new();
    for step in ["outline", "colours", "picture"] {
        if step == "picture" && job.asks {
            let elicited = ctx.elicit("colour", format!("Which colour for {}?", job.name)).await?;
            let Colour { colour } = elicited.accepted()?;
            done.push(colour);
        }
        done.push(ctx.once(step, || work(&counts, &job.name, step)).await?);
    }
    Ok(format!("{}: {}", job.name, done.join(", ")))
}

/// Does the work of a step, and records its execution at the end. Returns the id of the execution.
async fn work(counts: &redis::Client, job: &str, step: &str) -> Result<String, HandlerError> {
    sleep(WORK).await;
    let execution = TaskId::random()?.to_string();
    for _ in 0..MAX_RETRIES {
        // A member of a set, because a command whose response was lost is repeated.
        let record = async {
            let mut connection = counts.get_multiplexed_async_connection().await?;
            connection.sadd(format!("steps:{job}:{step}"), &execution).await
        };
        if let Ok(Ok(_)) = timeout(COMMAND_TIMEOUT, record).await {
            return Ok(execution);
        }
        sleep(RETRY_DELAY).await;
    }
    Err(HandlerError::new("Redis is away"))
}
