//! Many processes with many tasks share a login whose tokens live two seconds, at an authorization server that ends the login if a
//! refresh token is used twice. Some are killed in the middle of a refresh.
//!
//! It runs for some seconds with three processes. `MCP_AUTH_FIRE=60` makes it eight processes with eight tasks each, for 60 seconds.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what helps a test may fail like one")]

mod support;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_auth::authorizer::OAuth;
use mcp_auth::store::FileStore;
use mcp_client::Client;
use mcp_transport_http::HttpTransport;
use support::{Agreeing, Servers};
use tokio::time::Instant;

/// Set for the processes that make calls: the URL of the server, the path of the store, the number of tasks, and the seconds.
const WORKER: &str = "MCP_AUTH_FIRE_WORKER";

/// How much fire there is.
#[derive(Clone, Copy)]
struct Load {
    processes: usize,
    tasks: usize,
    time: Duration,
}

impl Load {
    fn from_environment() -> Self {
        match std::env::var("MCP_AUTH_FIRE").ok().and_then(|seconds| seconds.parse().ok()) {
            Some(seconds) => Self { processes: 8, tasks: 8, time: Duration::from_secs(seconds) },
            None => Self { processes: 3, tasks: 4, time: Duration::from_secs(7) },
        }
    }
}

/// Not a test of its own: what the processes of the tests below run.
#[test]
fn worker() {
    let Ok(settings) = std::env::var(WORKER) else { return };
    let settings: Vec<_> = settings.split('\n').collect();
    let [server, store, tasks, seconds] = settings[..] else { panic!("{settings:?}") };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let time = Duration::from_millis(seconds.parse().unwrap());
    runtime.block_on(make_calls(server, store.into(), tasks.parse().unwrap(), time));
}

async fn make_calls(server: &str, store: PathBuf, tasks: usize, time: Duration) {
    let end = Instant::now() + time;
    let oauth = OAuth::builder(server)
        .prompt(Agreeing::default())
        .store(FileStore::new(store))
        // The server kills by it.
        .http_client(|client| client.user_agent(std::process::id().to_string()))
        .build()
        .unwrap();
    let client = Client::connect(HttpTransport::new(server).unwrap().authorizer(oauth)).await.unwrap();
    let tasks = (0..tasks).map(|index| {
        let client = client.clone();
        tokio::spawn(async move {
            let mut calls = 0;
            while Instant::now() < end {
                let result = client.call_tool("ping").await;
                assert_eq!(result.expect("no call fails").to_text(), "pong");
                calls += 1;
                tokio::time::sleep(Duration::from_millis(20 + index as u64)).await;
            }
            calls
        })
    });
    let mut calls = 0;
    for task in tasks.collect::<Vec<_>>() {
        calls += task.await.expect("no task fails");
    }
    assert!(calls > 0);
}

/// A directory that is removed at the end of the test.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start_worker(servers: &Servers, directory: &Directory, load: Load, time: Duration) -> Child {
    let store = directory.0.join("logins.json");
    let settings =
        [servers.server(), store.display().to_string(), load.tasks.to_string(), time.as_millis().to_string()];
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "worker", "--nocapture"])
        .env(WORKER, settings.join("\n"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for a process, and returns whether it ended by itself. Panics if one of its calls failed.
async fn finish(worker: Child) -> bool {
    let output = tokio::task::spawn_blocking(move || worker.wait_with_output().unwrap()).await.unwrap();
    let Some(code) = output.status.code() else { return false };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(code, 0, "{}\n{}", text(&output.stdout), text(&output.stderr));
    true
}

async fn servers(name: &str) -> (Servers, Directory) {
    let directory = Directory(std::env::temp_dir().join(format!("mcp-auth-fire-{}-{name}", std::process::id())));
    let _ = std::fs::remove_dir_all(&directory.0);
    let servers = Servers::start().await;
    servers.ledger().lifetime = Duration::from_secs(2);
    servers.ledger().delay = Duration::from_millis(5);
    (servers, directory)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_and_no_refresh_token_is_used_twice() {
    let (servers, directory) = servers("shared").await;
    let load = Load::from_environment();
    let workers: Vec<_> = (0..load.processes).map(|_| start_worker(&servers, &directory, load, load.time)).collect();
    for worker in workers {
        assert!(finish(worker).await);
    }
    let ledger = servers.ledger();
    println!("{} calls, {} refreshes, {} requests with an old token", ledger.calls, ledger.refreshes, ledger.refusals);
    assert_eq!((ledger.logins, ledger.reuses), (1, 0), "one login, and no reuse");
    // With one refresh for all processes, there is about one in one and a half seconds.
    let seconds = usize::try_from(load.time.as_secs()).unwrap();
    assert!((seconds / 4..=seconds * 2).contains(&ledger.refreshes), "{} refreshes", ledger.refreshes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed_in_the_middle_of_a_refresh_costs_one_login_at_most() {
    let (servers, directory) = servers("killed").await;
    let load = Load::from_environment();
    let killed = Arc::new(Mutex::new(Vec::new()));
    let (refreshes, is_armed) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(true)));
    let on_refresh = {
        let (killed, is_armed) = (Arc::clone(&killed), Arc::clone(&is_armed));
        move |agent: &str| {
            // The refresh token has been replaced, and the process will not learn of it: the worst moment.
            if refreshes.fetch_add(1, Ordering::SeqCst) % 2 == 1 && is_armed.load(Ordering::SeqCst) {
                let process = rustix::process::Pid::from_raw(agent.parse().unwrap()).unwrap();
                rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
                killed.lock().unwrap().push(agent.to_owned());
            }
        }
    };
    servers.ledger().on_refresh = Some(Arc::new(on_refresh));
    let start = Instant::now();
    let mut workers: Vec<_> =
        (0..load.processes).map(|_| start_worker(&servers, &directory, load, load.time)).collect();
    // As many processes are killed as there can be without leaving only one, and others are started in their place.
    let most_kills = load.processes.max(4) - 1;
    while start.elapsed() < load.time {
        let count = killed.lock().unwrap().len();
        if count >= most_kills {
            is_armed.store(false, Ordering::SeqCst);
        }
        if workers.len() < load.processes + count.min(most_kills) {
            let left = load.time.saturating_sub(start.elapsed());
            workers.push(start_worker(&servers, &directory, load, left.max(Duration::from_secs(1))));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    is_armed.store(false, Ordering::SeqCst);
    let mut ended = 0;
    for worker in workers {
        ended += usize::from(finish(worker).await);
    }
    let kills = killed.lock().unwrap().len();
    let ledger = servers.ledger();
    println!("{kills} killed, {} logins, {} calls, {} refreshes", ledger.logins, ledger.calls, ledger.refreshes);
    assert!(kills > 0 && ended >= 1, "{kills} were killed, {ended} ended by themselves");
    assert!(ledger.logins <= 1 + kills, "{} logins after {kills} kills", ledger.logins);
}
