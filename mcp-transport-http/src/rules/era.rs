//! Selects the era and revision that a message is served in.

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use mcp_server::HeaderParam;
use mcp_types::jsonrpc::{Incoming, InvalidMessage, Message, Request};
use mcp_types::meta::key;
use mcp_types::{Era, ErrorCode, ErrorObject, Method, ProtocolVersion, RequestId, RequestMeta, Revision};

use super::header_names::VERSION;
use super::headers::{HeaderMismatch, check_method_and_name, check_param, check_version, single_value};

/// The era that a message is served in, and its revision if it is legacy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelectedEra {
    /// Modern: the request names its own version and capabilities.
    Modern,
    /// Legacy, in this revision.
    Legacy(Revision),
}

impl SelectedEra {
    /// Returns the era of the response.
    #[must_use]
    pub fn era(self) -> Era {
        match self {
            Self::Modern => Era::Modern,
            Self::Legacy(_) => Era::Legacy,
        }
    }

    /// Returns the revision in which errors are encoded.
    #[must_use]
    pub fn revision(self) -> Revision {
        match self {
            Self::Modern => Revision::LATEST,
            Self::Legacy(revision) => revision,
        }
    }
}

/// The revisions that a service supports.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SupportedRevisions<'a> {
    /// The revisions of the server.
    pub revisions: &'a [Revision],
    /// Whether legacy clients are served.
    pub serves_legacy: bool,
    /// Whether legacy clients have sessions, which then decide what may be sent.
    pub has_sessions: bool,
}

impl<'a> SupportedRevisions<'a> {
    /// Creates the supported revisions. Legacy clients are only served if there is a legacy revision.
    #[must_use]
    pub fn new(revisions: &'a [Revision], serves_legacy: bool) -> Self {
        let serves_legacy = serves_legacy && revisions.iter().any(|revision| revision.era() == Era::Legacy);
        Self { revisions, serves_legacy, has_sessions: false }
    }

    /// Sets whether legacy clients have sessions.
    #[must_use]
    pub fn sessions(self, has_sessions: bool) -> Self {
        Self { has_sessions, ..self }
    }

    fn has(&self, revision: Revision) -> bool {
        self.revisions.contains(&revision) && (self.serves_legacy || revision.era() == Era::Modern)
    }

    fn versions(&self) -> Vec<ProtocolVersion> {
        let mut revisions: Vec<Revision> = self.revisions.iter().copied().filter(|one| self.has(*one)).collect();
        revisions.sort_unstable_by(|a, b| b.cmp(a));
        revisions.into_iter().map(ProtocolVersion::from).collect()
    }
}

/// Selects the era of a message from its body, and checks that the headers match.
///
/// # Errors
///
/// Returns the error for a response with status 400 if the headers do not match the body. Checks that are not about
/// headers are left to the kernel, and so is everything that it would refuse first: the order is that of
/// `docs/requirements.md`.
// DU-13
pub fn select_era(
    supported: &SupportedRevisions<'_>,
    headers: &HeaderMap,
    incoming: &Result<Incoming<'_>, InvalidMessage>,
) -> Result<SelectedEra, ErrorObject> {
    let request = match incoming {
        Ok(Incoming::Single(Message::Request(request))) => Some(request),
        Ok(_) | Err(_) => None,
    };
    if let Some(request) = request.filter(|request| is_modern(request)) {
        check_modern(supported, headers, request)?;
        return Ok(SelectedEra::Modern);
    }
    let version = single_value(headers, &VERSION).map_err(|fault| fault.to_error_object());
    let served = version.and_then(|version| by_version(supported, version));
    if incoming.is_err() {
        // An invalid message is refused later; the header only selects how the error is encoded.
        return Ok(served.unwrap_or(SelectedEra::Modern));
    }
    let served = served?;
    match incoming {
        // DU-15, DU-16: a modern header does not make a modern request.
        Ok(Incoming::Single(Message::Request(request))) if served == SelectedEra::Modern && supported.serves_legacy => {
            Err(if request.method == Method::INITIALIZE {
                let text = "`initialize` does not exist in the revision of the `MCP-Protocol-Version` header";
                ErrorObject::new(ErrorCode::HEADER_MISMATCH, text)
            } else {
                let missing = format!("`_meta`: missing field `{}`", key::PROTOCOL_VERSION);
                ErrorObject::invalid_params(missing)
            })
        }
        // DU-21
        Ok(Incoming::Single(Message::Response(_))) if served == SelectedEra::Modern || !supported.has_sessions => {
            Err(ErrorObject::invalid_request(
                "unexpected response: without a session there are no server-to-client requests",
            ))
        }
        // DU-20
        Ok(Incoming::Batch(_))
            if served == SelectedEra::Modern
                || !(supported.has_sessions || served == SelectedEra::Legacy(Revision::V2025_03_26)) =>
        {
            Err(ErrorObject::invalid_request("a batch is not allowed here: send each message in a request of its own"))
        }
        // H-44
        Ok(Incoming::Single(Message::Notification(_)))
            if !headers.contains_key(&VERSION) && !supported.serves_legacy =>
        {
            Err(ErrorObject::new(ErrorCode::HEADER_MISMATCH, "the header `MCP-Protocol-Version` is missing"))
        }
        Ok(_) | Err(_) => Ok(served),
    }
}

/// Whether a request has the modern version key in its `_meta`, whatever its value.
// DU-13
pub(crate) fn is_modern(request: &Request<'_>) -> bool {
    request.params.as_ref().is_some_and(|params| params.meta(key::PROTOCOL_VERSION).is_some())
}

/// Selects the era of a message without a modern version in its body, from the header.
// DU-17, DU-22, H-43
fn by_version(supported: &SupportedRevisions<'_>, version: Option<&str>) -> Result<SelectedEra, ErrorObject> {
    let Some(version) = version else {
        // The header exists since 2025-06-18, so a request without it is of the revision before.
        let unnamed = Revision::V2025_03_26;
        return Ok(if supported.has(unnamed) { SelectedEra::Legacy(unnamed) } else { newest_legacy(supported) });
    };
    let requested = ProtocolVersion::from(version.to_owned());
    match requested.revision().filter(|revision| supported.has(*revision)) {
        Some(revision) if revision.era() == Era::Modern => Ok(SelectedEra::Modern),
        Some(revision) => Ok(SelectedEra::Legacy(revision)),
        None => Err(ErrorObject::unsupported_protocol_version(requested, supported.versions())),
    }
}

fn newest_legacy(supported: &SupportedRevisions<'_>) -> SelectedEra {
    let legacy = supported
        .revisions
        .iter()
        .copied()
        .filter(|revision| revision.era() == Era::Legacy && supported.has(*revision));
    legacy.max().map_or(SelectedEra::Modern, SelectedEra::Legacy)
}

/// Checks the headers of a modern request against its body, in the order of `docs/requirements.md`.
fn check_modern(
    supported: &SupportedRevisions<'_>,
    headers: &HeaderMap,
    request: &Request<'_>,
) -> Result<(), ErrorObject> {
    let Err(fault) = check_version(headers, request) else {
        return match check_method_and_name(headers, request) {
            Ok(()) => Ok(()),
            Err(fault) => refuse_unless_earlier(supported, request, &fault, Stage::Names),
        };
    };
    // A missing header is reported later than one that differs.
    let is_missing = fault.kind == super::headers::HeaderMismatchKind::Missing;
    refuse_unless_earlier(supported, request, &fault, if is_missing { Stage::Names } else { Stage::Version })
}

/// Checks the `Mcp-Param-*` headers of a tool call against its arguments, after all other headers.
///
/// `wanted` returns the parameters that a tool wants repeated in headers. It is only called for `tools/call`.
///
/// # Errors
///
/// Returns the error for a response with status 400, unless the kernel would refuse the request for another reason
/// first.
// H-77, H-79
pub fn check_param_headers(
    supported: &SupportedRevisions<'_>,
    headers: &HeaderMap,
    request: &Request<'_>,
    wanted: impl FnOnce(&str) -> Option<Arc<[HeaderParam]>>,
) -> Result<(), ErrorObject> {
    let Some(params) = request.params.as_ref().filter(|_| request.method == Method::TOOLS_CALL) else { return Ok(()) };
    let wanted = params.get("name").and_then(|name| {
        // A name with escapes is rare, and has to be decoded.
        let plain = name.get().strip_prefix('"')?.strip_suffix('"')?;
        let read = if plain.contains('\\') { serde_json::from_str(name.get()).ok()? } else { Cow::Borrowed(plain) };
        wanted(&read)
    });
    let arguments = params.get("arguments").map_or("{}", |arguments| arguments.get());
    for param in wanted.iter().flat_map(|wanted| wanted.iter()) {
        if let Err(fault) = check_param(headers, &param.name, &param.path, arguments) {
            return refuse_unless_earlier(supported, request, &fault, Stage::Names);
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The version header: after `_meta` is valid, before the version is checked.
    Version,
    /// All other headers.
    Names,
}

fn refuse_unless_earlier(
    supported: &SupportedRevisions<'_>,
    request: &Request<'_>,
    fault: &HeaderMismatch,
    stage: Stage,
) -> Result<(), ErrorObject> {
    let meta = request.params.as_ref().map(|params| params.decode_meta::<RequestMeta>());
    let Some(Ok(Some(RequestMeta { protocol_version: Some(version), client_capabilities: Some(_), .. }))) = meta else {
        // Invalid `_meta` is refused first, by the kernel.
        return Ok(());
    };
    let is_supported = version
        .revision()
        .is_some_and(|revision| revision.era() == Era::Modern && supported.revisions.contains(&revision));
    if stage == Stage::Names && !is_supported { Ok(()) } else { Err(fault.to_error_object()) }
}

/// Returns the id of a request.
// H-34
#[must_use]
pub fn request_id<'a>(incoming: &'a Incoming<'_>) -> Option<&'a RequestId> {
    match incoming {
        Incoming::Single(Message::Request(request)) => Some(&request.id),
        Incoming::Single(_) | Incoming::Batch(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use mcp_types::jsonrpc::{Limits, parse};

    use super::*;

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

    fn chosen(
        supported: &SupportedRevisions<'_>,
        (version, others): Headers<'_>,
        body: &str,
    ) -> Result<SelectedEra, i64> {
        let mut headers = HeaderMap::new();
        for (name, value) in version.map(|version| ("mcp-protocol-version", version)).iter().chain(others) {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        let incoming = parse(body.as_bytes(), &Limits::default());
        select_era(supported, &headers, &incoming).map_err(|error| error.code.get())
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
    const CALL: &[(&str, &str)] = &[("mcp-method", "tools/call"), ("mcp-name", "a")];

    /// An envelope makes a request modern, and the first thing that is wrong with it is what counts; what the kernel
    /// refuses is left to it.
    // covers: DU-10, DU-13, DU-14, DU-18, H-42, H-44..H-47, H-52, H-55
    #[test]
    fn envelopes_are_compared_in_order() {
        let supported = SupportedRevisions::new(&ALL, true);
        let good = modern("tools/list", r#""2026-07-28""#, "{}", "");
        let call = modern("tools/call", r#""2026-07-28""#, "{}", r#""name":"a","#);
        let nameless = modern("tools/call", r#""2026-07-28""#, "{}", "");
        let unknown = modern("tools/list", r#""v999""#, "{}", "");
        let old = modern("tools/list", r#""2025-11-25""#, "{}", "");
        let initialize = modern("initialize", r#""2026-07-28""#, "{}", "");
        let no_capabilities =
            request("tools/list", r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#);
        let (kernel, differs) = (Ok(SelectedEra::Modern), Err(-32020));
        for (what, headers, body, expected) in [
            ("everything fits", (Some(MODERN), LIST), &good, kernel),
            ("with a name", (Some(MODERN), CALL), &call, kernel),
            ("the body decides, not the header", (Some("2025-11-25"), LIST), &good, differs),
            ("no version", (None, LIST), &good, differs),
            ("another version", (Some("v999"), LIST), &good, differs),
            ("no method", (Some(MODERN), &[]), &good, differs),
            ("another method", (Some(MODERN), CALL), &good, differs),
            ("no name", (Some(MODERN), &CALL[..1]), &call, differs),
            ("no name in the body either", (Some(MODERN), &CALL[..1]), &nameless, kernel),
            ("-32602 before a missing header", (None, LIST), &no_capabilities, kernel),
            ("-32602 before another version", (Some("v999"), LIST), &no_capabilities, kernel),
            ("-32602 before other headers", (Some(MODERN), &[]), &no_capabilities, kernel),
            ("-32602 for what is no text", (None, LIST), &modern("tools/list", "7", "{}", ""), kernel),
            ("-32602 for what is no object", (None, LIST), &modern("tools/list", r#""v999""#, "7", ""), kernel),
            ("-32020 before -32022", (Some(MODERN), LIST), &unknown, differs),
            ("-32022 if both say so", (Some("v999"), LIST), &unknown, kernel),
            ("-32022 before missing headers", (Some("v999"), &[]), &unknown, kernel),
            ("-32022 before a missing version", (None, &[]), &unknown, kernel),
            ("-32022 for legacy versions", (Some("2025-11-25"), LIST), &old, kernel),
            ("no handshake", (Some(MODERN), &[("mcp-method", "initialize")]), &initialize, kernel),
        ] {
            assert_eq!(chosen(&supported, headers, body), expected, "{what}");
        }
        let twice = [("mcp-protocol-version", MODERN), LIST[0]];
        assert_eq!(chosen(&supported, (Some(MODERN), &twice), &good), differs);
    }

    /// What has no envelope is served by its header, if it may be sent under it at all.
    // covers: DU-11, DU-15..DU-17, DU-20..DU-22, H-10, H-13, H-43
    #[test]
    fn without_an_envelope_the_header_decides() {
        let supported = SupportedRevisions::new(&ALL, true);
        let (list, initialize) = (request("tools/list", "{}"), request("initialize", "{}"));
        let unnamed = SelectedEra::Legacy(Revision::V2025_03_26);
        for (version, body, expected) in [
            (None, list.as_str(), Ok(unnamed)),
            (None, &initialize, Ok(unnamed)),
            (None, NOTIFICATION, Ok(unnamed)),
            (None, BATCH, Ok(unnamed)),
            (None, RESPONSE, Err(-32600)),
            (None, "{", Ok(unnamed)),
            (Some(MODERN), &list, Err(-32602)),
            (Some(MODERN), &initialize, Err(-32020)),
            (Some(MODERN), NOTIFICATION, Ok(SelectedEra::Modern)),
            (Some(MODERN), BATCH, Err(-32600)),
            (Some(MODERN), RESPONSE, Err(-32600)),
            (Some(MODERN), "{", Ok(SelectedEra::Modern)),
            (Some("v999"), &list, Err(-32022)),
            (Some("v999"), &initialize, Err(-32022)),
            (Some("v999"), NOTIFICATION, Err(-32022)),
            (Some("v999"), BATCH, Err(-32022)),
            (Some("v999"), "{", Ok(SelectedEra::Modern)),
            (Some(""), &list, Err(-32022)),
        ] {
            assert_eq!(chosen(&supported, (version, &[]), body), expected, "{version:?} {body}");
        }
        for revision in &ALL[..4] {
            let (headers, served) = ((Some(revision.as_str()), LIST), Ok(SelectedEra::Legacy(*revision)));
            for body in [&list, &initialize, NOTIFICATION, "{"] {
                assert_eq!(chosen(&supported, headers, body), served, "{body}");
            }
            let batches = if *revision == Revision::V2025_03_26 { served } else { Err(-32600) };
            assert_eq!(chosen(&supported, headers, BATCH), batches);
        }
        let twice = (Some("2025-06-18"), &[("mcp-protocol-version", "2025-06-18")][..]);
        assert_eq!(chosen(&supported, twice, &list), Err(-32020));
        assert_eq!(chosen(&supported, twice, "{"), Ok(SelectedEra::Modern));
    }

    /// A server without legacy clients, be it for its revisions or its settings.
    // covers: H-13, H-44, DU-17, DU-19
    #[test]
    fn legacy_clients_need_an_offer() {
        for supported in [
            SupportedRevisions::new(&ALL, false),
            SupportedRevisions::new(&ALL[4..], true),
            SupportedRevisions::new(&ALL[4..], false),
        ] {
            let (list, initialize) = (request("tools/list", "{}"), request("initialize", "{}"));
            let good = modern("tools/list", r#""2026-07-28""#, "{}", "");
            for (version, body, expected) in [
                (Some(MODERN), good.as_str(), Ok(SelectedEra::Modern)),
                // The kernel says what is missing, or which revisions there are.
                (None, &list, Ok(SelectedEra::Modern)),
                (None, &initialize, Ok(SelectedEra::Modern)),
                (Some(MODERN), &list, Ok(SelectedEra::Modern)),
                (Some(MODERN), &initialize, Ok(SelectedEra::Modern)),
                (Some("2025-11-25"), &list, Err(-32022)),
                (Some("2025-11-25"), &initialize, Err(-32022)),
                (Some("2025-11-25"), NOTIFICATION, Err(-32022)),
                (Some(MODERN), NOTIFICATION, Ok(SelectedEra::Modern)),
                (None, NOTIFICATION, Err(-32020)),
                (None, BATCH, Err(-32600)),
                (None, RESPONSE, Err(-32600)),
                (None, "{", Ok(SelectedEra::Modern)),
            ] {
                assert_eq!(chosen(&supported, (version, LIST), body), expected, "{supported:?} {version:?} {body}");
            }
        }
    }

    /// A server without modern revisions; whoever names none gets the one that is meant, or the newest.
    // covers: DU-10, DU-17, DU-24
    #[test]
    fn modern_clients_need_an_offer() {
        let (list, good) = (request("tools/list", "{}"), modern("tools/list", r#""2026-07-28""#, "{}", ""));
        for (revisions, unnamed) in [(&ALL[..4], ALL[1]), (&ALL[2..4], ALL[3]), (&ALL[..1], ALL[0])] {
            let supported = SupportedRevisions::new(revisions, true);
            assert_eq!(chosen(&supported, (None, &[]), &list), Ok(SelectedEra::Legacy(unnamed)));
            assert_eq!(chosen(&supported, (Some(MODERN), &[]), &list), Err(-32022));
            // The kernel says which there are, and not that a header is missing.
            assert_eq!(chosen(&supported, (Some(MODERN), &[]), &good), Ok(SelectedEra::Modern));
        }
        let versions = SupportedRevisions::new(&ALL, true).versions();
        assert_eq!(versions.len(), 5);
        assert!(versions.is_sorted_by(|a, b| a.as_str() > b.as_str()), "the newest first");
    }
}
