//! What a session has settled besides who its client is.

use std::sync::Arc;

use mcp_types::{InitializeRequestParams, LoggingLevel, RawObject, Revision};

use super::client::StoredHandshake;
use super::config::ServerConfig;
use super::connection::Connection;
use super::lifecycle::{Agreed, Lifecycle};

/// What a legacy client has settled in its session, for somebody who keeps that and goes on with it elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionState {
    /// The revision that was agreed on.
    pub revision: Revision,
    /// Whether the client has confirmed the handshake.
    pub is_ready: bool,
    /// The least that the client wants to see of the log.
    pub log_level: LoggingLevel,
    /// The resources that the client has subscribed to.
    pub subscriptions: Vec<String>,
}

impl SessionState {
    /// Describes a session after its handshake.
    #[must_use]
    pub fn new(revision: Revision) -> Self {
        Self { revision, is_ready: false, log_level: LoggingLevel::Info, subscriptions: Vec::new() }
    }
}

impl Connection {
    /// A connection that goes on with a session which began elsewhere: with the parameters of its `initialize`, and what
    /// was settled since.
    ///
    /// # Errors
    ///
    /// Returns an error if `initialize` is not what its client can have sent.
    pub fn resume(
        config: Arc<ServerConfig>,
        initialize: RawObject,
        state: SessionState,
    ) -> Result<Self, serde_json::Error> {
        initialize.decode::<InitializeRequestParams>()?;
        let mut connection = Self::long_lived(config);
        let client = Arc::new(StoredHandshake::new(initialize));
        connection.lifecycle = Lifecycle::Negotiated(Agreed { revision: state.revision, client });
        connection.refresh(state);
        Ok(connection)
    }

    /// The parameters of `initialize`, after a handshake: whoever keeps sessions keeps them once.
    #[must_use]
    pub fn initialize_params(&self) -> Option<&RawObject> {
        self.lifecycle.agreed()?.client.text()
    }

    /// How many bytes the client makes the connection keep between requests: its handshake, and its subscriptions.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        /// What an entry takes beside its text.
        const ENTRY: usize = 64;
        let handshake = self.initialize_params().map_or(0, |params| params.as_str().len());
        self.subscriptions.iter().map(|uri| uri.len() + ENTRY).sum::<usize>() + handshake
    }

    /// Takes over what was settled elsewhere.
    pub fn refresh(&mut self, state: SessionState) {
        if state.is_ready {
            self.lifecycle.initialized();
        }
        self.log_level = state.log_level;
        self.subscriptions = state.subscriptions.into_iter().take(self.config.limits.max_subscriptions).collect();
    }

    /// What was settled here, after a handshake.
    #[must_use]
    pub fn session_state(&self) -> Option<SessionState> {
        let mut state = SessionState::new(self.negotiated().filter(|_| !self.lifecycle.is_stateless())?);
        state.is_ready = self.lifecycle.is_ready();
        state.log_level = self.log_level;
        state.subscriptions = self.subscriptions.iter().cloned().collect();
        Some(state)
    }
}
