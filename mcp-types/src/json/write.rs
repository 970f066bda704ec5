//! Serializes values as JSON on one line.
//!
//! The text is that of `serde_json`, with two differences: a string is copied in blocks up to the next byte that has to be
//! escaped, and not byte by byte, and line breaks in raw JSON become spaces.

use serde::Serialize;
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Error;

use super::scan::{RESERVED, is_plain, plain_len};
use super::validated::raw_value_name;

type Result<T> = std::result::Result<T, Error>;

/// Appends a value. If that fails, a part of it may have been appended.
pub(crate) fn write_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result<()> {
    if raw_value_name().is_some_and(|name| name.starts_with(RESERVED)) {
        return value.serialize(JsonWriter::new(out));
    }
    // Raw values follow another protocol than the one that is known here.
    let start = out.len();
    serde_json::to_writer(&mut *out, value)?;
    join_lines(&mut out[start..]);
    Ok(())
}

/// Appends JSON text, on one line.
pub(crate) fn write_raw(out: &mut Vec<u8>, text: &str) {
    let start = out.len();
    out.extend_from_slice(text.as_bytes());
    join_lines(&mut out[start..]);
}

/// Replaces line breaks by spaces. In strings they are escaped, so all others are between tokens.
pub(crate) fn join_lines(text: &mut [u8]) {
    // Both loops have no branch and become a few vector instructions. Most texts need only the first one: they have
    // no control characters, which are escaped in strings, and raw JSON rarely has lines.
    let least = text.iter().fold(u8::MAX, |least, byte| least.min(*byte));
    if least >= b' ' {
        return;
    }
    for byte in text {
        *byte = if matches!(*byte, b'\n' | b'\r') { b' ' } else { *byte };
    }
}

/// Appends a string with its quotation marks.
fn write_string(out: &mut Vec<u8>, text: &str) {
    let plain = text.as_bytes();
    if !is_plain(plain) {
        return write_escaped(out, plain);
    }
    out.reserve(plain.len() + 2);
    out.push(b'"');
    out.extend_from_slice(plain);
    out.push(b'"');
}

#[inline(never)]
fn write_escaped(out: &mut Vec<u8>, mut rest: &[u8]) {
    out.reserve(rest.len() + 2);
    out.push(b'"');
    loop {
        let (plain, special) = rest.split_at(plain_len(rest));
        out.extend_from_slice(plain);
        let Some((byte, behind)) = special.split_first() else { break };
        write_escape(out, *byte);
        rest = behind;
    }
    out.push(b'"');
}

#[cold]
fn write_escape(out: &mut Vec<u8>, byte: u8) {
    const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";
    let letter = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            let [high, low] = [byte >> 4, byte & 0xf].map(|digit| HEXADECIMAL[usize::from(digit)]);
            return out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

/// Appends one value.
struct JsonWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Whether a string is JSON text.
    is_raw: bool,
}

impl<'a> JsonWriter<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, is_raw: false }
    }

    /// Opens the object of a variant with a value.
    fn open_variant(&mut self, variant: &str) {
        self.out.push(b'{');
        write_string(self.out, variant);
        self.out.push(b':');
    }
}

/// Leaves values of some types to `serde_json`, which can format them.
macro_rules! delegate_to_serde_json {
    ($($method:ident($type:ty))*) => {
        $(
            fn $method(self, value: $type) -> Result<()> {
                serde_json::to_writer(self.out, &value)
            }
        )*
    };
}

impl<'a> Serializer for JsonWriter<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Elements<'a>;
    type SerializeTuple = Elements<'a>;
    type SerializeTupleStruct = Elements<'a>;
    type SerializeTupleVariant = Elements<'a>;
    type SerializeMap = Members<'a>;
    type SerializeStruct = StructMembers<'a>;
    type SerializeStructVariant = Members<'a>;

    delegate_to_serde_json! {
        serialize_i8(i8)
        serialize_i16(i16)
        serialize_i32(i32)
        serialize_i64(i64)
        serialize_i128(i128)
        serialize_u8(u8)
        serialize_u16(u16)
        serialize_u32(u32)
        serialize_u64(u64)
        serialize_u128(u128)
        serialize_f32(f32)
        serialize_f64(f64)
        serialize_char(char)
    }

    fn serialize_bool(self, value: bool) -> Result<()> {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_str(self, text: &str) -> Result<()> {
        if self.is_raw {
            write_raw(self.out, text);
        } else {
            write_string(self.out, text);
        }
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<()> {
        bytes.serialize(self)
    }

    fn serialize_none(self) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<()> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<()> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        self.open_variant(variant);
        value.serialize(JsonWriter::new(self.out))?;
        self.out.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Elements<'a>> {
        Ok(Elements::open(self.out, b"]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Elements<'a>> {
        Ok(Elements::open(self.out, b"]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Elements<'a>> {
        Ok(Elements::open(self.out, b"]"))
    }

    fn serialize_tuple_variant(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Elements<'a>> {
        self.open_variant(variant);
        Ok(Elements::open(self.out, b"]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'a>> {
        Ok(Members::open(self.out, b"}"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<StructMembers<'a>> {
        if name.starts_with(RESERVED) {
            return Ok(StructMembers::Raw(self.out));
        }
        Ok(StructMembers::Object(Members::open(self.out, b"}")))
    }

    fn serialize_struct_variant(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'a>> {
        self.open_variant(variant);
        Ok(Members::open(self.out, b"}}"))
    }
}

/// Appends the elements of an array.
struct Elements<'a> {
    out: &'a mut Vec<u8>,
    has_any: bool,
    end: &'static [u8],
}

impl<'a> Elements<'a> {
    fn open(out: &'a mut Vec<u8>, end: &'static [u8]) -> Self {
        out.push(b'[');
        Self { out, has_any: false, end }
    }

    fn add<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        if std::mem::replace(&mut self.has_any, true) {
            self.out.push(b',');
        }
        value.serialize(JsonWriter::new(self.out))
    }

    fn close(self) -> Result<()> {
        self.out.extend_from_slice(self.end);
        Ok(())
    }
}

/// Implements the traits of arrays, which differ in the name of one method.
macro_rules! elements {
    ($($trait:ident $method:ident)*) => {
        $(
            impl $trait for Elements<'_> {
                type Ok = ();
                type Error = Error;

                fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                    self.add(value)
                }

                fn end(self) -> Result<()> {
                    self.close()
                }
            }
        )*
    };
}

elements! {
    SerializeSeq serialize_element
    SerializeTuple serialize_element
    SerializeTupleStruct serialize_field
    SerializeTupleVariant serialize_field
}

/// Appends the members of an object.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    has_any: bool,
    end: &'static [u8],
}

impl<'a> Members<'a> {
    fn open(out: &'a mut Vec<u8>, end: &'static [u8]) -> Self {
        out.push(b'{');
        Self { out, has_any: false, end }
    }

    fn separate(&mut self) {
        if std::mem::replace(&mut self.has_any, true) {
            self.out.push(b',');
        }
    }

    fn add<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<()> {
        self.separate();
        write_string(self.out, name);
        self.add_value(value)
    }

    fn add_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.out.push(b':');
        value.serialize(JsonWriter::new(self.out))
    }

    fn close(self) -> Result<()> {
        self.out.extend_from_slice(self.end);
        Ok(())
    }
}

impl SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.separate();
        let start = self.out.len();
        key.serialize(JsonWriter::new(self.out))?;
        match self.out.get(start) {
            Some(b'"') => Ok(()),
            // As in `serde_json`, a number or a boolean becomes a string.
            Some(b'-' | b'0'..=b'9' | b't' | b'f') => {
                self.out.insert(start, b'"');
                self.out.push(b'"');
                Ok(())
            }
            _ => Err(Error::custom("key must be a string")),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.add_value(value)
    }

    fn end(self) -> Result<()> {
        self.close()
    }
}

impl SerializeStructVariant for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<()> {
        self.add(name, value)
    }

    fn end(self) -> Result<()> {
        self.close()
    }
}

/// Appends a struct.
enum StructMembers<'a> {
    Object(Members<'a>),
    /// A type of `serde_json` with the JSON text as its only field: a raw value, or a number of any precision.
    Raw(&'a mut Vec<u8>),
}

impl SerializeStruct for StructMembers<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<()> {
        match self {
            Self::Object(members) => members.add(name, value),
            Self::Raw(out) => value.serialize(JsonWriter { out, is_raw: true }),
        }
    }

    fn end(self) -> Result<()> {
        match self {
            Self::Object(members) => members.close(),
            Self::Raw(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    fn written(value: &(impl Serialize + ?Sized)) -> Option<String> {
        let mut out = Vec::new();
        write_json(&mut out, value).ok()?;
        Some(String::from_utf8(out).unwrap())
    }

    fn assert_same(value: &(impl Serialize + ?Sized)) {
        assert_eq!(written(value), serde_json::to_string(value).ok());
    }

    #[derive(Serialize)]
    enum Kind {
        Unit,
        Newtype(Option<u8>),
        Tuple(i8, f32),
        Struct { a: char, b: () },
    }

    #[derive(Serialize)]
    struct Newtype<T>(T);

    #[derive(Serialize)]
    struct Pair(u16, i16);

    #[derive(Serialize)]
    struct Unit;

    #[derive(Serialize)]
    struct Flat {
        #[serde(rename = "a \"name\"")]
        named: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        absent: Option<u8>,
        #[serde(flatten)]
        rest: BTreeMap<String, Kind>,
    }

    #[test]
    fn values_are_written_as_by_serde_json() {
        assert_same(&json!({"a": [1, -2, 0.5, 1e300, true, null, "x", [], {}], "": {"b": {"c": u64::MAX}}}));
        assert_same(&[Kind::Unit, Kind::Newtype(None), Kind::Tuple(-1, 0.1), Kind::Struct { a: '"', b: () }]);
        assert_same(&(Newtype("x"), Pair(1, 2), Unit, Some(f64::NAN), i128::MIN, u128::MAX, f32::MAX, i64::MIN));
        let rest = BTreeMap::from([("k".to_owned(), Kind::Newtype(Some(1))), ("l".to_owned(), Kind::Tuple(1, 1.0))]);
        assert_same(&Flat { named: false, absent: None, rest });
        let bytes: &[u8] = b"a\0";
        assert_same(bytes);
    }

    #[test]
    fn strings_are_escaped_as_by_serde_json() {
        let all: String = (0..=0x7f).map(char::from).collect();
        for padding in 0..20 {
            for special in all.chars().chain(['ä', '\u{2028}', '\u{1f600}']) {
                let text = format!("{0}{special}{0}{special}", "a".repeat(padding));
                assert_same(&text);
            }
        }
        assert_same(&all);
        assert_same(&format!("{}\n{}", "ä".repeat(200), "\"".repeat(200)));
    }

    #[test]
    fn keys_are_written_as_by_serde_json() {
        assert_same(&BTreeMap::from([(1_u8, 1), (2, 2)]));
        assert_same(&BTreeMap::from([(-1_i64, 1)]));
        assert_same(&BTreeMap::from([(false, 1), (true, 2)]));
        assert_same(&BTreeMap::from([('x', 1)]));
        assert_same(&BTreeMap::from([(Some("a"), 1)]));
        assert_same(&BTreeMap::from([(None::<&str>, 1)]));
        assert_same(&BTreeMap::from([(vec![1], 1)]));
        assert_same(&BTreeMap::from([((), 1)]));
    }

    /// Raw JSON is copied, on one line, wherever it is.
    #[test]
    fn raw_values_are_copied() {
        let raw: &RawValue = serde_json::from_str("{\r\n\"a\" :\n\"b\\n\"}").unwrap();
        let expected = r#"{  "a" : "b\n"}"#;
        assert_eq!(written(raw).unwrap(), expected);
        assert_eq!(written(&[raw, raw]).unwrap(), format!("[{expected},{expected}]"));
        assert_eq!(written(&BTreeMap::from([("k", Some(raw))])).unwrap(), format!(r#"{{"k":{expected}}}"#));
    }
}
