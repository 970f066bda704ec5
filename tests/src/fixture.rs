//! The server that clients and the conformance suite are pointed at: every feature once, with results that they know.

mod asking;
mod both_eras;
mod changes;
mod content;
mod input_required;
mod media;
mod prompts;
mod resources;
mod seal;
mod tasks;
mod tools;

use mcp_server::{BuildError, Server, ServerBuilder};

/// Makes the server.
///
/// The suite calls the first tool without arguments and capabilities, so the plain ones come first.
///
/// # Errors
///
/// Fails if there is something that a server cannot have, which would be a mistake in here.
pub fn server() -> Result<Server, BuildError> {
    let add: [fn(ServerBuilder) -> ServerBuilder; 9] = [
        content::add,
        tools::add,
        changes::add,
        asking::add,
        both_eras::add,
        input_required::add,
        prompts::add,
        resources::add,
        tasks::add,
    ];
    let described = Server::builder("conformance-server", env!("CARGO_PKG_VERSION"))
        .instructions("Every feature of the protocol once, for tests.")
        .state(seal::Seal::default())
        .state(both_eras::Steps::default())
        .state(tools::UnderWay::default());
    add.into_iter().fold(described, |builder, add| add(builder)).build()
}
