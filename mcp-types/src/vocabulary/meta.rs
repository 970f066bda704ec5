//! `_meta`: reserved keys, the naming rules for keys, and trace context.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    JsonObject, NotificationMeta, ObjectRef, RawJson, RawObject, RelatedTaskMetadata, RequestMeta, RequestParams,
    ResultMeta,
};

/// The `_meta` of items such as tools and content blocks.
///
/// The `_meta` of requests, results and notifications has reserved keys: [`RequestMeta`], [`ResultMeta`],
/// [`NotificationMeta`].
///
/// Since 2025-06-18.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(transparent)]
#[non_exhaustive]
pub struct Meta {
    /// The entries, in order. Keys that are inserted here directly are not checked.
    pub extra: JsonObject,
}

/// Reserved keys.
pub mod key {
    /// The protocol version of a request; its presence identifies a request of the modern era.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The name and version of the client.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The capabilities of the client for the request.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The minimum severity of log messages for the request.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The name and version of the server.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The id of the `subscriptions/listen` request to which a notification or a result belongs.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The task to which a message belongs (only in 2025-11-25).
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// The progress token of a request.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// W3C Trace Context: the parent of the trace.
    pub const TRACEPARENT: &str = "traceparent";
    /// W3C Trace Context: vendor-specific data.
    pub const TRACESTATE: &str = "tracestate";
    /// W3C Baggage.
    pub const BAGGAGE: &str = "baggage";
}

/// Checks a metadata key, or the identifier of an extension, against the naming rules.
///
/// A key is an optional prefix (labels separated by dots, then a slash) and a name. A label starts with a letter and ends
/// with a letter or digit; a name starts and ends with a letter or digit, and may be empty. Receivers accept all keys; the
/// rules are for senders that define keys.
///
/// ```
/// use mcp_types::meta::check_key;
///
/// assert!(check_key("com.example/trace-id").is_ok());
/// assert!(check_key("9lives/name").is_err());
/// ```
///
/// # Errors
///
/// Returns the violated rule.
// X-2, X-3, X-6
pub fn check_key(key: &str) -> Result<(), InvalidKey> {
    let (prefix, name) = split(key);
    if let Some(prefix) = prefix
        && !prefix.split('.').all(is_label)
    {
        return Err(InvalidKey::Prefix);
    }
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    if ends(bytes.first()) && ends(bytes.last()) && bytes.iter().copied().all(inner) {
        Ok(())
    } else {
        Err(InvalidKey::Name)
    }
}

/// Returns whether the prefix is reserved for the specification: its second label is `modelcontextprotocol` or `mcp`.
///
/// ```
/// use mcp_types::meta::is_reserved;
///
/// assert!(is_reserved("dev.mcp/anything"));
/// assert!(!is_reserved("com.example.mcp/anything"));
/// ```
// X-5
#[must_use]
pub fn is_reserved(key: &str) -> bool {
    let (Some(prefix), _) = split(key) else { return false };
    matches!(prefix.split('.').nth(1), Some("modelcontextprotocol" | "mcp"))
}

/// Splits a key into its prefix, if there is one, and its name.
fn split(key: &str) -> (Option<&str>, &str) {
    key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name))
}

fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

/// The error of checking a metadata key: the violated naming rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidKey {
    /// A label of the prefix is not a letter, then letters, digits or hyphens, then a letter or digit.
    Prefix,
    /// The name does not start and end with a letter or digit, or has other characters than those, `-`, `_` and `.`.
    Name,
    /// The prefix is reserved for the specification.
    Reserved,
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prefix => "each label of a key's prefix starts with a letter, ends with a letter or digit, and has only letters, digits and hyphens",
            Self::Name => "a key's name starts and ends with a letter or digit, and has only letters, digits, `-`, `_` and `.`",
            Self::Reserved => "the prefix of the key is reserved for the specification",
        })
    }
}

impl std::error::Error for InvalidKey {}

/// W3C Trace Context and Baggage of a message. `traceparent` is well-formed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    traceparent: Option<String>,
    tracestate: Option<String>,
    baggage: Option<String>,
}

impl TraceContext {
    /// Creates a trace context from the value of a `traceparent` header, if it is well-formed.
    #[must_use]
    pub fn new(traceparent: impl Into<String>) -> Option<Self> {
        let traceparent = traceparent.into();
        is_traceparent(&traceparent).then_some(Self { traceparent: Some(traceparent), tracestate: None, baggage: None })
    }

    /// Sets the value of the `tracestate` header; ignored without a `traceparent`.
    pub fn set_tracestate(&mut self, tracestate: impl Into<String>) {
        self.tracestate = self.traceparent.is_some().then(|| tracestate.into());
    }

    /// Sets the value of the `baggage` header.
    pub fn set_baggage(&mut self, baggage: impl Into<String>) {
        self.baggage = Some(baggage.into());
    }

    /// Returns the value of the `traceparent` header.
    #[must_use]
    pub fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref()
    }

    /// Returns the value of the `tracestate` header.
    #[must_use]
    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }

    /// Returns the value of the `baggage` header.
    #[must_use]
    pub fn baggage(&self) -> Option<&str> {
        self.baggage.as_deref()
    }

    /// Returns the parameters of a request or a notification with this trace context in their `_meta`. If they have a
    /// `traceparent` of their own, they stay as they are.
    ///
    /// # Errors
    ///
    /// Returns an error if the `_meta` of the parameters is invalid.
    pub fn add_to<'a>(&self, params: impl Into<ObjectRef<'a>>) -> Result<RawObject, serde_json::Error> {
        let mut params: RequestParams = params.into().decode()?;
        let meta = params.meta.get_or_insert_default();
        if meta.trace_context().traceparent().is_none() {
            meta.set_trace_context(self);
        }
        RawObject::new(&params)
    }

    /// Ignores a malformed `traceparent`, together with `tracestate`.
    fn read(entries: &JsonObject) -> Self {
        let text = |key: &str| entries.get(key)?.decode::<String>().ok();
        let mut context = text(key::TRACEPARENT).and_then(Self::new).unwrap_or_default();
        if let Some(tracestate) = text(key::TRACESTATE) {
            context.set_tracestate(tracestate);
        }
        context.baggage = text(key::BAGGAGE);
        context
    }

    fn write(&self, entries: &mut JsonObject) {
        for (key, value) in
            [(key::TRACEPARENT, &self.traceparent), (key::TRACESTATE, &self.tracestate), (key::BAGGAGE, &self.baggage)]
        {
            match value {
                Some(value) => entries.insert(key, RawJson::from_text(value.as_str())),
                None => entries.remove(key),
            };
        }
    }
}

/// Checks `version-traceid-parentid-flags` in lower-case hex; neither id may be zero, and version `ff` is invalid.
fn is_traceparent(text: &str) -> bool {
    let mut fields = text.split('-');
    let mut field = |length: usize| {
        fields.next().filter(|field| {
            field.len() == length && field.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        })
    };
    let (Some(version), Some(trace), Some(parent), Some(_)) = (field(2), field(32), field(16), field(2)) else {
        return false;
    };
    let zero = |id: &str| id.bytes().all(|byte| byte == b'0');
    // Later versions may append fields; version 00 has exactly four.
    version != "ff" && !zero(trace) && !zero(parent) && (version != "00" || fields.next().is_none())
}

/// Implements access to the entries of all metadata types.
macro_rules! entries {
    ($($meta:ident),*) => {
        $(
            impl $meta {
                /// Returns the value of a key that is not a member of this type.
                #[must_use]
                pub fn get(&self, key: &str) -> Option<&RawJson> {
                    self.extra.get(key)
                }

                /// Inserts a value with an application-specific key, and returns the one that it replaces.
                ///
                /// # Errors
                ///
                /// Returns an error if the key violates the naming rules (see [`check_key`]) or is reserved.
                pub fn insert(
                    &mut self,
                    key: impl Into<String>,
                    value: impl Into<RawJson>,
                ) -> Result<Option<RawJson>, InvalidKey> {
                    let key = key.into();
                    check_key(&key)?;
                    if is_reserved(&key) {
                        return Err(InvalidKey::Reserved);
                    }
                    Ok(self.extra.insert(key, value.into()))
                }
            }
        )*
    };
}

entries!(Meta, RequestMeta, ResultMeta, NotificationMeta);

/// Implements access to reserved keys that are not members of the metadata types of messages.
macro_rules! message_entries {
    ($($meta:ident),*) => {
        $(
            impl $meta {
                /// Returns the trace context.
                #[must_use]
                pub fn trace_context(&self) -> TraceContext {
                    TraceContext::read(&self.extra)
                }

                /// Sets the trace context.
                pub fn set_trace_context(&mut self, context: &TraceContext) {
                    context.write(&mut self.extra);
                }

                /// Returns the task to which the message belongs (only in 2025-11-25).
                ///
                /// # Errors
                ///
                /// Returns an error if the value of the key is invalid.
                pub fn related_task(&self) -> Result<Option<RelatedTaskMetadata>, serde_json::Error> {
                    self.extra.get(key::RELATED_TASK).map(RawJson::decode).transpose()
                }

                /// Sets the task to which the message belongs (only in 2025-11-25).
                pub fn set_related_task(&mut self, task_id: &str) {
                    self.extra.insert(key::RELATED_TASK, RawJson::from(serde_json::json!({ "taskId": task_id })));
                }
            }
        )*
    };
}

message_entries!(RequestMeta, ResultMeta, NotificationMeta);

#[cfg(test)]
mod tests {
    use super::*;

    // covers: X-2, X-3, X-6, N-1
    #[test]
    fn keys_follow_the_naming_rules() {
        for key in [
            "name",
            "a",
            "",
            "com.example/",
            "com.example/x",
            "a-1.b2/n_a.m-e",
            "io.modelcontextprotocol/clientInfo",
            "x/9",
        ] {
            assert_eq!(check_key(key), Ok(()), "{key}");
        }
        for key in ["/x", "1a/x", "a-/x", "-a/x", "a..b/x", "a_b/x", "ä/x", ".a/x", "a./x"] {
            assert_eq!(check_key(key), Err(InvalidKey::Prefix), "{key}");
        }
        for key in ["_x", "x_", "a b", "ä", "a/b/c", "a/-x", "x."] {
            assert_eq!(check_key(key), Err(InvalidKey::Name), "{key}");
        }
        let mut meta = Meta::default();
        assert_eq!(meta.insert("bad key", RawJson::null()), Err(InvalidKey::Name));
        assert_eq!(meta.insert("dev.mcp/key", RawJson::null()), Err(InvalidKey::Reserved));
        assert_eq!(meta.insert("com.example/good", serde_json::json!(1)), Ok(None));
        assert_eq!(meta.get("com.example/good").map(RawJson::as_str), Some("1"));
    }

    // covers: X-5, AMB-5
    #[test]
    fn the_second_label_reserves_a_prefix() {
        for key in ["io.modelcontextprotocol/x", "dev.mcp/x", "com.mcp.tools/x", "org.modelcontextprotocol.api/"] {
            assert!(is_reserved(key), "{key}");
        }
        for key in ["com.example.mcp/x", "mcp/x", "mcp.dev/x", "io.modelcontextprotocol", "progressToken"] {
            assert!(!is_reserved(key), "{key}");
        }
    }

    // covers: W-1, W-2, B-68
    #[test]
    fn trace_context_travels_under_its_own_names() {
        let text = r#"{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01","baggage":"a=1"}"#;
        let meta: RequestMeta = serde_json::from_str(text).unwrap();
        let context = meta.trace_context();
        assert_eq!(context.baggage(), Some("a=1"));
        let mut other = RequestMeta::default();
        other.set_trace_context(&context);
        assert_eq!(serde_json::to_string(&other).unwrap(), text);
        let meta: RequestMeta = serde_json::from_str(r#"{"traceparent":"x","tracestate":"s","baggage":"b"}"#).unwrap();
        let mut baggage = TraceContext::default();
        baggage.set_baggage("b");
        assert_eq!(meta.trace_context(), baggage);
        for bad in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7",
            "00-0AF7651916CD43DD8448EB211C80319C-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-extra",
        ] {
            assert_eq!(TraceContext::new(bad), None, "{bad}");
        }
    }

    /// Unknown keys stay untouched; malformed reserved keys are refused by name.
    // covers: X-18..X-20
    #[test]
    fn request_metadata_is_checked_where_it_is_reserved_and_kept_where_it_is_not() {
        let text = r#"{"progressToken":1,"com.example/z":{"b":[1.00]},"com.example/a":1e400}"#;
        let meta: RequestMeta = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&meta).unwrap(), text);
        let broken = r#"{"io.modelcontextprotocol/protocolVersion":7}"#;
        let fault = serde_json::from_str::<RequestMeta>(broken).unwrap_err().to_string();
        assert!(fault.starts_with("`io.modelcontextprotocol/protocolVersion`: invalid type"), "{fault}");
    }

    // covers: B-85, B-86
    #[test]
    fn a_related_task_is_read_and_written() {
        let mut meta = ResultMeta::default();
        meta.set_related_task("t-1");
        assert_eq!(meta.related_task().unwrap().map(|task| task.task_id), Some("t-1".to_owned()));
        meta.extra.insert(key::RELATED_TASK, RawJson::null());
        assert!(meta.related_task().is_err());
    }

    /// Everything else in the parameters stays, and so does a trace that the caller set.
    // covers: X-15
    #[test]
    fn a_trace_context_is_added_to_parameters() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let mut trace = TraceContext::new(parent).unwrap();
        trace.set_baggage("user=alice");
        let added = |params: &str| trace.add_to(&RawObject::parse(params).unwrap()).unwrap().to_value().unwrap();
        let expected =
            serde_json::json!({ "a": 1, "_meta": { "b": 2, "traceparent": parent, "baggage": "user=alice" } });
        assert_eq!(added(r#"{"a":1,"_meta":{"b":2}}"#), expected);
        assert_eq!(added("{}")["_meta"]["traceparent"], parent);
        let other = parent.replace('7', "8");
        let own = serde_json::json!({ "_meta": { "traceparent": other } });
        assert_eq!(added(&own.to_string()), own);
    }
}
