//! What a client is.

use std::time::Duration;

use mcp_types::{ClientCapabilities, Era, Implementation, LoggingLevel, ProtocolVersion, Revision};

use crate::limits::Limits;

/// The facts about a client that all its connections share.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientConfig {
    /// Who the client is.
    pub info: Implementation,
    /// What the client can do for a server.
    pub capabilities: ClientCapabilities,
    /// The revisions that the client speaks. Default: all.
    pub revisions: Vec<Revision>,
    /// Which eras are tried. Default: both, the modern one first.
    pub mode: Mode,
    /// How the transport expresses that a call is given up.
    pub cancel_style: CancelStyle,
    /// Whether a server that does not answer the probe, or dies of it, counts as legacy. True for a process behind a
    /// pipe; over HTTP silence and lost connections are outages, so it is false there. Default: true.
    pub silence_means_legacy: bool,
    /// How long a server may take to answer the probe before the handshake is tried as well. An answer to the probe
    /// that comes before that of the handshake still counts. Default: 1 s.
    pub probe_timeout: Duration,
    /// How long a server may take to answer `initialize`. Default: 60 s.
    pub handshake_timeout: Duration,
    /// From which severity on modern requests ask for log messages. Default: none are asked for.
    pub log_level: Option<LoggingLevel>,
    /// What a server may make us keep.
    pub limits: Limits,
}

/// Which eras a client tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// The modern one, then the legacy one.
    Auto,
    /// The modern one alone.
    Modern,
    /// The legacy one alone, without a probe.
    Legacy,
}

/// How a transport expresses that a call is given up: data, so that the kernel needs no transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the specification knows these two")]
pub enum CancelStyle {
    /// By a notification.
    Notify,
    /// By closing the stream of the call; in the legacy era a notification comes before, because there closing says
    /// nothing.
    CloseStream,
}

impl ClientConfig {
    /// Describes a client that speaks all revisions.
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
            limits: Limits::default(),
        }
    }

    /// Whether the client would reach this revision by itself.
    pub(crate) fn allows(&self, revision: Revision) -> bool {
        let of_mode = match self.mode {
            Mode::Auto => true,
            Mode::Modern => revision.era() == Era::Modern,
            Mode::Legacy => revision.era() == Era::Legacy,
        };
        of_mode && self.revisions.contains(&revision)
    }

    /// The newest revision of an era that the client speaks.
    pub(crate) fn newest(&self, era: Era) -> Option<Revision> {
        self.revisions.iter().copied().filter(|revision| revision.era() == era).max()
    }

    /// The newest revision of an era that both sides speak.
    pub(crate) fn mutual(&self, era: Era, offered: &[ProtocolVersion]) -> Option<Revision> {
        let offered = offered.iter().filter_map(ProtocolVersion::revision).filter(|revision| revision.era() == era);
        offered.filter(|revision| self.revisions.contains(revision)).max()
    }
}
