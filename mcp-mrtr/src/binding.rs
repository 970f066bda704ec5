//! Binds a state to a request.

use mcp_types::jsonrpc::PayloadBuf;
use sha2::{Digest, Sha256};

/// The principal, the server and the request that a state is valid for.
#[derive(Clone, Debug)]
pub struct Binding {
    pub(crate) principal: [u8; DIGEST_BYTES],
    pub(crate) audience: [u8; DIGEST_BYTES],
    pub(crate) request: [u8; DIGEST_BYTES],
}

/// The length of a truncated digest in bytes, enough to resist collisions.
pub(crate) const DIGEST_BYTES: usize = 16;

/// The parameters that change from round to round, and are not part of the binding.
const PER_ROUND_PARAMS: [&str; 3] = ["_meta", "inputResponses", "requestState"];

impl Binding {
    /// Creates the binding to a request: its method, and all parameters but `_meta`, `inputResponses` and `requestState`.
    ///
    /// `principal` is the issuer and subject of the authenticated user, if there is one. `audience` names the server, so
    /// that servers that share keys do not accept each other's states.
    #[must_use]
    pub fn new(principal: Option<(Option<&str>, &str)>, audience: &str, method: &str, params: &PayloadBuf) -> Self {
        let mut members: Vec<(&str, &str)> = params
            .members()
            .filter(|(name, _)| !PER_ROUND_PARAMS.contains(name))
            .map(|(name, value)| (name, value.get()))
            .collect();
        members.sort_unstable();
        let mut request = Hasher::default();
        request.part(method.as_bytes());
        for (name, value) in members {
            request.part(name.as_bytes());
            request.part(&without_whitespace(value));
        }
        let mut by = Hasher::default();
        if let Some((issuer, subject)) = principal {
            by.part(issuer.unwrap_or_default().as_bytes());
            by.part(subject.as_bytes());
        }
        let mut of = Hasher::default();
        of.part(audience.as_bytes());
        Self { principal: by.finish(), audience: of.finish(), request: request.finish() }
    }
}

/// A digest of several parts, each prefixed by its length.
#[derive(Default)]
pub(crate) struct Hasher(Sha256);

impl Hasher {
    pub(crate) fn part(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> [u8; DIGEST_BYTES] {
        let mut digest = [0; DIGEST_BYTES];
        for (to, from) in digest.iter_mut().zip(self.0.finalize()) {
            *to = from;
        }
        digest
    }
}

/// Removes insignificant whitespace: a client that serializes the JSON again may space it differently.
fn without_whitespace(json: &str) -> Vec<u8> {
    let (mut kept, mut in_string, mut is_escaped) = (Vec::with_capacity(json.len()), false, false);
    for byte in json.bytes() {
        if in_string || !byte.is_ascii_whitespace() {
            kept.push(byte);
        }
        in_string = if in_string { is_escaped || byte != b'"' } else { byte == b'"' };
        is_escaped = in_string && !is_escaped && byte == b'\\';
    }
    kept
}

#[cfg(test)]
mod tests {
    use mcp_types::jsonrpc::Limits;

    use super::*;

    fn request(params: &str) -> [u8; DIGEST_BYTES] {
        let params = PayloadBuf::parse(params, &Limits::default()).unwrap();
        Binding::new(None, "a", "tools/call", &params).request
    }

    /// The retry repeats the request, in its own spacing and order, with what belongs to the round.
    // covers: R-21
    #[test]
    fn a_retry_is_the_same_request() {
        let first = request(r#"{"name":"a","arguments":{"b":"c \" d"}}"#);
        assert_eq!(first, request("{ \"arguments\" : { \"b\" : \"c \\\" d\" },\n \"name\": \"a\" }"));
        let again = r#"{"name":"a","arguments":{"b":"c \" d"},"_meta":{},"inputResponses":{},"requestState":"x"}"#;
        assert_eq!(first, request(again));
        assert_ne!(first, request(r#"{"name":"a","arguments":{"b":"c \"  d"}}"#));
        assert_ne!(first, request(r#"{"name":"b","arguments":{"b":"c \" d"}}"#));
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(request(r#"{"ab":"c"}"#), request(r#"{"a":"bc"}"#));
        let empty = PayloadBuf::default();
        let one = Binding::new(Some((Some("a"), "bc")), "", "m", &empty);
        let other = Binding::new(Some((Some("ab"), "c")), "", "m", &empty);
        assert_ne!(one.principal, other.principal);
    }
}
