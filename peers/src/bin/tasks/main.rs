//! What tasks cost, with a store in memory and with one in Redis.
//!
//! Clients, server and workers are one thread, without sockets except those to Redis.

mod client;
mod workload;

use std::process::ExitCode;
use std::sync::Arc;

use mcp_redis::RedisOptions;
use mcp_tasks::{MemoryTaskStore, TaskLimits, TaskStore};
use peers::records::{self, Unit};
use peers::redis::Redis;
use peers::table::{Table, known};
use peers::{allocations, processors, usage, versions};
use tokio::runtime::{Builder, Runtime};

use crate::workload::{BATCH, CLIENTS, TURNS, WAITING};

#[expect(clippy::print_stderr, reason = "a command-line tool talks to its user")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "the report is what this is for")]
fn run() -> Result<(), String> {
    println!("{}, {}; {CLIENTS} clients", versions::named("mcp-tasks"), versions::named("mcp-redis"));
    println!("{TURNS} turns of {BATCH} tasks, and of as many polls, with {WAITING} tasks that wait for input\n");
    let headings = ["", "tasks/s", "polls/s", "bytes per waiting task", "its record", "bytes in Redis"];
    let mut table = Table::new("Tasks created and finished, polled, and waiting", &headings);
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let memory = || -> Arc<dyn TaskStore> { Arc::new(MemoryTaskStore::new(limits())) };
    table.add(measure(&runtime, "in memory", None, &[memory(), memory()]));
    if processors::is_installed("redis-server") {
        let redis = Redis::start()?;
        let stores = [connect(&runtime, &redis, "waiting")?, connect(&runtime, &redis, "finishing")?];
        table.add(measure(&runtime, "in Redis", Some(redis.id()), &stores));
    } else {
        table.add(vec!["in Redis: left out, redis-server is not installed".to_owned()]);
    }
    println!("{table}");
    Ok(())
}

/// Returns a row of the table, measured with two stores of one kind that are empty.
fn measure(
    runtime: &Runtime,
    name: &str,
    redis: Option<u32>,
    [waiting, finishing]: &[Arc<dyn TaskStore>; 2],
) -> Vec<String> {
    let resident = || redis.and_then(usage::memory);
    let server = workload::server(runtime, waiting);
    let before = resident();
    // All that the runtime does is done by this thread.
    let (tasks, retained) = allocations::retained(|| runtime.block_on(workload::wait(&server)));
    let ids = tasks.iter().flatten();
    // The list of ids is the bench's own.
    let listed: usize = ids.map(|id| id.capacity() + size_of::<String>()).sum();
    let bytes = (retained - listed as i64) as f64 / WAITING as f64;
    let kibibytes = resident().zip(before).map(|(after, before)| after.saturating_sub(before));
    let bytes_in_redis = kibibytes.map(|kib| kib as f64 * 1024.0 / WAITING as f64);
    let record = runtime.block_on(waiting.usage(0)).expect("a store").bytes as f64 / WAITING as f64;
    let polled = runtime.block_on(workload::poll(&server, tasks));
    let server = workload::server(runtime, finishing);
    let finished = runtime.block_on(workload::finish(&server, finishing));

    records::figure("tasks created and finished", Unit::PerSecond, name, Some(finished));
    records::figure("tasks, polls", Unit::PerSecond, name, Some(polled));
    records::figure("tasks, a waiting one in the server", Unit::KiB, name, Some(bytes / 1024.0));
    records::figure("tasks, a waiting one in Redis", Unit::KiB, name, bytes_in_redis.map(|bytes| bytes / 1024.0));
    let cells = [finished, polled, bytes, record].map(|figure| format!("{figure:.0}"));
    let mut row = vec![name.to_owned()];
    row.extend(cells);
    row.push(known(bytes_in_redis.map(|bytes| format!("{bytes:.0}"))));
    row
}

fn connect(runtime: &Runtime, redis: &Redis, prefix: &str) -> Result<Arc<dyn TaskStore>, String> {
    runtime.block_on(async {
        let options = RedisOptions::default().prefix(prefix);
        let redis = mcp_redis::Redis::connect(&redis.url(), options).await.map_err(|error| error.to_string())?;
        let store: Arc<dyn TaskStore> = Arc::new(redis.tasks(limits()));
        Ok(store)
    })
}

/// Limits above all that is measured.
fn limits() -> TaskLimits {
    let limits = TaskLimits::default().max_unfinished(MANY).max_unfinished_per_tool(MANY);
    limits.max_kept(MANY).max_bytes(1 << 32)
}

const MANY: usize = 1 << 20;
