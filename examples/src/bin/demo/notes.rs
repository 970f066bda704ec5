//! Notes: state shared by tools, and resources that are added, removed and changed while the server runs.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Mutex, PoisonError};

use mcp::schemars::{self, JsonSchema};
use mcp::server::{
    Change, CompletionInput, Elicited, HandlerError, Json, NoArguments, RequestContext, Resource, Template, Tool,
    UriVariables, resource, tool,
};
use mcp::types::ToolAnnotations;
use serde::{Deserialize, Serialize};

/// All notes. `ServerBuilder::state` stores them, and handlers get them from `RequestContext::state`.
#[derive(Default)]
pub(crate) struct Notes(Mutex<Contents>);

#[derive(Default)]
struct Contents {
    notes: BTreeMap<u32, Note>,
    last_id: u32,
}

#[derive(Clone, Serialize, JsonSchema)]
pub(crate) struct Note {
    pub(crate) id: u32,
    /// The URI of the resource
    pub(crate) uri: String,
    pub(crate) title: String,
    pub(crate) text: String,
}

// Everything that clients can make grow has a limit.
const MAX_NOTES: usize = 100;
const MAX_BYTES: usize = 10_000;

impl Notes {
    /// Returns the notes of the server that handles the request.
    pub(crate) fn of(ctx: &RequestContext) -> &Self {
        ctx.state().expect("the server was built with notes")
    }

    fn with<R>(&self, act: impl FnOnce(&mut Contents) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn get(&self, id: u32) -> Option<Note> {
        self.with(|contents| contents.notes.get(&id).cloned())
    }

    fn all(&self) -> Vec<Note> {
        self.with(|contents| contents.notes.values().cloned().collect())
    }
}

pub(crate) fn unknown_note(id: u32) -> HandlerError {
    HandlerError::new(format!("there is no note {id}; call list_notes for the ids"))
}

fn check_length(text: &str) -> Result<(), HandlerError> {
    if text.len() > MAX_BYTES {
        return Err(HandlerError::new(format!("the text is too long: at most {MAX_BYTES} bytes")));
    }
    Ok(())
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    title: String,
    text: String,
}

/// Stores a note and registers its resource, which sends list-changed notifications.
pub(crate) fn store(ctx: &RequestContext, title: String, text: String) -> Result<Note, HandlerError> {
    check_length(&title)?;
    check_length(&text)?;
    let note = Notes::of(ctx).with(|contents| {
        if contents.notes.len() >= MAX_NOTES {
            return Err(HandlerError::new("there are too many notes: delete one with delete_note first"));
        }
        contents.last_id += 1;
        let id = contents.last_id;
        let note = Note { id, uri: format!("note://{id}"), title, text };
        contents.notes.insert(id, note.clone());
        Ok(note)
    })?;
    ctx.server().update(|registry| registry.add_resource(as_resource(&note)))?;
    Ok(note)
}

/// Adds a note.
pub(crate) fn add() -> Tool {
    let run = async |ctx: RequestContext, Add { title, text }| store(&ctx, title, text).map(Json);
    tool("add_note", run)
        .title("Add a note")
        .description("Adds a note, which is kept until the server stops")
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
    /// The new text
    text: String,
}

/// Changes a note, and notifies the subscribers of its resource.
pub(crate) fn edit() -> Tool {
    let run = async |ctx: RequestContext, Edit { id, text }| -> Result<Json<Note>, HandlerError> {
        check_length(&text)?;
        let note = Notes::of(&ctx).with(|contents| {
            let note = contents.notes.get_mut(&id).ok_or_else(|| unknown_note(id))?;
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
    /// Whether to delete the note for good
    delete: bool,
}

/// Deletes a note and its resource, if the user confirms. Clients without elicitation cannot delete notes.
///
/// The handler has no side effects before the elicitation, so it may run again from its beginning.
pub(crate) fn delete() -> Tool {
    let run = async |ctx: RequestContext, Delete { id }| -> Result<String, HandlerError> {
        let note = Notes::of(&ctx).get(id).ok_or_else(|| unknown_note(id))?;
        let message = format!("Delete the note \"{}\"?", note.title);
        let response = ctx.elicit("delete", message).await?;
        if !matches!(response, Elicited::Accepted(Confirmation { delete: true })) {
            return Ok(format!("kept \"{}\": the user does not want to delete it", note.title));
        }
        // Another request may have deleted the note in the meantime.
        let note = Notes::of(&ctx).with(|contents| contents.notes.remove(&id)).ok_or_else(|| unknown_note(id))?;
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
struct Variables {
    id: u32,
}

/// The template of the URIs of notes, with completion of the id.
pub(crate) fn template() -> Template {
    let read = async |ctx: RequestContext, variables: UriVariables| -> Option<String> {
        let Variables { id } = variables.decode().ok()?;
        Notes::of(&ctx).get(id).map(|note| note.text)
    };
    mcp::server::template("note://{id}", "note", read)
        .title("Note")
        .description("A note by its id")
        .mime_type("text/plain")
        .complete("id", complete_id)
}

/// Completes the ids of notes.
pub(crate) async fn complete_id(ctx: RequestContext, typed: CompletionInput) -> Vec<String> {
    let ids = Notes::of(&ctx).all().into_iter().map(|note| note.id.to_string());
    ids.filter(|id| id.starts_with(&typed.value)).collect()
}
