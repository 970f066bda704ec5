//! Calls a tool, and shows elicitation requests of the server on the terminal.
//!
//! ```console
//! $ connect --call add_note '{"title":"Shopping","text":"Milk"}' http://127.0.0.1:8000/mcp
//! $ ask_me --call delete_note '{"id":1}' http://127.0.0.1:8000/mcp
//! ```
//!
//! The same functions handle both eras: servers up to 2025-11-25 send `elicitation/create` while the call is in flight,
//! servers of 2026-07-28 end it with an `input_required` result, and the client retries it.

use std::error::Error;
use std::io::BufRead as _;
use std::process::ExitCode;

use mcp::client::Client;
use mcp::serde_json;
use mcp::types::{ElicitAction, ElicitRequestFormParams, ElicitRequestUrlParams, ElicitResult, ErrorObject, FormDraft};
use mcp_examples::{CommandLine, print};

fn main() -> ExitCode {
    mcp_examples::run(ask_me())
}

async fn ask_me() -> Result<(), Box<dyn Error>> {
    let command_line = CommandLine::parse("ask_me")?;
    let (tool, arguments) = command_line.call.clone().ok_or("--call TOOL ARGUMENTS is missing")?;
    let builder = Client::builder("ask-me", env!("CARGO_PKG_VERSION"));
    // Reading the terminal blocks, so it runs on a thread of its own.
    let builder = builder.on_form_elicitation(async |_, form| on_terminal(move || show_form(&form)).await);
    let builder = builder.on_url_elicitation(async |_, page| on_terminal(move || show_url(&page)).await);
    let client = command_line.connect(builder).await?;
    let result = client.call_tool(tool).arguments(&arguments).await?;
    for content in &result.content {
        print(&format!("{}\n", content.as_text().unwrap_or("(not text)")))?;
    }
    client.close().await;
    if result.is_error == Some(true) { Err("the tool returned an error".into()) } else { Ok(()) }
}

async fn on_terminal<F>(show: F) -> Result<ElicitResult, ErrorObject>
where
    F: FnOnce() -> std::io::Result<ElicitResult> + Send + 'static,
{
    let shown = tokio::task::spawn_blocking(show).await;
    let result = shown.map_err(|error| ErrorObject::internal_error(error.to_string()))?;
    result.map_err(|error| ErrorObject::internal_error(error.to_string()))
}

/// Asks for the value of each field, again if it is invalid. Empty input leaves the field to its default.
fn show_form(form: &ElicitRequestFormParams) -> std::io::Result<ElicitResult> {
    let cancelled = ElicitResult::new(ElicitAction::Cancel);
    let mut draft = FormDraft::new(&form.requested_schema);
    print(&format!("\nThe server asks: {}\n", form.message))?;
    for field in draft.fields() {
        for (number, choice) in field.choices.iter().enumerate() {
            print(&format!("  {}. {}\n", number + 1, choice.title))?;
        }
        let default = field.default_value.as_ref().and_then(|value| serde_json::to_string(value).ok());
        let hint = default.map(|default| format!(" [{default}]")).unwrap_or_default();
        loop {
            let Some(text) = read_line(&format!("  {}{hint}: ", field.label()))? else { return Ok(cancelled) };
            match draft.enter(field.name, &text) {
                Ok(()) => break,
                Err(error) => print(&format!("  {error}\n"))?,
            }
        }
    }
    let content = draft.finish().map_err(std::io::Error::other)?;
    Ok(match read_line("Send this? (y/n) ")?.as_deref() {
        Some("y" | "yes") => ElicitResult::accepted(content),
        Some(_) => ElicitResult::new(ElicitAction::Decline),
        None => cancelled,
    })
}

/// Shows a URL. Opening it is left to the user.
fn show_url(page: &ElicitRequestUrlParams) -> std::io::Result<ElicitResult> {
    print(&format!("\nThe server asks: {}\nIt wants you to open {}\n", page.message, page.url))?;
    let action = match read_line("Will you? (y/n) ")?.as_deref() {
        Some("y" | "yes") => ElicitAction::Accept,
        Some(_) => ElicitAction::Decline,
        None => ElicitAction::Cancel,
    };
    Ok(ElicitResult::new(action))
}

/// Prints a prompt and reads a line. Returns `None` at the end of input.
fn read_line(prompt: &str) -> std::io::Result<Option<String>> {
    print(prompt)?;
    let mut line = String::new();
    let count = std::io::stdin().lock().read_line(&mut line)?;
    Ok((count > 0).then(|| line.trim().to_owned()))
}
