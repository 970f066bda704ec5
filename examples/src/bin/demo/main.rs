//! A server that shows most of what servers can do: typed tools, structured results, progress, cancellation, logging,
//! prompts with completion, resources that change, subscriptions, elicitation and sampling.
//!
//! | module | shows |
//! |---|---|
//! | `text` | a tool with a structured result |
//! | `units` | enums as arguments, and errors that the model can act on |
//! | `primes` | a long-running tool: progress, cancellation, yielding |
//! | `journal` | log messages to the client, and logs for the operator |
//! | `notes` | shared state, resources added at run time, a template, subscriptions, elicitation before deleting |
//! | `asking` | two server-to-client requests at once, and a side effect that must not be repeated |
//! | `prompts` | a prompt with typed arguments and completion |
//! | `about` | static resources |
//! | `http` | the commands that it prints when it serves over HTTP |
//! | `status` | metrics for Prometheus, and health checks |

mod about;
mod asking;
mod http;
mod journal;
mod notes;
mod primes;
mod prompts;
mod status;
mod text;
mod units;

use std::io::{self, Write};
use std::process::ExitCode;

use mcp::http::{HttpOptions, HttpServer, HttpService, SessionMode, shutdown_signal};
use mcp::server::mrtr::MemoryReplayGuard;
use mcp::server::{Server, ServerBuilder};
use mcp::stdio::{ServeOptions, serve_stdio_with};

const USAGE: &str = r#"A demo server of the Model Context Protocol.

usage: demo [--address ADDRESS] [--sessions] [--status ADDRESS] [--verbose]
       demo --stdio [--verbose]

  --address ADDRESS   serve over HTTP at this address (default: 127.0.0.1:8000)
  --sessions          give clients of earlier revisions sessions
  --status ADDRESS    serve /metrics, /healthz and /readyz at this address
  --stdio             serve the parent process on standard input and output
  --verbose           print debug logs to standard error

To call a tool on standard streams:

  echo '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"text_statistics","arguments":{"text":"To be, or not to be"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}' | demo --stdio

Or add it to an MCP client as the command `demo` with the argument `--stdio`, and ask for
a note, a conversion from miles to kilometres, or the number of primes up to ten million.
"#;

/// One thread is enough, because the long-running tool yields.
#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<ExitCode> {
    let (mut stdio, mut address, mut level) = (false, "127.0.0.1:8000".to_owned(), tracing::Level::INFO);
    let (mut sessions, mut status_address) = (SessionMode::default(), None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), &mut arguments) {
            ("--stdio", _) => stdio = true,
            ("--verbose", _) => level = tracing::Level::DEBUG,
            ("--sessions", _) => sessions = SessionMode::Stateful,
            ("--address", rest) if rest.len() > 0 => address = rest.next().unwrap_or_default(),
            ("--status", rest) if rest.len() > 0 => status_address = rest.next(),
            ("--help" | "-h", _) => {
                io::stdout().write_all(USAGE.as_bytes())?;
                return Ok(ExitCode::SUCCESS);
            }
            (unknown, _) => {
                writeln!(io::stderr(), "unknown argument `{unknown}`\n\n{USAGE}")?;
                return Ok(ExitCode::from(2));
            }
        }
    }
    // On stdio, standard output carries the protocol, so logs go to standard error.
    tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).with_ansi(false).init();
    if stdio {
        let ended = serve_stdio_with(server().build()?, &ServeOptions::default()).await?;
        tracing::debug!(?ended, "stopped");
    } else {
        let (mut listener, mut server) = (HttpServer::bind(&address).await?, server());
        if let Some(address) = status_address {
            let (status, metrics) = status::bind(&address).await?;
            writeln!(io::stdout(), "Metrics are at http://{}/metrics.", status.address())?;
            (listener, server) = (listener.status(status), server.observer(metrics));
        }
        let service = HttpService::with_options(server.build()?, HttpOptions::default().sessions(sessions));
        io::stdout().write_all(http::instructions(&listener.url()).as_bytes())?;
        listener.serve(service, shutdown_signal()).await;
    }
    Ok(ExitCode::SUCCESS)
}

fn server() -> ServerBuilder {
    Server::builder("demo", env!("CARGO_PKG_VERSION"))
        .instructions(
            "Small tools to try a client with. Notes are kept until the server ends; each is also a resource, \
             note://{id}.",
        )
        .state(notes::Notes::default())
        .state(asking::Till::default())
        // Each request state is valid once, so that a client that sends a retry twice does not pay or delete twice.
        .replay_guard(MemoryReplayGuard::new(10_000))
        .resource_subscriptions()
        .tool(text::statistics())
        .tool(units::convert())
        .tool(primes::count())
        .tool(journal::log())
        .tool(notes::add())
        .tool(notes::list())
        .tool(notes::edit())
        .tool(notes::delete())
        .tool(asking::draft())
        .tool(asking::post())
        .template(notes::template())
        .prompt(prompts::summarize())
        .resource(about::readme())
        .resource(about::logo())
}
