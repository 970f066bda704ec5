//! Servers as child processes on every system, played by this program itself.
//!
//! Each process connects to a socket of the test and keeps the connection open for as long as it lives, so its end can
//! be seen on every system. Every wait has a limit, so that a fault is a failure and not a hang.
#![cfg(all(feature = "client", feature = "server"))]

use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use mcp_client::{Client, CloseReason, Error};
use mcp_server::Server;
use mcp_transport_stdio::{ChildTransport, Line, LineReader, ServerCommand, ShutdownTimeouts, Stderr, serve_stdio};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What the tests start: this program, as the process that `ROLE` names.
#[test]
fn a_process() {
    match std::env::var("ROLE").as_deref() {
        Err(_) => {}
        // Serves, and ends with its input. What it started does not.
        Ok("obedient") => {
            let _connection = connect("obedient");
            let _grandchild = start("sleeper");
            serve();
            std::process::exit(3);
        }
        // Serves, and stays when its input ends. So does what it started.
        Ok("stubborn") => {
            let _connection = connect("stubborn");
            let mut grandchild = start("sleeper");
            serve();
            grandchild.wait().expect("a status");
        }
        Ok("sleeper") => {
            let _connection = connect("sleeper");
            sleep();
        }
        // A client that is killed before it can drop anything.
        Ok("client") => {
            let _connection = connect("client");
            let _server = runtime().block_on(async { process("stubborn", &address()).spawn().expect("a server") });
            sleep();
        }
        Ok("variables") => {
            for (name, value) in std::env::vars() {
                println!("{name}={value}");
            }
            std::process::exit(0);
        }
        Ok(role) => panic!("there is no role {role}"),
    }
}

/// What is needed to start this program again.
const ARGUMENTS: [&str; 5] = ["--exact", "a_process", "--nocapture", "--test-threads", "2"];

fn address() -> String {
    std::env::var("ADDRESS").expect("the address of the test")
}

fn connect(role: &str) -> std::net::TcpStream {
    let mut stream = std::net::TcpStream::connect(address()).expect("the test listens");
    stream.write_all(format!("{role}\n").as_bytes()).expect("the test reads");
    stream
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn serve() {
    let server = Server::builder("test", "1").build().expect("a server");
    runtime().block_on(serve_stdio(server)).expect("no fault");
}

/// Starts a process that nobody looks after.
fn start(role: &str) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(ARGUMENTS).env("ROLE", role).stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("a process")
}

#[expect(clippy::disallowed_methods, reason = "a process that does nothing")]
fn sleep() {
    std::thread::sleep(10 * LIMIT);
}

fn process(role: &str, address: &str) -> ServerCommand {
    let spawn = ServerCommand::new(std::env::current_exe().expect("this program")).args(ARGUMENTS);
    spawn.env("ROLE", role).env("ADDRESS", address).stderr(Stderr::Discard)
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("within the limit of a test")
}

/// Where processes say that they live.
struct Registry {
    listener: TcpListener,
    living: BTreeMap<String, TcpStream>,
}

impl Registry {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
        Self { listener, living: BTreeMap::new() }
    }

    fn process(&self, role: &str) -> ServerCommand {
        process(role, &self.address())
    }

    fn address(&self) -> String {
        self.listener.local_addr().expect("an address").to_string()
    }

    /// Waits until these processes live.
    async fn living(&mut self, roles: &[&str]) {
        while !roles.iter().all(|role| self.living.contains_key(*role)) {
            let (stream, _) = within(self.listener.accept()).await.expect("a connection");
            let (mut stream, mut role) = (BufReader::new(stream), String::new());
            within(stream.read_line(&mut role)).await.expect("a role");
            self.living.insert(role.trim().to_owned(), stream.into_inner());
        }
    }

    /// Waits until all of them are gone.
    ///
    /// For less than the minute after which the test harness complains on a closed output, and ends.
    async fn gone(mut self) {
        while let Some((role, mut stream)) = self.living.pop_first() {
            let end = tokio::time::timeout(LIMIT / 2, stream.read(&mut [0])).await;
            // A process that is killed may leave an end or a reset.
            assert!(matches!(end, Ok(Ok(0) | Err(_))), "the process `{role}` lives on");
        }
    }
}

fn patient() -> ShutdownTimeouts {
    ShutdownTimeouts::default().stdin_timeout(LIMIT).terminate_timeout(LIMIT).kill_timeout(LIMIT)
}

fn hasty() -> ShutdownTimeouts {
    patient().stdin_timeout(SHORT).terminate_timeout(SHORT)
}

#[tokio::test]
async fn shutting_down_ends_the_server_and_what_it_started() {
    for (role, timeouts) in [("obedient", patient()), ("stubborn", hasty())] {
        let mut registry = Registry::new().await;
        let server = registry.process(role).spawn().expect("a server");
        registry.living(&[role, "sleeper"]).await;
        let status = within(server.shutdown(timeouts)).await.expect("it ends");
        assert_eq!(status.code() == Some(3), role == "obedient", "{status}");
        registry.gone().await;
    }
}

#[tokio::test]
async fn dropping_ends_the_server_and_what_it_started() {
    let mut registry = Registry::new().await;
    let server = registry.process("stubborn").spawn().expect("a server");
    registry.living(&["stubborn", "sleeper"]).await;
    drop(server);
    registry.gone().await;
}

#[tokio::test]
async fn what_a_server_started_ends_with_it() {
    let mut registry = Registry::new().await;
    let mut server = registry.process("obedient").spawn().expect("a server");
    registry.living(&["obedient", "sleeper"]).await;
    drop(server.take_stdin());
    let exited = within(server.wait()).await.expect("it ends");
    assert_eq!(exited.code(), Some(3));
    registry.gone().await;
}

#[tokio::test]
async fn closing_the_client_ends_the_server_and_what_it_started() {
    for (role, timeouts) in [("obedient", patient()), ("stubborn", hasty())] {
        for closes in [true, false] {
            let mut registry = Registry::new().await;
            let transport = ChildTransport::new(registry.process(role)).shutdown_timeouts(timeouts);
            let client = within(Client::connect(transport)).await.expect("a connection");
            registry.living(&[role, "sleeper"]).await;
            if closes {
                assert_eq!(within(client.close()).await, CloseReason::ByClient);
            } else {
                drop(client);
            }
            registry.gone().await;
        }
    }
}

/// On Unix nothing tells the processes that their client was killed, other than the end of their input.
#[cfg(windows)]
#[tokio::test]
async fn killing_the_client_process_ends_the_server_and_what_it_started() {
    let mut registry = Registry::new().await;
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(ARGUMENTS).env("ROLE", "client").env("ADDRESS", registry.address()).stdin(Stdio::null());
    let mut client = command.spawn().expect("a client");
    registry.living(&["client", "stubborn", "sleeper"]).await;
    client.kill().expect("it can be killed");
    client.wait().expect("it ends");
    registry.gone().await;
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let transport = ChildTransport::new(ServerCommand::new("/nonexistent/server"));
    let error = within(Client::connect(transport)).await.expect_err("no connection");
    assert!(matches!(error, Error::Closed(CloseReason::Disconnected(_))), "{error}");
    assert!(error.to_string().contains("`/nonexistent/server` could not be started: "), "{error}");
}

/// The variables that a server has, without those of the test itself.
async fn variables(spawn: ServerCommand) -> BTreeMap<String, String> {
    let mut server = spawn.env("ROLE", "variables").stderr(Stderr::Discard).spawn().expect("a server");
    let mut lines = LineReader::new(server.take_stdout().expect("its output"), 1 << 20);
    let mut variables = BTreeMap::new();
    while let Some(line) = within(lines.next()).await.expect("its output") {
        let Line::Message(line) = line else { panic!("{line:?}") };
        let line = String::from_utf8_lossy(line);
        variables.extend(line.split_once('=').map(|(name, value)| (name.to_uppercase(), value.to_owned())));
    }
    within(server.wait()).await.expect("it ends");
    variables
}

fn this_program() -> ServerCommand {
    ServerCommand::new(std::env::current_exe().expect("this program")).args(ARGUMENTS)
}

/// Set by cargo, and by no means on the list.
const OURS: &str = "CARGO_MANIFEST_DIR";

// covers: SEC-12
#[tokio::test]
async fn sec_12_a_server_does_not_get_our_environment() {
    let ours = std::env::var(OURS).expect("cargo sets it");
    let by_default = variables(this_program().env("TOKEN", "secret")).await;
    assert_eq!(by_default.get(OURS), None, "{by_default:?}");
    assert_eq!(by_default.get("PATH"), std::env::var("PATH").ok().as_ref());
    assert_eq!(by_default.get("TOKEN").map(String::as_str), Some("secret"));
    let inherited = variables(this_program().env("PATH", "ours alone").inherit_env()).await;
    assert_eq!(inherited.get(OURS), Some(&ours), "{inherited:?}");
    assert_eq!(inherited.get("PATH").map(String::as_str), Some("ours alone"), "what is set stays");
    let converted = tokio::process::Command::new(std::env::current_exe().expect("this program"));
    let converted = variables(ServerCommand::from(converted).args(ARGUMENTS)).await;
    assert_eq!(converted.get(OURS), Some(&ours), "{converted:?}");
    let empty = variables(this_program().env("TOKEN", "secret").env_clear()).await;
    assert_eq!((empty.get("PATH"), empty.get("TOKEN")), (None, None), "{empty:?}");
}

/// Longer than anything here takes on the slowest machine.
const LIMIT: Duration = Duration::from_secs(60);

/// For what is not going to happen.
const SHORT: Duration = Duration::from_millis(50);
