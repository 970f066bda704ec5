//! Tools that ask the user, in every era: `docs/asking-the-user.md` says what happens then.

use std::sync::atomic::{AtomicU32, Ordering};

use mcp_server::types::{CreateMessageRequestParams, CreateMessageResult, SamplingMessage, ToolAnnotations};
use mcp_server::{HandlerError, Json, RequestContext, Tool, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::notes::{Note, Notes, keep, unknown};

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

/// Asks two things at once: the user thinks of a title while the client's model writes the text.
///
/// The note is added after the last question, so it is added once.
pub(crate) fn draft() -> Tool {
    let run = async |ctx: RequestContext, Draft { about }: Draft| -> Result<Json<Note>, HandlerError> {
        let order = format!("Write a note of at most three sentences about this: {about}");
        let order = CreateMessageRequestParams::new(vec![SamplingMessage::user(order)], 200);
        let question = format!("What is the title of the note about {about}?");
        let (title, text) = tokio::join!(ctx.elicit("title", question), ctx.sample("text", order));
        let Title { title } = title?.accepted()?;
        keep(&ctx, title, written(&text?)).map(Json)
    };
    tool("draft_note", run)
        .title("Draft a note")
        .description("Has the client's model write a note, to which the user gives a title")
        .annotations(ToolAnnotations::default().destructive_hint(false).open_world_hint(false))
}

fn written(message: &CreateMessageResult) -> String {
    message.content.as_slice().iter().filter_map(|content| content.as_text()).collect()
}

/// How many stamps were sold. It is play money.
#[derive(Default)]
pub(crate) struct Till(AtomicU32);

impl Till {
    fn of(ctx: &RequestContext) -> &Self {
        ctx.state().expect("the server was built with a till")
    }

    /// Sells a stamp; returns the number of the receipt.
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
    /// How many stamps were sold since the server started
    sold: u32,
}

/// Charges for a stamp, and asks for the address afterwards.
///
/// With a modern client the handler begins anew when the answer is there. The receipt of the first run is found again,
/// and nobody pays twice.
pub(crate) fn post() -> Tool {
    let run = async |ctx: RequestContext, Post { id }: Post| -> Result<Json<Posted>, HandlerError> {
        let Note { title, .. } = Notes::of(&ctx).get(id).ok_or_else(|| unknown(id))?;
        let receipt = ctx.once("stamp", || async { Ok::<_, HandlerError>(Till::of(&ctx).charge().await) }).await?;
        let answer = ctx.elicit("address", format!("Where does the note \"{title}\" go?")).await?;
        let Address { address } = answer
            .accepted()
            .map_err(|why| HandlerError::new(format!("{why}; the stamp with receipt {receipt} can be returned")))?;
        Ok(Json(Posted { title, address, receipt, sold: Till::of(&ctx).sold() }))
    };
    tool("post_note", run)
        .title("Post a note")
        .description("Pretends to send a note by mail: charges for a stamp, then asks the user for the address")
        .annotations(ToolAnnotations::default().destructive_hint(false).open_world_hint(false))
}
