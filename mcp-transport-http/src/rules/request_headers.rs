//! The headers by which each request is checked.

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue};

use super::header_names::{SESSION, VERSION};

/// The headers by which each request is checked, found in one pass: to look up each of them costs several times as much.
pub(crate) struct RequestHeaders<'a> {
    pub(crate) all: &'a HeaderMap,
    pub(crate) host: Occurrence<'a>,
    pub(crate) origin: Occurrence<'a>,
    pub(crate) content_type: Occurrence<'a>,
    pub(crate) content_encoding: Occurrence<'a>,
    pub(crate) accept: Occurrence<'a>,
    pub(crate) version: Occurrence<'a>,
    pub(crate) session: Occurrence<'a>,
}

/// How often a header occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occurrence<'a> {
    Missing,
    Once(&'a HeaderValue),
    Repeated,
}

impl<'a> Occurrence<'a> {
    pub(crate) fn add(&mut self, value: &'a HeaderValue) {
        *self = if matches!(self, Self::Missing) { Self::Once(value) } else { Self::Repeated };
    }
}

impl<'a> RequestHeaders<'a> {
    pub(crate) fn read(all: &'a HeaderMap) -> Self {
        let missing = Occurrence::Missing;
        let mut found = Self {
            all,
            host: missing,
            origin: missing,
            content_type: missing,
            content_encoding: missing,
            accept: missing,
            version: missing,
            session: missing,
        };
        for (name, value) in all {
            let header = match name {
                name if *name == HOST => &mut found.host,
                name if *name == CONTENT_TYPE => &mut found.content_type,
                name if *name == ACCEPT => &mut found.accept,
                name if *name == ORIGIN => &mut found.origin,
                name if *name == CONTENT_ENCODING => &mut found.content_encoding,
                name if *name == VERSION => &mut found.version,
                name if *name == SESSION => &mut found.session,
                _ => continue,
            };
            header.add(value);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_counted() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("host", "a"), ("accept", "b"), ("accept", "c"), ("mcp-session-id", "d"), ("x", "e")] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let found = RequestHeaders::read(&headers);
        assert_eq!(found.host, Occurrence::Once(&HeaderValue::from_static("a")));
        assert_eq!(found.session, Occurrence::Once(&HeaderValue::from_static("d")));
        assert_eq!(found.accept, Occurrence::Repeated);
        assert_eq!(found.origin, Occurrence::Missing);
    }
}
