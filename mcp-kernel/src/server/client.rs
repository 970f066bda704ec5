//! What a client says about itself.

use std::sync::{Arc, OnceLock};

use mcp_types::{ClientCapabilities, Implementation, InitializeRequestParams, RawObject};

/// What a client says about itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) info: Option<Implementation>,
}

impl From<InitializeRequestParams> for Client {
    fn from(params: InitializeRequestParams) -> Self {
        Self { capabilities: params.capabilities, info: Some(params.client_info) }
    }
}

/// What a client said in its handshake, as the text of its parameters.
///
/// A session keeps it for hours, and few requests need it. As values it takes many times as much memory: a member of nine
/// bytes becomes a hundred.
#[derive(Debug, Default)]
pub(crate) struct Introduction(Option<RawObject>);

impl Introduction {
    /// `initialize` is known to be readable.
    pub(crate) fn new(initialize: RawObject) -> Self {
        Self(Some(initialize))
    }

    pub(crate) fn text(&self) -> Option<&RawObject> {
        self.0.as_ref()
    }

    pub(crate) fn read(&self) -> Client {
        let params = self.0.as_ref().and_then(|text| text.decode::<InitializeRequestParams>().ok());
        params.map(Client::from).unwrap_or_default()
    }
}

/// What is known about a client: what the request says, or what the handshake said for all of them.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "it is a part of what a request allocates anyway")]
pub(crate) enum Known {
    Own(Client),
    /// It is read when it is needed.
    Shared(Arc<Introduction>, OnceLock<Box<Client>>),
}

impl Known {
    pub(crate) fn shared(introduction: Arc<Introduction>) -> Self {
        Self::Shared(introduction, OnceLock::new())
    }
}

impl std::ops::Deref for Known {
    type Target = Client;

    fn deref(&self) -> &Client {
        match self {
            Self::Own(client) => client,
            Self::Shared(introduction, read) => read.get_or_init(|| Box::new(introduction.read())),
        }
    }
}
