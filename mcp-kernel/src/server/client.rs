//! The capabilities and the name of a client.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use mcp_types::{ClientCapabilities, ClientCapability, Implementation, InitializeRequestParams, RawObject};

use super::connection::Connection;
use super::lifecycle::{Agreed, Lifecycle};

/// The capabilities and the name that a client declares.
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

/// The parameters of `initialize`, as text.
///
/// A session keeps them for hours, and few requests need them. Decoded they take many times as much memory: a member of
/// nine bytes becomes a hundred.
#[derive(Debug)]
pub(crate) struct StoredHandshake {
    text: RawObject,
    /// The decoded parameters, shared by concurrent requests and dropped with the last of them.
    read: Mutex<Weak<Client>>,
}

impl StoredHandshake {
    /// Stores parameters that were decoded successfully before.
    pub(crate) fn new(initialize: RawObject) -> Self {
        Self { text: initialize, read: Mutex::default() }
    }

    pub(crate) fn text(&self) -> &RawObject {
        &self.text
    }

    pub(crate) fn read(&self) -> Arc<Client> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = read.upgrade() {
            return client;
        }
        let params = self.text.decode::<InitializeRequestParams>().ok();
        let client = Arc::new(params.map(Client::from).unwrap_or_default());
        *read = Arc::downgrade(&client);
        client
    }
}

/// The client of a request: that of its envelope, or that of the handshake, which is decoded on first use.
#[derive(Clone, Debug)]
pub(crate) enum LazyClient {
    Decoded(Arc<Client>),
    Handshake(Agreed, OnceLock<Arc<Client>>),
}

impl std::ops::Deref for LazyClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        match self {
            Self::Decoded(client) => client,
            Self::Handshake(agreed, read) => read.get_or_init(|| agreed.read_client()),
        }
    }
}

impl Connection {
    /// Returns the name and version that the client claims: those of the handshake or, on a connection for one modern
    /// request, those of the request, as long as that is in flight.
    // S1.12
    #[must_use]
    pub fn client_info(&self) -> Option<Implementation> {
        self.with_client(|client| client.info.clone())?
    }

    /// Returns the capabilities that the client declared: those of the handshake or, on a connection for one modern
    /// request, those of the request, as long as that is in flight. Returns `None` if they are not known.
    // S1.19
    #[must_use]
    pub fn client_capabilities(&self) -> Option<ClientCapabilities> {
        self.with_client(|client| client.capabilities.clone())
    }

    /// Returns whether the client declared a capability. Returns `false` if its capabilities are not known.
    // S1.36
    #[must_use]
    pub fn client_supports(&self, capability: ClientCapability) -> bool {
        self.with_client(|client| capability.is_declared(&client.capabilities)).unwrap_or_default()
    }

    fn with_client<R>(&self, read: impl FnOnce(&Client) -> R) -> Option<R> {
        match &self.lifecycle {
            Lifecycle::Negotiated(agreed) | Lifecycle::Ready(agreed) => Some(read(&agreed.read_client())),
            Lifecycle::ModernOnly => self.in_flight.first().map(|entry| read(&entry.scope.client)),
            // Each request of a modern client on a lasting connection may declare something else.
            Lifecycle::Fresh | Lifecycle::Stateless(_) => None,
        }
    }
}
