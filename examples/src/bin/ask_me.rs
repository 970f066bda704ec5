//! Calls a tool that asks you something, on the terminal.
//!
//! ```console
//! $ connect --call add_note '{"title":"Shopping","text":"Milk"}' http://127.0.0.1:8000/mcp
//! $ ask_me --call delete_note '{"id":1}' http://127.0.0.1:8000/mcp
//! ```
//!
//! The same functions answer servers of both eras: legacy ones ask while the call runs, modern ones end a round of it
//! with their questions.

use std::error::Error;
use std::io::BufRead as _;
use std::process::ExitCode;

use mcp_client::Client;
use mcp_client::types::{
    ElicitAction, ElicitRequestFormParams, ElicitRequestUrlParams, ElicitResult, ElicitValue, ErrorObject, OrderedMap,
    PrimitiveSchema,
};
use mcp_examples::{CommandLine, say};

fn main() -> ExitCode {
    mcp_examples::run(ask_me())
}

async fn ask_me() -> Result<(), Box<dyn Error>> {
    let command_line = CommandLine::read("ask_me")?;
    let (tool, arguments) = command_line.call.clone().ok_or("--call says which tool to call")?;
    let builder = Client::builder("ask-me", env!("CARGO_PKG_VERSION"));
    // People are slow, and the terminal blocks: it has a thread of its own.
    let builder = builder.on_form(async |form| on_terminal(move || fill_in(&form)).await);
    let builder = builder.on_url(async |page| on_terminal(move || visit(&page)).await);
    let client = command_line.connect(builder).await?;
    let result = client.call_tool(tool, &arguments).await?;
    for content in &result.content {
        say(&format!("{}\n", content.as_text().unwrap_or("(not text)")))?;
    }
    client.close().await;
    Ok(())
}

async fn on_terminal<F>(ask: F) -> Result<ElicitResult, ErrorObject>
where
    F: FnOnce() -> std::io::Result<ElicitResult> + Send + 'static,
{
    let asked = tokio::task::spawn_blocking(ask).await;
    let answer = asked.map_err(|error| ErrorObject::internal_error(error.to_string()))?;
    answer.map_err(|error| ErrorObject::internal_error(error.to_string()))
}

/// Asks for each field; what is left empty stays as it is.
fn fill_in(form: &ElicitRequestFormParams) -> std::io::Result<ElicitResult> {
    let mut content = OrderedMap::new();
    say(&format!("\nThe server asks: {}\n", form.message))?;
    for (name, field) in form.requested_schema.properties.iter() {
        let default = field.default_value().and_then(|value| serde_json::to_string(&value).ok());
        let hint = default.map(|default| format!(" [{default}]")).unwrap_or_default();
        let Some(text) = ask(&format!("  {name}{hint}: "))? else { return Ok(ElicitResult::new(ElicitAction::Cancel)) };
        if let Some(value) = read(field, &text) {
            content.insert(name, value);
        }
    }
    Ok(match ask("Send this? (y/n) ")?.as_deref() {
        Some("y" | "yes") => ElicitResult::accepted(content),
        Some(_) => ElicitResult::new(ElicitAction::Decline),
        None => ElicitResult::new(ElicitAction::Cancel),
    })
}

/// What was typed, as the field wants it; nothing, if it was left empty.
fn read(field: &PrimitiveSchema, text: &str) -> Option<ElicitValue> {
    if text.is_empty() {
        return None;
    }
    Some(match field {
        PrimitiveSchema::Number(_) => {
            text.parse::<i64>().map(ElicitValue::from).or_else(|_| text.parse::<f64>().map(ElicitValue::from)).ok()?
        }
        PrimitiveSchema::Boolean(_) => matches!(text, "y" | "yes" | "true").into(),
        PrimitiveSchema::MultiSelect(_) | PrimitiveSchema::TitledMultiSelect(_) => {
            text.split(',').map(|choice| choice.trim().to_owned()).collect::<Vec<_>>().into()
        }
        PrimitiveSchema::String(_)
        | PrimitiveSchema::SingleSelect(_)
        | PrimitiveSchema::TitledSingleSelect(_)
        | PrimitiveSchema::LegacyEnum(_)
        | _ => text.into(),
    })
}

/// Shows an address before it is opened, and opens nothing by itself.
fn visit(page: &ElicitRequestUrlParams) -> std::io::Result<ElicitResult> {
    say(&format!("\nThe server asks: {}\nIt wants you to open {}\n", page.message, page.url))?;
    let action = match ask("Will you? (y/n) ")?.as_deref() {
        Some("y" | "yes") => ElicitAction::Accept,
        Some(_) => ElicitAction::Decline,
        None => ElicitAction::Cancel,
    };
    Ok(ElicitResult::new(action))
}

/// A line of the user's; nothing at the end of input.
fn ask(question: &str) -> std::io::Result<Option<String>> {
    say(question)?;
    let mut line = String::new();
    let count = std::io::stdin().lock().read_line(&mut line)?;
    Ok((count > 0).then(|| line.trim().to_owned()))
}
