//! What is allocated before an abuse and after it.

use std::time::Duration;

use mcp_client::types::{CallToolResult, ElicitAction, ElicitResult, Root};
use mcp_client::{Client, ClientBuilder, Error};
use tokio::runtime::Builder;

use crate::heap::allocated;
use crate::tally::{Repeated, Tally};

/// What may stay allocated beyond the 10%: what queues and tables keep for the next time.
const SLACK: usize = 64 * 1024;

/// How much a client may need at a time, whatever a server sends.
const MOST: usize = 64 << 20;

/// How long anything may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Fails if something takes too long.
pub(crate) async fn within<F: IntoFuture>(work: F) -> F::Output {
    tokio::time::timeout(LIMIT, work.into_future()).await.expect("it takes too long")
}

/// A client that can answer what servers ask.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder("victim", "1.0")
        .on_form_elicitation(async |_, _| ElicitResult::new(ElicitAction::Decline))
        .roots([Root::new("file:///r")])
        .on_log(|_, _| ())
        .on_notification(|_, _, _| ())
}

pub(crate) fn run(work: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(work);
}

/// Repeats an abuse, for so many rounds at least, and compares what is allocated before and after.
pub(crate) async fn compare(name: &str, rounds: usize, mut round: impl AsyncFnMut() -> Repeated) {
    // The first rounds show what is usual: tables keep the room that they once needed.
    for _ in 0..2 {
        round().await;
    }
    let before = settled().await;
    let mut tally = Tally::start(name, rounds);
    let mut most = 0;
    while tally.goes_on() {
        tally.add(round().await);
        most = most.max(allocated());
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
    tally.print(format_args!("{before} bytes before, {most} at most, {after} after"));
    assert!(after <= before + before / 10 + SLACK, "{name}: {before} bytes were allocated, and now {after}");
    assert!(most <= before + MOST, "{name}: {before} bytes were allocated, and {most} meanwhile");
}

/// How much is allocated when nothing is under way.
async fn settled() -> usize {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    allocated()
}

pub(crate) fn text_of(result: &CallToolResult) -> Option<&str> {
    result.content.first()?.as_text()
}

/// The tool of an honest call.
pub(crate) fn honest(client: &Client) -> impl Future<Output = Result<CallToolResult, Error>> + use<> {
    let call = client.call_tool("honest");
    within(call)
}
