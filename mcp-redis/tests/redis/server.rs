//! A Redis server of a test's own.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// Listens on a port of 127.0.0.1, keeps nothing on a disk unless it is durable, and ends with this value.
pub(crate) struct Server {
    child: Child,
    port: u16,
    directory: PathBuf,
    arguments: Vec<String>,
}

impl Server {
    /// Starts one. Nothing, if the tests were told to do without.
    pub(crate) async fn start() -> Option<Self> {
        Self::start_with(|_| Vec::new()).await
    }

    /// Starts one with an append-only file: what it has acknowledged survives a restart.
    pub(crate) async fn start_durable() -> Option<Self> {
        // With `everysec` it may respond up to two seconds before it writes.
        let durable = ["--appendonly", "yes", "--appendfsync", "always"];
        Self::start_with(|_| durable.map(str::to_owned).to_vec()).await
    }

    /// Starts one with further arguments, which may depend on its port.
    pub(crate) async fn start_with(arguments: impl Fn(u16) -> Vec<String>) -> Option<Self> {
        if Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_err() {
            let is_allowed = std::env::var_os("MCP_WITHOUT_REDIS").is_some() && std::env::var_os("CI").is_none();
            assert!(
                is_allowed,
                "redis-server is missing: install it (Debian: apt-get install redis-server), \
                 or set MCP_WITHOUT_REDIS=1 to skip what needs it, which CI does not allow"
            );
            // Past the harness, which does not show what tests print that do not fail.
            let text = b"NOT RUN: redis-server is missing, and MCP_WITHOUT_REDIS is set\n";
            std::io::stderr().write_all(text).unwrap();
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("mcp-redis-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        // A port that is free now may be taken by the time it is used; then there is another.
        for _ in 0..10 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            std::fs::create_dir_all(&directory).unwrap();
            let arguments = arguments(port);
            let child = spawn(port, &directory, &arguments);
            let mut server = Self { child, port, directory: directory.clone(), arguments };
            if server.is_ready().await {
                return Some(server);
            }
        }
        panic!("redis-server does not start")
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again on the same port, after it was stopped.
    pub(crate) async fn restart(&mut self) {
        self.child = spawn(self.port, &self.directory, &self.arguments);
        assert!(self.is_ready().await, "redis-server does not start again");
    }

    /// Lets it hang: its port takes connections, and nothing is read from them.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").arg(signal).arg(self.child.id().to_string()).status().unwrap().success());
    }

    /// Does a command past what is tested.
    pub(crate) async fn command<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut command = redis::Cmd::new();
        words.iter().for_each(|word| {
            command.arg(word);
        });
        command.query_async(&mut connection).await.unwrap()
    }

    /// Replaces a key by its earlier content.
    pub(crate) async fn restore(&self, key: &str, dump: &[u8]) {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut command = redis::cmd("RESTORE");
        command.arg(key).arg(0).arg(dump).arg("REPLACE");
        command.query_async::<()>(&mut connection).await.unwrap();
    }

    pub(crate) async fn keys(&self, pattern: &str) -> Vec<String> {
        self.command(&["KEYS", pattern]).await
    }

    /// Waits for it to answer; false if it has ended instead.
    async fn is_ready(&mut self) -> bool {
        let end = Instant::now() + Duration::from_secs(20);
        let client = redis::Client::open(self.url()).unwrap();
        while Instant::now() < end {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            // It has to be this one that answers, and no other that was faster to take the port.
            if let Ok(mut connection) = client.get_multiplexed_async_connection().await
                && let Ok(info) = redis::cmd("INFO").arg("server").query_async::<String>(&mut connection).await
            {
                return info.contains(&format!("process_id:{}\r\n", self.child.id()));
            }
            sleep(Duration::from_millis(20)).await;
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn spawn(port: u16, directory: &std::path::Path, arguments: &[String]) -> Child {
    Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .arg("--dir")
        .arg(directory)
        .args(arguments)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// A way to a server on which things can get lost.
pub(crate) struct Way {
    port: u16,
    /// How often it has gone silent. A connection from before carries nothing any more, and stays open.
    silences: watch::Sender<u32>,
}

impl Way {
    pub(crate) async fn to(server: &Server) -> Self {
        let (listener, target) = (tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap(), server.port);
        let way = Self { port: listener.local_addr().unwrap().port(), silences: watch::Sender::new(0) };
        let silences = way.silences.subscribe();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut silence = silences.clone();
                silence.mark_unchanged();
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(("127.0.0.1", target)).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        // Both ends stay open until the test is over.
                        _ = silence.changed() => std::future::pending().await,
                    }
                });
            }
        });
        way
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub(crate) fn silence(&self) {
        self.silences.send_modify(|count| *count += 1);
    }
}

/// Does not let a test hang.
pub(crate) async fn limited(test: impl Future<Output = ()>) {
    timeout(Duration::from_secs(60), test).await.expect("the test ends within a minute");
}
