//! Programs of others as processes, and what they say.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Browsers take much of a small machine, so that tests run one after the other.
pub(crate) static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const NODE: &str = "bin/node";
const PYTHON: &str = "python/bin/python";

const START_LIMIT: Duration = Duration::from_secs(60);
/// The programs limit themselves to less.
const RUN_LIMIT: Duration = Duration::from_secs(150);

/// A server that runs. It ends when this is dropped.
pub(crate) struct Program {
    _child: Child,
    pub(crate) url: String,
    events: Events,
}

impl Program {
    /// Starts the authorization server.
    pub(crate) async fn provider(options: &[&str]) -> Self {
        Self::start(script(NODE, "provider.mjs").arg("--events").args(options)).await
    }

    /// Starts the protected server in TypeScript, which verifies JWTs.
    pub(crate) async fn typescript(issuer: &str) -> Self {
        Self::start(script(NODE, "server.mjs").arg(issuer)).await
    }

    /// Starts the protected server in Python, which introspects tokens.
    pub(crate) async fn python(issuer: &str) -> Self {
        Self::start(script(PYTHON, "server.py").arg(issuer)).await
    }

    async fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the program can be started");
        let mut errors = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let events = Events::default();
        let seen = events.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = errors.next_line().await {
                seen.add(line);
            }
        });
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        let read = timeout(START_LIMIT, output.read_line(&mut line)).await;
        read.expect("the program says where it is").expect("its output can be read");
        // What else it prints is of no interest, but without a reader it would fail.
        tokio::spawn(async move { tokio::io::copy(&mut output, &mut tokio::io::sink()).await });
        let url = line.trim().strip_prefix("listening on ");
        let url = url.unwrap_or_else(|| panic!("{line}\n{}", events.all().join("\n"))).to_owned();
        Self { _child: child, url, events }
    }

    /// What an authorization server did so far, by lines that begin so.
    pub(crate) async fn events(&self, prefix: &str) -> Vec<String> {
        // They come through a pipe, some time after the response.
        tokio::time::sleep(Duration::from_millis(100)).await;
        self.events.all().into_iter().filter(|line| line.starts_with(prefix)).collect()
    }
}

/// Lines of standard error.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

impl Events {
    fn add(&self, line: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Lets a person use the browser, and returns the text of the last page.
pub(crate) async fn browse(arguments: &[&str]) -> Result<String, String> {
    run(script(NODE, "browser.mjs").args(arguments)).await
}

/// Runs a client of the TypeScript package; all of its checks pass, and they are as many as expected.
pub(crate) async fn drive_typescript(arguments: &[&str], checks: usize) {
    drive(script(NODE, "client.mjs").args(arguments), checks).await;
}

/// Runs a client of the Python package, which needs Node for the browser.
pub(crate) async fn drive_python(arguments: &[&str], checks: usize) {
    drive(script(PYTHON, "client.py").arg(installed(NODE)).args(arguments), checks).await;
}

async fn drive(command: &mut Command, checks: usize) {
    let output = run(command).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(output.lines().last(), Some(&*format!("{checks} checks passed")), "{output}");
}

/// Runs a program to its end, and returns what it printed.
async fn run(command: &mut Command) -> Result<String, String> {
    let output = timeout(RUN_LIMIT, command.stdin(Stdio::null()).kill_on_drop(true).output()).await;
    let output = output.map_err(|_| "the program did not end")?.map_err(|error| error.to_string())?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(printed) } else { Err(format!("{}\n{printed}\n{errors}", output.status)) }
}

fn script(interpreter: &str, script: &str) -> Command {
    let mut command = Command::new(installed(interpreter));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("interop/auth").join(script));
    command
}

fn installed(program: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/interop").join(program);
    assert!(path.exists(), "{} is missing: run `bash tests/interop/install`", path.display());
    path
}
