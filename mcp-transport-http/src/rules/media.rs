//! `Content-Type` and `Accept` of requests.

use http::HeaderMap;
use http::header::ACCEPT;

use super::header_names::{EVENT_STREAM, JSON};
use super::request_headers::{Occurrence, RequestHeaders};

/// Returns whether a request body is declared as JSON, once and without a content encoding.
pub(crate) fn is_json(headers: &RequestHeaders<'_>) -> bool {
    let Occurrence::Once(kind) = headers.content_type else { return false };
    let is_json = kind == JSON || {
        let kind = kind.to_str().unwrap_or_default();
        kind.split_once(';').map_or(kind, |(kind, _)| kind).trim().eq_ignore_ascii_case(JSON)
    };
    let is_encoded = match headers.content_encoding {
        Occurrence::Missing => false,
        Occurrence::Once(coding) => !coding.as_bytes().eq_ignore_ascii_case(b"identity"),
        Occurrence::Repeated => true,
    };
    is_json && !is_encoded
}

/// Returns whether a client accepts both JSON and event streams.
// H-8
pub(crate) fn accepts_both(headers: &RequestHeaders<'_>) -> bool {
    // Nearly all clients send exactly this.
    const COMMON_ACCEPT: &str = "application/json, text/event-stream";
    matches!(headers.accept, Occurrence::Once(accepted) if accepted == COMMON_ACCEPT)
        || (accepts(headers.all, JSON) && accepts(headers.all, EVENT_STREAM))
}

/// Returns whether a client accepts a media type. Without an `Accept` header it accepts all (RFC 9110).
///
/// The most specific range that matches decides.
pub(crate) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let mut ranges = headers.get_all(ACCEPT).iter().peekable();
    if ranges.peek().is_none() {
        return true;
    }
    let ranges = ranges.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let best = ranges.filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let precision = precision(parts.next()?, kind)?;
        let is_refused = parts.any(|part| {
            let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            weight.is_some_and(|weight| weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0))
        });
        Some((precision, !is_refused))
    });
    best.max().is_some_and(|(_, is_accepted)| is_accepted)
}

/// Returns how specific a range is, if it matches a media type.
fn precision(range: &str, kind: &str) -> Option<u8> {
    if range.eq_ignore_ascii_case(kind) {
        return Some(2);
    }
    if range == "*/*" {
        return Some(0);
    }
    let (main, _) = kind.split_once('/')?;
    let covered = range.strip_suffix("/*")?;
    covered.eq_ignore_ascii_case(main).then_some(1)
}

#[cfg(test)]
mod tests {
    use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(name: HeaderName, values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    /// Both kinds, in any way that HTTP allows to say so.
    // covers: H-8
    #[test]
    fn ranges_are_understood() {
        for (values, json, events) in [
            (&["application/json, text/event-stream"][..], true, true),
            (&["text/event-stream;q=0.5,application/json"], true, true),
            (&["application/json", "text/event-stream"], true, true),
            (&["APPLICATION/JSON,Text/*"], true, true),
            (&["*/*"], true, true),
            (&["application/*"], true, false),
            (&["application/json"], true, false),
            (&["text/event-stream"], false, true),
            (&["*/*, text/event-stream;q=0"], true, false),
            (&["*/*;q=0, application/json"], true, false),
            (&["application/json;q=0.000, application/*"], false, false),
            (&["text/html"], false, false),
            (&["application/jsonx, text/event-stream2"], false, false),
            (&[""], false, false),
            (&[], true, true),
        ] {
            let headers = headers(ACCEPT, values);
            assert_eq!((accepts(&headers, JSON), accepts(&headers, EVENT_STREAM)), (json, events), "{values:?}");
            assert_eq!(accepts_both(&RequestHeaders::read(&headers)), json && events, "{values:?}");
        }
    }

    /// A body is JSON if it says so, and is as it says.
    // covers: H-14
    #[test]
    fn json_is_json() {
        for (values, expected) in [
            (&["application/json"][..], true),
            (&["application/json; charset=utf-8"], true),
            (&["Application/JSON;charset=UTF-8"], true),
            (&["text/plain"], false),
            (&["application/jsonp"], false),
            (&["application/json", "text/plain"], false),
            (&["application/x-www-form-urlencoded"], false),
            (&[], false),
        ] {
            assert_eq!(is_json(&RequestHeaders::read(&headers(CONTENT_TYPE, values))), expected, "{values:?}");
        }
        let mut headers = headers(CONTENT_TYPE, &["application/json"]);
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("identity"));
        assert!(is_json(&RequestHeaders::read(&headers)));
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert!(!is_json(&RequestHeaders::read(&headers)));
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("identity"));
        headers.append(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert!(!is_json(&RequestHeaders::read(&headers)));
    }
}
