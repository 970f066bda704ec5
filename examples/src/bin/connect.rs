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
        None => {
            let (text, failures) = list(&client).await;
            say(&text)?;
            if !failures.is_empty() {
                return Err(failures.join("\n").into());
            }
        }
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

/// Lists what the server offers, and what could not be listed: a server may declare more than it has.
async fn list(client: &Client) -> (String, Vec<String>) {
    let offers = client.server().capabilities.unwrap_or_default();
    let (mut text, mut failures) = (String::new(), Vec::new());
    if offers.tools.is_some() {
        let tools = client.tools().all().await;
        add(&mut text, &mut failures, "tool", tools, |tool| (tool.name, tool.description));
    }
    if offers.resources.is_some() {
        let resources = client.resources().all().await;
        add(&mut text, &mut failures, "resource", resources, |resource| (resource.uri, resource.description));
        let templates = client.resource_templates().all().await;
        add(&mut text, &mut failures, "template", templates, |template| (template.uri_template, template.description));
    }
    if offers.prompts.is_some() {
        let prompts = client.prompts().all().await;
        add(&mut text, &mut failures, "prompt", prompts, |prompt| (prompt.name, prompt.description));
    }
    (text, failures)
}

/// Adds a line for each item, or says why there are none.
fn add<T>(
    text: &mut String,
    failures: &mut Vec<String>,
    kind: &str,
    items: Result<Vec<T>, ClientError>,
    describe: fn(T) -> (String, Option<String>),
) {
    match items {
        Ok(items) => {
            for (name, about) in items.into_iter().map(describe) {
                // Text can always be added to.
                let _ = writeln!(text, "{kind:8}  {name}  {}", about.unwrap_or_default());
            }
        }
        Err(error) => failures.push(format!("no list of {kind}s: {error}")),
    }
}
