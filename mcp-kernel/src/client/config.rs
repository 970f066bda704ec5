//! The configuration of a client.

use std::time::Duration;

use mcp_types::{ClientCapabilities, Era, Implementation, LoggingLevel, ProtocolVersion, Revision};

use crate::limits::Limits;

/// The configuration that all connections of a client share.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientConfig {
    /// The name and version of the client.
    pub info: Implementation,
    /// The capabilities that the client declares.
    pub capabilities: ClientCapabilities,
    /// The revisions that the client supports. Defaults to all.
    pub revisions: Vec<Revision>,
    /// The eras that are tried. Defaults to both, the modern one first.
    pub mode: Mode,
    /// How the transport cancels a call. Defaults to a notification.
    pub cancel_style: CancelStyle,
    /// Whether a server that does not respond to the probe, or exits, counts as legacy. This is right for a child
    /// process. Over HTTP, silence and lost connections are outages, so that transports set it to `false`. Defaults to
    /// `true`.
    pub silence_means_legacy: bool,
    /// How long to wait for the response to the probe before `initialize` is sent as well. A later response is still
    /// used if it arrives before that to `initialize`. Defaults to 1 second.
    pub probe_timeout: Duration,
    /// How long to wait for the response to `initialize`. Defaults to 60 seconds.
    pub handshake_timeout: Duration,
    /// The minimum level of log messages of modern requests. Defaults to no log messages.
    pub log_level: Option<LoggingLevel>,
    /// Whether there are events for metrics and traces: [`Event::Handled`](super::Event::Handled) and
    /// [`Event::OwnCallFinished`](super::Event::OwnCallFinished). Defaults to `false`.
    pub observed: bool,
    /// The limits of a connection.
    pub limits: Limits,
}

/// The eras that a client tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// The modern era, then the legacy one.
    Auto,
    /// The modern era only.
    Modern,
    /// The legacy era only, without a probe.
    Legacy,
}

/// How a transport cancels a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the specification knows these two")]
pub enum CancelStyle {
    /// With a notification.
    Notify,
    /// By closing the stream of the call. In the legacy era, where this has no meaning, a notification is sent as well.
    CloseStream,
}

impl ClientConfig {
    /// Creates the configuration of a client that supports all revisions.
    #[must_use]
    pub fn new(info: Implementation, capabilities: ClientCapabilities) -> Self {
        Self {
            info,
            capabilities,
            revisions: Revision::ALL.to_vec(),
            mode: Mode::Auto,
            cancel_style: CancelStyle::Notify,
            silence_means_legacy: true,
            probe_timeout: Duration::from_secs(1),
            handshake_timeout: Duration::from_secs(60),
            log_level: None,
            observed: false,
            limits: Limits::default(),
        }
    }

    /// Returns whether the mode and the revisions of the client include this one.
    pub(crate) fn supports(&self, revision: Revision) -> bool {
        let of_mode = match self.mode {
            Mode::Auto => true,
            Mode::Modern => revision.era() == Era::Modern,
            Mode::Legacy => revision.era() == Era::Legacy,
        };
        of_mode && self.revisions.contains(&revision)
    }

    /// The newest revision of an era that the client supports.
    pub(crate) fn newest(&self, era: Era) -> Option<Revision> {
        self.revisions.iter().copied().filter(|revision| revision.era() == era).max()
    }

    /// The newest revision of an era that both sides support.
    pub(crate) fn mutual(&self, era: Era, offered: &[ProtocolVersion]) -> Option<Revision> {
        let offered = offered.iter().filter_map(ProtocolVersion::revision).filter(|revision| revision.era() == era);
        offered.filter(|revision| self.revisions.contains(revision)).max()
    }
}
