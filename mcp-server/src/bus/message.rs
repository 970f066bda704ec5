//! A change as instances tell each other about it.

use mcp_kernel::Change;
use mcp_kernel::server::Principal;
use serde::{Deserialize, Serialize};

use crate::visibility::audience::{Audience, Members};

/// The most items that one message names; more are divided.
const MAX_ITEMS: usize = 256;

/// A change, and who is notified of it. Instances may be of different versions, so members are only ever added, and a message
/// with unknown ones is not understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Message {
    /// The name of the server, as servers may share a bus.
    pub(crate) server: String,
    change: Kind,
    /// The URI of a resource that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    /// The items that were added to a list or removed from it, if none of them is visible to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) items: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    principal: Option<User>,
    /// The name of an audience.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    audience: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Tools,
    Prompts,
    Resources,
    Resource,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct User {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    subject: String,
}

impl Message {
    /// Returns the messages for a change; none if its audience is not known to other instances.
    pub(crate) fn of(server: &str, change: &Change, audience: &Audience, items: Option<Vec<String>>) -> Vec<Self> {
        let (principal, audience) = match &audience.0 {
            Members::All => (None, None),
            Members::Principal(principal) => {
                let issuer = principal.issuer.as_deref().map(ToOwned::to_owned);
                (Some(User { issuer, subject: principal.subject.as_ref().to_owned() }), None)
            }
            Members::Named(name) => (None, Some(name.as_ref().to_owned())),
            Members::Connection(_) | Members::Matching(_) => return Vec::new(),
        };
        let (kind, uri) = match change {
            Change::Tools => (Kind::Tools, None),
            Change::Prompts => (Kind::Prompts, None),
            Change::Resources => (Kind::Resources, None),
            Change::Resource(uri) => (Kind::Resource, Some(uri.clone())),
            // Changes that only this version of the kernel knows would not be understood.
            _ => return Vec::new(),
        };
        let message = |items| Self {
            server: server.to_owned(),
            change: kind,
            uri: uri.clone(),
            items,
            principal: principal.clone(),
            audience: audience.clone(),
        };
        match items {
            None => vec![message(None)],
            Some(items) => items.chunks(MAX_ITEMS).map(|items| message(Some(items.to_vec()))).collect(),
        }
    }

    /// Returns the change; `None` if the message is not one.
    pub(crate) fn change(&self) -> Option<Change> {
        Some(match self.change {
            Kind::Tools => Change::Tools,
            Kind::Prompts => Change::Prompts,
            Kind::Resources => Change::Resources,
            Kind::Resource => Change::Resource(self.uri.clone()?),
        })
    }

    pub(crate) fn audience(&self) -> Audience {
        match (&self.principal, &self.audience) {
            (Some(user), _) => Audience::principal(Principal::new(user.issuer.as_deref(), &user.subject)),
            (None, Some(name)) => Audience::named(name.as_str()),
            (None, None) => Audience::all(),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        // Plain data, which can always be serialized.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a message; `None` if it is not understood.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instances of other versions read and write these texts.
    #[test]
    fn messages_do_not_change() {
        let uri = Change::Resource("inbox:unread".into());
        let alice = Audience::principal(Principal::new(Some("https://issuer.example"), "alice"));
        let names = || Some(vec!["secret".to_owned()]);
        for (change, audience, items, text) in [
            (Change::Tools, Audience::all(), None, r#"{"server":"s","change":"tools"}"#),
            (Change::Prompts, Audience::all(), names(), r#"{"server":"s","change":"prompts","items":["secret"]}"#),
            (
                Change::Resources,
                Audience::named("admins"),
                None,
                r#"{"server":"s","change":"resources","audience":"admins"}"#,
            ),
            (
                uri,
                alice,
                None,
                r#"{"server":"s","change":"resource","uri":"inbox:unread","principal":{"issuer":"https://issuer.example","subject":"alice"}}"#,
            ),
        ] {
            let [message] = <[Message; 1]>::try_from(Message::of("s", &change, &audience, items)).unwrap();
            assert_eq!(str::from_utf8(&message.encode()).unwrap(), text);
            let read = Message::decode(text.as_bytes()).unwrap();
            assert_eq!((read.change(), format!("{:?}", read.audience())), (Some(change), format!("{audience:?}")));
            assert_eq!(read, message);
        }
        for unknown in [
            "",
            "[]",
            r#"{"server":"s"}"#,
            r#"{"server":"s","change":"all"}"#,
            r#"{"server":"s","change":"tools","only":1}"#,
        ] {
            assert_eq!(Message::decode(unknown.as_bytes()), None, "{unknown}");
        }
        assert_eq!(Message::decode(br#"{"server":"s","change":"resource"}"#).unwrap().change(), None);
    }

    #[test]
    fn long_lists_of_items_are_divided() {
        let names: Vec<String> = (0..600).map(|number| number.to_string()).collect();
        let messages = Message::of("s", &Change::Tools, &Audience::all(), Some(names.clone()));
        assert_eq!(messages.len(), 3);
        assert_eq!(messages.into_iter().flat_map(|message| message.items.unwrap()).collect::<Vec<_>>(), names);
        assert!(Message::of("s", &Change::Tools, &Audience::matching(|_| true), None).is_empty());
    }
}
