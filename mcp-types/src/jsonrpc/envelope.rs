//! The members of a message.
//!
//! The scan records the positions of all members in one pass. The rules are checked after it, so that the result does not
//! depend on the order of the members.

use serde_json::value::RawValue;

use super::fault::Fault;
use super::invalid_message::{InvalidMessage, Origin};
use super::limits::Limits;
use super::members::{Indexed, Members, Unindexed};
use super::message::{Message, Notification, Request, Response};
use super::payload::Payload;
use crate::json::excerpt::{MAX_NAME_CHARS, excerpt};
use crate::json::scan::{ScanError, Scanner, kind, unquote};
use crate::vocabulary::id;
use crate::{ErrorObject, Method, RequestId};

/// The members of a message that were scanned so far.
pub(super) struct Envelope<'a> {
    at: usize,
    jsonrpc: Option<Slot<&'a str>>,
    id: Option<Slot<&'a str>>,
    method: Option<Slot<&'a str>>,
    params: Option<Slot<Body<'a>>>,
    result: Option<Slot<Body<'a>>>,
    error: Option<Slot<Body<'a>>>,
    /// The first duplicate of a known member.
    repeated: Option<Slot<&'static str>>,
    /// Whether there is a `result` or an `error`, even an incomplete one.
    is_response: bool,
    /// Whether there is a second `id`, even an incomplete one.
    has_two_ids: bool,
}

/// A member of a message.
#[derive(Clone, Copy)]
enum Known {
    JsonRpc,
    Id,
    Method,
    Params,
    Result,
    Error,
}

impl Known {
    #[inline]
    fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"jsonrpc" => Self::JsonRpc,
            b"id" => Self::Id,
            b"method" => Self::Method,
            b"params" => Self::Params,
            b"result" => Self::Result,
            b"error" => Self::Error,
            _ => return None,
        })
    }
}

/// A value and its position in the text.
#[derive(Clone, Copy)]
struct Slot<T> {
    at: usize,
    value: T,
}

/// The value of a member that should be an object.
enum Body<'a> {
    Object(Indexed<'a>),
    Other(&'a str),
}

type Checked<T> = Result<T, InvalidMessage>;

impl<'a> Envelope<'a> {
    /// Creates an envelope for the object at the position `at`.
    pub(super) fn new(at: usize) -> Self {
        Self {
            at,
            jsonrpc: None,
            id: None,
            method: None,
            params: None,
            result: None,
            error: None,
            repeated: None,
            is_response: false,
            has_two_ids: false,
        }
    }

    /// Scans the object and records its members; unknown members are ignored.
    ///
    /// If the scan fails, the members before the error are recorded.
    // M-19
    pub(super) fn scan(&mut self, scanner: &mut Scanner<'a>, limits: &Limits) -> Result<(), ScanError> {
        scanner.object(|scanner, name| {
            let (value, repeated) = match name.read(Known::of) {
                Some(Known::JsonRpc) => ("jsonrpc", note(&mut self.jsonrpc, scanner, Scanner::value)?),
                Some(Known::Id) => {
                    self.has_two_ids = self.id.is_some();
                    ("id", note(&mut self.id, scanner, Scanner::value)?)
                }
                Some(Known::Method) => ("method", note(&mut self.method, scanner, Scanner::value)?),
                Some(Known::Params) => ("params", note(&mut self.params, scanner, |s| Body::scan(s, limits))?),
                Some(Known::Result) => {
                    self.is_response = true;
                    ("result", note(&mut self.result, scanner, |s| Body::scan(s, limits))?)
                }
                Some(Known::Error) => {
                    self.is_response = true;
                    ("error", note(&mut self.error, scanner, |s| Body::scan(s, limits))?)
                }
                None => return scanner.skip_value(),
            };
            if let Some(at) = repeated {
                self.repeated.get_or_insert(Slot { at, value });
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Checks the rules of the envelope.
    pub(super) fn take_message(&mut self) -> Checked<Message<'a>> {
        self.check().map_err(|invalid| invalid.about(self.origin()))
    }

    /// Returns the origin of the message if the scan of `text` failed.
    ///
    /// The id may be incomplete: `1` may be the beginning of `1_000`. It is used only if a comma or a brace follows, or if
    /// it is a string at the end of the whole text.
    pub(super) fn origin_before(&self, text: &str, is_whole: bool) -> Origin {
        if let Some(id) = self.id {
            let behind = text.get(id.at + id.value.len()..).unwrap_or_default().trim_start();
            let is_last_string = behind.is_empty() && is_whole && id.value.ends_with('"');
            if !behind.starts_with([',', '}']) && !is_last_string {
                return Origin::Unknown;
            }
        }
        self.origin()
    }

    fn origin(&self) -> Origin {
        if self.has_two_ids {
            return Origin::Unknown;
        }
        match self.id.map(|id| request_id(id.value)) {
            Some(Ok(id)) if self.is_response => Origin::Response(id),
            Some(Ok(id)) => Origin::Request(id),
            Some(Err(_)) | None => Origin::Unknown,
        }
    }

    fn check(&mut self) -> Checked<Message<'a>> {
        if let Some(repeated) = self.repeated {
            return Err(repeated.fault(Fault::DuplicateMember(repeated.value)));
        }
        self.check_version()?;
        match (self.method, self.result.take(), self.error.take()) {
            (Some(method), None, None) => self.call(method),
            (Some(method), ..) => Err(method.fault(Fault::MixedKinds)),
            (None, Some(result), None) => self.success(result),
            (None, None, Some(error)) => self.failure(error),
            (None, Some(_), Some(error)) => Err(error.fault(Fault::ResultAndError)),
            (None, None, None) => Err(self.fault(Fault::NoKind)),
        }
    }

    fn check_version(&self) -> Checked<()> {
        let Some(version) = self.jsonrpc else {
            return Err(self.fault(Fault::MissingMember("jsonrpc")));
        };
        if !version.value.starts_with('"') {
            return Err(version.wrong_kind("jsonrpc", "the string \"2.0\"", kind(version.value)));
        }
        if version.value != "\"2.0\"" && unquote(version.value) != "2.0" {
            let found = excerpt(version.value, MAX_NAME_CHARS).into();
            return Err(version.fault(Fault::WrongVersion { found }));
        }
        Ok(())
    }

    fn call(&mut self, method: Slot<&'a str>) -> Checked<Message<'a>> {
        if !method.value.starts_with('"') {
            return Err(method.wrong_kind("method", "a string", kind(method.value)));
        }
        let name = unquote(method.value);
        if name.is_empty() {
            return Err(method.fault(Fault::EmptyMethod));
        }
        let method = Method::from(&*name);
        let id = self.id()?;
        let params = match self.params.take() {
            None => None,
            Some(Slot { value: Body::Other("null"), .. }) => None,
            Some(params) => Some(params.object("params")?),
        };
        Ok(match id {
            Some(id) => Message::Request(Request { id, method, params }),
            None => Message::Notification(Notification { method, params }),
        })
    }

    fn success(&self, result: Slot<Body<'a>>) -> Checked<Message<'a>> {
        let Some(id) = self.id()? else {
            return Err(self.fault(Fault::MissingMember("id")));
        };
        Ok(Message::Response(Response { id: Some(id), outcome: Ok(result.object("result")?) }))
    }

    fn failure(&self, error: Slot<Body<'a>>) -> Checked<Message<'a>> {
        // M-13: peers send `null` for an id that they could not read.
        let id = match self.id {
            Some(id) if id.value == "null" => None,
            _ => self.id()?,
        };
        let at = error.at;
        let error = error_object(&error.object("error")?).map_err(|fault| InvalidMessage::new(fault, Some(at)))?;
        Ok(Message::Response(Response { id, outcome: Err(error) }))
    }

    fn id(&self) -> Checked<Option<RequestId>> {
        self.id.map(|id| request_id(id.value).map_err(|fault| id.fault(fault))).transpose()
    }

    /// Creates an error at the position of the message.
    fn fault(&self, fault: Fault) -> InvalidMessage {
        InvalidMessage::new(fault, Some(self.at))
    }
}

impl<T> Slot<T> {
    fn fault(&self, fault: Fault) -> InvalidMessage {
        InvalidMessage::new(fault, Some(self.at))
    }

    fn wrong_kind(&self, member: &'static str, expected: &'static str, found: &'static str) -> InvalidMessage {
        self.fault(Fault::WrongKind { member, expected, found })
    }
}

impl<'a> Slot<Body<'a>> {
    fn object(self, name: &'static str) -> Checked<Payload<'a>> {
        let fault = match self.value {
            Body::Object((text, Ok(members))) => return Ok(Payload::new(text, members)),
            Body::Object((_, Err(Unindexed::TooMany { limit }))) => Fault::TooManyMembers { payload: name, limit },
            Body::Object((_, Err(Unindexed::Twice { name: member }))) => {
                Fault::DuplicatePayloadMember { payload: name, member: excerpt(&member, MAX_NAME_CHARS).into() }
            }
            Body::Other(text) => Fault::WrongKind { member: name, expected: "an object", found: kind(text) },
        };
        Err(InvalidMessage::new(fault, Some(self.at)))
    }
}

impl<'a> Body<'a> {
    fn scan(scanner: &mut Scanner<'a>, limits: &Limits) -> Result<Self, ScanError> {
        match scanner.peek() {
            (_, Some(b'{')) => Members::scan(scanner, limits.max_members).map(Self::Object),
            _ => scanner.value().map(Self::Other),
        }
    }
}

/// Scans a value into its slot; returns the position of a duplicate.
fn note<'a, T>(
    slot: &mut Option<Slot<T>>,
    scanner: &mut Scanner<'a>,
    pass: impl FnOnce(&mut Scanner<'a>) -> Result<T, ScanError>,
) -> Result<Option<usize>, ScanError> {
    let (at, _) = scanner.peek();
    let value = pass(scanner)?;
    if slot.is_some() {
        return Ok(Some(at));
    }
    *slot = Some(Slot { at, value });
    Ok(None)
}

/// Parses an id.
// M-2, M-3, CG-5
fn request_id(text: &str) -> Result<RequestId, Fault> {
    match text.as_bytes().first() {
        Some(b'"') => Ok(RequestId::from(&*unquote(text))),
        Some(b'n') => Err(Fault::NullId),
        Some(b'-' | b'0'..=b'9') => match text.parse::<i64>() {
            Ok(number) => Ok(number.into()),
            Err(_) if is_fraction(text) => Err(Fault::FractionalId),
            Err(_) => Err(Fault::IdOutOfRange),
        },
        _ => Err(Fault::WrongKind { member: "id", expected: id::EXPECTED, found: kind(text) }),
    }
}

/// Parses an error object.
// M-11, M-12
fn error_object(error: &Payload<'_>) -> Result<ErrorObject, Fault> {
    let member = |name| error.get(name).map(RawValue::get);
    let code = member("code").ok_or(Fault::MissingMember("error.code"))?;
    let code: i64 = code.parse().map_err(|_| Fault::WrongKind {
        member: "error.code",
        expected: "an integer of 64 bits",
        found: if is_fraction(code) { "a fraction" } else { kind(code) },
    })?;
    let message = member("message").ok_or(Fault::MissingMember("error.message"))?;
    if !message.starts_with('"') {
        return Err(Fault::WrongKind { member: "error.message", expected: "a string", found: kind(message) });
    }
    let data = error.get("data");
    let error = ErrorObject::new(code.into(), unquote(message).into_owned());
    Ok(match data {
        Some(data) => error.raw_data(data.into()),
        None => error,
    })
}

/// Returns whether a number is not written as an integer.
fn is_fraction(text: &str) -> bool {
    kind(text) == "a number" && text.contains(['.', 'e', 'E'])
}

#[cfg(test)]
mod tests;
