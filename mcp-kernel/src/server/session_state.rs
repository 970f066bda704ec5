//! What a session has settled besides who its client is.

use std::sync::Arc;

use mcp_types::{InitializeRequestParams, LoggingLevel, Revision};

use super::config::ServerConfig;
use super::connection::Connection;
use super::lifecycle::{Agreed, Client, Lifecycle};

/// What a legacy client has settled in its session, for somebody who keeps that and goes on with it elsewhere (S4.116).
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
    /// A connection that goes on with a session which began elsewhere: with what its client said then, and what was
    /// settled since.
    #[must_use]
    pub fn resume(config: Arc<ServerConfig>, client: InitializeRequestParams, state: SessionState) -> Self {
        let mut connection = Self::for_loop(config);
        let client = Client { capabilities: client.capabilities, info: Some(client.client_info) };
        connection.lifecycle = Lifecycle::Negotiated(Agreed { revision: state.revision, client: Arc::new(client) });
        connection.refresh(state);
        connection
    }

    /// Takes over what was settled elsewhere.
    pub fn refresh(&mut self, state: SessionState) {
        if state.is_ready {
            self.lifecycle.initialized();
        }
        self.log_level = state.log_level;
        self.subscriptions = state.subscriptions.into_iter().take(self.config.limits.subscriptions).collect();
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
