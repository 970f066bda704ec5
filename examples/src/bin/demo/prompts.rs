//! A prompt with typed arguments, which are completed while they are typed.

use mcp_server::types::{ContentBlock, ErrorObject, PromptMessage, ResourceContents};
use mcp_server::{CompletionInput, Prompt, RequestContext, prompt};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::notes::{Notes, complete_id};

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Style {
    Headline,
    Paragraph,
    Bullets,
}

/// Arguments of prompts travel as text; these are read from it.
#[derive(Deserialize, JsonSchema)]
struct Summarize {
    /// The id of the note
    note: u32,
    /// One of headline, paragraph, bullets; paragraph if absent
    style: Option<Style>,
    /// How many words the summary may have
    words: Option<u32>,
}

/// Asks for a summary of a note.
pub(crate) fn summarize() -> Prompt {
    prompt("summarize_note", run)
        .title("Summarize a note")
        .description("Asks for a summary of a note, in a style and a length of your choice")
        .complete("note", complete_id)
        .complete("style", complete_style)
}

async fn run(ctx: RequestContext, arguments: Summarize) -> Result<Vec<PromptMessage>, ErrorObject> {
    let Summarize { note: id, style, words } = arguments;
    let note = Notes::of(&ctx).get(id).ok_or_else(|| ErrorObject::invalid_params(format!("there is no note {id}")))?;
    let style = match style.unwrap_or(Style::Paragraph) {
        Style::Headline => "as one headline",
        Style::Paragraph => "in one paragraph",
        Style::Bullets => "as a list of bullet points",
    };
    let length = words.map(|words| format!(", in at most {words} words")).unwrap_or_default();
    let contents = ResourceContents::text(note.uri, note.text);
    Ok(vec![
        PromptMessage::user(format!("Summarize the note \"{}\" {style}{length}.", note.title)),
        PromptMessage::user(ContentBlock::resource(contents)),
    ])
}

async fn complete_style(_: RequestContext, typed: CompletionInput) -> Vec<String> {
    let styles = ["headline", "paragraph", "bullets"].into_iter();
    styles.filter(|style| style.starts_with(&typed.value)).map(str::to_owned).collect()
}
