//! What the examples of clients share: whom to connect to, and what to call, as said on the command line.

#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;

use mcp_client::types::RawObject;
use mcp_client::{Client, ClientBuilder};
use mcp_transport_http::HttpTransport;
use mcp_transport_stdio::{ChildTransport, Spawn};

/// Runs a program to its end, and says on standard error what went wrong.
///
/// # Panics
///
/// If there can be no runtime.
#[expect(clippy::print_stderr, reason = "a command-line tool talks to its user")]
pub fn run(program: impl Future<Output = Result<(), Box<dyn Error>>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    match runtime.expect("a runtime").block_on(program) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes to standard output at once.
///
/// # Errors
///
/// If nobody reads it.
pub fn say(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// What was said on the command line.
#[derive(Debug)]
#[non_exhaustive]
pub struct CommandLine {
    /// The tool to call, with its arguments.
    pub call: Option<(String, RawObject)>,
    /// Shown to a server over HTTP.
    pub bearer: Option<String>,
    /// An address, or a command and its arguments.
    pub target: Vec<String>,
}

impl CommandLine {
    /// Reads the command line of this process.
    ///
    /// # Errors
    ///
    /// Says how to use the program called `name`.
    pub fn read(name: &str) -> Result<Self, Box<dyn Error>> {
        let usage = format!(
            "usage: {name} [--call TOOL ARGUMENTS] [--bearer TOKEN] ADDRESS\n       \
             {name} [--call TOOL ARGUMENTS] COMMAND [ARGUMENT...]\n\n  \
             ARGUMENTS are JSON, such as '{{\"value\":26.2,\"from\":\"mile\",\"to\":\"kilometre\"}}'"
        );
        let mut words = std::env::args().skip(1).peekable();
        let (mut call, mut bearer) = (None, None);
        while let Some(option) = words.next_if(|word| word.starts_with("--")) {
            match (option.as_str(), words.next()) {
                ("--call", Some(tool)) => {
                    let arguments = words.next().ok_or_else(|| usage.clone())?;
                    call = Some((tool, RawObject::parse(&arguments)?));
                }
                ("--bearer", Some(token)) => bearer = Some(token),
                _ => return Err(usage.into()),
            }
        }
        let target: Vec<String> = words.collect();
        if target.is_empty() { Err(usage.into()) } else { Ok(Self { call, bearer, target }) }
    }

    /// Connects to the server that was named.
    ///
    /// # Errors
    ///
    /// If that is not possible.
    pub async fn connect(&self, client: ClientBuilder) -> Result<Client, Box<dyn Error>> {
        let [first, arguments @ ..] = self.target.as_slice() else { return Err("there is no target".into()) };
        if !first.starts_with("http://") && !first.starts_with("https://") {
            return Ok(client.connect(ChildTransport::new(Spawn::new(first).args(arguments))).await?);
        }
        let mut transport = HttpTransport::new(first)?;
        if let Some(token) = &self.bearer {
            transport = transport.bearer(token)?;
        }
        Ok(client.connect(transport).await?)
    }
}
