//! One client with one server.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_client::types::{
    CreateMessageResult, ElicitAction, ElicitResult, ElicitValue, Era, OrderedMap, Revision, Role, Root,
    SamplingContent, TextContent,
};
use mcp_client::{Client, ClientBuilder, Error, Mode};

use crate::peer::Peer;
use crate::server::{Complaints, Requests, Server, Via};

/// A client, the server it talks to, and what is heard of both.
pub(crate) struct Scene {
    pub(crate) peer: &'static Peer,
    pub(crate) via: Via,
    pub(crate) mode: String,
    pub(crate) client: Client,
    pub(crate) revision: Revision,
    pub(crate) heard: Heard,
    pub(crate) requests: Requests,
    pub(crate) complaints: Complaints,
}

/// What the client hears, and how it answers.
#[derive(Clone, Default)]
pub(crate) struct Heard {
    logs: Arc<Mutex<Vec<String>>>,
    /// Whether forms are declined.
    pub(crate) declines: Arc<AtomicBool>,
}

impl Heard {
    pub(crate) fn logs(&self) -> Vec<String> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Scene {
    /// Connects; the builder has been told what is special.
    pub(crate) async fn open(
        peer: &'static Peer,
        server: &Server,
        mode: &str,
        builder: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Self, Error> {
        let (heard, requests) = (Heard::default(), Requests::default());
        let builder = builder(client(&heard));
        let client = match server.via() {
            Via::Stdio => builder.connect(server.child()).await?,
            Via::Http | Via::Sse => builder.connect(server.http(&requests)).await?,
        };
        let revision = client.revision().expect("it is connected");
        Ok(Self {
            peer,
            via: server.via(),
            mode: mode.to_owned(),
            client,
            revision,
            heard,
            requests,
            complaints: server.complaints.clone(),
        })
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.revision.era() == Era::Modern
    }

    /// Whether it is legacy, over Streamable HTTP.
    pub(crate) fn has_session(&self) -> bool {
        !self.is_modern() && self.via == Via::Http
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over {:?}, {} ({})", self.peer.name, self.via, self.mode, self.revision.as_str())
    }
}

/// A client that can do everything for a server.
fn client(heard: &Heard) -> ClientBuilder {
    let (declines, logs) = (Arc::clone(&heard.declines), Arc::clone(&heard.logs));
    Client::builder("interop-client", "1.0")
        // None of the servers is silent, but some take their time to start on a machine that is busy.
        .probe_timeout(Duration::from_secs(60))
        .on_form_elicitation(move |_, _| {
            let is_declined = declines.load(Ordering::Relaxed);
            async move {
                if is_declined {
                    return ElicitResult::new(ElicitAction::Decline);
                }
                let mut content = OrderedMap::new();
                content.insert("name", ElicitValue::String("Ann".to_owned()));
                ElicitResult::accepted(content)
            }
        })
        .on_sampling(async |_, _| {
            CreateMessageResult::new(Role::ASSISTANT, SamplingContent::from(TextContent::new("sampled")), "a-model")
        })
        .roots([Root::new("file:///one"), Root::new("file:///two")])
        .on_log(move |_, message| {
            logs.lock().unwrap_or_else(PoisonError::into_inner).push(message.data.as_str().to_owned());
        })
}

/// Makes a client speak one revision alone.
pub(crate) fn pinned(revision: Revision) -> impl FnOnce(ClientBuilder) -> ClientBuilder {
    let mode = if revision.era() == Era::Modern { Mode::Modern } else { Mode::Legacy };
    move |builder| builder.mode(mode).revisions([revision])
}
