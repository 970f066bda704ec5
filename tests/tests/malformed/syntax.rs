//! Texts that are not JSON.

use crate::{Of, PARSE, REQUEST, refuse_all, request, response};

#[test]
fn texts_without_a_message() {
    refuse_all(&[
        ("nothing", "", PARSE, Of::Nobody, "expected a value, found the end of the text"),
        ("whitespace", " \t\r\n ", PARSE, Of::Nobody, "expected a value, found the end of the text"),
        ("null", "null", REQUEST, Of::Nobody, "a message must be an object, found null"),
        ("a boolean", "true", REQUEST, Of::Nobody, "a message must be an object, found a boolean"),
        ("a number", "5", REQUEST, Of::Nobody, "a message must be an object, found a number"),
        ("a string", "\"text\"", REQUEST, Of::Nobody, "a message must be an object, found a string"),
        ("a word", "hello", PARSE, Of::Nobody, "expected a value, found `h`"),
        ("a request of HTTP", "POST /mcp HTTP/1.1\r\n\r\n{}", PARSE, Of::Nobody, "expected a value, found `P`"),
        ("a header of LSP", "Content-Length: 2\r\n\r\n{}", PARSE, Of::Nobody, "expected a value, found `C`"),
        ("a closing brace", "}", PARSE, Of::Nobody, "expected a value, found `}`"),
    ]);
}

#[test]
fn numbers() {
    for (number, says) in [
        ("01", "expected no digit after a leading zero, found `1`"),
        ("-01", "expected no digit after a leading zero, found `1`"),
        ("00", "expected no digit after a leading zero, found `0`"),
        ("+1", "expected a value, found `+`"),
        (".5", "expected a value, found `.`"),
        ("1.", "expected a digit"),
        ("-", "expected a digit"),
        ("--1", "expected a digit, found `-`"),
        ("1e", "expected a digit"),
        ("1e+", "expected a digit"),
        ("1.e5", "expected a digit, found `e`"),
        ("NaN", "expected a value, found `N`"),
        ("Infinity", "expected a value, found `I`"),
        ("-Infinity", "expected a digit, found `I`"),
        ("0x1", "expected `,` or `}`, found `x`"),
        ("1_000", "expected `,` or `}`, found `_`"),
        ("10n", "expected `,` or `}`, found `n`"),
        ("1 000", "expected `,` or `}`, found `0`"),
        ("1.2.3", "expected `,` or `}`, found `.`"),
        ("１", "expected a value, found `１`"),
    ] {
        refuse_all(&[
            (
                format!("{number} in params"),
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{number}}}}}"#),
                PARSE,
                request(1),
                says,
            ),
            (
                format!("{number} in a member that nobody knows"),
                format!(r#"{{"jsonrpc":"2.0","x":{number},"id":1,"method":"m"}}"#),
                PARSE,
                Of::Nobody,
                says,
            ),
        ]);
    }
}

/// What begins like an id but does not end like one may be part of another id, so it is nobody's.
#[test]
fn ids_that_do_not_end() {
    let ids = ["01", "1.", "+1", "0x1", "1_000", "10n", "1 000", "1.2.3", r#""a"b""#, r#""a" "b""#, r#""a\""#, "'a'"];
    let rows = ids.map(|id| {
        let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        let answer = format!(r#"{{"jsonrpc":"2.0","result":{{}},"id":{id}}}"#);
        [
            (format!("a request with id {id}"), call, PARSE, Of::Nobody, "expected"),
            (format!("a result with id {id}"), answer, PARSE, Of::Nobody, "expected"),
        ]
    });
    refuse_all(rows.as_flattened());
}

#[test]
fn literals() {
    for (word, says) in [
        ("tru", "expected true"),
        ("True", "expected a value, found `T`"),
        ("fals", "expected false"),
        ("nul", "expected null"),
        ("NULL", "expected a value, found `N`"),
        ("nil", "expected null"),
        ("undefined", "expected a value, found `u`"),
        ("nulls", "expected `,` or `}`, found `s`"),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{word}}}"#);
        refuse_all(&[(word, text, PARSE, request(1), says)]);
    }
}

#[test]
fn other_dialects() {
    refuse_all(&[
        (
            "a comma behind the last member",
            r#"{"jsonrpc":"2.0","id":1,"method":"m",}"#,
            PARSE,
            request(1),
            "expected the name of a member, found `}`",
        ),
        (
            "a comma behind the last param",
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,}}"#,
            PARSE,
            request(1),
            "expected the name of a member, found `}`",
        ),
        (
            "a comma behind the last element",
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1,]}}"#,
            PARSE,
            request(1),
            "expected a value, found `]`",
        ),
        ("a comma in front", r#"{,"jsonrpc":"2.0"}"#, PARSE, Of::Nobody, "expected the name of a member, found `,`"),
        (
            "two commas",
            r#"{"jsonrpc":"2.0","id":1,,"method":"m"}"#,
            PARSE,
            request(1),
            "expected the name of a member, found `,`",
        ),
        ("no comma", r#"{"jsonrpc":"2.0" "id":1,"method":"m"}"#, PARSE, Of::Nobody, r"expected `,` or `}`"),
        ("no colon", r#"{"jsonrpc" "2.0"}"#, PARSE, Of::Nobody, "expected `:`"),
        ("an equals sign", r#"{"jsonrpc"="2.0"}"#, PARSE, Of::Nobody, "expected `:`, found `=`"),
        ("no value", r#"{"jsonrpc":"2.0","id":1,"method":}"#, PARSE, request(1), "expected a value, found `}`"),
        ("only a name", r#"{"jsonrpc"}"#, PARSE, Of::Nobody, "expected `:`, found `}`"),
        (
            "a comment to the end of the line",
            "{\"jsonrpc\":\"2.0\",\"id\":1, // one\n\"method\":\"m\"}",
            PARSE,
            request(1),
            "expected the name of a member, found `/`",
        ),
        (
            "a comment in the middle",
            r#"{"jsonrpc":"2.0","id":1,"method":/*m*/"m"}"#,
            PARSE,
            request(1),
            "expected a value, found `/`",
        ),
        ("a comment in front", "# hello\n{}", PARSE, Of::Nobody, "expected a value, found `#`"),
        ("single quotes", r"{'jsonrpc':'2.0'}", PARSE, Of::Nobody, "expected the name of a member"),
        ("a value in single quotes", r#"{"jsonrpc":"2.0","id":1,"method":'m'}"#, PARSE, request(1), "expected a value"),
        ("a name without quotes", r#"{jsonrpc:"2.0"}"#, PARSE, Of::Nobody, "expected the name of a member, found `j`"),
        ("a name that is a number", r#"{1:"2.0"}"#, PARSE, Of::Nobody, "expected the name of a member, found `1`"),
        ("typographic quotes", r#"{“jsonrpc”:"2.0"}"#, PARSE, Of::Nobody, "expected the name of a member, found `“`"),
        (
            "the wrong bracket",
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1}}}"#,
            PARSE,
            request(1),
            "expected `,` or `]`, found `}`",
        ),
        (
            "the wrong brace",
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1]}"#,
            PARSE,
            request(1),
            "expected `,` or `}`, found `]`",
        ),
        (
            "a non-breaking space",
            "{\"jsonrpc\":\"2.0\",\u{a0}\"id\":1}",
            PARSE,
            Of::Nobody,
            "expected the name of a member, found `\\u{a0}`",
        ),
        ("a form feed", "\u{c}{}", PARSE, Of::Nobody, "expected a value, found `\\u{c}`"),
        ("a null byte in front", "\0{}", PARSE, Of::Nobody, "expected a value, found `\\0`"),
        ("a record separator", "\u{1e}{}", PARSE, Of::Nobody, "expected a value, found `\\u{1e}`"),
    ]);
}

#[test]
fn text_behind_the_message() {
    const END: &str = "expected the end of the text";
    refuse_all(&[
        ("a brace too many", r#"{"jsonrpc":"2.0","id":1,"method":"m"}}"#, PARSE, request(1), END),
        ("a comma", r#"{"jsonrpc":"2.0","id":1,"method":"m"},"#, PARSE, request(1), END),
        ("a word", r#"{"jsonrpc":"2.0","id":1,"method":"m"} x"#, PARSE, request(1), END),
        ("a null byte", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\0", PARSE, request(1), END),
        ("two objects", "{}{}", PARSE, Of::Nobody, "expected the end of the text, found `{` (byte 2)"),
        (
            "two requests on two lines",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"m\"}",
            PARSE,
            request(1),
            "expected the end of the text, found `{` (byte 38)",
        ),
        (
            "a result and a request",
            r#"{"jsonrpc":"2.0","id":1,"result":{}} {"jsonrpc":"2.0","id":2,"method":"m"}"#,
            PARSE,
            response(1),
            END,
        ),
        ("a number and a brace", "5}", PARSE, Of::Nobody, END),
    ]);
}
