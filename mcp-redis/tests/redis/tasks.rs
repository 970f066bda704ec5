//! Tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use mcp_redis::{Redis, RedisTaskStore};
use mcp_tasks::{
    NewTask, QueueAction, ReplaceOutcome, StoredTask, TaskChange, TaskClaim, TaskId, TaskLimits, TaskOwner, TaskStart,
    TaskStore, TaskUsage, TaskWrite, store_tests,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::fixtures::{connect, connect_with, eventually, options};
use crate::server::{Server, Way, limited};

const LEASE: Duration = Duration::from_secs(60);

fn now() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "Redis has a clock of its own")]
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    u64::try_from(time.as_millis()).unwrap()
}

fn task(content: &str) -> StoredTask {
    StoredTask {
        owner: Some(TaskOwner([1; 32])),
        tool: "render".into(),
        expires: now() + 3_600_000,
        is_finished: false,
        content: content.to_owned().into(),
    }
}

async fn insert(store: &RedisTaskStore, content: &str) -> TaskId {
    let id = TaskId::random().unwrap();
    store.insert(now(), NewTask { id, task: task(content), start: TaskStart::Queued }).await.unwrap();
    id
}

fn write(read: u64, content: &str) -> TaskWrite {
    let (content, queue) = (content.to_owned().into(), QueueAction::Keep);
    TaskWrite { read, content, is_finished: false, queue, ticket: None }
}

async fn content(store: &RedisTaskStore, id: TaskId) -> Option<String> {
    let found = store.load(now(), id).await.unwrap()?;
    Some(String::from_utf8(found.task.content.to_vec()).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_a_store_of_tasks() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let number = AtomicU32::new(0);
        let make = async |limits: TaskLimits| {
            let prefix = format!("suite {}", number.fetch_add(1, Ordering::Relaxed));
            connect_with(&server, options().prefix(prefix)).await.tasks(limits)
        };
        store_tests::check_task_store(make, now, async |time| sleep(time).await).await;
    })
    .await;
}

/// A restart of Redis loses nothing that was acknowledged: records, the queue, leases, limits.
#[tokio::test]
async fn tasks_survive_a_restart_of_redis() {
    let Some(mut server) = Server::start_durable().await else { return };
    limited(async {
        let store = connect(&server).await.tasks(TaskLimits::default());
        let (running, parked, queued) =
            (insert(&store, "running").await, insert(&store, "parked").await, insert(&store, "queued").await);
        let ticket = store.claim(now(), TaskClaim::new("worker", LEASE)).await.unwrap().unwrap().ticket;
        let other = store.claim(now(), TaskClaim::new("worker", LEASE)).await.unwrap().unwrap().ticket;
        assert_eq!((ticket.id, other.id), (running, parked));
        let park = TaskWrite { queue: QueueAction::Done, ticket: Some(other), ..write(1, "asked") };
        assert_eq!(store.replace(now(), parked, park).await, Ok(ReplaceOutcome::Replaced(2)));
        let step = TaskWrite { ticket: Some(ticket), ..write(1, "a step") };
        assert_eq!(store.replace(now(), running, step).await, Ok(ReplaceOutcome::Replaced(2)));
        let before = store.usage(now()).await.unwrap();

        server.stop();
        assert!(store.load(now(), running).await.is_err());
        server.restart().await;
        eventually("tasks are found again", async || store.load(now(), running).await.is_ok()).await;
        assert_eq!(store.usage(now()).await, Ok(before));
        for (id, expected) in [(running, "a step"), (parked, "asked"), (queued, "queued")] {
            assert_eq!(content(&store, id).await.as_deref(), Some(expected));
        }
        assert_eq!(store.renew(now(), ticket, LEASE).await, Ok(true), "the lease goes on");
        let end = TaskWrite { is_finished: true, ticket: Some(ticket), ..write(2, "the end") };
        assert_eq!(store.replace(now(), running, end).await, Ok(ReplaceOutcome::Replaced(3)));
        let resume = TaskWrite { queue: QueueAction::Enqueue, ..write(2, "answered") };
        assert_eq!(store.replace(now(), parked, resume).await, Ok(ReplaceOutcome::Replaced(3)));
        for expected in [queued, parked] {
            let claimed = store.claim(now(), TaskClaim::new("worker", LEASE)).await.unwrap().unwrap();
            assert_eq!(claimed.ticket.id, expected);
        }
        assert_eq!(store.claim(now(), TaskClaim::new("worker", LEASE)).await, Ok(None));
    })
    .await;
}

/// After a failover that lost a claim, the next run has the same number, and the worker of the lost one cannot write.
#[tokio::test]
async fn lost_claims_are_not_accepted() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let store = connect(&server).await.tasks(TaskLimits::default());
        let id = insert(&store, "1").await;
        let mut dumps = Vec::new();
        for key in server.keys("*").await {
            let dump: Vec<u8> = server.command(&["DUMP", &key]).await;
            dumps.push((key, dump));
        }
        let lost = store.claim(now(), TaskClaim::new("worker", LEASE)).await.unwrap().unwrap().ticket;
        // As it was before the claim.
        for (key, dump) in dumps {
            server.restore(&key, &dump).await;
        }
        let next = store.claim(now(), TaskClaim::new("worker", LEASE)).await.unwrap().unwrap().ticket;
        assert_eq!((lost.run, next.run), (1, 1));
        assert_eq!(store.renew(now(), lost, LEASE).await, Ok(false));
        assert_eq!(store.release(now(), lost).await, Ok(false));
        let late = TaskWrite { ticket: Some(lost), ..write(1, "late") };
        assert_eq!(store.replace(now(), id, late).await, Ok(ReplaceOutcome::LeaseLost));
        assert_eq!(store.renew(now(), next, LEASE).await, Ok(true));
    })
    .await;
}

/// Redis that was emptied, with its scripts, is like a new one.
#[tokio::test]
async fn redis_may_be_emptied() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let store = connect(&server).await.tasks(TaskLimits::default());
        insert(&store, "lost").await;
        let ticket = store.claim(now(), TaskClaim::new("worker", LEASE)).await.unwrap().unwrap().ticket;
        let flush = async || {
            let _: redis::Value = server.command(&["FLUSHALL"]).await;
            let _: redis::Value = server.command(&["SCRIPT", "FLUSH"]).await;
        };
        flush().await;
        assert_eq!(store.renew(now(), ticket, LEASE).await, Ok(false));
        assert_eq!(
            store.claim(now(), TaskClaim::new("worker", LEASE)).await,
            Ok(None),
            "there is no group, and no error"
        );
        flush().await;
        assert_eq!(store.usage(now()).await, Ok(TaskUsage::default()));
        flush().await;
        let id = insert(&store, "new").await;
        let ticket = store.claim(now(), TaskClaim::new("worker", LEASE)).await.unwrap().unwrap().ticket;
        assert_eq!(ticket.id, id);
        // Only the queue is lost: those that were in it are not, once they are written.
        let keys = server.keys("*tasks:queue").await;
        let _: i64 = server.command(&["DEL", &keys[0]]).await;
        assert_eq!(store.claim(now(), TaskClaim::new("worker", LEASE)).await, Ok(None));
        assert_eq!(store.release(now(), ticket).await, Ok(true));
        assert_eq!(store.claim(now(), TaskClaim::new("worker", LEASE)).await.unwrap().unwrap().ticket.id, id);
    })
    .await;
}

/// Whoever waits for a change learns that some may be missing, after Redis was away.
#[tokio::test]
async fn changes_have_gaps_when_redis_was_away() {
    let Some(mut server) = Server::start_durable().await else { return };
    limited(async {
        let (mine, other) = (connect(&server).await, connect(&server).await);
        let (store, other) = (mine.tasks(TaskLimits::default()), other.tasks(TaskLimits::default()));
        let mut changes = store.changes();
        let next = async |changes: &mut mcp_tasks::TaskChanges| {
            timeout(Duration::from_secs(10), changes.next()).await.expect("a change is reported").unwrap()
        };
        assert_eq!(next(&mut changes).await, TaskChange::Gap, "it was not subscribed before");
        // A change of another instance.
        let id = insert(&other, "1").await;
        assert_eq!(next(&mut changes).await, TaskChange::Queued);
        assert_eq!(other.replace(now(), id, write(1, "2")).await, Ok(ReplaceOutcome::Replaced(2)));
        assert_eq!(next(&mut changes).await, TaskChange::Changed(id));
        server.stop();
        server.restart().await;
        assert_eq!(next(&mut changes).await, TaskChange::Gap);
        eventually("changes are written", async || other.load(now(), id).await.is_ok()).await;
        assert_eq!(other.replace(now(), id, write(2, "3")).await, Ok(ReplaceOutcome::Replaced(3)));
        assert_eq!(next(&mut changes).await, TaskChange::Changed(id));

        // The subscription ends with its store.
        let clients = async || -> String { server.command(&["CLIENT", "LIST", "TYPE", "pubsub"]).await };
        eventually("both are subscribed again", async || clients().await.lines().count() == 2).await;
        drop((store, other));
        eventually("nobody is subscribed", async || clients().await.is_empty()).await;
    })
    .await;
}

/// A subscription on which nothing comes any more, and which nobody closes, is replaced.
#[tokio::test]
async fn silent_subscriptions_are_replaced() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let way = Way::to(&server).await;
        let options = options().command_timeout(Duration::from_millis(400));
        let store = Redis::connect(&way.url(), options).await.unwrap().tasks(TaskLimits::default());
        let mut changes = store.changes();
        assert_eq!(changes.next().await, Some(TaskChange::Gap));
        let other = connect(&server).await.tasks(TaskLimits::default());
        way.silence();
        let id = insert(&other, "1").await;
        assert_eq!(changes.next().await, Some(TaskChange::Gap), "a change was missed");
        assert_eq!(other.replace(now(), id, write(1, "2")).await, Ok(ReplaceOutcome::Replaced(2)));
        assert_eq!(changes.next().await, Some(TaskChange::Changed(id)));
    })
    .await;
}

#[tokio::test]
async fn prefixes_of_tasks_do_not_mix() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let prefixes = ["mcp", "mcp}:tasks", "", "{mcp}", "mcp:*"];
        let mut all = Vec::new();
        for prefix in prefixes {
            let store = connect_with(&server, options().prefix(prefix)).await.tasks(TaskLimits::default());
            assert_eq!(store.usage(now()).await, Ok(TaskUsage::default()), "{prefix}");
            let id = insert(&store, prefix).await;
            all.push((store, id));
        }
        for ((store, id), prefix) in all.iter().zip(prefixes) {
            assert_eq!(content(store, *id).await.as_deref(), Some(prefix));
            assert_eq!(store.usage(now()).await.unwrap().kept, 1);
            for (_, other) in all.iter().filter(|(_, other)| other != id) {
                assert_eq!(content(store, *other).await, None);
            }
            assert_eq!(store.claim(now(), TaskClaim::new("worker", LEASE)).await.unwrap().unwrap().ticket.id, *id);
            assert_eq!(store.claim(now(), TaskClaim::new("worker", LEASE)).await, Ok(None));
        }
        for key in server.keys("*").await {
            let expires: i64 = server.command(&["PTTL", &key]).await;
            assert!(expires > 0, "{key} goes by itself");
        }
    })
    .await;
}

/// A proxy that passes requests on and, when it is told to, closes a connection instead of passing a response on.
async fn losing_proxy(server: &Server) -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}/", listener.local_addr().unwrap());
    let target = server.url().trim_start_matches("redis://").trim_end_matches('/').to_owned();
    let loses = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&loses);
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(&target).await.unwrap();
            let ((mut near_in, mut near_out), (mut far_in, mut far_out)) = (near.into_split(), far.into_split());
            let flag = Arc::clone(&flag);
            tokio::spawn(async move { copy(&mut near_in, &mut far_out).await });
            tokio::spawn(async move {
                let mut buffer = vec![0; 65_536];
                while let Ok(count @ 1..) = far_in.read(&mut buffer).await {
                    // A message of a subscription begins with `>`.
                    let is_lost = buffer[0] != b'>' && flag.swap(false, Ordering::SeqCst);
                    if is_lost || near_out.write_all(&buffer[..count]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (url, loses)
}

/// A write whose response is lost is sent again, and takes effect once.
#[tokio::test]
async fn lost_responses_do_no_harm() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let (url, loses) = losing_proxy(&server).await;
        let observer = connect(&server).await.tasks(TaskLimits::default());
        let store = Redis::connect(&url, options()).await.unwrap().tasks(TaskLimits::default());
        assert_eq!(store.changes().next().await, Some(TaskChange::Gap), "the subscription expects no response");
        let lose = || loses.store(true, Ordering::SeqCst);
        let is_lost = || assert!(!loses.load(Ordering::SeqCst), "a response was lost");

        let id = TaskId::random().unwrap();
        let start = TaskStart::Claimed { worker: "worker".into(), lease: LEASE };
        lose();
        let inserted = store.insert(now(), NewTask { id, task: task("1"), start }).await.unwrap();
        is_lost();
        let ticket = inserted.ticket.unwrap();
        assert_eq!(observer.usage(now()).await.unwrap().claimed, 1);
        for version in 1..4 {
            let step = TaskWrite { ticket: Some(ticket), ..write(version, &format!("step {version}")) };
            lose();
            assert_eq!(store.replace(now(), id, step).await, Ok(ReplaceOutcome::Replaced(version + 1)));
            is_lost();
        }
        // The last write of a run ends its lease, and is recognised nevertheless.
        let end = TaskWrite { ticket: Some(ticket), is_finished: true, ..write(4, "the end") };
        lose();
        assert_eq!(store.replace(now(), id, end).await, Ok(ReplaceOutcome::Replaced(5)));
        is_lost();
        let found = observer.load(now(), id).await.unwrap().unwrap();
        assert_eq!((&found.task.content[..], found.version, found.run), (&b"the end"[..], 5, 1));
        let expected = TaskUsage { kept: 1, unfinished: 0, queued: 0, claimed: 0, bytes: 7 };
        assert_eq!(observer.usage(now()).await, Ok(expected));
    })
    .await;
}

/// A task is found behind any number of tasks that began with their worker.
#[tokio::test]
async fn tasks_are_found_behind_others() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let store = connect(&server).await.tasks(TaskLimits::default());
        for _ in 0..300 {
            let start = TaskStart::Claimed { worker: "worker".into(), lease: LEASE };
            let task = StoredTask { owner: None, ..task("running") };
            store.insert(now(), NewTask { id: TaskId::random().unwrap(), task, start }).await.unwrap();
        }
        let queued = insert(&store, "queued").await;
        let claimed = store.claim(now(), TaskClaim::new("worker", LEASE)).await.unwrap();
        assert_eq!(claimed.map(|claimed| claimed.ticket.id), Some(queued));
    })
    .await;
}

/// Claims in vain do not look at all leases each time, and a lease that has expired is found all the same.
#[tokio::test]
async fn leases_are_looked_at_now_and_then() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let store = connect(&server).await.tasks(TaskLimits::default());
        for _ in 0..200 {
            let start = TaskStart::Claimed { worker: "worker".into(), lease: LEASE };
            let task = StoredTask { owner: None, ..task("running") };
            store.insert(now(), NewTask { id: TaskId::random().unwrap(), task, start }).await.unwrap();
        }
        let scans = async || -> u64 {
            let info: String = server.command(&["INFO", "commandstats"]).await;
            let line = info.lines().find(|line| line.starts_with("cmdstat_xautoclaim:")).expect("there are scans");
            line.split(['=', ',']).nth(1).unwrap().parse().unwrap()
        };
        assert_eq!(store.claim(now(), TaskClaim::new("worker", LEASE)).await, Ok(None));
        let before = scans().await;
        for _ in 0..50 {
            assert_eq!(store.claim(now(), TaskClaim::new("worker", LEASE)).await, Ok(None));
        }
        assert_eq!(scans().await - before, 50, "one each");
        let lease = Duration::from_millis(500);
        eventually("the leases expire", async || {
            store
                .claim(now(), TaskClaim::new("worker", lease))
                .await
                .unwrap()
                .is_some_and(|claimed| claimed.is_taken_over)
        })
        .await;
    })
    .await;
}

/// Pages of large tasks have fewer of them, and none is missing.
#[tokio::test]
async fn pages_are_limited_in_bytes() {
    let Some(server) = Server::start().await else { return };
    limited(async {
        let store = connect(&server).await.tasks(TaskLimits::default());
        let large = "x".repeat(400 * 1024);
        for _ in 0..10 {
            insert(&store, &large).await;
        }
        let (mut after, mut pages) = (None, Vec::new());
        loop {
            let page = store.list(now(), TaskOwner([1; 32]), after, 100).await.unwrap();
            pages.push(page.tasks.len());
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(pages, [3, 3, 3, 1]);
    })
    .await;
}
