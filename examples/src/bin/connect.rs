//! Connects to any server, by command or URL, and lists what it offers or calls a tool.
//!
//! ```console
//! $ connect target/release/demo --stdio
//! $ connect http://127.0.0.1:8000/mcp
//! $ connect --config ~/.config/my-client/mcp.json notes
//! $ connect --call count_primes '{"up_to":1000000}' http://127.0.0.1:8000/mcp
//! ```

use std::error::Error;
use std::fmt::Write as _;
use std::process::ExitCode;

use mcp::client::{Client, Error as ClientError};
use mcp_examples::{CommandLine, print};

fn main() -> ExitCode {
    mcp_examples::run(connect())
}

#[expect(clippy::print_stderr, reason = "a command-line tool talks to its user")]
async fn connect() -> Result<(), Box<dyn Error>> {
    let command_line = CommandLine::parse("connect")?;
    let builder = Client::builder("connect", env!("CARGO_PKG_VERSION"));
    let client = command_line.connect(builder.on_log(|_, log| eprintln!("log: {:?}", log.data))).await?;
    if let (Some(info), Some(revision)) = (client.server_facts().await?.info, client.revision()) {
        print(&format!("{} {}, revision {revision}\n", info.name, info.version))?;
    }
    match command_line.call {
        None => {
            let (text, failures) = list(&client).await;
            print(&text)?;
            if !failures.is_empty() {
                return Err(failures.join("\n").into());
            }
        }
        Some((tool, arguments)) => {
            let call = client.call_tool(tool).arguments(&arguments);
            let result = call.on_progress(|progress| eprintln!("progress: {}", progress.progress)).await?;
            for content in &result.content {
                print(&format!("{}\n", content.as_text().unwrap_or("(not text)")))?;
            }
            if result.is_error == Some(true) {
                return Err("the tool returned an error".into());
            }
        }
    }
    client.close().await;
    Ok(())
}

/// Lists what the server offers, with the errors of lists that failed: a server may declare a capability that it lacks.
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

/// Adds a line for each item, or the error of the list.
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
                // Writing to a string does not fail.
                let _ = writeln!(text, "{kind:8}  {name}  {}", about.unwrap_or_default());
            }
        }
        Err(error) => failures.push(format!("cannot list {kind}s: {error}")),
    }
}
