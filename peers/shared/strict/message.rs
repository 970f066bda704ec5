//! What a client sends. Everything borrows from the body, and only a text with escapes is copied.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A request, or a notification if it has no id.
#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<&'a RawValue>,
    pub(crate) method: &'a str,
    #[serde(borrow, default)]
    pub(crate) params: Params<'a>,
}

/// The parameters of all methods.
#[derive(Default, Deserialize)]
pub(crate) struct Params<'a> {
    pub(crate) name: Option<&'a str>,
    #[serde(borrow)]
    pub(crate) arguments: Option<Arguments<'a>>,
    #[serde(borrow)]
    #[allow(dead_code, reason = "there are no subscriptions over standard streams")]
    pub(crate) notifications: Option<&'a RawValue>,
    #[serde(rename = "protocolVersion")]
    pub(crate) version: Option<&'a str>,
    #[serde(borrow, rename = "_meta")]
    pub(crate) meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct Arguments<'a> {
    #[serde(borrow)]
    pub(crate) text: Cow<'a, str>,
}

#[derive(Deserialize)]
pub(crate) struct Meta<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    pub(crate) version: Option<&'a str>,
    #[serde(borrow, rename = "progressToken")]
    #[allow(dead_code, reason = "there is no progress over standard streams")]
    pub(crate) token: Option<&'a RawValue>,
}
