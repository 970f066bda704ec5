//! A prompt with typed arguments and completion.

use mcp::schemars::{self, JsonSchema};
use mcp::server::{CompletionInput, Prompt, RequestContext, prompt};
use mcp::types::{ContentBlock, ErrorObject, PromptMessage, ResourceContents};
use serde::Deserialize;

use crate::notes::{Notes, complete_id};

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Style {
    Headline,
    Paragraph,
    Bullets,
}

/// The protocol transfers arguments of prompts as strings, which are parsed into these types.
#[derive(Deserialize, JsonSchema)]
struct Summarize {
    /// The id of the note
    note: u32,
    /// One of headline, paragraph, bullets; defaults to paragraph
    style: Option<Style>,
    /// The maximum number of words
    words: Option<u32>,
}

/// Returns a prompt that summarizes a note.
pub(crate) fn summarize() -> Prompt {
    prompt("summarize_note", run)
        .title("Summarize a note")
        .description("Summarizes a note in the given style and length")
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
