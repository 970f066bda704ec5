//! Serves the fixture that clients and the conformance suite are pointed at.

#![forbid(unsafe_code)]

use std::io;
use std::process::ExitCode;

use mcp_tests::fixture;

const USAGE: &str = "\
usage: conformance-server --stdio

  --stdio    serve the client that started this process, on standard input and output";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let served = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--stdio"] => serve_stdio(),
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
