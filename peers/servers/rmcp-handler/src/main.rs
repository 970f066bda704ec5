//! The fastest server that we could write with `rmcp`: a handler by hand, pipes that do not block, one thread.

mod handler;

use std::error::Error;

use rmcp::ServiceExt as _;

use crate::handler::Server;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        Server::new().serve(rmcp::transport::stdio_pipes()).await?.waiting().await?;
        Ok(())
    })
}
