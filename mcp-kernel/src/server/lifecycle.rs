//! The handshake of the legacy era.
//!
//! ```text
//!   Fresh --initialize--> Negotiated --notifications/initialized--> Ready
//!
//!   Stateless: one legacy request, without a session
//!   ModernOnly: one modern request
//! ```
//!
//! A second `initialize` never changes the state; the transport chooses the response ([`SecondHandshake`]). Modern
//! requests do not use the handshake.

use std::sync::Arc;

use mcp_types::{Era, InitializeRequestParams, InitializeResult, Method, ProtocolVersion, RawObject, Revision};

use super::client::{Client, StoredHandshake};
use super::config::ServerConfig;
use crate::errors::PeerMisbehaved;

/// The response to `initialize` on a connection whose handshake is complete. The state of the connection never changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecondHandshake {
    /// An error: each client has its own connection or session.
    #[default]
    Refuse,
    /// The same result, if version and capabilities are the same: a gateway may forward the handshakes of several
    /// clients. Otherwise an error.
    Repeat,
    /// As [`Repeat`](Self::Repeat) while requests are in flight. Otherwise the driver replaces the connection by a new
    /// one ([`Connection::is_restart`](super::Connection::is_restart)).
    Restart,
}

/// The state of the handshake.
pub(crate) enum Lifecycle {
    /// No `initialize` was received.
    Fresh,
    /// The response to `initialize` was queued.
    Negotiated(Agreed),
    /// `notifications/initialized` was received.
    Ready(Agreed),
    /// There is no handshake: one request is served, in this revision and without client capabilities.
    Stateless(Agreed),
    /// Legacy requests are not served.
    ModernOnly,
}

/// The result of the handshake.
#[derive(Clone, Debug)]
pub(crate) struct Agreed {
    pub(crate) revision: Revision,
    /// The handshake, if there was one.
    pub(crate) client: Option<Arc<StoredHandshake>>,
}

impl Agreed {
    /// A revision, and a client that declared nothing.
    pub(crate) fn unknown(revision: Revision) -> Self {
        Self { revision, client: None }
    }

    /// The client, which is decoded if no request uses it now.
    pub(crate) fn read_client(&self) -> Arc<Client> {
        self.client.as_ref().map_or_else(Arc::default, |handshake| handshake.read())
    }
}

impl Lifecycle {
    /// The result of the handshake, once the response to `initialize` was queued.
    pub(crate) fn agreed(&self) -> Option<&Agreed> {
        match self {
            Self::Negotiated(agreed) | Self::Ready(agreed) | Self::Stateless(agreed) => Some(agreed),
            Self::Fresh | Self::ModernOnly => None,
        }
    }

    /// Returns whether the server may send messages that belong to no request.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self, Self::Ready(_))
    }

    /// Returns whether there is no session for the legacy request.
    pub(crate) fn is_stateless(&self) -> bool {
        matches!(self, Self::Stateless(_))
    }

    /// Returns whether a handshake may follow, or a request without a session may be one.
    pub(crate) fn awaits_handshake(&self) -> bool {
        matches!(self, Self::Fresh | Self::Stateless(_))
    }

    /// The revision of the response to `initialize`: the requested one, or the newest one if that is not served.
    // B-2
    pub(crate) fn revision_for(&self, requested: &ProtocolVersion, config: &ServerConfig) -> Option<Revision> {
        let newest = config.of_era(Era::Legacy).next().filter(|_| !matches!(self, Self::ModernOnly))?;
        let asked = requested.revision().filter(|revision| revision.era() == Era::Legacy);
        Some(asked.filter(|revision| config.revisions.contains(revision)).unwrap_or(newest))
    }

    /// Responds to `initialize` with the requested version, or with the newest one if that is not served.
    // B-2
    pub(crate) fn initialize(
        &mut self,
        params: InitializeRequestParams,
        text: impl FnOnce() -> RawObject,
        config: &ServerConfig,
        second: SecondHandshake,
    ) -> Result<InitializeResult, PeerMisbehaved> {
        let Some(revision) = self.revision_for(&params.protocol_version, config) else {
            // V-9: a modern server names its versions.
            let (requested, supported) = (params.protocol_version, config.versions(Era::Modern));
            return Err(PeerMisbehaved::UnsupportedVersion { requested, supported });
        };
        match self {
            Self::Fresh => {
                let client = Some(Arc::new(StoredHandshake::new(text())));
                *self = Self::Negotiated(Agreed { revision, client });
            }
            Self::Negotiated(agreed) | Self::Ready(agreed) => {
                let is_same = agreed.revision == revision && agreed.read_client().capabilities == params.capabilities;
                match second {
                    SecondHandshake::Refuse => return Err(PeerMisbehaved::InitializedTwice),
                    SecondHandshake::Repeat if !is_same => return Err(PeerMisbehaved::InitializedDifferently),
                    SecondHandshake::Restart if !is_same => return Err(PeerMisbehaved::InitializedWhileBusy),
                    SecondHandshake::Repeat | SecondHandshake::Restart => {}
                }
            }
            Self::Stateless(_) | Self::ModernOnly => {}
        }
        let mut capabilities = config.declared(revision);
        if self.is_stateless() {
            // S0.22: without a session there are no later notifications, and no log level is stored (Y-1).
            capabilities.logging = None;
            capabilities.tools.iter_mut().for_each(|tools| tools.list_changed = None);
            capabilities.prompts.iter_mut().for_each(|prompts| prompts.list_changed = None);
            capabilities.resources.iter_mut().for_each(|has| (has.list_changed, has.subscribe) = (None, None));
        }
        let mut result = InitializeResult::new(ProtocolVersion::from(revision), capabilities, config.info().clone());
        result.instructions.clone_from(&config.instructions);
        Ok(result)
    }

    /// Records `notifications/initialized`; returns whether it was expected.
    pub(crate) fn initialized(&mut self) -> bool {
        if let Self::Negotiated(agreed) = self {
            *self = Self::Ready(agreed.clone());
            return true;
        }
        self.is_stateless()
    }

    /// Returns the revision and the client of a legacy request, or the error if it is too early or needs a modern
    /// envelope.
    // B-4, S0.17, X-11
    pub(crate) fn admit(&self, method: &Method, config: &ServerConfig) -> Result<Agreed, PeerMisbehaved> {
        let missing_envelope =
            || PeerMisbehaved::InvalidParams("`_meta`: missing field `io.modelcontextprotocol/protocolVersion`".into());
        match self {
            Self::Ready(agreed) | Self::Stateless(agreed) => Ok(agreed.clone()),
            Self::Fresh if !config.serves(Era::Legacy) => Err(missing_envelope()),
            Self::Negotiated(agreed) if *method == Method::PING || !config.require_initialized => Ok(agreed.clone()),
            Self::Fresh if *method == Method::PING => Ok(Agreed::unknown(Revision::LATEST_LEGACY)),
            Self::Negotiated(_) | Self::Fresh => Err(PeerMisbehaved::TooEarly(method.clone())),
            Self::ModernOnly => Err(missing_envelope()),
        }
    }
}
