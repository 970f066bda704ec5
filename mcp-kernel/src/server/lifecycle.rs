//! The handshake of the legacy era.
//!
//! ```text
//!   Fresh --initialize--> Negotiated --notifications/initialized--> Ready
//!                                                        Stateless: every request alone, by legacy rules
//!                                                        ModernOnly: for one modern request, no legacy at all
//! ```
//!
//! What becomes of a second `initialize` is the transport's to say ([`SecondHandshake`]); it never negotiates anew.
//!
//! Modern requests pass by without touching any of this.

use std::sync::Arc;

use mcp_types::jsonrpc::Payload;
use mcp_types::{Era, InitializeRequestParams, InitializeResult, Method, ProtocolVersion, Revision};

use super::client::StoredHandshake;
use super::config::ServerConfig;
use crate::errors::PeerMisbehaved;

/// What becomes of `initialize` on a connection that has had its handshake. In no case is anything negotiated anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecondHandshake {
    /// It is refused: each client has a connection or a session of its own.
    #[default]
    Refuse,
    /// The same handshake, with the same version and capabilities, gets the same response and changes nothing: a gateway
    /// may pass on the handshakes of several clients. A different one is refused.
    Repeat,
    /// As [`Repeat`](Self::Repeat), while requests are in flight. Otherwise the driver begins a new connection, of which
    /// it learns by [`Connection::is_restart`](super::Connection::is_restart).
    Restart,
}

/// Where the handshake stands.
pub(crate) enum Lifecycle {
    /// Nothing was said yet.
    Fresh,
    /// `initialize` was answered.
    Negotiated(Agreed),
    /// The client confirmed.
    Ready(Agreed),
    /// There is no handshake: each request is served alone, in this revision and with nothing declared.
    Stateless(Agreed),
    /// There is no legacy here.
    ModernOnly,
}

/// What the handshake settled.
#[derive(Clone)]
pub(crate) struct Agreed {
    pub(crate) revision: Revision,
    pub(crate) client: Arc<StoredHandshake>,
}

impl Agreed {
    /// A revision with a client of which nothing is known.
    pub(crate) fn unknown(revision: Revision) -> Self {
        Self { revision, client: Arc::default() }
    }
}

impl Lifecycle {
    /// What was settled, as far as it was.
    pub(crate) fn agreed(&self) -> Option<&Agreed> {
        match self {
            Self::Negotiated(agreed) | Self::Ready(agreed) | Self::Stateless(agreed) => Some(agreed),
            Self::Fresh | Self::ModernOnly => None,
        }
    }

    /// Whether the server may send what the client did not ask for.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self, Self::Ready(_))
    }

    /// Whether each legacy request is served alone.
    pub(crate) fn is_stateless(&self) -> bool {
        matches!(self, Self::Stateless(_))
    }

    /// Answers `initialize`: echoes a version that is served, else offers the newest.
    // B-2
    pub(crate) fn initialize(
        &mut self,
        params: InitializeRequestParams,
        text: &Payload<'_>,
        config: &ServerConfig,
        second: SecondHandshake,
    ) -> Result<InitializeResult, PeerMisbehaved> {
        let newest = config.of_era(Era::Legacy).next();
        let (Some(newest), Self::Fresh | Self::Negotiated(_) | Self::Ready(_) | Self::Stateless(_)) = (newest, &*self)
        else {
            // V-9: a server without legacy names what it serves.
            let (requested, supported) = (params.protocol_version, config.versions(Era::Modern));
            return Err(PeerMisbehaved::UnsupportedVersion { requested, supported });
        };
        let asked = params.protocol_version.revision().filter(|revision| revision.era() == Era::Legacy);
        let revision = asked.filter(|revision| config.revisions.contains(revision)).unwrap_or(newest);
        match self {
            Self::Fresh => {
                let client = Arc::new(StoredHandshake::new(text.to_object()));
                *self = Self::Negotiated(Agreed { revision, client });
            }
            Self::Negotiated(agreed) | Self::Ready(agreed) => {
                let is_same = agreed.revision == revision && agreed.client.read().capabilities == params.capabilities;
                match second {
                    SecondHandshake::Refuse => return Err(PeerMisbehaved::InitializedTwice),
                    SecondHandshake::Repeat if !is_same => return Err(PeerMisbehaved::InitializedDifferently),
                    SecondHandshake::Restart if !is_same => return Err(PeerMisbehaved::InitializedWhileBusy),
                    SecondHandshake::Repeat | SecondHandshake::Restart => {}
                }
            }
            Self::Stateless(_) | Self::ModernOnly => {}
        }
        let mut capabilities = config.declared();
        if self.is_stateless() {
            // S0.22: nothing can be told to a client that is forgotten at once, and no level is kept for it (Y-1).
            capabilities.logging = None;
            capabilities.tools.iter_mut().for_each(|tools| tools.list_changed = None);
            capabilities.prompts.iter_mut().for_each(|prompts| prompts.list_changed = None);
            capabilities.resources.iter_mut().for_each(|has| (has.list_changed, has.subscribe) = (None, None));
        }
        let mut result = InitializeResult::new(ProtocolVersion::from(revision), capabilities, config.info().clone());
        result.instructions.clone_from(&config.instructions);
        Ok(result)
    }

    /// Notes `notifications/initialized`; returns whether it came at the right time.
    pub(crate) fn initialized(&mut self) -> bool {
        match std::mem::replace(self, Self::Fresh) {
            Self::Negotiated(agreed) => {
                *self = Self::Ready(agreed);
                true
            }
            Self::Stateless(agreed) => {
                *self = Self::Stateless(agreed);
                true
            }
            other @ (Self::Fresh | Self::Ready(_) | Self::ModernOnly) => {
                *self = other;
                false
            }
        }
    }

    /// Says by what a legacy request is served, or why it comes too early.
    ///
    /// Where there is no legacy, a request without envelope just lacks it.
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
