//! What both simulations share: the dice, the clock, the calls.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::noop_waker;
use mcp_client::types::{CallToolResult, ElicitResult, ElicitValue, Revision};
use mcp_client::{Client, ClientBuilder, Error};
use mcp_server::{AskError, NoArguments, RequestContext, Server, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Random numbers that are the same for each seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }

    pub(crate) fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    number: usize,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Counts handlers that are at work.
struct AtWork(Arc<AtomicUsize>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A server with a tool that answers at once, one that asks, and one that never ends by itself.
pub(crate) fn server(at_work: &Arc<AtomicUsize>) -> Server {
    let counted = |at_work: &Arc<AtomicUsize>| {
        at_work.fetch_add(1, Ordering::Relaxed);
        AtWork(Arc::clone(at_work))
    };
    let (echoing, asking, waiting) = (Arc::clone(at_work), Arc::clone(at_work), Arc::clone(at_work));
    let echo = tool("echo", move |ctx: RequestContext, Echo { number }| {
        let work = counted(&echoing);
        async move {
            ctx.progress(1);
            drop(work);
            number.to_string()
        }
    });
    let ask = tool("ask", move |ctx: RequestContext, Echo { number }| {
        let work = counted(&asking);
        async move {
            let answer = ctx.elicit::<Name>("name", "Who?").await?.accepted();
            drop(work);
            Ok::<_, AskError>(format!("{number}{}", answer.map(|name| name.name).unwrap_or_default()))
        }
    });
    let wait = tool("wait", move |_: RequestContext, _: NoArguments| {
        let work = counted(&waiting);
        async move {
            std::future::pending::<()>().await;
            drop(work);
            "never"
        }
    });
    Server::builder("simulated", "1.0").tool(echo).tool(ask).tool(wait).build().unwrap()
}

pub(crate) fn builder(revision: Revision) -> ClientBuilder {
    Client::builder("simulated", "1.0")
        .revisions([revision])
        // A handshake that takes too long ends the client, which is not what is to be seen here.
        .handshake_timeout(Duration::from_secs(24 * 60 * 60))
        .on_form_elicitation(async |_, _| ElicitResult::accepted([("name", ElicitValue::from("!"))]))
}

type Pending = Pin<Box<dyn Future<Output = Result<CallToolResult, Error>>>>;

/// The calls of the application.
#[derive(Default)]
pub(crate) struct Calls {
    open: Vec<(String, Pending)>,
    started: usize,
    pub(crate) succeeded: usize,
}

impl Calls {
    /// Makes a call of a random kind.
    pub(crate) fn start(&mut self, client: &Client, dice: &mut Dice) {
        self.started += 1;
        let number = self.started;
        let (call, expected) = match dice.below(4) {
            0 | 1 => (client.call_tool("echo").arguments(&json!({ "number": number })), number.to_string()),
            2 => (client.call_tool("ask").arguments(&json!({ "number": number })), format!("{number}!")),
            _ => (client.call_tool("wait"), "never".to_owned()),
        };
        self.open.push((expected, Box::pin(call.into_future())));
    }

    /// Drops a call, which cancels it.
    pub(crate) fn cancel_one(&mut self, dice: &mut Dice) {
        if !self.open.is_empty() {
            let index = dice.below(self.open.len());
            drop(self.open.swap_remove(index));
        }
    }

    /// Looks what came of them: each result has to be that of its own call.
    pub(crate) fn poll(&mut self) {
        let succeeded = &mut self.succeeded;
        let waker = noop_waker();
        self.open.retain_mut(|(expected, call)| match call.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => true,
            Poll::Ready(Ok(result)) => {
                assert_eq!(result.content[0].as_text(), Some(expected.as_str()));
                *succeeded += 1;
                false
            }
            Poll::Ready(Err(error)) => {
                let is_local = matches!(error, Error::TimedOut | Error::Interrupted(_) | Error::Closed(_));
                let is_made_up = matches!(error, Error::Status { status: 503, .. } | Error::InvalidResponse(_));
                assert!(is_local || is_made_up, "{error:?}");
                false
            }
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }
}

/// Polls something that needs no more than a look now and then.
pub(crate) fn look<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    let waker = noop_waker();
    future.poll(&mut Context::from_waker(&waker))
}
