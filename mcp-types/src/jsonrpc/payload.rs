//! The `params` and `result` of messages.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::decode::PayloadDeserializer;
use super::invalid_payload::InvalidPayload;
use super::limits::Limits;
use super::members::{MemberList, Members};
use crate::json::scan::{Scanner, count_members, kind};
use crate::json::validated::raw_from_validated;
use crate::{RawJson, RawObject};

/// The `params` or the `result` of a message: a JSON object as text, with an index of its members.
///
/// The text was validated and indexed when the message was parsed. Access to a member does not parse the object, and
/// [`decode`](Self::decode) does not parse raw members again.
///
/// Duplicate members are rejected at the top level; nested ones are up to `serde`.
#[derive(Clone)]
pub struct Payload<'a> {
    text: &'a str,
    members: Members,
}

impl<'a> Payload<'a> {
    pub(super) fn new(text: &'a str, members: Members) -> Self {
        Self { text, members }
    }

    /// Parses an object that is not part of a message.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a JSON object, has a duplicate member, or exceeds a limit.
    pub fn parse(text: &'a str, limits: &Limits) -> Result<Self, InvalidPayload> {
        let mut scanner = Scanner::new(text, limits.max_depth);
        let (text, members) = Members::scan(&mut scanner, limits.max_members)
            .and_then(|indexed| scanner.finish().map(|()| indexed))
            .map_err(|error| InvalidPayload::new(&error.to_string()))?;
        let members = members.map_err(|unindexed| InvalidPayload::unindexed(&unindexed))?;
        Ok(Self { text, members })
    }

    /// Returns the value of a member of `_meta`, without parsing `_meta` again.
    ///
    /// Returns `None` if there is none, or if `_meta` is not an object or has duplicate members.
    #[must_use]
    #[inline]
    pub fn meta(&self, name: &str) -> Option<&'a RawValue> {
        self.members.meta().ok()?.get(self.text, name).map(raw_from_validated)
    }

    /// Returns whether `_meta` has a member, under the same conditions as [`meta`](Self::meta).
    #[must_use]
    #[inline]
    pub fn has_meta(&self, name: &str) -> bool {
        self.members.meta().is_ok_and(|members| members.contains(self.text, name))
    }

    /// Returns the names and values of the members of `_meta` in order; `null` is the same as absent.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not an object, has duplicate members, or exceeds a limit.
    pub fn meta_members(&self) -> Result<Option<impl ExactSizeIterator<Item = (&str, &'a RawValue)>>, InvalidPayload> {
        let Some((_, members)) = self.meta_object()? else { return Ok(None) };
        Ok(Some(members.iter(self.text).map(|member| (member.name.as_str(), raw_from_validated(member.value)))))
    }

    /// Deserializes `_meta`; `null` is the same as absent.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not an object, has duplicate members, exceeds a limit, or does not match `T`.
    pub fn decode_meta<T: Deserialize<'a>>(&self) -> Result<Option<T>, InvalidPayload> {
        let Some((meta, members)) = self.meta_object()? else { return Ok(None) };
        T::deserialize(PayloadDeserializer::new(meta, members.iter(self.text))).map(Some)
    }

    /// Returns the text and the members of `_meta`.
    #[inline]
    fn meta_object(&self) -> Result<Option<(&'a str, MemberList<'_>)>, InvalidPayload> {
        let Some(meta) = self.members.own().get(self.text, "_meta").filter(|text| *text != "null") else {
            return Ok(None);
        };
        if !meta.starts_with('{') {
            return Err(InvalidPayload::new(&format!("expected an object, found {}", kind(meta))));
        }
        Ok(Some((meta, self.members.meta().map_err(InvalidPayload::unindexed)?)))
    }

    /// Returns the JSON text.
    #[must_use]
    pub fn as_str(&self) -> &'a str {
        self.text
    }

    /// Returns the value of a member.
    #[must_use]
    #[inline]
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.members.own().get(self.text, name).map(raw_from_validated)
    }

    /// Returns the names and values of the members in order.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (&str, &'a RawValue)> {
        self.members.own().iter(self.text).map(|member| (member.name.as_str(), raw_from_validated(member.value)))
    }

    /// Deserializes the object; the value may borrow from the text of the message.
    ///
    /// Members of the types [`RawJson`], [`RawObject`], `&RawValue` and `Box<RawValue>`, and options of them, are not
    /// parsed again; all others are deserialized by `serde_json`.
    ///
    /// # Errors
    ///
    /// Returns an error, which names the member, if the object does not match `T`.
    pub fn decode<T: Deserialize<'a>>(&self) -> Result<T, InvalidPayload> {
        T::deserialize(PayloadDeserializer::new(self.text, self.members.own().iter(self.text)))
    }

    /// Copies the object and its index.
    #[must_use]
    pub fn into_owned(self) -> PayloadBuf {
        PayloadBuf { text: self.text.into(), members: self.members }
    }

    /// Copies the object.
    #[must_use]
    pub fn to_object(&self) -> RawObject {
        RawObject::from_checked(RawJson::from(raw_from_validated(self.text)))
    }
}

/// An owned [`Payload`], with its index.
#[derive(Clone)]
pub struct PayloadBuf {
    text: Box<str>,
    members: Members,
}

impl PayloadBuf {
    /// Validates and indexes an object.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a JSON object, has a duplicate member, or exceeds a limit.
    pub fn parse(text: &str, limits: &Limits) -> Result<Self, InvalidPayload> {
        Payload::parse(text, limits).map(Payload::into_owned)
    }

    /// Returns the JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the value of a member.
    #[must_use]
    #[inline]
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.members.own().get(&self.text, name).map(raw_from_validated)
    }

    /// Returns the values of several members.
    #[must_use]
    #[inline]
    pub fn find<const N: usize>(&self, names: [&str; N]) -> [Option<&RawValue>; N] {
        self.members.own().find(&self.text, names).map(|value| value.map(raw_from_validated))
    }

    /// Returns the number of members of a member that is an object, without deserializing it.
    #[must_use]
    pub fn member_count(&self, name: &str) -> Option<usize> {
        count_members(self.members.own().get(&self.text, name)?)
    }

    /// Returns the names and values of the members in order.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (&str, &RawValue)> {
        self.members.own().iter(&self.text).map(|member| (member.name.as_str(), raw_from_validated(member.value)))
    }

    /// Deserializes the object; see [`Payload::decode`].
    ///
    /// # Errors
    ///
    /// Returns an error, which names the member, if the object does not match `T`.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, InvalidPayload> {
        T::deserialize(PayloadDeserializer::new(&self.text, self.members.own().iter(&self.text)))
    }
}

impl Default for PayloadBuf {
    /// Returns `{}`.
    fn default() -> Self {
        Self { text: "{}".into(), members: Members::default() }
    }
}

/// Implements what depends on the text alone.
macro_rules! as_text {
    ($($payload:ident $(<$lifetime:lifetime>)?),*) => {
        $(
            impl PartialEq for $payload $(<$lifetime>)? {
                fn eq(&self, other: &Self) -> bool {
                    self.text == other.text
                }
            }

            impl Eq for $payload $(<$lifetime>)? {}

            impl fmt::Debug for $payload $(<$lifetime>)? {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    write!(f, "{}({})", stringify!($payload), self.text)
                }
            }

            impl Serialize for $payload $(<$lifetime>)? {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    raw_from_validated(&self.text).serialize(serializer)
                }
            }
        )*
    };
}

as_text!(Payload<'_>, PayloadBuf);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::json::scan::altered::altered;

    fn payload(text: &str) -> Payload<'_> {
        Payload::parse(text, &Limits::default()).unwrap()
    }

    fn refused(text: &str) -> String {
        let limits = Limits::default().max_depth(2).max_members(2);
        Payload::parse(text, &limits).unwrap_err().to_string()
    }

    #[test]
    fn members_are_at_hand() {
        let payload = payload(r#" {"a": [1, 2], "\u0062": "x"} "#);
        assert_eq!(payload.as_str(), r#"{"a": [1, 2], "\u0062": "x"}"#);
        assert_eq!(payload.get("a").unwrap().get(), "[1, 2]");
        assert_eq!(payload.get("b").unwrap().get(), "\"x\"");
        assert!(payload.get("c").is_none());
        let names: Vec<_> = payload.members().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(payload.to_object().as_str(), payload.as_str());
        assert_eq!(serde_json::to_string(&payload).unwrap(), payload.as_str());
    }

    #[test]
    fn an_owned_payload_keeps_its_index() {
        let text = r#"{"a": [1, 2], "\u0062": "x"}"#.to_owned();
        let owned = payload(&text).into_owned();
        drop(text);
        assert_eq!(owned.get("a").unwrap().get(), "[1, 2]");
        assert_eq!(owned.get("b").unwrap().get(), "\"x\"");
        assert_eq!(serde_json::to_string(&owned).unwrap(), owned.as_str());
        assert_eq!(owned, PayloadBuf::parse(owned.as_str(), &Limits::default()).unwrap());
        assert!(PayloadBuf::default().get("a").is_none());
        let found = owned.find(["b", "c", "a"]).map(|value| value.map(RawValue::get));
        assert_eq!(found, [Some("\"x\""), None, Some("[1, 2]")]);
        let nested = PayloadBuf::parse(r#"{"a":{"b":{"c":1},"d":[]},"e":[1]}"#, &Limits::default()).unwrap();
        assert_eq!(["a", "e", "f"].map(|name| nested.member_count(name)), [Some(2), None, None]);
    }

    #[test]
    fn metadata_is_at_hand_too() {
        let with = payload(r#"{"a": 1, "_meta": {"b": [2], "\u0063": "x"}}"#);
        assert_eq!(with.meta("b").unwrap().get(), "[2]");
        assert_eq!(with.meta("c").unwrap().get(), "\"x\"");
        assert!(with.meta("a").is_none());
        assert_eq!(["a", "b", "c"].map(|name| with.has_meta(name)), [false, true, true]);
        let members: Vec<_> = with.meta_members().unwrap().unwrap().map(|(name, raw)| (name, raw.get())).collect();
        assert_eq!(members, [("b", "[2]"), ("c", "\"x\"")]);
        let meta: crate::JsonObject = with.decode_meta().unwrap().unwrap();
        assert_eq!(meta.len(), 2);
        for none in ["{}", r#"{"_meta": null}"#] {
            assert!(payload(none).decode_meta::<crate::JsonObject>().unwrap().is_none());
            assert!(payload(none).meta_members().unwrap().is_none());
        }
        for (text, reason) in [
            (r#"{"_meta": []}"#, "expected an object, found an array"),
            (r#"{"_meta": {"a": 1, "a": 2}}"#, "`a`: the member appears twice"),
        ] {
            assert!(payload(text).meta("a").is_none() && !payload(text).has_meta("a"));
            assert_eq!(payload(text).meta_members().err().unwrap().to_string(), reason);
            let refused = payload(text).decode_meta::<crate::JsonObject>().unwrap_err();
            assert_eq!(refused.to_string(), reason);
        }
    }

    /// Compares the index of altered texts with what `serde_json` finds in them.
    #[test]
    fn the_index_agrees_with_serde_json() {
        let seeds = [
            r#"{"name":"echo","arguments":{"text":"hello world, longer than a block"},"_meta":{"a":"2026","b":{}}}"#,
            r#" { "_meta" : { "n\u0061me" : [ 1 , "x" ] , "b" : {} , "c" : 0.5 } , "ä" : null , "e\n" : { "_meta" : {} } } "#,
            r#"{"a":1,"b":2,"_meta":{"a":3,"d":4},"c":5,"d":6}"#,
        ];
        let listed = |members: MemberList<'_>, text: &str| {
            members.iter(text).map(|member| (member.name.as_str().to_owned(), member.value.to_owned())).collect()
        };
        let mut seen = 0;
        for text in altered(&seeds, 30_000) {
            let Ok(Pairs(expected)) = serde_json::from_str(&text) else { continue };
            let names: BTreeSet<_> = expected.iter().map(|(name, _)| name).collect();
            let Ok(payload) = Payload::parse(&text, &Limits::default()) else {
                assert!(names.len() < expected.len(), "{text}");
                continue;
            };
            seen += 1;
            let own: Vec<_> = listed(payload.members.own(), payload.text);
            assert_eq!(own, expected, "{text}");
            for (name, value) in &expected {
                assert_eq!(payload.get(name).map(RawValue::get), Some(value.as_str()), "{text}");
            }
            let meta = payload.get("_meta").and_then(|meta| serde_json::from_str(meta.get()).ok());
            let meta = meta.map_or_else(Vec::new, |Pairs(meta)| meta);
            match payload.members.meta() {
                Ok(members) => assert_eq!(listed(members, payload.text), meta, "{text}"),
                Err(_) => assert!(meta.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len() < meta.len()),
            }
        }
        assert!(seen > 1000, "{seen}");
    }

    /// The members of an object in order, with duplicates.
    struct Pairs(Vec<(String, String)>);

    impl<'de> Deserialize<'de> for Pairs {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct PairsVisitor;

            impl<'de> serde::de::Visitor<'de> for PairsVisitor {
                type Value = Pairs;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                    let mut pairs = Vec::new();
                    while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                        pairs.push((name, value.get().to_owned()));
                    }
                    Ok(Pairs(pairs))
                }
            }

            deserializer.deserialize_map(PairsVisitor)
        }
    }

    #[test]
    fn other_texts_are_refused() {
        assert_eq!(refused("[]"), "expected an object (byte 0)");
        assert_eq!(refused("{} x"), "expected the end of the text (byte 3)");
        assert_eq!(refused(r#"{"a":1,"a":2}"#), "`a`: the member appears twice");
        assert_eq!(refused(r#"{"a":[[]]}"#), "deeper than 2 levels");
        assert_eq!(refused(r#"{"a":1,"b":2,"c":3}"#), "more than 2 members");
    }
}
