//! The official clients and the client of `rmcp` drive the fixture server over HTTP: modern, and legacy with sessions and
//! without.
//!
//! What they check is in `interop/README.md`. `interop/install` has to be run before. The client of `rmcp` is built
//! here: it belongs to another workspace, so that `rmcp` is no dependency of this one.

mod interop;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use interop::{ALONE, SERVER, drive, run, script};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// A server that runs, and its address.
struct Served {
    server: Child,
    url: String,
}

impl Served {
    async fn start(sessions: &str) -> Self {
        let mut command = Command::new(SERVER);
        command.args(["--http", "127.0.0.1:0", "--sessions", sessions]).stdout(Stdio::piped()).kill_on_drop(true);
        let mut server = command.spawn().expect("the server can be started");
        let mut url = String::new();
        let mut said = BufReader::new(server.stdout.take().expect("its output is piped"));
        let read = timeout(Duration::from_secs(10), said.read_line(&mut url)).await;
        read.expect("the server says where it is").expect("its output can be read");
        assert!(url.starts_with("http://"), "{url}");
        Self { server, url: url.trim().to_owned() }
    }

    /// Tells the server to end. Nothing is at work any more, so it does at once.
    async fn end(mut self) {
        let id = self.server.id().expect("the server still runs");
        run(Command::new("kill").args(["-s", "TERM", &id.to_string()]), Duration::from_secs(10)).await;
        let ended = timeout(Duration::from_secs(2), self.server.wait()).await;
        let status = ended.expect("nothing keeps the server from ending").expect("it can be waited for");
        assert!(status.success(), "{status}");
    }
}

#[tokio::test]
async fn python() {
    let _alone = ALONE.lock().await;
    let served = Served::start("stateless").await;
    drive(script("python/bin/python", "python/drive.py").args(["--url", &served.url]), 309).await;
    served.end().await;
}

#[tokio::test]
async fn typescript() {
    let _alone = ALONE.lock().await;
    let served = Served::start("stateless").await;
    drive(script("bin/node", "typescript/drive.mjs").args(["--url", &served.url]), 305).await;
    served.end().await;
}

#[tokio::test]
async fn python_with_sessions() {
    let _alone = ALONE.lock().await;
    let served = Served::start("stateful").await;
    drive(script("python/bin/python", "python/drive.py").args(["--url", &served.url, "--sessions"]), 321).await;
    served.end().await;
}

#[tokio::test]
async fn typescript_with_sessions() {
    let _alone = ALONE.lock().await;
    let served = Served::start("stateful").await;
    drive(script("bin/node", "typescript/drive.mjs").args(["--url", &served.url, "--sessions"]), 317).await;
    served.end().await;
}

#[tokio::test]
async fn rmcp() {
    let _alone = ALONE.lock().await;
    let client = build_rmcp_client().await;
    let served = Served::start("stateless").await;
    drive(Command::new(client).arg(&served.url), 256).await;
    served.end().await;
}

/// Builds the client below the directory that this test was built in.
async fn build_rmcp_client() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../peers/Cargo.toml");
    let target = Path::new(SERVER).ancestors().nth(2).expect("the profile has a directory").join("interop/peers");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--locked", "--package", "rmcp-http", "--manifest-path"]).arg(manifest);
    cargo.arg("--target-dir").arg(&target);
    let built = run(&mut cargo, Duration::from_secs(600)).await;
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    target.join("debug/rmcp-http")
}
