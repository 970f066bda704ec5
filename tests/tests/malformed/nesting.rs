//! Texts that nest too deep.

use mcp_types::CallToolRequestParams;
use mcp_types::jsonrpc::{Fault, Limits, Message, Payload, parse};

use crate::{Of, REQUEST, refuse_all, request, response};

const SAYS: &str = "the text nests deeper than 128 levels";

/// Nests containers: `shape` names them in turn, `[` for an array and `{` for an object.
fn nested(shape: &str, levels: usize) -> String {
    let containers = || shape.chars().cycle().take(levels);
    let open: String = containers().map(|container| if container == '[' { "[" } else { "{\"a\":" }).collect();
    let mut close: Vec<_> = containers().map(|container| if container == '[' { "]" } else { "}" }).collect();
    close.reverse();
    format!("{open}0{}", close.concat())
}

/// Every place for a value of any shape that is still JSON; the message itself is one level.
fn places(value: &str) -> [(&'static str, String, Of); 8] {
    [
        ("in an unknown member", format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","x":{value}}}"#), request(1)),
        ("in an unknown member in front", format!(r#"{{"x":{value},"jsonrpc":"2.0","id":1}}"#), Of::Nobody),
        ("in the version", format!(r#"{{"id":1,"method":"m","jsonrpc":{value}}}"#), request(1)),
        ("in the id", format!(r#"{{"jsonrpc":"2.0","method":"m","id":{value}}}"#), Of::Nobody),
        ("in the method", format!(r#"{{"jsonrpc":"2.0","id":1,"method":{value}}}"#), request(1)),
        ("in the params", format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{value}}}"#), request(1)),
        ("in the result", format!(r#"{{"jsonrpc":"2.0","id":1,"result":{value}}}"#), response(1)),
        ("in the error", format!(r#"{{"jsonrpc":"2.0","id":1,"error":{value}}}"#), response(1)),
    ]
}

#[test]
fn one_level_too_many() {
    for shape in ["[", "{", "[{", "{[", "[[{"] {
        for (place, text, of) in places(&nested(shape, 128)) {
            refuse_all(&[(format!("{shape} {place}"), text, REQUEST, of, SAYS)]);
        }
        // One level less is a matter of what may stand in that place.
        for (place, text, _) in places(&nested(shape, 127)) {
            if let Err(invalid) = parse(text.as_bytes(), &Limits::default()) {
                assert!(!matches!(invalid.fault(), Fault::TooDeep { .. }), "{shape} {place}: {invalid}");
            }
        }
    }
}

#[test]
fn texts_that_only_nest() {
    for shape in ["[", "{", "[{", "{["] {
        refuse_all(&[
            (shape, nested(shape, 129), REQUEST, Of::Nobody, SAYS),
            (shape, nested(shape, 100_000), REQUEST, Of::Nobody, SAYS),
        ]);
    }
    refuse_all(&[
        ("arrays that are never closed", "[".repeat(100_000), REQUEST, Of::Nobody, SAYS),
        ("objects that are never closed", "{\"a\":".repeat(100_000), REQUEST, Of::Nobody, SAYS),
    ]);
}

/// The place of the fault shows that nothing behind it was read.
#[test]
fn nothing_is_read_behind_the_limit() {
    for (place, text, of) in places(&nested("[", 100_000)) {
        refuse_all(&[(place, &text, REQUEST, of, SAYS)]);
        let invalid = parse(text.as_bytes(), &Limits::default()).unwrap_err();
        assert_eq!(invalid.offset(), Some(text.find('[').unwrap() + 127), "{place}");
    }
}

#[test]
fn depth_costs_no_stack() {
    let limits = Limits::default().max_depth(usize::MAX);
    let read = move || {
        for shape in ["[", "{", "[{"] {
            let deepest = nested(shape, Limits::MAX_SUPPORTED_DEPTH - 1);
            let text = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{}},"x":{deepest}}}"#);
            assert!(Message::parse(text.as_bytes(), &limits).is_ok(), "{shape}");
            let text = nested(shape, 1_000_000);
            let invalid = parse(text.as_bytes(), &limits).unwrap_err();
            assert_eq!(invalid.fault(), &Fault::TooDeep { limit: Limits::MAX_SUPPORTED_DEPTH }, "{shape}");
        }
    };
    let thread = std::thread::Builder::new().stack_size(64 * 1024).spawn(read).expect("a thread");
    thread.join().expect("64 KiB are enough");
}

#[test]
fn whatever_passes_can_be_decoded() {
    let params =
        |levels| format!(r#"{{"name":"a","_meta":{{"x":{0}}},"arguments":{{"x":{0}}}}}"#, nested("[{", levels));
    let text = params(125);
    let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{text}}}"#);
    let Ok(Message::Request(request)) = Message::parse(message.as_bytes(), &Limits::default()) else {
        panic!("128 levels are allowed");
    };
    request.params.unwrap().decode::<CallToolRequestParams>().unwrap();

    // Whoever raises the limit can still pass on what stays text; reading it gives an error, not an overflow.
    let text = params(1000);
    let payload = Payload::parse(&text, &Limits::default().max_depth(Limits::MAX_SUPPORTED_DEPTH)).unwrap();
    let params = payload.decode::<CallToolRequestParams>().unwrap();
    let fault = params.arguments.unwrap().decode::<serde_json::Value>().unwrap_err();
    assert!(fault.to_string().starts_with("recursion limit exceeded"), "{fault}");
    let fault = params.meta.unwrap().get("x").unwrap().to_value().unwrap_err();
    assert!(fault.to_string().starts_with("recursion limit exceeded"), "{fault}");
}
