//! Strings and bytes that no text can hold.

use crate::{Of, PARSE, refuse_all, request};

/// Puts a quoted string in each of the places where one can stand; the id is in front of all.
fn everywhere(content: &[u8]) -> [(&'static str, Vec<u8>); 6] {
    [
        ("in a method", &br#"{"jsonrpc":"2.0","id":1,"method":""#[..], &br#""}"#[..]),
        ("in params", br#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[""#, br#""]}}"#),
        ("in the name of a param", br#"{"jsonrpc":"2.0","id":1,"method":"m","params":{""#, br#"":0}}"#),
        ("in a deeper name", br#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":{""#, br#"":0}}}"#),
        ("in an unknown member", br#"{"jsonrpc":"2.0","id":1,"method":"m","x":""#, br#""}"#),
        ("in the name of an unknown member", br#"{"jsonrpc":"2.0","id":1,"method":"m",""#, br#"":0}"#),
    ]
    .map(|(place, before, behind)| (place, [before, content, behind].concat()))
}

fn refuse_everywhere(name: &str, content: &[u8], of: &Of, says: &str) {
    let rows = everywhere(content).map(|(place, text)| (format!("{name} {place}"), text, PARSE, of.clone(), says));
    refuse_all(&rows);
}

#[test]
fn surrogates() {
    for (name, content) in [
        ("a leading surrogate", r"\ud83d"),
        ("a trailing surrogate", r"\ude00"),
        ("a trailing surrogate in upper case", r"\uDE00"),
        ("a reversed pair", r"\ude00\ud83d"),
        ("two leading surrogates", r"\ud83d\ud83d"),
        ("a leading surrogate in front of text", r"\ud83d!"),
        ("a leading surrogate in front of another escape", r"\ud83d\n"),
        ("a leading surrogate in front of a plain character", r"\ud83d\u0041"),
        ("half a pair behind a pair", r"\ud83d\ude00\ud83d"),
        ("the first surrogate", r"\ud800"),
        ("the last surrogate", r"\udfff"),
    ] {
        refuse_everywhere(name, content.as_bytes(), &request(1), "expected a surrogate pair");
    }
}

#[test]
fn escapes() {
    for (name, content, says) in [
        ("an escaped letter", r"\x41", "expected an escape sequence, found `x`"),
        ("an escaped single quote", r"\'", "expected an escape sequence"),
        ("an escaped zero", r"\0", "expected an escape sequence, found `0`"),
        ("an escape in upper case", r"\N", "expected an escape sequence, found `N`"),
        ("an escaped line break", "\\\n", "expected an escape sequence, found `\\n`"),
        ("an escaped character beyond ASCII", "\\é", "expected an escape sequence, found `é`"),
        ("too few digits", r"\u12", "expected four hexadecimal digits"),
        ("no digits", r"\u", "expected four hexadecimal digits"),
        ("digits that are none", r"\u12g4", "expected four hexadecimal digits, found `g`"),
        ("digits with a sign", r"\u+041", "expected four hexadecimal digits, found `+`"),
        ("digits in braces", r"\u{41}", "expected four hexadecimal digits, found `{`"),
        ("digits of another script", "\\u００４１", "expected four hexadecimal digits, found `０`"),
        ("too few digits in half a pair", r"\ud83d\ude0", "expected four hexadecimal digits"),
    ] {
        refuse_everywhere(name, content.as_bytes(), &request(1), says);
    }
}

#[test]
fn raw_control_characters() {
    for control in 0..0x20_u8 {
        refuse_everywhere(
            &format!("byte {control:#04x}"),
            &[b'a', control, b'b'],
            &request(1),
            "expected control characters to be escaped",
        );
    }
    refuse_everywhere(
        "a line break far behind",
        &[&[b'a'; 1000][..], b"\n"].concat(),
        &request(1),
        "expected control characters to be escaped, found `\\n`",
    );
}

const NOT_UTF8: [(&str, &[u8]); 14] = [
    ("a lone byte of Latin-1", b"\xe9"),
    ("a byte that UTF-8 never has", b"\xff"),
    ("a continuation without a beginning", b"\x80"),
    ("an overlong slash", b"\xc0\xaf"),
    ("an overlong quotation mark", b"\xe0\x80\xa2"),
    ("an overlong null", b"\xc0\x80"),
    ("an overlong null of four bytes", b"\xf0\x80\x80\x80"),
    ("half of two bytes", b"\xc3"),
    ("two of three bytes", b"\xe2\x82"),
    ("three of four bytes", b"\xf0\x9f\x98"),
    ("an encoded surrogate", b"\xed\xa0\x80"),
    ("an encoded surrogate pair", b"\xed\xa0\xbd\xed\xb8\x80"),
    ("a character behind the last one", b"\xf4\x90\x80\x80"),
    ("five bytes", b"\xf8\x88\x80\x80\x80"),
];

// covers: M-1
#[test]
fn bytes_that_are_not_utf_8() {
    const SAYS: &str = "the text is not UTF-8";
    for (name, bytes) in NOT_UTF8 {
        let string = [b"{\"jsonrpc\":\"2.0\",\"method\":\"", bytes, b"\",\"id\":1}"].concat();
        let outside = [b"{\"jsonrpc\":\"2.0\",", bytes, b"\"id\":1,\"method\":\"m\"}"].concat();
        let front = [bytes, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}"].concat();
        refuse_all(&[
            (format!("{name} in a string"), string, PARSE, Of::Nobody, SAYS),
            (format!("{name} outside"), outside, PARSE, Of::Nobody, SAYS),
            (format!("{name} in front"), front, PARSE, Of::Nobody, SAYS),
        ]);
    }
}

/// An id that could be read is repeated, also if the bytes behind it are not UTF-8.
// covers: M-11
#[test]
fn the_id_in_front_of_broken_utf_8_is_known() {
    for (name, bytes) in NOT_UTF8 {
        refuse_everywhere(name, bytes, &request(1), "the text is not UTF-8");
    }
}

#[test]
fn other_encodings() {
    let wide = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> { text.encode_utf16().flat_map(bytes).collect() };
    let text = r#"{"jsonrpc":"2.0","method":"m"}"#;
    refuse_all(&[
        (
            "a byte order mark",
            format!("\u{feff}{text}").into_bytes(),
            PARSE,
            Of::Nobody,
            "the text begins with a byte order mark",
        ),
        ("only a byte order mark", "\u{feff}".into(), PARSE, Of::Nobody, "the text begins with a byte order mark"),
        (
            "a byte order mark behind a space",
            format!(" \u{feff}{text}").into_bytes(),
            PARSE,
            Of::Nobody,
            "expected a value, found `\\u{feff}`",
        ),
        ("UTF-16, little end first", wide(text, u16::to_le_bytes), PARSE, Of::Nobody, "found `\\0`"),
        ("UTF-16, big end first", wide(text, u16::to_be_bytes), PARSE, Of::Nobody, "found `\\0`"),
        (
            "UTF-16 with its mark",
            wide(&format!("\u{feff}{text}"), u16::to_le_bytes),
            PARSE,
            Of::Nobody,
            "the text is not UTF-8",
        ),
    ]);
}
