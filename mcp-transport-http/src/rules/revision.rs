//! Selects the revision that a message is served in, and with it the era.

use mcp_kernel::server::is_modern;
use mcp_types::jsonrpc::{Incoming, InvalidMessage, Message};
use mcp_types::meta::key;
use mcp_types::{Era, ErrorCode, ErrorObject, Method, ProtocolVersion, RequestId, Revision};

use super::headers::VersionHeader;

/// The revisions that a service supports.
#[derive(Debug)]
pub(crate) struct SupportedRevisions<'a> {
    /// The revisions that the server supports, of either era.
    revisions: &'a [Revision],
    /// Whether legacy clients are served.
    serves_legacy: bool,
    /// Whether legacy clients have sessions. Without sessions, responses are refused, and batches in all revisions except
    /// 2025-03-26.
    has_sessions: bool,
}

impl<'a> SupportedRevisions<'a> {
    /// Creates the supported revisions. Legacy clients are only served if there is a legacy revision.
    pub(crate) fn new(revisions: &'a [Revision], serves_legacy: bool, has_sessions: bool) -> Self {
        let serves_legacy = serves_legacy && revisions.iter().any(|revision| revision.era() == Era::Legacy);
        Self { revisions, serves_legacy, has_sessions }
    }

    fn serves(&self, revision: Revision) -> bool {
        self.revisions.contains(&revision) && (self.serves_legacy || revision.era() == Era::Modern)
    }

    fn versions(&self) -> Vec<ProtocolVersion> {
        let mut revisions: Vec<Revision> = self.revisions.iter().copied().filter(|one| self.serves(*one)).collect();
        revisions.sort_unstable_by(|a, b| b.cmp(a));
        revisions.into_iter().map(ProtocolVersion::from).collect()
    }
}

/// Selects the revision of a message: the latest if its body is modern, that of its header otherwise.
///
/// # Errors
///
/// Returns the error for a response with status 400 if the header does not fit the message. The headers of a modern
/// request are [compared](super::claims::HeaderClaims) by the kernel.
// DU-13
pub(crate) fn select_revision(
    supported: &SupportedRevisions<'_>,
    version: &VersionHeader,
    incoming: &Result<Incoming<'_>, InvalidMessage>,
) -> Result<Revision, ErrorObject> {
    if matches!(incoming, Ok(Incoming::Single(Message::Request(request))) if is_modern(request)) {
        return Ok(Revision::LATEST);
    }
    let served = by_version(supported, version);
    if incoming.is_err() {
        // An invalid message is refused later; the header only selects how the error is encoded.
        return Ok(served.unwrap_or(Revision::LATEST));
    }
    let served = served?;
    let is_modern_revision = served.era() == Era::Modern;
    match incoming {
        // DU-15, DU-16: a modern header does not make a modern request.
        Ok(Incoming::Single(Message::Request(request))) if is_modern_revision && supported.serves_legacy => {
            Err(if request.method == Method::INITIALIZE {
                let text = "`initialize` does not exist in the revision of the `MCP-Protocol-Version` header";
                ErrorObject::new(ErrorCode::HEADER_MISMATCH, text)
            } else {
                let missing = format!("`_meta`: missing field `{}`", key::PROTOCOL_VERSION);
                ErrorObject::invalid_params(missing)
            })
        }
        // DU-21
        Ok(Incoming::Single(Message::Response(_))) if is_modern_revision || !supported.has_sessions => {
            Err(ErrorObject::invalid_request(
                "unexpected response: without a session there are no server-to-client requests",
            ))
        }
        // DU-20
        Ok(Incoming::Batch(_))
            if is_modern_revision || !(supported.has_sessions || served == Revision::V2025_03_26) =>
        {
            Err(ErrorObject::invalid_request("a batch is not allowed here: send each message in a request of its own"))
        }
        // H-44
        Ok(Incoming::Single(Message::Notification(_)))
            if *version == VersionHeader::Missing && !supported.serves_legacy =>
        {
            Err(ErrorObject::new(ErrorCode::HEADER_MISMATCH, "the header `MCP-Protocol-Version` is missing"))
        }
        Ok(_) | Err(_) => Ok(served),
    }
}

/// Selects the revision of a message without a modern version in its body, from the header.
// DU-17, DU-22, H-43
fn by_version(supported: &SupportedRevisions<'_>, version: &VersionHeader) -> Result<Revision, ErrorObject> {
    let requested = match version {
        VersionHeader::Known(revision) if supported.serves(*revision) => return Ok(*revision),
        VersionHeader::Known(revision) => ProtocolVersion::from(*revision),
        VersionHeader::Unknown(version) => ProtocolVersion::from(version.to_string()),
        VersionHeader::Invalid(fault) => return Err(fault.to_error_object()),
        VersionHeader::Missing => {
            // The header exists since 2025-06-18, so a request without it is of the revision before.
            let unnamed = Revision::V2025_03_26;
            return Ok(if supported.serves(unnamed) { unnamed } else { newest_legacy(supported) });
        }
    };
    Err(ErrorObject::unsupported_protocol_version(requested, supported.versions()))
}

/// Returns the newest legacy revision, or the latest one if no legacy revision is served.
fn newest_legacy(supported: &SupportedRevisions<'_>) -> Revision {
    let is_served = |revision: &&Revision| supported.serves_legacy && revision.era() == Era::Legacy;
    supported.revisions.iter().filter(is_served).max().copied().unwrap_or(Revision::LATEST)
}

/// Returns the id of a request.
// H-34
pub(crate) fn request_id<'a>(incoming: &'a Incoming<'_>) -> Option<&'a RequestId> {
    match incoming {
        Incoming::Single(Message::Request(request)) => Some(&request.id),
        Incoming::Single(_) | Incoming::Batch(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};
    use mcp_types::jsonrpc::{Limits, parse};

    use super::*;
    use crate::rules::request_headers::RequestHeaders;

    const ALL: [Revision; 5] = [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ];

    const MODERN: &str = "2026-07-28";

    /// The version, and other headers.
    type Headers<'a> = (Option<&'a str>, &'a [(&'static str, &'static str)]);

    fn chosen(supported: &SupportedRevisions<'_>, (version, others): Headers<'_>, body: &str) -> Result<Revision, i64> {
        let mut headers = HeaderMap::new();
        for (name, value) in version.map(|version| ("mcp-protocol-version", version)).iter().chain(others) {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        let incoming = parse(body.as_bytes(), &Limits::default());
        let version = VersionHeader::read(RequestHeaders::read(&headers).version);
        select_revision(supported, &version, &incoming).map_err(|error| error.code.get())
    }

    fn request(method: &str, params: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
    }

    /// A request with an envelope: the version and the capabilities as JSON.
    fn modern(method: &str, version: &str, capabilities: &str, rest: &str) -> String {
        let meta = format!(
            r#"{{"io.modelcontextprotocol/protocolVersion":{version},"io.modelcontextprotocol/clientCapabilities":{capabilities}}}"#
        );
        request(method, &format!(r#"{{{rest}"_meta":{meta}}}"#))
    }

    const NOTIFICATION: &str = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    const RESPONSE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    const BATCH: &str = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;

    const LIST: &[(&str, &str)] = &[("mcp-method", "tools/list")];

    /// What has no envelope is served by its header, if it may be sent under it at all.
    // covers: DU-11, DU-15..DU-17, DU-20..DU-22, H-10, H-13, H-43
    #[test]
    fn without_an_envelope_the_header_decides() {
        let supported = SupportedRevisions::new(&ALL, true, false);
        let (list, initialize) = (request("tools/list", "{}"), request("initialize", "{}"));
        let unnamed = Revision::V2025_03_26;
        for (version, body, expected) in [
            (None, list.as_str(), Ok(unnamed)),
            (None, &initialize, Ok(unnamed)),
            (None, NOTIFICATION, Ok(unnamed)),
            (None, BATCH, Ok(unnamed)),
            (None, RESPONSE, Err(-32600)),
            (None, "{", Ok(unnamed)),
            (Some(MODERN), &list, Err(-32602)),
            (Some(MODERN), &initialize, Err(-32020)),
            (Some(MODERN), NOTIFICATION, Ok(Revision::V2026_07_28)),
            (Some(MODERN), BATCH, Err(-32600)),
            (Some(MODERN), RESPONSE, Err(-32600)),
            (Some(MODERN), "{", Ok(Revision::V2026_07_28)),
            (Some("v999"), &list, Err(-32022)),
            (Some("v999"), &initialize, Err(-32022)),
            (Some("v999"), NOTIFICATION, Err(-32022)),
            (Some("v999"), BATCH, Err(-32022)),
            (Some("v999"), "{", Ok(Revision::V2026_07_28)),
            (Some(""), &list, Err(-32022)),
        ] {
            assert_eq!(chosen(&supported, (version, &[]), body), expected, "{version:?} {body}");
        }
        for revision in &ALL[..4] {
            let (headers, served) = ((Some(revision.as_str()), LIST), Ok(*revision));
            for body in [&list, &initialize, NOTIFICATION, "{"] {
                assert_eq!(chosen(&supported, headers, body), served, "{body}");
            }
            let batches = if *revision == Revision::V2025_03_26 { served } else { Err(-32600) };
            assert_eq!(chosen(&supported, headers, BATCH), batches);
        }
        let twice = (Some("2025-06-18"), &[("mcp-protocol-version", "2025-06-18")][..]);
        assert_eq!(chosen(&supported, twice, &list), Err(-32020));
        assert_eq!(chosen(&supported, twice, "{"), Ok(Revision::V2026_07_28));
    }

    /// A server without legacy clients, be it for its revisions or its settings.
    // covers: H-13, H-44, DU-17, DU-19
    #[test]
    fn legacy_clients_need_an_offer() {
        for supported in [
            SupportedRevisions::new(&ALL, false, false),
            SupportedRevisions::new(&ALL[4..], true, false),
            SupportedRevisions::new(&ALL[4..], false, false),
        ] {
            let (list, initialize) = (request("tools/list", "{}"), request("initialize", "{}"));
            let good = modern("tools/list", r#""2026-07-28""#, "{}", "");
            for (version, body, expected) in [
                (Some(MODERN), good.as_str(), Ok(Revision::V2026_07_28)),
                // The kernel says what is missing, or which revisions there are.
                (None, &list, Ok(Revision::V2026_07_28)),
                (None, &initialize, Ok(Revision::V2026_07_28)),
                (Some(MODERN), &list, Ok(Revision::V2026_07_28)),
                (Some(MODERN), &initialize, Ok(Revision::V2026_07_28)),
                (Some("2025-11-25"), &list, Err(-32022)),
                (Some("2025-11-25"), &initialize, Err(-32022)),
                (Some("2025-11-25"), NOTIFICATION, Err(-32022)),
                (Some(MODERN), NOTIFICATION, Ok(Revision::V2026_07_28)),
                (None, NOTIFICATION, Err(-32020)),
                (None, BATCH, Err(-32600)),
                (None, RESPONSE, Err(-32600)),
                (None, "{", Ok(Revision::V2026_07_28)),
            ] {
                assert_eq!(chosen(&supported, (version, LIST), body), expected, "{supported:?} {version:?} {body}");
            }
        }
    }

    /// A server without modern revisions: a request without a version gets the one that is meant, or the newest.
    // covers: DU-10, DU-17, DU-24
    #[test]
    fn modern_clients_need_an_offer() {
        let (list, good) = (request("tools/list", "{}"), modern("tools/list", r#""2026-07-28""#, "{}", ""));
        for (revisions, unnamed) in [(&ALL[..4], ALL[1]), (&ALL[2..4], ALL[3]), (&ALL[..1], ALL[0])] {
            let supported = SupportedRevisions::new(revisions, true, false);
            assert_eq!(chosen(&supported, (None, &[]), &list), Ok(unnamed));
            assert_eq!(chosen(&supported, (Some(MODERN), &[]), &list), Err(-32022));
            // The kernel says which there are, and not that a header is missing.
            assert_eq!(chosen(&supported, (Some(MODERN), &[]), &good), Ok(Revision::V2026_07_28));
        }
        let versions = SupportedRevisions::new(&ALL, true, false).versions();
        assert_eq!(versions.len(), 5);
        assert!(versions.is_sorted_by(|a, b| a.as_str() > b.as_str()), "the newest first");
    }
}
