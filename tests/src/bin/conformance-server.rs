//! Serves the fixture that clients and the conformance suite are pointed at.

#![forbid(unsafe_code)]

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use mcp_redis::{Redis, RedisOptions};
use mcp_session::EventIdKey;
use mcp_tests::fixture;
use mcp_transport_http::{HttpOptions, HttpServer, HttpService, SessionMode, shutdown_signal};

const USAGE: &str = "\
usage: conformance-server --stdio
       conformance-server --http ADDRESS [--sessions stateful|stateless|off | --redis URL]

  --stdio           serve the client that started this process, on standard input and output
  --http ADDRESS    serve over HTTP, print the URL, and stop when told to (Ctrl-C, SIGTERM)
  --sessions MODE   how legacy clients are served over HTTP: with sessions (stateful), each request
                    alone (stateless), or not at all (off); with sessions unless told
  --redis URL       keep sessions and their events in Redis, for other instances";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let served = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--stdio"] => serve_stdio(),
        ["--http", address] | ["--http", address, "--sessions", "stateful"] => {
            serve_http(address, SessionMode::Stateful, None)
        }
        ["--http", address, "--redis", url] => serve_http(address, SessionMode::Stateful, Some(url)),
        ["--http", address, "--sessions", "stateless"] => serve_http(address, SessionMode::Stateless, None),
        ["--http", address, "--sessions", "off"] => serve_http(address, SessionMode::Off, None),
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
fn serve_http(address: &str, sessions: SessionMode, redis: Option<&str>) -> io::Result<()> {
    let server = fixture::server().map_err(io::Error::other)?;
    let mut options = HttpOptions::default().sessions(sessions);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut events = None;
        if let Some(url) = redis {
            let redis = Redis::connect(url, RedisOptions::default()).await.map_err(io::Error::other)?;
            // All instances need the same key, which is a secret elsewhere.
            let key = EventIdKey::new([7; 32]);
            options = options
                .session_store(Arc::new(redis.sessions()), Duration::from_secs(7200))
                .event_store(Arc::new(redis.events()), key);
            events = Some(redis.events());
        }
        let service = HttpService::with_options(server, options);
        let listener = HttpServer::bind(address).await?;
        println!("{}", listener.url());
        listener.drain_timeout(Duration::from_secs(5)).serve(service, shutdown_signal()).await;
        if let Some(events) = events {
            // What was said last is for those who come back elsewhere.
            events.flush().await.map_err(io::Error::other)?;
        }
        Ok(())
    })
}
