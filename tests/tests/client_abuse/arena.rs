//! What is allocated before an abuse and after it.

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cap::Cap;
use mcp_client::types::{CallToolResult, ElicitAction, ElicitResult, Root};
use mcp_client::{Client, ClientBuilder, Error};
use tokio::runtime::Builder;
use tokio::time::Instant;

/// Knows how many bytes are allocated.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The bytes are those of the whole process, so one test runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// What may stay allocated beyond the 10%: what queues and tables keep for the next time.
const SLACK: usize = 64 * 1024;

/// How much a client may need at a time, whatever a server sends.
const MOST: usize = 64 << 20;

/// How long an abuse goes on for the sake of `MCP_ABUSE_REQUESTS`, because some of them mostly wait.
const LONGEST: Duration = Duration::from_secs(60);

/// How long anything else may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The right to run.
pub(crate) struct Alone {
    _guard: MutexGuard<'static, ()>,
}

pub(crate) fn alone() -> Alone {
    Alone { _guard: ALONE.lock().unwrap_or_else(PoisonError::into_inner) }
}

/// How many messages each abuse has: `few`, or what `MCP_ABUSE_REQUESTS` says.
fn wanted(few: usize) -> usize {
    std::env::var("MCP_ABUSE_REQUESTS").ok().and_then(|count| count.parse().ok()).unwrap_or(few)
}

/// Fails if something takes too long.
pub(crate) async fn within<F: IntoFuture>(work: F) -> F::Output {
    tokio::time::timeout(LIMIT, work.into_future()).await.expect("it takes too long")
}

/// A client that can answer what servers ask.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder("victim", "1.0")
        .on_form(async |_| ElicitResult::new(ElicitAction::Decline))
        .roots([Root::new("file:///r")])
        .on_log(|_| ())
        .on_notification(|_, _| ())
}

pub(crate) fn run(work: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(work);
}

/// Repeats an abuse, of which each round has so many messages, and compares what is allocated before and after.
pub(crate) async fn compare(name: &str, few: usize, mut round: impl AsyncFnMut() -> usize) {
    // The first rounds show what is usual: tables keep the room that they once needed.
    for _ in 0..2 {
        round().await;
    }
    let before = settled().await;
    let (wanted, since) = (wanted(few), Instant::now());
    let (mut count, mut most) = (0, 0);
    while count < wanted && since.elapsed() < LONGEST {
        count += round().await;
        most = most.max(ALLOCATOR.allocated());
    }
    let mut after = settled().await;
    // Connections that are closing are given a moment.
    for _ in 0..50 {
        if after <= before + before / 10 + SLACK {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        after = settled().await;
    }
    #[expect(clippy::print_stderr, reason = "whoever runs it alone may want to know")]
    {
        eprintln!("{name}: {count} in {:?}, {before} bytes before, {most} at most, {after} after", since.elapsed());
    }
    assert!(count >= wanted.min(few), "{name}: only {count} of {few} in {LONGEST:?}");
    assert!(after <= before + before / 10 + SLACK, "{name}: {before} bytes were allocated, and now {after}");
    assert!(most <= before + MOST, "{name}: {before} bytes were allocated, and {most} meanwhile");
}

/// How much is allocated when nothing is under way.
async fn settled() -> usize {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    ALLOCATOR.allocated()
}

pub(crate) fn text_of(result: &CallToolResult) -> Option<&str> {
    result.content.first()?.as_text()
}

/// The tool of an honest call.
pub(crate) fn honest(client: &Client) -> impl Future<Output = Result<CallToolResult, Error>> + use<> {
    let call = client.call_tool_without_arguments("honest");
    within(call)
}
