//! Tools with elicitation and sampling, as explained in `docs/asking-the-user.md`.

use std::sync::atomic::{AtomicU32, Ordering};

use mcp::schemars::{self, JsonSchema};
use mcp::server::{HandlerError, Json, RequestContext, Tool, tool};
use mcp::types::{CreateMessageRequestParams, CreateMessageResult, SamplingMessage, ToolAnnotations};
use serde::{Deserialize, Serialize};

use crate::notes::{Note, Notes, store, unknown_note};

#[derive(Deserialize, JsonSchema)]
struct Draft {
    /// What the note is about
    about: String,
}

#[derive(Deserialize, JsonSchema)]
struct Title {
    /// The title of the note
    title: String,
}

/// Sends two requests at once: the user chooses a title while the client's model writes the text.
///
/// The note is stored after both, so it is stored once.
pub(crate) fn draft() -> Tool {
    let run = async |ctx: RequestContext, Draft { about }: Draft| -> Result<Json<Note>, HandlerError> {
        let prompt = format!("Write a note of at most three sentences about this: {about}");
        let prompt = CreateMessageRequestParams::new(vec![SamplingMessage::user(prompt)], 200);
        let message = format!("What is the title of the note about {about}?");
        let (title, text) = tokio::join!(ctx.elicit("title", message), ctx.sample("text", prompt));
        let Title { title } = title?.accepted()?;
        store(&ctx, title, text_of(&text?)).map(Json)
    };
    tool("draft_note", run)
        .title("Draft a note")
        .description("Lets the client's model write a note, and asks the user for its title")
        .annotations(ToolAnnotations::default().destructive_hint(false).open_world_hint(false))
}

fn text_of(message: &CreateMessageResult) -> String {
    message.content.as_slice().iter().filter_map(|content| content.as_text()).collect()
}

/// Counts the stamps that were sold. No real money is involved.
#[derive(Default)]
pub(crate) struct Till(AtomicU32);

impl Till {
    fn of(ctx: &RequestContext) -> &Self {
        ctx.state().expect("the server was built with a till")
    }

    /// Sells a stamp, and returns the number of the receipt.
    async fn charge(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn sold(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Deserialize, JsonSchema)]
struct Post {
    id: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Address {
    /// Street and town
    address: String,
}

#[derive(Serialize, JsonSchema)]
struct Posted {
    title: String,
    address: String,
    /// The receipt for the stamp
    receipt: u32,
    /// The number of stamps sold since the server started
    sold: u32,
}

/// Charges for a stamp, and asks for the address afterwards.
///
/// With a client of 2026-07-28 the handler runs again from its beginning once the user has responded. `once` then returns the
/// receipt of the first run, so that the user pays once.
pub(crate) fn post() -> Tool {
    let run = async |ctx: RequestContext, Post { id }: Post| -> Result<Json<Posted>, HandlerError> {
        let Note { title, .. } = Notes::of(&ctx).get(id).ok_or_else(|| unknown_note(id))?;
        let receipt = ctx.once("stamp", || async { Ok::<_, HandlerError>(Till::of(&ctx).charge().await) }).await?;
        let response = ctx.elicit("address", format!("Where does the note \"{title}\" go?")).await?;
        let Address { address } = response
            .accepted()
            .map_err(|error| HandlerError::new(format!("{error}; the stamp with receipt {receipt} can be returned")))?;
        Ok(Json(Posted { title, address, receipt, sold: Till::of(&ctx).sold() }))
    };
    tool("post_note", run)
        .title("Post a note")
        .description("Pretends to send a note by mail: charges for a stamp, then asks the user for the address")
        .annotations(ToolAnnotations::default().destructive_hint(false).open_world_hint(false))
}
