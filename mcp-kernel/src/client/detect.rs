//! Detection of the server's era.
//!
//! ```text
//!              start
//!     Auto, Modern |  Legacy
//!         Probing  |________________
//!        |   |   |                  |
//!    modern  |   legacy ------> Handshaking
//!        |   |                  |       |
//!      Ready  Failed          Ready   Failed
//! ```
//!
//! If a child process does not respond to the probe (`server/discover`) for a while, `initialize` is sent as well, and
//! the first response counts: a legacy server need not time out, and a modern one that starts slowly is detected as
//! modern.
//!
//! An error decides nothing by its code alone, and outages or missing credentials are no evidence for an era.

use mcp_types::{
    DiscoverResult, Era, ErrorCode, ErrorObject, ProtocolVersion, Revision, UnsupportedProtocolVersionData,
};

use super::config::{ClientConfig, Mode};
use crate::errors::{CallError, because};

/// The revision that was detected for a server. Store it to skip the probe for the next connection to the same server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DetectedRevision {
    /// The revision.
    pub revision: Revision,
    /// Whether to probe a legacy server again, because it may have become modern. A child process gets the
    /// probe and `initialize` at the same time. Defaults to `false`.
    pub probe_again: bool,
}

impl DetectedRevision {
    /// Creates a detected revision that does not have to be probed again.
    #[must_use]
    pub fn new(revision: Revision) -> Self {
        Self { revision, probe_again: false }
    }

    /// Sets [`probe_again`](Self::probe_again).
    #[must_use]
    pub fn probe_again(self, probe_again: bool) -> Self {
        Self { probe_again, ..self }
    }
}

/// Why no connection to a server could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The client and the server have no revision in common.
    #[error("no common protocol version; the server supports {}", list(.offered))]
    NoCommonVersion {
        /// The versions of the server.
        offered: Vec<ProtocolVersion>,
    },
    /// The server is legacy, and [`ClientConfig::mode`](super::ClientConfig::mode) is [`Mode::Modern`].
    #[error("the server does not support a modern revision, and the client allows no other (`mode`)")]
    LegacyServer,
    /// The server responded with an error.
    #[error("the server responded with an error: {0}")]
    Refused(ErrorObject),
    /// The response of the server is not valid.
    #[error("the response of the server is not valid: {0}")]
    InvalidResponse(String),
    /// The server responded with an HTTP status that does not indicate its era: an outage, or missing credentials.
    #[error("the server responded with HTTP status {status}{}", because(.reason))]
    Status {
        /// The HTTP status.
        status: u16,
        /// An excerpt of the response body, on one line.
        reason: Option<String>,
    },
    /// The server did not respond in time.
    #[error("the server did not respond in time (`probe_timeout`, `handshake_timeout`)")]
    TimedOut,
    /// The connection ended.
    #[error("the connection ended before the server responded")]
    Disconnected,
    /// The server lost a new session before it responded to any request.
    #[error("the server lost a new session before it responded to any request")]
    SessionLost,
}

impl ConnectError {
    /// The error of a probe or a handshake without a result.
    pub(super) fn of_call(config: &ClientConfig, error: CallError) -> Self {
        match error {
            CallError::Rejected(error) => Self::of_refusal(config, error),
            CallError::TimedOut => Self::TimedOut,
            CallError::InvalidResponse => Self::InvalidResponse("not a response".to_owned()),
            CallError::TooLong { .. } => {
                Self::InvalidResponse(format!("{error}; raise `line_limit` of the transport to receive it"))
            }
            CallError::Status { status, reason } => Self::Status { status, reason },
            CallError::Cancelled | CallError::Disconnected | CallError::SessionLost => Self::Disconnected,
        }
    }

    /// The error of a handshake that the server refused. It names the versions of the server if the response does.
    // V-9
    fn of_refusal(config: &ClientConfig, error: ErrorObject) -> Self {
        let data = error.data.as_ref().and_then(|data| data.decode::<UnsupportedProtocolVersionData>().ok());
        match data {
            Some(data) if config.mutual(Era::Legacy, &data.supported).is_none() => {
                Self::NoCommonVersion { offered: data.supported }
            }
            _ => Self::Refused(error),
        }
    }

    /// Returns whether the error indicates the revisions of the server, unlike an outage or missing
    /// credentials.
    // DU-27
    pub(super) fn is_evidence(&self) -> bool {
        match self {
            Self::Refused(_) | Self::InvalidResponse(_) | Self::NoCommonVersion { .. } => true,
            Self::Status { status, .. } => is_evidence(*status),
            Self::LegacyServer | Self::TimedOut | Self::Disconnected | Self::SessionLost => false,
        }
    }
}

/// Returns whether an HTTP status indicates the revisions of the server.
// DU-27, DU-37
pub(super) fn is_evidence(status: u16) -> bool {
    (400..500).contains(&status) && status != 401 && status != 403
}

fn list(versions: &[ProtocolVersion]) -> String {
    versions.iter().map(ProtocolVersion::as_str).collect::<Vec<_>>().join(", ")
}

/// The next step of connecting.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// Use a modern revision.
    Modern(Revision),
    /// Probe again, once, with this version.
    ProbeAgain(Revision),
    /// Send `initialize` with this version.
    Handshake(Revision),
    /// Fail.
    Fail(ConnectError),
}

/// Decides by the outcome of the probe.
pub(crate) fn judge(
    config: &ClientConfig,
    probed: Revision,
    is_second: bool,
    outcome: Result<&DiscoverResult, &CallError>,
) -> Step {
    match outcome {
        Ok(result) => choose(config, &result.supported_versions),
        Err(CallError::Rejected(error)) => match error.code {
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => {
                let data = error.data.as_ref().and_then(|data| data.decode::<UnsupportedProtocolVersionData>().ok());
                let Some(data) = data else { return Step::Fail(ConnectError::Refused(error.clone())) };
                match choose(config, &data.supported) {
                    // Also with the same version: the server may have refused something else.
                    Step::Modern(_) if is_second => Step::Fail(ConnectError::Refused(error.clone())),
                    Step::Modern(revision) => Step::ProbeAgain(revision),
                    other @ (Step::ProbeAgain(_) | Step::Handshake(_) | Step::Fail(_)) => other,
                }
            }
            // AMB-10: only a modern server sends these.
            ErrorCode::HEADER_MISMATCH | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY => Step::Modern(probed),
            _ => legacy(config),
        },
        Err(CallError::TimedOut) if !config.silence_means_legacy => Step::Fail(ConnectError::TimedOut),
        Err(CallError::TimedOut | CallError::InvalidResponse) => legacy(config),
        // Also if it is too long: only a modern server has so much to tell.
        Err(other) => Step::Fail(ConnectError::of_call(config, other.clone())),
    }
}

/// Chooses the newest common version, modern before legacy.
// AMB-8
pub(crate) fn choose(config: &ClientConfig, offered: &[ProtocolVersion]) -> Step {
    if let Some(revision) = config.mutual(Era::Modern, offered) {
        return Step::Modern(revision);
    }
    match config.mutual(Era::Legacy, offered) {
        Some(revision) if config.mode != Mode::Modern => Step::Handshake(revision),
        _ => Step::Fail(ConnectError::NoCommonVersion { offered: offered.to_vec() }),
    }
}

/// Continues with the handshake, if legacy revisions are allowed.
pub(crate) fn legacy(config: &ClientConfig) -> Step {
    match config.newest(Era::Legacy) {
        Some(revision) if config.mode != Mode::Modern => Step::Handshake(revision),
        _ => Step::Fail(ConnectError::LegacyServer),
    }
}

#[cfg(test)]
mod tests {
    use mcp_types::{ClientCapabilities, Implementation, ServerCapabilities};

    use super::*;

    fn config(mode: Mode) -> ClientConfig {
        ClientConfig { mode, ..ClientConfig::new(Implementation::new("c", "1"), ClientCapabilities::default()) }
    }

    fn discovered(versions: &[&str]) -> DiscoverResult {
        DiscoverResult::new(
            versions.iter().map(|version| ProtocolVersion::from(*version)).collect(),
            ServerCapabilities::default(),
        )
    }

    fn rejected(code: i64) -> CallError {
        CallError::Rejected(ErrorObject::new(ErrorCode::new(code), "no"))
    }

    const PROBED: Revision = Revision::V2026_07_28;

    // covers: DU-31, AMB-8
    #[test]
    fn a_discovered_server_is_taken_at_its_word() {
        let auto = config(Mode::Auto);
        let judge = |config: &ClientConfig, versions: &[&str]| judge(config, PROBED, false, Ok(&discovered(versions)));
        assert_eq!(judge(&auto, &["2025-11-25", "2026-07-28"]), Step::Modern(PROBED));
        assert_eq!(judge(&auto, &["2025-06-18"]), Step::Handshake(Revision::V2025_06_18));
        assert!(matches!(judge(&auto, &["2099-01-01"]), Step::Fail(ConnectError::NoCommonVersion { .. })));
        assert!(matches!(judge(&config(Mode::Modern), &["2025-06-18"]), Step::Fail(_)));
    }

    /// Any error that no modern server sends, and silence, mean legacy.
    // covers: DU-33, IO-17, AMB-9, AMB-10
    #[test]
    fn what_is_not_modern_is_legacy() {
        let auto = config(Mode::Auto);
        for outcome in [rejected(-32601), rejected(-32602), rejected(-32600), rejected(-32000), CallError::TimedOut] {
            assert_eq!(judge(&auto, PROBED, false, Err(&outcome)), Step::Handshake(Revision::V2025_11_25), "{outcome}");
            assert_eq!(
                judge(&config(Mode::Modern), PROBED, false, Err(&outcome)),
                Step::Fail(ConnectError::LegacyServer)
            );
        }
        for code in [-32020, -32021] {
            assert_eq!(judge(&auto, PROBED, false, Err(&rejected(code))), Step::Modern(PROBED));
        }
    }

    /// The versions of a server that refuses the handshake are named, whatever the code; a server that refuses what it
    /// offers is quoted.
    // covers: V-9
    #[test]
    fn a_refused_handshake_names_the_versions() {
        let refused = |code: i64, supported: &str| {
            let error = format!(
                r#"{{"code":{code},"message":"no","data":{{"supported":["{supported}"],"requested":"2025-11-25"}}}}"#
            );
            ConnectError::of_refusal(&config(Mode::Legacy), serde_json::from_str(&error).unwrap())
        };
        for code in [-32022, -32602] {
            let why = refused(code, "2026-07-28");
            assert_eq!(why, ConnectError::NoCommonVersion { offered: vec!["2026-07-28".into()] });
        }
        assert!(matches!(refused(-32602, "2025-06-18"), ConnectError::Refused(_)));
        let plain = ErrorObject::new(ErrorCode::INTERNAL_ERROR, "no");
        assert!(matches!(ConnectError::of_refusal(&config(Mode::Legacy), plain), ConnectError::Refused(_)));
    }

    // covers: DU-32, V-3, V-12
    #[test]
    fn an_unsupported_version_is_corrected_once() {
        let auto = config(Mode::Auto);
        let refused = |supported: &[&str]| {
            let supported = supported.iter().map(|version| ProtocolVersion::from(*version)).collect();
            CallError::Rejected(ErrorObject::unsupported_protocol_version(PROBED.into(), supported))
        };
        assert_eq!(judge(&auto, PROBED, false, Err(&refused(&["2025-03-26"]))), Step::Handshake(Revision::V2025_03_26));
        // A server that refuses what it offers gets one more chance.
        let offered = refused(&["2026-07-28"]);
        assert_eq!(judge(&auto, PROBED, false, Err(&offered)), Step::ProbeAgain(PROBED));
        assert!(matches!(judge(&auto, PROBED, true, Err(&offered)), Step::Fail(ConnectError::Refused(_))));
        assert!(matches!(judge(&auto, PROBED, false, Err(&rejected(-32022))), Step::Fail(ConnectError::Refused(_))));
    }
}
