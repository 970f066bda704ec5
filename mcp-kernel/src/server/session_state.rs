//! The state of a legacy session that another process can resume.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_types::{InitializeRequestParams, LoggingLevel, RawObject, Revision};

use super::client::StoredHandshake;
use super::config::ServerConfig;
use super::connection::Connection;
use super::event::Event;
use super::lifecycle::{Agreed, Lifecycle};

/// The state of a legacy session, apart from the parameters of `initialize`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionState {
    /// The negotiated revision.
    pub revision: Revision,
    /// Whether the client has sent `notifications/initialized`.
    pub is_ready: bool,
    /// The minimum level of log messages for the client.
    pub log_level: LoggingLevel,
    /// The URIs of the resources that the client has subscribed to.
    pub subscriptions: Vec<String>,
}

impl SessionState {
    /// Creates the state of a session after `initialize`.
    #[must_use]
    pub fn new(revision: Revision) -> Self {
        Self { revision, is_ready: false, log_level: LoggingLevel::Info, subscriptions: Vec::new() }
    }
}

impl Connection {
    /// Creates a connection that resumes a session of another process, with the parameters of its `initialize`.
    ///
    /// # Errors
    ///
    /// Returns an error if `initialize` does not have valid parameters.
    pub fn resume(
        config: Arc<ServerConfig>,
        initialize: RawObject,
        state: SessionState,
    ) -> Result<Self, serde_json::Error> {
        initialize.decode::<InitializeRequestParams>()?;
        let mut connection = Self::long_lived(config);
        let client = Some(Arc::new(StoredHandshake::new(initialize)));
        connection.lifecycle = Lifecycle::Negotiated(Agreed { revision: state.revision, client });
        connection.refresh(state);
        Ok(connection)
    }

    /// Returns the parameters of `initialize`, after the handshake. They never change.
    #[must_use]
    pub fn initialize_params(&self) -> Option<&RawObject> {
        self.lifecycle.agreed()?.client.as_ref().map(|handshake| handshake.text())
    }

    /// Returns the memory that the client occupies between requests: by its handshake and its subscriptions.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        /// The size of an entry without its text.
        const ENTRY: usize = 64;
        let handshake = self.initialize_params().map_or(0, |params| params.as_str().len());
        self.rare.subscriptions.iter().map(|uri| uri.len() + ENTRY).sum::<usize>() + handshake
    }

    /// Replaces the state of the session by that of another process.
    pub fn refresh(&mut self, state: SessionState) {
        if state.is_ready {
            self.lifecycle.initialized();
        }
        self.log_level = state.log_level;
        let most = self.config.limits.max_subscriptions;
        let subscriptions: BTreeSet<String> = state.subscriptions.into_iter().take(most).collect();
        let ended: Vec<String> = self.rare.subscriptions.difference(&subscriptions).cloned().collect();
        let begun: Vec<String> = subscriptions.difference(&self.rare.subscriptions).cloned().collect();
        if !ended.is_empty() || !begun.is_empty() {
            self.rare.make_mut().subscriptions = subscriptions;
        }
        for (uris, active) in [(ended, false), (begun, true)] {
            for uri in uris {
                self.note_subscription(uri, active);
            }
        }
    }

    /// Emits the begin or the end of a subscription, unless the opposite was not polled yet: other processes must not make
    /// the events grow while the application does not poll them.
    fn note_subscription(&mut self, uri: String, active: bool) {
        let is_opposite = |event: &Event| matches!(event, Event::Subscription { uri: other, active: was } if *other == uri && *was != active);
        if !self.events.remove_last(is_opposite) {
            self.emit(Event::Subscription { uri, active });
        }
    }

    /// Returns the state of the session, after `initialize`.
    #[must_use]
    pub fn session_state(&self) -> Option<SessionState> {
        let mut state = SessionState::new(self.negotiated().filter(|_| !self.lifecycle.is_stateless())?);
        state.is_ready = self.lifecycle.is_ready();
        state.log_level = self.log_level;
        state.subscriptions = self.rare.subscriptions.iter().cloned().collect();
        Some(state)
    }
}
