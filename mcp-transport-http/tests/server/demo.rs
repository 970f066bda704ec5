//! A server with handlers for everything that can happen to a request, which a test can watch.

use mcp_server::{HandlerError, NoArguments, RequestContext, Server, ServerBuilder, tool};
use mcp_testkit::{Gate, Notes};
use mcp_transport_http::HttpService;

pub(crate) fn server(build: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    build(Server::builder("demo", "1.0")).build().expect("a server")
}

/// A server with handlers for everything that can happen to a request.
#[derive(Clone, Default)]
pub(crate) struct Demo {
    /// What `wait` and `report_and_wait` wait for.
    pub(crate) gate: Gate,
    /// Who began and who was dropped.
    pub(crate) notes: Notes,
}

impl Demo {
    pub(crate) fn service(&self) -> HttpService {
        HttpService::new(self.server())
    }

    pub(crate) fn server(&self) -> Server {
        server(|builder| self.tools(builder))
    }

    pub(crate) fn tools(&self, builder: ServerBuilder) -> ServerBuilder {
        let (quiet, loud) = (self.clone(), self.clone());
        builder
            .tool(tool("hello", async |_, _: NoArguments| "hello"))
            .tool(tool("revision", async |ctx: RequestContext, _: NoArguments| ctx.revision().as_str()))
            .tool(tool("wait", move |_: RequestContext, _: NoArguments| quiet.clone().wait()))
            .tool(tool("report", async |ctx: RequestContext, _: NoArguments| {
                ctx.progress(1);
                ctx.progress(2);
                "reported"
            }))
            .tool(tool("report_and_wait", move |ctx: RequestContext, _: NoArguments| {
                ctx.progress(1);
                loud.clone().wait()
            }))
            .tool(tool("ask", async |ctx: RequestContext, _: NoArguments| ask(&ctx).await))
            .tool(tool("report_and_ask", async |ctx: RequestContext, _: NoArguments| {
                ctx.progress(1);
                ask(&ctx).await
            }))
            .tool(tool("fail", async |_, _: NoArguments| fails()))
    }

    async fn wait(self) -> &'static str {
        self.notes.add("began");
        let dropped = self.notes.on_drop("dropped");
        self.gate.wait().await;
        std::mem::forget(dropped);
        "waited"
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sure {
    sure: bool,
}

async fn ask(ctx: &RequestContext) -> Result<String, HandlerError> {
    let Sure { sure } = ctx.elicit("sure", "Really?").await?.accepted()?;
    Ok(sure.to_string())
}

fn fails() -> &'static str {
    panic!("this is what the test wants")
}
