//! Answers that may be used again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_client::types::{CacheScope, Revision, SubscriptionFilter};
use mcp_client::{Client, MemoryTransport};
use mcp_server::{Change, RequestContext, Server, resource};

use crate::demo::limited;

fn counting() -> (Server, Arc<AtomicUsize>) {
    let reads = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&reads);
    let read = resource("test://a", "a", move |_: RequestContext| {
        let count = counter.fetch_add(1, Ordering::Relaxed) + 1;
        async move { count.to_string() }
    });
    let server = Server::builder("kit", "1.0").resource(read).resource_subscriptions();
    (server.cache(std::time::Duration::from_secs(60), CacheScope::PRIVATE).build().unwrap(), reads)
}

/// Fresh answers are used again, until something changes or somebody insists.
// covers: C-5, C-7, C-14
#[tokio::test]
async fn answers_are_used_again_until_they_change() {
    let (server, reads) = counting();
    let client = limited(Client::connect(MemoryTransport::new(server.clone()))).await.unwrap();
    let read = async || limited(client.read_resource("test://a")).await.unwrap();
    read().await;
    read().await;
    assert_eq!(reads.load(Ordering::Relaxed), 1);
    limited(client.read_resource("test://a").skip_cache()).await.unwrap();
    assert_eq!(reads.load(Ordering::Relaxed), 2);
    let filter = SubscriptionFilter::default().resource("test://a");
    let mut listener = limited(client.listen(filter)).await.unwrap();
    server.publish(&Change::Resource("test://a".to_owned()));
    limited(listener.next()).await.unwrap().unwrap();
    read().await;
    assert_eq!(reads.load(Ordering::Relaxed), 3);
}

/// Legacy servers say nothing about it, so nothing is kept.
// covers: C-7
#[tokio::test]
async fn legacy_answers_are_not_kept() {
    let (server, reads) = counting();
    let client =
        Client::builder("test", "1.0").revisions([Revision::V2025_11_25]).connect(MemoryTransport::new(server));
    let client = limited(client).await.unwrap();
    for count in 1..=2 {
        limited(client.read_resource("test://a")).await.unwrap();
        assert_eq!(reads.load(Ordering::Relaxed), count);
    }
}

/// What is private is not for other credentials, nor for other clients.
// covers: C-12
#[tokio::test]
async fn clients_share_nothing() {
    let (server, reads) = counting();
    for count in 1..=2 {
        let client = limited(Client::connect(MemoryTransport::new(server.clone()))).await.unwrap();
        limited(client.read_resource("test://a")).await.unwrap();
        assert_eq!(reads.load(Ordering::Relaxed), count);
    }
}
