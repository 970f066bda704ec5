//! Servers as processes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_transport_http::{AuthorizationError, Authorizer, Challenge, Credential, HttpTransport, async_trait};
use mcp_transport_stdio::{ChildTransport, ServerCommand, Stderr};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::peer::{Peer, Program};

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Via {
    Stdio,
    Http,
    Sse,
}

/// The lines that servers write to their standard error.
#[derive(Clone, Default)]
pub(crate) struct Complaints(Arc<Mutex<Vec<String>>>);

impl Complaints {
    fn add(&self, line: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many calls were cancelled.
    pub(crate) fn cancelled(&self) -> usize {
        self.all().iter().filter(|line| *line == "cancelled").count()
    }

    /// The processes that were started.
    pub(crate) fn processes(&self) -> Vec<String> {
        self.all().iter().filter_map(|line| line.strip_prefix(PROCESS)).map(str::to_owned).collect()
    }
}

/// Begins a line that tells the number of the process.
const PROCESS: &str = "this is process ";

/// A server to connect to: one that runs already, or one that is started by each client.
pub(crate) struct Server {
    command: Vec<OsString>,
    via: Via,
    /// The process and its address, if it runs already. It ends when its input does.
    running: Option<(Child, String)>,
    pub(crate) complaints: Complaints,
}

impl Server {
    /// Starts a server; it serves some revisions only, if it is ours and told so.
    pub(crate) async fn start(peer: &Peer, via: Via, revisions: &[&str]) -> Self {
        let mut command = command(&peer.program).await;
        let mode = match via {
            Via::Stdio => "--stdio",
            Via::Http => "--http",
            Via::Sse => "--sse",
        };
        command.push(mode.into());
        command.extend(revisions.iter().map(OsString::from));
        let mut server = Self { command, via, running: None, complaints: Complaints::default() };
        if via != Via::Stdio {
            server.run().await;
        }
        server
    }

    async fn run(&mut self) {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().expect("the server can be started");
        let mut complaining = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let complaints = self.complaints.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = complaining.next_line().await {
                complaints.add(&line);
            }
        });
        let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        let read = timeout(Duration::from_secs(60), said.read_line(&mut line)).await;
        read.expect("the server says where it is").expect("its output can be read");
        let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}"));
        self.running = Some((child, url.to_owned()));
    }

    /// A way to a new process.
    pub(crate) fn child(&self) -> ChildTransport {
        assert_eq!(self.via, Via::Stdio);
        // The shell becomes the server, and has the same number.
        let script = format!("echo \"{PROCESS}$$\" >&2; exec \"$0\" \"$@\"");
        let complaints = self.complaints.clone();
        let stderr = Stderr::lines(move |line| complaints.add(line));
        ChildTransport::new(ServerCommand::new("sh").arg("-c").arg(script).args(&self.command).stderr(stderr))
    }

    /// A way to the process that runs already.
    pub(crate) fn http(&self, requests: &Requests) -> HttpTransport {
        let (_, url) = self.running.as_ref().expect("it runs");
        let transport = HttpTransport::new(url).expect("the address is valid");
        transport.authorizer(requests.clone()).reconnect_interval(Duration::from_millis(50))
    }

    pub(crate) fn via(&self) -> Via {
        self.via
    }
}

/// Counts requests: whoever might have something to show is asked before each.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<usize>>);

impl Requests {
    pub(crate) fn count(&self) -> usize {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Authorizer for Requests {
    async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Ok(None)
    }

    async fn challenged(&self, _: &Challenge) -> Result<Option<Credential>, AuthorizationError> {
        Ok(None)
    }
}

async fn command(program: &Program) -> Vec<OsString> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    match program {
        Program::Script { interpreter, script } => {
            let interpreter = package.join("../target/interop").join(interpreter);
            assert!(interpreter.exists(), "{} is missing: run `bash tests/interop/install`", interpreter.display());
            vec![interpreter.into(), package.join("interop/servers").join(script).into()]
        }
        Program::Rmcp => {
            static BUILT: OnceCell<PathBuf> = OnceCell::const_new();
            vec![BUILT.get_or_init(build_rmcp).await.into()]
        }
        Program::Ours => vec![OURS.into()],
    }
}

const OURS: &str = env!("CARGO_BIN_EXE_interop-server");

/// Builds the server of `rmcp` below the directory that this test was built in. It belongs to another workspace, so that
/// `rmcp` is no dependency of this one.
async fn build_rmcp() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../peers/Cargo.toml");
    let target = Path::new(OURS).ancestors().nth(2).expect("the profile has a directory").join("interop/peers");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--locked", "--package", "interop-rmcp", "--manifest-path"]).arg(manifest);
    cargo.arg("--target-dir").arg(&target).kill_on_drop(true);
    let built = timeout(Duration::from_secs(600), cargo.output()).await;
    let built = built.expect("it is built within its limit").expect("cargo can be run");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    target.join("debug/interop-rmcp")
}
