//! What the example clients share: the command line, with the server to connect to and the tool to call.

#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;

use mcp::client::config::{ServerEntry, ServersConfig};
use mcp::client::{Client, ClientBuilder};
use mcp::http::HttpTransport;
use mcp::stdio::{ChildTransport, ServerCommand};
use mcp::types::RawObject;

/// Runs a program to completion, and prints its error to standard error.
///
/// # Panics
///
/// Panics if the runtime cannot be created.
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

/// Writes to standard output, and flushes it.
///
/// # Errors
///
/// Returns an error if standard output is closed.
pub fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The arguments of an example client.
#[derive(Debug)]
#[non_exhaustive]
pub struct CommandLine {
    /// The tool to call, with its arguments.
    pub call: Option<(String, RawObject)>,
    /// The bearer token for a server over HTTP.
    pub bearer: Option<String>,
    /// A configuration file in the format of desktop clients, and the name of a server in it.
    pub config: Option<(String, String)>,
    /// A URL, or a command and its arguments.
    pub target: Vec<String>,
}

impl CommandLine {
    /// Parses the command line of this process.
    ///
    /// # Errors
    ///
    /// Returns the usage of the program called `name` if the command line is invalid.
    pub fn parse(name: &str) -> Result<Self, Box<dyn Error>> {
        let usage = format!(
            "usage: {name} [--call TOOL ARGUMENTS] [--bearer TOKEN] URL\n       \
             {name} [--call TOOL ARGUMENTS] COMMAND [ARGUMENT...]\n       \
             {name} [--call TOOL ARGUMENTS] --config FILE SERVER\n\n  \
             FILE is JSON with the member `mcpServers`, as desktop clients write it\n  \
             ARGUMENTS are JSON, such as '{{\"value\":26.2,\"from\":\"mile\",\"to\":\"kilometre\"}}'"
        );
        let mut words = std::env::args().skip(1).peekable();
        let (mut call, mut bearer, mut config) = (None, None, None);
        while let Some(option) = words.next_if(|word| word.starts_with("--")) {
            match (option.as_str(), words.next()) {
                ("--call", Some(tool)) => {
                    let arguments = words.next().ok_or_else(|| usage.clone())?;
                    call = Some((tool, RawObject::parse(&arguments)?));
                }
                ("--bearer", Some(token)) => bearer = Some(token),
                ("--config", Some(file)) => config = Some((file, words.next().ok_or_else(|| usage.clone())?)),
                _ => return Err(usage.into()),
            }
        }
        let target: Vec<String> = words.collect();
        // There is either a configuration or a target.
        if target.is_empty() == config.is_none() {
            Err(usage.into())
        } else {
            Ok(Self { call, bearer, config, target })
        }
    }

    /// Connects to the server.
    ///
    /// # Errors
    ///
    /// Returns an error if the server cannot be started or reached, or if the handshake fails.
    pub async fn connect(&self, client: ClientBuilder) -> Result<Client, Box<dyn Error>> {
        if let Some((file, name)) = &self.config {
            return connect_configured(client, file, name).await;
        }
        let [first, arguments @ ..] = self.target.as_slice() else { return Err("there is no target".into()) };
        if !first.starts_with("http://") && !first.starts_with("https://") {
            return Ok(client.connect(ChildTransport::new(ServerCommand::new(first).args(arguments))).await?);
        }
        let mut transport = HttpTransport::new(first)?;
        if let Some(token) = &self.bearer {
            transport = transport.bearer(token)?;
        }
        Ok(client.connect(transport).await?)
    }
}

/// Connects to a server of a configuration file.
async fn connect_configured(client: ClientBuilder, file: &str, name: &str) -> Result<Client, Box<dyn Error>> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let config = ServersConfig::parse(&text)?.expand(|variable| std::env::var(variable).ok())?;
    match config.get(name) {
        Some(ServerEntry::Command(command)) => {
            Ok(client.connect(ChildTransport::new(ServerCommand::from(command))).await?)
        }
        Some(ServerEntry::Url(url)) => Ok(client.connect(HttpTransport::try_from(url)?).await?),
        Some(_) | None => {
            let names: Vec<_> = config.iter().map(|(name, _)| name).collect();
            Err(format!("{file} has no server `{name}`, but: {}", names.join(", ")).into())
        }
    }
}

/// The guides, so that their examples are compiled.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../../docs/asking-the-user.md")]
    mod asking_the_user {}
    #[doc = include_str!("../../docs/following-tasks.md")]
    mod following_tasks {}
    #[doc = include_str!("../../docs/handlers-and-errors.md")]
    mod handlers_and_errors {}
    #[doc = include_str!("../../docs/logging-in.md")]
    mod logging_in {}
    #[doc = include_str!("../../docs/long-work.md")]
    mod long_work {}
    #[doc = include_str!("../../docs/machines.md")]
    mod machines {}
    #[doc = include_str!("../../docs/middleware.md")]
    mod middleware {}
    #[doc = include_str!("../../docs/per-user-tools.md")]
    mod per_user_tools {}
    #[doc = include_str!("../../docs/protecting-a-server.md")]
    mod protecting_a_server {}
    #[doc = include_str!("../../docs/resources-and-changes.md")]
    mod resources_and_changes {}
    #[doc = include_str!("../../docs/running-on-several-machines.md")]
    mod running_on_several_machines {}
    #[doc = include_str!("../../docs/state-between-calls.md")]
    mod state_between_calls {}
    #[doc = include_str!("../../docs/stateless-or-stateful.md")]
    mod stateless_or_stateful {}
    #[doc = include_str!("../../docs/testing.md")]
    mod testing {}
    #[doc = include_str!("../../docs/watching-a-server.md")]
    mod watching_a_server {}
    #[doc = include_str!("../../docs/writing-a-gateway.md")]
    mod writing_a_gateway {}
    #[doc = include_str!("../../docs/writing-a-transport.md")]
    mod writing_a_transport {}
}
