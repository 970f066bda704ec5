//! A server with fifty tools over HTTP, as its author would write it.

#[path = "../../../shared/driven.rs"]
mod driven;
#[path = "../../ours/src/tools.rs"]
mod tools;

use std::error::Error;

use mcp_server::{Change, RequestContext, Server, tool};
use mcp_transport_http::{HttpOptions, HttpServer, HttpService, SessionMode, SessionOptions};

use crate::tools::Arguments;

#[expect(clippy::print_stdout, reason = "the driver reads the address there")]
fn main() -> Result<(), Box<dyn Error>> {
    let has_sessions = driven::has_sessions();
    let builder = tools::echoes(Server::builder("ours", "1.0"), driven::number_of_tools() - 2)
        .tool(tool("progress", async |ctx: RequestContext, Arguments { text }| {
            (1..=3).for_each(|done| ctx.progress((done, 3)));
            text
        }))
        .tool(tool("change", async |ctx: RequestContext, Arguments { text }| {
            ctx.server().publish(&Change::Tools);
            text
        }));
    let mode = if has_sessions { SessionMode::Stateful } else { SessionMode::Stateless };
    let server = builder.build()?;
    // More than the driver creates, so that none has to make room for another one.
    let sessions = SessionOptions::default().idle_limit(20_000);
    let options = HttpOptions::default().sessions(mode).session_options(sessions);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    driven::end_with_input(runtime.handle().clone());
    runtime.block_on(async {
        let listener = HttpServer::bind("127.0.0.1:0").await?;
        println!("{}", listener.url());
        listener.serve(HttpService::with_options(server, options), std::future::pending()).await;
        Ok(())
    })
}
