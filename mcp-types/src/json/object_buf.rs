//! JSON objects that are written member by member.

use std::fmt;
use std::io;

use serde::Serialize;
use serde::de::{Deserialize, Error as _};
use serde_json::Error;

use crate::json::scan::kind;
use crate::json::validated::raw_from_validated;
use crate::{RawJson, RawObject};

/// A JSON object as text, to which members can be added.
///
/// It is written into one buffer, which is kept as it is: unlike a [`RawObject`], it may have spare capacity.
///
/// ```
/// use mcp_types::ObjectBuf;
///
/// let mut params = ObjectBuf::new();
/// params.push("name", "add")?;
/// params.push_object("arguments", &serde_json::json!({ "a": 1 }))?;
/// assert_eq!(params.as_str(), r#"{"name":"add","arguments":{"a":1}}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ObjectBuf(String);

/// The initial capacity, sufficient for the parameters of most requests.
const USUAL_SIZE: usize = 192;

impl ObjectBuf {
    /// Creates an object without members.
    #[must_use]
    pub fn new() -> Self {
        let mut text = String::with_capacity(USUAL_SIZE);
        text.push_str("{}");
        Self(text)
    }

    /// Adds a member, which must not be present yet.
    ///
    /// # Errors
    ///
    /// Returns an error, and adds nothing, if the value cannot be serialized.
    pub fn push(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.append(name, value, |_| Ok(()))
    }

    /// Adds a member that is an object, and must not be present yet.
    ///
    /// # Errors
    ///
    /// Returns an error, and adds nothing, if the value cannot be serialized, or not as an object.
    pub fn push_object(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.append(name, value, |written| {
            if written.starts_with('{') {
                return Ok(());
            }
            Err(Error::custom(format_args!("expected an object, found {}", kind(written))))
        })
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Deserializes the text; the value may borrow from it.
    ///
    /// # Errors
    ///
    /// Returns an error if the text does not match `T`, or nests deeper than the 127 levels that `serde_json` supports.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Error> {
        serde_json::from_str(&self.0)
    }

    /// Returns a copy.
    #[must_use]
    pub fn to_object(&self) -> RawObject {
        RawObject::from_checked(RawJson::from(raw_from_validated(&self.0)))
    }

    /// Writes a member in the place of the closing brace, and the brace behind it.
    fn append(
        &mut self,
        name: &str,
        value: &(impl Serialize + ?Sized),
        check: fn(&str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.0.pop();
        let end = self.0.len();
        if self.0.trim_ascii_end() != "{" {
            self.0.push(',');
        }
        let written = serde_json::to_writer(TextWriter(&mut self.0), name).and_then(|()| {
            self.0.push(':');
            let start = self.0.len();
            serde_json::to_writer(TextWriter(&mut self.0), value)?;
            check(self.0.get(start..).unwrap_or_default())
        });
        if written.is_err() {
            self.0.truncate(end);
        }
        self.0.push('}');
        written
    }
}

impl Default for ObjectBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl From<RawObject> for ObjectBuf {
    /// Does not copy the text.
    fn from(object: RawObject) -> Self {
        Self(object.into_raw().into_text().into())
    }
}

impl fmt::Debug for ObjectBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectBuf({})", self.0)
    }
}

/// A borrowed JSON object as text: a [`RawObject`] or an [`ObjectBuf`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectRef<'a>(&'a str);

impl<'a> ObjectRef<'a> {
    /// Returns the text.
    #[must_use]
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// Deserializes the text; the value may borrow from it.
    ///
    /// # Errors
    ///
    /// Returns an error if the text does not match `T`, or nests deeper than the 127 levels that `serde_json` supports.
    pub fn decode<T: Deserialize<'a>>(self) -> Result<T, Error> {
        serde_json::from_str(self.0)
    }
}

impl<'a> From<&'a RawObject> for ObjectRef<'a> {
    fn from(object: &'a RawObject) -> Self {
        Self(object.as_str())
    }
}

impl<'a> From<&'a ObjectBuf> for ObjectRef<'a> {
    fn from(object: &'a ObjectBuf) -> Self {
        Self(object.as_str())
    }
}

/// Appends to text. The serializer writes nothing but UTF-8, and never a part of a character.
struct TextWriter<'a>(&'a mut String);

impl io::Write for TextWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.0.push_str(text);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Whatever is written reads back, and what cannot be written changes nothing.
    #[test]
    fn members_are_added() {
        let mut object = ObjectBuf::new();
        let mut expected = serde_json::Map::new();
        let unwritable = std::collections::BTreeMap::from([(vec![1], 1)]);
        for (name, value) in [
            ("a", json!("gr\u{fc}\u{df} \u{1f600} \"\\\n\u{1}")),
            ("\"}\\", json!([1, 2.5, null])),
            ("", json!({ "x": {} })),
            ("c", json!(null)),
        ] {
            let before = object.clone();
            assert!(object.push(name, &unwritable).is_err());
            if !value.is_object() {
                let error = object.push_object(name, &value).unwrap_err().to_string();
                assert!(error.starts_with("expected an object, found "), "{error}");
            }
            assert_eq!(object, before);
            object.push(name, &value).unwrap();
            expected.insert(name.to_owned(), value);
            assert_eq!(serde_json::from_str::<Value>(object.as_str()).unwrap(), Value::Object(expected.clone()));
        }
        object.push_object("o", &RawObject::empty()).unwrap();
        assert!(object.as_str().ends_with(r#","o":{}}"#));
    }

    #[test]
    fn objects_are_converted() {
        let raw = RawObject::parse(r#"{ "a": 1 }"#).unwrap();
        let mut object = ObjectBuf::from(raw.clone());
        assert_eq!((object.as_str(), object.to_object()), (raw.as_str(), raw.clone()));
        assert_eq!(ObjectRef::from(&raw), ObjectRef::from(&object));
        object.push("b", &2).unwrap();
        assert_eq!(object.decode::<Value>().unwrap(), json!({ "a": 1, "b": 2 }));
        assert_eq!(ObjectBuf::default().as_str(), "{}");
        let mut empty = ObjectBuf::from(RawObject::parse("{ \n}").unwrap());
        empty.push("a", &1).unwrap();
        assert_eq!(empty.decode::<Value>().unwrap(), json!({ "a": 1 }));
    }
}
