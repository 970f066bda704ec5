//! By which rules a message is served (D2).

use http::HeaderMap;
use mcp_types::jsonrpc::{Incoming, InvalidMessage, Message, Request};
use mcp_types::meta::key;
use mcp_types::{Era, ErrorCode, ErrorObject, Method, ProtocolVersion, RequestId, RequestMeta, Revision};

use super::metadata::{HeaderFault, VERSION, check_names, check_version, value_of};

/// How a message is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are two eras")]
pub enum Served {
    /// By what it says about itself.
    Modern,
    /// Alone, by the rules of a legacy revision.
    Legacy(Revision),
}

impl Served {
    /// The era of the answer.
    #[must_use]
    pub fn era(self) -> Era {
        match self {
            Self::Modern => Era::Modern,
            Self::Legacy(_) => Era::Legacy,
        }
    }

    /// The revision by whose rules errors are written.
    #[must_use]
    pub fn revision(self) -> Revision {
        match self {
            Self::Modern => Revision::LATEST,
            Self::Legacy(revision) => revision,
        }
    }
}

/// What is served at all.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Offer<'a> {
    /// The revisions of the server.
    pub revisions: &'a [Revision],
    /// Whether legacy clients are served, each request alone.
    pub serves_legacy: bool,
}

impl<'a> Offer<'a> {
    /// Describes what is served. Without a legacy revision no legacy client is.
    #[must_use]
    pub fn new(revisions: &'a [Revision], serves_legacy: bool) -> Self {
        let serves_legacy = serves_legacy && revisions.iter().any(|revision| revision.era() == Era::Legacy);
        Self { revisions, serves_legacy }
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

/// Chooses the rules for a message from its body; the headers are a cross-check (DU-13).
///
/// # Errors
///
/// Fails with what the client is told, with status 400, if headers and body do not fit together. Checks that are not
/// about headers are left to the kernel, and so is what it would refuse before these: the order is the register's.
pub fn choose(
    offer: &Offer<'_>,
    headers: &HeaderMap,
    incoming: &Result<Incoming<'_>, InvalidMessage>,
) -> Result<Served, ErrorObject> {
    let request = match incoming {
        Ok(Incoming::Single(Message::Request(request))) => Some(request),
        Ok(_) | Err(_) => None,
    };
    if let Some(request) = request.filter(|request| is_modern(request)) {
        check_modern(offer, headers, request)?;
        return Ok(Served::Modern);
    }
    let version = value_of(headers, &VERSION).map_err(|fault| fault.to_error_object());
    let served = version.and_then(|version| by_version(offer, version));
    if incoming.is_err() {
        // What cannot be read is refused for that; the header says no more than how.
        return Ok(served.unwrap_or(Served::Modern));
    }
    let served = served?;
    match incoming {
        // DU-15, DU-16: a modern header does not make a modern request.
        Ok(Incoming::Single(Message::Request(request))) if served == Served::Modern && offer.serves_legacy => {
            Err(if request.method == Method::INITIALIZE {
                let text = "`initialize` belongs to older revisions than `MCP-Protocol-Version` says";
                ErrorObject::new(ErrorCode::HEADER_MISMATCH, text)
            } else {
                let missing = format!("`_meta`: missing field `{}`", key::PROTOCOL_VERSION);
                ErrorObject::invalid_params(missing)
            })
        }
        // DU-21
        Ok(Incoming::Single(Message::Response(_))) => {
            Err(ErrorObject::invalid_request("a response answers a request of a session, and there is none here"))
        }
        // DU-20
        Ok(Incoming::Batch(_)) if served == Served::Modern => {
            Err(ErrorObject::invalid_request("a batch is not allowed here: send each message in a request of its own"))
        }
        // H-44
        Ok(Incoming::Single(Message::Notification(_))) if !headers.contains_key(&VERSION) && !offer.serves_legacy => {
            Err(ErrorObject::new(ErrorCode::HEADER_MISMATCH, "the header `MCP-Protocol-Version` is missing"))
        }
        Ok(_) | Err(_) => Ok(served),
    }
}

/// DU-13: the key in the body makes a request modern, whatever its value.
fn is_modern(request: &Request<'_>) -> bool {
    request.params.as_ref().is_some_and(|params| params.meta(key::PROTOCOL_VERSION).is_some())
}

/// What the header says about a message that says nothing itself (DU-17, DU-22, H-43).
fn by_version(offer: &Offer<'_>, version: Option<&str>) -> Result<Served, ErrorObject> {
    let Some(version) = version else {
        // The oldest revision that is told by its header at all is the next one.
        let unnamed = Revision::V2025_03_26;
        return Ok(if offer.has(unnamed) { Served::Legacy(unnamed) } else { newest_legacy(offer) });
    };
    let requested = ProtocolVersion::from(version.to_owned());
    match requested.revision().filter(|revision| offer.has(*revision)) {
        Some(revision) if revision.era() == Era::Modern => Ok(Served::Modern),
        Some(revision) => Ok(Served::Legacy(revision)),
        None => Err(ErrorObject::unsupported_protocol_version(requested, offer.versions())),
    }
}

fn newest_legacy(offer: &Offer<'_>) -> Served {
    let legacy =
        offer.revisions.iter().copied().filter(|revision| revision.era() == Era::Legacy && offer.has(*revision));
    legacy.max().map_or(Served::Modern, Served::Legacy)
}

/// Compares the headers of a modern request with its body, in the register's order of checks.
fn check_modern(offer: &Offer<'_>, headers: &HeaderMap, request: &Request<'_>) -> Result<(), ErrorObject> {
    let Err(fault) = check_version(headers, request) else {
        return match check_names(headers, request) {
            Ok(()) => Ok(()),
            Err(fault) => refuse_unless_earlier(offer, request, &fault, Stage::Names),
        };
    };
    // A header that is missing is looked for later than one that differs is found.
    let is_missing = fault.kind == super::metadata::HeaderFaultKind::Missing;
    refuse_unless_earlier(offer, request, &fault, if is_missing { Stage::Names } else { Stage::Version })
}

/// Refuses the parameters of a tool in headers, which are looked at after everything else about headers.
///
/// # Errors
///
/// Fails with the fault, unless the kernel refuses the request for something else first.
pub fn refuse_param(offer: &Offer<'_>, request: &Request<'_>, fault: &HeaderFault) -> Result<(), ErrorObject> {
    refuse_unless_earlier(offer, request, fault, Stage::Names)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Whether the version in the header is that of the body: after the metadata, before the version is looked at.
    Version,
    /// All other headers.
    Names,
}

fn refuse_unless_earlier(
    offer: &Offer<'_>,
    request: &Request<'_>,
    fault: &HeaderFault,
    stage: Stage,
) -> Result<(), ErrorObject> {
    let meta = request.params.as_ref().map(|params| params.decode_meta::<RequestMeta>());
    let Some(Ok(Some(RequestMeta { protocol_version: Some(version), client_capabilities: Some(_), .. }))) = meta else {
        // Metadata that is malformed or lacks something comes first.
        return Ok(());
    };
    let is_supported =
        version.revision().is_some_and(|revision| revision.era() == Era::Modern && offer.revisions.contains(&revision));
    if stage == Stage::Names && !is_supported { Ok(()) } else { Err(fault.to_error_object()) }
}

/// The id that an answer to a message repeats (H-34).
#[must_use]
pub fn id_of<'a>(incoming: &'a Incoming<'_>) -> Option<&'a RequestId> {
    match incoming {
        Incoming::Single(Message::Request(request)) => Some(&request.id),
        Incoming::Single(_) | Incoming::Batch(_) => None,
    }
}
