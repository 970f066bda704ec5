//! Notes: state that tools share, and resources that come, go and change while the server runs.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Mutex, PoisonError};

use mcp_server::types::ToolAnnotations;
use mcp_server::{
    Change, CompletionInput, Elicited, HandlerError, Json, NoArguments, RequestContext, Resource, Template, Tool,
    UriVariables, resource, tool,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All notes. The server keeps them for its handlers: `ServerBuilder::state` gives, `RequestContext::state` takes.
#[derive(Default)]
pub(crate) struct Notes(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    notes: BTreeMap<u32, Note>,
    last: u32,
}

#[derive(Clone, Serialize, JsonSchema)]
pub(crate) struct Note {
    pub(crate) id: u32,
    /// The address under which the note can be read
    pub(crate) uri: String,
    pub(crate) title: String,
    pub(crate) text: String,
}

/// Whatever clients can make grow has a limit.
const MOST_NOTES: usize = 100;
const LONGEST: usize = 10_000;

impl Notes {
    /// The notes of the server that a request came to.
    pub(crate) fn of(ctx: &RequestContext) -> &Self {
        ctx.state().expect("the server was built with notes")
    }

    fn with<R>(&self, act: impl FnOnce(&mut Kept) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn get(&self, id: u32) -> Option<Note> {
        self.with(|kept| kept.notes.get(&id).cloned())
    }

    fn all(&self) -> Vec<Note> {
        self.with(|kept| kept.notes.values().cloned().collect())
    }
}

pub(crate) fn unknown(id: u32) -> HandlerError {
    HandlerError::new(format!("there is no note {id}; list_notes says which there are"))
}

fn check(text: &str) -> Result<(), HandlerError> {
    if text.len() > LONGEST {
        return Err(HandlerError::new(format!("the text is too long: at most {LONGEST} bytes")));
    }
    Ok(())
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    title: String,
    text: String,
}

/// Keeps a note, and makes it a resource: clients are told that the list of resources has changed.
pub(crate) fn keep(ctx: &RequestContext, title: String, text: String) -> Result<Note, HandlerError> {
    check(&title)?;
    check(&text)?;
    let note = Notes::of(ctx).with(|kept| {
        if kept.notes.len() >= MOST_NOTES {
            return Err(HandlerError::new("there are too many notes: delete one with delete_note first"));
        }
        kept.last += 1;
        let id = kept.last;
        let note = Note { id, uri: format!("note://{id}"), title, text };
        kept.notes.insert(id, note.clone());
        Ok(note)
    })?;
    ctx.server().update(|registry| registry.add_resource(as_resource(&note)))?;
    Ok(note)
}

/// Adds a note.
pub(crate) fn add() -> Tool {
    let run = async |ctx: RequestContext, Add { title, text }| keep(&ctx, title, text).map(Json);
    tool("add_note", run)
        .title("Add a note")
        .description("Keeps a note until the server ends")
        .annotations(ToolAnnotations::default().destructive_hint(false).open_world_hint(false))
}

fn as_resource(note: &Note) -> Resource {
    let id = note.id;
    let read = move |ctx: RequestContext| ready(Notes::of(&ctx).get(id).map(|note| note.text));
    resource(&note.uri, format!("note-{id}"), read).title(&note.title).mime_type("text/plain")
}

#[derive(Serialize, JsonSchema)]
struct Listed {
    notes: Vec<Note>,
}

/// Lists the notes.
pub(crate) fn list() -> Tool {
    tool("list_notes", async |ctx, _: NoArguments| Json(Listed { notes: Notes::of(&ctx).all() }))
        .title("List notes")
        .description("Lists all notes with their texts")
        .annotations(ToolAnnotations::default().read_only_hint(true).open_world_hint(false))
}

#[derive(Deserialize, JsonSchema)]
struct Edit {
    id: u32,
    /// What replaces the text
    text: String,
}

/// Changes a note; clients that subscribed to its resource are told.
pub(crate) fn edit() -> Tool {
    let run = async |ctx: RequestContext, Edit { id, text }| -> Result<Json<Note>, HandlerError> {
        check(&text)?;
        let note = Notes::of(&ctx).with(|kept| {
            let note = kept.notes.get_mut(&id).ok_or_else(|| unknown(id))?;
            note.text = text;
            Ok::<_, HandlerError>(note.clone())
        })?;
        ctx.server().publish(&Change::Resource(note.uri.clone()));
        Ok(Json(note))
    };
    tool("edit_note", run)
        .title("Edit a note")
        .description("Replaces the text of a note")
        .annotations(ToolAnnotations::default().idempotent_hint(true).open_world_hint(false))
}

#[derive(Deserialize, JsonSchema)]
struct Delete {
    id: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    /// Whether the note goes for good
    delete: bool,
}

/// Deletes a note, and its resource, if the user agrees. Where nobody can be asked, nothing is deleted.
///
/// Nothing happens before the question, so it does not matter that the handler begins anew when the answer is there.
pub(crate) fn delete() -> Tool {
    let run = async |ctx: RequestContext, Delete { id }| -> Result<String, HandlerError> {
        let note = Notes::of(&ctx).get(id).ok_or_else(|| unknown(id))?;
        let question = format!("Delete the note \"{}\"?", note.title);
        let answer = ctx.elicit("delete", question).await?;
        if !matches!(answer, Elicited::Accepted(Confirmation { delete: true })) {
            return Ok(format!("kept \"{}\": the user does not want to delete it", note.title));
        }
        // People take their time, so somebody else may have been faster.
        let note = Notes::of(&ctx).with(|kept| kept.notes.remove(&id)).ok_or_else(|| unknown(id))?;
        ctx.server().update(|registry| {
            registry.remove_resource(&note.uri);
            Ok(())
        })?;
        Ok(format!("deleted \"{}\"", note.title))
    };
    tool("delete_note", run)
        .title("Delete a note")
        .description("Deletes a note for good, once the user has confirmed it")
        .annotations(ToolAnnotations::default().open_world_hint(false))
}

#[derive(Deserialize)]
struct Address {
    id: u32,
}

/// The address of any note, for clients that know an id: it can be read and completed.
pub(crate) fn template() -> Template {
    let read = async |ctx: RequestContext, variables: UriVariables| -> Option<String> {
        let Address { id } = variables.decode().ok()?;
        Notes::of(&ctx).get(id).map(|note| note.text)
    };
    mcp_server::template("note://{id}", "note", read)
        .title("Note")
        .description("A note by its id")
        .mime_type("text/plain")
        .complete("id", complete_id)
}

/// Suggests the ids of notes.
pub(crate) async fn complete_id(ctx: RequestContext, typed: CompletionInput) -> Vec<String> {
    let ids = Notes::of(&ctx).all().into_iter().map(|note| note.id.to_string());
    ids.filter(|id| id.starts_with(&typed.value)).collect()
}
