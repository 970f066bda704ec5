//! Who is woken when something happens in a session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use mcp_server::{Change, NoArguments, RequestContext, tool};
use mcp_testkit::envelope::tool_text;
use mcp_transport_http::HttpService;
use serde_json::json;

use crate::demo::server;
use crate::raw_http::{Pending, Reply};
use crate::session_client::{Client, Events, NEWEST, Shop, settle, stateful, steps};
use crate::threads::{runtime, spawn, wait};

/// A task that is polled by hand, and counts how often it is woken.
struct Task {
    pending: Pending,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Task {
    fn poll(&mut self) -> Option<Reply> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        let polled = std::pin::pin!(self.pending.poll()).poll(&mut Context::from_waker(&waker));
        match polled {
            std::task::Poll::Ready(reply) => reply,
            std::task::Poll::Pending => panic!("it never waits"),
        }
    }

    fn wakes(&self) -> usize {
        self.wakes.0.swap(0, Ordering::SeqCst)
    }
}

/// A tool that talks, and changes that are told, wake nobody but those who hear of them; each handler wakes its own
/// reader when it can go on.
// covers: SEC-12
#[tokio::test]
async fn sec_12_messages_wake_only_who_reads_them() {
    let shop = Shop::default();
    let server = shop.server();
    let service = HttpService::with_options(server.clone(), stateful());
    let client = Client::open(&service, NEWEST).await;
    let mut listening = client.listen().await;
    let uri = json!({ "uri": "file:///a" });
    assert!(client.request("resources/subscribe", uri).json(&service, 200).await["result"].is_object());
    let mut tasks: Vec<Task> = (0..20)
        .map(|id| Task { pending: client.tool("wait").id(json!(100 + id)).send(&service), wakes: Arc::default() })
        .collect();
    for task in &mut tasks {
        assert!(task.poll().is_none() && task.poll().is_none());
    }
    shop.steps.allow(1);
    let mut talking = Events::of(client.tool("step").id(json!(1)).token().to(&service).await);
    talking.message().await;
    listening.there().await;
    let _before: usize = tasks.iter().map(Task::wakes).sum();
    for number in 2..=9 {
        shop.steps.allow(number);
        assert_eq!(steps(&[talking.message().await]), [number]);
        server.publish(&Change::Resource("file:///a".to_owned()));
        assert_eq!(listening.message().await["method"], "notifications/resources/updated");
    }
    settle().await;
    assert_eq!(tasks.iter().map(Task::wakes).sum::<usize>(), 0, "nothing of this is for them");
    shop.demo.gate.open();
    assert!(tasks.iter().all(|task| task.wakes() > 0), "each can go on, and knows it");
    for mut task in tasks {
        assert_eq!(tool_text(&task.poll().expect("an answer").json(200).await), "waited");
    }
}

/// Whatever the order in which handlers wait, wake each other, and are run by each other's tasks, none is forgotten.
// covers: SEC-12
#[test]
fn sec_12_no_wake_is_lost() {
    let (runtime, (sender, receiver)) = (runtime(), mpsc::channel());
    let server = server(|builder| {
        builder.tool(tool("step", async |ctx: RequestContext, _: NoArguments| {
            for number in 1..=3_u64 {
                ctx.progress(number);
                let (sender, receiver) = tokio::sync::oneshot::channel();
                // Woken from another thread, at any time.
                tokio::spawn(async move {
                    tokio::task::yield_now().await;
                    let _ = sender.send(());
                });
                let _ = receiver.await;
                tokio::time::sleep(Duration::from_micros(number)).await;
            }
            "stepped"
        }))
    });
    let service = HttpService::with_options(server, stateful());
    let client = wait(&spawn(&runtime, async move { Client::open(&service, NEWEST).await }), "opening a session");
    for caller in 0..16 {
        let (client, sender) = (client.clone(), sender.clone());
        runtime.spawn(async move {
            for number in 0..50 {
                let id = json!(1_000 * caller + number);
                let all = Events::of(client.tool("step").id(id).token().to(&client.service).await).messages().await;
                assert_eq!(steps(&all[..all.len() - 1]), [1, 2, 3]);
                assert_eq!(tool_text(all.last().expect("an answer")), "stepped");
            }
            let _ = sender.send(());
        });
    }
    for _ in 0..16 {
        wait(&receiver, "all calls");
    }
}
