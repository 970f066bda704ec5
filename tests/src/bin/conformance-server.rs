//! Serves the fixture that clients and the conformance suite are pointed at.

#![forbid(unsafe_code)]

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use mcp_tests::fixture;
use mcp_transport_http::{HttpOptions, HttpServer, HttpService, SessionMode, told_to_end};

const USAGE: &str = "\
usage: conformance-server --stdio
       conformance-server --http ADDRESS [--sessions stateless|off]

  --stdio           serve the client that started this process, on standard input and output
  --http ADDRESS    serve over HTTP, print the URL, and stop when told to (Ctrl-C, SIGTERM)
  --sessions MODE   how legacy clients are served over HTTP: each request alone (stateless), or not at all (off)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let served = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--stdio"] => serve_stdio(),
        ["--http", address] | ["--http", address, "--sessions", "stateless"] => {
            serve_http(address, SessionMode::Stateless)
        }
        ["--http", address, "--sessions", "off"] => serve_http(address, SessionMode::Off),
        _ => Err(io::Error::other(USAGE)),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "standard error is there for people")]
fn complain(error: &io::Error) {
    eprintln!("{error}");
}

fn serve_stdio() -> io::Result<()> {
    let server = fixture::server().map_err(io::Error::other)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(mcp_transport_stdio::serve_stdio(server))?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "whoever started this reads the URL there")]
fn serve_http(address: &str, sessions: SessionMode) -> io::Result<()> {
    let server = fixture::server().map_err(io::Error::other)?;
    let service = HttpService::with_options(server, HttpOptions::default().sessions(sessions));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = HttpServer::bind(address).await?;
        println!("{}", listener.url());
        listener.drain_time(Duration::from_secs(5)).serve(service, told_to_end()).await;
        Ok(())
    })
}
