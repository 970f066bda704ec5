//! Error messages in the bodies of HTTP responses.

use mcp_types::jsonrpc::{Limits, Message, PayloadBuf, Response};

/// The maximum length of an excerpt.
const MOST_CHARS: usize = 300;

/// How much of a plain text is read.
const MOST_BYTES: usize = 4096;

/// The members of an object that may have the message: those of `application/problem+json`, of OAuth, and other common
/// ones.
const MEMBERS: [&str; 6] = ["detail", "error_description", "message", "title", "error", "reason"];

/// Returns an excerpt of a body: of the message of a JSON-RPC error or of another JSON object, or of the text itself.
/// HTML pages have none.
pub(crate) fn excerpt(body: &[u8], limits: &Limits) -> Option<String> {
    if let Ok(Message::Response(Response { outcome: Err(error), .. })) = Message::parse(body, limits) {
        return clean(&error.message);
    }
    let text = String::from_utf8_lossy(body.get(..MOST_BYTES).unwrap_or(body));
    match text.trim().as_bytes() {
        b"{}" | [b'<', ..] => None,
        [b'{', ..] => described(body, limits).or_else(|| clean(&text)),
        _ => clean(&text),
    }
}

/// Returns the message of an object, or of its member `error`.
fn described(body: &[u8], limits: &Limits) -> Option<String> {
    let object = PayloadBuf::parse(std::str::from_utf8(body).ok()?, limits).ok()?;
    let inner = || PayloadBuf::parse(object.get("error")?.get(), limits).ok();
    said_by(&object).or_else(|| said_by(&inner()?))
}

fn said_by(object: &PayloadBuf) -> Option<String> {
    let said = |name: &&str| clean(&serde_json::from_str::<String>(object.get(name)?.get()).ok()?);
    MEMBERS.iter().find_map(said)
}

/// Makes one short line of a text, without characters that move the cursor or change the direction of writing.
fn clean(text: &str) -> Option<String> {
    let is_harmless = |char: &char| {
        !char.is_control()
            && !matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let spaced = text.chars().map(|char| if char.is_whitespace() { ' ' } else { char }).filter(is_harmless);
    let mut line = String::new();
    for char in spaced {
        if char == ' ' && (line.is_empty() || line.ends_with(' ')) {
            continue;
        }
        line.push(char);
        if line.chars().count() >= MOST_CHARS {
            line.push('\u{2026}');
            break;
        }
    }
    line.truncate(line.trim_end().len());
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: INT-6
    #[test]
    fn int_6_bodies_say_why() {
        let long = "x".repeat(2000);
        for (body, expected) in [
            ("", None),
            ("  \r\n", None),
            ("no\u{1b}[2J such\r\n\tuser\u{202e}\n", Some("no[2J such user")),
            ("<html><title>403</title></html>", None),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"bad\nhost"}}"#, Some("bad host")),
            (r#"{"type":"about:blank","title":"Forbidden","detail":"no credit"}"#, Some("no credit")),
            (r#"{"title":"Forbidden","detail":7}"#, Some("Forbidden")),
            (r#"{"error":"invalid_token","error_description":"it expired"}"#, Some("it expired")),
            (r#"{"error":"invalid_token"}"#, Some("invalid_token")),
            (r#"{"error":{"code":429,"message":"no quota"}}"#, Some("no quota")),
            (r#"{"message":{"detail":"deep"},"reason":"flat"}"#, Some("flat")),
            (r#"{"detail":[{"msg":"too\u001b short"}]}"#, Some(r#"{"detail":[{"msg":"too\u001b short"}]}"#)),
            ("{\"errors\":\r\n [\"a\u{202e}\"]}", Some(r#"{"errors": ["a"]}"#)),
            (r#"{"error":{"code":7}}"#, Some(r#"{"error":{"code":7}}"#)),
            (r#"{"title":" "}"#, Some(r#"{"title":" "}"#)),
            ("{broken", Some("{broken")),
            ("{}", None),
        ] {
            assert_eq!(excerpt(body.as_bytes(), &Limits::default()).as_deref(), expected, "{body}");
        }
        let cut = excerpt(long.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(cut.chars().count(), MOST_CHARS + 1);
        assert_eq!(excerpt(b"\xff\xfe", &Limits::default()).as_deref(), Some("\u{fffd}\u{fffd}"));
    }
}
