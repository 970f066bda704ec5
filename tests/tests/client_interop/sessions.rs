//! Sessions over HTTP that outlive their clients.

use mcp_client::{Client, CloseReason, Mode, SavedSession};
use serde_json::json;

use crate::report::{OrSay as _, Outcome, same};
use crate::server::{Requests, Server};

/// A session goes on in another client, and is over when that is closed. Then the server does not know it any more, and
/// a third client begins a new one without losing its call.
pub(crate) async fn saved(server: &Server) -> Outcome {
    let requests = Requests::default();
    // Its stream would be opened at any time, which would count.
    let transport = server.http(&requests).end_session_on_close(false).standalone_stream(false);
    let first = Client::builder("first", "1.0").mode(Mode::Legacy).connect(transport).await.or_say("first")?;
    let session = first.save_session().or_say("there is no session")?;
    let before = requests.count();
    same(first.close().await, CloseReason::ByClient)?;
    same(requests.count(), before)?;

    let second = resume(server, &session).await?;
    second.ping().await.or_say("second")?;
    same(second.session_id(), Some(session.id.clone()))?;
    same(second.server().info.map(|info| info.name), Some("interop".to_owned()))?;
    same(second.close().await, CloseReason::ByClient)?;

    let third = resume(server, &session).await?;
    let result = third.call_tool("add").arguments(&json!({ "a": 2, "b": 3 })).await.or_say("third")?;
    same(result.is_error.unwrap_or(false), false)?;
    let id = third.session_id().or_say("there is no new session")?;
    same(id == session.id, false)?;
    same(third.close().await, CloseReason::ByClient)
}

async fn resume(server: &Server, session: &SavedSession) -> Outcome<Client> {
    let builder = Client::builder("other", "1.0").mode(Mode::Legacy).resume_session(session.clone());
    builder.connect(server.http(&Requests::default())).await.or_say("resume")
}
