//! Connects to any server, says what there is, and calls a tool.
//!
//! ```console
//! $ connect target/release/demo --stdio
//! $ connect http://127.0.0.1:8000/mcp
//! $ connect --call count_primes '{"up_to":1000000}' http://127.0.0.1:8000/mcp
//! ```

use std::error::Error;
use std::fmt::Write as _;
use std::process::ExitCode;

use mcp_client::{Client, Error as ClientError};
use mcp_examples::{CommandLine, say};

fn main() -> ExitCode {
    mcp_examples::run(connect())
}

#[expect(clippy::print_stderr, reason = "a command-line tool talks to its user")]
async fn connect() -> Result<(), Box<dyn Error>> {
    let command_line = CommandLine::read("connect")?;
    let builder = Client::builder("connect", env!("CARGO_PKG_VERSION"));
    let client = command_line.connect(builder.on_log(|log| eprintln!("log: {:?}", log.data))).await?;
    if let (Some(info), Some(revision)) = (client.server().info, client.revision()) {
        say(&format!("{} {}, revision {revision}\n", info.name, info.version))?;
    }
    match command_line.call {
        None => say(&list(&client).await?)?,
        Some((tool, arguments)) => {
            let call = client.call_tool(tool, &arguments);
            let result = call.on_progress(|progress| eprintln!("progress: {}", progress.progress)).await?;
            for content in &result.content {
                say(&format!("{}\n", content.as_text().unwrap_or("(not text)")))?;
            }
            if result.is_error == Some(true) {
                return Err("the tool says that it failed".into());
            }
        }
    }
    client.close().await;
    Ok(())
}

/// Says what the server offers.
async fn list(client: &Client) -> Result<String, ClientError> {
    let offers = client.server().capabilities.unwrap_or_default();
    let mut text = String::new();
    let mut add = |kind: &str, name: &str, about: Option<String>| {
        // Text can always be added to.
        let _ = writeln!(text, "{kind:8}  {name}  {}", about.unwrap_or_default());
    };
    if offers.tools.is_some() {
        for tool in client.tools().all().await? {
            add("tool", &tool.name, tool.description);
        }
    }
    if offers.resources.is_some() {
        for resource in client.resources().all().await? {
            add("resource", &resource.uri, resource.description);
        }
        for template in client.resource_templates().all().await? {
            add("template", &template.uri_template, template.description);
        }
    }
    if offers.prompts.is_some() {
        for prompt in client.prompts().all().await? {
            add("prompt", &prompt.name, prompt.description);
        }
    }
    Ok(text)
}
