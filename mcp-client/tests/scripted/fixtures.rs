//! Clients and subscriptions to test.

use std::task::{Context, Poll, Waker};

use futures_util::StreamExt as _;
use mcp_client::types::SubscriptionFilter;
use mcp_client::{Change, Client, ClientBuilder, Error, Subscription, TransportKind};
use mcp_testkit::{ScriptedServer, Task};

pub(crate) const KINDS: [TransportKind; 2] = [TransportKind::Pipe, TransportKind::RequestPerCall];

pub(crate) fn builder() -> ClientBuilder {
    Client::builder("test", "1.0")
}

/// Connects a client that knows enough of its server to send nothing first.
#[track_caller]
pub(crate) fn connected(kind: TransportKind, builder: ClientBuilder) -> (Client, ScriptedServer) {
    let (mut connecting, server) = ScriptedServer::connect(kind, builder);
    (connecting.finish().unwrap(), server)
}

/// The next change of a subscription, which goes on to live.
pub(crate) fn hearing(mut subscription: Subscription) -> Task<(Option<Result<Change, Error>>, Subscription)> {
    Task::new(async move {
        let change = subscription.next().await;
        (change, subscription)
    })
}

/// All changes that are there already.
pub(crate) fn heard(subscription: &mut Subscription) -> Vec<Change> {
    let mut all = Vec::new();
    while let Poll::Ready(Some(change)) = subscription.poll_next_unpin(&mut Context::from_waker(Waker::noop())) {
        all.push(change.unwrap());
    }
    all
}

pub(crate) fn tools_filter() -> SubscriptionFilter {
    SubscriptionFilter::default().tools_list_changed(true)
}
