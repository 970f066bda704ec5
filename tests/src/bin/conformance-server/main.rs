//! The fixture that clients and the conformance suite are pointed at: every feature once, with results that they know.

#![forbid(unsafe_code)]

mod asking;
mod changes;
mod content;
mod input_required;
mod media;
mod prompts;
mod resources;
mod seal;
mod tools;

use std::io;
use std::process::ExitCode;

use mcp_server::{BuildError, Server, ServerBuilder};

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
    let server = server().map_err(io::Error::other)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(mcp_transport_stdio::serve_stdio(server))?;
    Ok(())
}

/// The suite calls the first tool without arguments and capabilities, so the plain ones come first.
fn server() -> Result<Server, BuildError> {
    let add: [fn(ServerBuilder) -> ServerBuilder; 7] =
        [content::add, tools::add, changes::add, asking::add, input_required::add, prompts::add, resources::add];
    let described = Server::builder("conformance-server", env!("CARGO_PKG_VERSION"))
        .instructions("Every feature of the protocol once, for tests.")
        .state(seal::Seal::default());
    add.into_iter().fold(described, |builder, add| add(builder)).build()
}
