//! Changes that reach the clients of other instances by way of Redis.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_redis::RedisChangeBus;
use mcp_server::bus::bus_tests::check_change_bus;
use mcp_server::bus::{BusEvent, BusMember, BusReceiver, ChangeBus as _};
use mcp_server::types::Revision;
use mcp_server::{Change, Server as McpServer};
use mcp_testkit::ScriptedClient;
use serde_json::json;
use tokio::time::sleep;

use crate::fixtures::{connect, eventually, options};
use crate::server::{Server, Way, limited};

async fn bus(server: &Server) -> RedisChangeBus {
    connect(server).await.change_bus().await.unwrap()
}

/// A member that counts messages and gaps.
struct Counter {
    member: Box<dyn BusMember>,
    messages: Arc<AtomicUsize>,
    gaps: Arc<AtomicUsize>,
}

impl Counter {
    fn join(bus: &RedisChangeBus) -> Self {
        let [messages, gaps]: [Arc<AtomicUsize>; 2] = Default::default();
        let counters = [messages.clone(), gaps.clone()];
        let member = bus.join(BusReceiver::new(move |event| {
            let counter = match event {
                BusEvent::Message(_) => &counters[0],
                BusEvent::Gap => &counters[1],
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        Self { member, messages, gaps }
    }

    fn counts(&self) -> (usize, usize) {
        (self.messages.load(Ordering::Relaxed), self.gaps.load(Ordering::Relaxed))
    }
}

/// What every bus has to do, also after its connections were closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_does_what_buses_do() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let make = async || (bus(&server).await, bus(&server).await);
        let interrupt = async |_: &RedisChangeBus| {
            let _: redis::Value = server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
        };
        check_change_bus(make, interrupt, async || sleep(Duration::from_millis(5)).await).await;
    })
    .await;
}

/// Numbers that are missing are noticed, at the latest when the connection is checked.
#[tokio::test]
async fn missing_messages_are_noticed() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let (here, there) = (bus(&server).await, bus(&server).await);
        let (here, there) = (Counter::join(&here), Counter::join(&there));
        here.member.publish(b"first");
        eventually("the first arrives", async || there.counts() == (1, 0)).await;
        // As if another instance had published what did not arrive.
        let _: redis::Value = server.command(&["INCR", "mcp:bus:number"]).await;
        here.member.publish(b"second");
        eventually("the gap is seen with the next one", async || there.counts() == (2, 1)).await;
        let _: redis::Value = server.command(&["INCR", "mcp:bus:number"]).await;
        eventually("the gap is seen without another one", async || there.counts() == (2, 2)).await;
        // Numbers that begin anew may hide anything.
        let _: redis::Value = server.command(&["FLUSHALL"]).await;
        here.member.publish(b"third");
        eventually("it is a gap", async || there.counts() == (3, 3)).await;
        here.member.publish(b"fourth");
        eventually("and then all is well", async || there.counts() == (4, 3)).await;
        for nonsense in ["", "x", "1:x", "1:x:", "1:x:?", "-1:x:m"] {
            let (messages, gaps) = there.counts();
            let _: redis::Value = server.command(&["PUBLISH", "mcp:bus", nonsense]).await;
            eventually("nonsense may be anything", async || there.counts() == (messages, gaps + 1)).await;
        }
    })
    .await;
}

/// A connection that carries nothing any more is noticed, and replaced.
#[tokio::test]
async fn silent_connections_are_noticed() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let way = Way::to(&server).await;
        let redis = mcp_redis::Redis::connect(&way.url(), options().command_timeout(Duration::from_secs(1))).await;
        let there = redis.unwrap().change_bus().await.unwrap();
        let (here, there) = (Counter::join(&bus(&server).await), Counter::join(&there));
        here.member.publish(b"first");
        eventually("the first arrives", async || there.counts() == (1, 0)).await;
        way.silence();
        here.member.publish(b"lost");
        eventually("the gap is seen", async || there.counts() == (1, 1)).await;
        here.member.publish(b"second");
        eventually("the second arrives", async || there.counts() == (2, 1)).await;
    })
    .await;
}

/// An instance that could not send all of its changes tells the others that there were more. They had a connection all the time,
/// so nothing else can be the reason for the gap.
#[tokio::test]
async fn lost_changes_are_told() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let way = Way::to(&server).await;
        let options = options().max_queued_changes(2).command_timeout(Duration::from_secs(1));
        let redis = mcp_redis::Redis::connect(&way.url(), options).await.unwrap();
        let (here, there) = (redis.change_bus().await.unwrap(), bus(&server).await);
        let (here, there) = (Counter::join(&here), Counter::join(&there));
        here.member.publish(b"first");
        eventually("the first arrives", async || there.counts() == (1, 0)).await;
        way.silence();
        for number in 0..100 {
            here.member.publish(format!("change {number}").as_bytes());
        }
        eventually("the gap is seen", async || there.counts().1 == 1).await;
        let (messages, _) = there.counts();
        assert!(messages < 100, "most were lost: {messages}");
        here.member.publish(b"last");
        eventually("the last arrives", async || there.counts() == (messages + 1, 1)).await;
    })
    .await;
}

/// The tasks and connections of a bus end with it, after the last message was sent.
#[tokio::test]
async fn a_bus_ends() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let there = Counter::join(&bus(&server).await);
        let here = bus(&server).await;
        let member = Counter::join(&here);
        drop(here);
        member.member.publish(b"last");
        drop(member);
        eventually("the last message arrives", async || there.counts() == (1, 0)).await;
        let subscribers = async || {
            let clients: String = server.command(&["CLIENT", "LIST", "TYPE", "pubsub"]).await;
            clients.lines().count()
        };
        eventually("one connection is left", async || subscribers().await == 1).await;
        drop(there);
        eventually("none is left", async || subscribers().await == 0).await;
    })
    .await;
}

const LISTENERS: usize = 1000;
const CHANGES: usize = 50;

/// A client that listens to all resources, and which of them it has heard of since they last changed.
struct Listener {
    client: ScriptedClient,
    has_heard: [bool; CHANGES],
    has_heard_of_tools: bool,
}

impl Listener {
    fn new(server: &McpServer) -> Self {
        let mut client = ScriptedClient::new(server, Revision::V2026_07_28);
        let uris: Vec<String> = (0..CHANGES).map(uri).collect();
        let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": uris });
        client.start("subscriptions/listen", json!({ "notifications": filter }));
        client.expect_message("notifications/subscriptions/acknowledged");
        Self { client, has_heard: [false; CHANGES], has_heard_of_tools: false }
    }

    fn listen(&mut self) {
        self.client.run();
        while self.client.unread() > 0 {
            let (_, message) = self.client.next_routed();
            match message["method"].as_str() {
                Some("notifications/tools/list_changed") => self.has_heard_of_tools = true,
                Some("notifications/resources/updated") => {
                    let number = message["params"]["uri"].as_str().unwrap().trim_start_matches("frame:");
                    self.has_heard[number.parse::<usize>().unwrap()] = true;
                }
                _ => panic!("{message}"),
            }
        }
    }
}

fn uri(number: usize) -> String {
    format!("frame:{number}")
}

async fn instance(server: &Server) -> McpServer {
    let builder = McpServer::builder("farm", "1.0").resource_subscriptions().offers_tools();
    builder.change_bus(bus(server).await).build().unwrap()
}

/// A thousand listeners at another instance hear of each change after it happened, also of those while Redis is away for five
/// seconds: by the change itself, or because everything may have changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_listener_misses_a_change_without_being_told() {
    let Some(mut server) = Server::start().await else { return };
    limited(async {
        let (here, there) = (instance(&server).await, instance(&server).await);
        let mut listeners: Vec<Listener> = (0..LISTENERS).map(|_| Listener::new(&there)).collect();
        here.publish(&Change::Tools);
        while !listeners.iter().all(|listener| listener.has_heard_of_tools) {
            listeners.iter_mut().for_each(Listener::listen);
            sleep(Duration::from_millis(10)).await;
        }
        for listener in &mut listeners {
            assert_eq!(listener.has_heard, [false; CHANGES], "nothing else has changed");
            listener.has_heard_of_tools = false;
        }
        for number in 0..CHANGES {
            match number {
                10 => server.stop(),
                40 => server.restart().await,
                _ => {}
            }
            for listener in &mut listeners {
                listener.listen();
                // What was heard before is no news of this change.
                listener.has_heard[number] = false;
            }
            here.publish(&Change::Resource(uri(number)));
            sleep(Duration::from_millis(170)).await;
        }
        while !listeners.iter().all(|listener| listener.has_heard == [true; CHANGES]) {
            listeners.iter_mut().for_each(Listener::listen);
            sleep(Duration::from_millis(10)).await;
        }
        // Nobody has changed the list, and nobody knew.
        assert!(listeners.iter().all(|listener| listener.has_heard_of_tools));
        for listener in &mut listeners {
            listener.has_heard = [false; CHANGES];
        }
        here.publish(&Change::Resource(uri(7)));
        while !listeners.iter().all(|listener| listener.has_heard[7]) {
            listeners.iter_mut().for_each(Listener::listen);
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
